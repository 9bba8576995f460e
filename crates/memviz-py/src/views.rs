//! What notebooks and pytest show of a trace: lines at a moment, memory over time, sizes as text.

use memviz_analyze::{find_peaks, live_at, timeline, top_lines};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::trace::Trace;

/// Active memory by line, largest first, at the active "peak", the "reserved" peak or the "end" of a trace: dicts with
/// `kind` ("" for a line of Python, else what the row is), `file`, `function`, `line`, `bytes`, `count`, `primitives`.
#[pyfunction]
pub fn lines_at<'py>(py: Python<'py>, trace: &Trace, moment: &str) -> PyResult<Bound<'py, PyList>> {
    let trace = trace.inner();
    let rows = py.detach(|| {
        let peaks = find_peaks(trace);
        let moment = match moment {
            "peak" => Some(peaks.active),
            "reserved" => Some(peaks.reserved),
            "end" => Some(peaks.end),
            _ => None,
        };
        moment.map(|moment| top_lines(trace, &live_at(trace, moment.after_events)))
    });
    let expected = || PyValueError::new_err(format!("moment is {moment:?}, expected peak, reserved or end"));
    let list = PyList::empty(py);
    for row in rows.ok_or_else(expected)? {
        let dict = PyDict::new(py);
        dict.set_item("kind", row.kind.label())?;
        dict.set_item("file", row.file)?;
        dict.set_item("function", row.function)?;
        dict.set_item("line", row.line)?;
        dict.set_item("bytes", row.bytes)?;
        dict.set_item("count", row.count)?;
        dict.set_item("primitives", row.primitives.into_iter().map(|p| p.primitive).collect::<Vec<_>>())?;
        list.append(dict)?;
    }
    Ok(list)
}

/// Nanoseconds that the columns span, and (most active bytes, most reserved bytes) of each.
#[pyfunction]
pub fn timeline_of(py: Python<'_>, trace: &Trace, columns: usize) -> (u64, Vec<(u64, u64)>) {
    let trace = trace.inner();
    let found = py.detach(|| timeline(trace, columns));
    (found.duration_nanos, found.columns.iter().map(|column| (column.active_bytes, column.reserved_bytes)).collect())
}

/// Bytes of "4096", "4KiB", "1.5 GB"; raises `ValueError`.
#[pyfunction]
pub fn bytes_from_text(text: &str) -> PyResult<u64> {
    memviz_cli::bytes_from_text(text).map_err(|error| PyValueError::new_err(format!("{text:?}: {error}")))
}

/// "412.3 MiB".
#[pyfunction]
pub fn text_from_bytes(bytes: u64) -> String {
    memviz_cli::text_from_bytes(bytes)
}
