//! Start, stop, marks and counters.

use std::collections::HashMap;

use memviz_agent::options::Options;
use memviz_agent::recorder::{PeakNote, Recorder};
use memviz_agent::session;
use memviz_trace::{Action, CheckpointKind, Context, EndingKind, Header, Level};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

use crate::trace::Trace;
use crate::{errors, stream};

/// What the loaded MLX looks like, as a dict; raises `AttachError` if it cannot be recorded.
#[pyfunction]
pub fn probe<'py>(py: Python<'py>, version: &str) -> PyResult<Bound<'py, PyDict>> {
    let probe = session::probe(version).map_err(errors::attach)?;
    let dict = PyDict::new(py);
    dict.set_item("mlx", &probe.version)?;
    dict.set_item("layout", format!("{} and later", probe.layout.since))?;
    dict.set_item("library", &probe.library)?;
    dict.set_item("backend", probe.allocator.table.name)?;
    dict.set_item("has_cache", probe.allocator.cache.is_some())?;
    dict.set_item("primitive_classes", probe.primitive_classes)?;
    let slots = memviz_agent::probe::slots(probe).map_err(errors::attach)?;
    dict.set_item("slots", slots.len())?;
    Ok(dict)
}

/// Byte offsets in `ArrayDesc` that are used for a release, by field; raises `AttachError` for a release without a table.
#[pyfunction]
pub fn layout<'py>(py: Python<'py>, version: &str) -> PyResult<Bound<'py, PyDict>> {
    let unknown = || errors::attach(memviz_agent::error::AttachError::UnknownVersion { found: version.to_owned() });
    let desc = memviz_agent::mlx::layout(version).ok_or_else(unknown)?.desc;
    let dict = PyDict::new(py);
    dict.set_item("shape", desc.shape)?;
    dict.set_item("dtype", desc.dtype)?;
    dict.set_item("primitive", desc.primitive)?;
    dict.set_item("status", desc.status)?;
    dict.set_item("data", desc.data)?;
    dict.set_item("flags", desc.flags)?;
    dict.set_item("inputs", desc.inputs)?;
    dict.set_item("siblings", desc.siblings)?;
    dict.set_item("size", desc.size)?;
    dict.set_item("pad_after_status", desc.pad_after_status)?;
    dict.set_item("pad_after_tracer", desc.pad_after_tracer)?;
    Ok(dict)
}

fn choice<T: Copy>(option: &str, value: &str, choices: &[T], name: fn(T) -> &'static str) -> PyResult<T> {
    choices.iter().copied().find(|&choice| name(choice) == value).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|&choice| name(choice)).collect();
        PyValueError::new_err(format!("{option} is {value:?}, expected one of {names:?}"))
    })
}

/// Starts recording.
#[pyfunction]
#[pyo3(signature = (version, *, max_entries, min_size, context, level, depth, native, is_streamed))]
#[expect(clippy::too_many_arguments, reason = "Python's keyword arguments")]
pub fn start(
    version: &str,
    max_entries: u64,
    min_size: u64,
    context: &str,
    level: &str,
    depth: u32,
    native: bool,
    is_streamed: bool,
) -> PyResult<()> {
    let context = choice("context", context, &Context::ALL, Context::name)?;
    let level = choice("level", level, &Level::ALL, Level::name)?;
    let probe = session::probe(version).map_err(errors::attach)?;
    session::start(probe, Options { max_entries, is_streamed, min_size, context, level, depth, native })
        .map_err(errors::attach)
}

/// Is a recording running?
#[pyfunction]
pub fn is_recording() -> bool {
    session::is_recording()
}

/// Pointers of MLX that lead to our hooks, read back from memory: 0 unless a recording runs.
#[pyfunction]
pub fn hooked_slots(version: &str) -> PyResult<usize> {
    let probe = session::probe(version).map_err(errors::attach)?;
    session::hooked_slots(probe).map_err(errors::attach)
}

/// A recording that has stopped.
#[pyclass(module = "mlx_memviz._native", frozen)]
pub struct Stopped {
    recorder: Recorder,
}

