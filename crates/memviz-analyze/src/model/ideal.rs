//! The ideal allocator: it knows the whole run before it starts, and bounds what any other one can reach.
//!
//! It has every buffer at exactly the bytes that were asked for, and takes the bytes of the highest moment from the system
//! at once, in one call, with the first allocation for which those from before do not suffice. So
//! - no allocator needs less memory: at that moment the program uses those bytes;
//! - none needs fewer calls: one that starts with less calls at least once.
//!
//! It is a bound, not an allocator to be built: buffers do not move, so one that fits them into those bytes without gaps need
//! not exist. Out of memory here means that the run fits under no allocator.

use memviz_alloc::{AllocError, Usage};

use super::{Model, Tally};

/// Hindsight at work. `active <= reserved`.
pub(crate) struct Ideal {
    /// Bytes of each slot's buffer.
    bytes: Vec<u64>,
    /// Bytes that may be used.
    memory: u64,
    /// Bytes to take from the system; `None` in the run that finds out how many.
    goal: Option<u64>,
    active: u64,
    reserved: u64,
    pieces: u64,
    tally: Tally,
}

impl Ideal {
    pub(crate) fn new(memory: u64, goal: Option<u64>, slots: u32) -> Ideal {
        let bytes = vec![0; slots as usize];
        Ideal { bytes, memory, goal, active: 0, reserved: 0, pieces: 0, tally: Tally::default() }
    }

    /// Takes memory if what is there does not suffice; says whether.
    #[inline]
    fn reserve(&mut self) -> bool {
        if self.active <= self.reserved {
            return false;
        }
        let reserved = self.goal.unwrap_or(0).max(self.active);
        self.tally.made.add(reserved - self.reserved, 1);
        (self.reserved, self.pieces) = (reserved, self.pieces + 1);
        true
    }
}

impl Model for Ideal {
    fn seed(&mut self, slot: u32, bytes: u64) {
        self.bytes[slot as usize] = bytes;
        self.active = self.active.saturating_add(bytes);
    }

    fn begin(&mut self) {
        (self.reserved, self.pieces) = (self.active, u64::from(self.active > 0));
        self.tally = Tally::default();
    }

    #[inline]
    fn malloc(&mut self, slot: u32, bytes: u64) -> Result<(), AllocError> {
        self.bytes[slot as usize] = 0;
        if bytes == 0 {
            return Ok(());
        }
        let all = self.active.checked_add(bytes).filter(|&all| all <= self.memory);
        let (active, cached) = (self.active, self.reserved - self.active);
        self.active = all.ok_or(AllocError::OutOfMemory { requested: bytes, active, cached })?;
        self.bytes[slot as usize] = bytes;
        if self.reserve() {
            self.tally.misses += 1
        } else {
            self.tally.hits += 1
        }
        Ok(())
    }

    #[inline]
    fn free(&mut self, slot: u32) {
        self.active = self.active.saturating_sub(std::mem::take(&mut self.bytes[slot as usize]));
    }

    fn fail(&mut self, _bytes: u64) -> Result<(), AllocError> {
        Ok(())
    }

    fn shift_base(&mut self, change: i64) {
        self.active = self.active.saturating_add_signed(change);
        self.reserve();
    }

    fn clear_cache(&mut self) {}

    #[inline]
    fn usage(&self) -> Usage {
        let (active, cached) = (self.active, self.reserved - self.active);
        Usage { active, cached, peak: active, peak_reserved: self.reserved, blocks: self.pieces }
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}
