//! CPython 3.10: frames are `PyFrameObject`s linked by `f_back`; the position is a count of code units.
//!
//! Mirrors `Include/cpython/frameobject.h` (`struct _frame`) and `Include/cpython/pystate.h` (`struct _ts`).

use super::{FrameLayout, Offsets, Position};

/// The layout.
pub struct V3_10;

impl FrameLayout for V3_10 {
    const OFFSETS: Offsets = Offsets {
        current_is_process_wide: true,
        tstate_interp: 16,
        tstate_frame: 24,
        cframe_frame: None,
        frame_previous: 24,
        frame_position: F_LASTI,
        position: Position::UnitIndex,
        frame_code: 32,
        frame_owner: None,
        first_shim_owner: u8::MAX,
        code_adaptive: 0,
        code_first_traceable: 0,
        debug_index: None,
    };
}

/// `PyFrameObject.f_lasti`: 3.10 has no `PyFrame_GetLasti`, so the public walk needs it too.
pub(crate) const F_LASTI: usize = 96;
