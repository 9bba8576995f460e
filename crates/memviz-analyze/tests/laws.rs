//! Laws of the answers on traces of a simulated allocator: whatever happened, sums agree.

#[path = "../../memviz-format/tests/simulate/mod.rs"]
mod simulate;

use memviz_analyze::{Checked, LineKind, Summary, find_peaks, live_at, top_lines};
use memviz_trace::{Base, Event, Frame, Ledger, StackId, Trace, TraceBuilder};
use proptest::prelude::*;
use simulate::Simulator;

/// One call of the allocator, by number.
type Op = (u8, u64, usize);

fn trace_of(start: &[(u64, bool)], base: Base, ops: &[Op]) -> Trace {
    let mut sim = Simulator::new(6, 3);
    sim.begin(start, base);
    for &(kind, size, pick) in ops {
        sim.nanos += 10;
        match kind {
            0..=4 => sim.alloc(size, 0, pick),
            5 | 6 => sim.free(pick, true),
            7 => sim.free(pick, false),
            8 => sim.evict(pick),
            _ => sim.filtered_net(size as i64, 0),
        }
    }
    let trace = sim.finish();
    trace.check().expect("the simulator makes valid traces");
    trace
}

/// The highest sums by plain replay.
fn naive_peaks(trace: &Trace) -> (u64, u64) {
    let mut ledger = Ledger::at_start(trace).expect("a valid start");
    let mut highest = (ledger.totals().active, ledger.totals().reserved());
    for event in &trace.events {
        ledger.apply(event).expect("a valid event");
        let totals = ledger.totals();
        highest = (highest.0.max(totals.active), highest.1.max(totals.reserved()));
    }
    highest
}

proptest! {
    #[test]
    fn rows_add_up_to_active_bytes_at_every_moment(
        start in prop::collection::vec((1..9_u64, any::<bool>()), 0..6),
        base in (0..3_u64, 0..3_u64),
        ops in prop::collection::vec((0..10_u8, 1..9_u64, 0..500_usize), 0..60),
    ) {
        let trace = trace_of(&start, Base { active: base.0, cached: base.1 }, &ops);
        let mut ledger = Ledger::at_start(&trace).unwrap();
        for after_events in 0..=trace.events.len() {
            if after_events > 0 {
                ledger.apply(&trace.events[after_events - 1]).unwrap();
            }
            let live = live_at(&trace, after_events);
            let rows = top_lines(&trace, &live);
            prop_assert_eq!(rows.iter().map(|row| row.bytes).sum::<u64>(), ledger.totals().active);
            prop_assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), live.buffers.len() as u64);
            prop_assert!(rows.is_sorted_by(|a, b| a.bytes >= b.bytes));
        }
    }

    #[test]
    fn summary_agrees_with_a_naive_replay(
        start in prop::collection::vec((1..9_u64, any::<bool>()), 0..6),
        ops in prop::collection::vec((0..10_u8, 1..9_u64, 0..500_usize), 0..200),
    ) {
        let trace = trace_of(&start, Base::default(), &ops);
        let summary = Summary::new(&trace);
        let report = trace.check().unwrap();
        let peaks = find_peaks(&trace);
        prop_assert_eq!((summary.peak_active, summary.peak_reserved, summary.end), (peaks.active, peaks.reserved, peaks.end));
        prop_assert_eq!((summary.peak_active.active_bytes, summary.peak_reserved.reserved_bytes()), naive_peaks(&trace));
        prop_assert_eq!(summary.peak_active.after_events, report.peak_active.after_events);
        prop_assert_eq!(summary.peak_reserved.after_events, report.peak_reserved.after_events);
        prop_assert_eq!(summary.end.active_bytes, report.end.active);
        for (top, rest) in [(&summary.top_by_bytes, summary.rest_by_bytes), (&summary.top_by_count, summary.rest_by_count)] {
            let count: u64 = top.iter().map(|row| row.count).sum();
            prop_assert_eq!(count + rest.count, live_at(&trace, summary.peak_active.after_events).buffers.len() as u64);
        }
        let bytes: u64 = summary.top_by_bytes.iter().map(|row| row.bytes).sum();
        prop_assert_eq!(bytes + summary.rest_by_bytes.bytes, summary.peak_active.active_bytes);
    }
}

