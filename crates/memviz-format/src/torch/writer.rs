//! A trace to a snapshot, in one pass per device.

use std::io::Write;

use memviz_trace::{Event, NO_STREAM, Trace};

use super::entries::{AliveMap, EntryWriter};
use super::opcodes as op;
use super::pickler::{ListBatch, Memo, Pickler};
use super::scan::{Scan, is_written};
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
    let scan = Scan::of(trace)?;
    let mut pickler = Pickler::new(out);
    let mut shared = Shared::new(trace);
    pickler.byte(op::EMPTY_DICT);
    pickler.text(super::OWN_KEY);
    let mut categories = exact::write(&mut pickler, trace, &scan.categories)?;
    categories.push(Word::Unknown.memo());
    pickler.byte(op::SETITEM);

    pickler.text("device_traces");
    let mut alive = AliveMap::default();
    let mut entries = 0;
    let mut list = pickler.begin_list();
    for home in 0..scan.devices.len() {
        pickler.item(&mut list);
        alive = AliveMap::at_start(trace, &scan);
        entries += device(&mut pickler, &mut shared, trace, &scan, &categories, home, &mut alive)?;
    }
    pickler.end_list(list);
    pickler.byte(op::SETITEM);

    pickler.text("segments");
    let buffers = alive.sorted();
    segments::write(&mut pickler, &mut shared, &scan, trace, &buffers);
    pickler.byte(op::SETITEM);
    pickler.text("allocator_settings");
    extras::settings(&mut pickler, trace);
    pickler.byte(op::SETITEM);
    pickler.text("external_annotations");
    extras::annotations(&mut pickler, trace);
    pickler.byte(op::SETITEM);

    let events = trace.events.iter().filter(|event| is_written(event)).count() as u64;
    let pseudo = u64::from(trace.base.active > 0) + u64::from(trace.base.cached > 0);
    Ok(WriteReport {
        bytes: pickler.finish()?,
        events,
        hidden_events: trace.events.len() as u64 - events,
        entries,
        segments: buffers.len() as u64 + pseudo,
        devices: scan.devices.len(),
    })
}

/// Writes the trace list of one device and returns its length.
fn device(
    pickler: &mut Pickler<'_>,
    shared: &mut Shared<'_>,
    trace: &Trace,
    scan: &Scan,
    categories: &[Memo],
    home: usize,
    alive: &mut AliveMap,
) -> Result<u64, FormatError> {
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
