//! A part to the bytes of chunks: the new rows of the grown tables first, then events with what belongs to them.
//!
//! Decides how much goes into one chunk, so that neither side needs more memory for a longer part. Each chunk is whole in
//! itself: its counts are those of the recording up to its last event.

use memviz_trace::{Buffer, Event, Tally, Thread};

use super::columns::Builder;
use super::events::Encoder;
use super::part::Part;
use super::sums::Sums;
use super::tables;
use crate::FormatError;

/// Events of one chunk at most: 3 MiB in memory, some 0.5 MiB in the file.
const EVENTS: usize = 1 << 16;
/// Rows of other tables in one chunk at most.
const ROWS: usize = 1 << 16;
/// Bytes of strings in one chunk, and one string more.
const STRING_BYTES: usize = 4 << 20;

/// Numbers of tables in files. Readers skip those they do not know.
pub(super) mod table {
    pub const SUMS: u32 = 1;
    pub const STRINGS: u32 = 2;
    pub const FRAMES: u32 = 3;
    pub const STACKS: u32 = 4;
    /// Comes before the `WHATS` that it belongs to.
    pub const AXES: u32 = 5;
    pub const WHATS: u32 = 6;
    pub const THREADS: u32 = 7;
    pub const BUFFERS: u32 = 8;
    pub const ADDRESSES: u32 = 9;
    pub const OWNERS: u32 = 10;
    pub const EVENTS: u32 = 11;
    pub const AMENDMENTS: u32 = 12;
    pub const CHECKPOINTS: u32 = 13;
    pub const MARKS: u32 = 14;
}

/// How much of the grown tables is written.
struct Written {
    strings: usize,
    frames: usize,
    stacks: usize,
    whats: usize,
    threads: Vec<Thread>,
    /// Number of the next event.
    index: u64,
}

/// Turns parts into the raw bytes of chunks.
pub(super) struct PartEncoder {
    written: Written,
    events: Encoder,
    raw: Vec<u8>,
}

type Sink<'a> = dyn FnMut(&[u8]) -> Result<(), FormatError> + 'a;

impl PartEncoder {
    pub(super) fn new(first_index: u64) -> PartEncoder {
        // Entry 0 of strings, stacks, whats and threads is in every table and not written.
        let threads = vec![Thread::default()];
        let written = Written { strings: 1, frames: 0, stacks: 1, whats: 1, threads, index: first_index };
        PartEncoder { written, events: Encoder::new(), raw: Vec::new() }
    }

    /// Buffers of before the first event.
    pub(super) fn buffers(&mut self, buffers: &[Buffer], sink: &mut Sink<'_>) -> Result<(), FormatError> {
        for rows in buffers.chunks(ROWS) {
            self.put(table::BUFFERS, tables::buffers(rows))?;
            self.flush(sink)?;
        }
        Ok(())
    }

    /// Everything of `part` that is new; `sink` gets the raw bytes of each chunk.
    pub(super) fn part(&mut self, part: &Part<'_>, sink: &mut Sink<'_>) -> Result<(), FormatError> {
        self.strings(part, sink)?;
        self.stacks(part, sink)?;
        self.whats(part, sink)?;
        self.threads(part)?;
        self.amendments(part, sink)?;
        self.events(part, sink)
    }

    /// Appends a table to the chunk under construction.
    fn put(&mut self, number: u32, rows: Builder) -> Result<(), FormatError> {
        self.raw.extend_from_slice(&number.to_le_bytes());
        let at = self.raw.len();
        self.raw.extend_from_slice(&[0; 4]);
        rows.finish(&mut self.raw)?;
        let length = (self.raw.len() - at - 4) as u32;
        self.raw[at..at + 4].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }

    fn flush(&mut self, sink: &mut Sink<'_>) -> Result<(), FormatError> {
        if !self.raw.is_empty() {
            sink(&self.raw)?;
            self.raw.clear();
        }
        Ok(())
    }

    /// Ends the chunk when another batch of rows might not fit.
    fn flush_when_full(&mut self, sink: &mut Sink<'_>) -> Result<(), FormatError> {
        if self.raw.len() >= STRING_BYTES { self.flush(sink) } else { Ok(()) }
    }

    fn strings(&mut self, part: &Part<'_>, sink: &mut Sink<'_>) -> Result<(), FormatError> {
        let end = part.strings.len();
        while self.written.strings < end {
            let from = self.written.strings;
            let (mut to, mut bytes) = (from, 0);
            while to < end && to - from < ROWS && bytes < STRING_BYTES {
                bytes += part.strings.get(memviz_trace::StringId(to as u32)).len();
                to += 1;
            }
            self.put(table::STRINGS, tables::strings(part.strings, from..to))?;
            self.written.strings = to;
            self.flush_when_full(sink)?;
        }
        Ok(())
    }

    fn stacks(&mut self, part: &Part<'_>, sink: &mut Sink<'_>) -> Result<(), FormatError> {
        while self.written.frames < part.stacks.frame_count() {
            let to = (self.written.frames + ROWS).min(part.stacks.frame_count());
            self.put(table::FRAMES, tables::frames(part.stacks, self.written.frames..to))?;
            self.written.frames = to;
            self.flush_when_full(sink)?;
        }
        while self.written.stacks < part.stacks.stack_count() {
            let to = (self.written.stacks + ROWS).min(part.stacks.stack_count());
            self.put(table::STACKS, tables::stacks(part.stacks, self.written.stacks..to))?;
            self.written.stacks = to;
            self.flush_when_full(sink)?;
        }
        Ok(())
    }

