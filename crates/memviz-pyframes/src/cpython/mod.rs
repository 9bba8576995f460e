//! What differs between CPython releases: one file per frame layout, one `match` that chooses.
//!
//! Every offset was compiled from that release's own internal headers (LP64), and is checked at start-up: against
//! `_Py_DebugOffsets` where the release publishes it (3.13 and later) and against the public API always.
//! A release that is not in [`walker_for`] is walked through the public API.

pub mod debug_offsets;
mod v3_10;
mod v3_11;
mod v3_12;
mod v3_13;
mod v3_14;
mod v3_15;

use crate::PythonBuild;
use crate::raw::RawWalker;
use debug_offsets::DebugIndex;

pub(crate) use v3_10::F_LASTI as F_LASTI_3_10;

/// How a frame says where it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A pointer to the code unit (`prev_instr`, `instr_ptr`), into the code object itself. It alone names the code
    /// object and the offset, so 8 bytes a frame identify it and the code object stays untouched.
    InstructionPointer,
    /// A count of code units (`int f_lasti` of 3.10), -1 before the first.
    UnitIndex,
}

/// Byte offsets of one layout. Every offset is within the first page of its object.
#[derive(Clone, Copy, Debug)]
pub struct Offsets {
    /// The thread state that the C API calls current belongs to whoever holds the GIL, on any thread (before 3.12).
    pub current_is_process_wide: bool,
    /// `PyThreadState.interp`
    pub tstate_interp: usize,
    /// `PyThreadState.current_frame` (3.10 `frame`), or `cframe` where [`Offsets::cframe_frame`] says so.
    pub tstate_frame: usize,
    /// `_PyCFrame.current_frame` (3.11 and 3.12).
    pub cframe_frame: Option<usize>,
    /// `previous` (3.10 `f_back`)
    pub frame_previous: usize,
    /// `prev_instr`, `instr_ptr`, or `f_lasti`
    pub frame_position: usize,
    /// What the value at `frame_position` is.
    pub position: Position,
    /// `f_code`, `f_executable`; the low three bits may be tags.
    pub frame_code: usize,
    /// `owner`, one byte; `None` where every frame is a Python frame (3.10).
    pub frame_owner: Option<usize>,
    /// An owner at or above this is a shim between C and Python code.
    pub first_shim_owner: u8,
    /// `PyCodeObject.co_code_adaptive`
    pub code_adaptive: usize,
    /// `PyCodeObject._co_firsttraceable`, an `int`
    pub code_first_traceable: usize,
    /// Where `_Py_DebugOffsets` repeats these offsets (3.13 and later).
    pub debug_index: Option<DebugIndex>,
}

/// One layout as a type, so that each gets its own copy of the walker with offsets as constants.
pub trait FrameLayout: 'static {
    /// The table.
    const OFFSETS: Offsets;
}

/// The raw walker for a build, or why there is none.
pub fn walker_for(build: &PythonBuild) -> Result<RawWalker, String> {
    let (major, minor) = build.version();
    if build.is_free_threaded {
        // 3.14t copies bytecode per thread, so there a pointer names no instruction; and no table is guarded by a GIL.
        return Err("free-threaded build".into());
    }
    if build.is_debug {
        return Err("debug build, whose objects may have other layouts".into());
    }
    if cfg!(not(all(target_pointer_width = "64", unix))) {
        return Err("layouts are known for LP64 platforms only".into());
    }
    match (major, minor) {
        (3, 10) => Ok(RawWalker::of::<v3_10::V3_10>()),
        (3, 11) => Ok(RawWalker::of::<v3_11::V3_11>()),
        (3, 12) => Ok(RawWalker::of::<v3_12::V3_12>()),
        (3, 13) => Ok(RawWalker::of::<v3_13::V3_13>()),
        (3, 14) => Ok(RawWalker::of::<v3_14::V3_14>()),
        (3, 15) => Ok(RawWalker::of::<v3_15::V3_15>()),
        _ => Err(format!("no frame layout for CPython {major}.{minor} (have 3.10 to 3.15)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(hexversion: u32) -> PythonBuild {
        PythonBuild { hexversion, is_free_threaded: false, is_debug: false, is_cpython: true }
    }

    #[test]
    fn known_releases_have_a_walker_and_unknown_ones_a_reason() {
        for minor in 10..=15 {
            assert!(walker_for(&build(0x0300_00f0 | minor << 16)).is_ok(), "3.{minor}");
        }
        let reason = walker_for(&build(0x0310_00f0)).err().unwrap();
        assert_eq!(reason, "no frame layout for CPython 3.16 (have 3.10 to 3.15)");
    }

    #[test]
    fn free_threaded_and_debug_builds_use_the_public_api() {
        let free_threaded = PythonBuild { is_free_threaded: true, ..build(0x030d_00f0) };
        let debug = PythonBuild { is_debug: true, ..build(0x030d_00f0) };
        assert!(walker_for(&free_threaded).is_err());
        assert!(walker_for(&debug).is_err());
    }
}
