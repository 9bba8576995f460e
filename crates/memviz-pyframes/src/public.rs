//! The walk that every CPython offers: `PyEval_GetFrame`, `PyFrame_GetBack`, `PyFrame_GetCode`, `PyFrame_GetLasti`.
//!
//! 9 ns a frame when the frame objects exist, some 60 ns for each that has to be made (3.11 and later make them on
//! demand). Used on free-threaded and unknown builds, and as the reference that the fast walk is compared with.
#![expect(unsafe_code, reason = "calls CPython's C API")]

use std::sync::Mutex;

use crate::api::{Address, Api};
use crate::cpython::F_LASTI_3_10;
use crate::memory::{LiveMemory, Memory};
use crate::tree::{LOST, Tree, code_key};
use crate::{gil, tables};

/// A frame as the public API tells it. The code object is alive for as long as the frame runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PublicFrame {
    pub(crate) code: Address,
    pub(crate) lasti: i32,
}

/// Buffers between captures, so that the steady state does not allocate. Only ever tried, never waited for.
static BUFFERS: Mutex<Vec<Vec<PublicFrame>>> = Mutex::new(Vec::new());
const MAX_BUFFERS: usize = 16;

/// The public walk: the innermost node of this thread's Python stack, or 0.
pub(crate) fn capture() -> u32 {
    let Some(api) = Api::get() else { return 0 };
    if gil::own_main_thread_state(api) == 0 {
        return 0;
    }
    let pooled = BUFFERS.try_lock().ok().and_then(|mut buffers| buffers.pop());
    let mut frames = pooled.unwrap_or_default();
    frames.clear();
    // SAFETY: the GIL is held; interning calls `Py_IncRef` and the allocator, no more. The code objects are alive
    // because the frames are this thread's own, and it is here and not returning from them.
    let node = unsafe {
        collect(api, &mut frames);
        tables::with_tables(|tables| intern(&mut tables.tree, api, &frames))
    };
    if let Ok(mut buffers) = BUFFERS.try_lock().map_err(drop)
        && buffers.len() < MAX_BUFFERS
    {
        buffers.push(frames);
    }
    if node == LOST { 0 } else { node }
}

/// # Safety
/// The GIL is held and every code object is alive.
unsafe fn intern(tree: &mut Tree, api: &Api, frames: &[PublicFrame]) -> u32 {
    frames.iter().rev().fold(0, |caller, frame| {
        // SAFETY: by contract.
        let Some(code) = (unsafe { tree.codes.intern(frame.code, api) }) else { return LOST };
        tree.child(caller, code_key(code, frame.lasti), |_| Some((code, frame.lasti)))
    })
}

/// Appends the frames of this thread, innermost first.
///
/// # Safety
/// The GIL is held (free-threaded: the thread is attached).
pub(crate) unsafe fn collect(api: &Api, frames: &mut Vec<PublicFrame>) {
    // SAFETY: called with the GIL. `PyEval_GetFrame` lends its frame, the others give references; a frame and its code
    // are also owned by the interpreter while the frame runs, so giving ours back never frees anything and no
    // destructor runs. Making a frame object may start a collection before 3.12, hence the guard.
    unsafe {
        let _no_collection = CollectorPause::begin(api);
        let mut frame = (api.PyEval_GetFrame)();
        let mut is_borrowed = true;
        while frame != 0 {
            let code = (api.PyFrame_GetCode)(frame);
            frames.push(PublicFrame { code, lasti: lasti(api, frame) });
            (api.Py_DecRef)(code);
            let caller = (api.PyFrame_GetBack)(frame);
            if !is_borrowed {
                (api.Py_DecRef)(frame);
            }
            (frame, is_borrowed) = (caller, false);
        }
    }
}

/// # Safety
/// The GIL is held and `frame` is a live frame object.
pub(crate) unsafe fn lasti(api: &Api, frame: Address) -> i32 {
    // SAFETY: by contract. Only 3.10 lacks the function, and there the field was compared with the attribute
    // `f_lasti` at start-up.
    unsafe {
        match api.PyFrame_GetLasti {
            Some(get_lasti) => get_lasti(frame).max(-1),
            None => LiveMemory::new().int(frame + F_LASTI_3_10).map_or(-1, |unit| (unit * 2).max(-1)),
        }
    }
}

/// No automatic collection while this lives. A collection runs finalizers, which are Python code.
struct CollectorPause<'a> {
    api: &'a Api,
    was_enabled: bool,
}

impl<'a> CollectorPause<'a> {
    /// # Safety
    /// The GIL is held until the value is dropped.
    unsafe fn begin(api: &'a Api) -> Option<Self> {
        if !gil::current_is_process_wide() {
            // From 3.12 on an allocation only asks for a collection, which then runs between bytecodes.
            return None;
        }
        // SAFETY: by contract; it sets a flag and returns its old value.
        let was_enabled = unsafe { (api.PyGC_Disable)() } != 0;
        Some(CollectorPause { api, was_enabled })
    }
}

impl Drop for CollectorPause<'_> {
    fn drop(&mut self) {
        if self.was_enabled {
            // SAFETY: the GIL is held by the contract of `begin`.
            unsafe { (self.api.PyGC_Enable)() };
        }
    }
}
