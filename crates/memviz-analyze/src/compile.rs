//! Traces of compiled functions, found among the arrays of a recording.
//!
//! `mx.compile` runs the Python function with placeholders: leaf arrays of the inputs' shapes that never get a buffer, built
//! at the line of the call. What the body builds has the call's stack below its own. Both stay alive as long as the compiled
//! function keeps the trace. `mx.vmap` makes placeholders too; they die with the call, before anything is evaluated, so a
//! trace counts when its placeholders outlive that, or when a fused `Compiled…` primitive comes of it.
//!
//! Not seen: functions without array inputs, and stacks cut by `--depth` above the call.

use memviz_trace::{StackId, ThreadId, Trace, WhatId};
use rustc_hash::FxHashMap;

use crate::arrays::Arrays;

/// One trace of a compiled function. Positions are those of arrays in [`Arrays::all`].
#[derive(Clone, Debug)]
pub(crate) struct Traced {
    /// Stack of the call.
    pub call: StackId,
    /// Stack of the first array that the body built, or 0.
    pub body: StackId,
    /// Placeholders, in order of the inputs.
    pub placeholders: Vec<usize>,
    /// Arrays of the body.
    pub members: Vec<usize>,
    has_compiled: bool,
}

/// Every trace up to the moment, in order, and to which each array belongs.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    pub all: Vec<Traced>,
    of_array: Vec<Option<usize>>,
}

impl Traces {
    /// Finds the traces among `arrays`.
    pub fn find(trace: &Trace, arrays: &Arrays) -> Traces {
        let mut search = Search {
            trace,
            arrays,
            found: Traces::default(),
            is_of_placeholders: Vec::new(),
            open: FxHashMap::default(),
        };
        search.found.of_array = vec![None; arrays.all.len()];
        search.is_of_placeholders = vec![false; arrays.all.len()];
        for at in 0..arrays.all.len() {
            search.meet(at);
        }
        search.join_rewritten();
        let mut found = search.found;
        let (old, mut new) = (std::mem::take(&mut found.all), Vec::new());
        for traced in old {
            let is_compiled = traced.is_compiled(arrays);
            new.push(is_compiled.then_some(found.all.len()));
            found.all.extend(is_compiled.then_some(traced));
        }
        found.of_array.iter_mut().for_each(|of| *of = of.and_then(|old| new[old]));
        found
    }

    /// The trace that an array is part of.
    pub fn of(&self, array: usize) -> Option<usize> {
        self.of_array.get(array).copied().flatten()
    }
}

impl Traced {
    fn is_compiled(&self, arrays: &Arrays) -> bool {
        let Some(first) = self.placeholders.first().map(|&at| &arrays.all[at]) else { return false };
        let next = arrays.evaluations.partition_point(|&position| position < first.created);
        self.has_compiled || arrays.evaluations.get(next).is_some_and(|&evaluated| first.died > evaluated)
    }

    /// Whether the compiled function still keeps it.
    pub fn is_alive(&self, arrays: &Arrays) -> bool {
        self.placeholders.iter().any(|&at| arrays.all[at].is_alive())
    }

    /// Shapes and dtypes of the inputs.
    pub fn signature(&self, arrays: &Arrays) -> Vec<WhatId> {
        self.placeholders.iter().map(|&at| arrays.all[at].what).collect()
    }
}

struct Search<'a> {
    trace: &'a Trace,
    arrays: &'a Arrays,
    found: Traces,
    /// Whether an array is a placeholder or computed from one.
    is_of_placeholders: Vec<bool>,
    /// The newest trace of each thread, as long as what it builds may belong to it.
    open: FxHashMap<ThreadId, usize>,
}

