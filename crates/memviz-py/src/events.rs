//! Events as Python dicts, and back.

use std::collections::HashMap;

use memviz_trace::{
    Action, Buffer, Device, DeviceKind, Event, Frame, NO_STREAM, StackId, Trace, TraceBuilder, What, WhatId,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

/// Python objects for the parts that many events share.
struct Shared<'a, 'py> {
    py: Python<'py>,
    trace: &'a Trace,
    stacks: HashMap<StackId, Bound<'py, PyList>>,
    shapes: Vec<Option<Bound<'py, PyTuple>>>,
    strings: HashMap<u32, Bound<'py, PyString>>,
}

impl<'a, 'py> Shared<'a, 'py> {
    fn new(py: Python<'py>, trace: &'a Trace) -> PyResult<Shared<'a, 'py>> {
        let shape = |what: &What| what.shape.as_ref().map(|axes| PyTuple::new(py, axes.iter())).transpose();
        let shapes = trace.whats.iter().map(shape).collect::<PyResult<_>>()?;
        Ok(Shared { py, trace, stacks: HashMap::new(), shapes, strings: HashMap::new() })
    }

    fn string(&mut self, id: memviz_trace::StringId) -> Bound<'py, PyString> {
        let (py, trace) = (self.py, self.trace);
        self.strings.entry(id.0).or_insert_with(|| PyString::new(py, trace.strings.get(id))).clone()
    }

    /// Outermost frame first, as Python's tracebacks: (file, function, line).
    fn stack(&mut self, id: StackId) -> PyResult<Bound<'py, PyList>> {
        if let Some(stack) = self.stacks.get(&id) {
            return Ok(stack.clone());
        }
        let mut frames: Vec<Frame> =
            self.trace.stacks.innermost_first(id).map(|id| self.trace.stacks.frame(id)).collect();
        frames.reverse();
        let frames: Vec<_> = frames
            .into_iter()
            .map(|frame| (self.string(frame.file), self.string(frame.function), frame.line))
            .collect();
        let list = PyList::new(self.py, frames)?;
        self.stacks.insert(id, list.clone());
        Ok(list)
    }

    fn describe(&mut self, dict: &Bound<'py, PyDict>, event: &Event) -> PyResult<()> {
        let what = self.trace.what(event.what).clone();
        if event.action == Action::FilteredNet {
            // Changes of active and cached bytes, which may be below zero.
            let (active, cached) = (event.addr as i64, event.size as i64);
            dict.set_item("address", active)?;
            dict.set_item("size", cached)?;
            dict.set_item("requested", cached)?;
        } else if event.action == Action::ArrayInputs {
            dict.set_item("address", 0)?;
            dict.set_item("size", 0)?;
            dict.set_item("requested", 0)?;
            dict.set_item("inputs", event.inputs().collect::<Vec<u32>>())?;
        } else {
            dict.set_item("address", event.addr)?;
            dict.set_item("size", event.size)?;
            dict.set_item("requested", event.requested())?;
        }
        dict.set_item("stream", (event.stream != NO_STREAM).then_some(event.stream))?;
        dict.set_item("device", event.device.to_string())?;
        dict.set_item("memory", memory(event.flags))?;
        dict.set_item("moved", event.is_move())?;
        let thread =
            self.trace.threads.get(event.thread.index()).map_or(memviz_trace::StringId(0), |thread| thread.name);
        dict.set_item("thread", self.string(thread))?;
        dict.set_item("primitive", self.string(what.primitive))?;
        dict.set_item("is_temporary", what.is_temporary)?;
        dict.set_item("dtype", self.string(what.dtype))?;
        dict.set_item("shape", self.shapes.get(event.what.index()).cloned().flatten())?;
        dict.set_item("traceback", self.stack(event.built)?)?;
        dict.set_item("evaluated_at", self.stack(event.triggered)?)
    }
}

/// Kind of memory: "" for a device's own.
fn memory(flags: u16) -> &'static str {
    match flags {
        flags if flags & Event::SCALAR_POOL != 0 => "scalar pool",
        flags if flags & Event::UNIFIED != 0 => "unified",
        _ => "",
    }
}

