//! `CachingAllocator`: MLX's allocator over a heap, for use from any thread.
//!
//! One lock guards the books, as in MLX: held while the cache is searched and blocks are evicted, not while the heap
//! allocates. Events are told under the lock, so their order is the order of the counters: a free before the heap gets the
//! block, an allocation after the heap gave it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use memviz_trace::Action;

use crate::block::{Block, BlockId, Place};
use crate::counters::Counters;
use crate::engine::{Engine, Freed, Malloc, Need, Sink, Usage};
use crate::error::AllocError;
use crate::heap::Heap;
use crate::policy::{Policy, SmallBlocks};
use crate::small_pool::SmallPool;

/// A piece of memory in use. It goes back by `free` (or `release`) of its allocator; dropped instead, it stays active.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a buffer that is not freed stays active"]
pub struct Buffer {
    // Two words, so that a buffer travels in registers: written to memory and read back by other pieces, it costs as much as
    // finding it.
    addr: u64,
    id: BlockId,
}

impl Buffer {
    /// Address, or the driver's handle; 0 for the null buffer.
    pub fn addr(&self) -> u64 {
        self.addr
    }

    /// A buffer without memory: Metal's answer to a request of 0 bytes.
    pub fn is_null(&self) -> bool {
        self.id == BlockId::NONE
    }
}

#[derive(Debug)]
struct Books<S> {
    engine: Engine,
    small: Option<SmallPool>,
    sink: S,
}

/// The allocator.
///
/// ```
/// use memviz_alloc::{CachingAllocator, HostHeap, Policy};
///
/// let allocator = CachingAllocator::new(Policy::cpu_0_32(16 << 30), HostHeap::default());
/// let buffer = allocator.malloc(1 << 20)?;
/// allocator.free(buffer)?;
/// assert_eq!((allocator.active_memory(), allocator.cache_memory()), (0, 1 << 20));
/// # Ok::<(), memviz_alloc::AllocError>(())
/// ```
#[derive(Debug)]
pub struct CachingAllocator<H: Heap, S: Sink = ()> {
    heap: H,
    small: Option<SmallBlocks>,
    books: Mutex<Books<S>>,
}

/// Tells of an event, and gives evicted blocks back.
struct Evictor<'a, H, S> {
    heap: &'a H,
    small: &'a mut Option<SmallPool>,
    sink: &'a mut S,
}

impl<H: Heap, S: Sink> Sink for Evictor<'_, H, S> {
    #[inline]
    fn event(&mut self, action: Action, block: Block, requested: u64) {
        self.sink.event(action, block, requested);
        if action == Action::FreeCacheToOs {
            give_back(self.heap, self.small, block);
        }
    }
}

fn give_back(heap: &impl Heap, small: &mut Option<SmallPool>, block: Block) {
    match (block.place, small) {
        (Place::Small, Some(pool)) => pool.give(block.addr),
        _ => heap.free(block.addr, block.size),
    }
}

impl<H: Heap> CachingAllocator<H> {
    /// An allocator that tells nobody.
    pub fn new(policy: Policy, heap: H) -> CachingAllocator<H> {
        CachingAllocator::with_sink(policy, heap, ())
    }
}

impl<H: Heap, S: Sink> CachingAllocator<H, S> {
    /// An allocator that tells `sink` of each event. A policy's pool of small blocks is allocated at once; if the heap has no
    /// memory for it, small blocks come from the heap one by one.
    pub fn with_sink(policy: Policy, heap: H, sink: S) -> CachingAllocator<H, S> {
        let small = policy.small.filter(|_| !H::HAS_SMALL_BLOCKS);
        let pool = small.and_then(|small| Some(SmallPool::new(heap.allocate(small.bytes)?, &small)));
        CachingAllocator { heap, small, books: Mutex::new(Books { engine: Engine::new(policy), small: pool, sink }) }
    }

