//! MLX's allocator under a replay: `memviz_alloc::Engine`.

use memviz_alloc::{AllocError, Block, BlockId, Engine, Malloc, Need, Place, Policy, Sink, Usage};
use memviz_trace::Action;

use super::{Model, Tally};
use crate::held::Amount;

/// Listens to the engine.
#[derive(Debug, Default)]
struct System {
    made: Amount,
    given_back: Amount,
    evicted: Amount,
}

impl Sink for System {
    #[inline]
    fn event(&mut self, action: Action, block: Block, _: u64) {
        match action {
            Action::AllocNew => self.made.add(block.size, 1),
            Action::FreeActiveToOs => self.given_back.add(block.size, 1),
            Action::FreeCacheToOs => {
                self.given_back.add(block.size, 1);
                self.evicted.add(block.size, 1);
            }
            _ => {}
        }
    }
}

/// A policy of MLX at work.
pub(crate) struct Mlx {
    engine: Engine,
    blocks: Vec<Option<BlockId>>,
    next_addr: u64,
    system: System,
}

impl Mlx {
    pub(crate) fn new(policy: &Policy, memory_limit: Option<u64>, slots: u32) -> Mlx {
        let mut engine = Engine::new(policy.clone());
        if let Some(limit) = memory_limit {
            engine.set_memory_limit(limit);
        }
        Mlx { engine, blocks: vec![None; slots as usize], next_addr: 1 << 32, system: System::default() }
    }

    fn new_addr(&mut self) -> u64 {
        self.next_addr += 16;
        self.next_addr
    }

    fn commit(&mut self, need: Need) -> BlockId {
        let block = Block { addr: self.new_addr(), size: need.size, place: need.place };
        self.engine.commit(need, block, None, &mut self.system)
    }
}

impl Model for Mlx {
    fn seed(&mut self, slot: u32, bytes: u64) {
        let size = self.engine.policy().rounding.round(bytes.min(i64::MAX as u64));
        let need = Need { size, place: Place::Device, requested: bytes };
        let Usage { active, cached, .. } = self.usage();
        if active.saturating_add(cached).checked_add(size).is_none() {
            // More than any machine has: the recording contradicts itself.
            return;
        }
        self.blocks[slot as usize] = Some(self.commit(need));
    }

    fn begin(&mut self) {
        self.system = System::default();
    }

    #[inline]
    fn malloc(&mut self, slot: u32, bytes: u64) -> Result<(), AllocError> {
        self.blocks[slot as usize] = None;
        self.blocks[slot as usize] = match self.engine.malloc(bytes, &mut self.system)? {
            Malloc::Reused(id) => Some(id),
            Malloc::Needs(need) => Some(self.commit(need)),
            Malloc::Null => None,
        };
        Ok(())
    }

    #[inline]
    fn free(&mut self, slot: u32) {
        let Some(id) = self.blocks[slot as usize].take() else { return };
        // A slot holds an active block, so the one possible refusal is that it is a wrapper.
        if self.engine.free(id, &mut self.system).is_err() {
            let _ = self.engine.release_wrapper(id, &mut self.system);
        }
    }

    #[cold]
    fn wrap(&mut self, slot: u32, bytes: u64) -> Result<(), AllocError> {
        let block = Block { addr: self.new_addr(), size: bytes, place: Place::Wrapped };
        match self.engine.make_buffer(block, &mut self.system)? {
            Some(id) => self.blocks[slot as usize] = Some(id),
            None => self.malloc(slot, bytes)?,
        }
        Ok(())
    }

    #[cold]
    fn fail(&mut self, bytes: u64) -> Result<(), AllocError> {
        match self.engine.malloc(bytes, &mut self.system)? {
            Malloc::Needs(need) => _ = self.engine.fail(need),
            Malloc::Reused(id) => _ = self.engine.free(id, &mut self.system),
            Malloc::Null => {}
        }
        Ok(())
    }

    fn shift_base(&mut self, change: i64) {
        self.engine.shift_base(change);
    }

    fn set_cache_limit(&mut self, bytes: u64) {
        self.engine.set_cache_limit(bytes, &mut self.system);
    }

    fn clear_cache(&mut self) {
        self.engine.clear_cache(&mut self.system);
    }

    #[inline]
    fn usage(&self) -> Usage {
        self.engine.usage()
    }

    fn tally(&self) -> Tally {
        let System { made, given_back, evicted } = self.system;
        // A request that no lookup precedes (0 bytes on CUDA) is a miss as well, as in the recording.
        Tally { hits: self.engine.counters().total().hits, misses: made.count, made, given_back, evicted }
    }
}
