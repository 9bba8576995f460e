//! MLX 0.32.0 to 0.32.3: the long `set_data` has an offset before its deleter.

use super::{Layout, SetDataAbi, v0_28};

/// The table.
pub const LAYOUT: Layout = Layout { since: "0.32.0", desc: v0_28::DESC, set_data: SetDataAbi::BufferAndOffset };
