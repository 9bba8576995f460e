//! `BufferCache`: which cached block serves a request, and which one leaves first.
//!
//! Same decisions as MLX's `BufferCache` (mlx/backend/common/buffer_cache.h), other structures:
//! - a request of `n` bytes takes the smallest block in `[n, min(2n, n + 2·page))`, among equals the one cached first;
//! - blocks leave in the order in which they were cached, until enough bytes left; a release of 90 % of the bytes or more
//!   clears everything, in order of size.
//!
//! It keeps one record for each block from `adopt` to the end, active or cached, so a hit and the free after it allocate
//! nothing and touch no hash table but the one from size to queue. Blocks are known by number; who has addresses only asks
//! for an index of them, which costs most of an eviction: two random places in memory. A block is active or cached, never both; the cached ones
//! are in the queue of their size and in the list by age. A block that leaves by age is the first of its queue, so queues
//! need no way back.
//!
//! Not here: limits, rounding, when to release (`engine`), memory (`heap`), locks (`allocator`).

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::block::{Block, BlockId, Place};
use crate::counters::Counters;
use crate::size_index::SizeIndex;

const NONE: u32 = u32::MAX;
/// So many queues without a block may wait whatever the others are.
const MOST_WAITING: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unused,
    Active,
    Cached,
}

/// A record of a block. `older` and `newer` link the list by age, `behind` the queue of its size or the unused records.
#[derive(Clone, Debug)]
struct Record {
    addr: u64,
    size: u64,
    queue: u32,
    older: u32,
    newer: u32,
    behind: u32,
    place: Place,
    state: State,
}

impl Record {
    fn block(&self) -> Block {
        Block { addr: self.addr, size: self.size, place: self.place }
    }
}

/// The cached blocks of one size, in the order in which they were cached. `blocks` counts active ones of that size too, as
/// far as they were cached once: at 0 the queue waits for the size to come again, until waiting ones are most of all. A queue
/// that is not empty is live in the index; an empty one may be, until a search comes by: a block that goes and returns, the
/// usual case, leaves the index alone.
#[derive(Clone, Debug)]
struct Queue {
    size: u64,
    first: u32,
    last: u32,
    blocks: u32,
    is_live: bool,
}

/// Cached blocks by size and by age, and the active blocks that may return.
///
/// ```
/// use memviz_alloc::{Block, BufferCache};
///
/// let mut cache = BufferCache::new(4096);
/// let block = cache.adopt(Block { addr: 0x1000, size: 100_000, ..Block::default() });
/// assert!(cache.recycle(block));
/// assert_eq!(cache.reuse(91_808), None); // 91,808 + 2 · 4,096 = 100,000, which the window excludes
/// assert_eq!(cache.reuse(91_809), Some(block));
/// ```
#[derive(Clone, Debug)]
pub struct BufferCache {
    page: u64,
    records: Vec<Record>,
    unused: u32,
    by_addr: Option<FxHashMap<u64, u32>>,
    queues: Vec<Queue>,
    unused_queues: Vec<u32>,
    /// Queues in `by_size` without a block.
    waiting: usize,
    by_size: FxHashMap<u64, u32>,
    index: SizeIndex,
    oldest: u32,
    newest: u32,
    bytes: u64,
    cached: usize,
    active: usize,
    counters: Counters,
}

impl BufferCache {
    /// An empty cache. `page` widens the window of sizes that serve a request.
    pub fn new(page: u64) -> BufferCache {
        BufferCache {
            page,
            records: Vec::new(),
            unused: NONE,
            by_addr: None,
            queues: Vec::new(),
            unused_queues: Vec::new(),
            waiting: 0,
            by_size: FxHashMap::default(),
            index: SizeIndex::default(),
            oldest: NONE,
            newest: NONE,
            bytes: 0,
            cached: 0,
            active: 0,
            counters: Counters::default(),
        }
    }

    /// Bytes of the cached blocks.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of cached blocks.
    pub fn cached_blocks(&self) -> usize {
        self.cached
    }

    /// Number of active blocks.
    pub fn active_blocks(&self) -> usize {
        self.active
    }

    /// Hits, misses and evictions.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The block, if it exists, active or cached.
    pub fn get(&self, id: BlockId) -> Option<Block> {
        let record = self.records.get(id.index())?;
        (record.state != State::Unused).then(|| record.block())
    }

    /// Does it wait for a new user?
    pub fn is_cached(&self, id: BlockId) -> bool {
        self.state(id) == State::Cached
    }

    fn state(&self, id: BlockId) -> State {
        self.records.get(id.index()).map_or(State::Unused, |record| record.state)
    }

