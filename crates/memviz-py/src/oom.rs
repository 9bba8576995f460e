//! The function that Python wants called after an allocation failed.

use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use pyo3::prelude::*;

static CALLBACK: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

/// Sets the function to be called, without arguments, on the main thread after an allocation failed; `None` for none.
#[pyfunction]
#[pyo3(signature = (callback))]
pub fn set_oom_callback(callback: Option<Py<PyAny>>) {
    memviz_agent::oom::set_callback(callback.is_some().then_some(run as extern "C" fn(*mut c_void) -> c_int));
    if let Ok(mut slot) = CALLBACK.lock() {
        *slot = callback;
    }
}

/// Python runs this on the main thread with the GIL held. An exception of the callback is reported as unraisable, so that it
/// does not surface at a random line of the program.
extern "C" fn run(_: *mut c_void) -> c_int {
    Python::attach(|py| {
        let callback = CALLBACK.lock().ok().and_then(|slot| slot.as_ref().map(|callback| callback.clone_ref(py)));
        if let Some(callback) = callback
            && let Err(error) = callback.call0(py)
        {
            error.write_unraisable(py, Some(callback.bind(py)));
        }
    });
    0
}
