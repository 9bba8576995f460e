//! `CudaHeap` on a GPU: each kind of memory under the policy `cuda`. Where there is no driver, the tests check that it is said.
#![cfg(not(target_os = "macos"))]
#![expect(unsafe_code, reason = "copies to and from the device")]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys;
use memviz_alloc::{
    AllocError, Block, Buffer, CachingAllocator, CudaError, CudaHeap, CudaKind, Heap, Policy, VirtualHeap,
};
use memviz_trace::Action;

const MIB: u64 = 1 << 20;
/// Bytes that the driver maps at once.
const DEVICE_PAGE: u64 = 2 * MIB;
/// Most that the driver may serve from what it had mapped before: its pool maps pieces of 32 MiB.
const SLACK: u64 = 64 * MIB;
const KINDS: [CudaKind; 3] = [CudaKind::Device, CudaKind::Pooled, CudaKind::Managed];

/// The device's free bytes belong to one test at a time.
static DEVICE: Mutex<()> = Mutex::new(());

fn device() -> Option<MutexGuard<'static, ()>> {
    let held = DEVICE.lock().unwrap_or_else(PoisonError::into_inner);
    match CudaHeap::new(0, CudaKind::Device) {
        Ok(_) => Some(held),
        Err(error) => {
            eprintln!("skipped, no GPU here: {error}");
            let text = error.to_string();
            match error {
                CudaError::NoDriver => assert!(text.starts_with("no CUDA driver"), "{text}"),
                CudaError::NoDevice { count, .. } => assert_eq!(count, 0, "{text}"),
                CudaError::Driver { call, .. } => assert_eq!(call, "cuInit", "{text}"),
                _ => panic!("a device that is no use: {text}"),
            }
            None
        }
    }
}

fn heap(kind: CudaKind) -> CudaHeap {
    CudaHeap::new(0, kind).unwrap()
}

fn allocator(kind: CudaKind) -> CachingAllocator<CudaHeap> {
    let heap = heap(kind);
    let total = heap.memory().unwrap().1;
    CachingAllocator::new(Policy::cuda(total), heap)
}

/// The primary context for this thread, which the copies need.
fn use_context() {
    let (mut device, mut context) = (0, std::ptr::null_mut());
    // SAFETY: a heap was made, so the driver runs; both calls write one handle.
    unsafe {
        sys::cuDeviceGet(&mut device, 0).result().unwrap();
        sys::cuDevicePrimaryCtxRetain(&mut context, device).result().unwrap();
        sys::cuCtxSetCurrent(context).result().unwrap();
    }
}

fn copy(to: u64, from: u64, bytes: usize) {
    // SAFETY: each caller passes a live buffer of `bytes` bytes and a live vector as long.
    unsafe { sys::cuMemcpy(to, from, bytes).result().unwrap() }
}

/// Writes bytes that depend on `seed` to the device, reads them back and compares.
fn check_contents(addr: u64, bytes: usize, seed: u64) {
    let written: Vec<u8> = (0..bytes as u64).map(|at| ((at * 31) ^ (at >> 8) ^ seed) as u8).collect();
    let mut read = vec![0_u8; bytes];
    copy(addr, written.as_ptr() as u64, bytes);
    copy(read.as_mut_ptr() as u64, addr, bytes);
    assert!(read == written, "{bytes} bytes at {addr:#x} came back changed");
}

#[test]
fn memory_holds_what_is_written_and_is_reused() {
    let Some(_held) = device() else { return };
    use_context();
    for kind in KINDS {
        let allocator = allocator(kind);
        let mut addrs = Vec::new();
        for size in [1, 8, 9, 4096, 100_000, 5 * MIB + 3] {
            let buffer = allocator.malloc(size).unwrap();
            check_contents(buffer.addr(), allocator.size(&buffer) as usize, size);
            let (addr, before) = (buffer.addr(), allocator.active_memory());
            allocator.free(buffer).unwrap();
            let again = allocator.malloc(size).unwrap();
            assert_eq!(
                (again.addr(), allocator.active_memory()),
                (addr, before),
                "{kind:?}: the cached block of {size}"
            );
            check_contents(addr, allocator.size(&again) as usize, size + 1);
            addrs.push(again);
        }
        let hits = allocator.counters().total();
        assert_eq!((hits.hits, hits.misses), (6, 6), "{kind:?}");
        addrs.into_iter().for_each(|buffer| allocator.free(buffer).unwrap());
        assert_eq!(allocator.active_memory(), 0);
        println!("{kind:?}: contents and reuse");
    }
}

