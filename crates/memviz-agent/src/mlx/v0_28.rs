//! MLX 0.28.0 to 0.31.2: `set_data` takes a buffer and a deleter, its deleter comes last.

use super::{DescLayout, Layout, SetDataAbi};

/// `mlx/array.h`, `struct ArrayDesc`, 368 bytes, unchanged up to 0.32.4.
pub const DESC: DescLayout = DescLayout {
    shape: 0,
    dtype: 192,
    primitive: 200,
    status: 216,
    data: 272,
    flags: 304,
    inputs: 312,
    siblings: 336,
    size: 368,
    pad_after_status: 220,
    pad_after_tracer: 266,
};

/// The table.
pub const LAYOUT: Layout = Layout { since: "0.28.0", desc: DESC, set_data: SetDataAbi::Buffer };