    /// The block at an address, active or cached; of several, one. Looks at every block, unless addresses are indexed.
    pub fn find(&self, addr: u64) -> Option<BlockId> {
        match &self.by_addr {
            Some(index) => index.get(&addr).map(|&id| BlockId(id)),
            None => self.ids().rev().find(|&id| self.records[id as usize].addr == addr).map(BlockId),
        }
    }

    /// From now on, addresses are indexed: `find` takes constant time, and entering and leaving longer.
    pub fn index_addresses(&mut self) {
        let index = self.ids().map(|id| (self.records[id as usize].addr, id)).collect();
        self.by_addr.get_or_insert(index);
    }

    /// Numbers of all blocks.
    fn ids(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        (0..self.records.len() as u32).filter(|&id| self.records[id as usize].state != State::Unused)
    }

    /// Enters a new block, which is active. No other block should have its address: `find` would find one of the two.
    pub fn adopt(&mut self, block: Block) -> BlockId {
        let record = Record {
            addr: block.addr,
            size: block.size,
            queue: NONE,
            older: NONE,
            newer: NONE,
            behind: NONE,
            place: block.place,
            state: State::Active,
        };
        let id = self.unused;
        let id = if id == NONE {
            self.records.push(record);
            (self.records.len() - 1) as u32
        } else {
            let unused = &mut self.records[id as usize];
            self.unused = unused.behind;
            *unused = record;
            id
        };
        if let Some(index) = &mut self.by_addr {
            index.insert(block.addr, id);
        }
        self.active += 1;
        BlockId(id)
    }

    /// Takes an active block out, for good. `None` if there is no such active block.
    pub fn remove(&mut self, id: BlockId) -> Option<Block> {
        if self.state(id) != State::Active {
            return None;
        }
        self.active -= 1;
        Some(self.forget(id.0))
    }

    /// Moves an active block to the cache, as the newest. `false` if there is no such active block.
    #[inline]
    pub fn recycle(&mut self, id: BlockId) -> bool {
        if self.state(id) != State::Active {
            return false;
        }
        let queue = self.queue_of(id.0);
        self.enqueue(queue, id.0);
        let newest = std::mem::replace(&mut self.newest, id.0);
        let record = &mut self.records[id.index()];
        record.state = State::Cached;
        (record.older, record.newer) = (newest, NONE);
        self.bytes += record.size;
        match newest {
            NONE => self.oldest = id.0,
            newest => self.records[newest as usize].newer = id.0,
        }
        self.cached += 1;
        self.active -= 1;
        true
    }

    /// Takes the block that serves a request of `size` bytes: it is active then.
    #[inline]
    pub fn reuse(&mut self, size: u64) -> Option<BlockId> {
        let Some(queue) = self.fitting(size) else {
            self.counters.miss(size);
            return None;
        };
        let id = self.dequeue(queue);
        self.unlink(id);
        let record = &mut self.records[id as usize];
        record.state = State::Active;
        self.bytes -= record.size;
        self.counters.hit(size, record.size);
        self.cached -= 1;
        self.active += 1;
        Some(BlockId(id))
    }

    /// Gives blocks back, the oldest first, until `min_bytes` or more left; `evicted` is told of each. Everything leaves, in
    /// order of size, if `min_bytes` is 90 % of the cached bytes or more. Returns how many blocks left.
    pub fn release(&mut self, min_bytes: u64, mut evicted: impl FnMut(Block)) -> usize {
        // MLX compares in double precision too.
        if min_bytes as f64 >= 0.9 * self.bytes as f64 {
            return self.clear(evicted);
        }
        let (before, mut freed) = (self.cached, 0u64);
        while self.oldest != NONE && freed < min_bytes {
            let block = self.evict(self.oldest);
            freed = freed.saturating_add(block.size);
            evicted(block);
        }
        before - self.cached
    }

    /// Gives every cached block back, the smallest first, among equals the oldest. Returns how many left.
    pub fn clear(&mut self, mut evicted: impl FnMut(Block)) -> usize {
        let before = self.cached;
        for queue in self.index.live() {
            while self.queues[queue as usize].first != NONE {
                evicted(self.evict(self.queues[queue as usize].first));
            }
        }
        before - self.cached
    }

