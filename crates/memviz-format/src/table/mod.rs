//! A recording as tables: one row per event, one per use of a buffer, one per stack. Parquet, CSV and JSON write these rows.
//!
//! Every name is spelled out in its row (file, line, primitive, thread), so a query needs no join; only whole stacks are
//! apart. Several recordings of one run share the tables and differ in `rank`. Columns: `docs/export.md`.
//!
//! Memory is bounded by the buffers alive, not by the number of events. Not here: files, and which line is the user's.

mod buffers;
pub mod csv;
mod events;
pub mod json;
pub mod parquet;
mod stacks;

use memviz_trace::{Frame, FrameId, MarkCursor, NO_STREAM, StackId, ThreadId, Trace, WhatId};

use crate::FormatError;

/// A trace, and what the analysis says about it.
#[derive(Clone, Debug)]
pub struct Lined<'t> {
    /// The trace.
    pub trace: &'t Trace,
    /// The user's line of each stack, by number of the stack.
    pub lines: Vec<Option<FrameId>>,
    /// Events up to the highest active memory.
    pub peak_after_events: usize,
}

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// What happened, in order, with the sums after it.
    Events,
    /// Each use of a buffer, from its allocation to its free.
    Buffers,
    /// Stacks as text, by the number that the other two name.
    Stacks,
}

impl Table {
    /// Every table.
    pub const ALL: [Table; 3] = [Table::Events, Table::Buffers, Table::Stacks];

    /// Lower-case name, part of file names.
    pub fn name(self) -> &'static str {
        match self {
            Table::Events => "events",
            Table::Buffers => "buffers",
            Table::Stacks => "stacks",
        }
    }

    fn columns(self) -> &'static [(&'static str, Kind)] {
        match self {
            Table::Events => events::COLUMNS,
            Table::Buffers => buffers::COLUMNS,
            Table::Stacks => stacks::COLUMNS,
        }
    }

    /// Gives the rows of all recordings to `sink`.
    fn rows(self, recordings: &[Lined<'_>], sink: &mut dyn Sink) -> Result<(), FormatError> {
        for recording in recordings {
            match self {
                Table::Events => events::rows(recording, sink)?,
                Table::Buffers => buffers::rows(recording, sink)?,
                Table::Stacks => stacks::rows(recording, sink)?,
            }
        }
        Ok(())
    }
}

/// Type of a column. Every column may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Int,
    /// Addresses use all 64 bits.
    Unsigned,
    Float,
    Bool,
    Text,
}

/// One value of a row, of its column's kind or null.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cell<'a> {
    Null,
    Int(i64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
}

impl<'a> Cell<'a> {
    /// Columns are signed, so that differences are; what does not fit is the largest number.
    fn size(bytes: u64) -> Cell<'a> {
        Cell::Int(i64::try_from(bytes).unwrap_or(i64::MAX))
    }

    fn size_or_null(bytes: Option<u64>) -> Cell<'a> {
        bytes.map_or(Cell::Null, Cell::size)
    }

    /// "" means "not known".
    fn text(text: &'a str) -> Cell<'a> {
        if text.is_empty() { Cell::Null } else { Cell::Text(text) }
    }
}

/// Columns about the array that owns a buffer, with values from [`Texts::owner`].
const OWNER: [(&str, Kind); 12] = [
    ("primitive", Kind::Text),
    ("is_temporary", Kind::Bool),
    ("dtype", Kind::Text),
    ("shape", Kind::Text),
    ("file", Kind::Text),
    ("line", Kind::Int),
    ("function", Kind::Text),
    ("triggered_file", Kind::Text),
    ("triggered_line", Kind::Int),
    ("triggered_function", Kind::Text),
    ("built_stack", Kind::Int),
    ("triggered_stack", Kind::Int),
];
/// Columns about where something ran, with values from [`Texts::ran_on`].
const RAN_ON: [(&str, Kind); 3] = [("thread", Kind::Text), ("stream", Kind::Int), ("device", Kind::Text)];

/// The parts in a row: of columns, and of their values.
const fn joined<T: Copy, const COUNT: usize>(parts: &[&[T]]) -> [T; COUNT] {
    let mut all = [parts[0][0]; COUNT];
    let (mut part, mut at, mut count) = (0, 0, 0);
    while part < parts.len() {
        if at < parts[part].len() {
            all[count] = parts[part][at];
            (at, count) = (at + 1, count + 1);
        } else {
            (part, at) = (part + 1, 0);
        }
    }
    assert!(count == COUNT, "a row has as many values as columns");
    all
}

