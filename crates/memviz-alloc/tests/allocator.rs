//! `CachingAllocator` over heaps: no byte is lost or given back twice, whatever the heap and other threads do.
#![expect(unsafe_code, reason = "writes to the memory that it was given")]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use memviz_alloc::{
    AllocError, Buffer, CachingAllocator, Heap, HostHeap, MetalDevice, Policy, TraceRecorder, VirtualHeap,
};
use proptest::prelude::*;

const GIB: u64 = 1 << 30;

/// Host memory that fails where a list of bits says so, and knows what it handed out.
struct Failing {
    heap: HostHeap,
    fails: Vec<bool>,
    calls: Mutex<(usize, BTreeMap<u64, u64>)>,
}

impl Failing {
    fn new(fails: Vec<bool>) -> Failing {
        Failing { heap: HostHeap::default(), fails, calls: Mutex::new((0, BTreeMap::new())) }
    }

    fn handed_out(&self) -> u64 {
        self.calls.lock().unwrap().1.values().sum()
    }
}

impl Heap for Failing {
    fn allocate(&self, size: u64) -> Option<u64> {
        let mut calls = self.calls.lock().unwrap();
        calls.0 += 1;
        if self.fails.get(calls.0).copied().unwrap_or(false) {
            return None;
        }
        let addr = self.heap.allocate(size)?;
        assert_eq!(calls.1.insert(addr, size), None, "an address is handed out once");
        Some(addr)
    }

    fn free(&self, addr: u64, size: u64) {
        assert_eq!(self.calls.lock().unwrap().1.remove(&addr), Some(size), "given back once, with its size");
        self.heap.free(addr, size);
    }
}

#[derive(Clone, Debug)]
enum Op {
    Malloc(u64),
    Free(usize),
    CacheLimit(u64),
    MemoryLimit(u64),
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let size = prop_oneof![0..300u64, Just(16 << 10), 1..100_000u64];
    prop_oneof![
        8 => size.prop_map(Op::Malloc),
        7 => any::<usize>().prop_map(Op::Free),
        1 => (0..300_000u64).prop_map(Op::CacheLimit),
        1 => (0..300_000u64).prop_map(Op::MemoryLimit),
        1 => Just(Op::Clear),
    ]
}

fn policies() -> Vec<Policy> {
    let device = MetalDevice::new(16 * GIB, 10 * GIB);
    Policy::NAMES.iter().filter_map(|name| Policy::named(name, &device)).collect()
}

fn run(allocator: &CachingAllocator<Failing, TraceRecorder>, alive: &mut Vec<Buffer>, op: &Op) {
    match *op {
        Op::Malloc(size) => match allocator.malloc(size) {
            Ok(buffer) => alive.push(buffer),
            Err(error) => assert!(matches!(error, AllocError::OutOfMemory { .. }), "{error}"),
        },
        Op::Free(at) => {
            if let Some(at) = at.checked_rem(alive.len()) {
                assert_eq!(allocator.free(alive.swap_remove(at)), Ok(()));
            }
        }
        Op::CacheLimit(limit) => drop(allocator.set_cache_limit(limit)),
        Op::MemoryLimit(limit) => drop(allocator.set_memory_limit(limit)),
        Op::Clear => allocator.clear_cache(),
    }
}

/// Bytes in use and cached, from outside: what the heap handed out, less the pool of small blocks, plus what is used of it.
fn check(allocator: &CachingAllocator<Failing, TraceRecorder>, alive: &[Buffer], pool: u64) {
    let active: u64 = alive.iter().map(|buffer| allocator.size(buffer)).sum();
    assert_eq!(allocator.active_memory(), active);
    let usage = allocator.usage();
    let held = allocator.heap().handed_out() - pool;
    assert!(usage.active + usage.cached >= held);
    assert!(usage.active + usage.cached - held <= pool, "the rest is in the pool");
    let mut addrs: Vec<u64> = alive.iter().map(Buffer::addr).filter(|&addr| addr != 0).collect();
    addrs.sort_unstable();
    assert!(addrs.windows(2).all(|two| two[0] != two[1]), "no memory is used twice");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_heap_that_fails_loses_and_doubles_nothing(
        ops in prop::collection::vec(op(), 1..300),
        fails in prop::collection::vec(prop::bool::weighted(0.2), 300),
    ) {
        for policy in policies() {
            let allocator =
                CachingAllocator::with_sink(policy, Failing::new(fails.clone()), TraceRecorder::new("cpu"));
            let pool = allocator.heap().handed_out();
            let mut alive = Vec::new();
            for op in &ops {
                run(&allocator, &mut alive, op);
                check(&allocator, &alive, pool);
            }
            for buffer in alive.drain(..) {
                prop_assert_eq!(allocator.free(buffer), Ok(()));
            }
            allocator.clear_cache();
            prop_assert_eq!((allocator.active_memory(), allocator.cache_memory()), (0, 0));
            prop_assert_eq!(allocator.heap().handed_out(), pool);
            let peak = allocator.peak_memory();
            let recorder = allocator.with_sink_mut(|sink| std::mem::replace(sink, TraceRecorder::new("cpu")));
            let report = recorder.finish().check().unwrap();
            prop_assert_eq!(report.peak_active.bytes, peak, "it recorded itself truly");
        }
    }
}

