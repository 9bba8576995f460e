//! The decisions of MLX's allocators, without memory: what a call reuses, evicts, asks for and counts.
//!
//! An allocation that misses the cache comes in two steps, because MLX lets go of its lock while the system allocates:
//! [`Engine::malloc`] releases what the policy demands and says what is needed, the caller allocates, [`Engine::commit`]
//! counts it (or [`Engine::fail`] that there was none). Each change of a block is told to a [`Sink`] as one of the seven
//! actions, in the order in which the counters change.
//!
//! `active` and `cached` are the sums of the sizes of such blocks, in bytes, after each call.
//!
//! Not here: memory (`heap`), the lock (`allocator`), time (whoever listens adds it).

use memviz_trace::Action;

use crate::block::{Block, BlockId, Place};
use crate::cache::BufferCache;
use crate::counters::Counters;
use crate::error::AllocError;
use crate::policy::{Policy, Pressure, Recycle, SmallBlocks, Trim, ZeroRequest};

/// Hears what happens to blocks.
pub trait Sink {
    /// `action` is one of the seven of `Action::is_buffer`. `requested` is what the caller asked for, at allocations.
    fn event(&mut self, action: Action, block: Block, requested: u64);
}

/// Nobody listens.
impl Sink for () {
    fn event(&mut self, _: Action, _: Block, _: u64) {}
}

impl<F: FnMut(Action, Block, u64)> Sink for F {
    fn event(&mut self, action: Action, block: Block, requested: u64) {
        self(action, block, requested);
    }
}

/// Memory that the caller has to provide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "pass it to `commit` or `fail`"]
pub struct Need {
    /// Bytes.
    pub size: u64,
    /// Where from. A heap that cannot serve a small block there serves it from the device and says so.
    pub place: Place,
    /// Bytes asked for.
    pub requested: u64,
}

/// What `malloc` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malloc {
    /// A cached block, active now.
    Reused(BlockId),
    /// No cached block fits.
    Needs(Need),
    /// The policy gives no block for this request.
    Null,
}

/// Where `free` sent a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed {
    /// To the cache.
    Cached,
    /// To the heap: the caller gives the memory back.
    ToHeap(Block),
}

/// Sums and limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes in use.
    pub active: u64,
    /// Bytes kept for reuse.
    pub cached: u64,
    /// Highest `active` since the start or the last reset.
    pub peak: u64,
    /// Highest `active + cached` since the start.
    pub peak_reserved: u64,
    /// Blocks that exist, active, cached and wrapped.
    pub blocks: u64,
}

/// A policy at work.
#[derive(Clone, Debug)]
pub struct Engine {
    policy: Policy,
    cache_limit: u64,
    memory_limit: u64,
    wired_limit: u64,
    cache: BufferCache,
    /// Bytes of active blocks.
    active: u64,
    /// Active bytes without a block.
    base: u64,
    peak: u64,
    peak_reserved: u64,
    small: u64,
    empty: u64,
}

impl Engine {
    /// A process that has not allocated yet.
    pub fn new(policy: Policy) -> Engine {
        Engine {
            cache_limit: policy.cache_limit,
            memory_limit: policy.memory_limit,
            wired_limit: 0,
            cache: BufferCache::new(policy.window_page),
            active: 0,
            base: 0,
            peak: 0,
            peak_reserved: 0,
            small: 0,
            empty: 0,
            policy,
        }
    }

    /// Looks for a block of `requested` bytes.
    ///
    /// # Errors
    /// The request is too large, or no further block may exist.
    #[inline]
    pub fn malloc(&mut self, requested: u64, sink: &mut impl Sink) -> Result<Malloc, AllocError> {
        if requested == 0 && self.policy.zero != ZeroRequest::Ordinary {
            return Ok(self.malloc_zero());
        }
        if requested > self.policy.max_request {
            return Err(AllocError::TooLarge { requested, limit: self.policy.max_request });
        }
        let size = self.policy.rounding.round(requested);
        let Some(id) = self.cache.reuse(size) else { return self.miss(requested, size, sink) };
        self.activate(id, Action::AllocReuse, requested, sink);
        self.trim_after_malloc(sink);
        Ok(Malloc::Reused(id))
    }

    #[cold]
    fn malloc_zero(&self) -> Malloc {
        match self.policy.zero {
            ZeroRequest::Null => Malloc::Null,
            _ => Malloc::Needs(Need { size: 0, place: Place::Empty, requested: 0 }),
        }
    }

    fn miss(&mut self, requested: u64, size: u64, sink: &mut impl Sink) -> Result<Malloc, AllocError> {
        let reserved = self.reserved();
        let needed =
            reserved.checked_add(size).ok_or(AllocError::TooLarge { requested, limit: u64::MAX - reserved })?;
        self.relieve_pressure(needed, sink);
        if self.blocks() >= self.policy.max_blocks {
            return Err(AllocError::ResourceLimit { requested, limit: self.policy.max_blocks });
        }
        let is_small = |small: &SmallBlocks| size <= small.max_size && self.small < small.capacity();
        let place = if self.policy.small.as_ref().is_some_and(is_small) { Place::Small } else { Place::Device };
        Ok(Malloc::Needs(Need { size, place, requested }))
    }

