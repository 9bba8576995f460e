//! Streamed recordings: what the writer's thread takes from the recorder under its lock.
//!
//! Here what was handed out is known; turning it into chunks of a file is `stream`'s.

use std::collections::VecDeque;

use memviz_trace::{Checkpoint, Counts, Event, Mark, StringId};

use super::{Recorder, ThreadNote};
use crate::store::Store;
use crate::whats::WhatKey;

/// How much of the tables was handed out.
#[derive(Debug, Default)]
pub struct Known {
    strings: usize,
    whats: usize,
}

/// A primitive, shape and dtype with the recorder's ids.
#[derive(Clone, Debug)]
pub struct RawWhat {
    /// Name of the primitive.
    pub primitive: StringId,
    /// MLX's code, or none.
    pub dtype: u8,
    /// Not the primitive's output.
    pub is_temporary: bool,
    /// Elements along each axis.
    pub shape: Box<[i32]>,
}

impl From<WhatKey<'_>> for RawWhat {
    fn from(key: WhatKey<'_>) -> RawWhat {
        let WhatKey { primitive, dtype, is_temporary, shape } = key;
        RawWhat { primitive, dtype, is_temporary, shape: shape.into() }
    }
}

/// What a recorder hands out to a writer; ids are the recorder's.
#[derive(Debug, Default)]
pub struct Drained {
    /// Events, oldest first.
    pub chunks: VecDeque<Vec<Event>>,
    /// What became of all events up to the last one.
    pub counts: Counts,
    /// Events handed out before, by number, as they are known now.
    pub amended: Vec<(u64, Event)>,
    /// Since the last time.
    pub checkpoints: Vec<Checkpoint>,
    /// Since the last time.
    pub marks: Vec<Mark>,
    /// All threads, if any changed.
    pub threads: Option<Vec<ThreadNote>>,
    /// New strings, in order of id.
    pub strings: Vec<String>,
    /// New triples, in order of id.
    pub whats: Vec<RawWhat>,
}

impl Recorder {
    /// Streamed: hands out what came since the last time; `known` says how much of the tables that was.
    pub fn drain(&mut self, known: &mut Known) -> Drained {
        let Store::Queue(queue) = &mut self.store else { return Drained::default() };
        let chunks = queue.take();
        let drained = Drained {
            chunks,
            counts: self.counts(),
            amended: std::mem::take(&mut self.amended),
            checkpoints: std::mem::take(&mut self.checkpoints),
            marks: std::mem::take(&mut self.marks),
            threads: std::mem::take(&mut self.has_new_threads).then(|| self.threads.clone()),
            strings: (known.strings..self.strings.len())
                .map(|at| self.strings.get(StringId(at as u32)).to_owned())
                .collect(),
            whats: self.whats.iter().skip(known.whats).map(RawWhat::from).collect(),
        };
        known.strings = self.strings.len();
        known.whats += drained.whats.len();
        self.close_gap();
        drained
    }

    /// Gives chunks back that `drain` handed out.
    pub fn give_back(&mut self, chunks: Vec<Vec<Event>>) {
        if let Store::Queue(queue) = &mut self.store {
            chunks.into_iter().for_each(|chunk| queue.give_back(chunk));
        }
    }

    /// Context `state`, at the end: the table knows the stacks of the buffers that exist, their events do not.
    pub fn amend_active(&mut self) {
        let active = self.table.entries_unsorted().filter(|entry| !entry.is_cached && entry.alloc_index != u64::MAX);
        self.amended.extend(active.map(|entry| (entry.alloc_index, entry.alloc)));
    }
}
