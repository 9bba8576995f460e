//! What differs between MLX releases: tables, and the one `match` that picks.
//!
//! Sources: the headers in each wheel (`mlx/array.h`, `mlx/allocator.h`, `mlx/primitives.h`), compiled by
//! `ci/check_layouts.py`; symbol names from the wheels' symbol tables. The attach-time self-test proves every number
//! here again on the library that is loaded.

pub mod backend;
mod sharing;
mod v0_28;
mod v0_32_0;
mod v0_32_4;

pub use sharing::{Sharing, sharing};

/// Byte offsets in `mlx::core::array::ArrayDesc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescLayout {
    /// `shape`, a `SmallVector<int32_t, 10>`: begin pointer at +8, end pointer at +16.
    pub shape: usize,
    /// `dtype`: an i32 code, then the item size in one byte.
    pub dtype: usize,
    /// First word of `shared_ptr<Primitive>`.
    pub primitive: usize,
    /// `status`, an i32: 0 unscheduled, 1 evaluated, 2 available.
    pub status: usize,
    /// First word of `shared_ptr<Data>`; the `Data` begins with the buffer.
    pub data: usize,
    /// `flags`, one byte: bit 0 contiguous, bit 1 row contiguous.
    pub flags: usize,
    /// `inputs`, a `std::vector<array>`.
    pub inputs: usize,
    /// `siblings`, a `std::vector<array>`: the other outputs of the same primitive.
    pub siblings: usize,
    /// Bytes of the whole descriptor.
    pub size: usize,
    /// Four bytes of padding after `status`.
    pub pad_after_status: usize,
    /// Two bytes of padding and then four more, after `is_tracer` (which is 3 bytes before).
    pub pad_after_tracer: usize,
}

/// How `array::set_data` is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetDataAbi {
    /// The second argument is the buffer itself; the last one, the third or sixth, its deleter.
    Buffer,
    /// The same with an offset before the long one's deleter, which is the seventh argument (0.32.0).
    BufferAndOffset,
    /// The second argument points to an `allocator::Data`, whose first word is the buffer (0.32.4).
    Data,
}

/// One release's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// First release of the table, for messages.
    pub since: &'static str,
    /// Offsets in `ArrayDesc`.
    pub desc: DescLayout,
    /// How `set_data` is called.
    pub set_data: SetDataAbi,
}

/// Byte offsets in `mlx::core::allocator::Data`, 0.32.4.
pub mod data {
    /// The memory is the allocator's, one byte.
    pub const OWNED: usize = 40;
}

/// Byte offsets in `mlx::core::Primitive`, 0.21.1 to 0.32.4: index and device of its stream, all i32.
pub mod primitive {
    /// Index of the stream.
    pub const STREAM_INDEX: usize = 8;
    /// 0 CPU, 1 GPU.
    pub const DEVICE_TYPE: usize = 12;
    /// Ordinal of the device.
    pub const DEVICE_INDEX: usize = 16;
    /// Vtable slot of `eval_cpu`; `eval_gpu` follows.
    pub const SLOT_EVAL_CPU: usize = 0;
    /// Vtable slot of `eval_gpu`.
    pub const SLOT_EVAL_GPU: usize = 1;
    /// Vtable slot of `name`, which returns a C string (from 0.26.5).
    pub const SLOT_NAME: usize = 5;
}

/// Names of `mlx::core::Dtype::Val`, by number (`mlx/dtype.h`).
pub const DTYPES: [&str; 14] = [
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "complex64",
];

/// Oldest and newest release with a table, for messages.
pub const SUPPORTED: (&str, &str) = ("0.28.0", "0.32.4");

/// The table for a release, or `None`: do not attach.
pub fn layout(version: &str) -> Option<Layout> {
    match parse(version)? {
        (0, 28..=31, _) => Some(v0_28::LAYOUT),
        (0, 32, 0..=3) => Some(v0_32_0::LAYOUT),
        (0, 32, 4) => Some(v0_32_4::LAYOUT),
        _ => None,
    }
}

/// Three numbers of a release; a development build ("0.32.2.dev2026…") has no table.
fn parse(version: &str) -> Option<(u32, u32, u32)> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    let release = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_releases_have_a_table_and_others_do_not() {
        for version in ["0.28.0", "0.29.4", "0.30.6", "0.31.2", "0.32.0", "0.32.3", "0.32.4"] {
            assert!(layout(version).is_some(), "{version}");
        }
        for version in ["0.27.1", "0.26.5", "0.32.5", "0.33.0", "1.0.0", "0.32", "0.32.2.dev20260822", ""] {
            assert!(layout(version).is_none(), "{version}");
        }
    }
}
