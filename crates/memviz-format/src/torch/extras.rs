//! `allocator_settings` and `external_annotations`.

use memviz_trace::{Counts, MarkKind, StringId, ThreadId, Trace};
use rustc_hash::FxHashMap;

use super::entries::micros;
use super::pickler::{ListBatch, Pickler};
use super::words::Word;

/// Facts that the page shows under "Allocator Settings": of several traces the sums, and what the first one says.
pub(super) fn settings(pickler: &mut Pickler<'_>, traces: &[&Trace]) {
    let Some(first) = traces.first() else { return pickler.byte(super::opcodes::EMPTY_DICT) };
    let header = &first.header;
    let sum = |of: fn(&Counts) -> u64| traces.iter().fold(0_u64, |sum, trace| sum.saturating_add(of(&trace.counts)));
    let dropped = sum(|counts| counts.dropped.events);
    let notes: Vec<&str> = traces.iter().flat_map(|trace| trace.header.notes.iter().map(String::as_str)).collect();
    pickler.begin_dict();
    pickler.text("trace_alloc_overflowed");
    pickler.bool(dropped > 0);
    for (name, number) in [
        ("trace_alloc_max_entries", header.max_entries),
        ("min_size", header.min_size),
        ("events_seen", sum(|counts| counts.seen.events)),
        ("events_dropped", dropped),
        ("events_filtered", sum(|counts| counts.filtered.events)),
        ("events_lost", sum(|counts| counts.lost)),
    ] {
        pickler.text(name);
        pickler.bits(number.min(i64::MAX as u64));
    }
    for (name, text) in [
        ("mlx_version", &header.mlx_version),
        ("backend", &header.backend),
        ("python_version", &header.python_version),
        ("memviz_version", &header.memviz_version),
        ("level", &header.level),
        ("notes", &notes.join("\n")),
    ] {
        pickler.text(name);
        pickler.text(text);
    }
    pickler.end_dict();
}

/// Annotations and steps as START and END pairs. What is open at the end of the trace ends there.
pub(super) fn annotations(pickler: &mut Pickler<'_>, list: &mut ListBatch, trace: &Trace, device: usize) {
    let mut writer = Annotations { pickler, list, device, start_micros: trace.header.start_unix_micros };
    let mut open = FxHashMap::<ThreadId, Vec<StringId>>::default();
    let mut step = None;
    for mark in &trace.marks {
        match mark.kind {
            MarkKind::Step(number) => {
                writer.step(Word::End, step, mark.time_nanos);
                step = Some(number);
                writer.step(Word::Start, step, mark.time_nanos);
            }
            MarkKind::AnnotationBegin(name) => {
                open.entry(mark.thread).or_default().push(name);
                writer.stage(Word::Start, trace.strings.get(name), mark.time_nanos);
            }
            MarkKind::CacheLimit(_) => {}
            MarkKind::AnnotationEnd => {
                if let Some(name) = open.get_mut(&mark.thread).and_then(Vec::pop) {
                    writer.stage(Word::End, trace.strings.get(name), mark.time_nanos);
                }
            }
        }
    }
    let end = end_nanos(trace);
    let mut threads: Vec<_> = open.into_iter().collect();
    threads.sort_unstable_by_key(|(thread, _)| *thread);
    for name in threads.iter().flat_map(|(_, names)| names.iter().rev()) {
        writer.stage(Word::End, trace.strings.get(*name), end);
    }
    writer.step(Word::End, step, end);
}

/// Time of the last thing that happened.
pub(super) fn end_nanos(trace: &Trace) -> u64 {
    let event = trace.events.last().map_or(0, |event| event.time_nanos);
    event.max(trace.marks.last().map_or(0, |mark| mark.time_nanos))
}

struct Annotations<'a, 'w> {
    pickler: &'a mut Pickler<'w>,
    list: &'a mut ListBatch,
    device: usize,
    start_micros: u64,
}

impl Annotations<'_, '_> {
    fn step(&mut self, stage: Word, number: Option<u64>, nanos: u64) {
        if let Some(number) = number {
            self.stage(stage, &format!("step {number}"), nanos);
        }
    }

    fn stage(&mut self, stage: Word, name: &str, nanos: u64) {
        let pickler = &mut *self.pickler;
        pickler.item(self.list);
        pickler.begin_dict();
        pickler.word(Word::Stage);
        pickler.word(stage);
        pickler.word(Word::Name);
        pickler.shared(name);
        pickler.word(Word::Device);
        pickler.bits(self.device as u64);
        pickler.word(Word::TimeUs);
        pickler.bits(micros(self.start_micros, nanos));
        pickler.end_dict();
    }
}
