//! What a writer is given: the state at the start, and then part after part.

use memviz_trace::{
    Base, Buffer, Checkpoint, Counts, Device, Event, Mark, StackId, StackTable, Strings, Thread, Totals, Trace, What,
    WhatId,
};

/// State before the first event. The default: nothing was there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Start {
    /// Buffers known one by one, in any order: while recording those in the cache, of a finished trace `Trace::start`.
    pub buffers: Vec<Buffer>,
    /// All bytes, those of `buffers` among them or not.
    pub sums: StartSums,
    /// Number of the first event: how many fell out of a ring before it. 0 while recording.
    pub first_index: u64,
}

/// Bytes before the first event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartSums {
    /// All of them, as a recorder reads them. Buffers beside `Start::buffers` turn up when they are freed: the reader finds
    /// them, and what is left is the base.
    Totals(Totals),
    /// Those beside `Start::buffers`, which lists every buffer that will ever turn up: `Trace::base`.
    Base(Base),
}

impl Default for StartSums {
    fn default() -> StartSums {
        StartSums::Totals(Totals::default())
    }
}

impl Start {
    /// The start of a finished trace.
    pub fn of(trace: &Trace) -> Start {
        let sums = StartSums::Base(trace.base);
        Start { buffers: trace.start.clone(), sums, first_index: trace.first_index }
    }
}

/// What came since the last part. Ids are those of the trace that the file will be read as.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The whole table, not only what is new: the writer knows how much of it is written. Entries never change.
    pub strings: &'a Strings,
    /// The whole table of frames and stacks, as above.
    pub stacks: &'a StackTable,
    /// The whole table, as above. Entry 0 is "not known".
    pub whats: &'a [What],
    /// The whole table. Entry 0 is "not known". Entries may change: a thread that got a name is written again.
    pub threads: &'a [Thread],
    /// Events since the last part, in order of time. The first event of a file has number `Start::first_index`, the others
    /// follow without a gap; marks, checkpoints and amendments count the same way.
    pub events: &'a [Event],
    /// Events of this part or of those before it whose owner became known only now.
    pub amendments: &'a [Amendment],
    /// Checkpoints since the last part. None is ahead of the events.
    pub checkpoints: &'a [Checkpoint],
    /// Marks since the last part.
    pub marks: &'a [Mark],
    /// What became of all events from the start of the recording to the last one of this part:
    /// `written + dropped + filtered == seen` holds for it.
    pub counts: Counts,
}

impl<'a> Part<'a> {
    /// All of a trace as one part.
    pub fn of(trace: &'a Trace) -> Part<'a> {
        Part {
            strings: &trace.strings,
            stacks: &trace.stacks,
            whats: &trace.whats,
            threads: &trace.threads,
            events: &trace.events,
            amendments: &[],
            checkpoints: &trace.checkpoints,
            marks: &trace.marks,
            counts: trace.counts,
        }
    }
}

/// The owner of the buffer of an event that is written already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amendment {
    /// Number of the event, counted as [`Part::events`] says. One that is not in the file is ignored.
    pub index: u64,
    /// Its owner.
    pub what: WhatId,
    /// Line that built the owner.
    pub built: StackId,
    /// Stream of the owner, or [`memviz_trace::NO_STREAM`].
    pub stream: i16,
    /// Device of that stream.
    pub device: Device,
    /// Size minus the bytes asked for.
    pub slack: u32,
}
