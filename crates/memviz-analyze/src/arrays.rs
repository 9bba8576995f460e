//! Arrays and the buffers that they use, as a recording of level `arrays` tells of them up to a moment.
//!
//! One pass over the events. Everything is kept, also what died, in order of creation: a graph transform is recognised by
//! what came after it. An event that contradicts those before it is skipped, as `Ledger` does. Not here: what it means
//! (`pinned`, `compile`).

use std::ops::Range;

use memviz_trace::{Action, Event, StackId, ThreadId, Trace, WhatId};
use rustc_hash::FxHashMap;

/// An event that never came.
pub(crate) const NEVER: usize = usize::MAX;
/// How many events after the moment may say who took a buffer that was allocated before it.
const LOOK_AHEAD: usize = 64;

/// A recording without array events was asked about arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the recording has no array events; record with `memviz run --level arrays` or mlx_memviz.record(level=\"arrays\")"
)]
pub struct NeedsArrays;

/// An array of the recorded program. Positions are those of events in the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    /// Primitive, shape and dtype; 0 when its creation was not recorded.
    pub what: WhatId,
    pub built: StackId,
    pub thread: ThreadId,
    pub created: usize,
    pub created_nanos: u64,
    pub is_evaluated: bool,
    /// Position in [`Arrays::uses`] of the buffer that it uses.
    pub buffer: Option<usize>,
    /// When it died, or [`NEVER`].
    pub died: usize,
}

impl Array {
    pub fn is_alive(&self) -> bool {
        self.died == NEVER
    }
}

/// One use of a buffer: from its allocation to its free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub size: u64,
    pub requested: u64,
    pub what: WhatId,
    pub built: StackId,
    pub freed: usize,
    pub is_taken: bool,
    /// An array from before the recording uses it, or did: who uses it is not known.
    pub has_unknown_user: bool,
}

impl Use {
    pub fn is_active(&self) -> bool {
        self.freed == NEVER
    }

    fn of(event: &Event, has_unknown_user: bool) -> Use {
        let (size, requested) = (event.size, event.requested());
        let (what, built) = (event.what, event.built);
        Use { size, requested, what, built, freed: NEVER, is_taken: false, has_unknown_user }
    }
}

/// Arrays and buffers up to a moment.
#[derive(Debug, Default)]
pub(crate) struct Arrays {
    pub all: Vec<Array>,
    pub uses: Vec<Use>,
    /// When a primitive ran, in order.
    pub evaluations: Vec<usize>,
    /// (array, what it is computed from), grouped by array.
    edges: Vec<(usize, usize)>,
    by_id: FxHashMap<u32, usize>,
    by_addr: FxHashMap<u64, usize>,
}

impl Arrays {
    /// Replays the first `after_events` events of `trace`.
    ///
    /// # Errors
    /// The recording is not of level `arrays`.
    pub fn new(trace: &Trace, after_events: usize) -> Result<Arrays, NeedsArrays> {
        let is_arrays = trace.header.level == memviz_trace::Level::Arrays.name();
        if !is_arrays && !trace.events.iter().any(|event| event.action.is_array()) {
            return Err(NeedsArrays);
        }
        let mut arrays = Arrays::default();
        for buffer in trace.start.iter().filter(|buffer| !buffer.is_cached) {
            arrays.take_in_use(buffer.addr, Use::of(&buffer.to_alloc(), true));
        }
        let (before, after) = trace.events.split_at(after_events.min(trace.events.len()));
        for (position, event) in before.iter().enumerate() {
            arrays.apply(position, event);
        }
        for event in after.iter().take(LOOK_AHEAD).filter(|event| event.action == Action::ArrayTookBuffer) {
            arrays.take_late(event);
        }
        // Two threads may build at once.
        arrays.edges.sort_by_key(|(array, _)| *array);
        Ok(arrays)
    }

