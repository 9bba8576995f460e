//! `SegmentEngine` against a naive model, which keeps active blocks and the driver's pieces and finds what is free between
//! them anew at each call; and the rules at their edges.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use memviz_alloc::{AllocError, BlockId, SegmentEngine, SegmentPolicy};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const MEMORY: u64 = 200 * MIB;
/// Unmapped addresses behind the last page: more than anything else.
const ENDLESS: u64 = 1 << 61;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    addr: u64,
    size: u64,
}

impl Span {
    fn end(&self) -> u64 {
        self.addr + self.size
    }
}

/// One pool: segments, or mapped pages.
#[derive(Default)]
struct Pool {
    pieces: Vec<Span>,
    active: Vec<Span>,
}

struct Naive {
    policy: SegmentPolicy,
    /// The large one, the small one.
    pools: [Pool; 2],
    lowest: u64,
    hits: u64,
    misses: u64,
    made: (u64, u64),
    given_back: (u64, u64),
}

impl Naive {
    fn new(policy: SegmentPolicy) -> Naive {
        let lowest = u64::MAX - u64::MAX % (2 * MIB);
        Naive { policy, pools: Default::default(), lowest, hits: 0, misses: 0, made: (0, 0), given_back: (0, 0) }
    }

    fn sum(&self, of: fn(&Pool) -> &Vec<Span>) -> u64 {
        self.pools.iter().flat_map(of).map(|span| span.size).sum()
    }

    fn reserved(&self) -> u64 {
        self.sum(|pool| &pool.pieces)
    }

    /// Runs of memory: segments as they are, pages joined.
    fn runs(&self, small: usize) -> Vec<Span> {
        let mut pieces = self.pools[small].pieces.clone();
        pieces.sort();
        let mut runs: Vec<Span> = Vec::new();
        for piece in pieces {
            match runs.last_mut().filter(|last| self.policy.grows && last.end() == piece.addr) {
                Some(last) => last.size += piece.size,
                None => runs.push(piece),
            }
        }
        runs
    }

    /// What is free: the gaps between active blocks.
    fn free(&self, small: usize) -> Vec<Span> {
        let mut free = Vec::new();
        let mut active = self.pools[small].active.clone();
        active.sort();
        for run in self.runs(small) {
            let mut from = run.addr;
            for block in active.iter().filter(|block| run.addr <= block.addr && block.end() <= run.end()) {
                free.push(Span { addr: from, size: block.addr - from });
                from = block.end();
            }
            free.push(Span { addr: from, size: run.end() - from });
        }
        free.retain(|span| span.size > 0);
        free
    }

    /// What a free span could be, with the unmapped addresses behind it.
    fn could_be(&self, small: usize, free: Span) -> u64 {
        let runs = self.runs(small);
        if !runs.iter().any(|run| run.end() == free.end()) {
            return free.size;
        }
        let next = runs.iter().map(|run| run.addr).filter(|&addr| addr > free.addr).min();
        next.map_or(ENDLESS, |next| next - free.addr)
    }

    fn best(&self, small: usize, size: u64) -> Option<Span> {
        let mut free: Vec<Span> = self.free(small).into_iter().filter(|span| span.size >= size).collect();
        free.sort_by_key(|span| (span.size, span.addr));
        let mut spans = free.into_iter();
        let mut best = spans.next()?;
        for span in spans.take_while(|_| self.policy.grows) {
            if self.could_be(small, span) >= self.could_be(small, best) {
                break;
            }
            best = span;
        }
        Some(best)
    }

    fn malloc(&mut self, requested: u64) -> Option<Span> {
        let size = requested.div_ceil(512) * 512;
        let small = usize::from(size <= MIB);
        let found = self.best(small, size);
        let span = match found {
            Some(span) => span,
            None => match self.ask_driver(small, size) {
                Some(span) => span,
                None => {
                    self.clear();
                    self.ask_driver(small, size)?
                }
            },
        };
        if found.is_some() {
            self.hits += 1
        } else {
            self.misses += 1
        }
        let left = span.size - size;
        let is_split = if small == 1 || self.policy.grows { left >= 512 } else { left > MIB };
        let block = Span { size: if is_split { size } else { span.size }, ..span };
        self.pools[small].active.push(block);
        Some(block)
    }

