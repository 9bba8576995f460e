//! What a program asked of MLX's allocator: the calls behind a recording's events, for any policy to answer again.
//!
//! One pass over the events gives each use of a buffer a dense number, so that a replay looks nothing up by address. What
//! the recorded allocator decided (reuse, cache or system, evictions) is left out, but for two things that the program did:
//! a changed cache limit, and `clear_cache`, which is read off evictions that leave nothing cached.
//!
//! Needs events in order; an event that cannot be true (an address freed twice) is left out and counted.

use memviz_trace::{Action, Event, Mark, MarkKind, Trace};
use rustc_hash::FxHashMap;

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Bytes asked for, bytes of a wrapper, the cache's limit, or the change of unlisted active bytes (two's complement).
    pub(crate) bytes: u64,
    /// Events of the trace up to and with the one that shows the call.
    pub(crate) after_events: u32,
    /// Number of the buffer's use, for allocations and frees.
    pub(crate) slot: u32,
    /// What is asked.
    pub(crate) kind: CallKind,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// `malloc`.
    Malloc,
    /// `free`, or the release of a wrapper.
    Free,
    /// `make_buffer`.
    Wrap,
    /// A `malloc` that failed; `slot` is not used.
    Failed,
    /// Active bytes of no known buffer change.
    Base,
    /// `set_cache_limit`.
    CacheLimit,
    /// `clear_cache`.
    Clear,
    /// A step ends.
    Step,
}

/// A buffer that exists before the first event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartBuffer {
    pub(crate) requested: u64,
    pub(crate) is_cached: bool,
    pub(crate) slot: u32,
}

/// All calls of a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    pub(crate) start: Vec<StartBuffer>,
    /// Active bytes before the first event that no buffer of `start` has.
    pub(crate) base: u64,
    pub(crate) calls: Vec<Call>,
    /// The cache's limit before the first event, where it was recorded.
    pub(crate) start_limit: Option<u64>,
    /// Slots are `0..slots`.
    pub(crate) slots: u32,
    /// Number of `malloc`s.
    pub(crate) mallocs: u64,
    /// Number of step marks.
    pub(crate) steps: u64,
    /// Events that cannot be true.
    pub(crate) skipped: u64,
}

impl Calls {
    /// The calls of `trace`.
    pub(crate) fn of(trace: &Trace) -> Calls {
        let mut pass = Pass::new(trace);
        for (position, event) in trace.events.iter().enumerate() {
            pass.marks_before(trace.first_index + position as u64, position);
            pass.event(position, event);
        }
        pass.marks_before(u64::MAX, trace.events.len());
        pass.calls
    }
}

/// The limit before the first allocator call: a mark beside it, or that of a process that sets none.
pub(crate) fn start_limit(trace: &Trace) -> Option<u64> {
    let first = trace.events.iter().position(|event| event.action.is_buffer()).unwrap_or(trace.events.len());
    let before = trace.marks.iter().take_while(|mark| mark.index <= trace.first_index + first as u64);
    let limits = before.filter_map(|mark| match mark.kind {
        MarkKind::CacheLimit(bytes) => Some(bytes),
        _ => None,
    });
    limits.last()
}

struct Pass<'a> {
    trace: &'a Trace,
    calls: Calls,
    active: FxHashMap<u64, u32>,
    unused: Vec<u32>,
    /// The use whose buffer is between two addresses.
    moving: Option<u32>,
    cached: u64,
    marks: &'a [Mark],
    /// The recorded allocator evicts on its own, inside `malloc`.
    trims: bool,
}

