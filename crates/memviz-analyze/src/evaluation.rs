//! The evaluation under way at a moment, and which of its buffers are temporaries.
//!
//! An evaluation is a run of allocations on one thread with the same `triggered` stack. It is over when that thread allocates
//! without an evaluation (Python made a leaf), has an event of another stack (Python went on), or a step mark is set.
//!
//! A buffer that was active at the moment is a temporary if the evaluation made it and MLX itself freed it, by a worker or
//! within the evaluation, before the thread's next allocation for anything else. A buffer that a line of Python let go of is
//! none: a name held it. Scratch memory of a primitive (`What::is_temporary`) always is one.

use memviz_trace::{Buffer, Event, MarkKind, StackId, ThreadId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// An evaluation under way after some event, and its temporaries by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evaluation {
    /// Stack of the line that evaluates, `None` when no evaluation was under way.
    pub(crate) triggered: Option<StackId>,
    temporaries: FxHashSet<u64>,
}

/// Which evaluation a thread is in after an event: `None` when the event says nothing about it. Events about arrays do not
/// count, so that a recording gives the same answers at every level.
pub(crate) fn entered(event: &Event) -> Option<StackId> {
    if !event.action.is_buffer() {
        return None;
    }
    let is_leaf = event.action.is_alloc() && event.built != StackId(0);
    (event.triggered != StackId(0) || is_leaf).then_some(event.triggered)
}

impl Evaluation {
    /// The evaluation under way after the first `after_events` events.
    pub(crate) fn at(trace: &Trace, after_events: usize) -> Evaluation {
        let before = trace.events.get(..after_events).unwrap_or_default();
        let Some(last) = before.last().filter(|last| last.action.is_alloc() && last.triggered != StackId(0)) else {
            return Evaluation::default();
        };
        let (thread, triggered) = (last.thread, last.triggered);
        let made = made_before(before, thread, triggered, last_step_mark(trace, after_events));
        let limit = next_step_mark(trace, after_events);
        let after = trace.events.get(after_events..limit).unwrap_or_default();
        Evaluation { triggered: Some(triggered), temporaries: freed_by_mlx(after, thread, triggered, made) }
    }

    /// Whether a buffer that is active at the moment is a temporary.
    pub(crate) fn is_temporary(&self, trace: &Trace, buffer: &Buffer) -> bool {
        trace.what(buffer.what).is_temporary || self.temporaries.contains(&buffer.addr)
    }
}

/// Position of the last step mark at or before `position`, 0 without one.
fn last_step_mark(trace: &Trace, position: usize) -> usize {
    step_marks(trace).take_while(|at| *at < position).last().unwrap_or(0)
}

fn next_step_mark(trace: &Trace, position: usize) -> usize {
    step_marks(trace).find(|at| *at >= position).unwrap_or(trace.events.len())
}

fn step_marks(trace: &Trace) -> impl Iterator<Item = usize> + '_ {
    let steps = trace.marks.iter().filter(|mark| matches!(mark.kind, MarkKind::Step(_)));
    steps.map(|mark| (mark.index.saturating_sub(trace.first_index) as usize).min(trace.events.len()))
}

/// Address and allocation time of what the evaluation had allocated.
fn made_before(before: &[Event], thread: ThreadId, triggered: StackId, from: usize) -> FxHashMap<u64, bool> {
    let mut last_of_address: FxHashMap<u64, bool> = FxHashMap::default();
    for event in before.get(from..).unwrap_or_default().iter().rev() {
        if event.thread == thread && entered(event).is_some_and(|stack| stack != triggered) {
            break;
        }
        if event.action.is_alloc() || event.action.is_free() {
            let is_its_own = event.action.is_alloc() && event.thread == thread && event.triggered == triggered;
            last_of_address.entry(event.addr).or_insert(is_its_own);
        }
    }
    last_of_address
}

fn freed_by_mlx(
    after: &[Event],
    thread: ThreadId,
    triggered: StackId,
    mut made: FxHashMap<u64, bool>,
) -> FxHashSet<u64> {
    let mut freed = FxHashSet::default();
    let mut is_over = false;
    for event in after {
        let enters = (event.thread == thread).then(|| entered(event)).flatten();
        is_over |= enters.is_some_and(|stack| stack != triggered);
        if is_over && enters.is_some() && event.action.is_alloc() {
            break;
        }
        if event.action.is_free() {
            let is_own = made.remove(&event.addr).unwrap_or(false);
            if is_own && (event.triggered == StackId(0) || event.triggered == triggered) {
                freed.insert(event.addr);
            }
        }
    }
    freed
}