    fn ask_driver(&mut self, small: usize, size: u64) -> Option<Span> {
        if self.policy.grows {
            return self.grow(small, size);
        }
        let segment = match size {
            _ if small == 1 => 2 * MIB,
            _ if size < 10 * MIB => 20 * MIB,
            _ => size.div_ceil(2 * MIB) * 2 * MIB,
        };
        if self.reserved() + segment > MEMORY {
            return None;
        }
        self.lowest -= segment;
        let span = Span { addr: self.lowest, size: segment };
        self.pools[small].pieces.push(span);
        self.made = (self.made.0 + 1, self.made.1 + segment);
        Some(span)
    }

    /// The lowest place between active blocks with an unmapped page and enough addresses; maps what is missing there.
    fn grow(&mut self, small: usize, size: u64) -> Option<Span> {
        let (page, base) = if small == 1 { (2 * MIB, 0) } else { (20 * MIB, 1 << 63) };
        let mut active = self.pools[small].active.clone();
        active.sort();
        let starts = std::iter::once(base).chain(active.iter().map(Span::end));
        let ends: Vec<u64> = active.iter().map(|block| block.addr).chain([u64::MAX]).collect();
        let is_mapped =
            |pool: &Pool, addr: u64| pool.pieces.iter().any(|piece| piece.addr <= addr && addr < piece.end());
        let first_page = |from: u64| base + (from - base).div_ceil(page) * page;
        let has_hole = |pool: &Pool, from: u64, to: u64| {
            let pages = (first_page(from)..to).step_by(page as usize).take(64);
            pages.into_iter().any(|addr| !is_mapped(pool, addr))
        };
        let pool = &self.pools[small];
        let start = starts.zip(ends).find(|&(from, to)| to - from >= size && has_hole(pool, from, to))?.0;
        let mut addr = base + (start - base) / page * page;
        while addr < start + size {
            let mut missing = Vec::new();
            while addr < start + size && !is_mapped(&self.pools[small], addr) {
                missing.push(Span { addr, size: page });
                addr += page;
            }
            let bytes = missing.len() as u64 * page;
            if self.reserved() + bytes > MEMORY {
                return None;
            }
            self.made = (self.made.0 + u64::from(bytes > 0), self.made.1 + bytes);
            addr += if missing.is_empty() { page } else { 0 };
            self.pools[small].pieces.extend(missing);
        }
        self.free(small).into_iter().find(|span| span.addr == start)
    }

    fn clear(&mut self) {
        for small in 0..2 {
            let active = &self.pools[small].active;
            let is_used =
                |piece: &Span| active.iter().any(|block| block.addr < piece.end() && piece.addr < block.end());
            let (used, mut free): (Vec<Span>, Vec<Span>) = self.pools[small].pieces.iter().copied().partition(is_used);
            free.sort();
            self.given_back.1 += free.iter().map(|piece| piece.size).sum::<u64>();
            let joined = free.windows(2).filter(|pair| self.policy.grows && pair[0].end() == pair[1].addr).count();
            self.given_back.0 += (free.len() - joined) as u64;
            self.pools[small].pieces = used;
        }
    }

    fn free_block(&mut self, block: Span) {
        self.pools.iter_mut().for_each(|pool| pool.active.retain(|other| *other != block));
    }
}

#[derive(Clone, Debug)]
enum Op {
    Malloc(u64),
    Free(usize),
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let edges = (prop_oneof![Just(MIB), Just(2 * MIB), Just(10 * MIB), Just(20 * MIB)], 0..1030u64);
    let size = prop_oneof![
        3 => 1..5000u64,
        3 => 1..MIB,
        2 => edges.prop_map(|(size, more)| size - 515 + more),
        3 => MIB..10 * MIB,
        3 => 10 * MIB..70 * MIB,
    ];
    prop_oneof![10 => size.prop_map(Op::Malloc), 9 => any::<usize>().prop_map(Op::Free), 1 => Just(Op::Clear)]
}

