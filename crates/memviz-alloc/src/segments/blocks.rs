//! Blocks, their neighbours, and the free ones in order of size.
//!
//! Blocks lie side by side: `prev` and `next` link those of one segment, or of one range, in order of address. A block is
//! active, free, or unmapped (address space of a range without memory); two free neighbours do not stay two. Records are
//! numbered, so that a block is found without a search.
//!
//! Not here: which block serves, what the driver is asked for (`mod`).

use std::collections::BTreeMap;

pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Unused,
    Active,
    Free,
    Unmapped,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) addr: u64,
    pub(super) size: u64,
    pub(super) prev: u32,
    pub(super) next: u32,
    /// Position in `Blocks::releasable`.
    release_at: u32,
    pub(super) is_small: bool,
    pub(super) state: State,
}

/// All blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    records: Vec<Record>,
    unused: Vec<u32>,
    /// Free blocks by size and address: those of the large pool, then those of the small one.
    free: [BTreeMap<(u64, u64), u32>; 2],
    /// Unmapped blocks by address, likewise.
    unmapped: [BTreeMap<u64, u32>; 2],
    /// Free blocks that the driver could have back, at least in part, in no order.
    releasable: Vec<u32>,
}

impl Blocks {
    pub(super) fn at(&self, id: u32) -> &Record {
        &self.records[id as usize]
    }

    fn at_mut(&mut self, id: u32) -> &mut Record {
        &mut self.records[id as usize]
    }

    pub(super) fn get(&self, id: u32) -> Option<&Record> {
        self.records.get(id as usize)
    }

    /// Numbers of all blocks, in order of address.
    pub(super) fn by_addr(&self) -> Vec<u32> {
        let numbers = 0..self.records.len() as u32;
        let mut ids: Vec<u32> = numbers.filter(|&id| self.at(id).state != State::Unused).collect();
        ids.sort_unstable_by_key(|&id| self.at(id).addr);
        ids
    }

    /// A block without neighbours that is in no list yet.
    pub(super) fn add(&mut self, addr: u64, size: u64, is_small: bool) -> u32 {
        let record = Record { addr, size, prev: NONE, next: NONE, release_at: NONE, is_small, state: State::Active };
        if let Some(id) = self.unused.pop() {
            *self.at_mut(id) = record;
            return id;
        }
        self.records.push(record);
        (self.records.len() - 1) as u32
    }

    /// Takes a block without neighbours out, for good. It is in no list.
    pub(super) fn forget(&mut self, id: u32) {
        self.at_mut(id).state = State::Unused;
        self.unused.push(id);
    }

    /// Cuts a block that is in no list after `size` bytes; what is behind is a new block, in no list either.
    pub(super) fn cut(&mut self, id: u32, size: u64) -> u32 {
        let Record { addr, size: whole, next, is_small, .. } = *self.at(id);
        let behind = self.add(addr + size, whole - size, is_small);
        (self.at_mut(behind).prev, self.at_mut(behind).next) = (id, next);
        (self.at_mut(id).size, self.at_mut(id).next) = (size, behind);
        if next != NONE {
            self.at_mut(next).prev = behind;
        }
        behind
    }

    /// Makes one of a block that is in no list and the neighbours that have `state`.
    pub(super) fn join(&mut self, id: u32, state: State) {
        let Record { prev, next, .. } = *self.at(id);
        if self.has(prev, state) {
            self.remove(prev);
            let Record { addr, size, prev: before, .. } = *self.at(prev);
            let block = self.at_mut(id);
            (block.addr, block.size, block.prev) = (addr, block.size + size, before);
            if before != NONE {
                self.at_mut(before).next = id;
            }
            self.forget(prev);
        }
        if self.has(next, state) {
            self.remove(next);
            let Record { size, next: after, .. } = *self.at(next);
            let block = self.at_mut(id);
            (block.size, block.next) = (block.size + size, after);
            if after != NONE {
                self.at_mut(after).prev = id;
            }
            self.forget(next);
        }
    }

    fn has(&self, id: u32, state: State) -> bool {
        self.get(id).is_some_and(|record| record.state == state)
    }

    pub(super) fn set_active(&mut self, id: u32) {
        self.at_mut(id).state = State::Active;
    }

    /// Puts a block into the list of free ones.
    pub(super) fn insert_free(&mut self, id: u32, is_releasable: bool) {
        let release_at = if is_releasable { self.releasable.len() as u32 } else { NONE };
        let block = self.at_mut(id);
        (block.state, block.release_at) = (State::Free, release_at);
        let (key, pool) = ((block.size, block.addr), usize::from(block.is_small));
        self.free[pool].insert(key, id);
        if is_releasable {
            self.releasable.push(id);
        }
    }

    pub(super) fn insert_unmapped(&mut self, id: u32) {
        let block = self.at_mut(id);
        block.state = State::Unmapped;
        let (addr, pool) = (block.addr, usize::from(block.is_small));
        self.unmapped[pool].insert(addr, id);
    }

    /// Takes a free or unmapped block out of its list.
    pub(super) fn remove(&mut self, id: u32) {
        let Record { addr, size, release_at, is_small, state, .. } = *self.at(id);
        if state == State::Unmapped {
            self.unmapped[usize::from(is_small)].remove(&addr);
            return;
        }
        self.free[usize::from(is_small)].remove(&(size, addr));
        if release_at != NONE {
            self.at_mut(id).release_at = NONE;
            self.releasable.swap_remove(release_at as usize);
            if let Some(&moved) = self.releasable.get(release_at as usize) {
                self.at_mut(moved).release_at = release_at;
            }
        }
    }

    /// Free blocks of a pool of `size` bytes or more, the smallest first, among equals the one at the lowest address.
    pub(super) fn free_from(&self, is_small: bool, size: u64) -> impl Iterator<Item = u32> + '_ {
        self.free[usize::from(is_small)].range((size, 0)..).map(|(_, &id)| id)
    }

    /// Unmapped blocks of a pool, at the lowest address first.
    pub(super) fn unmapped(&self, is_small: bool) -> impl Iterator<Item = u32> + '_ {
        self.unmapped[usize::from(is_small)].values().copied()
    }

    /// A free block that the driver could have back, at least in part.
    pub(super) fn releasable(&self) -> Option<u32> {
        self.releasable.last().copied()
    }
}
