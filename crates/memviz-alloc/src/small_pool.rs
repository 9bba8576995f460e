//! Small blocks cut from one piece of memory, in the order in which MLX's CUDA allocator hands them out.

use crate::policy::SmallBlocks;

/// `base` is the first block's address; `free` a stack of block numbers.
#[derive(Debug)]
pub struct SmallPool {
    base: u64,
    stride: u64,
    free: Vec<u32>,
}

impl SmallPool {
    /// All blocks of the piece at `base`, which has `small.bytes` bytes.
    pub fn new(base: u64, small: &SmallBlocks) -> SmallPool {
        let count = u32::try_from(small.capacity()).unwrap_or(u32::MAX);
        SmallPool { base, stride: small.stride, free: (0..count).rev().collect() }
    }

    /// The address of a free block.
    pub fn take(&mut self) -> Option<u64> {
        self.free.pop().map(|number| self.base + u64::from(number) * self.stride)
    }

    /// Takes a block back.
    pub fn give(&mut self, addr: u64) {
        self.free.push(((addr - self.base) / self.stride) as u32);
    }

    /// Address of the piece.
    pub fn base(&self) -> u64 {
        self.base
    }
}
