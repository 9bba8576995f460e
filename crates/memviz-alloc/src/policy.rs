//! What MLX's back ends do differently, as data.
//!
//! A [`Policy`] says how a request is rounded, which free goes to the cache, when the cache is trimmed and where the limits
//! stand. `engine` reads it and knows no back end by name. Each constructor cites the upstream file it mirrors.
//!
//! Not here: what a machine has (`device`), the search in the cache (`cache`).

use crate::device::MetalDevice;

/// Bytes of a page of Apple silicon.
const METAL_PAGE: u64 = 16 << 10;
/// `page_size` of mlx/backend/cuda/allocator.cpp.
const CUDA_PAGE: u64 = 16 << 10;
/// Page of the CPU allocator's cache.
const CPU_PAGE: u64 = 4 << 10;
/// Largest request that is looked at: what C++ can address.
const MAX_REQUEST: u64 = i64::MAX as u64;

/// The size that is allocated for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// As asked.
    Exact,
    /// Multiples of a page, for requests of more than one page.
    AbovePage(u64),
    /// 8 bytes up to 8, powers of two below a page, multiples of a page from there on.
    PowerOfTwoBelowPage(u64),
}

impl Rounding {
    /// The rounded size. Sizes up to [`i64::MAX`] do not overflow.
    #[inline]
    pub fn round(self, size: u64) -> u64 {
        match self {
            Rounding::Exact => size,
            Rounding::AbovePage(page) if size > page => size.next_multiple_of(page),
            Rounding::AbovePage(_) => size,
            Rounding::PowerOfTwoBelowPage(page) if size < page => size.next_power_of_two().max(8),
            Rounding::PowerOfTwoBelowPage(page) => size.next_multiple_of(page),
        }
    }
}

/// What a request of 0 bytes gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroRequest {
    /// A block like any other, of 0 bytes.
    Ordinary,
    /// A block without memory, outside of all counters.
    Uncounted,
    /// No block.
    Null,
}

/// Which free goes to the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recycle {
    /// None: there is no cache.
    Never,
    /// While the cache holds less than its limit, so one block may carry it over.
    WhileBelowLimit,
    /// Those after which the cache still is within its limit; blocks of 0 bytes never.
    IfItFits,
}

/// When the cache is brought back to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// At the end of every malloc, hit or miss.
    AfterMalloc,
    /// At once when the limit is set.
    WhenLimitIsSet,
}

/// When a miss releases cached blocks first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    /// Never.
    Ignored,
    /// When active, cached and new bytes exceed the memory limit.
    OverMemoryLimit,
    /// When active, cached and new bytes reach the smaller of the memory limit and this, or no further block is allowed.
    AtGcLimit(u64),
}

/// A pool of small blocks, cut from one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallBlocks {
    /// Largest size that is looked for here, bytes.
    pub max_size: u64,
    /// Bytes that a block takes in the pool.
    pub stride: u64,
    /// Bytes of the pool.
    pub bytes: u64,
}

impl SmallBlocks {
    /// How many blocks the pool has.
    pub fn capacity(&self) -> u64 {
        self.bytes / self.stride
    }
}

/// When the driver holds more than `threshold` bytes, a miss releases `release` bytes of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReserveGuard {
    /// Bytes that the driver's pools may hold.
    pub threshold: u64,
    /// Bytes to give back.
    pub release: u64,
}

/// A caching policy, with the limits that a process starts with.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Name that commands take.
    pub name: &'static str,
    /// Releases of MLX that it mirrors.
    pub mlx_versions: &'static str,
    /// Sizes of requests.
    pub rounding: Rounding,
    /// Requests of 0 bytes.
    pub zero: ZeroRequest,
    /// Widens the window in which a cached block serves a request, bytes.
    pub window_page: u64,
    /// Frees.
    pub recycle: Recycle,
    /// The cache's limit.
    pub trim: Trim,
    /// Misses when memory is short.
    pub pressure: Pressure,
    /// Small requests, if they have a place of their own.
    pub small: Option<SmallBlocks>,
    /// Watch over the driver's pools.
    pub guard: Option<ReserveGuard>,
    /// `make_buffer` wraps foreign memory.
    pub wraps: bool,
    /// A failed allocation stays counted as active for ever.
    pub counts_failures: bool,
    /// Largest request, bytes.
    pub max_request: u64,
    /// Most blocks that may exist, if there is a limit.
    pub max_blocks: u64,
    /// Largest wired limit, bytes; `None` where there is none to set.
    pub max_wired: Option<u64>,
    /// Cache limit at the start, bytes.
    pub cache_limit: u64,
    /// Memory limit at the start, bytes.
    pub memory_limit: u64,
}

