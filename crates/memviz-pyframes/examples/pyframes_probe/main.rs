//! The crate behind a small C ABI, for the Python scripts in `tests/python`: load it with `ctypes.PyDLL`.
//!
//! Every function but `probe_holds_gil` and `probe_capture` wants the GIL, which `PyDLL` keeps.
#![expect(unsafe_code, reason = "exports C functions and makes a builtin function object")]

mod builtin;
mod layouts;

use std::ffi::{CStr, CString, c_char};
use std::sync::{Mutex, MutexGuard, PoisonError};

use memviz_pyframes::{self as pyframes, CodeId, PythonBuild, Walker};

static MESSAGE: Mutex<Option<CString>> = Mutex::new(None);

fn message() -> MutexGuard<'static, Option<CString>> {
    MESSAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn say(text: &str) {
    *message() = CString::new(text).ok();
}

/// Text of the last result, valid until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn probe_message() -> *const c_char {
    message().as_ref().map_or(c"".as_ptr(), |text| text.as_ptr())
}

/// 0: raw frames, 1: public API, -1: error. `flags`: 1 free-threaded, 2 debug, 4 not CPython. `layout` names a table
/// of [`layouts`], or is empty for the right one.
///
/// # Safety
/// GIL held; `layout` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_init(hexversion: u32, flags: u32, layout: *const c_char) -> i32 {
    let build = PythonBuild {
        hexversion,
        is_free_threaded: flags & 1 != 0,
        is_debug: flags & 2 != 0,
        is_cpython: flags & 4 == 0,
    };
    // SAFETY: by contract.
    let result = unsafe { layouts::initialise(build, &CStr::from_ptr(layout).to_string_lossy()) };
    say(&result.as_ref().map_or_else(ToString::to_string, ToString::to_string));
    match result {
        Ok(Walker::RawFrames) => 0,
        Ok(Walker::PublicApi { .. }) => 1,
        Err(_) => -1,
    }
}

/// [`pyframes::capture`]
#[unsafe(no_mangle)]
pub extern "C" fn probe_capture() -> u32 {
    pyframes::capture()
}

/// The public walk.
#[unsafe(no_mangle)]
pub extern "C" fn probe_capture_public() -> u32 {
    pyframes::capture_by_public_walk()
}

/// [`pyframes::use_public_walk`]
#[unsafe(no_mangle)]
pub extern "C" fn probe_use_public_walk() {
    pyframes::use_public_walk("asked for by a test");
}

/// [`pyframes::shut_down`]
#[unsafe(no_mangle)]
pub extern "C" fn probe_shut_down() {
    pyframes::shut_down();
}

/// [`pyframes::holds_gil`]
#[unsafe(no_mangle)]
pub extern "C" fn probe_holds_gil() -> bool {
    pyframes::holds_gil()
}

/// Number of captures and GIL tests out of two that claim something on a new thread without the GIL.
#[unsafe(no_mangle)]
pub extern "C" fn probe_foreign_thread() -> u32 {
    let claims = || u32::from(pyframes::holds_gil()) + u32::from(pyframes::capture() != 0);
    std::thread::spawn(claims).join().unwrap_or(u32::MAX)
}

/// 1: the walks agree.
///
/// # Safety
/// GIL held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_matches() -> bool {
    // SAFETY: by contract.
    let result = unsafe { pyframes::matches_public_walk() };
    say(&result.as_ref().map_or_else(ToString::to_string, |()| "same".into()));
    result.is_ok()
}

/// Code addresses and offsets of a stack, innermost first, hidden frames left out. Returns the number of frames.
///
/// # Safety
/// Both arrays have room for `room` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_dump(id: u32, codes: *mut usize, lastis: *mut i32, room: usize) -> usize {
    // SAFETY: by contract.
    let (codes, lastis) =
        unsafe { (std::slice::from_raw_parts_mut(codes, room), std::slice::from_raw_parts_mut(lastis, room)) };
    let (mut at, mut frames) = (id, 0);
    while let Some(node) = pyframes::node(at).filter(|_| at != 0) {
        if node.code != CodeId::NONE {
            if let (Some(code), Some(lasti)) = (codes.get_mut(frames), lastis.get_mut(frames)) {
                (*code, *lasti) = (pyframes::code_address(node.code).unwrap_or(0), node.lasti);
            }
            frames += 1;
        }
        at = node.caller;
    }
    frames
}

/// The site of the innermost frame that is shown, as `file|function|line|column` in the message.
///
/// # Safety
/// GIL held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_site(id: u32) {
    let mut at = id;
    while let Some(node) = pyframes::node(at).filter(|node| at != 0 && node.code == CodeId::NONE) {
        at = node.caller;
    }
    if let Some(node) = pyframes::node(at) {
        // SAFETY: by contract.
        let site = unsafe { pyframes::resolve_site(node.code, node.lasti) };
        say(&format!("{}|{}|{}|{}", site.file, site.function, site.line, site.column));
    }
}

/// [`pyframes::node_count`]
#[unsafe(no_mangle)]
pub extern "C" fn probe_node_count() -> u32 {
    pyframes::node_count()
}

/// [`pyframes::memory_bytes`]
#[unsafe(no_mangle)]
pub extern "C" fn probe_memory_bytes() -> usize {
    pyframes::memory_bytes()
}

/// [`pyframes::SELF_TEST_SOURCE`]
#[unsafe(no_mangle)]
pub extern "C" fn probe_self_test_source() -> *const c_char {
    say(pyframes::SELF_TEST_SOURCE);
    probe_message()
}
