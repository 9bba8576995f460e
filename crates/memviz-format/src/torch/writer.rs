//! Traces to a snapshot, in one pass per device.

use std::io::Write;

use memviz_trace::{Event, NO_STREAM, Trace};

use super::entries::{AliveMap, EntryWriter};
use super::opcodes as op;
use super::pickler::{ListBatch, Memo, Pickler};
use super::scan::{Scan, Scans, is_written};
use super::shared::Shared;
use super::words::Word;
use super::{exact, extras, segments};
use crate::FormatError;

/// What [`write()`] wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteReport {
    /// Length of the file, bytes.
    pub bytes: u64,
    /// Events of the trace that the page shows.
    pub events: u64,
    /// Events that have no counterpart in the page (`FilteredNet`, arrays); our own reader gives them back.
    pub hidden_events: u64,
    /// Entries of all trace lists: a free is two, a new buffer two.
    pub entries: u64,
    /// Segments: buffers that exist after the last event, and memory from before the recording.
    pub segments: u64,
    /// Trace lists, one per device.
    pub devices: usize,
}

/// Writes `trace` as a PyTorch memory snapshot (a pickle of protocol 4), the same bytes for the same trace.
///
/// Memory is bounded by the tables of the trace and by the buffers alive, not by the number of events. A trace that fails
/// its check is written too.
///
/// # Errors
/// `out` fails, or an event has an address or size of 2^63 or more.
pub fn write(trace: &Trace, out: &mut dyn Write) -> Result<WriteReport, FormatError> {
    write_all(&[trace], out)
}

/// As [`write()`], with the processes of a run: the trace lists of the first, then those of the second, and so on.
///
/// # Errors
/// As [`write()`].
pub fn write_all(traces: &[&Trace], out: &mut dyn Write) -> Result<WriteReport, FormatError> {
    let scans = Scans::of(traces)?;
    let mut pickler = Pickler::new(out);
    let mut parts: Vec<Part<'_>> = traces.iter().zip(&scans.all).map(|(trace, scan)| Part::new(trace, scan)).collect();
    pickler.byte(op::EMPTY_DICT);
    pickler.text(super::OWN_KEY);
    let mut categories = exact::write(&mut pickler, traces, &scans.categories)?;
    categories.push(Word::Unknown.memo());
    pickler.byte(op::SETITEM);

    let mut report = WriteReport::default();
    pickler.text("device_traces");
    let mut list = pickler.begin_list();
    for part in &mut parts {
        for home in 0..part.scan.devices.len() {
            pickler.item(&mut list);
            part.alive = AliveMap::at_start(part.trace, part.scan);
            report.entries += device(&mut pickler, part, &categories, home)?;
        }
    }
    pickler.end_list(list);
    pickler.byte(op::SETITEM);
    tail(&mut pickler, &mut parts);

    parts.iter().for_each(|part| part.count(&mut report));
    Ok(WriteReport { bytes: pickler.finish()?, ..report })
}

/// What follows the trace lists.
fn tail(pickler: &mut Pickler<'_>, parts: &mut [Part<'_>]) {
    pickler.text("segments");
    let mut list = pickler.begin_list();
    for part in &mut *parts {
        let buffers = part.alive.sorted();
        segments::write(pickler, &mut list, &mut part.shared, part.scan, part.trace, &buffers);
    }
    pickler.end_list(list);
    pickler.byte(op::SETITEM);
    let traces: Vec<&Trace> = parts.iter().map(|part| part.trace).collect();
    pickler.text("allocator_settings");
    extras::settings(pickler, &traces);
    pickler.byte(op::SETITEM);
    pickler.text("external_annotations");
    let mut list = pickler.begin_list();
    for part in parts {
        extras::annotations(pickler, &mut list, part.trace, part.scan.first_list);
    }
    pickler.end_list(list);
    pickler.byte(op::SETITEM);
}

/// One trace of the file, and what was written of it.
struct Part<'t> {
    trace: &'t Trace,
    scan: &'t Scan,
    shared: Shared<'t>,
    alive: AliveMap,
}

impl<'t> Part<'t> {
    fn new(trace: &'t Trace, scan: &'t Scan) -> Part<'t> {
        Part { trace, scan, shared: Shared::new(trace), alive: AliveMap::default() }
    }

    fn count(&self, report: &mut WriteReport) {
        let trace = self.trace;
        let events = trace.events.iter().filter(|event| is_written(event)).count() as u64;
        let pseudo = u64::from(trace.base.active > 0) + u64::from(trace.base.cached > 0);
        report.events += events;
        report.hidden_events += trace.events.len() as u64 - events;
        report.segments += self.alive.len() as u64 + pseudo;
        report.devices += self.scan.devices.len();
    }
}

/// Writes the trace list of one device and returns its length.
fn device(
    pickler: &mut Pickler<'_>,
    part: &mut Part<'_>,
    categories: &[Memo],
    home: usize,
) -> Result<u64, FormatError> {
    let Part { trace, scan, shared, alive } = part;
    let start_micros = trace.header.start_unix_micros;
    let list: ListBatch = pickler.begin_list();
    let mut writer = EntryWriter {
        pickler,
        shared,
        scan,
        categories,
        start_micros,
        list,
        entries: 0,
        index: 0,
        addr: None,
        time: None,
    };
    let mut marks = trace.mark_cursor();
    for (index, event) in (trace.first_index..).zip(&trace.events) {
        if is_written(event) {
            marks.advance_to(index);
            writer.index = index;
            writer.event(event, home, alive, &marks);
            writer.pickler.flush_when_full()?;
        }
    }
    let active = alive.active_bytes(home) + if home == scan.main { trace.base.active.min(1 << 61) } else { 0 };
    let last = Event { time_nanos: extras::end_nanos(trace), stream: NO_STREAM, ..Event::default() };
    writer.snapshot(&last, active, "end of the recording");
    let EntryWriter { pickler, list, entries, .. } = writer;
    pickler.end_list(list);
    Ok(entries)
}
