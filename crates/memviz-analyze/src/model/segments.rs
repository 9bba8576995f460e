//! PyTorch's allocator under a replay: `memviz_alloc::SegmentEngine`.

use memviz_alloc::{AllocError, BlockId, SegmentEngine, SegmentPolicy, Usage};

use super::{Model, Tally};
use crate::held::Amount;

/// PyTorch's rules at work.
pub(crate) struct Segments {
    engine: SegmentEngine,
    blocks: Vec<Option<BlockId>>,
    /// The engine's counts before the first event.
    before: Tally,
}

impl Segments {
    pub(crate) fn new(policy: &SegmentPolicy, memory_limit: Option<u64>, slots: u32) -> Segments {
        let mut engine = SegmentEngine::new(policy.clone());
        if let Some(limit) = memory_limit {
            engine.set_memory_limit(limit);
        }
        Segments { engine, blocks: vec![None; slots as usize], before: Tally::default() }
    }
}

impl Model for Segments {
    fn seed(&mut self, slot: u32, bytes: u64) {
        self.blocks[slot as usize] = self.engine.malloc(bytes).ok().flatten();
    }

    fn begin(&mut self) {
        self.before = Tally::default();
        self.before = self.tally();
    }

    #[inline]
    fn malloc(&mut self, slot: u32, bytes: u64) -> Result<(), AllocError> {
        self.blocks[slot as usize] = None;
        self.blocks[slot as usize] = self.engine.malloc(bytes)?;
        Ok(())
    }

    #[inline]
    fn free(&mut self, slot: u32) {
        if let Some(id) = self.blocks[slot as usize].take() {
            // A slot holds an active block.
            let _ = self.engine.free(id);
        }
    }

    /// Its attempt to make room is to give back what is free.
    #[cold]
    fn fail(&mut self, _bytes: u64) -> Result<(), AllocError> {
        self.engine.clear_cache();
        Ok(())
    }

    fn shift_base(&mut self, change: i64) {
        self.engine.shift_base(change);
    }

    fn clear_cache(&mut self) {
        self.engine.clear_cache();
    }

    #[inline]
    fn usage(&self) -> Usage {
        self.engine.usage()
    }

    fn tally(&self) -> Tally {
        let ((hits, misses), (made, given_back)) = (self.engine.lookups(), self.engine.driver_calls());
        let since = |now: memviz_alloc::DriverCalls, before: Amount| Amount {
            bytes: now.bytes.saturating_sub(before.bytes),
            count: now.count - before.count,
        };
        let given_back = since(given_back, self.before.given_back);
        Tally {
            hits: hits - self.before.hits,
            misses: misses - self.before.misses,
            made: since(made, self.before.made),
            given_back,
            // All of it was free.
            evicted: given_back,
        }
    }
}
