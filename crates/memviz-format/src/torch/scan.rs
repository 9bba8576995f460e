//! What must be known before the first byte: devices, categories, and an address range that no buffer uses.
//!
//! Several traces have one list of categories, and their devices are numbered one trace after the other.

use memviz_trace::{CheckpointKind, Device, DeviceKind, Event, NO_STREAM, Trace, WhatId};

use crate::FormatError;

/// Readers have ten colours. "other" and "unknown" (the state before the recording) take two.
const NAMED_CATEGORIES: usize = 8;
/// Address space of processes ends below; JavaScript counts exactly to twice this.
const FAKE_ADDR: u64 = 1 << 52;

/// Facts about a whole trace.
pub(super) struct Scan {
    /// Number of the first of its trace lists in the file.
    pub(super) first_list: usize,
    /// One trace list each, sorted; never empty.
    pub(super) devices: Vec<Device>,
    /// Position in `devices` of buffers without a stream.
    pub(super) main: usize,
    /// Number of the category of each `WhatId`.
    pub(super) category_of: Vec<u8>,
    /// Where pseudo-segments begin.
    pub(super) fake_addr: u64,
    /// Failed allocations of a device: number of the event, bytes that were free.
    failures: Vec<(u64, u64)>,
}

/// Facts about traces that share a file.
pub(super) struct Scans {
    /// One for each trace, in order.
    pub(super) all: Vec<Scan>,
    /// Names of categories, by number.
    pub(super) categories: Vec<String>,
}

impl Scans {
    /// Walks each trace once.
    ///
    /// # Errors
    /// An address or size of 2^63 or more.
    pub(super) fn of(traces: &[&Trace]) -> Result<Scans, FormatError> {
        let mut all = Vec::new();
        let mut bytes = Vec::new();
        let mut first_list = 0;
        for trace in traces {
            let (scan, sums) = Scan::of(trace, first_list)?;
            first_list += scan.devices.len();
            all.push(scan);
            bytes.push(sums);
        }
        let (categories, numbers) = categories(traces, &bytes);
        for (scan, category_of) in all.iter_mut().zip(numbers) {
            scan.category_of = category_of;
        }
        Ok(Scans { all, categories })
    }
}

impl Scan {
    /// The scan, its categories still missing, and the bytes of each `WhatId`.
    fn of(trace: &Trace, first_list: usize) -> Result<(Scan, Vec<u128>), FormatError> {
        let mut bytes = vec![0u128; trace.whats.len().max(1)];
        let mut top = 0u64;
        let mut seen = [false; 256];
        for (index, event) in trace.events.iter().enumerate().filter(|(_, event)| is_written(event)) {
            check(index, event)?;
            top = top.max(end(event.addr, event.size));
            let starts = event.action.is_alloc();
            seen[usize::from(event.device.0)] |= starts && event.stream != NO_STREAM;
            if let Some(sum) = bytes.get_mut(event.what.index()).filter(|_| starts) {
                *sum += u128::from(event.size);
            }
        }
        for buffer in &trace.start {
            check(0, &Event { addr: buffer.addr, size: buffer.size, ..Event::default() })?;
            top = top.max(end(buffer.addr, buffer.size));
            seen[usize::from(buffer.device.0)] |= buffer.stream != NO_STREAM;
        }
        let (devices, main) = devices(trace, seen);
        let fake_addr = if top <= FAKE_ADDR { FAKE_ADDR } else { top.next_multiple_of(4096) };
        let (category_of, failures) = (Vec::new(), failures(trace));
        Ok((Scan { first_list, devices, main, category_of, fake_addr, failures }, bytes))
    }

    /// Bytes that were free when the `Oom` event with that number failed; 0 when not known.
    pub(super) fn device_free(&self, index: u64) -> u64 {
        let found = self.failures.binary_search_by_key(&index, |(index, _)| *index);
        found.map_or(0, |at| self.failures[at].1)
    }