    fn relieve_pressure(&mut self, needed: u64, sink: &mut impl Sink) {
        match self.policy.pressure {
            Pressure::Ignored => {}
            Pressure::OverMemoryLimit if needed > self.memory_limit => self.release(needed - self.memory_limit, sink),
            Pressure::OverMemoryLimit => {}
            Pressure::AtGcLimit(limit) => {
                let limit = limit.min(self.memory_limit);
                if needed >= limit || self.blocks() >= self.policy.max_blocks {
                    // Below the limit MLX's difference wraps, and everything cached is released.
                    self.release(needed.wrapping_sub(limit), sink);
                }
            }
        }
    }

    /// Counts the block that was allocated for a `Need`. `driver_bytes` is what the driver's pools hold by now, the new
    /// block included; without it, active, cached and new bytes are taken.
    pub fn commit(&mut self, need: Need, block: Block, driver_bytes: Option<u64>, sink: &mut impl Sink) -> BlockId {
        if block.place != Place::Empty {
            self.keep_reserve(driver_bytes.unwrap_or(self.reserved().saturating_add(block.size)), sink);
        }
        self.small += u64::from(block.place == Place::Small);
        self.empty += u64::from(block.place == Place::Empty);
        let id = self.cache.adopt(block);
        self.activate(id, Action::AllocNew, need.requested, sink);
        if block.place != Place::Empty {
            self.trim_after_malloc(sink);
        }
        id
    }

    fn keep_reserve(&mut self, driver_bytes: u64, sink: &mut impl Sink) {
        if let Some(guard) = self.policy.guard
            && self.cache.bytes() > 0
            && driver_bytes > guard.threshold
        {
            self.release(guard.release, sink);
        }
    }

    /// Mirrors what MLX does when there was no memory for a `Need`: its CPU allocator counts the bytes as active for ever.
    /// Returns those bytes. Whoever does not want to mirror that just drops the `Need`.
    pub fn fail(&mut self, need: Need) -> u64 {
        let counted = if self.policy.counts_failures { need.size } else { 0 };
        self.base = self.base.saturating_add(counted);
        self.raise_peaks();
        counted
    }

    /// Ends the use of a block.
    ///
    /// # Errors
    /// There is no such active block, or it is a wrapper. Nothing changed then.
    #[inline]
    pub fn free(&mut self, id: BlockId, sink: &mut impl Sink) -> Result<Freed, AllocError> {
        let block = self.active_block(id)?;
        if block.place == Place::Wrapped {
            return Err(AllocError::WrongCall { addr: block.addr, made_by: "make_buffer", give_back: "release" });
        }
        self.active -= block.size;
        if self.goes_to_cache(&block) {
            self.cache.recycle(id);
            sink.event(Action::FreeActiveToCache, block, 0);
            return Ok(Freed::Cached);
        }
        self.forget(id, &block);
        sink.event(Action::FreeActiveToOs, block, 0);
        Ok(Freed::ToHeap(block))
    }

    #[inline]
    fn goes_to_cache(&self, block: &Block) -> bool {
        let cached = self.cache.bytes();
        match self.policy.recycle {
            Recycle::Never => false,
            _ if block.place == Place::Empty => false,
            Recycle::WhileBelowLimit => cached < self.cache_limit,
            Recycle::IfItFits => block.size > 0 && cached + block.size <= self.cache_limit,
        }
    }

    fn active_block(&self, id: BlockId) -> Result<Block, AllocError> {
        match self.cache.get(id) {
            Some(block) if !self.cache.is_cached(id) => Ok(block),
            found => Err(AllocError::UnknownBuffer { addr: found.map_or(0, |block| block.addr) }),
        }
    }

    /// Takes an active block out of the books.
    fn forget(&mut self, id: BlockId, block: &Block) {
        self.cache.remove(id);
        self.small -= u64::from(block.place == Place::Small);
        self.empty -= u64::from(block.place == Place::Empty);
    }

    /// Counts foreign memory as active. `None` where the policy wraps nothing.
    ///
    /// # Errors
    /// The sums would leave 64 bits.
    pub fn make_buffer(&mut self, block: Block, sink: &mut impl Sink) -> Result<Option<BlockId>, AllocError> {
        if !self.policy.wraps {
            return Ok(None);
        }
        let reserved = self.reserved();
        if reserved.checked_add(block.size).is_none() {
            return Err(AllocError::TooLarge { requested: block.size, limit: u64::MAX - reserved });
        }
        let id = self.cache.adopt(Block { place: Place::Wrapped, ..block });
        self.activate(id, Action::AllocMakeBuffer, block.size, sink);
        Ok(Some(id))
    }

