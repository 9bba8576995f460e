//! Tells Python that an allocation failed.
//!
//! The failure happens inside the allocator, with or without the GIL, so nothing of Python's may run there. A pending call
//! is queued instead, which the main thread runs as soon as it executes bytecode again.
#![expect(unsafe_code, reason = "queues a pending call with Python")]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::linux;

type Callback = extern "C" fn(*mut c_void) -> c_int;

static CALLBACK: AtomicUsize = AtomicUsize::new(0);

/// Sets the function that the main thread runs, with the GIL held, after an allocation failed; `None` for none.
pub fn set_callback(callback: Option<Callback>) {
    CALLBACK.store(callback.map_or(0, |callback| callback as usize), Ordering::Release);
}

/// Queues the callback. Needs no GIL.
pub fn notify() {
    let callback = CALLBACK.load(Ordering::Acquire);
    let Some(add) = (callback != 0).then(|| linux::symbol(c"Py_AddPendingCall")).flatten() else { return };
    // SAFETY: `Py_AddPendingCall` has this type in the stable ABI and may be called by any thread, with or without the
    // GIL. A full queue is reported and loses this one notice: the `Oom` event is in the trace all the same.
    unsafe {
        let add: extern "C" fn(Callback, *mut c_void) -> c_int = std::mem::transmute(add);
        add(std::mem::transmute::<usize, Callback>(callback), std::ptr::null_mut());
    }
}