    fn whats(&mut self, part: &Part<'_>, sink: &mut Sink<'_>) -> Result<(), FormatError> {
        let new = part.whats.get(self.written.whats..).unwrap_or_default();
        for rows in new.chunks(ROWS / 4) {
            let (whats, axes) = tables::whats(rows);
            if let Some(axes) = axes {
                self.put(table::AXES, axes)?;
            }
            self.put(table::WHATS, whats)?;
            self.written.whats += rows.len();
            self.flush_when_full(sink)?;
        }
        Ok(())
    }

    fn threads(&mut self, part: &Part<'_>) -> Result<(), FormatError> {
        let changed = |(id, thread): &(usize, &Thread)| self.written.threads.get(*id) != Some(thread);
        let rows: Vec<(usize, Thread)> =
            part.threads.iter().enumerate().filter(changed).map(|(id, thread)| (id, thread.clone())).collect();
        if rows.is_empty() {
            return Ok(());
        }
        self.written.threads = part.threads.to_vec();
        self.put(table::THREADS, tables::threads(&rows))
    }

    /// Those of events of earlier parts; the others follow their events.
    fn amendments(&mut self, part: &Part<'_>, sink: &mut Sink<'_>) -> Result<(), FormatError> {
        for rows in part.amendments.chunks(ROWS) {
            let known: Vec<_> = rows.iter().filter(|row| row.index < self.written.index).copied().collect();
            if !known.is_empty() {
                self.put(table::AMENDMENTS, tables::amendments(&known))?;
                self.flush_when_full(sink)?;
            }
        }
        Ok(())
    }

    fn events(&mut self, part: &Part<'_>, sink: &mut Sink<'_>) -> Result<(), FormatError> {
        let first = self.written.index;
        let (mut left, mut points, mut marks) = (Tally::default(), part.checkpoints, part.marks);
        buffer_events(part.events).for_each(|event| left.add(event.size));
        let mut rest = part.events;
        loop {
            let (now, later) = rest.split_at(rest.len().min(EVENTS));
            buffer_events(now).for_each(|event| take(&mut left, event.size));
            let until = if later.is_empty() { u64::MAX } else { self.written.index + now.len() as u64 };
            let points_now = split_before(&mut points, |point| point.index <= until);
            let marks_now = split_before(&mut marks, |mark| mark.index <= until);
            self.sums_and_events(part, now, left)?;
            if later.is_empty() {
                self.amend_new(part, first)?;
            }
            self.notes(points_now, marks_now)?;
            self.flush(sink)?;
            rest = later;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    fn sums_and_events(&mut self, part: &Part<'_>, now: &[Event], left: Tally) -> Result<(), FormatError> {
        let mut counts = part.counts;
        counts.seen.events = counts.seen.events.wrapping_sub(left.events);
        counts.seen.bytes = counts.seen.bytes.wrapping_sub(left.bytes);
        let mut sums = Sums { first_index: self.written.index, counts, ..Sums::default() };
        self.written.index += now.len() as u64;
        if now.is_empty() {
            return self.put(table::SUMS, sums.table());
        }
        let tables = self.events.tables(now, &mut sums);
        self.put(table::SUMS, sums.table())?;
        self.put(table::ADDRESSES, tables.addresses)?;
        self.put(table::OWNERS, tables.owners)?;
        self.put(table::EVENTS, tables.events)
    }

    fn amend_new(&mut self, part: &Part<'_>, first: u64) -> Result<(), FormatError> {
        let new: Vec<_> = part.amendments.iter().filter(|row| row.index >= first).copied().collect();
        for rows in new.chunks(ROWS) {
            self.put(table::AMENDMENTS, tables::amendments(rows))?;
        }
        Ok(())
    }

    fn notes(&mut self, points: &[memviz_trace::Checkpoint], marks: &[memviz_trace::Mark]) -> Result<(), FormatError> {
        for rows in points.chunks(ROWS) {
            self.put(table::CHECKPOINTS, tables::checkpoints(rows))?;
        }
        for rows in marks.chunks(ROWS) {
            self.put(table::MARKS, tables::marks(rows))?;
        }
        Ok(())
    }
}

fn buffer_events(events: &[Event]) -> impl Iterator<Item = &Event> {
    events.iter().filter(|event| event.action.is_buffer())
}

fn take(left: &mut Tally, bytes: u64) {
    left.events = left.events.wrapping_sub(1);
    left.bytes = left.bytes.wrapping_sub(bytes);
}

/// Takes the rows that `belongs` holds for off the front.
fn split_before<'a, T>(rows: &mut &'a [T], belongs: impl Fn(&T) -> bool) -> &'a [T] {
    let count = rows.iter().position(|row| !belongs(row)).unwrap_or(rows.len());
    let (now, later) = rows.split_at(count);
    *rows = later;
    now
}