impl Search<'_> {
    fn meet(&mut self, at: usize) {
        let array = &self.arrays.all[at];
        if array.built == StackId(0) || array.built.index() >= self.trace.stacks.stack_count() {
            return;
        }
        let open = self.open.get(&array.thread).copied();
        let below = open.map(|open| self.relation(self.found.all[open].call, array.built));
        match (open, below) {
            (Some(open), Some(Relation::Below)) => self.join(open, at),
            (Some(open), Some(Relation::Same)) if self.is_placeholder(at) => self.next_input(open, at),
            (Some(open), Some(Relation::Same)) => self.at_call(open, at),
            _ if self.is_placeholder(at) => self.begin(at),
            _ => drop(self.open.remove(&array.thread)),
        }
    }

    /// A leaf array with elements but without a buffer.
    fn is_placeholder(&self, at: usize) -> bool {
        let what = self.trace.what(self.arrays.all[at].what);
        let has_elements = what.shape.as_ref().is_some_and(|axes| !axes.contains(&0));
        self.arrays.all[at].buffer.is_none() && has_elements && self.trace.strings.get(what.primitive).is_empty()
    }

    fn begin(&mut self, at: usize) {
        let array = &self.arrays.all[at];
        let new = Traced {
            call: array.built,
            body: StackId(0),
            placeholders: vec![at],
            members: Vec::new(),
            has_compiled: false,
        };
        self.open.insert(array.thread, self.found.all.len());
        self.found.of_array[at] = Some(self.found.all.len());
        self.is_of_placeholders[at] = true;
        self.found.all.push(new);
    }

    /// A placeholder at the line of the call: one input more, or the next trace when the body was met.
    fn next_input(&mut self, open: usize, at: usize) {
        let traced = &mut self.found.all[open];
        if !traced.members.is_empty() {
            return self.begin(at);
        }
        traced.placeholders.push(at);
        self.is_of_placeholders[at] = true;
        self.found.of_array[at] = Some(open);
    }

    fn join(&mut self, open: usize, at: usize) {
        let traced = &mut self.found.all[open];
        if traced.body == StackId(0) {
            traced.body = self.arrays.all[at].built;
        }
        traced.members.push(at);
        self.found.of_array[at] = Some(open);
        self.is_of_placeholders[at] = self.arrays.inputs(at).any(|input| self.is_of_placeholders[input]);
    }

    /// At the line of the call: a rewritten part of the trace, or already what the call returns. Both may use its constants,
    /// only the former its placeholders.
    fn at_call(&mut self, open: usize, at: usize) {
        let is_part = self
            .arrays
            .inputs(at)
            .any(|input| self.is_of_placeholders[input] && self.found.of_array[input] == Some(open));
        let is_fused = self.trace.primitive(self.arrays.all[at].what).starts_with("Compiled");
        let traced = &mut self.found.all[open];
        traced.has_compiled |= is_fused && is_part;
        if is_part {
            traced.members.push(at);
            self.found.of_array[at] = Some(open);
            self.is_of_placeholders[at] = true;
        }
    }

    /// Rewritten parts that use constants only: what uses them is part of the trace.
    fn join_rewritten(&mut self) {
        for at in (0..self.arrays.all.len()).rev() {
            let Some(of) = self.found.of_array[at] else { continue };
            let traced = &mut self.found.all[of];
            for input in self.arrays.inputs(at) {
                let is_after = traced.placeholders.first().is_some_and(|&first| input > first);
                if is_after && self.found.of_array[input].is_none() && self.arrays.all[input].built == traced.call {
                    traced.members.push(input);
                    self.found.of_array[input] = Some(of);
                }
            }
        }
    }

    fn relation(&self, call: StackId, stack: StackId) -> Relation {
        // A caller is interned before the stack that calls on, so ids fall along the way out.
        let mut at = stack;
        while at > call {
            at = self.trace.stacks.caller(at);
        }
        match (at == call, stack == call) {
            (true, true) => Relation::Same,
            (true, false) => Relation::Below,
            _ => Relation::Elsewhere,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    Same,
    Below,
    Elsewhere,
}
