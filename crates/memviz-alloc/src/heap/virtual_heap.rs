//! Addresses without memory, for simulation and tests.

use std::sync::Mutex;

use super::Heap;

/// First address: no range is at 0.
const BASE: u64 = 1 << 16;
/// Ranges begin at multiples of this.
const ALIGN: u64 = 4096;

/// A range of addresses that only grows; freed ranges are not handed out again. Its capacity is counted in bytes in use.
#[derive(Debug)]
pub struct VirtualHeap {
    capacity: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next: u64,
    used: u64,
}

impl VirtualHeap {
    /// A machine with that many bytes.
    pub fn new(capacity: u64) -> VirtualHeap {
        VirtualHeap { capacity, state: Mutex::new(State { next: BASE, used: 0 }) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> u64 {
        self.state().used
    }
}

impl Default for VirtualHeap {
    fn default() -> Self {
        VirtualHeap::new(u64::MAX)
    }
}

impl Heap for VirtualHeap {
    fn allocate(&self, size: u64) -> Option<u64> {
        let mut state = self.state();
        let used = state.used.checked_add(size).filter(|&used| used <= self.capacity)?;
        let addr = state.next;
        state.next = addr.checked_add(size.max(1).checked_next_multiple_of(ALIGN)?)?;
        state.used = used;
        Some(addr)
    }

    fn free(&self, _addr: u64, size: u64) {
        self.state().used -= size;
    }
}
