//! Active buffers in groups, and each group's row.
//!
//! A group has a key that is cheap to compare; its name is made once. Which line stands for a group that is no line: the
//! one with most of its bytes.

use memviz_trace::{Buffer, StackId, Trace, WhatId};
use rustc_hash::FxHashMap;

use crate::held::{Amount, By, HeldGroup, StackLine};
use crate::peak::{Group, LineKey, LineKeys, LineTotal, NOT_LISTED};
use crate::summary::Rest;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Line(LineKey),
    Stack(StackId),
    /// Position in `Groups::names`.
    Name(u32),
}

#[derive(Default)]
struct Members {
    all: Group,
    temporary: Amount,
    by_line: FxHashMap<LineKey, u64>,
}

/// Groups under construction.
pub(crate) struct Groups<'a> {
    trace: &'a Trace,
    by: By,
    keys: LineKeys<'a>,
    names: Vec<String>,
    ids: FxHashMap<String, u32>,
    /// What makes the name, and its id: names are long, buffers are many.
    known: FxHashMap<(WhatId, StackId), u32>,
    /// Annotations by address, where these are asked for.
    annotations: FxHashMap<u64, String>,
    members: FxHashMap<Key, Members>,
}

impl<'a> Groups<'a> {
    pub(crate) fn new(trace: &'a Trace, by: By, buffers: &[Buffer]) -> Groups<'a> {
        Groups {
            trace,
            by,
            keys: LineKeys::new(trace),
            names: Vec::new(),
            ids: FxHashMap::default(),
            known: FxHashMap::default(),
            annotations: if by == By::Annotation { annotations(trace, buffers) } else { FxHashMap::default() },
            members: FxHashMap::default(),
        }
    }

    pub(crate) fn add(&mut self, buffer: &Buffer, is_temporary: bool) {
        let line = self.keys.of(buffer);
        let key = self.key(buffer, line);
        let members = self.members.entry(key).or_default();
        members.all.add(buffer);
        let of_line = members.by_line.entry(line).or_default();
        *of_line = of_line.saturating_add(buffer.size);
        if is_temporary {
            members.temporary.add(buffer.size, 1);
        }
    }

    fn key(&mut self, buffer: &Buffer, line: LineKey) -> Key {
        let source = match self.by {
            By::Line => return Key::Line(line),
            By::Stack => return Key::Stack(buffer.built),
            By::Annotation => {
                let name = self.annotations.get(&buffer.addr).map_or("no annotation", |name| name).to_owned();
                return Key::Name(self.id(name));
            }
            By::Module => (WhatId(0), buffer.built),
            By::Primitive | By::Dtype | By::Shape => (buffer.what, StackId(0)),
        };
        if let Some(id) = self.known.get(&source) {
            return Key::Name(*id);
        }
        let name = self.name(source);
        let id = self.id(name);
        self.known.insert(source, id);
        Key::Name(id)
    }

    fn id(&mut self, name: String) -> u32 {
        let next = self.names.len() as u32;
        let id = *self.ids.entry(name.clone()).or_insert(next);
        if id == next {
            self.names.push(name);
        }
        id
    }

    fn name(&self, (what, built): (WhatId, StackId)) -> String {
        let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
        let dtype = || or(self.trace.strings.get(self.trace.what(what).dtype), "dtype not known");
        match self.by {
            By::Primitive => or(self.trace.primitive(what), "no primitive"),
            By::Dtype => dtype(),
            By::Shape => match &self.trace.what(what).shape {
                Some(shape) => format!("{} {shape:?}", dtype()),
                None => format!("{}, shape not known", dtype()),
            },
            _ => module(self.trace, built),
        }
    }

    /// Rows, largest first, and what `top` leaves out.
    pub(crate) fn finish(self, unlisted_bytes: u64, top: usize) -> (Vec<HeldGroup>, Rest) {
        let Groups { trace, names, members, .. } = self;
        let mut rows: Vec<HeldGroup> = members.into_iter().map(|(key, group)| row(trace, &names, key, group)).collect();
        if unlisted_bytes > 0 {
            let line = LineTotal { bytes: unlisted_bytes, ..LineTotal::of(trace, NOT_LISTED) };
            rows.push(HeldGroup { line, ..HeldGroup::default() });
        }
        rows.sort_by(|a, b| {
            let order = b.line.bytes.cmp(&a.line.bytes).then_with(|| b.line.count.cmp(&a.line.count));
            order
                .then_with(|| (&a.name, a.line.place()).cmp(&(&b.name, b.line.place())))
                .then_with(|| a.stack.cmp(&b.stack))
        });
        let mut rest = Rest::default();
        for row in rows.drain(top.min(rows.len())..) {
            let bytes = rest.bytes.saturating_add(row.line.bytes);
            rest = Rest { lines: rest.lines + 1, bytes, count: rest.count + row.line.count };
        }
        (rows, rest)
    }
}

fn row(trace: &Trace, names: &[String], key: Key, members: Members) -> HeldGroup {
    // Of lines with equal bytes the first frame, so that equal traces print equal rows.
    let most = members.by_line.iter().max_by_key(|(line, bytes)| (**bytes, std::cmp::Reverse(**line)));
    let line = members.all.total(trace, most.map_or(NOT_LISTED, |(line, _)| *line));
    let name =
        if let Key::Name(id) = key { names.get(id as usize).cloned().unwrap_or_default() } else { String::new() };
    let stack = if let Key::Stack(stack) = key { outermost_first(trace, stack) } else { Vec::new() };
    HeldGroup { name, line, temporary: members.temporary, stack }
}

fn outermost_first(trace: &Trace, stack: StackId) -> Vec<StackLine> {
    let frames = trace.stacks.innermost_first(stack);
    let mut lines: Vec<StackLine> = frames.map(|id| StackLine::of(trace, trace.stacks.frame(id))).collect();
    lines.reverse();
    lines
}

/// "Model/Block/Linear": the classes whose `__call__` or `__init__` is on the stack. Before Python 3.11 a frame does not know
/// its class, so its file stands for it.
pub(crate) fn module(trace: &Trace, stack: StackId) -> String {
    let mut names = Vec::new();
    for id in trace.stacks.innermost_first(stack) {
        let frame = trace.stacks.frame(id);
        let (file, function) = (trace.strings.get(frame.file), trace.strings.get(frame.function));
        let class = function.strip_suffix("__call__").or_else(|| function.strip_suffix("__init__"));
        names.extend(class.map(|class| match class.trim_end_matches('.').rsplit('.').next().unwrap_or_default() {
            "" => file.rsplit(['/', '\\']).next().unwrap_or(file).trim_end_matches(".py").to_owned(),
            class => class.to_owned(),
        }));
    }
    names.reverse();
    if names.is_empty() { "no module".to_owned() } else { names.join("/") }
}

/// Names of the annotations open where each buffer was allocated, outermost first: "forward/attention".
fn annotations(trace: &Trace, buffers: &[Buffer]) -> FxHashMap<u64, String> {
    let mut allocations: Vec<(usize, &Buffer)> =
        buffers.iter().filter_map(|buffer| Some((position_of(trace, buffer)?, buffer))).collect();
    allocations.sort_unstable_by_key(|(position, _)| *position);
    let mut cursor = trace.mark_cursor();
    let mut names = FxHashMap::default();
    for (position, buffer) in allocations {
        cursor.advance_to(trace.first_index + position as u64);
        let open: Vec<&str> = cursor.annotations(buffer.thread).iter().map(|name| trace.strings.get(*name)).collect();
        if !open.is_empty() {
            names.insert(buffer.addr, open.join("/"));
        }
    }
    names
}

/// Position of the allocation of a buffer; `None` for those from before the first event.
fn position_of(trace: &Trace, buffer: &Buffer) -> Option<usize> {
    let first = trace.events.partition_point(|event| event.time_nanos < buffer.alloc_nanos);
    let at_that_time = trace.events.get(first..)?.iter().take_while(|event| event.time_nanos == buffer.alloc_nanos);
    let found = at_that_time.enumerate().find(|(_, event)| event.action.is_alloc() && event.addr == buffer.addr);
    found.map(|(nth, _)| first + nth)
}
