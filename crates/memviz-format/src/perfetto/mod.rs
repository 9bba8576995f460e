//! A recording for ui.perfetto.dev and its trace processor, as Perfetto's own protobuf.
//!
//! Each process has counters (active, cached, reserved, after every event), slices for steps, and for each thread slices for
//! annotations and for evaluations. An evaluation is a run of allocations on one thread that the same line made happen.
//! Times are nanoseconds since 1970, so processes of one run share a clock as far as their machines do.
//!
//! Memory is bounded by threads and open slices. The reader sorts by time, so slices may be written when they end.

mod proto;
mod slices;
mod tracks;

use std::collections::BTreeSet;
use std::io::Write;

use memviz_trace::{Action, EndingKind, Ledger, ThreadId, Totals, Trace};

use crate::FormatError;
use crate::table::Lined;
use slices::Slices;
use tracks::{Counter, Packets, Track};

/// Writes the recordings, one process each.
///
/// # Errors
/// `out` fails.
pub fn write(recordings: &[Lined<'_>], out: &mut dyn Write) -> Result<(), FormatError> {
    let mut pids = BTreeSet::new();
    for (process, recording) in (0..).zip(recordings) {
        let start_micros = recording.trace.header.start_unix_micros;
        let mut packets = Packets::new(&mut *out, process, start_micros);
        packets.clock()?;
        one(&mut packets, recording, pid(recording.trace, &mut pids))?;
    }
    out.flush().map_err(FormatError::Write)
}

/// The process's own id; processes of several machines can have the same.
fn pid(trace: &Trace, taken: &mut BTreeSet<i32>) -> i32 {
    let mut pid = i32::try_from(trace.header.pid).unwrap_or(1).max(1);
    while !taken.insert(pid) {
        pid = pid.checked_add(1).unwrap_or(1);
    }
    pid
}

fn one(packets: &mut Packets<'_>, recording: &Lined<'_>, pid: i32) -> Result<(), FormatError> {
    let trace = recording.trace;
    packets.describe_process(trace, pid)?;
    for thread in threads(trace) {
        packets.describe_thread(trace, pid, thread)?;
    }
    let mut ledger = Ledger::at_start(trace).unwrap_or_default();
    let mut shown = None;
    let first_nanos = trace.events.first().map_or(0, |event| event.time_nanos);
    counters(packets, first_nanos, &mut shown, ledger.totals())?;
    let mut slices = Slices::begin(recording, packets)?;
    for (index, event) in (trace.first_index..).zip(&trace.events) {
        slices.marks_before(index, packets)?;
        slices.event(event, packets)?;
        let _skipped_like_everywhere = ledger.apply(event);
        counters(packets, event.time_nanos, &mut shown, ledger.totals())?;
        if event.action == Action::Oom {
            packets.instant(
                event.time_nanos,
                Track::Thread(event.thread),
                "out of memory",
                &[("bytes", event.size)],
            )?;
        }
    }
    slices.finish(packets)?;
    ending(packets, trace)
}

/// Writes the counters that changed.
fn counters(packets: &mut Packets<'_>, nanos: u64, shown: &mut Option<Totals>, now: Totals) -> Result<(), FormatError> {
    let value = |totals: Totals, counter| match counter {
        Counter::Active => totals.active,
        Counter::Cached => totals.cached,
        Counter::Reserved => totals.active.saturating_add(totals.cached),
    };
    for (counter, _) in Counter::ALL {
        if shown.is_none_or(|shown| value(shown, counter) != value(now, counter)) {
            packets.counter(nanos, counter, value(now, counter))?;
        }
    }
    *shown = Some(now);
    Ok(())
}

fn ending(packets: &mut Packets<'_>, trace: &Trace) -> Result<(), FormatError> {
    let ending = &trace.header.ending;
    if !matches!(ending.kind, EndingKind::Exception | EndingKind::Signal) {
        return Ok(());
    }
    packets.instant(end_nanos(trace), Track::Steps, &format!("{}: {}", ending.kind.name(), ending.detail), &[])
}

/// Threads that something happened on.
fn threads(trace: &Trace) -> BTreeSet<ThreadId> {
    let events = trace.events.iter().map(|event| event.thread);
    events.chain(trace.marks.iter().map(|mark| mark.thread)).collect()
}

/// Time of the last thing that happened.
fn end_nanos(trace: &Trace) -> u64 {
    let ends = [
        trace.events.last().map(|event| event.time_nanos),
        trace.marks.last().map(|mark| mark.time_nanos),
        trace.checkpoints.last().map(|point| point.time_nanos),
    ];
    ends.into_iter().flatten().max().unwrap_or(0)
}
