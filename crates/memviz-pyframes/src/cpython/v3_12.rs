//! CPython 3.12: `previous` moved to 8, shims on the C stack (`owner` 3), the current thread state is thread-local.
//!
//! Mirrors `Include/internal/pycore_frame.h`, `Include/cpython/pystate.h` and `Include/cpython/code.h`.

use super::{FrameLayout, Offsets, Position};

/// The layout.
pub struct V3_12;

impl FrameLayout for V3_12 {
    const OFFSETS: Offsets = Offsets {
        current_is_process_wide: false,
        tstate_interp: 16,
        tstate_frame: 56,
        cframe_frame: Some(0),
        frame_previous: 8,
        frame_position: 56,
        position: Position::InstructionPointer,
        frame_code: 0,
        frame_owner: Some(70),
        first_shim_owner: 3,
        code_adaptive: 192,
        code_first_traceable: 176,
        debug_index: None,
    };
}
