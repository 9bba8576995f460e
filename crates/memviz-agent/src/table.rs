//! Buffers by address: the recorder's picture of what is active and what is cached.
//!
//! Open addressing with linear probing and deletion by shifting back, one cache line an entry: a lookup on the hot path
//! touches one line, and nothing is allocated but when the table doubles. Address 0 marks a free place; MLX's null buffer
//! (a failed malloc, Metal's empty array) is never entered.

use std::collections::TryReserveError;

use memviz_trace::{Buffer, Event};

/// What MLX knows a buffer by: on CPU its address, on CUDA that of a `CudaBuffer`. 48 bits, so that an entry fits a line: the
/// kernel maps nothing higher for a process that does not ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle([u16; 3]);

impl From<u64> for Handle {
    #[inline]
    fn from(handle: u64) -> Handle {
        debug_assert!(handle < 1 << 48, "{handle:#x}");
        Handle([handle as u16, (handle >> 16) as u16, (handle >> 32) as u16])
    }
}

impl From<Handle> for u64 {
    #[inline]
    fn from(Handle([low, middle, high]): Handle) -> u64 {
        u64::from(high) << 32 | u64::from(middle) << 16 | u64::from(low)
    }
}

/// What the recorder knows of a buffer. Threads take turns at an entry, the one that allocates and the one that frees, so
/// it is one line to hand over.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Entry {
    /// The allocation that began its present (or, cached, its last) use.
    pub alloc: Event,
    /// Number of that event in the recording, or `u64::MAX` when it was not recorded (filtered, or from before).
    pub alloc_index: u64,
    /// What MLX knows the buffer by.
    pub handle: Handle,
    /// Waiting in MLX's cache.
    pub is_cached: bool,
}

const _: () = assert!(size_of::<Entry>() == 64);

impl Entry {
    /// The buffer as a trace lists it.
    pub fn buffer(&self) -> Buffer {
        Buffer { is_cached: self.is_cached, ..Buffer::from_alloc(&self.alloc) }
    }
}

const EMPTY: Entry = Entry {
    alloc: Event {
        time_nanos: 0,
        addr: 0,
        size: 0,
        slack: 0,
        what: memviz_trace::WhatId(0),
        built: memviz_trace::StackId(0),
        triggered: memviz_trace::StackId(0),
        thread: memviz_trace::ThreadId(0),
        stream: memviz_trace::NO_STREAM,
        device: memviz_trace::Device(0),
        action: memviz_trace::Action::AllocNew,
        flags: 0,
    },
    alloc_index: u64::MAX,
    handle: Handle([0; 3]),
    is_cached: false,
};

/// The table. Never more than half full.
#[derive(Debug, Default)]
pub struct BufferTable {
    places: Vec<Entry>,
    used: usize,
}

impl BufferTable {
    /// An empty table that allocates on first use.
    pub const fn new() -> BufferTable {
        BufferTable { places: Vec::new(), used: 0 }
    }

    fn home(&self, addr: u64) -> usize {
        // Fibonacci hashing. malloc aligns to 16 bytes, so the low four bits say nothing.
        let shift = 64 - self.places.len().trailing_zeros();
        ((addr >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift) as usize
    }

    /// Position of the address, or of the free place where it belongs.
    fn find(&self, addr: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = self.home(addr);
        while self.places[at].alloc.addr != addr && self.places[at].alloc.addr != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    /// The entry of an address.
    pub fn get_mut(&mut self, addr: u64) -> Option<&mut Entry> {
        if self.places.is_empty() || addr == 0 {
            return None;
        }
        let at = self.find(addr);
        Some(&mut self.places[at]).filter(|entry| entry.alloc.addr == addr)
    }

    /// Enters or replaces the entry at `entry.alloc.addr`, which is not 0.
    ///
    /// # Errors
    /// No memory to grow; the table is as before.
    pub fn insert(&mut self, entry: Entry) -> Result<(), TryReserveError> {
        debug_assert_ne!(entry.alloc.addr, 0);
        if (self.used + 1) * 2 > self.places.len() {
            self.grow()?;
        }
        let at = self.find(entry.alloc.addr);
        self.used += usize::from(self.places[at].alloc.addr == 0);
        self.places[at] = entry;
        Ok(())
    }

    fn grow(&mut self) -> Result<(), TryReserveError> {
        let len = (self.places.len() * 2).max(1024);
        let mut places = Vec::new();
        places.try_reserve_exact(len)?;
        places.resize(len, EMPTY);
        let old = std::mem::replace(&mut self.places, places);
        for entry in old.into_iter().filter(|entry| entry.alloc.addr != 0) {
            let at = self.find(entry.alloc.addr);
            self.places[at] = entry;
        }
        Ok(())
    }

    /// Takes the entry of an address out.
    pub fn remove(&mut self, addr: u64) -> Option<Entry> {
        let removed = *self.get_mut(addr)?;
        let mask = self.places.len() - 1;
        let mut hole = self.find(addr);
        let mut next = (hole + 1) & mask;
        while self.places[next].alloc.addr != 0 {
            // An entry may move back into the hole unless its home lies between the hole and itself.
            let home = self.home(self.places[next].alloc.addr);
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.places[hole] = self.places[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.places[hole] = EMPTY;
        self.used -= 1;
        Some(removed)
    }

    /// Every entry, in no order.
    pub fn entries_unsorted(&self) -> impl Iterator<Item = &Entry> {
        self.places.iter().filter(|entry| entry.alloc.addr != 0)
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn entry(addr: u64, size: u64) -> Entry {
        Entry { alloc: Event { addr, size, ..Event::default() }, ..EMPTY }
    }

    #[test]
    fn a_handle_keeps_48_bits() {
        for handle in [0, 1, 0x1_0000_0000, 0x7fff_ffff_fff0, 0xffff_ffff_ffff] {
            assert_eq!(u64::from(Handle::from(handle)), handle);
        }
    }

    proptest! {
        /// Any sequence of insertions and removals agrees with the standard map.
        #[test]
        fn agrees_with_a_hash_map(operations in prop::collection::vec((any::<bool>(), 1_u64..400), 1..4000)) {
            let mut table = BufferTable::default();
            let mut model = HashMap::new();
            for (position, (is_insert, key)) in operations.into_iter().enumerate() {
                let addr = key * 16;
                if is_insert {
                    table.insert(entry(addr, position as u64)).unwrap();
                    model.insert(addr, position as u64);
                } else {
                    prop_assert_eq!(table.remove(addr).map(|entry| entry.alloc.size), model.remove(&addr));
                }
            }
            prop_assert_eq!(table.entries_unsorted().count(), model.len());
            for (addr, size) in model {
                prop_assert_eq!(table.get_mut(addr).map(|entry| entry.alloc.size), Some(size));
            }
        }
    }
}
