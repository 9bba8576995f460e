//! The tables that are not about events alone: strings, frames, stacks, primitives, threads, marks, checkpoints, buffers.
//!
//! Written from ranges of a trace's tables, read back into a trace under construction. Every id is checked against its
//! table; entries must be new, as the writer's are. Layout: `formats/memviz.md`.

use std::cmp::Ordering;
use std::ops::Range;

use memviz_trace::{
    Buffer, Checkpoint, CheckpointKind, Device, DeviceMemory, Frame, FrameId, Mark, MarkKind, StackId, StackTable,
    StringId, Strings, Thread, ThreadId, Trace, What, WhatId,
};

use super::columns::{Builder, Table};
use super::part::Amendment;

type Wrong = &'static str;

pub(super) fn strings(strings: &Strings, range: Range<usize>) -> Builder {
    let mut table = Builder::default();
    table.text("text", range.map(|id| strings.get(StringId(id as u32))));
    table
}

pub(super) fn read_strings(table: &Table<'_>, trace: &mut Trace) -> Result<(), Wrong> {
    for text in table.texts("text")? {
        let next = trace.strings.len();
        in_order(trace.strings.intern(text).index(), next)?;
    }
    Ok(())
}

pub(super) fn frames(stacks: &StackTable, range: Range<usize>) -> Builder {
    let frames = range.map(|id| stacks.frame(FrameId(id as u32)));
    let mut table = Builder::default();
    table.unsigned("file", frames.clone().map(|frame| frame.file.0.into()));
    table.unsigned("function", frames.clone().map(|frame| frame.function.0.into()));
    table.unsigned("line", frames.clone().map(|frame| frame.line.into()));
    table.unsigned("column", frames.clone().map(|frame| frame.column.into()));
    table.unsigned("native", frames.map(|frame| frame.is_native.into()));
    table
}

pub(super) fn read_frames(table: &Table<'_>, trace: &mut Trace) -> Result<(), Wrong> {
    let (file, function) = (table.numbers::<u32>("file")?, table.numbers::<u32>("function")?);
    let (line, column) = (table.numbers::<u32>("line")?, table.numbers::<u32>("column")?);
    let native = table.numbers::<u8>("native")?;
    for at in 0..table.rows() {
        let frame = Frame {
            file: string(file[at], trace)?,
            function: string(function[at], trace)?,
            line: line[at],
            column: column[at],
            is_native: native[at] != 0,
        };
        let next = trace.stacks.frame_count();
        in_order(trace.stacks.intern_frame(frame).index(), next)?;
    }
    Ok(())
}

/// Stack 0, the empty one, is in every table and not written.
pub(super) fn stacks(stacks: &StackTable, range: Range<usize>) -> Builder {
    let nodes = range.map(|id| StackId(id as u32));
    let mut table = Builder::default();
    table.unsigned("caller", nodes.clone().map(|id| stacks.caller(id).0.into()));
    table.unsigned("frame", nodes.map(|id| stacks.innermost(id).map_or(0, |frame| frame.0.into())));
    table
}

pub(super) fn read_stacks(table: &Table<'_>, trace: &mut Trace) -> Result<(), Wrong> {
    let (caller, frame) = (table.numbers::<u32>("caller")?, table.numbers::<u32>("frame")?);
    for at in 0..table.rows() {
        let next = trace.stacks.stack_count();
        let is_inside = (caller[at] as usize) < next && (frame[at] as usize) < trace.stacks.frame_count();
        if !is_inside {
            return Err("a stack with an id beyond its table");
        }
        in_order(trace.stacks.push(StackId(caller[at]), FrameId(frame[at])).index(), next)?;
    }
    Ok(())
}

