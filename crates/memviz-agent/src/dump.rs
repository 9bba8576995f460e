//! From the recorder's state to a `Trace`: ids of the process become ids of the trace, code objects become text.
//!
//! Two steps, because only the first needs the recorder's lock: copy what changes, then resolve under the GIL.
#![expect(unsafe_code, reason = "resolves Python code objects under the GIL")]

use memviz_trace::{
    Buffer, Checkpoint, Counts, Event, Header, Mark, StackId, Strings, Thread, Totals, Trace, TraceBuilder, What,
};
use rustc_hash::FxHashMap;

use crate::mlx;
use crate::names::{self, Stacks};
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
        let mut events = recorder.store().to_vec();
        let buffers: Vec<Buffer> = recorder.buffers_unsorted().collect();
        if recorder.options().context == Context::State {
            add_stacks_of_active(&mut events, &buffers);
        }
        Copied {
            events,
            first_index: recorder.store().first_index(),
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
        let mut stacks = Stacks::new(own_folder, self.depth);
        let on_events = self.events.iter().flat_map(|event| [event.built, event.triggered]);
        let on_buffers = self.buffers.iter().flat_map(|buffer| [buffer.built, buffer.triggered]);
        let unknown = stacks.unknown_sites(on_events.chain(on_buffers));
        // SAFETY: the GIL is held by contract.
        let sites = unsafe { names::resolve(&unknown) };
        let strings = &mut builder.trace.strings;
        stacks.learn(sites, strings);
        for event in &mut self.events {
            event.built = stacks.resolve(event.built, strings);
            event.triggered = stacks.resolve(event.triggered, strings);
        }
        for buffer in &mut self.buffers {
            buffer.built = stacks.resolve(buffer.built, strings);
            buffer.triggered = stacks.resolve(buffer.triggered, strings);
        }
        builder.trace.stacks = stacks.into_table();
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

/// A trace that holds nothing but the text of these stacks, and their ids in it, in order. Frames of files in `own_folder`
/// are left out.
///
/// # Safety
/// This thread holds the GIL.
pub unsafe fn resolve(ids: &[StackId], own_folder: &str) -> (Trace, Vec<StackId>) {
    let mut builder = TraceBuilder::default();
    let mut stacks = Stacks::new(own_folder, 0);
    let unknown = stacks.unknown_sites(ids.iter().copied());
    // SAFETY: the GIL is held by contract.
    let sites = unsafe { names::resolve(&unknown) };
    let strings = &mut builder.trace.strings;
    stacks.learn(sites, strings);
    let resolved = ids.iter().map(|&id| stacks.resolve(id, strings)).collect();
    builder.trace.stacks = stacks.into_table();
    (builder.finish(), resolved)
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
