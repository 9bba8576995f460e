//! `_Py_DebugOffsets`, the table that CPython 3.13 and later put at the start of `_PyRuntime` for debuggers.
//!
//! Its own layout changes with every minor release, so each layout file says at which 8-byte word its parts begin.
//! Works on bytes; how they are read is the caller's business.

use super::Offsets;

/// Bytes to read from `_PyRuntime`; the structure itself is far larger.
pub const BYTES: usize = 512;

/// Index of the first word (`size`) of each part, counted from the start of `_PyRuntime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugIndex {
    /// `thread_state`: size, prev, next, interp, current_frame, ...
    pub thread_state: usize,
    /// `interpreter_frame`: size, previous, executable, instr_ptr, localsplus, owner, ...
    pub interpreter_frame: usize,
    /// `code_object.co_code_adaptive` itself.
    pub code_adaptive: usize,
}

/// Compares a table with what the running interpreter publishes. The error says what differs.
pub fn compare(offsets: &Offsets, index: DebugIndex, hexversion: u32, runtime: &[u8; BYTES]) -> Result<(), String> {
    let word = |i: usize| {
        let bytes = runtime.get(i * 8..).and_then(<[u8]>::first_chunk::<8>);
        bytes.map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes))
    };
    if &runtime[..8] != b"xdebugpy" {
        return Err("_PyRuntime does not begin with the debug cookie".into());
    }
    let expected = [
        ("version", 1, hexversion as usize),
        ("free_threaded", 2, 0),
        ("thread_state.interp", index.thread_state + 3, offsets.tstate_interp),
        ("thread_state.current_frame", index.thread_state + 4, offsets.tstate_frame),
        ("interpreter_frame.previous", index.interpreter_frame + 1, offsets.frame_previous),
        ("interpreter_frame.executable", index.interpreter_frame + 2, offsets.frame_code),
        ("interpreter_frame.instr_ptr", index.interpreter_frame + 3, offsets.frame_position),
        ("interpreter_frame.owner", index.interpreter_frame + 5, offsets.frame_owner.unwrap_or(usize::MAX)),
        ("code_object.co_code_adaptive", index.code_adaptive, offsets.code_adaptive),
    ];
    let differs = expected.iter().find(|(_, i, value)| word(*i) != *value as u64);
    differs.map_or(Ok(()), |(name, i, value)| {
        Err(format!("_Py_DebugOffsets says {name} is {:#x}, our table {value:#x}", word(*i)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpython::{FrameLayout, v3_13::V3_13};

    const HEX: u32 = 0x030d_00f0;
    const INDEX: DebugIndex = DebugIndex { thread_state: 19, interpreter_frame: 28, code_adaptive: 43 };

    fn runtime() -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(b"xdebugpy");
        // The words of a real 3.13.0.
        for (i, value) in [(1, u64::from(HEX)), (22, 16), (23, 72), (29, 8), (30, 0), (31, 56), (33, 70), (43, 200)] {
            bytes[i * 8..][..8].copy_from_slice(&u64::to_le_bytes(value));
        }
        bytes
    }

    #[test]
    fn equal_tables_agree() {
        assert_eq!(V3_13::OFFSETS.debug_index, Some(INDEX));
        assert_eq!(compare(&V3_13::OFFSETS, INDEX, HEX, &runtime()), Ok(()));
    }

    #[test]
    fn a_moved_field_is_named() {
        let mut bytes = runtime();
        bytes[29 * 8] = 16;
        let error = compare(&V3_13::OFFSETS, INDEX, HEX, &bytes).unwrap_err();
        assert_eq!(error, "_Py_DebugOffsets says interpreter_frame.previous is 0x10, our table 0x8");
    }

    #[test]
    fn no_cookie_no_trust() {
        assert!(compare(&V3_13::OFFSETS, INDEX, HEX, &[0; BYTES]).is_err());
    }
}
