//! PyTorch's own snapshots to a trace, as far as its events say.
//!
//! A block of PyTorch is a buffer of ours: `alloc` is `AllocNew`, `free_completed` is `FreeActiveToOs`, both with the
//! requested size. What PyTorch holds beside (segments minus blocks) is cached memory that is not known buffer by buffer:
//! a `FilteredNet` before each `alloc` and after each free carries its change, so that `reserved` is exact.

use memviz_trace::{
    Action, Buffer, Device, DeviceKind, Event, Frame, Mark, MarkKind, StackId, Totals, TraceBuilder, What, WhatId,
};
use rustc_hash::FxHashMap;

use super::document::{Document, Value, content};
use crate::FormatError;

/// Reads `device_traces` and `segments`.
pub(super) fn read(document: &Document<'_>) -> Result<memviz_trace::Trace, FormatError> {
    let entries = entries(document)?;
    let start_micros = entries.first().map_or(0, |entry| entry.micros);
    let (stacks, streams) = Default::default();
    let mut reader = Reader { document, builder: TraceBuilder::default(), start_micros, stacks, streams };
    reader.builder.trace.header.backend = "cuda".into();
    reader.builder.trace.header.start_unix_micros = start_micros;
    reader.builder.trace.header.notes.push(
        "read from a PyTorch snapshot: sizes are requested bytes; cached memory is what its segments hold beside"
            .into(),
    );
    let mut annotations = annotations(document)?.into_iter().peekable();
    for entry in &entries {
        while let Some(mark) = annotations.next_if(|mark| mark.micros <= entry.micros) {
            reader.mark(&mark);
        }
        reader.entry(entry)?;
    }
    annotations.for_each(|mark| reader.mark(&mark));
    reader.end()?;
    Ok(reader.builder.finish())
}

/// One dict of `device_traces`, before its content is looked at.
struct Entry {
    device: usize,
    dict: Value,
    /// Microseconds since 1970, never less than those of the entry before it.
    micros: u64,
}

fn entries(document: &Document<'_>) -> Result<Vec<Entry>, FormatError> {
    let limit = document.limits().max_events;
    let mut all = Vec::new();
    let lists = document.items("device_traces", document.need(document.root, "device_traces")?)?;
    for (device, list) in lists.iter().enumerate() {
        let mut micros = 0;
        let items = document.items("device_traces", *list)?;
        if all.len() + items.len() > limit {
            return Err(FormatError::Limit { offset: 0, what: "events", limit });
        }
        for &dict in items {
            micros = number(document, dict, "time_us").unwrap_or(0).max(micros);
            all.push(Entry { device, dict, micros });
        }
    }
    all.sort_by_key(|entry| entry.micros);
    Ok(all)
}

fn number(document: &Document<'_>, dict: Value, key: &str) -> Option<u64> {
    match document.get(dict, key)? {
        Value::Int(number) => u64::try_from(number).ok(),
        Value::Unsigned(number) => Some(number),
        Value::Float(number) if number >= 0.0 => Some(number as u64),
        _ => None,
    }
}

fn need_number(document: &Document<'_>, dict: Value, key: &'static str) -> Result<u64, FormatError> {
    number(document, dict, key).ok_or_else(|| content(key, "no such number", "a number from 0"))
}

struct Annotation<'d> {
    micros: u64,
    begins: bool,
    name: &'d str,
}

fn annotations<'d>(document: &'d Document<'_>) -> Result<Vec<Annotation<'d>>, FormatError> {
    let Some(list) = document.get(document.root, "external_annotations") else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for &dict in document.items("external_annotations", list)? {
        let text = |key| document.get(dict, key).and_then(|value| document.str(value));
        if let (Some(stage), Some(name), Some(micros)) =
            (text("stage"), text("name"), number(document, dict, "time_us"))
        {
            all.push(Annotation { micros, begins: stage == "START", name });
        }
    }
    all.sort_by_key(|annotation| annotation.micros);
    Ok(all)
}

struct Reader<'d, 'a> {
    document: &'d Document<'a>,
    builder: TraceBuilder,
    start_micros: u64,
    stacks: FxHashMap<u32, StackId>,
    streams: FxHashMap<u64, i16>,
}

impl Reader<'_, '_> {
    fn nanos(&self, micros: u64) -> u64 {
        micros.saturating_sub(self.start_micros).saturating_mul(1000)
    }

    fn mark(&mut self, annotation: &Annotation<'_>) {
        let name = self.builder.intern(annotation.name);
        let kind = if annotation.begins { MarkKind::AnnotationBegin(name) } else { MarkKind::AnnotationEnd };
        let index = self.builder.trace.events.len() as u64;
        let mark = Mark { index, time_nanos: self.nanos(annotation.micros), thread: memviz_trace::ThreadId(0), kind };
        self.builder.trace.marks.push(mark);
    }