#[test]
fn more_than_there_is_fails_and_counts_nothing() {
    let Some(_held) = device() else { return };
    for kind in KINDS {
        let allocator = allocator(kind);
        let total = allocator.heap().memory().unwrap().1;
        // Managed memory may be more than the device has, but not more than 57 bits of address.
        let requested = if kind == CudaKind::Managed { 1 << 58 } else { total + 1024 * MIB };
        let kept = allocator.malloc(MIB).unwrap();
        let before = allocator.usage();
        let refused = AllocError::OutOfMemory { requested, active: MIB, cached: 0 };
        assert_eq!(allocator.malloc(requested), Err(refused), "{kind:?}");
        assert_eq!(allocator.usage(), before, "{kind:?}");
        allocator.free(kept).unwrap();
        let after = allocator.malloc(MIB).unwrap();
        assert_eq!(allocator.usage().active, MIB, "{kind:?} works on");
        allocator.free(after).unwrap();
        println!("{kind:?}: {requested} bytes refused");
    }
}

fn free_bytes(allocator: &CachingAllocator<CudaHeap>) -> u64 {
    allocator.heap().trim().unwrap();
    allocator.heap().memory().unwrap().0
}

fn fill(allocator: &CachingAllocator<CudaHeap>) -> Vec<Buffer> {
    let buffers: Vec<Buffer> = (1..=8).map(|n| allocator.malloc(n * 16 * MIB + 5).unwrap()).collect();
    // Managed pages take device memory only when they are used there.
    buffers.iter().for_each(|buffer| check_contents(buffer.addr(), MIB as usize, 7));
    buffers
}

#[test]
fn a_cleared_cache_gives_the_drivers_bytes_back() {
    let Some(_held) = device() else { return };
    use_context();
    for kind in KINDS {
        let allocator = allocator(kind);
        // Once before measuring: the driver keeps buffers of its own after the first copy.
        fill(&allocator).into_iter().for_each(|buffer| allocator.free(buffer).unwrap());
        allocator.clear_cache();
        let at_first = free_bytes(&allocator);
        let buffers = fill(&allocator);
        let active = allocator.active_memory();
        let in_use = free_bytes(&allocator);
        buffers.into_iter().for_each(|buffer| allocator.free(buffer).unwrap());
        assert_eq!((allocator.active_memory(), allocator.cache_memory()), (0, active));
        assert_eq!(free_bytes(&allocator), in_use, "{kind:?}: cached blocks stay allocated");
        allocator.clear_cache();
        let at_last = free_bytes(&allocator);
        // More may be free than before: the driver gave 16 MiB of its own back with managed memory on an H200.
        assert!(at_last + DEVICE_PAGE >= at_first, "{kind:?}: {at_first} bytes were free, now {at_last}");
        let taken = at_first.saturating_sub(in_use);
        assert!(
            kind == CudaKind::Managed || taken + SLACK >= active,
            "{kind:?}: {active} bytes took {taken} of the device"
        );
        println!("{kind:?}: free {at_first}, with {active} bytes active {in_use}, after clear_cache {at_last}");
    }
}

/// What was decided: action, size, bytes asked for. Addresses are the heap's.
type Told = Vec<(Action, u64, u64)>;

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// 10,000 calls that a seed decides, and the decisions, with active and cached bytes after each call.
fn decisions(policy: Policy, heap: impl Heap) -> (Told, Vec<(u64, u64)>) {
    let mut told = Told::new();
    let sink = |action, block: Block, requested| told.push((action, block.size, requested));
    let allocator = CachingAllocator::with_sink(policy, heap, sink);
    let (mut alive, mut sums, mut state) = (Vec::new(), Vec::new(), 88_172_645_463_325_252);
    for _ in 0..10_000 {
        match next(&mut state) % 1000 {
            0..500 => {
                let bits = next(&mut state) % 21;
                alive.push(allocator.malloc(next(&mut state) % (2 << bits)).unwrap());
            }
            500..990 if alive.is_empty() => {}
            500..990 => allocator.free(alive.swap_remove(next(&mut state) as usize % alive.len())).unwrap(),
            990..995 => drop(allocator.set_cache_limit(next(&mut state) % (32 * MIB))),
            995..998 => drop(allocator.set_memory_limit(next(&mut state) % (64 * MIB))),
            _ => allocator.clear_cache(),
        }
        let usage = allocator.usage();
        sums.push((usage.active, usage.cached));
    }
    alive.into_iter().for_each(|buffer| allocator.free(buffer).unwrap());
    drop(allocator);
    (told, sums)
}

#[test]
fn decisions_are_those_over_addresses_without_memory() {
    let Some(_held) = device() else { return };
    for kind in KINDS {
        let heap = heap(kind);
        let policy = Policy::cuda(heap.memory().unwrap().1);
        let expected = decisions(policy.clone(), VirtualHeap::default());
        let found = decisions(policy, heap);
        assert!(found == expected, "{kind:?} decides otherwise");
        assert_eq!(found.1.len(), 10_000);
        println!("{kind:?}: 10,000 calls, {} events, 0 differences", found.0.len());
    }
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let Some(_held) = device() else { return };
    let text = CudaHeap::new(4096, CudaKind::Device).unwrap_err().to_string();
    assert!(text.starts_with("no CUDA device 4096: the driver shows "), "{text}");
}
