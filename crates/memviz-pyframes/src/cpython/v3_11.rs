//! CPython 3.11: `_PyInterpreterFrame`s on the data stack, found through `tstate->cframe`. No shim frames.
//!
//! Mirrors `Include/internal/pycore_frame.h`, `Include/cpython/pystate.h` and `Include/cpython/code.h`.

use super::{FrameLayout, Offsets, Position};

/// The layout.
pub struct V3_11;

impl FrameLayout for V3_11 {
    const OFFSETS: Offsets = Offsets {
        current_is_process_wide: true,
        tstate_interp: 16,
        tstate_frame: 56,
        cframe_frame: Some(8),
        frame_previous: 48,
        frame_position: 56,
        position: Position::InstructionPointer,
        frame_code: 32,
        frame_owner: Some(69),
        first_shim_owner: u8::MAX,
        code_adaptive: 184,
        code_first_traceable: 168,
        debug_index: None,
    };
}
