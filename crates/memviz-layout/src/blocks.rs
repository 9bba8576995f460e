//! The blocks of a trace: size, birth and death, in order of allocation. Sixteen bytes a block.
//!
//! A move (`Event::MOVED`) is a free and an allocation of one block; between the two lies a gap, in which the ledger's sums
//! do not have it. At most one block is on the move at any moment, so gaps do not overlap.

use crate::types::{BlockId, BlockInfo, Moment, NEVER};

/// All blocks. `born` never falls along it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    size: Vec<u64>,
    born: Vec<Moment>,
    died: Vec<Moment>,
    /// Positions in `Trace::start` of the blocks that were there before the first event.
    start: Vec<u32>,
    gaps: Vec<Gap>,
}

/// A block between two addresses: it is not there at `from..to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) block: BlockId,
    pub(crate) from: Moment,
    pub(crate) to: Moment,
}

impl Blocks {
    pub(crate) fn with_capacity(blocks: usize) -> Blocks {
        Blocks {
            size: Vec::with_capacity(blocks),
            born: Vec::with_capacity(blocks),
            died: Vec::with_capacity(blocks),
            ..Blocks::default()
        }
    }

    /// Appends a block of before the first event.
    pub(crate) fn push_start(&mut self, position: u32, size: u64) -> BlockId {
        self.start.push(position);
        self.push(size, 0)
    }

    /// Appends a block; `born` is not below that of the block before.
    pub(crate) fn push(&mut self, size: u64, born: Moment) -> BlockId {
        let id = self.len();
        self.size.push(size);
        self.born.push(born);
        self.died.push(NEVER);
        id
    }

    pub(crate) fn end(&mut self, id: BlockId, died: Moment) {
        if let Some(slot) = self.died.get_mut(id as usize) {
            *slot = died;
        }
    }

    /// The block that ended at `from` is there again from `to`.
    pub(crate) fn move_over(&mut self, block: BlockId, from: Moment, to: Moment) {
        self.end(block, NEVER);
        self.gaps.push(Gap { block, from, to });
    }

    pub(crate) fn shrink(&mut self) {
        self.size.shrink_to_fit();
        self.born.shrink_to_fit();
        self.died.shrink_to_fit();
        self.gaps.shrink_to_fit();
    }

    pub(crate) fn len(&self) -> BlockId {
        self.size.len() as BlockId
    }

    /// 0 for a number that is no block.
    pub(crate) fn size(&self, id: BlockId) -> u64 {
        self.size.get(id as usize).copied().unwrap_or(0)
    }

    pub(crate) fn born(&self, id: BlockId) -> Moment {
        self.born.get(id as usize).copied().unwrap_or(NEVER)
    }

    pub(crate) fn died(&self, id: BlockId) -> Moment {
        self.died.get(id as usize).copied().unwrap_or(0)
    }

    /// Number of blocks born up to and with `moment`.
    pub(crate) fn born_until(&self, moment: Moment) -> BlockId {
        self.born.partition_point(|&born| born <= moment) as BlockId
    }

    /// Position in `Trace::start`, of a block that was there before the first event.
    pub(crate) fn start(&self, id: BlockId) -> Option<usize> {
        self.start.get(id as usize).map(|&position| position as usize)
    }

    /// All gaps, in order.
    pub(crate) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Gaps that have a moment in `first..=last`.
    pub(crate) fn gaps_within(&self, first: Moment, last: Moment) -> &[Gap] {
        let begin = self.gaps.partition_point(|gap| gap.to <= first);
        let end = self.gaps.partition_point(|gap| gap.from <= last);
        self.gaps.get(begin..end).unwrap_or_default()
    }

    pub(crate) fn info(&self, id: BlockId) -> Option<BlockInfo> {
        let (born, died) = (*self.born.get(id as usize)?, self.died(id));
        let free_event = (died != NEVER).then(|| (died as usize).saturating_sub(1));
        let alloc_event = (born as usize).checked_sub(1);
        Some(BlockInfo { size: self.size(id), born, died, alloc_event, free_event })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let of_all = size_of_val(&self.size[..]) + size_of_val(&self.born[..]) + size_of_val(&self.died[..]);
        of_all + size_of_val(&self.start[..]) + size_of_val(&self.gaps[..])
    }
}
