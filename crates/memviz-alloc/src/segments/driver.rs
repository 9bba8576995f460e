//! Memory from the driver and back: segments as a whole, or pages of a range.
//!
//! Part of [`SegmentEngine`]; not here: which free block serves (`mod`).

use super::SegmentEngine;
use super::blocks::{Record, State};

impl SegmentEngine {
    /// The pages that lie within a block: bytes before the first one, bytes of all.
    pub(super) fn whole_pages(&self, block: &Record) -> (u64, u64) {
        let page = self.policy.page(block.is_small);
        let base = if block.is_small { 0 } else { 1 << 63 };
        let (begin, end) = (block.addr - base, block.addr - base + block.size);
        let first = begin.next_multiple_of(page);
        (first - begin, (end / page * page).saturating_sub(first))
    }

    /// A block of `size` bytes or more from the driver, in no list. PyTorch holds a whole segment against the limit that the
    /// program set, also where it maps pages.
    pub(super) fn ask_driver(&mut self, size: u64) -> Option<u32> {
        let segment = self.policy.segment_size(size);
        if !self.fits(segment, self.memory_limit) {
            return None;
        }
        if self.policy.grows { self.grow(size) } else { self.new_segment(segment, self.policy.is_small(size)) }
    }

    fn fits(&self, bytes: u64, limit: u64) -> bool {
        let all = self.reserved.checked_add(self.base).and_then(|all| all.checked_add(bytes));
        all.is_some_and(|all| all <= limit)
    }

    fn new_segment(&mut self, size: u64, is_small: bool) -> Option<u32> {
        let below = self.lowest.checked_sub(size).filter(|_| self.fits(size, self.policy.memory))?;
        self.lowest = below;
        self.reserve(size, 1);
        Some(self.blocks.add(self.placed.take().unwrap_or(below), size, is_small))
    }

    /// The driver makes its next segment there, where nothing else is.
    #[doc(hidden)]
    pub fn place_next_segment(&mut self, addr: u64) {
        self.placed = Some(addr);
    }

    fn reserve(&mut self, bytes: u64, pieces: u64) {
        self.reserved += bytes;
        self.pieces += pieces;
        self.made.add(bytes);
    }

    fn give_back(&mut self, bytes: u64, pieces: u64) {
        self.reserved -= bytes;
        self.pieces -= pieces;
        self.given_back.add(bytes);
    }

    /// Maps pages at the lowest place of the range that has `size` bytes of room.
    fn grow(&mut self, size: u64) -> Option<u32> {
        let is_small = self.policy.is_small(size);
        let mut id = self.blocks.unmapped(is_small).find_map(|unmapped| self.room(unmapped, size))?;
        loop {
            let Record { size: have, next, state, .. } = *self.blocks.at(id);
            id = match state {
                State::Unmapped => self.map(id, size.min(have))?,
                _ if have < size => self.map(next, (size - have).min(self.blocks.at(next).size))?,
                _ => break,
            };
        }
        self.blocks.remove(id);
        Some(id)
    }

    /// The first block of the run of free and unmapped ones around `unmapped`, if that has `size` bytes.
    fn room(&self, unmapped: u32, size: u64) -> Option<u32> {
        let is_open = |id: &u32| self.blocks.get(*id).is_some_and(|block| block.state != State::Active);
        let first = Some(self.blocks.at(unmapped).prev).filter(is_open).unwrap_or(unmapped);
        let mut run = std::iter::successors(Some(first), |&id| Some(self.blocks.at(id).next).filter(is_open));
        let mut bytes = 0u64;
        run.any(|id| {
            bytes = bytes.saturating_add(self.blocks.at(id).size);
            bytes >= size
        })
        .then_some(first)
    }

    /// Gives memory to the first `size` bytes of an unmapped block, in whole pages. The free block that has them.
    fn map(&mut self, id: u32, size: u64) -> Option<u32> {
        let Record { size: whole, is_small, .. } = *self.blocks.at(id);
        let page = self.policy.page(is_small);
        let bytes = size.next_multiple_of(page);
        if !self.fits(bytes, self.policy.memory) {
            return None;
        }
        self.blocks.remove(id);
        if bytes < whole {
            let rest = self.blocks.cut(id, bytes);
            self.blocks.insert_unmapped(rest);
        }
        self.reserve(bytes, bytes / page);
        self.blocks.join(id, State::Free);
        self.set_free(id);
        Some(id)
    }

    /// Gives back what is free and whole: segments without an active block, or pages without one.
    pub fn clear_cache(&mut self) {
        while let Some(id) = self.blocks.releasable() {
            self.blocks.remove(id);
            if self.policy.grows { self.unmap(id) } else { self.release(id) }
        }
    }

    fn release(&mut self, id: u32) {
        self.give_back(self.blocks.at(id).size, 1);
        self.blocks.forget(id);
    }

    fn unmap(&mut self, mut id: u32) {
        let block = *self.blocks.at(id);
        let (before, bytes) = self.whole_pages(&block);
        if before > 0 {
            let pages = self.blocks.cut(id, before);
            self.set_free(id);
            id = pages;
        }
        if before + bytes < block.size {
            let rest = self.blocks.cut(id, bytes);
            self.set_free(rest);
        }
        self.give_back(bytes, bytes / self.policy.page(block.is_small));
        self.blocks.join(id, State::Unmapped);
        self.blocks.insert_unmapped(id);
    }
}