    /// The books are plain numbers that each call leaves whole, so a panic of a sink does not spoil them.
    #[inline]
    fn books(&self) -> MutexGuard<'_, Books<S>> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn with_engine<R>(&self, run: impl FnOnce(&mut Engine, &mut Evictor<'_, H, S>) -> R) -> R {
        let books = &mut *self.books();
        let mut evictor = Evictor { heap: &self.heap, small: &mut books.small, sink: &mut books.sink };
        run(&mut books.engine, &mut evictor)
    }

    /// Memory for `size` bytes: a cached block that fits, or a new one.
    ///
    /// # Errors
    /// The request is too large, no further buffer may exist, or the heap has no memory.
    #[inline]
    pub fn malloc(&self, size: u64) -> Result<Buffer, AllocError> {
        let found = self.with_engine(|engine, evictor| {
            Ok(match engine.malloc(size, evictor)? {
                Malloc::Reused(id) => Ok(buffer(engine, id)),
                Malloc::Null => Ok(Buffer { addr: 0, id: BlockId::NONE }),
                Malloc::Needs(need) => from_pool(engine, evictor, need).ok_or(need),
            })
        })?;
        found.or_else(|need| self.malloc_new(need))
    }

    #[cold]
    fn malloc_new(&self, need: Need) -> Result<Buffer, AllocError> {
        let (addr, place) = self.ask_heap(need);
        let driver_bytes = addr.and_then(|_| self.heap.driver_bytes());
        self.with_engine(|engine, evictor| {
            let Some(addr) = addr else { return Err(out_of_memory(engine, evictor, need)) };
            let id = engine.commit(need, Block { addr, size: need.size, place }, driver_bytes, evictor);
            Ok(buffer(engine, id))
        })
    }

    fn ask_heap(&self, need: Need) -> (Option<u64>, Place) {
        let small = match need.place {
            Place::Small if H::HAS_SMALL_BLOCKS => self.heap.allocate_small(need.size),
            _ => None,
        };
        match need.place {
            _ if small.is_some() => (small, Place::Small),
            Place::Empty => (self.heap.allocate(0), Place::Empty),
            _ => (self.heap.allocate(need.size), Place::Device),
        }
    }

    /// Ends the use of a buffer. The null buffer is ignored.
    ///
    /// # Errors
    /// The buffer is not one of this allocator, or was made by `make_buffer`.
    #[inline]
    pub fn free(&self, buffer: Buffer) -> Result<(), AllocError> {
        if buffer.is_null() {
            return Ok(());
        }
        let to_heap = self.with_engine(|engine, evictor| {
            known(engine, &buffer)?;
            let Freed::ToHeap(block) = engine.free(buffer.id, evictor)? else { return Ok(None) };
            if block.place == Place::Small && evictor.small.is_some() {
                give_back(evictor.heap, evictor.small, block);
                return Ok(None);
            }
            Ok(Some(block))
        })?;
        if let Some(block) = to_heap {
            self.heap.free(block.addr, block.size);
        }
        Ok(())
    }

    /// Bytes that are counted for a buffer: at least what was asked for. 0 for a buffer of another allocator.
    pub fn size(&self, buffer: &Buffer) -> u64 {
        let block = self.books().engine.block(buffer.id).filter(|block| block.addr == buffer.addr);
        block.unwrap_or_default().size
    }

    /// Wraps `size` bytes of foreign memory at `addr`. `None` where the policy or the heap cannot: then the caller copies.
    ///
    /// # Errors
    /// The sums would leave 64 bits.
    pub fn make_buffer(&self, addr: u64, size: u64) -> Result<Option<Buffer>, AllocError> {
        let Some(handle) = self.heap.wrap(addr, size) else { return Ok(None) };
        let block = Block { addr: handle, size, place: Place::Wrapped };
        let made = self.with_engine(|engine, evictor| engine.make_buffer(block, evictor));
        if !matches!(made, Ok(Some(_))) {
            self.heap.unwrap(handle, size);
        }
        Ok(made?.map(|id| Buffer { addr: handle, id }))
    }

    /// Ends what `make_buffer` began. The memory stays its owner's.
    ///
    /// # Errors
    /// The buffer is not one of this allocator, or was made by `malloc`.
    pub fn release(&self, buffer: Buffer) -> Result<(), AllocError> {
        if buffer.is_null() {
            return Ok(());
        }
        let block = self.with_engine(|engine, evictor| {
            known(engine, &buffer)?;
            engine.release_wrapper(buffer.id, evictor)
        })?;
        self.heap.unwrap(block.addr, block.size);
        Ok(())
    }

    /// Sets the limit of the cache, bytes, and returns the one before. With the CPU's policy the cache shrinks at once, with
    /// the others in the next `malloc`.
    pub fn set_cache_limit(&self, limit: u64) -> u64 {
        self.with_engine(|engine, evictor| engine.set_cache_limit(limit, evictor))
    }

    /// Sets the memory limit, bytes, and returns the one before: a guideline, above which misses empty the cache.
    pub fn set_memory_limit(&self, limit: u64) -> u64 {
        self.with_engine(|engine, _| engine.set_memory_limit(limit))
    }

    /// Sets the wired limit, bytes, and returns the one before. Always 0 with policies other than Metal's.
    ///
    /// # Errors
    /// The limit is above the device's recommended working set.
    pub fn set_wired_limit(&self, limit: u64) -> Result<u64, AllocError> {
        self.with_engine(|engine, _| engine.set_wired_limit(limit))
    }

    /// Gives every cached block back.
    pub fn clear_cache(&self) {
        self.with_engine(|engine, evictor| engine.clear_cache(evictor));
    }

    /// Bytes in use.
    pub fn active_memory(&self) -> u64 {
        self.usage().active
    }

    /// Bytes kept for reuse.
    pub fn cache_memory(&self) -> u64 {
        self.usage().cached
    }

    /// Highest `active_memory` since the start or the last reset.
    pub fn peak_memory(&self) -> u64 {
        self.usage().peak
    }

    /// Sets the peak to 0, as MLX does: not to the bytes in use.
    pub fn reset_peak_memory(&self) {
        self.with_engine(|engine, _| engine.reset_peak());
    }

    /// Number of buffers that exist, active, cached and wrapped.
    pub fn num_resources(&self) -> u64 {
        self.usage().blocks
    }

    /// All sums, read at one moment.
    pub fn usage(&self) -> Usage {
        self.books().engine.usage()
    }

    /// Hits, misses and evictions by size class.
    pub fn counters(&self) -> Counters {
        self.books().engine.counters().clone()
    }

    /// Runs `run` on the sink while no call is under way.
    pub fn with_sink_mut<R>(&self, run: impl FnOnce(&mut S) -> R) -> R {
        run(&mut self.books().sink)
    }

    /// The heap.
    pub fn heap(&self) -> &H {
        &self.heap
    }
}

