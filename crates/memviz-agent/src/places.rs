//! Buffers whose memory has another address than the handle that MLX knows them by, and can move (CUDA).
//!
//! Events carry the address of the memory. Two buffers must never share one in the trace, though a move is not always seen
//! when it happens: MLX frees the old memory, and another buffer may get it, before anything of the first buffer passes a
//! hook. So a move is recorded when its hook sees it, or when its buffer is next seen elsewhere, or at the latest when another
//! buffer takes its old address: the buffer there is asked where it is now, and its move is recorded first.
//!
//! A move of an active buffer is recorded as `FreeActiveToOs` and `AllocNew`; that of a cached one, which MLX moves when it
//! reuses it for memory of another kind, as `FreeCacheToOs` and `AllocNew`. All carry [`Event::MOVED`]. Sums after the pair
//! are those of MLX, which counts nothing (or a reuse).
//!
//! Safe code over numbers, under the recorder's lock, like the rest of the recorder.

use memviz_trace::{Event, StackId, ThreadId};
use rustc_hash::FxHashMap;

use crate::recorder::Recorder;

/// Where each buffer's memory is, as far as recorded. The buffer table has the way back: `addr_of[handle] == addr` if and only
/// if its entry at `addr` has that handle. So a buffer that is where it was costs one look at an entry that is needed anyway,
/// and this map is asked when a buffer is new, gone or somewhere else.
#[derive(Debug, Default)]
pub struct Places {
    addr_of: FxHashMap<u64, u64>,
}

impl Places {
    /// Bytes held, about.
    pub fn memory_bytes(&self) -> usize {
        self.addr_of.capacity() * 17
    }
}

/// Who saw a move, and when.
#[derive(Clone, Copy, Debug)]
pub struct Mover {
    /// Nanoseconds since the recording started.
    pub time_nanos: u64,
    /// Line that made MLX move the memory, as far as known.
    pub triggered: StackId,
    /// Thread that it happened on.
    pub thread: ThreadId,
}

/// Where the memory of a handle is now, and the flags of that memory.
pub type Locate<'a> = &'a dyn Fn(u64) -> Option<(u64, u16)>;

impl Recorder {
    /// As [`Recorder::alloc`], for the buffer that MLX knows by `handle`.
    #[inline]
    pub fn alloc_placed(&mut self, handle: u64, mut event: Event, locate: Locate<'_>) -> u64 {
        if !self.is_at(handle, event.addr) {
            event.flags |= self.settle(handle, &event, locate);
        }
        self.alloc_as(handle.into(), event)
    }

    /// As [`Recorder::free`], for the buffer that MLX knows by `handle` and whose memory is at `event.addr`.
    #[inline]
    pub fn free_placed(&mut self, handle: u64, event: Event, is_recycled: bool, locate: Locate<'_>) {
        if !self.is_at(handle, event.addr) {
            let mover = Mover { time_nanos: event.time_nanos, triggered: event.triggered, thread: event.thread };
            self.moved(handle, event.addr, event.flags, mover, locate);
            self.vacate(handle, &event, locate);
            self.places.addr_of.insert(handle, event.addr);
        }
        if !is_recycled {
            self.places.addr_of.remove(&handle);
        }
        self.free_as(handle.into(), event, is_recycled);
    }

    /// The memory of an active buffer is at `addr` now, and has these flags. Does nothing if that is known.
    pub fn moved(&mut self, handle: u64, addr: u64, flags: u16, mover: Mover, locate: Locate<'_>) {
        let Some(old) = self.places.addr_of.get(&handle).copied().filter(|&old| old != addr) else { return };
        let Mover { time_nanos, triggered, thread } = mover;
        self.places.addr_of.remove(&handle);
        let Some(alloc) = self.active_at(old) else {
            // Reused, that is how it moved, and its allocation not recorded yet.
            self.leave(old, time_nanos, 0);
            return;
        };
        let left = Event { time_nanos, addr: old, size: alloc.size, triggered, thread, flags: Event::MOVED, ..alloc };
        self.free_as(handle.into(), left, false);
        let came = Event { time_nanos, addr, triggered, thread, flags: flags | Event::MOVED, ..alloc };
        self.vacate(handle, &came, locate);
        self.places.addr_of.insert(handle, addr);
        self.alloc_as(handle.into(), came);
    }

    /// An active buffer with that handle is known. Its memory is at `addr`.
    #[inline]
    pub fn is_active(&mut self, handle: u64, addr: u64) -> bool {
        match self.entry_at(addr) {
            Some(entry) if entry.handle == handle.into() => !entry.is_cached,
            _ => self.is_active_elsewhere(handle),
        }
    }

    #[cold]
    fn is_active_elsewhere(&mut self, handle: u64) -> bool {
        let addr = self.places.addr_of.get(&handle).copied();
        addr.is_some_and(|addr| self.active_at(addr).is_some())
    }

