//! MLX's caching allocator, as a crate of its own: the decisions of its back ends exactly, over real and virtual memory.
//!
//! Three layers, each usable alone:
//! - [`BufferCache`]: which cached block serves a request, which one leaves first;
//! - [`Engine`]: a [`Policy`] at work on numbers, for simulation: rounding, limits, memory pressure, sums;
//! - [`CachingAllocator`]: the engine over a [`Heap`], from any thread, telling each event to a [`Sink`].
//!
//! Beside them, for comparison: [`SegmentEngine`], PyTorch's caching allocator on numbers.
//!
//! Not here: recorded runs under other policies (`memviz-analyze`), stacks (`memviz-agent`).
//!
//! ```
//! use memviz_alloc::{CachingAllocator, HostHeap, Policy, TraceRecorder};
//!
//! let policy = Policy::cuda(24 << 30);
//! let allocator = CachingAllocator::with_sink(policy, HostHeap::default(), TraceRecorder::new("cuda"));
//! let first = allocator.malloc(100_000)?;
//! assert_eq!(allocator.size(&first), 7 * 16_384);
//! let addr = first.addr();
//! allocator.free(first)?;
//! let second = allocator.malloc(99_000)?;
//! assert_eq!(second.addr(), addr);
//! assert_eq!(allocator.counters().total().hit_rate(), Some(0.5));
//!
//! let recorder = allocator.with_sink_mut(|recorder| std::mem::replace(recorder, TraceRecorder::new("cuda")));
//! assert_eq!(recorder.finish().check().unwrap().peak_active.bytes, 7 * 16_384);
//! # allocator.free(second)?;
//! # Ok::<(), memviz_alloc::AllocError>(())
//! ```

mod allocator;
mod block;
mod cache;
mod counters;
mod device;
mod devices;
mod engine;
mod error;
mod heap;
mod policy;
mod recorder;
mod segments;
mod size_index;
mod small_pool;

pub use allocator::{Buffer, CachingAllocator};
pub use block::{Block, BlockId, Place};
pub use cache::BufferCache;
pub use counters::{Counters, SIZE_CLASSES, Tally, size_class};
pub use device::{MetalDevice, RESOURCE_LIMIT};
pub use engine::{Engine, Freed, Malloc, Need, Sink, Usage};
pub use error::AllocError;
#[cfg(target_os = "macos")]
pub use heap::MetalHeap;
#[cfg(not(target_os = "macos"))]
pub use heap::{CudaError, CudaHeap, CudaKind};
pub use heap::{Heap, HostHeap, VirtualHeap};
pub use policy::{Policy, Pressure, Recycle, ReserveGuard, Rounding, SmallBlocks, Trim, ZeroRequest};
pub use recorder::TraceRecorder;
pub use segments::{DriverCalls, Segment, SegmentEngine, SegmentPolicy};

/// The guide's example.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/allocator.md")]
struct Guide;
