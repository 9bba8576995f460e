//! `Trace` as Python sees it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::{errors, events};

/// A recorded run: immutable.
#[pyclass(module = "mlx_memviz._native", frozen)]
pub struct Trace {
    inner: Arc<memviz_trace::Trace>,
}

impl Trace {
    /// Wraps a trace.
    pub fn new(trace: memviz_trace::Trace) -> Trace {
        Trace { inner: Arc::new(trace) }
    }

    /// The trace.
    pub fn inner(&self) -> &Arc<memviz_trace::Trace> {
        &self.inner
    }
}

#[pymethods]
impl Trace {
    fn __len__(&self) -> usize {
        self.inner.events.len()
    }

    /// Proves the trace's equations; a dict of what was found, or `TraceError`.
    fn check<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let trace = Arc::clone(&self.inner);
        let report = py.detach(move || trace.check()).map_err(errors::violation)?;
        let dict = PyDict::new(py);
        dict.set_item("events", report.events)?;
        dict.set_item("checkpoints", report.checkpoints)?;
        dict.set_item("peak_active", report.peak_active.bytes)?;
        dict.set_item("peak_reserved", report.peak_reserved.bytes)?;
        dict.set_item("active", report.end.active)?;
        dict.set_item("cached", report.end.cached)?;
        Ok(dict)
    }

    /// Every event as a dict.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        events::list(py, &self.inner)
    }

    /// Buffers that exist after the last event, as dicts.
    fn live<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        events::live(py, &self.inner)
    }

    /// Number of events that fell out of the ring.
    #[getter]
    fn dropped(&self) -> u64 {
        self.inner.counts.dropped.events
    }

    /// How the recording ended: (kind, detail, (file, function, line) of the innermost frame or None).
    #[getter]
    fn ending(&self) -> (&'static str, String, Option<(String, String, u32)>) {
        let (ending, strings) = (&self.inner.header.ending, &self.inner.strings);
        let frame = self.inner.stacks.innermost(ending.stack).map(|id| self.inner.stacks.frame(id));
        let place = |frame: memviz_trace::Frame| {
            (strings.get(frame.file).to_owned(), strings.get(frame.function).to_owned(), frame.line)
        };
        (ending.kind.name(), ending.detail.clone(), frame.map(place))
    }

    /// Position among the processes of a distributed run.
    #[getter]
    fn rank(&self) -> Option<u32> {
        self.inner.header.rank
    }

    /// What used the memory at the peak, for a terminal of `width` columns; `written` lists the files written.
    #[pyo3(signature = (*, width, color, written = Vec::new()))]
    fn summary_text(&self, py: Python<'_>, width: usize, color: bool, written: Vec<PathBuf>) -> String {
        py.detach(|| memviz_cli::summary_text(&self.summary(written), width, color))
    }

    /// The same as JSON.
    #[pyo3(signature = (*, written = Vec::new()))]
    fn summary_json(&self, py: Python<'_>, written: Vec<PathBuf>) -> String {
        py.detach(|| memviz_cli::summary_json(&self.summary(written)))
    }

    /// Writes a trace file when the name ends in `.memviz`, else a torch snapshot.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = py.detach(|| memviz_format::write_path(&self.inner, &path));
        written.map_err(|error| errors::format(error, &path))
    }

    /// Writes a torch snapshot.
    fn write_torch(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = py.detach(|| {
            memviz_format::write_whole(&path, |out| memviz_format::torch::write(&self.inner, out).map(drop))
        });
        written.map_err(|error| errors::format(error, &path))
    }
}

impl Trace {
    fn summary(&self, written: Vec<PathBuf>) -> memviz_cli::Summary {
        let mut summary = memviz_cli::Summary::new(&self.inner);
        summary.written = written.into_iter().map(|path| written_file(&path)).collect();
        summary
    }
}

fn written_file(path: &Path) -> memviz_cli::Written {
    memviz_cli::Written {
        path: path.display().to_string(),
        size_bytes: std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
    }
}