/// Takes rows.
trait Sink {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), FormatError>;
}

/// Texts of a recording that rows repeat, made once.
struct Texts<'l> {
    recording: &'l Lined<'l>,
    shapes: Vec<String>,
    devices: Vec<String>,
    annotation: Annotation,
}

/// Names of the open annotations of one thread, joined; made again only when they change.
#[derive(Default)]
struct Annotation {
    names: Vec<memviz_trace::StringId>,
    text: String,
}

impl<'l> Texts<'l> {
    fn new(recording: &'l Lined<'l>) -> Texts<'l> {
        let shape =
            |what: &memviz_trace::What| what.shape.as_ref().map_or_else(String::new, |shape| format!("{shape:?}"));
        let shapes = recording.trace.whats.iter().map(shape).collect();
        let devices = (0..=255).map(|number| memviz_trace::Device(number).to_string()).collect();
        Texts { recording, shapes, devices, annotation: Annotation::default() }
    }

    /// Takes in the annotations open on `thread`.
    fn annotate(&mut self, marks: &MarkCursor<'_>, thread: ThreadId) {
        let names = marks.annotations(thread);
        if names != self.annotation.names {
            let texts: Vec<&str> = names.iter().map(|name| self.recording.trace.strings.get(*name)).collect();
            self.annotation = Annotation { names: names.to_vec(), text: texts.join("/") };
        }
    }

    fn rank(&self) -> Cell<'static> {
        self.recording.trace.header.rank.map_or(Cell::Null, |rank| Cell::Int(rank.into()))
    }

    /// Values of [`OWNER`].
    fn owner(&self, what: WhatId, built: StackId, triggered: StackId) -> [Cell<'_>; OWNER.len()] {
        let line = self.place(self.line_of(built, triggered));
        let triggered_line = self.place(self.line(triggered));
        joined(&[&self.what(what), &line, &triggered_line, &[stack(built), stack(triggered)]])
    }

    /// Values of [`RAN_ON`].
    fn ran_on(&self, thread: ThreadId, stream: i16, device: memviz_trace::Device) -> [Cell<'_>; RAN_ON.len()] {
        joined(&[&[self.thread(thread)], &self.stream(stream, device)])
    }

    /// primitive, is_temporary, dtype, shape.
    fn what(&self, id: WhatId) -> [Cell<'_>; 4] {
        let trace = self.recording.trace;
        let what = trace.what(id);
        let shape = self.shapes.get(id.index()).map_or("", String::as_str);
        let primitive = Cell::text(trace.strings.get(what.primitive));
        [primitive, Cell::Bool(what.is_temporary), Cell::text(trace.strings.get(what.dtype)), Cell::text(shape)]
    }

    /// The line that reports count a buffer for: the one that built its array, else the one that evaluated it.
    fn line_of(&self, built: StackId, triggered: StackId) -> Option<FrameId> {
        self.line(built).or_else(|| self.line(triggered))
    }

    fn line(&self, stack: StackId) -> Option<FrameId> {
        self.recording.lines.get(stack.index()).copied().flatten()
    }

    /// file, line, function.
    fn place(&self, frame: Option<FrameId>) -> [Cell<'_>; 3] {
        let Some(frame) = frame else { return [Cell::Null; 3] };
        let Frame { file, function, line, .. } = self.recording.trace.stacks.frame(frame);
        let strings = &self.recording.trace.strings;
        [Cell::text(strings.get(file)), Cell::Int(line.into()), Cell::text(strings.get(function))]
    }

    fn thread(&self, id: ThreadId) -> Cell<'_> {
        let thread = self.recording.trace.threads.get(id.index());
        thread.map_or(Cell::Null, |thread| Cell::text(self.recording.trace.strings.get(thread.name)))
    }

    /// stream, device.
    fn stream(&self, stream: i16, device: memviz_trace::Device) -> [Cell<'_>; 2] {
        if stream == NO_STREAM {
            return [Cell::Null; 2];
        }
        [Cell::Int(stream.into()), Cell::Text(&self.devices[usize::from(device.0)])]
    }
}

fn stack(id: StackId) -> Cell<'static> {
    if id == StackId(0) { Cell::Null } else { Cell::Int(id.0.into()) }
}

fn secs(nanos: u64) -> Cell<'static> {
    Cell::Float(nanos as f64 / 1e9)
}
