//! From the recorder's state to a `Trace`: ids of the process become ids of the trace, code objects become text.
//!
//! Two steps, because only the first needs the recorder's lock: copy what changes, then resolve under the GIL.
#![expect(unsafe_code, reason = "resolves Python code objects under the GIL")]

use memviz_pyframes::{CodeId, Resolver};
use memviz_trace::{
    Buffer, Checkpoint, Counts, Event, Frame, FrameId, Header, Mark, StackId, StackTable, Strings, Thread, Totals,
    Trace, TraceBuilder, What,
};
use rustc_hash::FxHashMap;

use crate::mlx;
use crate::native::{self, Symboliser};
use crate::recorder::{Recorder, ThreadNote};
use crate::whats::NO_DTYPE;
use memviz_trace::Context;

/// A copy of what the recorder knows.
#[derive(Debug)]
pub struct Copied {
    events: Vec<Event>,
    first_index: u64,
    buffers: Vec<Buffer>,
    totals: Totals,
    counts: Counts,
    marks: Vec<Mark>,
    checkpoints: Vec<Checkpoint>,
    threads: Vec<ThreadNote>,
    strings: Strings,
    whats: Vec<What>,
    depth: u32,
}

impl Copied {
    /// Copies; call it with the recorder's lock held or on a recorder that has stopped.
    pub fn new(recorder: &Recorder) -> Copied {
        let (marks, checkpoints, threads) = recorder.notes();
        let mut strings = recorder.strings.clone();
        let mut whats = vec![What::default()];
        whats.extend(recorder.whats.iter().map(|key| What {
            primitive: key.primitive,
            dtype: match mlx::DTYPES.get(usize::from(key.dtype)) {
                Some(name) => strings.intern(name),
                None => memviz_trace::StringId(0),
            },
            shape: (key.dtype != NO_DTYPE).then(|| key.shape.into()),
            is_temporary: key.is_temporary,
        }));
        let mut events = recorder.ring().to_vec();
        let buffers: Vec<Buffer> = recorder.buffers_unsorted().collect();
        if recorder.options().context == Context::State {
            add_stacks_of_active(&mut events, &buffers);
        }
        Copied {
            events,
            first_index: recorder.ring().first_index(),
            buffers,
            totals: recorder.totals(),
            counts: recorder.counts(),
            marks: marks.to_vec(),
            checkpoints: checkpoints.to_vec(),
            threads: threads.to_vec(),
            strings,
            whats,
            depth: recorder.options().depth,
        }
    }

    /// The trace. Frames of files in `own_folder`, the Python package's, are left out of its stacks.
    ///
    /// # Safety
    /// This thread holds the GIL.
    pub unsafe fn into_trace(mut self, header: Header, own_folder: &str) -> Trace {
        let mut builder = TraceBuilder::default();
        builder.trace.strings = self.strings;
        builder.trace.whats = self.whats;
        for note in &self.threads {
            builder.push_thread(Thread { native_id: note.native_id, name: note.name });
        }
        let mut stacks = Stacks {
            // SAFETY: the GIL is held by contract.
            resolver: unsafe { Resolver::new() },
            table: StackTable::default(),
            strings: &mut builder.trace.strings,
            known: vec![StackId(u32::MAX); memviz_pyframes::node_count() as usize],
            sites: FxHashMap::default(),
            native: FxHashMap::default(),
            symboliser: Symboliser::new(),
            own_folder,
            depth: self.depth,
        };
        for event in &mut self.events {
            event.built = stacks.resolve(event.built);
            event.triggered = stacks.resolve(event.triggered);
        }
        for buffer in &mut self.buffers {
            buffer.built = stacks.resolve(buffer.built);
            buffer.triggered = stacks.resolve(buffer.triggered);
        }
        builder.trace.stacks = stacks.table;
        builder.trace.header = header;
        builder.trace.events = self.events;
        builder.trace.first_index = self.first_index;
        builder.trace.counts = self.counts;
        builder.trace.marks = self.marks;
        builder.trace.checkpoints = self.checkpoints;
        builder.end = Some(self.buffers);
        builder.end_totals = Some(self.totals);
        builder.finish()
    }
}

