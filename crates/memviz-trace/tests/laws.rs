//! Laws of a trace, against a naive allocator with a cache: sums, states, and that any tail of the events is a trace too.

use std::collections::BTreeMap;

use memviz_trace::{Action, Checkpoint, Event, Ledger, LedgerError, Tally, Totals, TraceBuilder, Violation};
use proptest::prelude::*;

/// What the naive allocator does: a map of address to (size, is cached).
#[derive(Default)]
struct Naive {
    buffers: BTreeMap<u64, (u64, bool)>,
    events: Vec<Event>,
    totals: Vec<Totals>,
}

impl Naive {
    /// Carries out one operation, chosen by two numbers; whatever they are, the result is a valid event.
    fn step(&mut self, pick: u64, size: u64) {
        let addr = 0x1000 + 0x100 * (pick % 23);
        let (action, size) = match (self.buffers.get(&addr).copied(), size % 3) {
            (None, _) => (Action::AllocNew, size),
            (Some((size, false)), 0) => (Action::FreeActiveToOs, size),
            (Some((size, false)), _) => (Action::FreeActiveToCache, size),
            (Some((size, true)), 0) => (Action::FreeCacheToOs, size),
            (Some((size, true)), _) => (Action::AllocReuse, size),
        };
        match action {
            Action::AllocNew | Action::AllocReuse => drop(self.buffers.insert(addr, (size, false))),
            Action::FreeActiveToCache => drop(self.buffers.insert(addr, (size, true))),
            _ => drop(self.buffers.remove(&addr)),
        }
        let time_nanos = self.events.len() as u64;
        self.events.push(Event { time_nanos, addr, size, action, ..Event::default() });
        self.totals.push(self.sum());
    }

    fn sum(&self) -> Totals {
        let sum = |cached| self.buffers.values().filter(|buffer| buffer.1 == cached).map(|buffer| buffer.0).sum();
        Totals { active: sum(false), cached: sum(true) }
    }

    /// The trace of the last events, as a recorder whose ring holds that many would make it.
    fn tail(&self, kept: usize) -> memviz_trace::Trace {
        let first = self.events.len() - kept;
        let mut all = Ledger::default();
        self.events.iter().for_each(|event| all.apply(event).expect("the naive allocator is right"));
        let mut builder = TraceBuilder::default();
        (builder.end, builder.end_totals) = (Some(all.buffers()), Some(self.sum()));
        self.events[first..].iter().for_each(|event| builder.push(*event));
        builder.trace.first_index = first as u64;
        let mut dropped = Tally::default();
        self.events[..first].iter().for_each(|event| dropped.add(event.size));
        builder.trace.counts.dropped = dropped;
        builder.trace.counts.seen.events += dropped.events;
        builder.trace.counts.seen.bytes += dropped.bytes;
        for (position, totals) in self.totals.iter().enumerate().skip(first) {
            let index = position as u64 + 1;
            let (active, cached) = (totals.active, totals.cached);
            let point =
                Checkpoint { index, active, cached, mlx_active: active, mlx_cached: cached, ..Checkpoint::default() };
            builder.trace.checkpoints.push(point);
        }
        builder.finish()
    }
}

fn operations() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((any::<u64>(), 0_u64..1 << 40), 1..200)
}

proptest! {
    /// However much fell out of the ring, the rest checks, and its sums are those of the naive allocator.
    #[test]
    fn any_tail_of_a_recording_checks(operations in operations(), kept in any::<prop::sample::Index>()) {
        let mut naive = Naive::default();
        operations.iter().for_each(|&(pick, size)| naive.step(pick, size));
        let kept = kept.index(naive.events.len() + 1);
        let report = naive.tail(kept).check().unwrap();
        prop_assert_eq!(report.checkpoints, kept);
        prop_assert_eq!(report.end, naive.sum());
        let peak = naive.totals[naive.events.len() - kept..].iter().map(|totals| totals.active).max();
        prop_assert!(report.peak_active.bytes >= peak.unwrap_or(0));
    }

    /// A recording that lost one event is found out: by a state that contradicts itself or by MLX's counters.
    #[test]
    fn a_missing_event_is_found(operations in operations(), lost in any::<prop::sample::Index>()) {
        let mut naive = Naive::default();
        operations.iter().for_each(|&(pick, size)| naive.step(pick, size));
        let mut trace = naive.tail(naive.events.len());
        let lost = trace.events.remove(lost.index(trace.events.len()));
        prop_assert!(trace.check().is_err(), "lost {lost:?}");
    }
}

fn event(action: Action, addr: u64, size: u64) -> Event {
    Event { action, addr, size, ..Event::default() }
}

fn violation(events: &[Event]) -> Violation {
    let mut builder = TraceBuilder::default();
    events.iter().for_each(|event| builder.push(*event));
    builder.finish().check().expect_err("these events contradict themselves")
}

#[test]
fn each_contradiction_is_named_with_its_event() {
    let new = event(Action::AllocNew, 0x10, 8);
    let to_cache = event(Action::FreeActiveToCache, 0x10, 8);
    let cases = [
        (vec![new, new], 1, "active already"),
        (vec![new, to_cache, new], 2, "expected AllocReuse"),
        (vec![event(Action::FreeActiveToOs, 0x20, 8)], 0, "not there"),
        (vec![new, event(Action::FreeCacheToOs, 0x10, 8)], 1, "which is active; expected cached"),
        (vec![new, to_cache, to_cache], 2, "which is cached; expected active"),
        (vec![new, event(Action::FreeActiveToCache, 0x10, 9)], 1, "says 9 bytes; the buffer has 8"),
        (vec![Event::filtered_net(0, -1, 0)], 0, "out of range"),
    ];
    for (events, expected_index, text) in cases {
        let found = violation(&events);
        let Violation::Event { index, ref error, .. } = found else { panic!("{found:?}") };
        assert_eq!(index, expected_index, "{found}");
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn time_counts_and_checkpoints_are_checked() {
    let later = Event { time_nanos: 5, ..event(Action::AllocNew, 0x10, 8) };
    let earlier = Event { time_nanos: 4, ..event(Action::AllocNew, 0x20, 8) };
    assert_eq!(violation(&[later, earlier]), Violation::TimeRunsBack { index: 1, found: 4, previous: 5 });

    let mut builder = TraceBuilder::default();
    builder.push(later);
    let mut trace = builder.finish();
    trace.counts.seen.events = 2;
    assert!(matches!(trace.check(), Err(Violation::Counts { .. })));
    trace.counts.seen.events = 1;
    trace.counts.lost = 3;
    assert_eq!(trace.check(), Err(Violation::Lost(3)));
    trace.counts.lost = 0;
    let agreeing = Checkpoint { index: 1, active: 8, mlx_active: 8, ..Checkpoint::default() };
    trace.checkpoints = vec![agreeing];
    assert_eq!(trace.check().map(|report| report.checkpoints), Ok(1));
    trace.checkpoints = vec![Checkpoint { mlx_active: 12, ..agreeing }];
    assert!(matches!(trace.check(), Err(Violation::Checkpoint { mlx_active: 12, .. })));
}

#[test]
fn a_start_that_lists_an_address_twice_is_found() {
    let mut trace = TraceBuilder::default().finish();
    let buffer = memviz_trace::Buffer { addr: 0x10, size: 8, ..memviz_trace::Buffer::default() };
    trace.start = vec![buffer, buffer];
    assert!(matches!(trace.check(), Err(Violation::Start(LedgerError::AllocOfActive { .. }))));
}
