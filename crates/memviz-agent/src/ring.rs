//! The last N events, in chunks that are allocated as they fill.

use memviz_trace::{Event, Tally};

const CHUNK: usize = 16 * 1024;

/// A ring of events. Event number `i` of the recording sits at place `i % capacity` until overwritten.
#[derive(Debug)]
pub struct Ring {
    chunks: Vec<Vec<Event>>,
    /// Places; `u64::MAX` for no limit.
    capacity: u64,
    /// Events pushed so far: the number of the next one.
    next: u64,
    dropped: Tally,
    dropped_others: u64,
}

impl Ring {
    /// A ring of `max_entries` places, 0 for no limit.
    pub const fn new(max_entries: u64) -> Ring {
        let capacity = if max_entries == 0 { u64::MAX } else { max_entries };
        Ring { chunks: Vec::new(), capacity, next: 0, dropped: Tally { events: 0, bytes: 0 }, dropped_others: 0 }
    }

    /// Chunk and offset of an event. No division before the ring is full.
    fn place(&self, index: u64) -> (usize, usize) {
        let place = if index < self.capacity { index } else { index % self.capacity };
        ((place / CHUNK as u64) as usize, (place % CHUNK as u64) as usize)
    }

    /// Appends an event and returns its number; `None` when there is no memory for it.
    pub fn push(&mut self, event: Event) -> Option<u64> {
        let index = self.next;
        let (chunk, offset) = self.place(index);
        if index < self.capacity {
            if offset == 0 {
                self.add_chunk()?;
            }
            self.chunks[chunk].push(event);
        } else {
            let old = std::mem::replace(&mut self.chunks[chunk][offset], event);
            if old.action.is_buffer() {
                self.dropped.add(old.size);
            } else {
                self.dropped_others += 1;
            }
        }
        self.next = index + 1;
        Some(index)
    }

    fn add_chunk(&mut self) -> Option<()> {
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(CHUNK.min(usize::try_from(self.capacity).unwrap_or(CHUNK))).ok()?;
        self.chunks.try_reserve(1).ok()?;
        self.chunks.push(chunk);
        Some(())
    }

    /// The event of that number, unless it fell out.
    pub fn get_mut(&mut self, index: u64) -> Option<&mut Event> {
        if index < self.first_index() || index >= self.next {
            return None;
        }
        let (chunk, offset) = self.place(index);
        self.chunks.get_mut(chunk)?.get_mut(offset)
    }

    /// Number of the oldest event that is still there.
    pub fn first_index(&self) -> u64 {
        self.next.saturating_sub(self.capacity)
    }

    /// Number of the next event.
    pub fn next_index(&self) -> u64 {
        self.next
    }

    /// Buffer events that fell out.
    pub fn dropped(&self) -> Tally {
        self.dropped
    }

    /// Other records that fell out.
    pub fn dropped_others(&self) -> u64 {
        self.dropped_others
    }

    /// A copy of all events, oldest first.
    pub fn to_vec(&self) -> Vec<Event> {
        let len = (self.next - self.first_index()) as usize;
        let mut events = Vec::with_capacity(len);
        let (chunk, offset) = self.place(self.first_index());
        events.extend(self.chunks.get(chunk).into_iter().flat_map(|chunk| &chunk[offset..]));
        events.extend(self.chunks.iter().skip(chunk + 1).flatten());
        events.extend(self.chunks.iter().take(chunk).flatten());
        events.extend(self.chunks.get(chunk).into_iter().flat_map(|chunk| &chunk[..offset]));
        events
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.capacity() * size_of::<Event>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(max_entries: u64, count: u64) -> Ring {
        let mut ring = Ring::new(max_entries);
        for index in 0..count {
            assert_eq!(ring.push(Event { addr: index, size: 2, ..Event::default() }), Some(index));
        }
        ring
    }

    #[test]
    fn keeps_the_last_n_and_counts_the_rest() {
        for (max_entries, count) in [(1, 5), (7, 3), (7, 7), (7, 8), (7, 700), (20_000, 50_001), (0, 40_000)] {
            let mut ring = filled(max_entries, count);
            let kept = if max_entries == 0 { count } else { count.min(max_entries) };
            let addrs: Vec<u64> = ring.to_vec().iter().map(|event| event.addr).collect();
            assert_eq!(addrs, (count - kept..count).collect::<Vec<_>>(), "{max_entries} places, {count} events");
            assert_eq!(ring.dropped(), Tally { events: count - kept, bytes: 2 * (count - kept) });
            assert_eq!(ring.get_mut(count - 1).map(|event| event.addr), Some(count - 1));
            assert!(ring.get_mut(count).is_none());
            assert_eq!(ring.get_mut(0).is_some(), kept == count);
        }
    }
}