    /// The buffer at `addr` is the one with that handle.
    #[inline]
    fn is_at(&mut self, handle: u64, addr: u64) -> bool {
        self.entry_at(addr).is_some_and(|entry| entry.handle == handle.into())
    }

    /// Enters a buffer from before the recording.
    pub fn place(&mut self, handle: u64, addr: u64) {
        self.places.addr_of.insert(handle, addr);
    }

    /// The buffer with that handle is gone; its address. Where handles are addresses, no place is known and it is its own.
    pub fn forget_place(&mut self, handle: u64) -> u64 {
        self.places.addr_of.remove(&handle).unwrap_or(handle)
    }

    /// Makes room for a buffer that is about to be entered at the address of `event`, where it was not; flags for that event.
    /// If it was cached elsewhere, the memory there was given back.
    #[cold]
    fn settle(&mut self, handle: u64, event: &Event, locate: Locate<'_>) -> u16 {
        let old = self.places.addr_of.insert(handle, event.addr).filter(|&old| old != event.addr);
        if let Some(old) = old {
            self.leave(old, event.time_nanos, Event::MOVED);
        }
        self.vacate(handle, event, locate);
        if old.is_some() { Event::MOVED } else { 0 }
    }

    /// Sees to it that no other buffer is recorded at the address of `event`: one that is there has moved unseen.
    fn vacate(&mut self, handle: u64, event: &Event, locate: Locate<'_>) {
        let other = self.entry_at(event.addr).map(|entry| u64::from(entry.handle)).filter(|&other| other != handle);
        let Some(other) = other else { return };
        match locate(other).filter(|&(addr, _)| addr != event.addr) {
            Some((addr, flags)) => {
                let triggered = StackId(0);
                let mover = Mover { time_nanos: event.time_nanos, triggered, thread: event.thread };
                self.moved(other, addr, flags, mover, locate);
            }
            None => {
                self.places.addr_of.remove(&other);
                self.lose();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use memviz_trace::{Action, CheckpointKind, Totals, Trace, TraceBuilder};
    use proptest::prelude::*;

    use super::*;
    use crate::options::Options;

    fn recorder() -> Recorder {
        Recorder::new(Options { max_entries: 0, ..Options::default() }, Totals::default(), &[])
    }

    fn at(addr: u64, size: u64) -> Event {
        Event { addr, size, ..Event::default() }
    }

    const NOWHERE: Locate<'static> = &|_| None;
    const MOVER: Mover = Mover { time_nanos: 0, triggered: StackId(0), thread: ThreadId(0) };

    /// The trace up to now, with what it says compared with `totals`.
    fn checked(mut recorder: Recorder, totals: Totals) -> Trace {
        recorder.checkpoint(CheckpointKind::Stop, 0, totals, None);
        let mut builder = TraceBuilder::default();
        builder.trace.events = recorder.store().to_vec();
        builder.trace.counts = recorder.counts();
        builder.trace.checkpoints = recorder.notes().1.to_vec();
        builder.end = Some(recorder.buffers_unsorted().collect());
        builder.end_totals = Some(recorder.totals());
        let trace = builder.finish();
        trace.check().unwrap();
        assert!(trace.start.is_empty(), "{:?}", trace.start);
        trace
    }

    fn actions(trace: &Trace) -> Vec<(Action, u64, bool)> {
        trace.events.iter().map(|event| (event.action, event.addr, event.is_move())).collect()
    }

    #[test]
    fn a_move_is_a_free_and_an_allocation_and_a_later_free_is_at_the_new_address() {
        let mut recorder = recorder();
        recorder.alloc_placed(1, Event { built: StackId(7), ..at(0x100, 64) }, NOWHERE);
        recorder.moved(1, 0x900, Event::UNIFIED, MOVER, NOWHERE);
        recorder.free_placed(1, Event { flags: Event::UNIFIED, ..at(0x900, 64) }, true, NOWHERE);
        let trace = checked(recorder, Totals { active: 0, cached: 64 });
        assert_eq!(
            actions(&trace),
            [
                (Action::AllocNew, 0x100, false),
                (Action::FreeActiveToOs, 0x100, true),
                (Action::AllocNew, 0x900, true),
                (Action::FreeActiveToCache, 0x900, false),
            ]
        );
        assert!(trace.events.iter().all(|event| event.built == StackId(7)));
        assert_eq!(trace.events[3].flags, Event::UNIFIED);
    }

    #[test]
    fn a_move_that_no_hook_saw_is_recorded_before_its_old_address_is_taken() {
        let mut recorder = recorder();
        recorder.alloc_placed(1, at(0x100, 64), NOWHERE);
        recorder.alloc_placed(2, at(0x100, 32), &|handle| (handle == 1).then_some((0x900, Event::UNIFIED)));
        let trace = checked(recorder, Totals { active: 96, cached: 0 });
        let moved = [(Action::FreeActiveToOs, 0x100, true), (Action::AllocNew, 0x900, true)];
        assert_eq!(actions(&trace)[1..3], moved);
        assert_eq!(actions(&trace)[3], (Action::AllocNew, 0x100, false));
    }

    #[test]
    fn a_cached_buffer_that_is_reused_elsewhere_leaves_the_cache_first() {
        let mut recorder = recorder();
        recorder.alloc_placed(1, at(0x100, 64), NOWHERE);
        recorder.free_placed(1, at(0x100, 64), true, NOWHERE);
        recorder.alloc_placed(1, Event { flags: Event::UNIFIED, ..at(0x900, 64) }, NOWHERE);
        assert!(recorder.is_active(1, 0x900));
        assert!(recorder.is_active(1, 0x100), "wherever it is looked for");
        let trace = checked(recorder, Totals { active: 64, cached: 0 });
        assert_eq!(actions(&trace)[2..], [(Action::FreeCacheToOs, 0x100, true), (Action::AllocNew, 0x900, true)]);
    }

    #[test]
    fn a_cached_buffer_that_is_reused_elsewhere_unseen_leaves_the_cache_with_its_own_size() {
        let mut recorder = recorder();
        recorder.alloc_placed(1, at(0x100, 64), NOWHERE);
        recorder.free_placed(1, at(0x100, 64), true, NOWHERE);
        // MLX reused it and moved it, which is not recorded yet; another thread got its old memory first.
        recorder.alloc_placed(2, at(0x100, 32), &|handle| (handle == 1).then_some((0x900, Event::UNIFIED)));
        assert_eq!(recorder.totals(), Totals { active: 32, cached: 0 });
        recorder.alloc_placed(1, at(0x900, 64), NOWHERE);
        let trace = checked(recorder, Totals { active: 96, cached: 0 });
        assert_eq!(actions(&trace)[2], (Action::FreeCacheToOs, 0x100, false));
        assert_eq!(trace.counts.lost, 0);
    }

    #[test]
    fn a_handle_that_comes_back_after_its_buffer_is_gone_is_a_new_buffer() {
        let mut recorder = recorder();
        recorder.alloc_placed(1, at(0x100, 64), NOWHERE);
        recorder.free_placed(1, at(0x100, 64), true, NOWHERE);
        recorder.evict(1, 0);
        recorder.alloc_placed(1, at(0x200, 8), NOWHERE);
        recorder.free_placed(1, at(0x200, 8), false, NOWHERE);
        let trace = checked(recorder, Totals::default());
        assert_eq!(trace.counts.lost, 0);
        assert_eq!(trace.events.len(), 5);
    }

    proptest! {
        /// A model of MLX's allocator whose buffers move, sometimes unseen: sums and addresses agree after every run.
        #[test]
        fn any_sequence_holds(operations in prop::collection::vec((0..6_u8, 1..9_u64, 0..6_u64), 1..300)) {
            let mut recorder = recorder();
            // By handle: address, size, and whether it is cached.
            let mut real: HashMap<u64, (u64, u64, bool)> = HashMap::new();
            for (operation, handle, place) in operations {
                // Addresses are few, so they are taken again and again, but never by two buffers at once.
                let addr = 0x1000 + place * 0x100;
                let is_taken = |real: &HashMap<u64, (u64, u64, bool)>| real.values().any(|buffer| buffer.0 == addr);
                let now = real.get(&handle).copied();
                match (operation, now) {
                    (0 | 1, None) if !is_taken(&real) => {
                        real.insert(handle, (addr, handle * 8, false));
                        let where_ = real.clone();
                        recorder.alloc_placed(handle, at(addr, handle * 8), &|handle| Some((where_.get(&handle)?.0, 0)));
                    }
                    (0 | 1, Some((old, size, true))) => {
                        let addr = if operation == 1 && !is_taken(&real) { addr } else { old };
                        real.insert(handle, (addr, size, false));
                        let where_ = real.clone();
                        recorder.alloc_placed(handle, at(addr, size), &|handle| Some((where_.get(&handle)?.0, 0)));
                    }
                    (2 | 3, Some((_, size, false))) if !is_taken(&real) => {
                        real.insert(handle, (addr, size, false));
                        let where_ = real.clone();
                        if operation == 2 {
                            recorder.moved(handle, addr, 0, MOVER, &|handle| Some((where_.get(&handle)?.0, 0)));
                        }
                    }
                    (4 | 5, Some((addr, size, false))) => {
                        let where_ = real.clone();
                        let is_recycled = operation == 4;
                        recorder.free_placed(handle, at(addr, size), is_recycled, &|handle| Some((where_.get(&handle)?.0, 0)));
                        if is_recycled { real.insert(handle, (addr, size, true)); } else { real.remove(&handle); }
                    }
                    (5, Some((_, _, true))) => {
                        recorder.evict(handle, 0);
                        real.remove(&handle);
                    }
                    _ => {}
                }
            }
            let sum = |cached| real.values().filter(|buffer| buffer.2 == cached).map(|buffer| buffer.1).sum();
            checked(recorder, Totals { active: sum(false), cached: sum(true) });
        }
    }
}
