//! What ran when: evaluations of each thread, and which threads had events.
//!
//! An evaluation is a run of allocations on one thread with the same `triggered` stack; it ends where the thread enters another
//! one, Python makes a leaf, or a step begins.

use memviz_analyze::{LineNames, UserLines};
use memviz_trace::{Event, StackId, ThreadId, Trace};
use rustc_hash::FxHashMap;

use crate::axes::Axes;
use crate::groups::cut;
use crate::types::Moment;

/// Events for which one mask of threads stands.
const CHUNK: u32 = 64;
/// Bit of a mask for all threads with this number or a higher one.
pub(crate) const LAST_THREAD: usize = 63;

/// Evaluations and threads of a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activity {
    /// By their ends.
    evaluations: Vec<Evaluation>,
    /// Line of each stack that evaluates.
    labels: FxHashMap<StackId, String>,
    /// Threads of each chunk of events, a bit each.
    threads: Vec<u64>,
}

/// An evaluation: the moments after `from`, up to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Evaluation {
    pub(crate) from: Moment,
    pub(crate) to: Moment,
    pub(crate) triggered: StackId,
    pub(crate) thread: ThreadId,
}

/// Gathers an [`Activity`] event by event.
pub(crate) struct Gathering {
    activity: Activity,
    /// By thread.
    open: Vec<Option<Evaluation>>,
    /// Threads that may have one, so that a step costs no more than what it closes.
    busy: Vec<usize>,
    /// Moments at which steps begin, the next one last.
    steps: Vec<Moment>,
}

impl Gathering {
    pub(crate) fn new(axes: &Axes) -> Gathering {
        let steps = axes.steps().iter().rev().map(|step| step.start).collect();
        Gathering { activity: Activity::default(), open: Vec::new(), busy: Vec::new(), steps }
    }

    /// Takes in the event after the moment `before`.
    pub(crate) fn event(&mut self, before: Moment, event: &Event) {
        if before.is_multiple_of(CHUNK) {
            self.activity.threads.push(0);
        }
        if let Some(mask) = self.activity.threads.last_mut() {
            *mask |= bit_of(event.thread);
        }
        while self.steps.pop_if(|step| *step <= before).is_some() {
            self.close_all();
        }
        if !event.action.is_buffer() {
            return;
        }
        let is_leaf = event.action.is_alloc() && event.built != StackId(0);
        if event.triggered != StackId(0) || is_leaf {
            self.entered(before, event);
        }
    }

    fn entered(&mut self, before: Moment, event: &Event) {
        let thread = event.thread.index();
        if self.open.len() <= thread {
            self.open.resize(thread + 1, None);
        }
        let open = &mut self.open[thread];
        if let Some(ended) = open.take_if(|open| open.triggered != event.triggered) {
            self.activity.evaluations.push(ended);
        }
        if event.action.is_alloc() && event.triggered != StackId(0) {
            if open.is_none() {
                self.busy.push(thread);
            }
            let (to, triggered, thread) = (before + 1, event.triggered, event.thread);
            open.get_or_insert(Evaluation { from: before, to, triggered, thread }).to = to;
        }
    }

    fn close_all(&mut self) {
        let open = self.busy.drain(..).filter_map(|thread| self.open.get_mut(thread).and_then(Option::take));
        self.activity.evaluations.extend(open);
    }

    /// Names the lines that evaluate.
    pub(crate) fn finish(mut self, trace: &Trace) -> Activity {
        self.close_all();
        let (lines, names) = (UserLines::new(trace), LineNames::new(trace));
        for evaluation in &self.activity.evaluations {
            self.activity.labels.entry(evaluation.triggered).or_insert_with(|| {
                let line = lines.line_of(evaluation.triggered);
                line.map_or_else(|| "no Python line".to_owned(), |frame| cut(&names.name(trace, frame)))
            });
        }
        self.activity.evaluations.shrink_to_fit();
        self.activity
    }
}

impl Activity {
    /// Evaluations that have a moment in common with `first..=last`.
    pub(crate) fn evaluations(&self, first: Moment, last: Moment) -> impl Iterator<Item = &Evaluation> {
        self.evaluations.iter().filter(move |evaluation| evaluation.from <= last && evaluation.to >= first)
    }

    pub(crate) fn label(&self, evaluation: &Evaluation) -> &str {
        self.labels.get(&evaluation.triggered).map_or("", |label| label)
    }

    /// Threads of the events between two moments, a bit each.
    pub(crate) fn threads(&self, trace: &Trace, from: Moment, to: Moment) -> u64 {
        let mut mask = 0;
        let mut at = from;
        while at < to {
            let is_whole = at.is_multiple_of(CHUNK) && to - at >= CHUNK;
            if is_whole {
                mask |= self.threads.get((at / CHUNK) as usize).copied().unwrap_or(0);
            } else {
                mask |= trace.events.get(at as usize).map_or(0, |event| bit_of(event.thread));
            }
            at += if is_whole { CHUNK } else { 1 };
        }
        mask
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&self.evaluations[..]) + size_of_val(&self.threads[..])
    }
}

fn bit_of(thread: ThreadId) -> u64 {
    1 << thread.index().min(LAST_THREAD)
}
