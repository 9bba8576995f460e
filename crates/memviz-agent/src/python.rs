//! Python as hooks may use it: the name of the present thread, without running any Python code.
//!
//! Needs the GIL only where it says so; finds Python's functions by name, because the wheel serves every version.
#![expect(unsafe_code, reason = "calls into the Python C API through pointers found by name")]

use std::ffi::{CStr, c_char, c_ulong, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::linux;
use crate::originals::function;

type Object = *mut c_void;

/// Functions of the stable ABI that are used, all present since 3.10.
struct Api {
    error_fetch: unsafe extern "C" fn(*mut Object, *mut Object, *mut Object),
    error_restore: unsafe extern "C" fn(Object, Object, Object),
    thread_ident: unsafe extern "C" fn() -> c_ulong,
    long_from_unsigned: unsafe extern "C" fn(c_ulong) -> Object,
    dict_get: unsafe extern "C" fn(Object, Object) -> Object,
    text_from: unsafe extern "C" fn(*const c_char) -> Object,
    generic_get: unsafe extern "C" fn(Object, Object) -> Object,
    text_as_utf8: unsafe extern "C" fn(Object, *mut isize) -> *const c_char,
    decref: unsafe extern "C" fn(Object),
}

macro_rules! function {
    ($name:literal) => {
        // SAFETY: the type of the field is the function's type in the stable ABI.
        unsafe { function(linux::symbol($name)? as u64) }
    };
}

fn api() -> Option<&'static Api> {
    static API: OnceLock<Option<Api>> = OnceLock::new();
    API.get_or_init(|| {
        Some(Api {
            error_fetch: function!(c"PyErr_Fetch"),
            error_restore: function!(c"PyErr_Restore"),
            thread_ident: function!(c"PyThread_get_thread_ident"),
            long_from_unsigned: function!(c"PyLong_FromUnsignedLong"),
            dict_get: function!(c"PyDict_GetItem"),
            text_from: function!(c"PyUnicode_FromString"),
            generic_get: function!(c"PyObject_GenericGetAttr"),
            text_as_utf8: function!(c"PyUnicode_AsUTF8AndSize"),
            decref: function!(c"Py_DecRef"),
        })
    })
    .as_ref()
}

/// `threading._active`: thread ident to `Thread`.
static ACTIVE_THREADS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Tells where Python lists its threads.
///
/// # Safety
/// `active` is the dict `threading._active`, which the caller keeps alive for the rest of the process.
pub unsafe fn set_active_threads(active: *mut c_void) {
    ACTIVE_THREADS.store(active, Ordering::Release);
}

/// `threading.Thread.name` of this thread; `None` when it does not hold the GIL or Python does not know it.
///
/// Looks up a plain dict by an int and a plain instance attribute through the generic lookup, so no Python code runs; an
/// exception that is set stays set.
pub fn thread_name() -> Option<String> {
    let active = ACTIVE_THREADS.load(Ordering::Acquire);
    if active.is_null() || !memviz_pyframes::holds_gil() {
        return None;
    }
    let api = api()?;
    let mut error = [std::ptr::null_mut(); 3];
    let [kind, value, traceback] = &mut error;
    // SAFETY: the GIL is held, and the three places are valid.
    unsafe { (api.error_fetch)(kind, value, traceback) };
    // SAFETY: the GIL is held and `active` is a dict by the contract of `set_active_threads`.
    let name = unsafe { name_in(api, active) };
    let [kind, value, traceback] = error;
    // SAFETY: gives back what was fetched; clears what the lookups may have set.
    unsafe { (api.error_restore)(kind, value, traceback) };
    name
}

/// # Safety
/// The GIL is held, `active` is a dict, no exception is set.
unsafe fn name_in(api: &Api, active: Object) -> Option<String> {
    // SAFETY: as the contract says; every object made here is released here, and null is checked before use.
    unsafe {
        let key = (api.long_from_unsigned)((api.thread_ident)());
        let attribute = (api.text_from)(c"_name".as_ptr());
        let thread = if key.is_null() { key } else { (api.dict_get)(active, key) };
        let name = if thread.is_null() || attribute.is_null() {
            std::ptr::null_mut()
        } else {
            (api.generic_get)(thread, attribute)
        };
        let mut len = 0;
        let text = if name.is_null() { std::ptr::null() } else { (api.text_as_utf8)(name, &mut len) };
        let text = (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned());
        for object in [key, attribute, name] {
            if !object.is_null() {
                (api.decref)(object);
            }
        }
        text
    }
}
