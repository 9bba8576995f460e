//! The graph that waits, for Python: plain lists that `mlx_memviz._graph` dresses.

use std::collections::HashMap;

use memviz_agent::graph::{self, Graph, LeafKind, Shape, Source};
use memviz_agent::{dump, mlx, session};
use memviz_analyze::UserLines;
use memviz_trace::{Frame, StackId, Trace};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;

/// A frame as (file, function, line).
type Place<'a> = (&'a str, &'a str, u32);

/// What MLX would run to make `arrays`, as a dict:
///
/// nodes   [(primitive, [(shape, dtype, bytes), …], [(source, index, output), …], bytes, stack), …], inputs first;
///         source "node" or "leaf"
/// leaves  [(is in memory, (shape, dtype, bytes), stack), …]
/// roots   [(source, index, output), …]
/// stacks  [(user's line or None, [(file, function, line), …] outermost first), …]; `stack` above is an index, or None
///
/// Evaluates nothing.
#[pyfunction]
pub fn read_graph<'py>(
    py: Python<'py>,
    version: &str,
    own_folder: &str,
    arrays: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let layout = &session::probe(version).map_err(errors::attach)?.layout;
    let head: u64 = py.get_type::<PyAny>().getattr("__basicsize__")?.extract()?;
    let descs = arrays.iter().enumerate().map(|(at, array)| desc_of(layout, array, head, at));
    let descs = descs.collect::<PyResult<Vec<u64>>>()?;
    #[expect(unsafe_code, reason = "the contract of memviz-agent")]
    // SAFETY: `arrays` keeps the arrays alive and the GIL is held; that nobody evaluates them meanwhile is documented.
    let read = unsafe { graph::read(layout, &descs) };
    let graph = read.map_err(|error| errors::MemvizError::new_err(format!("mlx {version}: {error}")))?;
    to_dict(py, &graph, own_folder)
}

/// The descriptor of an array, proven by what Python says of it.
fn desc_of(layout: &mlx::Layout, array: &Bound<'_, PyAny>, head: u64, at: usize) -> PyResult<u64> {
    let wrong = |what: String| PyTypeError::new_err(format!("array {at}: {what}"));
    let desc = graph::desc_of_object(layout, array.as_ptr() as u64, head)
        .ok_or_else(|| wrong(format!("a {} does not look like an mx.array inside", array.get_type())))?;
    let found = graph::shape_of(layout, desc).map_err(|error| wrong(error.to_string()))?;
    let axes: Vec<i32> = array.getattr("shape")?.extract()?;
    let dtype = array.getattr("dtype")?.str()?.to_string();
    if found.axes != axes || dtype.rsplit('.').next() != Some(found.dtype) {
        return Err(wrong(format!("found {:?} {}, but Python says {axes:?} {dtype}", found.axes, found.dtype)));
    }
    Ok(desc)
}

fn to_dict<'py>(py: Python<'py>, graph: &Graph, own_folder: &str) -> PyResult<Bound<'py, PyDict>> {
    let mut stacks = Stacks::default();
    let nodes: Vec<_> = graph
        .nodes
        .iter()
        .map(|node| {
            let outputs: Vec<_> = node.outputs.iter().map(shape).collect();
            let inputs: Vec<_> = node.inputs.iter().map(source).collect();
            (node.primitive.as_str(), outputs, inputs, node.bytes, stacks.index(node.built))
        })
        .collect();
    let leaves: Vec<_> = graph
        .leaves
        .iter()
        .map(|leaf| (leaf.kind == LeafKind::InMemory, shape(&leaf.shape), stacks.index(leaf.built)))
        .collect();
    let dict = PyDict::new(py);
    dict.set_item("nodes", nodes)?;
    dict.set_item("leaves", leaves)?;
    dict.set_item("roots", graph.roots.iter().map(source).collect::<Vec<_>>())?;
    #[expect(unsafe_code, reason = "the contract of memviz-agent")]
    // SAFETY: `py` proves that the GIL is held.
    let (trace, ids) = unsafe { dump::resolve(&stacks.ids, own_folder) };
    let lines = UserLines::new(&trace);
    let texts = ids.into_iter().map(|id| {
        let line = lines.line_of(id).map(|frame| place(&trace, trace.stacks.frame(frame)));
        (line, frames(&trace, id))
    });
    dict.set_item("stacks", texts.collect::<Vec<_>>())?;
    Ok(dict)
}

/// Stacks that occur, each once.
#[derive(Default)]
struct Stacks {
    ids: Vec<StackId>,
    known: HashMap<StackId, usize>,
}

impl Stacks {
    fn index(&mut self, built: Option<StackId>) -> Option<usize> {
        let id = built?;
        Some(*self.known.entry(id).or_insert_with(|| {
            self.ids.push(id);
            self.ids.len() - 1
        }))
    }
}

fn shape(shape: &Shape) -> (&[i32], &'static str, u64) {
    (&shape.axes, shape.dtype, shape.bytes)
}

fn source(source: &Source) -> (&'static str, u32, u32) {
    match *source {
        Source::Node(at, output) => ("node", at, output),
        Source::Leaf(at) => ("leaf", at, 0),
    }
}

fn place(trace: &Trace, frame: Frame) -> Place<'_> {
    (trace.strings.get(frame.file), trace.strings.get(frame.function), frame.line)
}

fn frames(trace: &Trace, stack: StackId) -> Vec<Place<'_>> {
    let frames = trace.stacks.innermost_first(stack).map(|id| place(trace, trace.stacks.frame(id)));
    let mut frames: Vec<Place<'_>> = frames.collect();
    frames.reverse();
    frames
}