    /// Cached blocks, the oldest first.
    pub fn by_age(&self) -> impl Iterator<Item = Block> + '_ {
        let mut next = self.oldest;
        std::iter::from_fn(move || {
            let record = self.records.get(next as usize)?;
            next = record.newer;
            Some(record.block())
        })
    }

    /// The queue whose first block serves a request. The exact size is the smallest that can, and by far the usual one.
    #[inline]
    fn fitting(&mut self, size: u64) -> Option<u32> {
        let end = size.saturating_mul(2).min(size.saturating_add(self.page.saturating_mul(2)));
        if size >= end {
            return None;
        }
        if let Some(&queue) = self.by_size.get(&size)
            && self.queues[queue as usize].first != NONE
        {
            return Some(queue);
        }
        self.next_queue(size).filter(|&(found, _)| found < end).map(|(_, queue)| queue)
    }

    /// The smallest size at or above `size` that has a cached block, with its queue.
    fn next_queue(&mut self, size: u64) -> Option<(u64, u32)> {
        loop {
            let (found, queue) = self.index.next(size)?;
            let at = &mut self.queues[queue as usize];
            if at.first != NONE {
                return Some((found, queue));
            }
            at.is_live = false;
            self.index.set_live(found, queue, false);
        }
    }

    /// The queue that a block returns to. It is looked up once in a block's life.
    #[inline]
    fn queue_of(&mut self, id: u32) -> u32 {
        let record = &self.records[id as usize];
        if record.queue != NONE {
            return record.queue;
        }
        let size = record.size;
        let queue = match self.by_size.get(&size) {
            Some(&queue) => queue,
            None => self.add_queue(size),
        };
        let at = &mut self.queues[queue as usize];
        self.waiting -= usize::from(at.blocks == 0);
        at.blocks += 1;
        self.records[id as usize].queue = queue;
        queue
    }

    #[cold]
    fn add_queue(&mut self, size: u64) -> u32 {
        let new = Queue { size, first: NONE, last: NONE, blocks: 0, is_live: false };
        let queue = match self.unused_queues.pop() {
            Some(unused) => {
                self.queues[unused as usize] = new;
                unused
            }
            None => {
                self.queues.push(new);
                (self.queues.len() - 1) as u32
            }
        };
        self.waiting += 1;
        self.by_size.insert(size, queue);
        self.index.insert(size, queue);
        queue
    }

    #[inline]
    fn enqueue(&mut self, queue: u32, id: u32) {
        self.records[id as usize].behind = NONE;
        let at = &mut self.queues[queue as usize];
        let last = std::mem::replace(&mut at.last, id);
        if last != NONE {
            self.records[last as usize].behind = id;
            return;
        }
        at.first = id;
        if !at.is_live {
            at.is_live = true;
            self.index.set_live(at.size, queue, true);
        }
    }

    #[inline]
    fn dequeue(&mut self, queue: u32) -> u32 {
        let at = &mut self.queues[queue as usize];
        let id = at.first;
        at.first = self.records[id as usize].behind;
        if at.first == NONE {
            at.last = NONE;
        }
        id
    }

    /// Takes a block out of the list by age.
    #[inline]
    fn unlink(&mut self, id: u32) {
        let (older, newer) = (self.records[id as usize].older, self.records[id as usize].newer);
        match older {
            NONE => self.oldest = newer,
            older => self.records[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.records[newer as usize].older = older,
        }
    }

    /// Evicts a block that is the first of its queue.
    fn evict(&mut self, id: u32) -> Block {
        let first = self.dequeue(self.records[id as usize].queue);
        debug_assert_eq!(first, id, "the oldest block of all is the oldest of its size");
        self.unlink(id);
        self.cached -= 1;
        let block = self.forget(id);
        self.bytes -= block.size;
        self.counters.evict(block.size);
        block
    }

    /// Makes the record unused, and its queue too if that was its last block.
    fn forget(&mut self, id: u32) -> Block {
        let unused = std::mem::replace(&mut self.unused, id);
        let record = &mut self.records[id as usize];
        (record.state, record.behind) = (State::Unused, unused);
        let (block, queue) = (record.block(), record.queue);
        if let Some(index) = &mut self.by_addr
            && let Entry::Occupied(entry) = index.entry(block.addr)
            && *entry.get() == id
        {
            entry.remove();
        }
        if queue != NONE {
            self.leave_queue(queue);
        }
        block
    }

    #[inline]
    fn leave_queue(&mut self, queue: u32) {
        let at = &mut self.queues[queue as usize];
        at.blocks -= 1;
        if at.blocks == 0 {
            self.waiting += 1;
            if self.waiting > MOST_WAITING && self.waiting / 4 > self.by_size.len() - self.waiting {
                self.forget_waiting();
            }
        }
    }

    /// Enters the queues that have blocks anew and leaves the others out: one for four that go, and none of the four is
    /// searched.
    #[cold]
    fn forget_waiting(&mut self) {
        (self.waiting, self.index) = (0, SizeIndex::default());
        for (size, queue) in std::mem::take(&mut self.by_size) {
            let at = &self.queues[queue as usize];
            if at.blocks == 0 {
                self.unused_queues.push(queue);
                continue;
            }
            self.by_size.insert(size, queue);
            self.index.insert(size, queue);
            if at.is_live {
                self.index.set_live(size, queue, true);
            }
        }
    }
}