/// Context `state`: the recorder's table knows the stacks of the buffers that exist, their allocations do not yet.
fn add_stacks_of_active(events: &mut [Event], buffers: &[Buffer]) {
    let active = buffers.iter().filter(|buffer| !buffer.is_cached);
    let mut active: FxHashMap<u64, &Buffer> = active.map(|buffer| (buffer.addr, buffer)).collect();
    for event in events.iter_mut().rev().filter(|event| event.action.is_alloc()) {
        if let Some(buffer) = active.remove(&event.addr) {
            event.built = buffer.built;
            event.triggered = buffer.triggered;
        }
    }
}

/// Python's nodes, turned into the trace's stacks as they are met.
struct Stacks<'a> {
    resolver: Resolver,
    table: StackTable,
    strings: &'a mut Strings,
    /// By node: the trace's stack, or `u32::MAX` while not known.
    known: Vec<StackId>,
    sites: FxHashMap<(CodeId, i32), Shown>,
    /// Stacks that end in C++ frames, by the recorder's id.
    native: FxHashMap<u32, StackId>,
    symboliser: Symboliser,
    /// Frames of files below that folder are our own and not shown.
    own_folder: &'a str,
    depth: u32,
}

impl Stacks<'_> {
    #[inline]
    fn resolve(&mut self, node: StackId) -> StackId {
        if let Some((caller, addr)) = native::node(node.0) {
            return self.resolve_native(node.0, caller, addr);
        }
        match self.known.get(node.index()) {
            Some(&StackId(u32::MAX)) => self.resolve_new(node),
            Some(&known) => known,
            // A node that is younger than the resolver: it cannot be in a copy made before.
            None => StackId(0),
        }
    }

    /// The innermost C++ frame on top of what called it.
    fn resolve_native(&mut self, node: u32, caller: u32, addr: u64) -> StackId {
        if let Some(&known) = self.native.get(&node) {
            return known;
        }
        let caller = self.resolve(StackId(caller));
        let (file, function) = self.symboliser.name(addr);
        let (file, function) = (self.strings.intern(&file), self.strings.intern(&function));
        let frame = self.table.intern_frame(Frame { file, function, is_native: true, ..Frame::default() });
        let stack = self.table.push(caller, frame);
        self.native.insert(node, stack);
        stack
    }

    /// Walks to the root and builds back. With a depth, the innermost frames only: outer ones are not shared then.
    #[cold]
    fn resolve_new(&mut self, node: StackId) -> StackId {
        let mut path = Vec::new();
        let mut at = node.0;
        let mut stack = StackId(0);
        while at != 0 && (self.depth == 0 || path.len() < self.depth as usize) {
            if self.depth == 0 && self.known[at as usize] != StackId(u32::MAX) {
                stack = self.known[at as usize];
                break;
            }
            let Some(entry) = memviz_pyframes::node(at) else { break };
            let shown = self.shown(entry.code, entry.lasti);
            if self.depth == 0 || matches!(shown, Shown::Frame(_)) {
                path.push((at, shown));
            }
            if shown == Shown::Launcher {
                break;
            }
            at = entry.caller;
        }
        for (at, shown) in path.into_iter().rev() {
            if let Shown::Frame(frame) = shown {
                stack = self.table.push(stack, frame);
            }
            if self.depth == 0 {
                self.known[at as usize] = stack;
            }
        }
        self.known[node.index()] = stack;
        stack
    }

    /// What a site looks like in the trace.
    fn shown(&mut self, code: CodeId, lasti: i32) -> Shown {
        if code == CodeId::NONE {
            return Shown::Nothing;
        }
        if let Some(&shown) = self.sites.get(&(code, lasti)) {
            return shown;
        }
        let site = self.resolver.site(code, lasti);
        let shown = match site.file.strip_prefix(self.own_folder) {
            Some(LAUNCHER) => Shown::Launcher,
            Some(_) if !self.own_folder.is_empty() => Shown::Nothing,
            _ => Shown::Frame(self.table.intern_frame(Frame {
                file: self.strings.intern(&site.file),
                function: self.strings.intern(&site.function),
                line: site.line,
                column: site.column,
                is_native: false,
            })),
        };
        self.sites.insert((code, lasti), shown);
        shown
    }
}

/// The module of our package that runs a program under `memviz run`: its callers are not the program's.
const LAUNCHER: &str = "_run.py";

/// A site of a stack, as the trace shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// A frame of the program.
    Frame(FrameId),
    /// A frame of the interpreter or of our package.
    Nothing,
    /// The stack of the program begins after this one.
    Launcher,
}
