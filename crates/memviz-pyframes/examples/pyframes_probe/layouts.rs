//! Wrong layouts by name, to see that each is refused before it is used.

use memviz_pyframes::cpython::{FrameLayout, Offsets, Position};
use memviz_pyframes::{InitError, PythonBuild, Walker};

/// 3.12 without anything that is compared before the chain is walked.
const BASE: Offsets = Offsets {
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

macro_rules! layouts {
    ($($name:ident $offsets:expr;)*) => {
        $(struct $name;
        impl FrameLayout for $name {
            const OFFSETS: Offsets = $offsets;
        })*

        /// # Safety
        /// GIL held, in the main interpreter.
        pub unsafe fn initialise(build: PythonBuild, name: &str) -> Result<Walker, InitError> {
            // SAFETY: by contract.
            unsafe {
                match name {
                    $(stringify!($name) => memviz_pyframes::initialise_with::<$name>(build),)*
                    _ => memviz_pyframes::initialise(build),
                }
            }
        }
    };
}

// `Like...` are right in one release (3.14 and 3.15: none of them) and wrong in every other; the rest are always wrong.
layouts! {
    Like310 Offsets { current_is_process_wide: true, tstate_frame: 24, cframe_frame: None, frame_previous: 24,
        frame_position: 96, position: Position::UnitIndex, frame_code: 32, frame_owner: None, ..BASE };
    Like311 Offsets { current_is_process_wide: true, cframe_frame: Some(8), frame_previous: 48, frame_code: 32,
        frame_owner: Some(69), first_shim_owner: u8::MAX, code_adaptive: 184, code_first_traceable: 168, ..BASE };
    Like312 BASE;
    Like313 Offsets { tstate_frame: 72, cframe_frame: None, code_adaptive: 200, code_first_traceable: 184, ..BASE };
    WildFrame Offsets { tstate_frame: 152, cframe_frame: None, ..BASE };
    WildPrevious Offsets { tstate_frame: 72, cframe_frame: None, frame_previous: 56, ..BASE };
    Misaligned Offsets { tstate_frame: 73, cframe_frame: None, ..BASE };
}
