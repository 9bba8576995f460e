//! What the package runs before it records: tests of the frame walker and of MLX's layout, driven from Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;

/// Prepares the frame walker for the Python that runs; returns how stacks will be taken.
#[pyfunction]
#[pyo3(signature = (*, hexversion, is_free_threaded, is_debug, is_cpython))]
pub fn init_frames(
    _py: Python<'_>,
    hexversion: u32,
    is_free_threaded: bool,
    is_debug: bool,
    is_cpython: bool,
) -> PyResult<String> {
    let build = memviz_pyframes::PythonBuild { hexversion, is_free_threaded, is_debug, is_cpython };
    #[expect(unsafe_code, reason = "the contract of memviz-pyframes")]
    // SAFETY: `_py` proves that the GIL is held, and the package refuses to load in a sub-interpreter.
    let walker = unsafe { memviz_pyframes::initialise(build) };
    walker.map(|walker| walker.to_string()).map_err(|error| errors::AttachError::new_err(error.to_string()))
}

/// `None` if the fast walk of this very stack agrees with the public one, else what differs.
#[pyfunction]
pub fn matches_public_walk(_py: Python<'_>) -> Option<String> {
    #[expect(unsafe_code, reason = "the contract of memviz-pyframes")]
    // SAFETY: `_py` proves that the GIL is held.
    let result = unsafe { memviz_pyframes::matches_public_walk() };
    result.err().map(|mismatch| mismatch.to_string())
}

/// Takes stacks through the public API from now on.
#[pyfunction]
pub fn use_public_walk(reason: &str) {
    memviz_pyframes::use_public_walk(reason);
}

/// How stacks are taken; `None` before `init_frames`.
#[pyfunction]
pub fn walker() -> Option<String> {
    memviz_pyframes::walker().map(|walker| walker.to_string())
}

/// Takes the present stack and returns its id: for benchmarks.
#[pyfunction]
pub fn capture() -> u32 {
    memviz_pyframes::capture()
}

/// No stack is taken from now on: the interpreter is about to end.
#[pyfunction]
pub fn shut_down() {
    memviz_pyframes::shut_down();
}

/// Tells where threads are listed: `threading._active`, kept alive for ever.
#[pyfunction]
pub fn set_active_threads(active: Bound<'_, PyDict>) {
    #[expect(unsafe_code, reason = "the contract of memviz-agent")]
    // SAFETY: a dict, whose reference is given away and so never released.
    unsafe {
        memviz_agent::python::set_active_threads(active.into_ptr().cast());
    }
}

/// The self-test of MLX's layout: hooks are installed between `SelfTest(version)` and `finish()`.
#[pyclass(module = "mlx_memviz._native", unsendable)]
pub struct SelfTest {
    inner: Option<memviz_agent::self_test::SelfTest>,
}

#[pymethods]
impl SelfTest {
    #[new]
    fn new(version: &str) -> PyResult<SelfTest> {
        let probe = memviz_agent::session::probe(version).map_err(errors::attach)?;
        let inner = memviz_agent::self_test::SelfTest::begin(probe).map_err(errors::attach)?;
        Ok(SelfTest { inner: Some(inner) })
    }

    /// Checks the array that was just built.
    fn check_leaf(&mut self, shape: Vec<i32>, dtype_code: u32, item_size: u8) -> PyResult<()> {
        self.inner()?.check_leaf(&shape, dtype_code, item_size).map_err(errors::attach)
    }

    /// Checks that the array checked first was freed.
    fn check_freed(&mut self) -> PyResult<()> {
        self.inner()?.check_freed().map_err(errors::attach)
    }

    /// Restores everything and proves it.
    fn finish(&mut self) -> PyResult<()> {
        self.inner()?;
        self.inner.take().map_or(Ok(()), |test| test.finish().map_err(errors::attach))
    }

    /// Restores everything after a failure.
    fn abandon(&mut self) {
        self.inner = None;
    }
}

impl SelfTest {
    fn inner(&mut self) -> PyResult<&mut memviz_agent::self_test::SelfTest> {
        self.inner.as_mut().ok_or_else(|| errors::AttachError::new_err("the self-test is over"))
    }
}