#[test]
fn training_loop_is_summarised() {
    let trace = simulate::training(6, 60, false);
    trace.check().unwrap();
    let summary = Summary::new(&trace);
    assert_eq!(summary.checked, Checked::Ok { checkpoints: 1 });
    assert_eq!(summary.top_by_bytes.len(), 10);
    assert!(summary.rest_by_bytes.lines > 0);
    assert!(summary.top_by_bytes.iter().any(|row| row.kind == LineKind::NotListed && row.count == 0));
    assert!(summary.top_by_count.iter().all(|row| row.kind == LineKind::Line && row.count > 0));
    assert!(summary.hit_rate.is_some_and(|rate| rate > 0.0 && rate < 1.0));
    assert!(summary.peak_active.step.is_some());
    assert_eq!(find_peaks(&trace).skipped_events, 0);
}

#[test]
fn events_that_cannot_be_true_are_skipped_and_reported() {
    let mut trace = simulate::training(3, 60, false);
    let sound = Summary::new(&trace);
    let mut wrong = trace.events[40];
    wrong.addr = 0xdead_0000;
    wrong.action = memviz_trace::Action::FreeActiveToOs;
    trace.events.insert(41, wrong);
    let summary = Summary::new(&trace);
    assert!(matches!(&summary.checked, Checked::Violated { violation } if violation.starts_with("event 41 ")));
    assert_eq!(summary.notes.last().unwrap(), "events skipped because they contradict those before them: 1");
    assert_eq!(summary.peak_active.active_bytes, sound.peak_active.active_bytes);
    let rows = top_lines(&trace, &live_at(&trace, trace.events.len()));
    assert_eq!(rows.iter().map(|row| row.bytes).sum::<u64>(), sound.end.active_bytes);
}

#[test]
fn a_ring_that_dropped_events_gives_the_peaks_of_its_window() {
    let mut trace = simulate::training(4, 60, false);
    let cut = trace.events.len() / 2;
    let mut ledger = Ledger::at_start(&trace).unwrap();
    for event in trace.events.drain(..cut) {
        ledger.apply(&event).unwrap();
        trace.counts.dropped.add(if event.action.is_buffer() { event.size } else { 0 });
    }
    let start: u64 = ledger.buffers_unsorted().filter(|buffer| !buffer.is_cached).map(|buffer| buffer.size).sum();
    trace.base.active = ledger.totals().active - start;
    trace.start = ledger.buffers();
    trace.first_index = cut as u64;
    let summary = Summary::new(&trace);
    assert!(summary.is_window);
    assert!(summary.peak_active.index >= cut as u64);
    assert_eq!(summary.peak_active.index, (cut + summary.peak_active.after_events) as u64);
    assert!(summary.notes.iter().any(|note| note.contains("fell out of the ring")));
}

#[test]
fn columns_of_one_line_share_a_row() {
    let mut builder = TraceBuilder::default();
    let file = builder.intern("/home/u/train.py");
    for column in 1..4 {
        let frame = builder.trace.stacks.intern_frame(Frame { file, line: 7, column, ..Frame::default() });
        let built = builder.trace.stacks.push(StackId(0), frame);
        builder.push(Event { addr: column.into(), size: 10, built, ..Event::default() });
    }
    let trace = builder.finish();
    let rows = top_lines(&trace, &live_at(&trace, 3));
    assert_eq!(rows.iter().map(|row| (row.line, row.bytes, row.count)).collect::<Vec<_>>(), [(7, 30, 3)]);
}

#[test]
fn empty_trace_is_summarised() {
    let trace = Trace::default();
    let summary = Summary::new(&trace);
    assert_eq!((summary.hit_rate, summary.top_by_bytes.len(), summary.about.duration_nanos), (None, 0, 0));
    assert_eq!(summary.checked, Checked::Ok { checkpoints: 0 });
}