/// A small generator of numbers, so that each thread has its own.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn work(allocator: &CachingAllocator<HostHeap, TraceRecorder>, seed: u64, written: &AtomicU64) {
    let mut state = seed;
    let mut alive: Vec<(Buffer, u64)> = Vec::new();
    for round in 0..4_000 {
        let size = 8 + next(&mut state) % 40_000;
        let buffer = allocator.malloc(size).unwrap();
        let tag = seed << 32 | round;
        // SAFETY: the buffer has at least 8 bytes, begins at a page or a multiple of 8, and is this thread's.
        unsafe { (buffer.addr() as *mut u64).write(tag) };
        alive.push((buffer, tag));
        while alive.len() as u64 > next(&mut state) % 24 {
            let (buffer, tag) = alive.swap_remove(next(&mut state) as usize % alive.len());
            // SAFETY: as above; written by this thread.
            let found = unsafe { (buffer.addr() as *const u64).read() };
            assert_eq!(found, tag, "another thread had this memory");
            allocator.free(buffer).unwrap();
            written.fetch_add(1, Ordering::Relaxed);
        }
        match next(&mut state) % 500 {
            0 => allocator.clear_cache(),
            1 => drop(allocator.set_cache_limit(next(&mut state) % 2_000_000)),
            _ => {}
        }
    }
    for (buffer, _) in alive {
        allocator.free(buffer).unwrap();
    }
}

#[test]
fn threads_never_share_memory() {
    for policy in policies() {
        let allocator = CachingAllocator::with_sink(policy, HostHeap::default(), TraceRecorder::new("cpu"));
        let freed = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for seed in 1..=4 {
                let (allocator, freed) = (&allocator, &freed);
                scope.spawn(move || work(allocator, seed, freed));
            }
        });
        assert!(freed.into_inner() > 10_000);
        assert_eq!(allocator.active_memory(), 0);
        let recorder = allocator.with_sink_mut(|sink| std::mem::replace(sink, TraceRecorder::new("cpu")));
        let trace = recorder.finish();
        trace.check().unwrap();
        assert!(trace.events.len() > 30_000);
    }
}

#[test]
fn buffers_of_another_allocator_are_refused() {
    let [one, other] = [0, 1].map(|_| CachingAllocator::new(Policy::cpu_0_32(GIB), HostHeap::default()));
    let buffer = one.malloc(100).unwrap();
    let addr = buffer.addr();
    assert_eq!(other.free(buffer), Err(AllocError::UnknownBuffer { addr }));
    let _its_own = other.malloc(100).unwrap();
    let second = one.malloc(100).unwrap();
    assert!(matches!(other.free(second), Err(AllocError::UnknownBuffer { .. })), "the same id, another address");
}

#[test]
fn memory_ends_where_the_heap_ends() {
    let allocator = CachingAllocator::new(Policy::cpu_0_32(GIB), VirtualHeap::new(1000));
    let first = allocator.malloc(600).unwrap();
    let refused = AllocError::OutOfMemory { requested: 600, active: 600, cached: 0 };
    assert_eq!(allocator.malloc(600), Err(refused));
    assert_eq!(allocator.num_resources(), 1);
    allocator.free(first).unwrap();
    drop(allocator.malloc(600).unwrap());
    assert_eq!(allocator.heap().used_bytes(), 600, "the cached one was reused");
}

#[test]
fn huge_pages_and_pages_are_aligned() {
    let (usual, huge) = (HostHeap::default(), HostHeap::with_huge_pages());
    for size in [0, 1, 4096, 4097, 2 << 20, (2 << 20) + 1, 5 << 20] {
        for (heap, align) in [(&usual, 4096), (&huge, if size >= 2 << 20 { 2 << 20 } else { 4096 })] {
            let addr = heap.allocate(size).unwrap();
            assert_eq!(addr % align, 0, "{size}");
            heap.free(addr, size);
        }
    }
    assert_eq!(usual.allocate(1 << 62), None);
}

#[test]
fn wrapped_memory_stays_its_owners() {
    let allocator = CachingAllocator::new(Policy::metal(&MetalDevice::new(16 * GIB, 10 * GIB)), HostHeap::default());
    let owned = vec![7u8; 100_000];
    let buffer = allocator.make_buffer(owned.as_ptr() as u64, 100_000).unwrap().expect("Metal wraps");
    assert_eq!((allocator.active_memory(), allocator.num_resources()), (100_000, 1));
    allocator.release(buffer).unwrap();
    assert_eq!((allocator.active_memory(), allocator.cache_memory()), (0, 0));
    assert!(owned.iter().all(|&byte| byte == 7));
}
