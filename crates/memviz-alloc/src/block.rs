//! A block of memory as the allocator sees it: address, size, and where it came from.

/// Where a block's memory comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Place {
    /// The heap itself: one call to the operating system or driver.
    #[default]
    Device,
    /// The pool of small blocks: CUDA's scalar pool, Metal's heap of 1 MiB.
    Small,
    /// Memory that the allocator does not own (`make_buffer`).
    Wrapped,
    /// No memory: CUDA's buffer of 0 bytes, which no counter knows.
    Empty,
}

/// A block: what events, heaps and the cache pass around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Address, or the driver's handle for it.
    pub addr: u64,
    /// Bytes that the allocator counts for it.
    pub size: u64,
    /// Where it came from.
    pub place: Place,
}

/// A block in a [`crate::BufferCache`], from `adopt` until it leaves. Numbers are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockId(pub(crate) u32);

impl BlockId {
    /// No block.
    pub(crate) const NONE: BlockId = BlockId(u32::MAX);

    /// Position in a table of blocks: small, and dense over the blocks that exist.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
