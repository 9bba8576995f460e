//! Trace files: what is written is read, whole or cut, and nothing that is read ends in a panic.

#![allow(clippy::unwrap_used, reason = "tests")]

mod simulate;

use memviz_format::torch::Limits;
use memviz_format::trace_file::{self, Amendment, Part, Start, StartSums, Writer, last_words};
use memviz_format::{FormatError, trace_file::write_all};
use memviz_trace::{
    Action, Base, Buffer, Counts, Device, Ending, EndingKind, Event, Ledger, MarkKind, StackId, StringId, Thread,
    Totals, Trace, TraceBuilder, WhatId,
};
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
        26 if pick.is_multiple_of(4) => sim.mark(MarkKind::CacheLimit(number)),
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

#[test]
fn ranks_share_a_file() {
    let mut ranks =
        [simulate::training(2, 20, false), simulate::training(3, 20, true), simulate::training(1, 5, false)];
    for (number, trace) in ranks.iter_mut().enumerate() {
        trace.header.rank = Some(number as u32);
    }
    let file = write_all(&ranks.each_ref(), Vec::new()).unwrap();
    assert_eq!(read(&file).unwrap(), ranks);
    assert!(write_all(&[], Vec::new()).is_err());
}

fn alloc(addr: u64, time_nanos: u64) -> Event {
    Event { action: Action::AllocNew, addr, size: 64, time_nanos, ..Event::default() }
}

#[test]
fn owners_and_names_may_come_later() {
    let mut trace = Trace::default();
    let mut writer = Writer::create(Vec::new(), &trace.header, &Start::default()).unwrap();
    let main = trace.strings.intern("MainThread");
    trace.threads = vec![Thread::default(), Thread { native_id: 7, name: StringId(0) }];
    trace.events = vec![alloc(0x1000, 1), alloc(0x2000, 2)];
    trace.counts.seen = memviz_trace::Tally { events: 2, bytes: 128 };
    writer.append(&Part::of(&trace)).unwrap();

    trace.threads[1].name = main;
    trace.whats = vec![memviz_trace::What::default(), memviz_trace::What { primitive: main, ..Default::default() }];
    trace.events = vec![alloc(0x3000, 3)];
    trace.counts.seen = memviz_trace::Tally { events: 3, bytes: 192 };
    let amendment =
        |index| Amendment { index, what: WhatId(1), built: StackId(0), stream: 3, device: Device(0x81), slack: 5 };
    let amendments = [1, 2, 900].map(amendment);
    writer.append(&Part { amendments: &amendments, ..Part::of(&trace) }).unwrap();
    let file = writer.finish(&Ending::default(), &[]).unwrap();

    let back = read(&file).unwrap().remove(0);
    assert_eq!(back.threads, trace.threads);
    assert_eq!(back.events.iter().map(|event| event.what.0).collect::<Vec<_>>(), [0, 1, 1]);
    let amended = Event { what: WhatId(1), stream: 3, device: Device(0x81), slack: 5, ..alloc(0x3000, 3) };
    assert_eq!(back.events[2], amended);
    assert_eq!(back.check().unwrap().end.active, 192);
}

#[test]
fn last_words_follow_what_is_in_the_file() {
    let trace = simulate::training(2, 12, false);
    let file = stream(&trace, 10).finish(&Ending::default(), &[]).unwrap();
    let whole = read(&file).unwrap().remove(0);
    let (first, last) = trace.events.split_at(30);
    let cut = Trace { events: first.to_vec(), checkpoints: vec![], ..trace.clone() };
    let ending = (EndingKind::Signal, "SIGSEGV at address 0x0");
    let mut room = vec![0; 104 + ending.1.len() + 48 * (last.len() + 5)];

    for overlap in [0, 5] {
        let mut out = stream(&cut, 30).get_ref().clone();
        let events = trace.events[30 - overlap..].iter();
        let count = last_words(30 - overlap as u64, events, &trace.counts, ending, &mut room).unwrap();
        out.extend_from_slice(&room[..count]);
        let back = read(&out).unwrap().remove(0);
        assert_eq!(back.events, trace.events);
        assert_eq!(back.start, whole.start);
        assert_eq!(back.check().unwrap().end, trace.check().unwrap().end);
        assert_eq!((back.header.ending.kind, &*back.header.ending.detail), ending);
    }

    let mut out = stream(&cut, 30).get_ref().clone();
    let foreign = Event { what: WhatId(9999), built: StackId(9999), ..trace.events[31] };
    let count = last_words(31, [foreign].iter(), &trace.counts, ending, &mut room).unwrap();
    out.extend_from_slice(&room[..count]);
    let back = read(&out).unwrap().remove(0);
    assert_eq!(back.events, first, "an event is missing between");
    assert_eq!(back.header.ending.kind, EndingKind::Signal);
    assert!(back.header.notes.last().unwrap().contains("do not follow"), "{:?}", back.header.notes);

    assert_eq!(last_words(0, trace.events.iter(), &trace.counts, ending, &mut room[..200]), None);
}

#[test]
fn buffers_of_before_are_found_when_they_are_freed() {
    let cached = Buffer { addr: 0x5000, size: 100, is_cached: true, ..Buffer::default() };
    let sums = StartSums::Totals(Totals { active: 1000, cached: 300 });
    let start = Start { buffers: vec![cached], sums, first_index: 0 };
    let mut writer = Writer::create(Vec::new(), &Default::default(), &start).unwrap();
    let event = |action, addr, size| Event { action, addr, size, ..Event::default() };
    let events = [
        event(Action::FreeActiveToCache, 0x1000, 400),
        event(Action::AllocReuse, 0x5000, 100),
        event(Action::FreeCacheToOs, 0x6000, 50),
        event(Action::AllocNew, 0x6000, 70),
        event(Action::Release, 0x7000, 8),
        event(Action::AllocReuse, 0x1000, 400),
    ];
    let mut counts = Counts::default();
    events.iter().for_each(|event| counts.seen.add(event.size));
    writer.append(&Part { events: &events, counts, ..Part::of(&Trace::default()) }).unwrap();
    let back = read(&writer.finish(&Ending::default(), &[]).unwrap()).unwrap().remove(0);
    let found: Vec<_> = back.start.iter().map(|buffer| (buffer.addr, buffer.is_cached, buffer.is_wrapper)).collect();
    assert_eq!(found, [(0x1000, false, false), (0x5000, true, false), (0x6000, true, false), (0x7000, false, true)]);
    assert_eq!(back.base, Base { active: 592, cached: 150 });
    let report = back.check().unwrap();
    assert_eq!((report.end.active, report.end.cached), (1000 - 400 + 100 + 70 - 8 + 400, 300 + 400 - 100 - 50 - 400));
}