    fn entry(&mut self, entry: &Entry) -> Result<(), FormatError> {
        let value = self.document.need(entry.dict, "action")?;
        let action = self.document.text("action", value)?;
        let size = if action == "annotate" { 0 } else { need_number(self.document, entry.dict, "size")? };
        let change = i64::try_from(size).map_err(|_| content("size", size.to_string(), "less than 2^63"))?;
        match action {
            "alloc" => self.buffer(entry, Action::AllocNew, size, -change),
            "free" | "free_completed" => self.buffer(entry, Action::FreeActiveToOs, size, change),
            "segment_alloc" | "segment_map" => {
                self.cached(entry, change);
                Ok(())
            }
            "segment_free" | "segment_unmap" => {
                self.cached(entry, -change);
                Ok(())
            }
            "oom" | "snapshot" => {
                let action = if action == "oom" { Action::Oom } else { Action::Snapshot };
                let event = self.event(entry, action, size)?;
                self.builder.push(Event { addr: 0, ..event });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn buffer(&mut self, entry: &Entry, action: Action, size: u64, cached: i64) -> Result<(), FormatError> {
        let addr = need_number(self.document, entry.dict, "addr")?;
        let event = self.event(entry, action, size)?;
        // In between, `reserved` is too small rather than too large, so that peaks stay true.
        if cached < 0 {
            self.cached(entry, cached);
        }
        self.builder.push(Event { addr, ..event });
        if cached > 0 {
            self.cached(entry, cached);
        }
        Ok(())
    }

    fn cached(&mut self, entry: &Entry, change: i64) {
        let nanos = self.nanos(entry.micros);
        self.builder.push(Event::filtered_net(nanos, 0, change));
    }

    fn event(&mut self, entry: &Entry, action: Action, size: u64) -> Result<Event, FormatError> {
        let stack = self.stack(self.document.get(entry.dict, "frames"))?;
        let category = self.document.get(entry.dict, "category").and_then(|value| self.document.str(value));
        let what = match category {
            Some(name) => {
                let primitive = self.builder.intern(name);
                self.builder.intern_what(What { primitive, ..What::default() })
            }
            None => WhatId(0),
        };
        Ok(Event {
            time_nanos: self.nanos(entry.micros),
            size,
            what,
            built: stack,
            triggered: stack,
            stream: self.stream(number(self.document, entry.dict, "stream").unwrap_or(0)),
            device: Device::new(DeviceKind::Gpu, entry.device as u8),
            action,
            ..Event::default()
        })
    }

    /// Streams are pointers there; here they count in order of first sight.
    fn stream(&mut self, pointer: u64) -> i16 {
        let next = (self.streams.len() + 1).min(i16::MAX as usize) as i16;
        if pointer == 0 { 0 } else { *self.streams.entry(pointer).or_insert(next) }
    }

    fn stack(&mut self, frames: Option<Value>) -> Result<StackId, FormatError> {
        let Some(frames) = frames else { return Ok(StackId(0)) };
        if let Value::List(at) = frames
            && let Some(&stack) = self.stacks.get(&at)
        {
            return Ok(stack);
        }
        let mut stack = StackId(0);
        for &frame in self.document.items("frames", frames)?.iter().rev() {
            let frame = self.frame(frame)?;
            let frame = self.builder.trace.stacks.intern_frame(frame);
            stack = self.builder.trace.stacks.push(stack, frame);
        }
        if let Value::List(at) = frames {
            self.stacks.insert(at, stack);
        }
        Ok(stack)
    }

    fn frame(&mut self, frame: Value) -> Result<Frame, FormatError> {
        let document = self.document;
        let text = |key| document.text(key, document.need(frame, key)?);
        let (name, filename) = (text("name")?, text("filename")?);
        let line = number(document, frame, "line").unwrap_or(0).min(u32::MAX.into()) as u32;
        let (function, file) = (self.builder.intern(name), self.builder.intern(filename));
        Ok(Frame { file, function, line, column: 0, is_native: line == 0 })
    }

    /// `segments`: the state after the last event.
    fn end(&mut self) -> Result<(), FormatError> {
        let document = self.document;
        let (mut buffers, mut reserved) = (Vec::new(), 0u64);
        let mut blocks_left = document.limits().max_events;
        for &segment in document.items("segments", document.need(document.root, "segments")?)? {
            reserved = reserved.saturating_add(need_number(document, segment, "total_size")?);
            let blocks = document.items("blocks", document.need(segment, "blocks")?)?;
            let limit = document.limits().max_events;
            let error = FormatError::Limit { offset: 0, what: "blocks", limit };
            blocks_left = blocks_left.checked_sub(blocks.len()).ok_or(error)?;
            self.blocks(segment, blocks, &mut buffers)?;
        }
        let active = buffers.iter().fold(0u64, |sum, buffer| sum.saturating_add(buffer.size));
        self.builder.end_totals = Some(Totals { active, cached: reserved.saturating_sub(active) });
        self.builder.end = Some(buffers);
        Ok(())
    }

    fn blocks(&mut self, segment: Value, blocks: &[Value], buffers: &mut Vec<Buffer>) -> Result<(), FormatError> {
        let document = self.document;
        let device = Device::new(DeviceKind::Gpu, number(document, segment, "device").unwrap_or(0) as u8);
        let stream = self.stream(number(document, segment, "stream").unwrap_or(0));
        let mut addr = need_number(document, segment, "address")?;
        for &block in blocks {
            let size = need_number(document, block, "size")?;
            let state = document.text("state", document.need(block, "state")?)?;
            if state.starts_with("active") {
                let requested = number(document, block, "requested_size").unwrap_or(size);
                let built = self.stack(document.get(block, "frames"))?;
                buffers.push(Buffer { addr, size: requested, built, stream, device, ..Buffer::default() });
            }
            addr = addr.saturating_add(size);
        }
        Ok(())
    }
}