/// `whats`, and `axes`: the elements along each axis, one after the other.
pub(super) fn whats(whats: &[What]) -> (Builder, Option<Builder>) {
    let whats = whats.iter();
    let axes =
        whats.clone().flat_map(|what| what.shape.iter().flat_map(|shape| shape.iter().map(|axis| (*axis).into())));
    let mut table = Builder::default();
    table.unsigned("primitive", whats.clone().map(|what| what.primitive.0.into()));
    table.unsigned("dtype", whats.clone().map(|what| what.dtype.0.into()));
    table.signed("axes", whats.clone().map(|what| what.shape.as_ref().map_or(-1, |shape| shape.len() as i64)));
    table.unsigned("temporary", whats.map(|what| what.is_temporary.into()));
    let has_axes = axes.clone().next().is_some();
    let axes = has_axes.then(|| {
        let mut table = Builder::default();
        table.signed("elements", axes);
        table
    });
    (table, axes)
}

pub(super) fn read_whats(table: &Table<'_>, axes: &[i32], trace: &mut Trace) -> Result<(), Wrong> {
    let (primitive, dtype) = (table.numbers::<u32>("primitive")?, table.numbers::<u32>("dtype")?);
    let (lengths, temporary) = (table.numbers::<i64>("axes")?, table.numbers::<u8>("temporary")?);
    let mut rest = axes;
    for at in 0..table.rows() {
        let shape = match usize::try_from(lengths[at]) {
            Ok(length) => {
                let (shape, after) = rest.split_at_checked(length).ok_or("shapes with fewer axes than they say")?;
                rest = after;
                Some(shape.into())
            }
            Err(_) => None,
        };
        let (primitive, dtype) = (string(primitive[at], trace)?, string(dtype[at], trace)?);
        trace.whats.push(What { primitive, dtype, shape, is_temporary: temporary[at] != 0 });
    }
    Ok(())
}

/// Threads that are new or got a name, with their ids.
pub(super) fn threads(threads: &[(usize, Thread)]) -> Builder {
    let threads = threads.iter();
    let mut table = Builder::default();
    table.unsigned("thread", threads.clone().map(|(id, _)| *id as u64));
    table.unsigned("native_id", threads.clone().map(|(_, thread)| thread.native_id));
    table.unsigned("name", threads.map(|(_, thread)| thread.name.0.into()));
    table
}

pub(super) fn read_threads(table: &Table<'_>, trace: &mut Trace) -> Result<(), Wrong> {
    let (ids, names) = (table.numbers::<u16>("thread")?, table.numbers::<u32>("name")?);
    let native_ids = table.u64s("native_id")?;
    for at in 0..table.rows() {
        let thread = Thread { native_id: native_ids[at], name: string(names[at], trace)? };
        let id = usize::from(ids[at]);
        match id.cmp(&trace.threads.len()) {
            Ordering::Less => trace.threads[id] = thread,
            Ordering::Equal => trace.threads.push(thread),
            Ordering::Greater => return Err("a thread that skips ids"),
        }
    }
    Ok(())
}

pub(super) fn amendments(amendments: &[Amendment]) -> Builder {
    let rows = amendments.iter();
    let mut table = Builder::default();
    table.unsigned("index", rows.clone().map(|row| row.index));
    table.unsigned("slack", rows.clone().map(|row| row.slack.into()));
    table.unsigned("what", rows.clone().map(|row| row.what.0.into()));
    table.unsigned("built", rows.clone().map(|row| row.built.0.into()));
    table.signed("stream", rows.clone().map(|row| row.stream.into()));
    table.unsigned("device", rows.map(|row| row.device.0.into()));
    table
}

pub(super) fn read_amendments(table: &Table<'_>, trace: &mut Trace) -> Result<(), Wrong> {
    let (index, slack) = (table.u64s("index")?, table.numbers::<u32>("slack")?);
    let (what, built) = (table.numbers::<u32>("what")?, table.numbers::<u32>("built")?);
    let (stream, device) = (table.numbers::<i16>("stream")?, table.numbers::<u8>("device")?);
    for at in 0..table.rows() {
        if what[at] as usize >= trace.whats.len() || built[at] as usize >= trace.stacks.stack_count() {
            return Err("an amendment with an id beyond its table");
        }
        let position = index[at].checked_sub(trace.first_index).and_then(|position| usize::try_from(position).ok());
        if let Some(event) = position.and_then(|position| trace.events.get_mut(position)) {
            (event.slack, event.what, event.built) = (slack[at], WhatId(what[at]), StackId(built[at]));
            (event.stream, event.device) = (stream[at], Device(device[at]));
        }
    }
    Ok(())
}

