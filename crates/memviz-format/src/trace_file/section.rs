//! One section of a file, chunk by chunk, to a trace.

use memviz_trace::{EndingKind, StackId, Thread, ThreadId, Trace, TraceBuilder, What, WhatId};

use super::columns::Table;
use super::encode::table;
use super::events::{Decoder, Known};
use super::frame::Chunk;
use super::header::{Beginning, End};
use super::last_words::{self, LastWords};
use super::part::{Start, StartSums};
use super::sums::Sums;
use super::tables;
use crate::FormatError;
use crate::error::first_index;
use crate::torch::Limits;

type Wrong = &'static str;

/// What a file may still use.
pub(super) struct Allowance {
    limits: Limits,
    memory: usize,
    events: usize,
}

impl Allowance {
    pub(super) fn new(limits: &Limits) -> Allowance {
        Allowance { limits: *limits, memory: limits.max_memory_bytes, events: limits.max_events }
    }

    pub(super) fn take_memory(&mut self, offset: u64, bytes: usize) -> Result<(), FormatError> {
        let limit = self.limits.max_memory_bytes;
        let error = FormatError::Limit { offset: offset as usize, what: "bytes of memory", limit };
        self.memory = self.memory.checked_sub(bytes).ok_or(error)?;
        Ok(())
    }

    fn take_events(&mut self, offset: u64, count: usize) -> Result<(), FormatError> {
        let limit = self.limits.max_events;
        let error = FormatError::Limit { offset: offset as usize, what: "events", limit };
        self.events = self.events.checked_sub(count).ok_or(error)?;
        Ok(())
    }
}

/// A trace under construction.
pub(super) struct Section {
    trace: Trace,
    start: Start,
    /// Axes of the `whats` that follow.
    axes: Vec<i32>,
    sums: Sums,
    ended: bool,
}

impl Section {
    /// Begins with its first chunk.
    pub(super) fn begin(chunk: &Chunk<'_>) -> Result<Section, FormatError> {
        let beginning: Beginning = serde_json::from_slice(chunk.raw).map_err(FormatError::Json)?;
        let (header, start) = beginning.into_parts();
        let first_index = first_index(start.first_index, "trace file")?;
        let mut trace = Trace { header, first_index, ..Trace::default() };
        // Entries 0, which are not in the file.
        trace.whats.push(What::default());
        trace.threads.push(Thread::default());
        Ok(Section { trace, start, axes: Vec::new(), sums: Sums::default(), ended: false })
    }

    /// The tables of a part.
    pub(super) fn part(
        &mut self,
        chunk: &Chunk<'_>,
        decoder: &mut Decoder,
        allowance: &mut Allowance,
    ) -> Result<(), FormatError> {
        let mut rest = chunk.raw;
        while !rest.is_empty() {
            let (number, stream) = split_table(&mut rest).ok_or_else(|| content("half a table"))?;
            if (table::SUMS..=table::MARKS).contains(&number) {
                let table = Table::parse(stream).map_err(content)?;
                allowance.take_memory(chunk.offset, cost(number, &table, stream.len()))?;
                if number == table::EVENTS {
                    allowance.take_events(chunk.offset, table.rows())?;
                }
                self.table(number, &table, decoder).map_err(content)?;
            }
        }
        Ok(())
    }

    fn table(&mut self, number: u32, table: &Table<'_>, decoder: &mut Decoder) -> Result<(), Wrong> {
        let trace = &mut self.trace;
        match number {
            table::SUMS => self.sums(table),
            table::STRINGS => tables::read_strings(table, trace),
            table::FRAMES => tables::read_frames(table, trace),
            table::STACKS => tables::read_stacks(table, trace),
            table::AXES => {
                self.axes = table.numbers("elements")?;
                Ok(())
            }
            table::WHATS => {
                let axes = std::mem::take(&mut self.axes);
                tables::read_whats(table, &axes, trace)
            }
            table::THREADS => tables::read_threads(table, trace),
            table::BUFFERS => tables::read_buffers(table, &mut self.start.buffers),
            table::ADDRESSES => decoder.read_addresses(table),
            table::OWNERS => decoder.read_owners(table, self.known()),
            table::EVENTS => decoder.read_events(table, &self.sums, self.known(), &mut self.trace.events),
            table::AMENDMENTS => tables::read_amendments(table, trace),
            table::CHECKPOINTS => tables::read_checkpoints(table, trace),
            _ => tables::read_marks(table, trace),
        }
    }

