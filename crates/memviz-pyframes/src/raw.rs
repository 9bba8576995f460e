//! Reading raw frames: the fast walk, and the slow one that trusts nothing.
//!
//! The fast walk needs two fields of a frame, `previous` and the position. Everything else about a frame is looked at
//! once, when its call site is first seen ([`describe`]).
#![expect(unsafe_code, reason = "reads frames of the interpreter at fixed offsets")]

use crate::api::{Address, Api};
use crate::codes::{CodeId, Codes};
use crate::cpython::{FrameLayout, Offsets, Position};
use crate::gil;
use crate::memory::{LiveMemory, Memory};
use crate::tables;
use crate::tree::{LOST, code_key};

/// A layout's walker.
#[derive(Clone, Copy)]
pub struct RawWalker {
    pub(crate) offsets: Offsets,
    pub(crate) capture: fn() -> u32,
}

impl RawWalker {
    /// The walker compiled for `L`.
    pub const fn of<L: FrameLayout>() -> RawWalker {
        RawWalker { offsets: L::OFFSETS, capture: capture::<L> }
    }
}

/// # Safety
/// `address + offset` is a field of type `T` of a live object.
#[inline(always)]
pub(crate) unsafe fn load<T: Copy>(address: Address, offset: usize) -> T {
    // SAFETY: by contract.
    unsafe { std::ptr::read((address + offset) as *const T) }
}

/// The same address, of which the compiler does not know that it is the same.
///
/// The walk predicts the next frame from a sequential array and only compares it with `previous`, so the processor
/// need not wait for one load to begin the next: 0.7 ns a frame instead of 1.5. Without this barrier the compiler
/// substitutes the loaded pointer and the chain of loads is back. Not `pure`: then it would be moved behind the
/// comparison, where its operand is substituted in the same way (both measured by disassembly, rustc 1.95).
#[inline(always)]
pub(crate) fn launder(address: Address) -> Address {
    let laundered;
    // SAFETY: an empty instruction that moves nothing but its operand.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) address => laundered, options(nomem, nostack, preserves_flags));
    }
    laundered
}

/// # Safety
/// `frame` is a live frame of a build with layout `L`.
#[inline(always)]
pub(crate) unsafe fn previous<L: FrameLayout>(frame: Address) -> Address {
    // SAFETY: by contract.
    unsafe { load(frame, L::OFFSETS.frame_previous) }
}

/// What identifies the call site of a frame, exactly; see [`crate::tree`].
///
/// # Safety
/// As for [`previous`], and the GIL is held.
#[inline(always)]
pub(crate) unsafe fn key<L: FrameLayout>(frame: Address, codes: &mut Codes) -> u64 {
    // SAFETY: by contract.
    unsafe {
        match L::OFFSETS.position {
            Position::InstructionPointer => load(frame, L::OFFSETS.frame_position),
            Position::UnitIndex => {
                let code: usize = load(frame, L::OFFSETS.frame_code);
                let unit: i32 = load(frame, L::OFFSETS.frame_position);
                packed_key(code, unit).unwrap_or_else(|| interned_key(code, unit, codes))
            }
        }
    }
}

/// Code address (8-aligned, below 2^48) and unit index in 63 bits; `None` where they do not fit.
#[inline(always)]
fn packed_key(code: Address, unit: i32) -> Option<u64> {
    let position = unit.wrapping_add(1) as u32;
    (code >> 48 == 0 && position >> 18 == 0).then(|| (code as u64 >> 3) << 18 | u64::from(position))
}

#[cold]
unsafe fn interned_key(code: Address, unit: i32, codes: &mut Codes) -> u64 {
    // SAFETY: the code object belongs to a live frame of this thread, which holds the GIL.
    let code = Api::get().and_then(|api| unsafe { codes.intern(code, api) });
    code.map_or(u64::from(LOST), |code| code_key(code, byte_offset(unit)))
}

/// 3.10 counts code units of two bytes.
fn byte_offset(unit: i32) -> i32 {
    if unit < 0 { -1 } else { unit.wrapping_mul(2) }
}

/// What a frame turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Between C and Python code; has no Python code of its own.
    Shim,
    /// Not yet begun: hidden by the public API. Since 3.13 a specialised `Class()` call has one, called `__init__`.
    Incomplete { code: Address },
    /// An ordinary frame.
    Python { code: Address, lasti: i32 },
}

