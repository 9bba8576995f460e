//! MLX 0.32.4: `set_data` takes an `allocator::Data` by value, that is, a pointer to the caller's temporary.

use super::{Layout, SetDataAbi, v0_28};

/// The table.
pub const LAYOUT: Layout = Layout { since: "0.32.4", desc: v0_28::DESC, set_data: SetDataAbi::Data };