    /// Ends a wrapper.
    ///
    /// # Errors
    /// There is no such active block, or it is no wrapper. Nothing changed then.
    pub fn release_wrapper(&mut self, id: BlockId, sink: &mut impl Sink) -> Result<Block, AllocError> {
        let block = self.active_block(id)?;
        if block.place != Place::Wrapped {
            return Err(AllocError::WrongCall { addr: block.addr, made_by: "malloc", give_back: "free" });
        }
        self.active -= block.size;
        self.forget(id, &block);
        sink.event(Action::Release, block, 0);
        Ok(block)
    }

    /// Active bytes that belong to no known block change: those from before the first call, and those of calls left out.
    pub fn shift_base(&mut self, change: i64) {
        self.base = self.base.saturating_add_signed(change);
        self.raise_peaks();
    }

    #[inline]
    fn activate(&mut self, id: BlockId, action: Action, requested: u64, sink: &mut impl Sink) {
        let Some(block) = self.cache.get(id) else { return };
        self.active = self.active.saturating_add(block.size);
        self.raise_peaks();
        sink.event(action, block, requested);
    }

    #[inline]
    fn raise_peaks(&mut self) {
        self.peak = self.peak.max(self.all_active());
        self.peak_reserved = self.peak_reserved.max(self.reserved());
    }

    #[inline]
    fn trim_after_malloc(&mut self, sink: &mut impl Sink) {
        if self.policy.trim == Trim::AfterMalloc {
            self.trim(sink);
        }
    }

    #[inline]
    fn trim(&mut self, sink: &mut impl Sink) {
        let cached = self.cache.bytes();
        if cached > self.cache_limit {
            self.release(cached - self.cache_limit, sink);
        }
    }

    #[cold]
    fn release(&mut self, min_bytes: u64, sink: &mut impl Sink) {
        let mut small = 0;
        self.cache.release(min_bytes, |block| {
            small += u64::from(block.place == Place::Small);
            sink.event(Action::FreeCacheToOs, block, 0);
        });
        self.small -= small;
    }

    /// Gives every cached block back.
    pub fn clear_cache(&mut self, sink: &mut impl Sink) {
        self.release(u64::MAX, sink);
    }

    /// Sets the cache's limit and returns the one before.
    pub fn set_cache_limit(&mut self, limit: u64, sink: &mut impl Sink) -> u64 {
        if self.policy.recycle == Recycle::Never {
            return 0;
        }
        let before = std::mem::replace(&mut self.cache_limit, limit);
        if self.policy.trim == Trim::WhenLimitIsSet {
            self.trim(sink);
        }
        before
    }

    /// Sets the memory limit and returns the one before. Nothing is released at once.
    pub fn set_memory_limit(&mut self, limit: u64) -> u64 {
        std::mem::replace(&mut self.memory_limit, limit)
    }

    /// Sets the wired limit and returns the one before; 0 where there is none.
    ///
    /// # Errors
    /// It is above the recommended working set.
    pub fn set_wired_limit(&mut self, limit: u64) -> Result<u64, AllocError> {
        match self.policy.max_wired {
            None => Ok(0),
            Some(max) if limit > max => Err(AllocError::WiredLimit { requested: limit, limit: max }),
            Some(_) => Ok(std::mem::replace(&mut self.wired_limit, limit)),
        }
    }

    /// Sets the peak to 0, as MLX does.
    pub fn reset_peak(&mut self) {
        self.peak = 0;
    }

    fn all_active(&self) -> u64 {
        self.active.saturating_add(self.base)
    }

    fn reserved(&self) -> u64 {
        self.all_active().saturating_add(self.cache.bytes())
    }

    fn blocks(&self) -> u64 {
        (self.cache.active_blocks() + self.cache.cached_blocks()) as u64 - self.empty
    }

    /// Sums.
    pub fn usage(&self) -> Usage {
        Usage {
            active: self.all_active(),
            cached: self.cache.bytes(),
            peak: self.peak,
            peak_reserved: self.peak_reserved,
            blocks: self.blocks(),
        }
    }

    /// Limits at work: cache and memory, bytes.
    pub fn limits(&self) -> (u64, u64) {
        (self.cache_limit, self.memory_limit)
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The cache: blocks by address and by age.
    pub fn cache(&self) -> &BufferCache {
        &self.cache
    }

    /// Indexes addresses: [`BufferCache::index_addresses`].
    pub fn index_addresses(&mut self) {
        self.cache.index_addresses();
    }

    /// Hits, misses and evictions.
    pub fn counters(&self) -> &Counters {
        self.cache.counters()
    }

    /// The block, if it exists.
    pub fn block(&self, id: BlockId) -> Option<Block> {
        self.cache.get(id)
    }
}
