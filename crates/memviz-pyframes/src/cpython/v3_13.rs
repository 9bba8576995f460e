//! CPython 3.13: `tstate->current_frame` without the detour, and `_Py_DebugOffsets` to compare with.
//!
//! Mirrors `Include/internal/pycore_frame.h`, `Include/cpython/pystate.h`, `Include/cpython/code.h` and, for the
//! indices, `struct _Py_DebugOffsets` in `Include/internal/pycore_runtime.h`.

use super::debug_offsets::DebugIndex;
use super::{FrameLayout, Offsets, Position};

/// The layout.
pub struct V3_13;

impl FrameLayout for V3_13 {
    const OFFSETS: Offsets = Offsets {
        current_is_process_wide: false,
        tstate_interp: 16,
        tstate_frame: 72,
        cframe_frame: None,
        frame_previous: 8,
        frame_position: 56,
        position: Position::InstructionPointer,
        frame_code: 0,
        frame_owner: Some(70),
        first_shim_owner: 3,
        code_adaptive: 200,
        code_first_traceable: 184,
        debug_index: Some(DebugIndex { thread_state: 19, interpreter_frame: 28, code_adaptive: 43 }),
    };
}