/// `static_cast<size_t>(factor * bytes)`.
fn part(factor: f64, bytes: u64) -> u64 {
    (factor * bytes as f64) as u64
}

impl Policy {
    /// Names that `named` knows.
    pub const NAMES: [&'static str; 4] = ["metal", "cuda", "cpu-0.32", "cpu-0.28"];

    /// Metal, as in mlx/backend/metal/allocator.cpp of 0.28.0 to 0.32.4: no decision changed in between, but that `malloc`
    /// throws where it returned a null buffer before 0.30, and `make_buffer` came with 0.30.1.
    pub fn metal(device: &MetalDevice) -> Policy {
        let memory_limit = (1.5 * device.working_set as f64).min(0.95 * device.memory as f64) as u64;
        Policy {
            name: "metal",
            mlx_versions: "0.28.0 to 0.32.4",
            rounding: Rounding::AbovePage(METAL_PAGE),
            zero: ZeroRequest::Null,
            window_page: METAL_PAGE,
            recycle: Recycle::WhileBelowLimit,
            trim: Trim::AfterMalloc,
            pressure: Pressure::AtGcLimit(part(0.95, device.working_set)),
            small: device.has_heap.then_some(SmallBlocks { max_size: 255, stride: 256, bytes: 1 << 20 }),
            guard: None,
            wraps: true,
            counts_failures: false,
            max_request: device.max_buffer,
            max_blocks: device.resource_limit,
            max_wired: Some(device.working_set),
            cache_limit: memory_limit,
            memory_limit,
        }
    }

    /// CUDA, as in mlx/backend/cuda/allocator.cpp of 0.30.1 to 0.32.4, for a device of `memory` bytes. Before, there was no
    /// guard, and up to 0.29.0 the limit was 0.8 of the memory.
    pub fn cuda(memory: u64) -> Policy {
        let memory_limit = part(0.95, memory);
        let free_limit = memory - memory_limit;
        Policy {
            name: "cuda",
            mlx_versions: "0.30.1 to 0.32.4",
            rounding: Rounding::PowerOfTwoBelowPage(CUDA_PAGE),
            zero: ZeroRequest::Uncounted,
            window_page: CUDA_PAGE,
            recycle: Recycle::WhileBelowLimit,
            trim: Trim::AfterMalloc,
            pressure: Pressure::OverMemoryLimit,
            small: Some(SmallBlocks { max_size: 8, stride: 8, bytes: 4 * CUDA_PAGE }),
            guard: Some(ReserveGuard { threshold: memory - free_limit, release: free_limit }),
            wraps: false,
            counts_failures: false,
            max_request: MAX_REQUEST,
            max_blocks: u64::MAX,
            max_wired: None,
            cache_limit: memory_limit,
            memory_limit,
        }
    }

    /// The CPU back end with its cache, as in mlx/backend/no_gpu/allocator.cpp of 0.32.0 to 0.32.4, on a machine of `memory`
    /// bytes.
    pub fn cpu_0_32(memory: u64) -> Policy {
        Policy {
            name: "cpu-0.32",
            mlx_versions: "0.32.0 to 0.32.4",
            recycle: Recycle::IfItFits,
            cache_limit: 32 << 20,
            ..Policy::cpu_0_28(memory)
        }
    }

    /// The CPU back end without a cache, as in mlx/backend/no_gpu/allocator.cpp of 0.28.0 to 0.31.2.
    pub fn cpu_0_28(memory: u64) -> Policy {
        let memory_limit = part(0.8, memory);
        Policy {
            name: "cpu-0.28",
            mlx_versions: "0.28.0 to 0.31.2",
            rounding: Rounding::Exact,
            zero: ZeroRequest::Ordinary,
            window_page: CPU_PAGE,
            recycle: Recycle::Never,
            trim: Trim::WhenLimitIsSet,
            pressure: Pressure::Ignored,
            small: None,
            guard: None,
            wraps: false,
            counts_failures: true,
            max_request: MAX_REQUEST,
            max_blocks: u64::MAX,
            max_wired: None,
            cache_limit: 0,
            memory_limit: if memory_limit == 0 { 1 << 33 } else { memory_limit },
        }
    }

    /// The policy of that name on a machine; of the device, back ends other than Metal use the memory only.
    pub fn named(name: &str, device: &MetalDevice) -> Option<Policy> {
        match name {
            "metal" => Some(Policy::metal(device)),
            "cuda" => Some(Policy::cuda(device.memory)),
            "cpu-0.32" => Some(Policy::cpu_0_32(device.memory)),
            "cpu-0.28" => Some(Policy::cpu_0_28(device.memory)),
            _ => None,
        }
    }
}
