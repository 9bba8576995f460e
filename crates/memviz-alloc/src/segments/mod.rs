//! PyTorch's caching allocator on one stream, without memory: which block serves a request, what the driver is asked for and
//! what it gets back.
//!
//! Same decisions as `DeviceCachingAllocator` of c10/cuda/CUDACachingAllocator.cpp (`get_free_block`, `alloc_found_block`,
//! `try_merge_blocks`, `release_blocks`, `find_expandable_block`, `map_block`, `unmap_block`), other structures. Two things
//! differ: each segment lies below the one before, as the driver mostly places them (it fills holes too), which decides
//! between blocks of equal size; and a range that grows has 4 EiB of addresses, where PyTorch's has 9/8 of the device's
//! memory and is followed by a second one.
//!
//! `active + cached == reserved`, the bytes of all segments, or of all mapped pages; `active` counts blocks, so it has what
//! rounding and unsplit blocks add.
//!
//! Here: blocks that serve and come back, and the sums; `driver` has memory that comes from there and goes back. Not here:
//! streams, graphs, and what a program sets in `PYTORCH_ALLOC_CONF`.
//!
//! ```
//! use memviz_alloc::{SegmentEngine, SegmentPolicy};
//!
//! let mut engine = SegmentEngine::new(SegmentPolicy::pytorch(24 << 30));
//! let block = engine.malloc(3 << 20)?.unwrap();
//! assert_eq!((engine.usage().active, engine.usage().cached), (3 << 20, 17 << 20));
//! engine.free(block)?;
//! engine.clear_cache();
//! assert_eq!(engine.usage().cached, 0);
//! # Ok::<(), memviz_alloc::AllocError>(())
//! ```

mod blocks;
mod driver;
mod policy;

use crate::block::BlockId;
use crate::engine::Usage;
use crate::error::AllocError;
use blocks::{Blocks, NONE, Record, State};

pub use policy::SegmentPolicy;

/// Addresses of a range that grows; a multiple of every page.
const RANGE: u64 = (1 << 62) / (20 << 20) * (20 << 20);
/// Largest request that is looked at: what C++ can address.
const MAX_REQUEST: u64 = i64::MAX as u64;

/// Calls to the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCalls {
    /// Number; a run of pages that is mapped or unmapped at once counts as one, as in PyTorch's `num_device_alloc`.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
}

impl DriverCalls {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// A run of memory that the driver gave, and the blocks that it is cut into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First address.
    pub addr: u64,
    /// Bytes.
    pub size: u64,
    /// Of the pool of small blocks.
    pub is_small: bool,
    /// Size of each block and whether it is active, in order of address.
    pub blocks: Vec<(u64, bool)>,
}

/// A [`SegmentPolicy`] at work.
#[derive(Clone, Debug)]
pub struct SegmentEngine {
    policy: SegmentPolicy,
    memory_limit: u64,
    blocks: Blocks,
    /// The lowest segment's address.
    lowest: u64,
    /// Where the next segment is, if not below.
    placed: Option<u64>,
    /// Active bytes without a block.
    base: u64,
    /// Bytes of active blocks.
    active: u64,
    /// Bytes of segments, or of mapped pages.
    reserved: u64,
    /// Segments, or mapped pages.
    pieces: u64,
    peak: u64,
    peak_reserved: u64,
    hits: u64,
    misses: u64,
    made: DriverCalls,
    given_back: DriverCalls,
}

impl SegmentEngine {
    /// A process that has not allocated yet.
    pub fn new(policy: SegmentPolicy) -> SegmentEngine {
        let mut blocks = Blocks::default();
        if policy.grows {
            for (is_small, addr) in [(true, 0), (false, 1 << 63)] {
                let range = blocks.add(addr, RANGE, is_small);
                blocks.insert_unmapped(range);
            }
        }
        SegmentEngine {
            policy,
            memory_limit: u64::MAX,
            blocks,
            lowest: u64::MAX - u64::MAX % (2 << 20),
            placed: None,
            base: 0,
            active: 0,
            reserved: 0,
            pieces: 0,
            peak: 0,
            peak_reserved: 0,
            hits: 0,
            misses: 0,
            made: DriverCalls::default(),
            given_back: DriverCalls::default(),
        }
    }

    /// A block for `requested` bytes; none for 0 bytes.
    ///
    /// # Errors
    /// The request is larger than anything, or there is no memory although all that is free was given back.
    #[inline]
    pub fn malloc(&mut self, requested: u64) -> Result<Option<BlockId>, AllocError> {
        if requested == 0 {
            return Ok(None);
        }
        if requested > MAX_REQUEST {
            return Err(AllocError::TooLarge { requested, limit: MAX_REQUEST });
        }
        let size = self.policy.round(requested);
        let id = match self.best_fit(size) {
            Some(id) => {
                self.hits += 1;
                self.blocks.remove(id);
                id
            }
            None => self.miss(requested, size)?,
        };
        Ok(Some(self.take(id, size)))
    }

