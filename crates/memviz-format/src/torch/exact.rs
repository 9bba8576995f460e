//! The key "mlx_memviz": what the snapshot format cannot hold, so that our own reader gives back the same trace.
//!
//! Numbers of 64 bits are two's complement. Layout: `formats/torch_snapshot.md`. The way back is `exact_read`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memviz_trace::{Action, Buffer, Ending, Event, FrameId, Mark, MarkKind, StackId, StringId, Tally, Trace, WhatId};

use super::pickler::{Memo, Pickler};
use super::words;
use crate::FormatError;
use crate::packed::Encoder;

/// Number of the layout of one trace; readers refuse numbers they do not know.
pub(super) const FORMAT: u64 = 1;
/// Number of the layout of several traces, each a dict of [`FORMAT`] in the list "ranks".
pub(super) const FORMAT_RANKS: u64 = 2;
const CHUNK_BYTES: usize = 48 << 10;

/// Writes the value of the key; returns the memo numbers of `categories`.
pub(super) fn write(
    pickler: &mut Pickler<'_>,
    traces: &[&Trace],
    categories: &[String],
) -> Result<Vec<Memo>, FormatError> {
    let mut memos = Vec::new();
    pickler.begin_dict();
    pickler.text("words");
    words::write_all(pickler);
    pickler.text("categories");
    pickler.list(categories, |pickler, name| memos.push(pickler.shared(name)));
    if let [only] = traces {
        one(pickler, only)?;
    } else {
        pickler.text("format");
        pickler.bits(FORMAT_RANKS);
        pickler.text("ranks");
        let mut list = pickler.begin_list();
        for trace in traces {
            pickler.item(&mut list);
            pickler.begin_dict();
            one(pickler, trace)?;
            pickler.end_dict();
        }
        pickler.end_list(list);
    }
    pickler.end_dict();
    Ok(memos)
}

/// The keys of one trace.
fn one(pickler: &mut Pickler<'_>, trace: &Trace) -> Result<(), FormatError> {
    pickler.text("format");
    pickler.bits(FORMAT);
    header(pickler, trace);
    sums(pickler, trace);
    tables(pickler, trace)?;
    start(pickler, trace)?;
    pickler.text("events");
    events(pickler, trace.events.iter().copied())
}

fn header(pickler: &mut Pickler<'_>, trace: &Trace) {
    let header = &trace.header;
    pickler.text("header");
    pickler.begin_dict();
    for (name, text) in [
        ("mlx_version", &header.mlx_version),
        ("backend", &header.backend),
        ("python_version", &header.python_version),
        ("memviz_version", &header.memviz_version),
        ("walker", &header.walker),
        ("level", &header.level),
    ] {
        pickler.text(name);
        pickler.text(text);
    }
    for (name, number) in [
        ("pid", header.pid.into()),
        ("start_unix_micros", header.start_unix_micros),
        ("max_entries", header.max_entries),
        ("min_size", header.min_size),
        ("depth", header.depth.into()),
    ] {
        pickler.text(name);
        pickler.bits(number);
    }
    for (name, texts) in [("command", &header.command), ("notes", &header.notes)] {
        pickler.text(name);
        pickler.list(texts, |pickler, text| pickler.text(text));
    }
    optional(pickler, trace);
    pickler.end_dict();
}

/// Keys that files of before them lack, and that say nothing when they are missing.
fn optional(pickler: &mut Pickler<'_>, trace: &Trace) {
    if let Some(rank) = trace.header.rank {
        pickler.text("rank");
        pickler.bits(rank.into());
    }
    let ending = &trace.header.ending;
    if *ending != Ending::default() {
        for (name, text) in [("ending", ending.kind.name()), ("ending_detail", &ending.detail)] {
            pickler.text(name);
            pickler.text(text);
        }
        pickler.text("ending_stack");
        pickler.bits(ending.stack.0.into());
    }
}

fn numbers(pickler: &mut Pickler<'_>, numbers: impl IntoIterator<Item = u64>) {
    pickler.list(numbers, Pickler::bits);
}

fn sums(pickler: &mut Pickler<'_>, trace: &Trace) {
    let counts = &trace.counts;
    let tally = |tally: Tally| [tally.events, tally.bytes];
    let tallies = [counts.seen, counts.dropped, counts.filtered].into_iter().flat_map(tally);
    pickler.text("counts");
    numbers(pickler, tallies.chain([counts.lost, counts.dropped_others]));
    pickler.text("first_index");
    pickler.bits(trace.first_index);
    pickler.text("base");
    numbers(pickler, [trace.base.active, trace.base.cached]);
    pickler.text("checkpoints");
    pickler.list(&trace.checkpoints, |pickler, point| {
        let sums = [point.active, point.cached, point.mlx_active, point.mlx_cached];
        let device = point.device.map(|device| [device.devices, device.free, device.total, device.pool]);
        let head = [point.index, point.time_nanos, point.kind as u64];
        numbers(pickler, head.into_iter().chain(sums).chain(device.into_iter().flatten()));
    });
    pickler.text("marks");
    pickler.list(&trace.marks, |pickler, mark| numbers(pickler, mark_numbers(mark)));
}