#[inline]
fn buffer(engine: &Engine, id: BlockId) -> Buffer {
    Buffer { addr: engine.block(id).unwrap_or_default().addr, id }
}

/// A small block of the allocator's own pool.
fn from_pool<H: Heap, S: Sink>(engine: &mut Engine, evictor: &mut Evictor<'_, H, S>, need: Need) -> Option<Buffer> {
    if need.place != Place::Small {
        return None;
    }
    let addr = evictor.small.as_mut()?.take()?;
    let id = engine.commit(need, Block { addr, size: need.size, place: Place::Small }, None, evictor);
    Some(buffer(engine, id))
}

fn out_of_memory(engine: &Engine, sink: &mut impl Sink, need: Need) -> AllocError {
    sink.event(Action::Oom, Block { size: need.requested, ..Block::default() }, need.requested);
    let usage = engine.usage();
    AllocError::OutOfMemory { requested: need.requested, active: usage.active, cached: usage.cached }
}

/// Ids are used again, and so are addresses: both must be right.
#[inline]
fn known(engine: &Engine, buffer: &Buffer) -> Result<(), AllocError> {
    match engine.block(buffer.id) {
        Some(block) if block.addr == buffer.addr => Ok(()),
        _ => Err(AllocError::UnknownBuffer { addr: buffer.addr }),
    }
}

impl<H: Heap, S: Sink> Drop for CachingAllocator<H, S> {
    fn drop(&mut self) {
        self.clear_cache();
        let (small, pool) = (self.small, self.books().small.take());
        if let (Some(small), Some(pool)) = (small, pool) {
            self.heap.free(pool.base(), small.bytes);
        }
    }
}
