//! `hit()`: a real builtin function that captures. A call through ctypes costs several times what is measured.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::time::Instant;

use memviz_pyframes as pyframes;

#[repr(C)]
struct MethodDef {
    name: *const c_char,
    function: unsafe extern "C" fn(*mut c_void, *mut c_void) -> *mut c_void,
    flags: c_int,
    doc: *const c_char,
}

const METH_NOARGS: c_int = 4;

static MODE: AtomicUsize = AtomicUsize::new(0);
static LAST: AtomicU32 = AtomicU32::new(0);
static NONE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static INC_REF: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

fn run(mode: usize) -> u32 {
    match mode {
        1 => pyframes::capture(),
        2 => pyframes::capture_by_public_walk(),
        3 => u32::from(pyframes::holds_gil()),
        _ => 0,
    }
}

unsafe extern "C" fn hit(_module: *mut c_void, _none: *mut c_void) -> *mut c_void {
    LAST.store(run(MODE.load(Ordering::Relaxed)), Ordering::Relaxed);
    let none = NONE.load(Ordering::Relaxed);
    // SAFETY: `probe_make_hit` stored `Py_IncRef`, and Python calls with the GIL.
    unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(*mut c_void)>(INC_REF.load(Ordering::Relaxed))(none) };
    none
}

fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: a C string and a handle that needs none.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// A new function object, or NULL.
///
/// # Safety
/// GIL held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_make_hit() -> *mut c_void {
    NONE.store(symbol(c"_Py_NoneStruct"), Ordering::Relaxed);
    INC_REF.store(symbol(c"Py_IncRef"), Ordering::Relaxed);
    let new = symbol(c"PyCFunction_NewEx");
    let method = MethodDef { name: c"hit".as_ptr(), function: hit, flags: METH_NOARGS, doc: std::ptr::null() };
    let method = Box::leak(Box::new(method));
    type New = unsafe extern "C" fn(*mut MethodDef, *mut c_void, *mut c_void) -> *mut c_void;
    // SAFETY: the documented signature; the definition lives for ever, as a function object needs.
    unsafe { std::mem::transmute::<*mut c_void, New>(new)(method, std::ptr::null_mut(), std::ptr::null_mut()) }
}

/// What `hit` does: 0 nothing, 1 capture, 2 public walk, 3 GIL test.
#[unsafe(no_mangle)]
pub extern "C" fn probe_mode(mode: usize) {
    MODE.store(mode, Ordering::Relaxed);
}

/// What the last `hit` returned.
#[unsafe(no_mangle)]
pub extern "C" fn probe_last() -> u32 {
    LAST.load(Ordering::Relaxed)
}

/// Mean nanoseconds of `rounds` captures at one place.
#[unsafe(no_mangle)]
pub extern "C" fn probe_bench(mode: usize, rounds: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..rounds {
        std::hint::black_box(run(mode));
    }
    start.elapsed().as_nanos() as f64 / f64::from(rounds)
}