#[pymethods]
impl Stopped {
    /// The trace, with `header` filled in by the package.
    fn trace(&self, py: Python<'_>, header: &Bound<'_, PyDict>) -> PyResult<Trace> {
        trace_of(py, memviz_agent::dump::Copied::new(&self.recorder), header, self.recorder.options())
    }

    /// Counters at its end.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        stats_dict(py, &self.recorder)
    }
}

/// Stops, and restores every pointer.
#[pyfunction]
pub fn stop() -> PyResult<Stopped> {
    Ok(Stopped { recorder: session::stop().map_err(errors::attach)? })
}

/// Writes the recording that runs, which was started with `is_streamed`, to a file from now on.
#[pyfunction]
pub fn stream_to(path: PathBuf, header: &Bound<'_, PyDict>) -> PyResult<()> {
    let options = session::with_recorder(|recorder| *recorder.options()).map_err(errors::attach)?;
    let (header, own_folder) = header_from(header, &options)?;
    stream::begin(&path, &header, &own_folder).map_err(|error| errors::format(error, &path))
}

/// Stops a streamed recording and ends its file: (recording, why the file refused bytes or None, events that are not in it).
/// `kind` names an `EndingKind`; `frames` are (file, function, line), outermost first.
#[pyfunction]
pub fn stop_stream(
    py: Python<'_>,
    kind: &str,
    detail: String,
    frames: Vec<(String, String, u32)>,
) -> PyResult<(Stopped, Option<String>, u64)> {
    let kind = choice("kind", kind, &EndingKind::ALL, EndingKind::name)?;
    let mut recorder = session::stop().map_err(errors::attach)?;
    let outcome = stream::finish(py, &mut recorder, stream::Last { kind, detail, frames }).unwrap_or_default();
    Ok((Stopped { recorder }, outcome.trouble, outcome.missing_events))
}

/// Waits until all that happened so far is in the file.
#[pyfunction]
pub fn flush_stream(py: Python<'_>) -> PyResult<()> {
    session::checkpoint(CheckpointKind::Stop).map_err(errors::attach)?;
    stream::flush(py);
    Ok(())
}

/// The trace of the recording that runs.
#[pyfunction]
pub fn trace(py: Python<'_>, header: &Bound<'_, PyDict>) -> PyResult<Trace> {
    session::checkpoint(CheckpointKind::Stop).map_err(errors::attach)?;
    let (copied, options) =
        session::with_recorder(|recorder| (memviz_agent::dump::Copied::new(recorder), *recorder.options()))
            .map_err(errors::attach)?;
    trace_of(py, copied, header, &options)
}

fn trace_of(
    _py: Python<'_>,
    copied: memviz_agent::dump::Copied,
    header: &Bound<'_, PyDict>,
    options: &Options,
) -> PyResult<Trace> {
    // Names that people know better: a notebook's cells.
    let file_names: HashMap<String, String> =
        header.get_item("file_names")?.map_or(Ok(HashMap::new()), |item| item.extract())?;
    let (header, own_folder) = header_from(header, options)?;
    #[expect(unsafe_code, reason = "the contract of memviz-agent")]
    // SAFETY: `_py` proves that the GIL is held.
    let mut trace = unsafe { copied.into_trace(header, &own_folder) };
    trace.rename_files(file_names.iter().map(|(from, to)| (from.as_str(), to.as_str())));
    Ok(Trace::new(trace))
}

