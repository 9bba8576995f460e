//! A recording handed out while it runs: what the recorder drained, with the ids of one trace.
//!
//! The writer's thread owns a [`Translator`], takes what came ([`take`], which holds the recorder's lock for microseconds)
//! and turns it into events, tables and notes of a trace. Call sites that it meets for the first time need the GIL once;
//! the caller decides how to get it, or to go on without.
//!
//! Not here: the thread, the file and the GIL (`memviz-py`).

use std::collections::VecDeque;

use memviz_pyframes::Site;
use memviz_trace::{
    Buffer, Checkpoint, Context, Counts, Event, Frame, Mark, MarkKind, StackId, StackTable, StringId, Strings, Thread,
    Totals, What,
};

use crate::mlx;
use crate::names::{SiteKey, Stacks};
use crate::recorder::{Drained, Known, RawWhat, Recorder, ThreadNote};
use crate::whats::NO_DTYPE;
use crate::{crash, state};

pub use crate::names::resolve;

/// Tables of the trace so far, and what the recorder's ids are in it.
pub struct Translator {
    known: Known,
    stacks: Stacks,
    strings: Strings,
    /// By the recorder's id.
    string_ids: Vec<StringId>,
    whats: Vec<What>,
    threads: Vec<Thread>,
}

/// What came since the last time.
#[derive(Debug, Default)]
pub struct Batch {
    /// Events with the recorder's stacks: see [`Translator::translate`].
    pub chunks: VecDeque<Vec<Event>>,
    /// Events of earlier batches, as they are known now.
    pub amended: Vec<(u64, Event)>,
    /// Checkpoints.
    pub checkpoints: Vec<Checkpoint>,
    /// Steps and annotations.
    pub marks: Vec<Mark>,
    /// What became of all events up to the end of this batch.
    pub counts: Counts,
    /// Call sites whose text is needed.
    pub unknown: Vec<SiteKey>,
}

impl Batch {
    /// Nothing came.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.amended.is_empty() && self.checkpoints.is_empty() && self.marks.is_empty()
    }
}

/// State before the first event: the buffers that are known, all cached, and MLX's counters. Right after the start.
pub fn start_of(recorder: &Recorder) -> (Vec<Buffer>, Totals) {
    (recorder.buffers_at_start().to_vec(), recorder.totals_at_start())
}

/// Takes what the running recording has; `None` when nothing is recorded, or the program is ending.
pub fn take(translator: &mut Translator) -> Option<Batch> {
    let drained = with_recorder(|recorder| {
        state::drain_evictions(recorder);
        recorder.drain(&mut translator.known)
    })?;
    Some(translator.begin(drained))
}

fn with_recorder<R>(run: impl FnOnce(&mut Recorder) -> R) -> Option<R> {
    state::recorder_unless_ending()?.as_mut().map(run)
}

/// Takes what a recording has left that has stopped.
pub fn take_last(translator: &mut Translator, recorder: &mut Recorder) -> Batch {
    if recorder.options().context == Context::State {
        recorder.amend_active();
    }
    let drained = recorder.drain(&mut translator.known);
    translator.begin(drained)
}

/// Takes what there is on the way down, with the allocation that failed, if one did. Empty when the recorder cannot be had.
pub fn take_at_the_end(translator: &mut Translator, ended: &crash::Ended) -> Batch {
    let drained = state::with_recorder_at_the_end(|recorder| {
        let recorder = recorder.as_mut()?;
        if let Some(requested) = ended.requested {
            let event = Event { time_nanos: state::now(), triggered: ended.triggered, ..Event::default() };
            recorder.oom(requested, 0, event);
        }
        if recorder.options().context == Context::State {
            recorder.amend_active();
        }
        Some(recorder.drain(&mut translator.known))
    });
    translator.begin(drained.flatten().unwrap_or_default())
}

/// Gives chunks back to the running recording.
pub fn give_back(chunks: Vec<Vec<Event>>) {
    // When nothing is recorded any more they are simply dropped.
    let _stopped = with_recorder(|recorder| recorder.give_back(chunks));
}

impl Translator {
    /// Frames of files in `own_folder`, the Python package's, are left out; with a `depth`, outer frames too.
    pub fn new(own_folder: &str, depth: u32) -> Translator {
        Translator {
            known: Known::default(),
            stacks: Stacks::new(own_folder, depth),
            strings: Strings::default(),
            string_ids: Vec::new(),
            whats: vec![What::default()],
            threads: vec![Thread::default()],
        }
    }

    fn begin(&mut self, drained: Drained) -> Batch {
        self.string_ids.extend(drained.strings.iter().map(|text| self.strings.intern(text)));
        for what in drained.whats {
            let what = self.what(what);
            self.whats.push(what);
        }
        if let Some(threads) = drained.threads {
            let thread =
                |note: &ThreadNote| Thread { native_id: note.native_id, name: string(&self.string_ids, note.name) };
            self.threads = std::iter::once(Thread::default()).chain(threads.iter().map(thread)).collect();
        }
        let mut marks = drained.marks;
        for mark in &mut marks {
            if let MarkKind::AnnotationBegin(name) = &mut mark.kind {
                *name = string(&self.string_ids, *name);
            }
        }
        let amended = drained.amended.iter().map(|(_, event)| event);
        let events = drained.chunks.iter().flatten().chain(amended);
        let unknown = self.stacks.unknown_sites(events.flat_map(|event| [event.built, event.triggered]));
        let Drained { chunks, counts, amended, checkpoints, .. } = drained;
        Batch { chunks, amended, checkpoints, marks, counts, unknown }
    }

    fn what(&mut self, raw: RawWhat) -> What {
        What {
            primitive: string(&self.string_ids, raw.primitive),
            dtype: mlx::DTYPES.get(usize::from(raw.dtype)).map_or(StringId(0), |name| self.strings.intern(name)),
            shape: (raw.dtype != NO_DTYPE).then_some(raw.shape),
            is_temporary: raw.is_temporary,
        }
    }

    /// Takes in the text of call sites.
    pub fn learn(&mut self, sites: Vec<(SiteKey, Site)>) {
        self.stacks.learn(sites, &mut self.strings);
    }

    /// Gives an event the trace's stacks.
    #[inline]
    pub fn translate(&mut self, event: &mut Event) {
        event.built = self.stacks.resolve(event.built, &mut self.strings);
        event.triggered = self.stacks.resolve(event.triggered, &mut self.strings);
    }

    /// The trace's stack of a stack of the recorder.
    pub fn stack(&mut self, stack: StackId) -> StackId {
        self.stacks.resolve(stack, &mut self.strings)
    }

    /// A stack from (file, function, line), outermost first.
    pub fn intern_stack(&mut self, frames: &[(String, String, u32)]) -> StackId {
        let mut stack = StackId(0);
        for (file, function, line) in frames {
            let (file, function) = (self.strings.intern(file), self.strings.intern(function));
            let frame = Frame { file, function, line: *line, ..Frame::default() };
            let frame = self.stacks.table_mut().intern_frame(frame);
            stack = self.stacks.table_mut().push(stack, frame);
        }
        stack
    }

    /// Strings, stacks, whats and threads so far.
    pub fn tables(&self) -> (&Strings, &StackTable, &[What], &[Thread]) {
        (&self.strings, self.stacks.table(), &self.whats, &self.threads)
    }
}

fn string(ids: &[StringId], id: StringId) -> StringId {
    ids.get(id.index()).copied().unwrap_or_default()
}
