//! What to record: plain values, resolved by the caller.

use memviz_trace::{Context, Level};

/// Options of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Capacity of the ring, 0 for no limit.
    pub max_entries: u64,
    /// Buffers below that many bytes are counted but not written.
    pub min_size: u64,
    /// Which events carry stacks.
    pub context: Context,
    /// How much to record.
    pub level: Level,
    /// Innermost Python frames kept of each stack, 0 for all.
    pub depth: u32,
    /// C++ frames below the Python frames.
    pub native: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_entries: 1_000_000,
            min_size: 0,
            context: Context::All,
            level: Level::Buffers,
            depth: 0,
            native: false,
        }
    }
}
