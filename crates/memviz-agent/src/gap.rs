//! A full queue: which buffers events could not be written for, and the few events that tell the same afterwards.
//!
//! While the queue is full nothing is written, but the state before is kept for each address that something happens to.
//! When the writer has made room, each of them is brought from its state then to its state now by events that did happen:
//! a buffer that was active and is gone was freed, one that is new was allocated. What happened in between is dropped and
//! counted. So sums are exact again after a gap, and a reader needs no rule for it; a peak inside a gap is not seen.
//!
//! Memory: one entry an address that existed before the gap or exists now.

use memviz_trace::{Action, Event, StackId, ThreadId};
use rustc_hash::FxHashMap;

use crate::table::Entry;

/// State of an address: the allocation that began its use, and whether it is cached.
pub type State = Option<(Event, bool)>;

/// The state of a table's entry.
pub fn state_of(entry: Option<&Entry>) -> State {
    entry.map(|entry| (entry.alloc, entry.is_cached))
}

/// Addresses that something happened to while the queue was full.
#[derive(Debug, Default)]
pub struct Gap {
    before: FxHashMap<u64, State>,
}

impl Gap {
    /// Something happens to `addr`, whose state before it is `before`. Only the first state of a gap counts.
    pub fn note(&mut self, addr: u64, before: State) {
        self.before.entry(addr).or_insert(before);
    }

    /// Has anything been left out?
    pub fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// Ends the gap: events from the state before it to the one that `now` tells. Frees come first, so that the sums never
    /// exceed the larger of both states by more than one buffer.
    pub fn close(&mut self, mut now: impl FnMut(u64) -> State) -> Vec<Event> {
        let mut touched: Vec<(u64, State)> = std::mem::take(&mut self.before).into_iter().collect();
        touched.sort_unstable_by_key(|(addr, _)| *addr);
        let (mut ends, mut passing, mut begins) = (Vec::new(), Vec::new(), Vec::new());
        for (addr, before) in touched {
            let after = now(addr);
            let is_same_buffer = is_same_buffer(&before, &after);
            ends.extend(end_of(&before, is_same_buffer));
            match after {
                Some((_, true)) if is_same_buffer => {}
                Some((alloc, true)) => passing
                    .extend([Event { action: Action::AllocNew, ..alloc }, free(Action::FreeActiveToCache, alloc)]),
                Some((alloc, false)) => {
                    let action = if is_same_buffer { Action::AllocReuse } else { Action::AllocNew };
                    begins.push(Event { action, ..alloc });
                }
                None => {}
            }
        }
        ends.extend(passing);
        ends.extend(begins);
        ends
    }
}

/// The same memory before and after, through the cache, as far as can be told: a size that changed tells that it is not, and
/// so does a present use that began with a new buffer.
fn is_same_buffer(before: &State, after: &State) -> bool {
    let (Some((old, _)), Some((new, is_cached))) = (before, after) else { return false };
    old.size == new.size && (*is_cached || new.action == Action::AllocReuse)
}

/// How the use before the gap ended, if it has to be told.
fn end_of(before: &State, is_same_buffer: bool) -> Option<Event> {
    let (alloc, was_cached) = (*before)?;
    match (was_cached, is_same_buffer) {
        (true, true) => None,
        (true, false) => Some(free(Action::FreeCacheToOs, alloc)),
        (false, true) => Some(free(Action::FreeActiveToCache, alloc)),
        (false, false) => Some(free(Action::FreeActiveToOs, alloc)),
    }
}

/// The end of a use of which only the beginning is known.
fn free(action: Action, alloc: Event) -> Event {
    Event { action, triggered: StackId(0), thread: ThreadId(0), ..alloc }
}

#[cfg(test)]
mod tests {
    use memviz_trace::{CheckpointKind, Totals, Trace, TraceBuilder};
    use proptest::prelude::*;

    use super::*;
    use crate::options::Options;
    use crate::recorder::{Known, Recorder};

    /// An allocator of four addresses with a cache, and what it counts.
    #[derive(Default)]
    struct Allocator {
        buffers: [Option<(u64, bool)>; 4],
        totals: Totals,
    }

    impl Allocator {
        fn step(&mut self, recorder: &mut Recorder, at: usize, keeps: bool, size: u64) {
            let addr = 0x1000 * (at as u64 + 1);
            let event = |size| Event { addr, size, ..Event::default() };
            self.buffers[at] = match self.buffers[at] {
                None => {
                    recorder.alloc(event(size));
                    self.totals.active += size;
                    Some((size, false))
                }
                Some((size, false)) => {
                    recorder.free(event(size), keeps);
                    self.totals.active -= size;
                    self.totals.cached += if keeps { size } else { 0 };
                    keeps.then_some((size, true))
                }
                Some((size, true)) => {
                    self.totals.cached -= size;
                    if keeps {
                        recorder.alloc(event(size));
                        self.totals.active += size;
                        Some((size, false))
                    } else {
                        recorder.evict(addr, 0);
                        None
                    }
                }
            };
        }
    }

    fn take(recorder: &mut Recorder, known: &mut Known, trace: &mut Trace) {
        let drained = recorder.drain(known);
        trace.events.extend(drained.chunks.into_iter().flatten());
        trace.checkpoints.extend(drained.checkpoints);
        trace.counts = drained.counts;
    }

    proptest! {
        #[test]
        fn sums_are_exact_after_a_gap(
            limit in 1_u64..20,
            min_size in prop_oneof![Just(0_u64), Just(3)],
            steps in proptest::collection::vec((0..5_usize, any::<bool>(), 1_u64..6, 0..8_u32), 1..200),
        ) {
            let options = Options { max_entries: limit, is_streamed: true, min_size, ..Options::default() };
            // An active buffer from before the recording, which the recorder does not know.
            let mut allocator = Allocator::default();
            allocator.buffers[0] = Some((7, false));
            allocator.totals.active = 7;
            let mut recorder = Recorder::new(options, allocator.totals, &[]);
            let (mut known, mut trace) = (Known::default(), Trace::default());
            for (at, keeps, size, then) in steps {
                if at < 4 {
                    allocator.step(&mut recorder, at, keeps, size);
                } else {
                    recorder.checkpoint(CheckpointKind::Step, 0, allocator.totals, None);
                }
                if then == 0 {
                    take(&mut recorder, &mut known, &mut trace);
                }
            }
            take(&mut recorder, &mut known, &mut trace);
            recorder.checkpoint(CheckpointKind::Stop, 0, allocator.totals, None);
            take(&mut recorder, &mut known, &mut trace);
            let (totals, buffers) = (recorder.totals(), recorder.buffers_unsorted().collect());
            prop_assert_eq!(totals, allocator.totals);
            let mut builder = TraceBuilder::default();
            builder.end = Some(buffers);
            builder.end_totals = Some(totals);
            builder.trace = trace;
            let checked = builder.finish().check();
            prop_assert!(checked.is_ok(), "{:?}", checked);
        }
    }
}
