//! CPython 3.15: as 3.14, but the chain ends in a sentinel frame inside the thread state (`owner` 3), and
//! `_Py_DebugOffsets` has grown.
//!
//! Mirrors `Include/internal/pycore_interpframe_structs.h`, `Include/cpython/pystate.h`, `Include/cpython/code.h` and,
//! for the indices, `Include/internal/pycore_debug_offsets.h`.

use super::debug_offsets::DebugIndex;
use super::{FrameLayout, Offsets, v3_14};

/// The layout.
pub struct V3_15;

impl FrameLayout for V3_15 {
    const OFFSETS: Offsets = Offsets {
        debug_index: Some(DebugIndex { thread_state: 22, interpreter_frame: 39, code_adaptive: 56 }),
        ..v3_14::V3_14::OFFSETS
    };
}
