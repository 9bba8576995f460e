//! Files and reports: the command line's functions, for Python.

use std::path::PathBuf;
use std::sync::Arc;

use memviz_cli::Source;
use memviz_format::torch::Limits;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;
use crate::trace::Trace;

/// Reads a recording: one trace for each process in it, in order of rank.
#[pyfunction]
pub fn load(py: Python<'_>, path: PathBuf) -> PyResult<Vec<Trace>> {
    let traces = py.detach(|| memviz_format::read_path(&path, &Limits::default(), &mut |_, _| {}));
    Ok(traces.map_err(|error| errors::format(error, &path))?.into_iter().map(Trace::new).collect())
}

/// What `memviz COMMAND … --json` prints about these traces.
#[pyfunction]
pub fn ask(py: Python<'_>, command: &str, options: Vec<String>, traces: Vec<Bound<'_, Trace>>) -> PyResult<String> {
    let source =
        |trace: &Bound<'_, Trace>| Source { label: "recording".to_owned(), trace: Arc::clone(trace.get().inner()) };
    let sources: Vec<Source> = traces.iter().map(source).collect();
    py.detach(|| memviz_cli::ask(command, &options, &sources)).map_err(PyValueError::new_err)
}