pub(super) fn checkpoints(points: &[Checkpoint]) -> Builder {
    let points = points.iter();
    let mut table = Builder::default();
    table.unsigned("index", points.clone().map(|point| point.index));
    table.unsigned("time_nanos", points.clone().map(|point| point.time_nanos));
    table.unsigned("kind", points.clone().map(|point| point.kind as u64));
    table.unsigned("active", points.clone().map(|point| point.active));
    table.unsigned("cached", points.clone().map(|point| point.cached));
    table.unsigned("mlx_active", points.clone().map(|point| point.mlx_active));
    table.unsigned("mlx_cached", points.clone().map(|point| point.mlx_cached));
    // No driver was asked where there are 0 devices.
    let devices = points.map(|point| point.device.unwrap_or_default());
    table.unsigned("devices", devices.clone().map(|device| device.devices));
    table.unsigned("device_free", devices.clone().map(|device| device.free));
    table.unsigned("device_total", devices.clone().map(|device| device.total));
    table.unsigned("device_pool", devices.map(|device| device.pool));
    table
}

pub(super) fn read_checkpoints(table: &Table<'_>, trace: &mut Trace) -> Result<(), Wrong> {
    let (index, time_nanos, kind) = (table.u64s("index")?, table.u64s("time_nanos")?, table.u64s("kind")?);
    let (active, cached) = (table.u64s("active")?, table.u64s("cached")?);
    let (mlx_active, mlx_cached) = (table.u64s("mlx_active")?, table.u64s("mlx_cached")?);
    let (devices, free) = (table.u64s("devices")?, table.u64s("device_free")?);
    let (total, pool) = (table.u64s("device_total")?, table.u64s("device_pool")?);
    for at in 0..table.rows() {
        trace.checkpoints.push(Checkpoint {
            index: index[at],
            time_nanos: time_nanos[at],
            kind: checkpoint_kind(kind[at])?,
            active: active[at],
            cached: cached[at],
            mlx_active: mlx_active[at],
            mlx_cached: mlx_cached[at],
            device: (devices[at] > 0).then(|| DeviceMemory {
                devices: devices[at],
                free: free[at],
                total: total[at],
                pool: pool[at],
            }),
        });
    }
    Ok(())
}

fn checkpoint_kind(number: u64) -> Result<CheckpointKind, Wrong> {
    use CheckpointKind::{Oom, Start, Step, Stop, User};
    let kinds = [Start, Step, User, Stop, Oom];
    kinds.into_iter().find(|kind| *kind as u64 == number).ok_or("a checkpoint of an unknown kind")
}

fn mark_numbers(mark: &Mark) -> (u64, u64) {
    match mark.kind {
        MarkKind::Step(number) => (0, number),
        MarkKind::AnnotationBegin(name) => (1, name.0.into()),
        MarkKind::AnnotationEnd => (2, 0),
        MarkKind::CacheLimit(bytes) => (3, bytes),
    }
}

pub(super) fn marks(marks: &[Mark]) -> Builder {
    let marks = marks.iter();
    let mut table = Builder::default();
    table.unsigned("index", marks.clone().map(|mark| mark.index));
    table.unsigned("time_nanos", marks.clone().map(|mark| mark.time_nanos));
    table.unsigned("thread", marks.clone().map(|mark| mark.thread.0.into()));
    table.unsigned("kind", marks.clone().map(|mark| mark_numbers(mark).0));
    table.unsigned("value", marks.map(|mark| mark_numbers(mark).1));
    table
}

