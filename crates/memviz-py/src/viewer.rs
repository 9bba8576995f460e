//! The viewer for Python: a server in the background, or a page in a file.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use memviz_view::{Api, Input, PageOptions, Running, Server, write_page};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::errors::MemvizError;
use crate::trace::Trace;

/// A viewer that serves traces to this machine's browser until it is closed.
#[pyclass(module = "mlx_memviz._native", frozen)]
pub struct Viewer {
    running: Mutex<Running>,
    url: String,
    url_once: String,
}

#[pymethods]
impl Viewer {
    /// Where it answers; the token in it lets a browser in.
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    /// An address that works once, for a command line that other users can read.
    #[getter]
    fn url_once(&self) -> &str {
        &self.url_once
    }

    /// Ends it. A second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.running.lock().unwrap_or_else(PoisonError::into_inner).stop())?)
    }
}

/// Serves traces on 127.0.0.1, at `port` or any that is free.
#[pyfunction]
#[pyo3(signature = (names, traces, port = None))]
pub fn serve(py: Python<'_>, names: Vec<String>, traces: Vec<Bound<'_, Trace>>, port: Option<u16>) -> PyResult<Viewer> {
    let api = api(names, &traces);
    let server = py.detach(|| Server::bind(api, port)).map_err(|error| {
        let port = port.map_or_else(|| "any port".to_owned(), |port| format!("port {port}"));
        PyOSError::new_err(format!("cannot listen on {port} of 127.0.0.1: {error}"))
    })?;
    let (url, url_once) = (server.url(), server.url_once());
    Ok(Viewer { running: Mutex::new(server.spawn()?), url, url_once })
}

/// Writes the self-contained page of traces; returns what was left out, one sentence each.
#[pyfunction]
pub fn write_html(
    py: Python<'_>,
    names: Vec<String>,
    traces: Vec<Bound<'_, Trace>>,
    path: PathBuf,
) -> PyResult<Vec<String>> {
    let api = api(names, &traces);
    let written = py.detach(|| write_page(&api, &path, PageOptions::default(), &mut |_, _| {}));
    written.map(|page| page.left_out).map_err(|error| match error {
        memviz_view::PageError::Write(error) => crate::errors::format(error, &path),
        other => MemvizError::new_err(other.to_string()),
    })
}

fn api(names: Vec<String>, traces: &[Bound<'_, Trace>]) -> Arc<Api> {
    let input = |(name, trace): (String, &Bound<'_, Trace>)| Input::Trace(name, Arc::clone(trace.get().inner()));
    memviz_cli::view_api(names.into_iter().zip(traces).map(input).collect())
}
