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

/// Where each buffer's memory is, as far as recorded. `addr_of` and `handle_at` are inverse to each other.
#[derive(Debug, Default)]
pub struct Places {
    addr_of: FxHashMap<u64, u64>,
    handle_at: FxHashMap<u64, u64>,
}

impl Places {
    fn set(&mut self, handle: u64, addr: u64) {
        if let Some(old) = self.addr_of.insert(handle, addr) {
            self.handle_at.remove(&old);
        }
        self.handle_at.insert(addr, handle);
    }

    /// Takes a buffer out; where it was.
    fn forget(&mut self, handle: u64) -> Option<u64> {
        let addr = self.addr_of.remove(&handle)?;
        self.handle_at.remove(&addr);
        Some(addr)
    }

    /// Bytes held, about.
    pub fn memory_bytes(&self) -> usize {
        (self.addr_of.capacity() + self.handle_at.capacity()) * 17
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
    pub fn alloc_placed(&mut self, handle: u64, mut event: Event, locate: Locate<'_>) -> u64 {
        match self.places.addr_of.get(&handle).copied() {
            Some(old) if old != event.addr => {
                self.leave_cache(old, &event);
                self.vacate(handle, &event, locate);
                event.flags |= Event::MOVED;
            }
            Some(_) => {}
            None => self.vacate(handle, &event, locate),
        }
        self.places.set(handle, event.addr);
        self.alloc(event)
    }

    /// As [`Recorder::free`], for the buffer that MLX knows by `handle` and whose memory is at `event.addr`.
    pub fn free_placed(&mut self, handle: u64, event: Event, is_recycled: bool, locate: Locate<'_>) {
        let mover = Mover { time_nanos: event.time_nanos, triggered: event.triggered, thread: event.thread };
        self.moved(handle, event.addr, event.flags, mover, locate);
        if is_recycled {
            self.places.set(handle, event.addr);
        } else {
            self.places.forget(handle);
        }
        self.free(event, is_recycled);
    }

    /// The memory of an active buffer is at `addr` now, and has these flags. Does nothing if that is known.
    pub fn moved(&mut self, handle: u64, addr: u64, flags: u16, mover: Mover, locate: Locate<'_>) {
        let Some(old) = self.places.addr_of.get(&handle).copied().filter(|&old| old != addr) else { return };
        let Some(alloc) = self.active_at(old) else {
            self.places.forget(handle);
            return;
        };
        let Mover { time_nanos, triggered, thread } = mover;
        let left = Event { time_nanos, addr: old, size: alloc.size, triggered, thread, flags: Event::MOVED, ..alloc };
        self.free(left, false);
        self.places.forget(handle);
        let came = Event { time_nanos, addr, triggered, thread, flags: flags | Event::MOVED, ..alloc };
        self.vacate(handle, &came, locate);
        self.places.set(handle, addr);
        self.alloc(came);
    }

    /// An active buffer with that handle is known.
    pub fn is_active(&mut self, handle: u64) -> bool {
        let addr = self.places.addr_of.get(&handle).copied();
        addr.is_some_and(|addr| self.active_at(addr).is_some())
    }

    /// Enters a buffer from before the recording.
    pub fn place(&mut self, handle: u64, addr: u64) {
        self.places.set(handle, addr);
    }

    /// The buffer with that handle is gone; its address. Where handles are addresses, no place is known and it is its own.
    pub fn forget_place(&mut self, handle: u64) -> u64 {
        self.places.forget(handle).unwrap_or(handle)
    }

    /// A cached buffer that is reused with its memory moved: the old memory was given back.
    fn leave_cache(&mut self, addr: u64, event: &Event) {
        self.leave(addr, event.time_nanos, Event::MOVED);
    }

    /// Sees to it that no other buffer is recorded at the address of `event`: one that is there has moved unseen.
    fn vacate(&mut self, handle: u64, event: &Event, locate: Locate<'_>) {
        let Some(other) = self.places.handle_at.get(&event.addr).copied().filter(|&other| other != handle) else {
            return;
        };
        match locate(other).filter(|&(addr, _)| addr != event.addr) {
            Some((addr, flags)) => {
                let triggered = StackId(0);
                let mover = Mover { time_nanos: event.time_nanos, triggered, thread: event.thread };
                self.moved(other, addr, flags, mover, locate);
            }
            None => {
                self.places.forget(other);
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
        assert!(recorder.is_active(1));
        let trace = checked(recorder, Totals { active: 64, cached: 0 });
        assert_eq!(actions(&trace)[2..], [(Action::FreeCacheToOs, 0x100, true), (Action::AllocNew, 0x900, true)]);
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