fn flags_from(dict: &Bound<'_, PyDict>) -> PyResult<u16> {
    let kinds = [Event::UNIFIED, Event::UNIFIED | Event::SCALAR_POOL];
    let name = optional::<String>(dict, "memory")?.unwrap_or_default();
    let of_memory = kinds.into_iter().find(|&flags| memory(flags) == name).unwrap_or(0);
    let is_moved = optional(dict, "moved")?.unwrap_or(false);
    Ok(of_memory | if is_moved { Event::MOVED } else { 0 })
}

/// Every event of a trace.
pub fn list<'py>(py: Python<'py>, trace: &Trace) -> PyResult<Bound<'py, PyList>> {
    let mut shared = Shared::new(py, trace)?;
    let list = PyList::empty(py);
    let mut marks = trace.mark_cursor();
    for (position, event) in trace.events.iter().enumerate() {
        let index = trace.first_index + position as u64;
        let dict = PyDict::new(py);
        dict.set_item("action", event.action.name())?;
        dict.set_item("index", index)?;
        dict.set_item("time_us", trace.header.start_unix_micros + event.time_nanos / 1000)?;
        shared.describe(&dict, event)?;
        marks.advance_to(index);
        dict.set_item("step", marks.step())?;
        let annotation = marks.annotations(event.thread).last();
        dict.set_item("annotation", annotation.map(|&name| trace.strings.get(name)))?;
        if event.action.is_array() {
            dict.set_item("array", event.slack)?;
        }
        list.append(dict)?;
    }
    Ok(list)
}

/// Every buffer after the last event.
pub fn live<'py>(py: Python<'py>, trace: &Trace) -> PyResult<Bound<'py, PyList>> {
    let mut ledger =
        memviz_trace::Ledger::at_start(trace).map_err(|error| crate::errors::TraceError::new_err(error.to_string()))?;
    for event in &trace.events {
        ledger.apply(event).map_err(|error| crate::errors::TraceError::new_err(error.to_string()))?;
    }
    let mut shared = Shared::new(py, trace)?;
    let list = PyList::empty(py);
    for buffer in ledger.buffers() {
        let dict = PyDict::new(py);
        dict.set_item("state", if buffer.is_cached { "cached" } else { "active" })?;
        shared.describe(&dict, &buffer.to_alloc())?;
        list.append(dict)?;
    }
    Ok(list)
}

/// A trace of event dicts as `Trace.events()` gives them, in order; some may have been taken out.
#[pyfunction]
pub fn trace_from_events(events: Vec<Bound<'_, PyDict>>) -> PyResult<crate::trace::Trace> {
    let mut builder = TraceBuilder::default();
    let mut start_micros = None;
    let mut end: HashMap<u64, Buffer> = HashMap::new();
    let (mut active, mut cached) = (Net::default(), Net::default());
    for (position, dict) in events.iter().enumerate() {
        let wrong = |error: PyErr| PyValueError::new_err(format!("event {position}: {error}"));
        let event = event_from(dict, &mut builder, &mut start_micros).map_err(wrong)?;
        match event.action {
            action if action.is_alloc() => drop(end.insert(event.addr, Buffer::from_alloc(&event))),
            Action::FreeActiveToCache => {
                let buffer = end.entry(event.addr).or_insert_with(|| Buffer::from_alloc(&event));
                buffer.is_cached = true;
            }
            action if action.is_free() || action == Action::FreeCacheToOs => drop(end.remove(&event.addr)),
            Action::FilteredNet => {
                active.add(event.addr as i64);
                cached.add(event.size as i64);
            }
            _ => {}
        }
        builder.push(event);
    }
    let mut totals = memviz_trace::Totals { active: active.at_end(), cached: cached.at_end() };
    for buffer in end.values() {
        let sum = if buffer.is_cached { &mut totals.cached } else { &mut totals.active };
        *sum = sum.saturating_add(buffer.size);
    }
    builder.end = Some(end.into_values().collect());
    builder.end_totals = Some(totals);
    builder.trace.header.start_unix_micros = start_micros.unwrap_or(0);
    builder.trace.header.notes.push("made of a list of events".to_owned());
    Ok(crate::trace::Trace::new(builder.finish()))
}

/// Bytes of buffers that are not listed one by one: there must have been enough at the start never to fall below zero.
#[derive(Default)]
struct Net {
    sum: i64,
    lowest: i64,
}

