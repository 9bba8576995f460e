//! `BufferCache` against a naive model: a vector that is searched from end to end.

use memviz_alloc::{Block, BlockId, BufferCache};
use proptest::prelude::*;

const PAGE: u64 = 4096;

/// Cached blocks in the order in which they were cached.
#[derive(Default)]
struct Naive {
    cached: Vec<Block>,
}

impl Naive {
    fn bytes(&self) -> u64 {
        self.cached.iter().map(|block| block.size).sum()
    }

    fn reuse(&mut self, size: u64) -> Option<Block> {
        let end = (2 * size).min(size + 2 * PAGE);
        let fits = |block: &&Block| size <= block.size && block.size < end;
        // `min_by_key` returns the first of equals: the oldest.
        let found = *self.cached.iter().filter(fits).min_by_key(|block| block.size)?;
        self.cached.retain(|block| block.addr != found.addr);
        Some(found)
    }

    fn release(&mut self, min_bytes: u64) -> Vec<Block> {
        if min_bytes as f64 >= 0.9 * self.bytes() as f64 {
            let mut all = std::mem::take(&mut self.cached);
            all.sort_by_key(|block| block.size);
            return all;
        }
        let (mut freed, mut count) = (0, 0);
        while freed < min_bytes {
            freed += self.cached[count].size;
            count += 1;
        }
        self.cached.drain(..count).collect()
    }
}

#[derive(Clone, Debug)]
enum Op {
    Malloc(u64),
    Recycle(usize),
    Remove(usize),
    Release(u64),
    Clear,
}

/// Few enough sizes for ties, and neighbours within and just outside of each other's windows.
fn size() -> impl Strategy<Value = u64> {
    prop_oneof![0..40u64, (1..6u64, 0..3u64).prop_map(|(pages, odd)| pages * PAGE + odd), 1..200_000u64]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => size().prop_map(Op::Malloc),
        10 => any::<usize>().prop_map(Op::Recycle),
        1 => any::<usize>().prop_map(Op::Remove),
        1 => (0..300_000u64).prop_map(Op::Release),
        1 => Just(Op::Clear),
    ]
}

struct Pair {
    cache: BufferCache,
    naive: Naive,
    active: Vec<BlockId>,
    next: u64,
}

impl Pair {
    fn malloc(&mut self, size: u64) {
        let found = self.cache.reuse(size);
        assert_eq!(found.and_then(|id| self.cache.get(id)), self.naive.reuse(size), "request of {size}");
        let id = found.unwrap_or_else(|| {
            self.next += 1;
            self.cache.adopt(Block { addr: self.next, size, ..Block::default() })
        });
        self.active.push(id);
    }

    fn recycle(&mut self, at: usize) {
        let id = self.active.swap_remove(at);
        self.naive.cached.extend(self.cache.get(id));
        assert!(self.cache.recycle(id));
        assert!(!self.cache.recycle(id), "a cached block is not recycled again");
        assert_eq!(self.cache.remove(id), None, "a cached block is not active");
    }

