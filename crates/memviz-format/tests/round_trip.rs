//! A trace that is written and read is the same trace.

#![allow(clippy::unwrap_used, reason = "tests")]

mod simulate;

use memviz_format::torch::{self, Limits};
use memviz_trace::{Action, Base, Ending, EndingKind, MarkKind, StackId, Trace, TraceBuilder};
use proptest::prelude::*;
use simulate::Simulator;

fn file(trace: &Trace) -> Vec<u8> {
    let mut file = Vec::new();
    let report = torch::write(trace, &mut file).unwrap();
    assert_eq!(report.bytes, file.len() as u64);
    file
}

fn assert_round_trip(trace: &Trace) {
    let bytes = file(trace);
    let back = torch::read(&bytes, &Limits::default()).unwrap();
    assert_eq!(&back, trace);
    assert_eq!(back.check(), trace.check());
    assert_eq!(file(&back), bytes, "the same trace, the same bytes");
}

/// One number, one thing that happens.
fn drive(sim: &mut Simulator, number: u64) {
    let pick = (number >> 8) as usize & 0xffff;
    sim.nanos += number >> 50;
    match number & 31 {
        0..=13 => sim.alloc(1 << (pick % 20), (pick % 700) as u32, pick),
        14..=22 => sim.free(pick, !pick.is_multiple_of(8)),
        23 | 24 => sim.evict(pick),
        25 => sim.filtered_net(pick as i64, (pick % 9) as i64),
        26 if pick.is_multiple_of(4) => sim.mark(MarkKind::CacheLimit(number)),
        26 => sim.mark(MarkKind::Step(pick as u64)),
        27 => sim.annotate(["forward", "naïve ☃", ""][pick % 3]),
        28 => sim.mark(MarkKind::AnnotationEnd),
        29 => sim.other(Action::Snapshot, number >> 20, pick),
        30 => sim.other(Action::ArrayCreated, number >> 20, pick),
        _ => sim.other(Action::Oom, number >> 20, pick),
    }
}

fn ending(number: usize, trace: &Trace) -> Ending {
    let kind = EndingKind::ALL[number % EndingKind::ALL.len()];
    Ending {
        kind,
        detail: "ValueError: ☃".repeat(number % 3),
        stack: StackId((number % trace.stacks.stack_count()) as u32),
    }
}

proptest! {
    #[test]
    fn valid_traces(
        numbers in proptest::collection::vec(any::<u64>(), 0..300),
        start in proptest::collection::vec((1u64..1 << 30, any::<bool>()), 0..5),
        base in (0u64..1 << 40, prop_oneof![Just(0u64), 0u64..1 << 40]),
    ) {
        let mut sim = Simulator::new(5, 3);
        sim.begin(&start, Base { active: base.0, cached: base.1 });
        numbers.iter().for_each(|number| drive(&mut sim, *number));
        let mut trace = sim.finish();
        trace.header.rank = numbers.first().map(|number| *number as u32);
        trace.header.ending = ending(numbers.len(), &trace);
        prop_assert!(trace.check().is_ok());
        assert_round_trip(&trace);
    }
}

#[test]
fn training_loops() {
    assert_round_trip(&simulate::training(6, 60, false));
    assert_round_trip(&simulate::training(6, 60, true));
}

#[test]
fn rank_and_ending_are_kept() {
    let mut trace = simulate::training(1, 9, false);
    trace.header.rank = Some(3);
    trace.header.ending =
        Ending { kind: EndingKind::Exception, detail: "ValueError: shapes".into(), stack: trace.events[0].built };
    assert_round_trip(&trace);
}

#[test]
fn several_ranks_share_a_file() {
    let mut traces = [simulate::training(2, 30, true), simulate::training(3, 20, false), Trace::default()];
    traces[2] = TraceBuilder::default().finish();
    (0..).zip(&mut traces).for_each(|(rank, trace)| trace.header.rank = Some(rank));
    let all: Vec<&Trace> = traces.iter().collect();
    let mut file = Vec::new();
    let report = torch::write_all(&all, &mut file).unwrap();
    assert_eq!((report.bytes, report.devices), (file.len() as u64, 4), "two devices of the first, one of each other");
    assert_eq!(torch::read_all(&file, &Limits::default()).unwrap(), traces);
    let error = torch::read(&file, &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "mlx_memviz.ranks: found 3 processes; expected one");
}

#[test]
fn an_empty_recording_has_an_event_to_show() {
    let trace = TraceBuilder::default().finish();
    let report = torch::write(&trace, &mut Vec::new()).unwrap();
    assert_eq!((report.entries, report.devices), (1, 1));
    assert_round_trip(&trace);
}

#[test]
fn a_trace_that_fails_its_check_is_written_too() {
    let mut trace = simulate::training(2, 20, false);
    trace.events.remove(3);
    trace.events.swap(5, 9);
    assert!(trace.check().is_err());
    assert_round_trip(&trace);
}

#[test]
fn a_ring_that_overflowed_keeps_its_place() {
    let mut trace = simulate::training(2, 20, false);
    trace.first_index = 1 << 40;
    trace.counts.dropped.add(u64::MAX);
    trace.base.active = u64::MAX / 4;
    assert_round_trip(&trace);
}

#[test]
fn addresses_beyond_the_format_are_an_error() {
    let mut trace = simulate::training(1, 5, false);
    trace.events[2].addr = 1 << 63;
    let error = torch::write(&trace, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "event 2: address is 0x8000000000000000; a snapshot holds less than 2^63");
}
