//! Does the fast walk see what Python sees? Asked before it is used, and again by the self-test.
#![expect(unsafe_code, reason = "calls CPython's C API with the GIL held")]

use thiserror::Error;

use crate::api::{Address, Api, symbol};
use crate::codes::code_address;
use crate::cpython::{Offsets, debug_offsets};
use crate::memory::{Memory, PipeMemory};
use crate::public::{self, PublicFrame};
use crate::raw::{self, Seen};
use crate::tree::node;
use crate::{CodeId, PythonBuild, gil};

/// A chain longer than this is taken for a wrong layout: each frame has at most a shim and an incomplete frame beside it.
fn max_steps(public_frames: usize) -> usize {
    64 + 3 * public_frames
}

/// What the fast walk got wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// `initialise` has not succeeded.
    #[error("not initialised")]
    NotInitialised,
    /// Called without the GIL or in a sub-interpreter.
    #[error("this thread does not hold the GIL of the main interpreter")]
    NoGil,
    /// No file descriptors for the careful reader.
    #[error("cannot open a pipe to read memory carefully")]
    NoPipe,
    /// A pointer in the chain is not one.
    #[error("frame {step} of the chain is no readable frame: {address:#x}")]
    NotAFrame {
        /// Frames read before it, shims included.
        step: usize,
        /// The pointer.
        address: usize,
    },
    /// The chain does not end.
    #[error("the chain of frames does not end")]
    Endless,
    /// The stacks have different lengths.
    #[error("{walk} sees {found} frames, the public API {expected}")]
    Length {
        /// Which walk.
        walk: &'static str,
        /// Its number of frames.
        found: usize,
        /// The reference.
        expected: usize,
    },
    /// One frame differs in code object or offset.
    #[error("{walk} sees other code or another offset in frame {index}, offset {found} and not {expected}")]
    Frame {
        /// Which walk.
        walk: &'static str,
        /// Counted from the innermost frame.
        index: usize,
        /// Its offset.
        found: i32,
        /// The reference.
        expected: i32,
    },
}

/// Everything that can be checked without the fast walk: the published table, and the current stack read carefully.
///
/// # Safety
/// The GIL is held, in the main interpreter.
pub(crate) unsafe fn check_layout(api: &Api, offsets: &Offsets, build: &PythonBuild) -> Result<(), String> {
    let memory = PipeMemory::new().ok_or_else(|| Mismatch::NoPipe.to_string())?;
    if let Some(index) = offsets.debug_index {
        let runtime = symbol(c"_PyRuntime").ok_or("no symbol _PyRuntime to compare the layout with")?;
        let bytes = memory.bytes::<{ debug_offsets::BYTES }>(runtime as Address);
        let bytes = bytes.ok_or("_PyRuntime is not readable")?;
        debug_offsets::compare(offsets, index, build.hexversion, &bytes)?;
    }
    // SAFETY: by contract.
    unsafe { compare_carefully(api, offsets, &memory) }.map_err(|mismatch| mismatch.to_string())
}

/// # Safety
/// The GIL is held, in the main interpreter.
unsafe fn compare_carefully(api: &Api, offsets: &Offsets, memory: &PipeMemory) -> Result<(), Mismatch> {
    let mut expected = Vec::new();
    // SAFETY: by contract.
    unsafe { public::collect(api, &mut expected) };
    let tstate = gil::own_thread_state(offsets.current_is_process_wide);
    if memory.word(tstate + offsets.tstate_interp) != Some(gil::main_interpreter()) {
        return Err(Mismatch::NotAFrame { step: 0, address: tstate });
    }
    same("the raw chain", &raw_frames(api, offsets, memory, tstate, max_steps(expected.len()))?, &expected)
}

/// The raw chain, each pointer checked before it is followed.
fn raw_frames(
    api: &Api,
    offsets: &Offsets,
    memory: &PipeMemory,
    tstate: Address,
    max_steps: usize,
) -> Result<Vec<PublicFrame>, Mismatch> {
    let no_frame = |step, address| Mismatch::NotAFrame { step, address };
    let mut frame = raw::innermost(memory, offsets, tstate).ok_or(no_frame(0, tstate))?;
    let mut frames = Vec::new();
    for step in 0..max_steps {
        if frame == 0 {
            return Ok(frames);
        }
        if frame % 8 != 0 || frame <= 4096 {
            return Err(no_frame(step, frame));
        }
        if let Seen::Python { code, lasti } =
            raw::describe(memory, offsets, frame, api.code_type).ok_or(no_frame(step, frame))?
        {
            frames.push(PublicFrame { code, lasti });
        }
        frame = memory.word(frame + offsets.frame_previous).ok_or(no_frame(step, frame))?;
    }
    Err(Mismatch::Endless)
}

fn same(walk: &'static str, found: &[PublicFrame], expected: &[PublicFrame]) -> Result<(), Mismatch> {
    if let Some(index) = found.iter().zip(expected).position(|(found, expected)| found != expected) {
        return Err(Mismatch::Frame { walk, index, found: found[index].lasti, expected: expected[index].lasti });
    }
    if found.len() != expected.len() {
        return Err(Mismatch::Length { walk, found: found.len(), expected: expected.len() });
    }
    Ok(())
}

/// Compares the current stack, whole, as three walks see it: the raw chain read carefully, [`crate::capture`], and
/// the public API. On an error the caller must call [`crate::use_public_walk`].
///
/// Meant for the leaf of a stack with every kind of frame: see [`crate::SELF_TEST_SOURCE`]. A few microseconds a frame.
///
/// # Safety
/// The GIL is held, in the main interpreter.
pub unsafe fn matches_public_walk() -> Result<(), Mismatch> {
    let api = Api::get().ok_or(Mismatch::NotInitialised)?;
    if gil::own_main_thread_state(api) == 0 {
        return Err(Mismatch::NoGil);
    }
    if let Some(offsets) = crate::raw_offsets() {
        let memory = PipeMemory::new().ok_or(Mismatch::NoPipe)?;
        // SAFETY: by contract.
        unsafe { compare_carefully(api, &offsets, &memory) }?;
    }
    let mut expected = Vec::new();
    // SAFETY: by contract.
    unsafe { public::collect(api, &mut expected) };
    same("the capture", &stored_frames(crate::capture()), &expected)
}

/// The frames of a stored stack that are not hidden, innermost first.
fn stored_frames(innermost: u32) -> Vec<PublicFrame> {
    let next = |id: u32| node(id).filter(|_| id != 0).map(|row| (row, row.caller));
    let rows = std::iter::successors(next(innermost), |(_, caller)| next(*caller)).map(|(row, _)| row);
    let shown = rows.filter(|row| row.code != CodeId::NONE);
    shown.map(|row| PublicFrame { code: code_address(row.code).unwrap_or(0), lasti: row.lasti }).collect()
}