    fn release(&mut self, min_bytes: u64) {
        let mut evicted = Vec::new();
        let count = self.cache.release(min_bytes, |block| evicted.push(block));
        assert_eq!(evicted, self.naive.release(min_bytes), "release of {min_bytes}");
        assert_eq!(evicted.len(), count);
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Malloc(size) => self.malloc(size),
            Op::Recycle(at) => {
                if let Some(at) = at.checked_rem(self.active.len()) {
                    self.recycle(at);
                }
            }
            Op::Remove(at) => {
                if let Some(at) = at.checked_rem(self.active.len()) {
                    let id = self.active.swap_remove(at);
                    assert!(self.cache.remove(id).is_some());
                }
            }
            Op::Release(min_bytes) => self.release(min_bytes),
            Op::Clear => self.release(u64::MAX),
        }
        self.check();
    }

    fn check(&self) {
        assert_eq!(self.cache.by_age().collect::<Vec<_>>(), self.naive.cached);
        assert_eq!(self.cache.bytes(), self.naive.bytes());
        assert_eq!(self.cache.cached_blocks(), self.naive.cached.len());
        assert_eq!(self.cache.active_blocks(), self.active.len());
        for block in &self.naive.cached {
            let id = self.cache.find(block.addr).expect("a cached block is found");
            assert!(self.cache.is_cached(id));
            assert_eq!(self.cache.get(id), Some(*block));
        }
        assert!(self.active.iter().all(|&id| !self.cache.is_cached(id)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn agrees_with_the_naive_model_after_every_operation(
        ops in prop::collection::vec(op(), 1..400),
        index_at in 0..800usize,
    ) {
        let mut pair =
            Pair { cache: BufferCache::new(PAGE), naive: Naive::default(), active: Vec::new(), next: 0x1000 };
        for (number, op) in ops.into_iter().enumerate() {
            if number == index_at {
                pair.cache.index_addresses();
            }
            pair.run(op);
        }
    }
}

fn cache_of(sizes: &[u64]) -> BufferCache {
    let mut cache = BufferCache::new(PAGE);
    for (at, &size) in sizes.iter().enumerate() {
        let id = cache.adopt(Block { addr: 0x1000 + at as u64, size, ..Block::default() });
        assert!(cache.recycle(id));
    }
    cache
}

fn serves(block: u64, request: u64) -> bool {
    cache_of(&[block]).reuse(request).is_some()
}

#[test]
fn the_window_ends_before_twice_the_size_or_two_pages_more() {
    for request in [1, 2, 3, 100, PAGE, 2 * PAGE - 1, 2 * PAGE, 2 * PAGE + 1, 1 << 20, 1 << 40] {
        let end = (2 * request).min(request + 2 * PAGE);
        assert!(serves(request, request), "{request}");
        assert!(serves(end - 1, request), "{request}");
        assert!(!serves(end, request), "{request}");
        assert!(!serves(request - 1, request), "{request}");
    }
    assert!(!serves(0, 0) && !serves(1, 0), "a request of 0 bytes fits nothing");
}

#[test]
fn of_equal_blocks_the_oldest_serves() {
    let mut cache = cache_of(&[500, 700, 500, 500]);
    let mut addrs = Vec::new();
    while let Some(id) = cache.reuse(450) {
        addrs.push(cache.get(id).unwrap().addr);
    }
    assert_eq!(addrs, [0x1000, 0x1002, 0x1003, 0x1001]);
}

#[test]
fn a_release_of_nine_tenths_clears_in_order_of_size() {
    let released = |min_bytes| {
        let mut sizes = Vec::new();
        cache_of(&[300, 100, 400, 200]).release(min_bytes, |block| sizes.push(block.size));
        sizes
    };
    assert_eq!(released(0), [0u64; 0]);
    assert_eq!(released(1), [300]);
    assert_eq!(released(300), [300]);
    assert_eq!(released(301), [300, 100]);
    assert_eq!(released(899), [300, 100, 400, 200], "by age, until enough left");
    assert_eq!(released(900), [100, 200, 300, 400]);
}

#[test]
fn counters_are_filed_by_size() {
    let mut cache = cache_of(&[1000, 1000]);
    assert!(cache.reuse(900).is_some());
    assert!(cache.reuse(3).is_none());
    cache.clear(|_| {});
    let class = |size| cache.counters().class(memviz_alloc::size_class(size));
    assert_eq!((class(1000).hits, class(1000).hit_bytes), (1, 1000));
    assert_eq!((class(1000).evictions, class(1000).evicted_bytes), (1, 1000));
    assert_eq!((class(3).misses, class(2).misses, class(4).misses), (1, 1, 0));
    assert_eq!(cache.counters().total().hit_rate(), Some(0.5));
}

/// Sizes that do not come again are left behind in bulk, those of active blocks are not.
#[test]
fn many_sizes_come_and_go() {
    let mut pair = Pair { cache: BufferCache::new(PAGE), naive: Naive::default(), active: Vec::new(), next: 0x1000 };
    for round in 0..4u64 {
        for number in 0..500 {
            pair.run(Op::Malloc((1 << 30) + (number * 3 + round) * 5 * PAGE));
        }
        // All but a few go: by age, then in order of size.
        while pair.active.len() > 7 {
            pair.run(Op::Recycle(pair.active.len() * 5 / 7));
        }
        let half = pair.naive.bytes() / 2;
        pair.run(Op::Release(half));
        pair.run(Op::Clear);
        // Sizes from before, cached and active ones.
        for number in 0..40 {
            pair.run(Op::Malloc((1 << 30) + (number * 33 + round / 2) * 5 * PAGE));
            pair.run(Op::Recycle(number as usize));
        }
    }
}