    fn apply(&mut self, position: usize, event: &Event) {
        match event.action {
            action if action.is_alloc() => self.take_in_use(event.addr, Use::of(event, false)),
            action if action.is_free() => {
                if let Some(at) = self.by_addr.remove(&event.addr) {
                    self.uses[at].freed = position;
                }
            }
            Action::ArrayCreated => self.create(position, event, event.what),
            Action::ArrayInputs => self.connect(event),
            Action::ArrayTookBuffer | Action::ArraySharesBuffer => self.use_buffer(position, event),
            Action::ArrayEvaluated => {
                self.evaluations.push(position);
                if let Some(&at) = self.by_id.get(&event.slack) {
                    self.all[at].is_evaluated = true;
                }
            }
            Action::ArrayDied => {
                if let Some(at) = self.by_id.remove(&event.slack) {
                    self.all[at].died = position;
                }
            }
            _ => {}
        }
    }

    fn take_in_use(&mut self, addr: u64, new: Use) {
        // An address that is active already keeps its first use, as in the ledger.
        self.by_addr.entry(addr).or_insert_with(|| {
            self.uses.push(new);
            self.uses.len() - 1
        });
    }

    fn create(&mut self, created: usize, event: &Event, what: WhatId) {
        let (built, thread, created_nanos) = (event.built, event.thread, event.time_nanos);
        let new = Array { what, built, thread, created, created_nanos, is_evaluated: false, buffer: None, died: NEVER };
        self.by_id.insert(event.slack, self.all.len());
        self.all.push(new);
    }

    fn connect(&mut self, event: &Event) {
        let Some(&array) = self.by_id.get(&event.slack) else { return };
        for input in event.inputs() {
            // Inputs exist before what is computed from them: a loop cannot be true.
            if let Some(&input) = self.by_id.get(&input).filter(|&&input| input < array) {
                self.edges.push((array, input));
            }
        }
    }

    fn use_buffer(&mut self, position: usize, event: &Event) {
        if event.slack != 0 && !self.by_id.contains_key(&event.slack) {
            // Its creation fell out of the ring.
            self.create(position, event, WhatId(0));
        }
        let Some(&buffer) = self.by_addr.get(&event.addr) else { return };
        match self.by_id.get(&event.slack) {
            Some(&array) => self.all[array].buffer = Some(buffer),
            None => self.uses[buffer].has_unknown_user = true,
        }
        self.uses[buffer].is_taken = true;
    }

    /// The moment lies between an allocation and the event that says whose it is.
    fn take_late(&mut self, event: &Event) {
        let (array, buffer) = (self.by_id.get(&event.slack), self.by_addr.get(&event.addr));
        if let (Some(&array), Some(&buffer)) = (array, buffer.filter(|&&at| !self.uses[at].is_taken)) {
            self.all[array].buffer = Some(buffer);
            self.uses[buffer].is_taken = true;
        }
    }

    /// What an array is computed from, by position in `all`.
    pub fn inputs(&self, array: usize) -> impl Iterator<Item = usize> + '_ {
        self.edges[self.edges_of(array)].iter().map(|&(_, input)| input)
    }

    fn edges_of(&self, array: usize) -> Range<usize> {
        let first = self.edges.partition_point(|&(of, _)| of < array);
        let count = self.edges[first..].iter().take_while(|&&(of, _)| of == array).count();
        first..first + count
    }

    /// Waits for an evaluation: it has a primitive that did not run, and no buffer.
    pub fn is_waiting(&self, trace: &Trace, at: usize) -> bool {
        let array = &self.all[at];
        let primitive = trace.primitive(array.what);
        // `Synchronize` belongs to the evaluation under way.
        array.is_alive()
            && !array.is_evaluated
            && array.buffer.is_none()
            && !primitive.is_empty()
            && primitive != "Synchronize"
    }
}

/// Bytes of an array's elements; `None` when shape or dtype is not known.
pub(crate) fn bytes_of(trace: &Trace, what: WhatId) -> Option<u64> {
    let what = trace.what(what);
    let item = match trace.strings.get(what.dtype) {
        "bool" | "uint8" | "int8" => 1,
        "uint16" | "int16" | "float16" | "bfloat16" => 2,
        "uint32" | "int32" | "float32" => 4,
        "uint64" | "int64" | "float64" | "complex64" => 8,
        _ => return None,
    };
    let axes = what.shape.as_ref()?.iter().map(|&axis| u64::from(axis.unsigned_abs()));
    Some(axes.fold(item, u64::saturating_mul))
}
