//! Where memory comes from.

#[cfg(not(target_os = "macos"))]
mod cuda;
mod host;
#[cfg(target_os = "macos")]
mod metal;
mod virtual_heap;

#[cfg(not(target_os = "macos"))]
pub use cuda::{CudaError, CudaHeap, CudaKind};
pub use host::HostHeap;
#[cfg(target_os = "macos")]
pub use metal::MetalHeap;
pub use virtual_heap::VirtualHeap;

/// A source of memory. Calls come from any thread, `free` also while the allocator's lock is held.
///
/// Addresses are never 0, and an address that was handed out is not handed out again before it was freed.
pub trait Heap: Send + Sync {
    /// The heap has a place of its own for small blocks: `allocate_small` is asked, and the allocator cuts none itself.
    const HAS_SMALL_BLOCKS: bool = false;

    /// Memory of `size` bytes, or `None` when there is none. `size` may be 0; the address is one of a kind then too.
    fn allocate(&self, size: u64) -> Option<u64>;

    /// Takes back what `allocate` or `allocate_small` gave, with the same size.
    fn free(&self, addr: u64, size: u64);

    /// A block in the heap's own place for small ones, or `None` when that is full.
    fn allocate_small(&self, _size: u64) -> Option<u64> {
        None
    }

    /// The driver's handle for foreign memory at `addr`; `None` when it cannot be wrapped.
    fn wrap(&self, addr: u64, _size: u64) -> Option<u64> {
        Some(addr)
    }

    /// Ends what `wrap` began.
    fn unwrap(&self, _addr: u64, _size: u64) {}

    /// Bytes that the driver's pools hold at the moment, where the driver tells.
    fn driver_bytes(&self) -> Option<u64> {
        None
    }
}
