//! An allocator under a replay, whichever it is: MLX's, PyTorch's, or the ideal one.
//!
//! A model answers calls and counts; the loop that asks is `simulate`'s. Buffers are named by the slot of their use, so no
//! model looks one up.

mod ideal;
mod mlx;
mod segments;

use memviz_alloc::{AllocError, Usage};

use crate::held::Amount;

pub(crate) use ideal::Ideal;
pub(crate) use mlx::Mlx;
pub(crate) use segments::Segments;

/// What a model did since [`Model::begin`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Allocations that memory at hand served.
    pub(crate) hits: u64,
    /// Allocations that took memory from the system.
    pub(crate) misses: u64,
    /// Calls to the system or driver for memory.
    pub(crate) made: Amount,
    /// Calls that gave some back.
    pub(crate) given_back: Amount,
    /// Of them, those that gave back what was kept for reuse.
    pub(crate) evicted: Amount,
}

/// An allocator.
pub(crate) trait Model {
    /// A buffer that exists before the first event.
    fn seed(&mut self, slot: u32, bytes: u64);

    /// The first event follows: nothing before it is counted.
    fn begin(&mut self);

    /// # Errors
    /// There is no memory, or no further buffer may exist. The slot is empty then.
    fn malloc(&mut self, slot: u32, bytes: u64) -> Result<(), AllocError>;

    /// Ends the use of a slot's buffer. An empty slot is left alone.
    fn free(&mut self, slot: u32);

    /// A buffer around memory of the program. Where nothing can be wrapped, MLX allocates and copies.
    ///
    /// # Errors
    /// As `malloc`.
    fn wrap(&mut self, slot: u32, bytes: u64) -> Result<(), AllocError> {
        self.malloc(slot, bytes)
    }

    /// An allocation for which the recorded allocator had no memory: neither has this one, after its own attempt to make
    /// room.
    ///
    /// # Errors
    /// It refuses by itself.
    fn fail(&mut self, bytes: u64) -> Result<(), AllocError>;

    /// Active bytes of no known buffer change.
    fn shift_base(&mut self, change: i64);

    /// `mx.set_cache_limit`; without effect where there is no such limit.
    fn set_cache_limit(&mut self, _bytes: u64) {}

    /// `mx.clear_cache`.
    fn clear_cache(&mut self);

    /// Sums. `blocks` are what the system gave and did not get back.
    fn usage(&self) -> Usage;

    /// Counts.
    fn tally(&self) -> Tally;
}