impl<'a> Pass<'a> {
    fn new(trace: &'a Trace) -> Pass<'a> {
        let mut pass = Pass {
            trace,
            calls: Calls { base: trace.base.active, start_limit: start_limit(trace), ..Calls::default() },
            active: FxHashMap::default(),
            unused: Vec::new(),
            moving: None,
            cached: 0,
            marks: &trace.marks,
            trims: trace.header.backend != "cpu",
        };
        pass.calls.calls.reserve(trace.events.len());
        for buffer in &trace.start {
            let slot = pass.new_slot();
            let requested = buffer.size - u64::from(buffer.slack).min(buffer.size);
            pass.calls.start.push(StartBuffer { requested, is_cached: buffer.is_cached, slot });
            if buffer.is_cached {
                pass.cached = pass.cached.saturating_add(buffer.size);
            } else {
                pass.active.insert(buffer.addr, slot);
            }
        }
        pass
    }

    fn new_slot(&mut self) -> u32 {
        self.unused.pop().unwrap_or_else(|| {
            self.calls.slots += 1;
            self.calls.slots - 1
        })
    }

    fn push(&mut self, after_events: usize, kind: CallKind, slot: u32, bytes: u64) {
        let after_events = u32::try_from(after_events).unwrap_or(u32::MAX);
        self.calls.calls.push(Call { bytes, after_events, slot, kind });
    }

    fn marks_before(&mut self, index: u64, after_events: usize) {
        while let Some((mark, rest)) = self.marks.split_first().filter(|(mark, _)| mark.index <= index) {
            self.marks = rest;
            match mark.kind {
                MarkKind::Step(_) => {
                    self.calls.steps += 1;
                    self.push(after_events, CallKind::Step, 0, 0);
                }
                MarkKind::CacheLimit(bytes) => self.push(after_events, CallKind::CacheLimit, 0, bytes),
                MarkKind::AnnotationBegin(_) | MarkKind::AnnotationEnd => {}
            }
        }
    }

    #[inline]
    fn event(&mut self, position: usize, event: &Event) {
        let after = position + 1;
        match event.action {
            Action::AllocNew if event.is_move() => self.moved(event),
            Action::AllocNew | Action::AllocReuse => self.malloc(after, event),
            Action::AllocMakeBuffer => self.begin(after, CallKind::Wrap, event),
            Action::FreeActiveToOs if event.is_move() => self.moving = self.active.remove(&event.addr),
            Action::FreeActiveToCache | Action::FreeActiveToOs | Action::Release => self.free(after, event),
            Action::FreeCacheToOs => self.evict(position, event),
            Action::Oom => self.push(after, CallKind::Failed, 0, event.size),
            Action::FilteredNet => {
                self.cached = self.cached.saturating_add_signed(event.size as i64);
                self.push(after, CallKind::Base, 0, event.addr);
            }
            _ => {}
        }
    }

    fn malloc(&mut self, after: usize, event: &Event) {
        self.calls.mallocs += 1;
        if event.action == Action::AllocReuse {
            self.cached = self.cached.saturating_sub(event.size);
        }
        self.begin(after, CallKind::Malloc, event);
    }

    fn begin(&mut self, after: usize, kind: CallKind, event: &Event) {
        let slot = self.new_slot();
        if let Some(lost) = self.active.insert(event.addr, slot) {
            self.calls.skipped += 1;
            self.push(after, CallKind::Free, lost, 0);
        }
        self.push(after, kind, slot, event.requested());
    }

    fn free(&mut self, after: usize, event: &Event) {
        let Some(slot) = self.active.remove(&event.addr) else {
            self.calls.skipped += 1;
            return;
        };
        if event.action == Action::FreeActiveToCache {
            self.cached = self.cached.saturating_add(event.size);
        }
        self.unused.push(slot);
        self.push(after, CallKind::Free, slot, 0);
    }

    fn moved(&mut self, event: &Event) {
        match self.moving.take() {
            Some(slot) => _ = self.active.insert(event.addr, slot),
            None => self.calls.skipped += 1,
        }
    }

    /// Evictions that leave nothing cached are `clear_cache`, unless the allocator makes room for the allocation that follows.
    fn evict(&mut self, position: usize, event: &Event) {
        self.cached = self.cached.saturating_sub(event.size);
        let next = self.trace.events[position + 1..].iter().find(|next| next.action.is_buffer());
        let makes_room = self.trims && next.is_some_and(|next| next.action.is_alloc());
        if self.cached == 0 && !makes_room {
            self.push(position + 1, CallKind::Clear, 0, 0);
        }
    }
}