/// The header as the package fills it in, and the package's folder.
fn header_from(header: &Bound<'_, PyDict>, options: &Options) -> PyResult<(Header, String)> {
    let text =
        |key: &str| -> PyResult<String> { header.get_item(key)?.map_or(Ok(String::new()), |item| item.extract()) };
    let own_folder = text("own_folder")?;
    let mut notes: Vec<String> = header.get_item("notes")?.map_or(Ok(Vec::new()), |item| item.extract())?;
    notes.extend(session::notes());
    let header = Header {
        mlx_version: text("mlx")?,
        backend: text("backend")?,
        python_version: text("python")?,
        memviz_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: header.get_item("command")?.map_or(Ok(Vec::new()), |item| item.extract())?,
        pid: std::process::id(),
        start_unix_micros: header.get_item("start_unix_micros")?.map_or(Ok(0), |item| item.extract())?,
        walker: text("walker")?,
        level: options.level.name().to_owned(),
        max_entries: options.max_entries,
        min_size: options.min_size,
        depth: options.depth,
        notes,
        rank: header.get_item("rank")?.map_or(Ok(None), |item| item.extract())?,
        ..Header::default()
    };
    Ok((header, own_folder))
}

/// Compares with MLX's counters: (active, cached, mlx_active, mlx_cached) in bytes.
#[pyfunction]
pub fn checkpoint() -> PyResult<(u64, u64, u64, u64)> {
    let point = session::checkpoint(CheckpointKind::User).map_err(errors::attach)?;
    Ok((point.active, point.cached, point.mlx_active, point.mlx_cached))
}

/// Ends a step; returns how many there were.
#[pyfunction]
pub fn step() -> PyResult<u64> {
    session::step().map_err(errors::attach)
}

/// Opens an annotation on this thread.
#[pyfunction]
pub fn annotate_begin(name: &str) -> PyResult<()> {
    session::annotate_begin(name).map_err(errors::attach)
}

/// Closes the innermost annotation of this thread.
#[pyfunction]
pub fn annotate_end() -> PyResult<()> {
    session::annotate_end().map_err(errors::attach)
}

/// Writes a `Snapshot` marker.
#[pyfunction]
pub fn snapshot_marker() -> PyResult<()> {
    session::snapshot_marker().map_err(errors::attach)
}

/// Allocations that failed since the last call: (device, requested, active, cached), sizes in bytes.
#[pyfunction]
pub fn take_failures() -> PyResult<Vec<(String, u64, u64, u64)>> {
    let failures = session::with_recorder(Recorder::take_failures).map_err(errors::attach)?;
    Ok(failures
        .into_iter()
        .map(|failure| (failure.device.to_string(), failure.requested, failure.totals.active, failure.totals.cached))
        .collect())
}

/// Counters of the recording that runs.
#[pyfunction]
pub fn stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    session::with_recorder(|recorder| stats_dict(py, recorder)).map_err(errors::attach)?
}

fn peak_dict<'py>(py: Python<'py>, peak: PeakNote) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("bytes", peak.bytes)?;
    dict.set_item("seconds", peak.time_nanos as f64 / 1e9)?;
    dict.set_item("after_events", peak.index)?;
    Ok(dict)
}

fn stats_dict<'py>(py: Python<'py>, recorder: &Recorder) -> PyResult<Bound<'py, PyDict>> {
    let (totals, counts, by_action) = (recorder.totals(), recorder.counts(), recorder.by_action());
    let (active, reserved) = recorder.peaks();
    let dict = PyDict::new(py);
    dict.set_item("active", totals.active)?;
    dict.set_item("cached", totals.cached)?;
    dict.set_item("reserved", totals.reserved())?;
    dict.set_item("peak_active", peak_dict(py, active)?)?;
    dict.set_item("peak_reserved", peak_dict(py, reserved)?)?;
    dict.set_item("hit_rate", recorder.hits().rate())?;
    let actions = PyDict::new(py);
    for (action, tally) in Action::ALL.iter().zip(by_action) {
        actions.set_item(action.name(), (tally.events, tally.bytes))?;
    }
    dict.set_item("by_action", actions)?;
    let recorded = counts.seen.events - counts.dropped.events - counts.filtered.events;
    dict.set_item("seen", counts.seen.events)?;
    dict.set_item("recorded", recorded)?;
    dict.set_item("dropped", counts.dropped.events)?;
    dict.set_item("filtered", counts.filtered.events)?;
    dict.set_item("lost", counts.lost)?;
    dict.set_item("recorder_bytes", recorder.memory_bytes() + memviz_pyframes::memory_bytes())?;
    Ok(dict)
}