    fn miss(&mut self, requested: u64, size: u64) -> Result<u32, AllocError> {
        let mut found = self.ask_driver(size);
        if found.is_none() {
            self.clear_cache();
            found = self.ask_driver(size);
        }
        let Usage { active, cached, .. } = self.usage();
        let id = found.ok_or(AllocError::OutOfMemory { requested, active, cached })?;
        self.misses += 1;
        Ok(id)
    }

    /// The smallest free block that serves. In a range, one that could grow further is spared for larger requests.
    #[inline]
    fn best_fit(&self, size: u64) -> Option<u32> {
        let mut fitting = self.blocks.free_from(self.policy.is_small(size), size);
        let mut best = fitting.next()?;
        if self.policy.grows {
            while let Some(next) = fitting.next().filter(|&next| self.could_be(next) < self.could_be(best)) {
                best = next;
            }
        }
        Some(best)
    }

    /// Bytes of a block and the unmapped one behind it.
    fn could_be(&self, id: u32) -> u64 {
        let block = self.blocks.at(id);
        let behind = self.blocks.get(block.next).filter(|next| next.state == State::Unmapped);
        block.size + behind.map_or(0, |next| next.size)
    }

    /// Uses a block that is in no list, and frees what it has too much.
    #[inline]
    fn take(&mut self, id: u32, size: u64) -> BlockId {
        let Record { size: whole, is_small, .. } = *self.blocks.at(id);
        let mut used = whole;
        if self.policy.splits(is_small, whole - size) {
            let rest = self.blocks.cut(id, size);
            self.set_free(rest);
            used = size;
        }
        self.blocks.set_active(id);
        self.active += used;
        self.raise_peaks();
        BlockId(id)
    }

    #[inline]
    fn set_free(&mut self, id: u32) {
        let block = self.blocks.at(id);
        let is_releasable = match self.policy.grows {
            true => self.whole_pages(block).1 > 0,
            false => block.prev == NONE && block.next == NONE,
        };
        self.blocks.insert_free(id, is_releasable);
    }

    /// Ends the use of a block.
    ///
    /// # Errors
    /// There is no such active block. Nothing changed then.
    #[inline]
    pub fn free(&mut self, id: BlockId) -> Result<(), AllocError> {
        let id = id.0;
        let block = self.blocks.get(id).filter(|block| block.state == State::Active);
        let size = block.ok_or(AllocError::UnknownBuffer { addr: 0 })?.size;
        self.active -= size;
        self.blocks.join(id, State::Free);
        self.set_free(id);
        Ok(())
    }

    /// As `torch.cuda.set_per_process_memory_fraction`, in bytes. Returns the one before.
    pub fn set_memory_limit(&mut self, limit: u64) -> u64 {
        std::mem::replace(&mut self.memory_limit, limit)
    }

    /// Active bytes that belong to no known block change: those from before the first call, and those of calls left out.
    pub fn shift_base(&mut self, change: i64) {
        self.base = self.base.saturating_add_signed(change);
        self.raise_peaks();
    }

    #[inline]
    fn raise_peaks(&mut self) {
        self.peak = self.peak.max(self.active.saturating_add(self.base));
        self.peak_reserved = self.peak_reserved.max(self.reserved.saturating_add(self.base));
    }

    /// Sums; `blocks` are segments, or mapped pages.
    #[inline]
    pub fn usage(&self) -> Usage {
        Usage {
            active: self.active.saturating_add(self.base),
            cached: self.reserved - self.active,
            peak: self.peak,
            peak_reserved: self.peak_reserved,
            blocks: self.pieces,
        }
    }

    /// Requests that a free block served, and requests that took memory from the driver.
    pub fn lookups(&self) -> (u64, u64) {
        (self.hits, self.misses)
    }

    /// What the driver gave, and what it got back.
    pub fn driver_calls(&self) -> (DriverCalls, DriverCalls) {
        (self.made, self.given_back)
    }

    /// The policy.
    pub fn policy(&self) -> &SegmentPolicy {
        &self.policy
    }

    /// All segments, in order of address, as `torch.cuda.memory_snapshot()` lists them.
    pub fn segments(&self) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut last = NONE;
        for id in self.blocks.by_addr() {
            let Record { addr, size, prev, is_small, state, .. } = *self.blocks.at(id);
            if state == State::Unmapped {
                continue;
            }
            if prev == NONE || prev != last {
                segments.push(Segment { addr, size: 0, is_small, blocks: Vec::new() });
            }
            if let Some(segment) = segments.last_mut() {
                segment.size += size;
                segment.blocks.push((size, state == State::Active));
            }
            last = id;
        }
        segments
    }
}
