//! Buffers of an Apple GPU, made as MLX makes them (mlx/backend/metal/allocator.cpp): shared storage, hazards untracked, small
//! ones in a heap of 1 MiB. Addresses are the buffers' handles, as in MLX; [`MetalHeap::contents`] has the memory.
//!
//! Not run yet: it was type-checked against the bindings only, on Linux; no test has seen a Mac.
//!
//! Not here: command queues and residency sets. Whoever frees a buffer has waited for the work that uses it.
#![expect(unsafe_code, reason = "passes buffers as addresses")]

use std::ffi::c_void;
use std::ptr::NonNull;

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLBuffer, MTLCreateSystemDefaultDevice, MTLDevice, MTLHeap, MTLHeapDescriptor, MTLResourceOptions};

use super::Heap;
use crate::device::{MetalDevice, RESOURCE_LIMIT};

type AnyBuffer = ProtocolObject<dyn MTLBuffer>;

/// Bytes of the heap for small buffers.
const SMALL_HEAP: usize = 1 << 20;
/// The device of a virtual machine, where MLX makes no heap.
const VIRTUAL_DEVICE: &str = "Apple Paravirtual device";

fn options() -> MTLResourceOptions {
    MTLResourceOptions::StorageModeShared | MTLResourceOptions::HazardTrackingModeUntracked
}

/// Buffers of the system's default device. Not run on a Mac yet.
#[derive(Debug)]
pub struct MetalHeap {
    device: Retained<ProtocolObject<dyn MTLDevice>>,
    /// Where buffers of less than 256 bytes come from; not in a virtual machine.
    small: Option<Retained<ProtocolObject<dyn MTLHeap>>>,
}

// SAFETY: Metal's devices and heaps may be used from any thread; MLX calls both without its lock.
unsafe impl Send for MetalHeap {}
// SAFETY: as above.
unsafe impl Sync for MetalHeap {}

impl MetalHeap {
    /// The default device's buffers. `None` where there is no such device.
    pub fn new() -> Option<MetalHeap> {
        autoreleasepool(|_| {
            let device = MTLCreateSystemDefaultDevice()?;
            let small = if device.name().to_string() == VIRTUAL_DEVICE { None } else { small_heap(&device) };
            Some(MetalHeap { device, small })
        })
    }

    /// What the policy `metal` asks of this machine, which has `memory` bytes (`sysctl hw.memsize`).
    pub fn machine(&self, memory: u64) -> MetalDevice {
        MetalDevice {
            memory,
            working_set: self.device.recommendedMaxWorkingSetSize(),
            max_buffer: self.device.maxBufferLength() as u64,
            resource_limit: RESOURCE_LIMIT,
            has_heap: self.small.is_some(),
        }
    }

    /// The memory of a buffer, as the CPU sees it.
    ///
    /// # Safety
    /// `addr` is of a buffer of this heap that was not freed.
    pub unsafe fn contents(&self, addr: u64) -> NonNull<c_void> {
        // SAFETY: by contract the handle of a buffer that lives.
        unsafe { &*(addr as *const AnyBuffer) }.contents()
    }
}

fn small_heap(device: &ProtocolObject<dyn MTLDevice>) -> Option<Retained<ProtocolObject<dyn MTLHeap>>> {
    let wanted = MTLHeapDescriptor::new();
    wanted.setResourceOptions(options());
    wanted.setSize(SMALL_HEAP);
    device.newHeapWithDescriptor(&wanted)
}

/// The buffer's handle, which keeps it alive until `release`.
fn handle(buffer: Retained<AnyBuffer>) -> u64 {
    Retained::into_raw(buffer) as u64
}

fn release(addr: u64) {
    // SAFETY: the contract of `Heap`: `handle` made this address, and it comes back once.
    autoreleasepool(|_| drop(unsafe { Retained::from_raw(addr as *mut AnyBuffer) }));
}

impl Heap for MetalHeap {
    const HAS_SMALL_BLOCKS: bool = true;

    fn allocate(&self, size: u64) -> Option<u64> {
        // Metal makes no buffer of 0 bytes; a byte gives a handle of its own.
        let bytes = usize::try_from(size).ok()?.max(1);
        autoreleasepool(|_| self.device.newBufferWithLength_options(bytes, options())).map(handle)
    }

    fn free(&self, addr: u64, _size: u64) {
        release(addr);
    }

    fn allocate_small(&self, size: u64) -> Option<u64> {
        let bytes = usize::try_from(size).ok()?.max(1);
        autoreleasepool(|_| self.small.as_ref()?.newBufferWithLength_options(bytes, options())).map(handle)
    }

    fn wrap(&self, addr: u64, size: u64) -> Option<u64> {
        let (memory, bytes) = (NonNull::new(addr as *mut c_void)?, usize::try_from(size).ok()?);
        // SAFETY: the contract of `make_buffer`: the memory lives until `release`. No deallocator: it stays its owner's.
        let made = autoreleasepool(|_| unsafe {
            self.device.newBufferWithBytesNoCopy_length_options_deallocator(memory, bytes, options(), None)
        });
        made.map(handle)
    }

    fn unwrap(&self, addr: u64, _size: u64) {
        release(addr);
    }
}