impl Net {
    fn add(&mut self, change: i64) {
        self.sum = self.sum.saturating_add(change);
        self.lowest = self.lowest.min(self.sum);
    }

    fn at_end(&self) -> u64 {
        self.sum.abs_diff(self.lowest)
    }
}

fn required<'py, T: for<'a> FromPyObject<'a, 'py>>(dict: &Bound<'py, PyDict>, key: &str) -> PyResult<T> {
    let item = dict.get_item(key)?.ok_or_else(|| PyValueError::new_err(format!("has no {key:?}")))?;
    item.extract().map_err(|error: T::Error| PyValueError::new_err(format!("{key:?}: {}", error.into())))
}

fn optional<'py, T: for<'a> FromPyObject<'a, 'py>>(dict: &Bound<'py, PyDict>, key: &str) -> PyResult<Option<T>> {
    match dict.get_item(key)? {
        Some(item) if !item.is_none() => required(dict, key).map(Some),
        _ => Ok(None),
    }
}

fn event_from(dict: &Bound<'_, PyDict>, builder: &mut TraceBuilder, start_micros: &mut Option<u64>) -> PyResult<Event> {
    let name: String = required(dict, "action")?;
    let action = Action::ALL.into_iter().find(|action| action.name() == name);
    let action =
        action.ok_or_else(|| PyValueError::new_err(format!("\"action\" is {name:?}, which is none of ours")))?;
    let micros = optional::<u64>(dict, "time_us")?.unwrap_or(0);
    let start = *start_micros.get_or_insert(micros);
    if action == Action::FilteredNet {
        let time_nanos = micros.saturating_sub(start) * 1000;
        return Ok(Event::filtered_net(time_nanos, required(dict, "address")?, required(dict, "size")?));
    }
    if action == Action::ArrayInputs {
        let time_nanos = micros.saturating_sub(start) * 1000;
        let inputs = required::<Vec<u32>>(dict, "inputs")?;
        return Ok(Event { time_nanos, ..Event::array_inputs(required(dict, "array")?, &inputs) });
    }
    let (addr, size): (u64, u64) = (required(dict, "address")?, required(dict, "size")?);
    let requested = optional::<u64>(dict, "requested")?.unwrap_or(size);
    let device = match optional::<String>(dict, "device")? {
        Some(text) if text.starts_with("gpu") => {
            Device::new(DeviceKind::Gpu, text[3..].trim_start_matches(':').parse().unwrap_or(0))
        }
        _ => Device::default(),
    };
    Ok(Event {
        time_nanos: micros.saturating_sub(start) * 1000,
        addr,
        size,
        slack: match optional::<u32>(dict, "array")? {
            Some(array) if action.is_array() => array,
            _ => u32::try_from(size.saturating_sub(requested)).unwrap_or(u32::MAX),
        },
        what: what_from(dict, builder)?,
        built: stack_from(dict, "traceback", builder)?,
        triggered: stack_from(dict, "evaluated_at", builder)?,
        stream: optional(dict, "stream")?.unwrap_or(NO_STREAM),
        device,
        flags: flags_from(dict)?,
        action,
        ..Event::default()
    })
}

fn what_from(dict: &Bound<'_, PyDict>, builder: &mut TraceBuilder) -> PyResult<WhatId> {
    let what = What {
        primitive: builder.intern(&optional::<String>(dict, "primitive")?.unwrap_or_default()),
        dtype: builder.intern(&optional::<String>(dict, "dtype")?.unwrap_or_default()),
        shape: optional::<Vec<i32>>(dict, "shape")?.map(Into::into),
        is_temporary: optional(dict, "is_temporary")?.unwrap_or(false),
    };
    Ok(builder.intern_what(what))
}

fn stack_from(dict: &Bound<'_, PyDict>, key: &str, builder: &mut TraceBuilder) -> PyResult<StackId> {
    let frames = optional::<Vec<(String, String, u32)>>(dict, key)?.unwrap_or_default();
    let mut stack = StackId(0);
    for (file, function, line) in frames {
        let frame =
            Frame { file: builder.intern(&file), function: builder.intern(&function), line, ..Frame::default() };
        let frame = builder.trace.stacks.intern_frame(frame);
        stack = builder.trace.stacks.push(stack, frame);
    }
    Ok(stack)
}
