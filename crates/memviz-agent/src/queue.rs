//! Events on their way into a file: a queue of chunks that a writer takes away whole.
//!
//! Taking moves the chunks and copies no event, so hooks wait for it some hundred nanoseconds. Chunks come back empty and
//! are used again: on the steady path a push does not allocate. The limit bounds memory; whoever pushes asks
//! [`Queue::is_full`] first and decides what to do then (`gap`).

use std::collections::VecDeque;

use memviz_trace::{Event, Tally};

use crate::wake;

/// Events in a chunk: 768 KiB.
pub const CHUNK: usize = 16 * 1024;
/// Empty chunks kept for reuse.
const SPARE: usize = 8;

/// A queue of events. Number `i` of the recording sits at `i - first` until taken.
#[derive(Debug)]
pub struct Queue {
    chunks: VecDeque<Vec<Event>>,
    spare: Vec<Vec<Event>>,
    /// Number of the first event that was not taken yet.
    first: u64,
    next: u64,
    limit: u64,
    recorded: Tally,
}

impl Queue {
    /// An empty queue that is full with `limit` events.
    pub fn new(limit: u64) -> Queue {
        Queue { chunks: VecDeque::new(), spare: Vec::new(), first: 0, next: 0, limit, recorded: Tally::default() }
    }

    /// Do as many events wait as may?
    #[inline]
    pub fn is_full(&self) -> bool {
        self.next - self.first >= self.limit
    }

    /// Appends an event, also to a full queue, and returns its number; `None` when there is no memory for it.
    #[inline]
    pub fn push(&mut self, event: Event) -> Option<u64> {
        if self.chunks.back().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.add_chunk()?;
        }
        self.chunks.back_mut()?.push(event);
        if event.action.is_buffer() {
            self.recorded.add(event.size);
        }
        let index = self.next;
        self.next += 1;
        Some(index)
    }

    #[cold]
    fn add_chunk(&mut self) -> Option<()> {
        let chunk = match self.spare.pop() {
            Some(chunk) => chunk,
            None => {
                let mut chunk = Vec::new();
                chunk.try_reserve_exact(CHUNK).ok()?;
                chunk
            }
        };
        self.chunks.try_reserve(1).ok()?;
        if !self.chunks.is_empty() {
            wake::wake();
        }
        self.chunks.push_back(chunk);
        Some(())
    }

    /// The event of that number, unless it was taken.
    pub fn get_mut(&mut self, index: u64) -> Option<&mut Event> {
        let place = usize::try_from(index.checked_sub(self.first)?).ok()?;
        self.chunks.get_mut(place / CHUNK)?.get_mut(place % CHUNK)
    }

    /// Number of the next event.
    pub fn next_index(&self) -> u64 {
        self.next
    }

    /// Buffer events pushed so far.
    pub fn recorded(&self) -> Tally {
        self.recorded
    }

    /// Takes every event.
    pub fn take(&mut self) -> VecDeque<Vec<Event>> {
        self.first = self.next;
        std::mem::take(&mut self.chunks)
    }

    /// Gives a chunk back that was taken.
    pub fn give_back(&mut self, mut chunk: Vec<Event>) {
        if self.spare.len() < SPARE {
            chunk.clear();
            self.spare.push(chunk);
        }
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        (self.chunks.len() + self.spare.len()) * CHUNK * size_of::<Event>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_what_was_pushed_and_numbers_go_on() {
        let mut queue = Queue::new(40_000);
        let mut taken = Vec::new();
        for round in 0..5_u64 {
            for at in 0..30_000 {
                let addr = round * 30_000 + at;
                assert_eq!(queue.push(Event { addr, size: 2, ..Event::default() }), Some(addr));
            }
            assert_eq!(queue.get_mut(round * 30_000 + 17_000).map(|event| event.addr), Some(round * 30_000 + 17_000));
            for chunk in queue.take() {
                taken.extend(chunk.iter().map(|event| event.addr));
                queue.give_back(chunk);
            }
            assert!(queue.get_mut(round * 30_000).is_none());
        }
        assert_eq!(taken, (0..150_000).collect::<Vec<_>>());
        assert_eq!(queue.recorded(), Tally { events: 150_000, bytes: 300_000 });
        assert_eq!(queue.memory_bytes(), 2 * CHUNK * 48, "chunks are used again");
    }
}
