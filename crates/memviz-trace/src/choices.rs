//! What a recording was asked to keep, in the words that flags, the Python API and headers of files use.
//!
//! Not here: the other options of a recording (`memviz-agent`) and flags (`memviz-cli`).

/// How much to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// What happens to buffers.
    #[default]
    Buffers,
    /// And to arrays: created, evaluated, took or shares a buffer, died.
    Arrays,
}

impl Level {
    /// Every level.
    pub const ALL: [Level; 2] = [Level::Buffers, Level::Arrays];

    /// As the flag and the Python API spell it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Buffers => "buffers",
            Level::Arrays => "arrays",
        }
    }
}

/// Which events carry stacks, as `torch.cuda.memory._record_memory_history` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Context {
    /// Allocations and frees.
    #[default]
    All,
    /// Allocations.
    Alloc,
    /// Only the buffers that exist when a snapshot is taken, or at the end.
    State,
    /// Nothing: no stack is captured.
    None,
}

impl Context {
    /// Every context.
    pub const ALL: [Context; 4] = [Context::All, Context::Alloc, Context::State, Context::None];

    /// As the flag and the Python API spell it.
    pub fn name(self) -> &'static str {
        match self {
            Context::All => "all",
            Context::Alloc => "alloc",
            Context::State => "state",
            Context::None => "none",
        }
    }
}
