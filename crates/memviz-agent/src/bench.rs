//! MLX's allocator in a loop, for the benchmark of an event that has no Python stack.
//!
//! Needs a probed MLX and a thread without the GIL. Measures nothing about Python: that is `mlx_memviz.bench`.
#![expect(unsafe_code, reason = "calls the allocator through its vtable, as MLX does")]

use std::time::{Duration, Instant};

use crate::linux;
use crate::originals::{Free, Malloc, Ptr, function};
use crate::probe::Probe;

/// Allocates and frees `size_bytes` `count` times through whatever the allocator's vtable holds now; returns the time.
/// `None` if the vtable cannot be read.
pub fn allocate_and_free(probe: &Probe, size_bytes: usize, count: u32) -> Option<Duration> {
    let allocator = &probe.allocator;
    let vtable = linux::read_u64(allocator.object)?;
    let slot = |at: usize| linux::read_u64(vtable + 8 * at as u64);
    let this = allocator.object as Ptr;
    // SAFETY: the probe found malloc and free at these places of the allocator's vtable, and ours have the same types.
    let (malloc, free): (Malloc, Free) =
        unsafe { (function(slot(allocator.malloc)?), function(slot(allocator.free)?)) };
    let start = Instant::now();
    for _ in 0..count {
        // SAFETY: `this` is the live allocator; the buffer is freed once and not used.
        unsafe { free(this, malloc(this, size_bytes)) };
    }
    Some(start.elapsed())
}
