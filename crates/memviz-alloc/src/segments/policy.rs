//! Sizes and limits of PyTorch's caching allocator, as data.
//!
//! Mirrors c10/cuda/CUDACachingAllocator.cpp (pytorch/pytorch at 001074d: constants at the top of namespace `Native`,
//! `round_size`, `get_allocation_size`, `should_split`, `get_pool`) with no option set in `PYTORCH_ALLOC_CONF` but
//! `expandable_segments`. `tests/torch.rs` compares it with PyTorch 2.11.0.

/// `kMinBlockSize`: sizes are multiples of it.
const MIN_BLOCK: u64 = 512;
/// `kSmallSize`: the largest block of the pool of small ones.
const SMALL_MAX: u64 = 1 << 20;
/// `kSmallBuffer`: a segment, or a page, of the pool of small blocks.
const SMALL_SEGMENT: u64 = 2 << 20;
/// `kLargeBuffer`: a segment that large blocks share, or a page of their range.
const LARGE_SEGMENT: u64 = 20 << 20;
/// `kMinLargeAlloc`: blocks below share segments.
const SHARED_BELOW: u64 = 10 << 20;
/// `kRoundLarge`: a segment of one block is a multiple of it.
const ROUND_LARGE: u64 = 2 << 20;

/// PyTorch's rules, for a device of some memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPolicy {
    /// Name that commands take.
    pub name: &'static str,
    /// Releases of PyTorch that it was compared with.
    pub torch_versions: &'static str,
    /// A pool is one range that grows page by page (`expandable_segments:True`), not a set of segments.
    pub grows: bool,
    /// Bytes of the device.
    pub memory: u64,
}

impl SegmentPolicy {
    /// Names that `named` knows.
    pub const NAMES: [&'static str; 2] = ["pytorch", "expandable"];

    /// PyTorch as it comes.
    pub fn pytorch(memory: u64) -> SegmentPolicy {
        SegmentPolicy { name: "pytorch", torch_versions: "2.11", grows: false, memory }
    }

    /// PyTorch with `expandable_segments:True`.
    pub fn expandable(memory: u64) -> SegmentPolicy {
        SegmentPolicy { name: "expandable", grows: true, ..SegmentPolicy::pytorch(memory) }
    }

    /// The policy of that name on a device of `memory` bytes.
    pub fn named(name: &str, memory: u64) -> Option<SegmentPolicy> {
        match name {
            "pytorch" => Some(SegmentPolicy::pytorch(memory)),
            "expandable" => Some(SegmentPolicy::expandable(memory)),
            _ => None,
        }
    }

    /// The size of the block for a request, which is at most [`i64::MAX`].
    pub fn round(&self, requested: u64) -> u64 {
        requested.next_multiple_of(MIN_BLOCK).max(MIN_BLOCK)
    }

    /// Is a block of this rounded size one of the pool of small ones?
    pub fn is_small(&self, size: u64) -> bool {
        size <= SMALL_MAX
    }

    /// Bytes of the segment that is made for a block of this rounded size.
    pub fn segment_size(&self, size: u64) -> u64 {
        if size >= SHARED_BELOW { size.next_multiple_of(ROUND_LARGE) } else { self.page(self.is_small(size)) }
    }

    /// Bytes of a segment that blocks share, and of a page of a pool that grows.
    pub fn page(&self, is_small: bool) -> u64 {
        if is_small { SMALL_SEGMENT } else { LARGE_SEGMENT }
    }

    /// Does what a block leaves over become a block of its own?
    pub fn splits(&self, is_small: bool, left_over: u64) -> bool {
        if is_small || self.grows { left_over >= MIN_BLOCK } else { left_over > SMALL_MAX }
    }
}