    fn sums(&mut self, table: &Table<'_>) -> Result<(), Wrong> {
        self.sums = Sums::read(table)?;
        if self.sums.first_index != self.next_index() {
            return Err("a part whose events do not follow those before it");
        }
        self.trace.counts = self.sums.counts;
        Ok(())
    }

    fn next_index(&self) -> u64 {
        self.trace.first_index.wrapping_add(self.trace.events.len() as u64)
    }

    fn known(&self) -> Known {
        let trace = &self.trace;
        Known { stacks: trace.stacks.stack_count(), whats: trace.whats.len(), threads: trace.threads.len() }
    }

    /// The end, as the writer saw it.
    pub(super) fn end(&mut self, chunk: &Chunk<'_>) -> Result<(), FormatError> {
        let end: End = serde_json::from_slice(chunk.raw).map_err(FormatError::Json)?;
        self.trace.header.ending = end.ending();
        self.trace.header.notes.extend(end.notes);
        self.ended = true;
        Ok(())
    }

    /// The end, as a process that went down could still say it.
    pub(super) fn last_words(&mut self, chunk: &Chunk<'_>, allowance: &mut Allowance) -> Result<(), FormatError> {
        let words = last_words::read(chunk.raw).map_err(content)?;
        allowance.take_memory(chunk.offset, chunk.raw.len())?;
        allowance.take_events(chunk.offset, words.events.len())?;
        self.add_last_events(&words);
        let ending = &mut self.trace.header.ending;
        (ending.kind, ending.detail) = (words.ending, words.detail);
        self.ended = true;
        Ok(())
    }

    fn add_last_events(&mut self, words: &LastWords) {
        let overlap = self.next_index().checked_sub(words.first_index).and_then(|count| usize::try_from(count).ok());
        let Some(new) = overlap.and_then(|overlap| words.events.get(overlap..)) else {
            if overlap.is_none() {
                self.trace
                    .header
                    .notes
                    .push("the last events do not follow those in the file and were left out".into());
            }
            return;
        };
        let known = self.known();
        self.trace.events.extend(new.iter().map(|event| {
            let mut event = *event;
            forget_foreign(known, &mut event.what, &mut event.built, &mut event.triggered, &mut event.thread);
            event
        }));
        self.trace.counts = words.counts;
    }

    /// The trace. `rest` bytes at the end of the file were no whole chunk.
    pub(super) fn finish(mut self, rest: u64) -> Trace {
        let known = self.known();
        for buffer in &mut self.start.buffers {
            forget_foreign(known, &mut buffer.what, &mut buffer.built, &mut buffer.triggered, &mut buffer.thread);
        }
        let header = &mut self.trace.header;
        if header.ending.stack.index() >= known.stacks {
            header.ending.stack = StackId(0);
        }
        if !self.ended {
            header.ending.kind = EndingKind::Cut;
        }
        if rest > 0 {
            header.notes.push(format!("the last {rest} bytes of the file are no whole chunk and were left out"));
        }
        let mut builder = TraceBuilder::default();
        builder.trace = self.trace;
        match self.start.sums {
            StartSums::Base(base) => (builder.trace.start, builder.trace.base) = (self.start.buffers, base),
            StartSums::Totals(totals) => builder.start = Some((self.start.buffers, totals)),
        }
        builder.finish()
    }
}

/// Ids that are in no table become "not known": what they point to was not written any more.
fn forget_foreign(
    known: Known,
    what: &mut WhatId,
    built: &mut StackId,
    triggered: &mut StackId,
    thread: &mut ThreadId,
) {
    if what.index() >= known.whats {
        *what = WhatId(0);
    }
    for stack in [built, triggered] {
        if stack.index() >= known.stacks {
            *stack = StackId(0);
        }
    }
    if thread.index() >= known.threads {
        *thread = ThreadId(0);
    }
}

fn split_table<'a>(rest: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    let (number, after) = rest.split_first_chunk::<4>()?;
    let (length, after) = after.split_first_chunk::<4>()?;
    let (stream, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = after;
    Some((u32::from_le_bytes(*number), stream))
}

/// Bytes of memory that the rows become, with the maps beside them.
fn cost(number: u32, table: &Table<'_>, stream_bytes: usize) -> usize {
    let row = match number {
        table::STRINGS => 96,
        table::FRAMES | table::STACKS | table::WHATS => 64,
        table::AXES => 8,
        table::ADDRESSES => 8,
        _ => 96,
    };
    let texts = if number == table::STRINGS { 2 * stream_bytes } else { 0 };
    table.rows().saturating_mul(row).saturating_add(texts)
}

fn content(found: &'static str) -> FormatError {
    FormatError::Content { place: "trace file", found: found.into(), expected: "tables as formats/memviz.md says" }
}