fn mark_numbers(mark: &Mark) -> [u64; 5] {
    let (kind, value) = match mark.kind {
        MarkKind::Step(number) => (0, number),
        MarkKind::AnnotationBegin(name) => (1, name.0.into()),
        MarkKind::AnnotationEnd => (2, 0),
        MarkKind::CacheLimit(bytes) => (3, bytes),
    };
    [mark.index, mark.time_nanos, mark.thread.0.into(), kind, value]
}

fn tables(pickler: &mut Pickler<'_>, trace: &Trace) -> Result<(), FormatError> {
    pickler.text("strings");
    let mut list = pickler.begin_list();
    for id in 0..trace.strings.len() {
        pickler.item(&mut list);
        pickler.shared(trace.strings.get(StringId(id as u32)));
        pickler.flush_when_full()?;
    }
    pickler.end_list(list);
    let stacks = &trace.stacks;
    let frames = (0..stacks.frame_count()).map(|id| stacks.frame(FrameId(id as u32)));
    pickler.text("frames");
    numbers(
        pickler,
        frames.flat_map(|frame| {
            [frame.file.0, frame.function.0, frame.line, frame.column, u32::from(frame.is_native)].map(u64::from)
        }),
    );
    pickler.flush_when_full()?;
    pickler.text("stacks");
    let nodes = (1..stacks.stack_count()).map(|id| StackId(id as u32));
    numbers(
        pickler,
        nodes.flat_map(|id| [stacks.caller(id).0, stacks.innermost(id).map_or(0, |frame| frame.0)].map(u64::from)),
    );
    pickler.flush_when_full()?;
    whats_and_threads(pickler, trace);
    pickler.flush_when_full()
}

fn whats_and_threads(pickler: &mut Pickler<'_>, trace: &Trace) {
    pickler.text("whats");
    pickler.list(0..trace.whats.len(), |pickler, id| {
        let what = trace.what(WhatId(id as u32));
        let flags = u64::from(what.is_temporary) | u64::from(what.shape.is_some()) << 1;
        let head = [what.primitive.0.into(), what.dtype.0.into(), flags];
        let shape = what.shape.iter().flat_map(|shape| shape.iter().map(|axis| i64::from(*axis) as u64));
        numbers(pickler, head.into_iter().chain(shape));
    });
    pickler.text("threads");
    let threads = trace.threads.iter();
    numbers(pickler, threads.flat_map(|thread| [thread.native_id, thread.name.0.into()]));
}

/// Buffers before the first event, as events: an action that cannot start a trace says how the buffer is kept.
fn start(pickler: &mut Pickler<'_>, trace: &Trace) -> Result<(), FormatError> {
    pickler.text("start");
    events(pickler, trace.start.iter().map(event_from_buffer))
}

pub(super) fn event_from_buffer(buffer: &Buffer) -> Event {
    let action = match (buffer.is_cached, buffer.is_wrapper) {
        (false, false) => Action::AllocNew,
        (false, true) => Action::AllocMakeBuffer,
        (true, false) => Action::FreeActiveToCache,
        (true, true) => Action::AllocReuse,
    };
    Event { action, ..buffer.to_alloc() }
}

/// Chunks of packed events, each a base64 string.
fn events(pickler: &mut Pickler<'_>, events: impl Iterator<Item = Event>) -> Result<(), FormatError> {
    let mut encoder = Encoder::default();
    let mut text = String::new();
    let mut list = pickler.begin_list();
    let mut flush = |pickler: &mut Pickler<'_>, encoder: &mut Encoder| {
        text.clear();
        STANDARD.encode_string(encoder.bytes(), &mut text);
        encoder.clear();
        pickler.item(&mut list);
        pickler.text(&text);
        pickler.flush_when_full()
    };
    for event in events {
        encoder.push(&event);
        if encoder.bytes().len() >= CHUNK_BYTES {
            flush(pickler, &mut encoder)?;
        }
    }
    if !encoder.bytes().is_empty() {
        flush(pickler, &mut encoder)?;
    }
    pickler.end_list(list);
    Ok(())
}