fn check(engine: &SegmentEngine, naive: &Naive) -> Result<(), TestCaseError> {
    let (usage, (made, given_back)) = (engine.usage(), engine.driver_calls());
    prop_assert_eq!(usage.active, naive.sum(|pool| &pool.active));
    prop_assert_eq!(usage.active + usage.cached, naive.reserved());
    prop_assert_eq!(usage.blocks, naive.pools.iter().map(|pool| pool.pieces.len() as u64).sum::<u64>());
    prop_assert_eq!(((made.count, made.bytes), (given_back.count, given_back.bytes)), (naive.made, naive.given_back));
    prop_assert_eq!(made.bytes - given_back.bytes, naive.reserved());
    prop_assert_eq!(engine.lookups(), (naive.hits, naive.misses));
    let mut active = Vec::new();
    for segment in engine.segments() {
        let mut addr = segment.addr;
        for &(size, is_active) in &segment.blocks {
            active.extend(is_active.then_some(Span { addr, size }));
            addr += size;
        }
        prop_assert_eq!(addr, segment.addr + segment.size, "blocks tile their segment");
        prop_assert!(
            segment.blocks.windows(2).all(|pair| pair[0].1 || pair[1].1),
            "two free neighbours: {:?}",
            segment
        );
    }
    let mut expected: Vec<Span> = naive.pools.iter().flat_map(|pool| pool.active.iter().copied()).collect();
    expected.sort();
    prop_assert_eq!(active, expected);
    Ok(())
}

fn agrees(policy: SegmentPolicy, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let (mut engine, mut naive) = (SegmentEngine::new(policy.clone()), Naive::new(policy));
    let mut live: Vec<(BlockId, Span)> = Vec::new();
    for op in ops {
        match op {
            Op::Malloc(size) => match (engine.malloc(size), naive.malloc(size)) {
                (Ok(Some(id)), Some(span)) => live.push((id, span)),
                (Err(AllocError::OutOfMemory { .. }), None) => {}
                (found, expected) => prop_assert!(false, "{found:?}, expected {expected:?}"),
            },
            Op::Free(_) if live.is_empty() => {}
            Op::Free(at) => {
                let (id, span) = live.swap_remove(at % live.len());
                engine.free(id).unwrap();
                prop_assert!(engine.free(id).is_err());
                naive.free_block(span);
            }
            Op::Clear => {
                engine.clear_cache();
                naive.clear();
            }
        }
        check(&engine, &naive)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn segments_agree_with_the_naive_model(ops in prop::collection::vec(op(), 1..250)) {
        agrees(SegmentPolicy::pytorch(MEMORY), ops)?;
    }

    #[test]
    fn ranges_agree_with_the_naive_model(ops in prop::collection::vec(op(), 1..250)) {
        agrees(SegmentPolicy::expandable(MEMORY), ops)?;
    }
}

#[test]
fn sizes_at_their_edges() {
    let reserved = |policy: SegmentPolicy, size| {
        let mut engine = SegmentEngine::new(policy);
        engine.malloc(size).unwrap();
        (engine.usage().active, engine.usage().active + engine.usage().cached)
    };
    let pytorch = |size| reserved(SegmentPolicy::pytorch(1 << 40), size);
    assert_eq!(pytorch(0), (0, 0));
    assert_eq!((pytorch(1), pytorch(513)), ((512, 2 * MIB), (1024, 2 * MIB)));
    assert_eq!((pytorch(MIB), pytorch(MIB + 1)), ((MIB, 2 * MIB), (MIB + 512, 20 * MIB)));
    assert_eq!((pytorch(10 * MIB - 512), pytorch(10 * MIB)), ((10 * MIB - 512, 20 * MIB), (10 * MIB, 10 * MIB)));
    // A remainder of 1 MiB or less is not split off.
    assert_eq!((pytorch(11 * MIB), pytorch(19 * MIB)), ((12 * MIB, 12 * MIB), (20 * MIB, 20 * MIB)));
    let expandable = |size| reserved(SegmentPolicy::expandable(1 << 40), size);
    assert_eq!((expandable(MIB), expandable(MIB + 1)), ((MIB, 2 * MIB), (MIB + 512, 20 * MIB)));
    assert_eq!((expandable(11 * MIB), expandable(41 * MIB)), ((11 * MIB, 20 * MIB), (41 * MIB, 60 * MIB)));
}

#[test]
fn memory_without_blocks_counts_too() {
    let mut engine = SegmentEngine::new(SegmentPolicy::pytorch(30 * MIB));
    engine.shift_base(11 * MIB as i64);
    assert!(matches!(engine.malloc(2 * MIB), Err(AllocError::OutOfMemory { active, .. }) if active == 11 * MIB));
    engine.shift_base(i64::MIN);
    assert!(engine.malloc(2 * MIB).is_ok());
    assert_eq!(
        (engine.usage().active, engine.usage().peak, engine.usage().peak_reserved),
        (2 * MIB, 11 * MIB, 20 * MIB)
    );
    assert!(matches!(engine.malloc(u64::MAX), Err(AllocError::TooLarge { .. })));
}