    /// Position in `devices` of a buffer that belongs to `stream` of `device`.
    pub(super) fn home(&self, stream: i16, device: Device) -> usize {
        if stream == NO_STREAM { self.main } else { self.devices.binary_search(&device).unwrap_or(self.main) }
    }
}

/// What the driver said after each `Oom` event, in order.
fn failures(trace: &Trace) -> Vec<(u64, u64)> {
    let points = trace.checkpoints.iter().filter(|point| point.kind == CheckpointKind::Oom);
    let known = points.filter_map(|point| Some((point.index.checked_sub(1)?, point.device?.free.min(i64::MAX as u64))));
    let mut failures: Vec<(u64, u64)> = known.collect();
    failures.sort_unstable();
    failures
}

/// `FilteredNet` and array records have no counterpart in a snapshot.
pub(super) fn is_written(event: &Event) -> bool {
    use memviz_trace::Action::{Oom, Snapshot};
    event.action.is_buffer() || matches!(event.action, Oom | Snapshot)
}

fn end(addr: u64, size: u64) -> u64 {
    addr.saturating_add(size).min(1 << 62)
}

fn check(index: usize, event: &Event) -> Result<(), FormatError> {
    let numbers = if event.action.is_buffer() {
        [("address", event.addr), ("size", event.size)]
    } else {
        [("size", event.size); 2]
    };
    match numbers.into_iter().find(|(_, value)| i64::try_from(*value).is_err()) {
        Some((what, value)) => Err(FormatError::TooLarge { index, what, value }),
        None => Ok(()),
    }
}

/// The devices that own buffers, and which of them is the trace's own.
fn devices(trace: &Trace, mut seen: [bool; 256]) -> (Vec<Device>, usize) {
    let own = match trace.header.backend.as_str() {
        "cpu" => Some(Device::new(DeviceKind::Cpu, 0)),
        "metal" | "cuda" => Some(Device::new(DeviceKind::Gpu, 0)),
        _ => None,
    };
    let first = (0..=255u8).map(Device).find(|device| seen[usize::from(device.0)]);
    let own = own.or(first).unwrap_or_default();
    seen[usize::from(own.0)] = true;
    let all: Vec<Device> = (0..=255u8).map(Device).filter(|device| seen[usize::from(device.0)]).collect();
    let main = all.binary_search(&own).unwrap_or(0);
    (all, main)
}

/// The primitives with most bytes keep their names; the rest share one. For each trace the number of each `WhatId`.
fn categories(traces: &[&Trace], bytes: &[Vec<u128>]) -> (Vec<String>, Vec<Vec<u8>>) {
    let names: Vec<Vec<&str>> = traces.iter().map(|trace| names(trace)).collect();
    let mut sums = std::collections::BTreeMap::<&str, u128>::new();
    for (name, sum) in names.iter().flatten().zip(bytes.iter().flatten()).filter(|(_, sum)| **sum > 0) {
        *sums.entry(name).or_default() += sum;
    }
    let mut ranked: Vec<(&str, u128)> = sums.into_iter().collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let mut kept: Vec<String> = ranked.iter().take(NAMED_CATEGORIES).map(|(name, _)| name.to_string()).collect();
    let other = kept.len() as u8;
    if ranked.len() > kept.len() {
        kept.push("other".to_string());
    }
    let number = |name: &&str| kept.iter().position(|kept| kept == name).map_or(other, |at| at as u8);
    let of = names.iter().map(|names| names.iter().map(number).collect()).collect();
    (kept, of)
}

/// Category of each `WhatId`.
fn names(trace: &Trace) -> Vec<&str> {
    (0..trace.whats.len().max(1)).map(|what| category(trace, WhatId(what as u32))).collect()
}

fn category(trace: &Trace, id: WhatId) -> &str {
    match trace.whats.get(id.index()) {
        Some(what) if what.is_temporary => "temporary",
        Some(what) if !trace.strings.get(what.primitive).is_empty() => trace.strings.get(what.primitive),
        _ => "leaf",
    }
}
