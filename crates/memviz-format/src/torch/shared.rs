//! Frame lists and metadata texts: each written once, then referred to.
//!
//! Memory is bounded by the tables of the trace and by the texts of one step.

use std::fmt::Write as _;

use memviz_trace::{Event, FrameId, MarkCursor, StackId, StringId, ThreadId, Trace, WhatId};
use rustc_hash::FxHashMap;

use super::opcodes as op;
use super::pickler::{Memo, Pickler};
use super::words::Word;

/// What decides the text of an allocation within one step.
#[derive(PartialEq, Eq, Hash)]
struct AllocKey {
    what: WhatId,
    triggered: StackId,
    thread: ThreadId,
    annotation: Option<StringId>,
}

/// Memo numbers of what was written so far.
pub(super) struct Shared<'t> {
    trace: &'t Trace,
    frames: Vec<Option<Memo>>,
    stacks: Vec<Option<Memo>>,
    step: Option<u64>,
    allocs: FxHashMap<AllocKey, Memo>,
    owners: FxHashMap<(WhatId, StackId), Memo>,
    scratch: String,
}

impl<'t> Shared<'t> {
    pub(super) fn new(trace: &'t Trace) -> Shared<'t> {
        Shared {
            trace,
            frames: vec![None; trace.stacks.frame_count()],
            stacks: vec![None; trace.stacks.stack_count()],
            step: None,
            allocs: FxHashMap::default(),
            owners: FxHashMap::default(),
            scratch: String::new(),
        }
    }

    /// Writes the frame list of a stack, innermost frame first.
    pub(super) fn frames(&mut self, pickler: &mut Pickler<'_>, stack: StackId) {
        if stack == StackId(0) || stack.index() >= self.stacks.len() {
            return pickler.byte(op::EMPTY_LIST);
        }
        if let Some(memo) = self.stacks[stack.index()] {
            return pickler.get(memo);
        }
        let trace = self.trace;
        pickler.list(trace.stacks.innermost_first(stack), |pickler, frame| self.frame(pickler, frame));
        self.stacks[stack.index()] = Some(pickler.memoize());
    }

    fn frame(&mut self, pickler: &mut Pickler<'_>, id: FrameId) {
        if let Some(memo) = self.frames[id.index()] {
            return pickler.get(memo);
        }
        let frame = self.trace.stacks.frame(id);
        pickler.begin_dict();
        pickler.word(Word::Name);
        pickler.shared(or(self.trace.strings.get(frame.function), "??"));
        pickler.word(Word::Filename);
        pickler.shared(or(self.trace.strings.get(frame.file), "??"));
        pickler.word(Word::Line);
        pickler.int(frame.line.into());
        pickler.end_dict();
        self.frames[id.index()] = Some(pickler.memoize());
    }

    /// Writes the text of an allocation.
    pub(super) fn alloc_text(&mut self, pickler: &mut Pickler<'_>, event: &Event, marks: &MarkCursor<'_>) {
        if marks.step() != self.step {
            self.step = marks.step();
            self.allocs.clear();
        }
        let annotation = marks.annotations(event.thread).last().copied();
        let key = AllocKey { what: event.what, triggered: event.triggered, thread: event.thread, annotation };
        if let Some(&memo) = self.allocs.get(&key) {
            return pickler.get(memo);
        }
        self.describe(event.what);
        self.line("evaluated at", event.triggered);
        self.moment(&key);
        pickler.text(&self.scratch);
        self.allocs.insert(key, pickler.memoize());
    }

    /// Writes the text of a buffer whose allocation is not at hand: on frees and on blocks.
    pub(super) fn owner_text(&mut self, pickler: &mut Pickler<'_>, what: WhatId, built: StackId) {
        if let Some(&memo) = self.owners.get(&(what, built)) {
            return pickler.get(memo);
        }
        self.describe(what);
        self.line("built at", built);
        pickler.text(&self.scratch);
        self.owners.insert((what, built), pickler.memoize());
    }

    /// Primitive, dtype and shape: "Matmul float32 [64, 4096]".
    fn describe(&mut self, id: WhatId) {
        let strings = &self.trace.strings;
        self.scratch.clear();
        let Some(what) = self.trace.whats.get(id.index()) else { return };
        let primitive = strings.get(what.primitive);
        self.scratch.push_str(match (what.is_temporary, primitive, id) {
            (true, ..) => "temporary in ",
            (false, "", WhatId(0)) => "array not known",
            (false, "", _) => "leaf array",
            _ => "",
        });
        self.scratch.push_str(primitive);
        if !strings.get(what.dtype).is_empty() {
            let _ = write!(self.scratch, " {}", strings.get(what.dtype));
        }
        if let Some(shape) = &what.shape {
            let _ = write!(self.scratch, " {shape:?}");
        }
    }

    /// Innermost Python line of a stack; the full paths are in the frames.
    fn line(&mut self, label: &str, stack: StackId) {
        let table = &self.trace.stacks;
        if stack.index() >= table.stack_count() {
            return;
        }
        let mut frames = table.innermost_first(stack).map(|id| table.frame(id));
        let Some(frame) = frames.find(|frame| !frame.is_native) else { return };
        let path = self.trace.strings.get(frame.file);
        let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let function = self.trace.strings.get(frame.function);
        let _ = write!(self.scratch, "\n{label} {file}:{} {function}", frame.line);
    }

    fn moment(&mut self, key: &AllocKey) {
        let strings = &self.trace.strings;
        let mut separator = '\n';
        let mut part = |text: &mut String, label: &str, value: &dyn std::fmt::Display| {
            let _ = write!(text, "{separator}{label} {value}");
            separator = ' ';
        };
        if let Some(step) = self.step {
            part(&mut self.scratch, "step", &step);
        }
        if let Some(name) = key.annotation {
            part(&mut self.scratch, "in", &strings.get(name));
        }
        let thread = self.trace.threads.get(key.thread.index()).map_or("", |thread| strings.get(thread.name));
        if !thread.is_empty() {
            part(&mut self.scratch, "on thread", &thread);
        }
    }
}

fn or<'a>(text: &'a str, fallback: &'a str) -> &'a str {
    if text.is_empty() { fallback } else { text }
}
