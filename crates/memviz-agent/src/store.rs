//! Where events are kept: a ring of the last ones, or a queue for a writer.

use memviz_trace::{Event, Tally};

use crate::options::{DEFAULT_MAX_ENTRIES, Options};
use crate::queue::Queue;
use crate::ring::Ring;

/// One of the two.
#[derive(Debug)]
pub enum Store {
    /// Keeps the last ones; older ones fall out.
    Ring(Ring),
    /// Keeps them until a writer takes them; when it is full, new ones are not taken up.
    Queue(Queue),
}

impl Store {
    /// As the options ask.
    pub fn new(options: &Options) -> Store {
        match (options.is_streamed, options.max_entries) {
            (false, capacity) => Store::Ring(Ring::new(capacity)),
            (true, 0) => Store::Queue(Queue::new(DEFAULT_MAX_ENTRIES)),
            (true, limit) => Store::Queue(Queue::new(limit)),
        }
    }

    /// Is there no room for an event that could be left out? A ring always has room.
    #[inline]
    pub fn is_full(&self) -> bool {
        match self {
            Store::Ring(_) => false,
            Store::Queue(queue) => queue.is_full(),
        }
    }

    /// Appends an event and returns its number; `None` when there is no memory for it.
    #[inline]
    pub fn push(&mut self, event: Event) -> Option<u64> {
        match self {
            Store::Ring(ring) => ring.push(event),
            Store::Queue(queue) => queue.push(event),
        }
    }

    /// The event of that number, if it is still here.
    pub fn get_mut(&mut self, index: u64) -> Option<&mut Event> {
        match self {
            Store::Ring(ring) => ring.get_mut(index),
            Store::Queue(queue) => queue.get_mut(index),
        }
    }

    /// Number of the oldest event that a trace of this recording can hold: a queue has handed out all from the first on.
    pub fn first_index(&self) -> u64 {
        match self {
            Store::Ring(ring) => ring.first_index(),
            Store::Queue(_) => 0,
        }
    }

    /// Number of the next event.
    pub fn next_index(&self) -> u64 {
        match self {
            Store::Ring(ring) => ring.next_index(),
            Store::Queue(queue) => queue.next_index(),
        }
    }

    /// Buffer events that are in no trace, of those `seen`.
    pub fn dropped(&self, seen: Tally, filtered: Tally) -> Tally {
        match self {
            Store::Ring(ring) => ring.dropped(),
            Store::Queue(queue) => {
                let recorded = queue.recorded();
                Tally {
                    events: seen.events.saturating_sub(filtered.events + recorded.events),
                    bytes: seen.bytes.wrapping_sub(filtered.bytes.wrapping_add(recorded.bytes)),
                }
            }
        }
    }

    /// Other records that fell out of a ring.
    pub fn dropped_others(&self) -> u64 {
        match self {
            Store::Ring(ring) => ring.dropped_others(),
            Store::Queue(_) => 0,
        }
    }

    /// A copy of the events of a ring, oldest first; what waits in a queue is the writer's.
    pub fn to_vec(&self) -> Vec<Event> {
        match self {
            Store::Ring(ring) => ring.to_vec(),
            Store::Queue(_) => Vec::new(),
        }
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Store::Ring(ring) => ring.memory_bytes(),
            Store::Queue(queue) => queue.memory_bytes(),
        }
    }
}