/// `FRAME_OWNED_BY_GENERATOR`, in every release that has owners.
const OWNED_BY_GENERATOR: u8 = 1;

/// Looks at everything. `None`: some address was not readable.
pub(crate) fn describe(memory: &impl Memory, offsets: &Offsets, frame: Address, code_type: Address) -> Option<Seen> {
    let [owner] = match offsets.frame_owner {
        Some(offset) => memory.bytes::<1>(frame + offset)?,
        None => [0],
    };
    // Objects are 8-aligned; the low bits are tags from 3.14 on and 0 before.
    let code = memory.word(frame + offsets.frame_code)? & !7;
    if owner >= offsets.first_shim_owner || code < 4096 || memory.word(code + OB_TYPE)? != code_type {
        return Some(Seen::Shim);
    }
    let position = frame + offsets.frame_position;
    if offsets.position == Position::UnitIndex {
        return Some(Seen::Python { code, lasti: byte_offset(memory.int(position)?) });
    }
    let lasti = memory.word(position)?.wrapping_sub(code + offsets.code_adaptive) as i64;
    let first_traceable = 2 * i64::from(memory.int(code + offsets.code_first_traceable)?);
    if owner != OWNED_BY_GENERATOR && lasti < first_traceable {
        return Some(Seen::Incomplete { code });
    }
    Some(Seen::Python { code, lasti: i32::try_from(lasti).ok()?.max(-1) })
}

/// `PyObject.ob_type` of a build with a GIL.
const OB_TYPE: usize = 8;

/// The innermost frame of a thread state.
pub(crate) fn innermost(memory: &impl Memory, offsets: &Offsets, tstate: Address) -> Option<Address> {
    let first = memory.word(tstate + offsets.tstate_frame)?;
    match offsets.cframe_frame {
        Some(offset) => memory.word(first + offset),
        None => Some(first),
    }
}

/// First sight of a call site: what it is, with its code object retained.
///
/// # Safety
/// As for [`key`].
#[inline(never)]
pub(crate) unsafe fn describe_live<L: FrameLayout>(frame: Address, codes: &mut Codes) -> Option<(CodeId, i32)> {
    let api = Api::get()?;
    // SAFETY: only fields of the live frame and of the code object that it owns are read, in a verified layout.
    let memory = unsafe { LiveMemory::new() };
    match describe(&memory, &L::OFFSETS, frame, api.code_type)? {
        Seen::Shim => Some((CodeId::NONE, -1)),
        // Retained as well: its address must not come to mean another function, one that is not hidden.
        // SAFETY: the frame owns the code object.
        Seen::Incomplete { code } => unsafe { codes.intern(code, api) }.map(|_| (CodeId::NONE, -1)),
        // SAFETY: as above.
        Seen::Python { code, lasti } => unsafe { codes.intern(code, api) }.map(|id| (id, lasti)),
    }
}

/// The fast walk. Installed only after the layout was verified on this interpreter.
fn capture<L: FrameLayout>() -> u32 {
    let tstate = gil::own_thread_state(L::OFFSETS.current_is_process_wide);
    if tstate == 0 {
        return 0;
    }
    // SAFETY: the thread state is this thread's own and current, so it and its frames are alive and nobody else
    // changes them; its layout is `L`. The GIL is held and nothing below releases it: the walk calls `Py_IncRef` and
    // the allocator, no more.
    unsafe {
        if load::<Address>(tstate, L::OFFSETS.tstate_interp) != gil::main_interpreter() {
            return 0;
        }
        let first: Address = load(tstate, L::OFFSETS.tstate_frame);
        let innermost = match L::OFFSETS.cframe_frame {
            Some(offset) => load(first, offset),
            None => first,
        };
        tables::with_gil(|tables| {
            let shadow = tables.shadows.of(tstate);
            shadow.walk::<L>(&mut tables.tree, innermost)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_keys_fit_or_say_so() {
        assert_eq!(packed_key(0x7fff_ffff_fff8, -1), Some(0x0fff_ffff_ffff << 18));
        assert_ne!(packed_key(0x1000, 0), packed_key(0x1008, -1));
        assert_eq!(packed_key(1 << 48, 0), None);
        assert_eq!(packed_key(0x1000, (1 << 18) - 1), None);
        assert_eq!(byte_offset(-1), -1);
    }
}
