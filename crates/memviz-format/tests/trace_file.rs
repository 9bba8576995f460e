//! Trace files: what is written is read, whole or cut, and nothing that is read ends in a panic.

#![allow(clippy::unwrap_used, reason = "tests")]

mod simulate;

use memviz_format::torch::Limits;
use memviz_format::trace_file::{self, Part, Start, StartSums, Writer};
use memviz_format::{FormatError, trace_file::write_all};
use memviz_trace::{Action, Base, Counts, Ending, EndingKind, Ledger, MarkKind, StackId, Totals, Trace, TraceBuilder};
use proptest::prelude::*;
use simulate::Simulator;

fn read(bytes: &[u8]) -> Result<Vec<Trace>, FormatError> {
    trace_file::read(bytes, &Limits::default())
}

fn assert_round_trip(trace: &Trace) {
    let file = write_all(&[trace], Vec::new()).unwrap();
    let back = read(&file).unwrap();
    assert_eq!(&back, std::slice::from_ref(trace));
    assert_eq!(write_all(&[&back[0]], Vec::new()).unwrap(), file, "the same trace, the same bytes");
}

/// Totals before the first event, as a recorder reads them.
fn totals_at_start(trace: &Trace) -> Totals {
    Ledger::at_start(trace).unwrap().totals()
}

/// Writes a trace as a recorder does: only cached buffers are known at the start, and events come in parts.
fn stream(trace: &Trace, part_events: usize) -> Writer<Vec<u8>> {
    let cached = trace.start.iter().filter(|buffer| buffer.is_cached).copied().collect();
    let sums = StartSums::Totals(totals_at_start(trace));
    let start = Start { buffers: cached, sums, first_index: 0 };
    let mut writer = Writer::create(Vec::new(), &trace.header, &start).unwrap();
    let (mut counts, mut marks, mut points) = (Counts::default(), &trace.marks[..], &trace.checkpoints[..]);
    let mut written = 0;
    for events in trace.events.chunks(part_events.max(1)) {
        events.iter().filter(|event| event.action.is_buffer()).for_each(|event| counts.seen.add(event.size));
        written += events.len() as u64;
        let (now, later) = marks.split_at(marks.partition_point(|mark| mark.index <= written));
        let (points_now, points_later) = points.split_at(points.partition_point(|point| point.index <= written));
        (marks, points) = (later, points_later);
        let part = Part { events, counts, marks: now, checkpoints: points_now, ..Part::of(trace) };
        writer.append(&part).unwrap();
    }
    writer
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
        26 => sim.mark(MarkKind::Step(pick as u64)),
        27 => sim.annotate(["forward", "naïve ☃", ""][pick % 3]),
        28 => sim.mark(MarkKind::AnnotationEnd),
        29 => sim.other(Action::Snapshot, number >> 20, pick),
        30 => sim.other(Action::ArrayCreated, number >> 20, pick),
        _ => sim.other(Action::Oom, number >> 20, pick),
    }
}

fn driven(numbers: &[u64], start: &[(u64, bool)], base: Base) -> Trace {
    let mut sim = Simulator::new(5, 3);
    sim.begin(start, base);
    numbers.iter().for_each(|number| drive(&mut sim, *number));
    sim.finish()
}

proptest! {
    #[test]
    fn valid_traces(
        numbers in proptest::collection::vec(any::<u64>(), 0..300),
        start in proptest::collection::vec((1u64..1 << 30, any::<bool>()), 0..5),
        base in (0u64..1 << 40, prop_oneof![Just(0u64), 0u64..1 << 40]),
        part_events in 1usize..200,
        cut in any::<prop::sample::Index>(),
    ) {
        let mut trace = driven(&numbers, &start, Base { active: base.0, cached: base.1 });
        prop_assert!(trace.check().is_ok());
        trace.header.rank = numbers.first().map(|number| *number as u32);
        assert_round_trip(&trace);

        let ending = Ending { kind: EndingKind::Exception, detail: "ValueError: ☃".into(), stack: StackId(2) };
        let file = stream(&trace, part_events).finish(&ending, &["slow disk".into()]).unwrap();
        let back = read(&file).unwrap().remove(0);
        prop_assert_eq!(&back.events, &trace.events);
        // Without events nothing was appended, and so no checkpoint.
        if !trace.events.is_empty() {
            prop_assert_eq!(back.check().unwrap().end, trace.check().unwrap().end);
            prop_assert_eq!(&back.header.ending, &ending);
        }
        prop_assert_eq!(totals_at_start(&back), totals_at_start(&trace));

        let length = cut.index(file.len());
        if let Ok(cut) = read(&file[..length]) {
            prop_assert_eq!(cut[0].header.ending.kind, EndingKind::Cut);
            prop_assert!(cut[0].check().is_ok(), "{:?}", cut[0].check());
            prop_assert_eq!(&cut[0].events[..], &trace.events[..cut[0].events.len()]);
        }
    }

    #[test]
    fn flipped_bits_are_found(at in any::<prop::sample::Index>(), bit in 0..8u32) {
        let trace = simulate::training(2, 12, true);
        let mut file = stream(&trace, 9).finish(&Ending::default(), &[]).unwrap();
        let at = at.index(file.len());
        file[at] ^= 1 << bit;
        match read(&file) {
            Ok(back) => {
                prop_assert_eq!(back[0].header.ending.kind, EndingKind::Cut);
                prop_assert!(back[0].check().is_ok());
                prop_assert!(back[0].events.len() <= trace.events.len());
                prop_assert_eq!(&back[0].events[..], &trace.events[..back[0].events.len()]);
            }
            Err(error) => prop_assert!(at < 1200, "byte {at} of {}: {error}", file.len()),
        }
    }
}

#[test]
fn training_loops() {
    assert_round_trip(&simulate::training(6, 60, false));
    assert_round_trip(&simulate::training(6, 60, true));
    assert_round_trip(&TraceBuilder::default().finish());
}

#[test]
fn more_events_than_a_chunk_holds() {
    let trace = simulate::training(1800, 60, false);
    assert!(trace.events.len() > 3 << 16);
    assert_round_trip(&trace);
    let file = write_all(&[&trace], Vec::new()).unwrap();
    let cut = read(&file[..file.len() / 2]).unwrap().remove(0);
    assert!(cut.events.len() >= 1 << 16 && cut.check().is_ok(), "{:?}", cut.check());
    assert!(file.len() < 12 * trace.events.len(), "{} bytes for {} events", file.len(), trace.events.len());
}
