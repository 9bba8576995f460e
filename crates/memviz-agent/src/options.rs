//! What to record: plain values, resolved by the caller.

use memviz_trace::{Context, Level};

/// 48 MB of events.
pub const DEFAULT_MAX_ENTRIES: u64 = 1_000_000;

/// Options of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Capacity of the ring, 0 for no limit. Streamed: how many events may wait for the file, 0 for the default.
    pub max_entries: u64,
    /// A writer takes events away as they come (`stream`), instead of a ring that keeps the last ones.
    pub is_streamed: bool,
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
            max_entries: DEFAULT_MAX_ENTRIES,
            is_streamed: false,
            min_size: 0,
            context: Context::All,
            level: Level::Buffers,
            depth: 0,
            native: false,
        }
    }
}
