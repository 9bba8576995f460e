//! What to record: plain values, resolved by the caller.

/// Which events carry stacks, in PyTorch's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Context {
    /// Allocations and frees.
    #[default]
    All,
    /// Allocations.
    Alloc,
    /// Only the buffers that exist when a snapshot is taken.
    State,
    /// Nothing: no stack is captured.
    None,
}

/// How much to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// What happens to buffers.
    #[default]
    Buffers,
    /// And to arrays: created, evaluated, took or shares a buffer, died.
    Arrays,
}

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