pub(super) fn read_marks(table: &Table<'_>, trace: &mut Trace) -> Result<(), Wrong> {
    let (index, time_nanos) = (table.u64s("index")?, table.u64s("time_nanos")?);
    let (thread, kind, value) = (table.numbers::<u16>("thread")?, table.u64s("kind")?, table.u64s("value")?);
    for at in 0..table.rows() {
        let kind = match kind[at] {
            0 => MarkKind::Step(value[at]),
            1 => MarkKind::AnnotationBegin(string(u32::try_from(value[at]).unwrap_or(u32::MAX), trace)?),
            2 => MarkKind::AnnotationEnd,
            3 => MarkKind::CacheLimit(value[at]),
            _ => return Err("a mark of an unknown kind"),
        };
        let thread = ThreadId(thread[at]);
        trace.marks.push(Mark { index: index[at], time_nanos: time_nanos[at], thread, kind });
    }
    Ok(())
}

/// Buffers that exist before the first event.
pub(super) fn buffers(buffers: &[Buffer]) -> Builder {
    let buffers = buffers.iter();
    let mut table = Builder::default();
    table.unsigned("addr", buffers.clone().map(|buffer| buffer.addr));
    table.unsigned("size", buffers.clone().map(|buffer| buffer.size));
    table.unsigned("slack", buffers.clone().map(|buffer| buffer.slack.into()));
    table.unsigned("cached", buffers.clone().map(|buffer| buffer.is_cached.into()));
    table.unsigned("wrapper", buffers.clone().map(|buffer| buffer.is_wrapper.into()));
    table.unsigned("alloc_nanos", buffers.clone().map(|buffer| buffer.alloc_nanos));
    table.unsigned("what", buffers.clone().map(|buffer| buffer.what.0.into()));
    table.unsigned("built", buffers.clone().map(|buffer| buffer.built.0.into()));
    table.unsigned("triggered", buffers.clone().map(|buffer| buffer.triggered.0.into()));
    table.unsigned("thread", buffers.clone().map(|buffer| buffer.thread.0.into()));
    table.signed("stream", buffers.clone().map(|buffer| buffer.stream.into()));
    table.unsigned("device", buffers.clone().map(|buffer| buffer.device.0.into()));
    table.unsigned("flags", buffers.map(|buffer| buffer.flags.into()));
    table
}

/// Ids are not checked: the tables that they point into may come later.
pub(super) fn read_buffers(table: &Table<'_>, buffers: &mut Vec<Buffer>) -> Result<(), Wrong> {
    let (addr, size, slack) = (table.u64s("addr")?, table.u64s("size")?, table.numbers::<u32>("slack")?);
    let (cached, wrapper) = (table.numbers::<u8>("cached")?, table.numbers::<u8>("wrapper")?);
    let (alloc_nanos, what) = (table.u64s("alloc_nanos")?, table.numbers::<u32>("what")?);
    let (built, triggered) = (table.numbers::<u32>("built")?, table.numbers::<u32>("triggered")?);
    let (thread, device) = (table.numbers::<u16>("thread")?, table.numbers::<u8>("device")?);
    let (stream, flags) = (table.numbers::<i16>("stream")?, table.numbers::<u16>("flags")?);
    buffers.extend((0..table.rows()).map(|at| Buffer {
        addr: addr[at],
        size: size[at],
        slack: slack[at],
        is_cached: cached[at] != 0,
        is_wrapper: wrapper[at] != 0,
        alloc_nanos: alloc_nanos[at],
        what: WhatId(what[at]),
        built: StackId(built[at]),
        triggered: StackId(triggered[at]),
        thread: ThreadId(thread[at]),
        stream: stream[at],
        device: Device(device[at]),
        flags: flags[at],
    }));
    Ok(())
}

fn string(id: u32, trace: &Trace) -> Result<StringId, Wrong> {
    if (id as usize) < trace.strings.len() { Ok(StringId(id)) } else { Err("a string beyond the table") }
}

fn in_order(id: usize, next: usize) -> Result<(), Wrong> {
    if id == next { Ok(()) } else { Err("an entry that is in the table already") }
}
