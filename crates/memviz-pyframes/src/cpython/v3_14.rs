//! CPython 3.14: `f_executable` is a tagged reference, shims are owned by the interpreter (3) or the C stack (4).
//!
//! Mirrors `Include/internal/pycore_interpframe_structs.h`, `Include/cpython/pystate.h`, `Include/cpython/code.h` and,
//! for the indices, `Include/internal/pycore_debug_offsets.h`.

use super::debug_offsets::DebugIndex;
use super::{FrameLayout, Offsets, Position};

/// The layout.
pub struct V3_14;

impl FrameLayout for V3_14 {
    const OFFSETS: Offsets = Offsets {
        current_is_process_wide: false,
        tstate_interp: 16,
        tstate_frame: 72,
        cframe_frame: None,
        frame_previous: 8,
        frame_position: 56,
        position: Position::InstructionPointer,
        frame_code: 0,
        frame_owner: Some(74),
        first_shim_owner: 3,
        code_adaptive: 208,
        code_first_traceable: 192,
        debug_index: Some(DebugIndex { thread_state: 22, interpreter_frame: 31, code_adaptive: 48 }),
    };
}
