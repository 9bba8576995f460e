//! Fills a [`Trace`].
//!
//! A recorder knows the end of a run exactly (which buffers exist, and the sums), while the first events may have fallen out
//! of its ring. So the state before the first event is not recorded: [`TraceBuilder::finish`] derives it, by undoing the
//! events from the last to the first. `Trace::check` then replays forward and compares with MLX's counters.
//!
//! A file that was written event by event may lack its end but has its beginning: then what existed before the first event
//! is found going forward, from the sums at the start.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::event::{Action, Event};
use crate::ids::{StringId, ThreadId, WhatId};
use crate::ledger::{Buffer, Totals};
use crate::trace::{Base, Thread, Trace, What};

/// Collects the parts of a trace. The tables of [`Trace`] are filled in place; this adds what needs care.
#[derive(Debug, Default)]
pub struct TraceBuilder {
    /// The trace under construction. `start` and `base` are derived by `finish` and need not be set.
    pub trace: Trace,
    /// Buffers that exist after the last event, those below the minimum size left out.
    pub end: Option<Vec<Buffer>>,
    /// Sums after the last event, all bytes included.
    pub end_totals: Option<Totals>,
    /// Instead of `end`: buffers known before the first event, and the sums of all that exist then.
    pub start: Option<(Vec<Buffer>, Totals)>,
    what_ids: FxHashMap<What, WhatId>,
}

impl TraceBuilder {
    /// Appends an event and counts it as seen.
    pub fn push(&mut self, event: Event) {
        if event.action.is_buffer() {
            self.trace.counts.seen.add(event.size);
        }
        self.trace.events.push(event);
    }

    /// The id of a primitive, shape and dtype, new or old.
    pub fn intern_what(&mut self, what: What) -> WhatId {
        if self.trace.whats.is_empty() {
            self.trace.whats.push(What::default());
            self.what_ids.insert(What::default(), WhatId(0));
        }
        let next = WhatId(self.trace.whats.len() as u32);
        let id = *self.what_ids.entry(what.clone()).or_insert(next);
        if id == next {
            self.trace.whats.push(what);
        }
        id
    }

    /// Appends a thread.
    pub fn push_thread(&mut self, thread: Thread) -> ThreadId {
        if self.trace.threads.is_empty() {
            self.trace.threads.push(Thread::default());
        }
        self.trace.threads.push(thread);
        ThreadId((self.trace.threads.len() - 1) as u16)
    }

    /// The id of a string.
    pub fn intern(&mut self, text: &str) -> StringId {
        self.trace.strings.intern(text)
    }

    /// The finished trace, with the state before its first event.
    pub fn finish(mut self) -> Trace {
        if self.trace.whats.is_empty() {
            self.trace.whats.push(What::default());
        }
        if self.trace.threads.is_empty() {
            self.trace.threads.push(Thread::default());
        }
        if let Some(end) = self.end.take() {
            let (start, base) = undo(&self.trace.events, end, self.end_totals.unwrap_or_default());
            self.trace.start = start;
            self.trace.base = base;
        } else if let Some((known, totals)) = self.start.take() {
            let start = found_forward(&self.trace.events, known);
            self.trace.base = beside(&start, totals.active.into(), totals.cached.into());
            self.trace.start = start;
        }
        self.trace
    }
}

/// Buffers before `events`: the known ones, and those whose first event ends a use that no event began.
fn found_forward(events: &[Event], mut start: Vec<Buffer>) -> Vec<Buffer> {
    let mut seen: FxHashSet<u64> = start.iter().map(|buffer| buffer.addr).collect();
    for event in events.iter().filter(|event| event.action.is_buffer()) {
        let is_new = seen.insert(event.addr);
        match event.action {
            Action::AllocNew | Action::AllocMakeBuffer => {}
            Action::AllocReuse | Action::FreeCacheToOs if is_new => {
                start.push(Buffer { is_cached: true, ..before(event) });
            }
            _ if is_new => start.push(before(event)),
            _ => {}
        }
    }
    start.sort_unstable_by_key(|buffer| buffer.addr);
    start
}

/// State before `events`, from the state after them. Never fails: an event that contradicts the state leaves a state from
/// which the forward replay of `Trace::check` meets the same contradiction and names it.
fn undo(events: &[Event], end: Vec<Buffer>, end_totals: Totals) -> (Vec<Buffer>, Base) {
    let mut buffers: FxHashMap<u64, Buffer> = end.into_iter().map(|buffer| (buffer.addr, buffer)).collect();
    let mut active = i128::from(end_totals.active);
    let mut cached = i128::from(end_totals.cached);
    for event in events.iter().rev() {
        let size = i128::from(event.size);
        match event.action {
            Action::AllocNew | Action::AllocMakeBuffer => {
                buffers.remove(&event.addr);
                active -= size;
            }
            Action::AllocReuse => {
                buffers.insert(event.addr, Buffer { is_cached: true, ..before(event) });
                active -= size;
                cached += size;
            }
            Action::FreeActiveToCache => {
                buffers.insert(event.addr, before(event));
                active += size;
                cached -= size;
            }
            Action::FreeActiveToOs | Action::Release => {
                buffers.insert(event.addr, before(event));
                active += size;
            }
            Action::FreeCacheToOs => {
                buffers.insert(event.addr, Buffer { is_cached: true, ..before(event) });
                cached += size;
            }
            Action::Oom => active -= i128::from(event.addr),
            Action::FilteredNet => {
                active -= i128::from(event.addr as i64);
                cached -= i128::from(event.size as i64);
            }
            _ => {}
        }
    }
    let mut start: Vec<Buffer> = buffers.into_values().collect();
    start.sort_unstable_by_key(|buffer| buffer.addr);
    let base = beside(&start, active, cached);
    (start, base)
}

/// What is left of the sums when `buffers` are taken off.
fn beside(buffers: &[Buffer], mut active: i128, mut cached: i128) -> Base {
    for buffer in buffers {
        let sum = if buffer.is_cached { &mut cached } else { &mut active };
        *sum -= i128::from(buffer.size);
    }
    Base { active: clamp(active), cached: clamp(cached) }
}

/// A base below zero means that the recorder missed something: 0 here, and the first checkpoint shows the difference.
fn clamp(bytes: i128) -> u64 {
    u64::try_from(bytes.max(0)).unwrap_or(u64::MAX)
}

/// The buffer as it was before `event` ended its use; when that use began is not known.
fn before(event: &Event) -> Buffer {
    Buffer {
        alloc_nanos: 0,
        triggered: crate::StackId(0),
        thread: ThreadId(0),
        is_wrapper: event.action == Action::Release,
        ..Buffer::from_alloc(event)
    }
}
