//! MLX's allocator in a loop, for the benchmark of an event that has no Python stack.
//!
//! Needs a probed MLX and a thread without the GIL. Measures nothing about Python: that is `mlx_memviz.bench`.
#![expect(unsafe_code, reason = "calls the allocator through its vtable, as MLX does")]

use std::time::{Duration, Instant};

use crate::linux;
use crate::originals::{Free, Malloc, Ptr, function};
use crate::probe::Probe;

/// MLX's allocator, called through whatever its vtable holds.
#[derive(Clone, Copy, Debug)]
pub struct MlxAllocator {
    this: Ptr,
    malloc: Malloc,
    free: Free,
}

/// A buffer of MLX's allocator, which nobody else knows. Dropped instead of freed, it leaks.
#[derive(Debug)]
pub struct MlxBuffer(Ptr);

impl MlxAllocator {
    /// `None` if the vtable cannot be read.
    pub fn new(probe: &Probe) -> Option<MlxAllocator> {
        let allocator = &probe.allocator;
        let vtable = linux::read_u64(allocator.object)?;
        let slot = |at: usize| linux::read_u64(vtable + 8 * at as u64);
        // SAFETY: the probe found malloc and free at these places of the allocator's vtable, and ours have the same types.
        let (malloc, free) = unsafe { (function(slot(allocator.malloc)?), function(slot(allocator.free)?)) };
        Some(MlxAllocator { this: allocator.object as Ptr, malloc, free })
    }

    /// A new or cached buffer.
    #[inline]
    pub fn malloc(&self, size_bytes: usize) -> MlxBuffer {
        // SAFETY: `this` is the live allocator.
        MlxBuffer(unsafe { (self.malloc)(self.this, size_bytes) })
    }

    /// Gives a buffer back.
    #[inline]
    pub fn free(&self, buffer: MlxBuffer) {
        // SAFETY: `malloc` made the buffer, there is one allocator in a process, and the buffer is given away.
        unsafe { (self.free)(self.this, buffer.0) };
    }
}

/// Allocates and frees `size_bytes` `count` times; returns the time. `None` if the vtable cannot be read.
pub fn allocate_and_free(probe: &Probe, size_bytes: usize, count: u32) -> Option<Duration> {
    let allocator = MlxAllocator::new(probe)?;
    let start = Instant::now();
    for _ in 0..count {
        allocator.free(allocator.malloc(size_bytes));
    }
    Some(start.elapsed())
}
