//! Memory by call stack: what flame graphs and profiles show.
//!
//! A stack is that of the line which built the array, else of what evaluated it, as in [`crate::top_lines`]. By default it
//! ends at the user's line ([`UserLines`]) and has no frames of libraries; those of mlx-memviz are never in it. Bytes of
//! buffers that have no stack stay in, under a name that says why, so that the sum is the memory of the moment.
//!
//! Not here: drawing (`memviz-format`), and which moment to look at.

use std::collections::BTreeMap;

use memviz_trace::{Buffer, FrameId, Ledger, StackId, StringId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::lines::{FrameClass, UserLines};
use crate::peak::{LineKind, Live, is_from_start, start_of};

/// What memory to add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlameOf {
    /// What is active at a moment: after so many events of the trace.
    Live(usize),
    /// Every allocation of the recording, whatever became of it.
    #[default]
    Allocated,
    /// What is active at the end and was allocated while recording.
    Leaked,
}

/// Bytes and buffers of one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackTotal {
    /// Outermost first; empty for buffers without a stack.
    pub frames: Vec<FrameId>,
    /// Why there is no stack; [`LineKind::Line`] when there is one.
    pub kind: LineKind,
    /// Primitive that made the buffers.
    pub primitive: StringId,
    /// Bytes.
    pub bytes: u64,
    /// Buffers; 0 for [`LineKind::NotListed`].
    pub count: u64,
}

type Key = (LineKind, Vec<FrameId>, StringId);

/// Memory by stack, in a stable order. `all_frames` keeps the frames of libraries and below the user's line.
pub fn stack_totals(trace: &Trace, of: FlameOf, all_frames: bool) -> Vec<StackTotal> {
    let mut sums = Sums { trace, paths: Paths::new(trace, all_frames), by_stack: FxHashMap::default() };
    match of {
        FlameOf::Live(after_events) => sums.live(&crate::live_at(trace, after_events), |_| true),
        FlameOf::Leaked => {
            let live = crate::live_at(trace, trace.events.len());
            let old: FxHashSet<u64> = survivors(trace);
            sums.live(&Live { unlisted_bytes: 0, ..live }, |buffer| !old.contains(&buffer.addr));
        }
        FlameOf::Allocated => sums.allocated(),
    }
    sums.finish()
}

/// Addresses of buffers that were active before the first event and were never freed since.
fn survivors(trace: &Trace) -> FxHashSet<u64> {
    let active = trace.start.iter().filter(|buffer| !buffer.is_cached);
    let mut addrs: FxHashSet<u64> = active.map(|buffer| buffer.addr).collect();
    let mut ledger = start_of(trace);
    for event in &trace.events {
        if ledger.apply(event).is_ok() && event.action.is_free() {
            addrs.remove(&event.addr);
        }
    }
    addrs
}

struct Sums<'t> {
    trace: &'t Trace,
    paths: Paths<'t>,
    by_stack: FxHashMap<(LineKind, StackId, StringId), (u64, u64)>,
}

impl Sums<'_> {
    fn live(&mut self, live: &Live, counts: impl Fn(&Buffer) -> bool) {
        for buffer in live.buffers.iter().filter(|buffer| counts(buffer)) {
            self.add(buffer);
        }
        if live.unlisted_bytes > 0 {
            self.by_stack.insert((LineKind::NotListed, StackId(0), StringId(0)), (live.unlisted_bytes, 0));
        }
    }

    fn allocated(&mut self) {
        let mut ledger: Ledger = start_of(self.trace);
        for event in &self.trace.events {
            if ledger.apply(event).is_ok() && event.action.is_alloc() {
                self.add(&Buffer::from_alloc(event));
            }
        }
    }

    fn add(&mut self, buffer: &Buffer) {
        let stack = [buffer.built, buffer.triggered].into_iter().find(|stack| self.paths.has_line(*stack));
        let kind = match stack {
            Some(_) => LineKind::Line,
            None if is_from_start(self.trace, buffer) => LineKind::BeforeRecording,
            None => LineKind::NoPythonLine,
        };
        let primitive = self.trace.what(buffer.what).primitive;
        let sum = self.by_stack.entry((kind, stack.unwrap_or_default(), primitive)).or_default();
        *sum = (sum.0.saturating_add(buffer.size), sum.1 + 1);
    }

    /// Stacks that differ in frames left out only become one.
    fn finish(self) -> Vec<StackTotal> {
        let mut merged: BTreeMap<Key, (u64, u64)> = BTreeMap::new();
        for ((kind, stack, primitive), (bytes, count)) in self.by_stack {
            let sum = merged.entry((kind, self.paths.path(stack), primitive)).or_default();
            *sum = (sum.0.saturating_add(bytes), sum.1 + count);
        }
        let total = |((kind, frames, primitive), (bytes, count))| StackTotal { frames, kind, primitive, bytes, count };
        merged.into_iter().map(total).collect()
    }
}

/// Which frames of a stack are shown.
struct Paths<'t> {
    trace: &'t Trace,
    lines: UserLines,
    all_frames: bool,
}

impl<'t> Paths<'t> {
    fn new(trace: &'t Trace, all_frames: bool) -> Paths<'t> {
        Paths { trace, lines: UserLines::new(trace), all_frames }
    }

    fn has_line(&self, stack: StackId) -> bool {
        self.lines.line_of(stack).is_some()
    }

    /// Outermost first.
    fn path(&self, stack: StackId) -> Vec<FrameId> {
        let mut frames: Vec<FrameId> = self.trace.stacks.innermost_first(stack).collect();
        frames.reverse();
        if self.all_frames {
            frames.retain(|frame| self.class(*frame) > FrameClass::Memviz);
            return frames;
        }
        let line = self.lines.line_of(stack).map(|frame| self.without_column(frame));
        let end = frames.iter().rposition(|frame| Some(self.without_column(*frame)) == line);
        frames.truncate(end.map_or(0, |at| at + 1));
        let last = frames.pop();
        frames.retain(|frame| self.class(*frame) >= FrameClass::ThirdParty);
        frames.extend(last);
        frames
    }

    fn class(&self, frame: FrameId) -> FrameClass {
        FrameClass::of(self.trace, self.trace.stacks.frame(frame))
    }

    fn without_column(&self, frame: FrameId) -> memviz_trace::Frame {
        memviz_trace::Frame { column: 0, ..self.trace.stacks.frame(frame) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memviz_trace::{Action, Event, Frame, TraceBuilder};

    const SITE: &str = "/venv/lib/python3.12/site-packages";

    /// One allocation with this stack, outermost first.
    fn trace_of(paths: &[String]) -> Trace {
        let mut builder = TraceBuilder::default();
        let mut built = StackId(0);
        for (line, path) in paths.iter().enumerate() {
            let file = builder.intern(path);
            let frame = builder.trace.stacks.intern_frame(Frame { file, line: line as u32, ..Frame::default() });
            built = builder.trace.stacks.push(built, frame);
        }
        builder.push(Event { action: Action::AllocNew, addr: 64, size: 10, built, ..Event::default() });
        builder.push(Event { action: Action::FreeActiveToCache, addr: 64, size: 10, ..Event::default() });
        builder.push(Event { action: Action::AllocReuse, addr: 64, size: 10, built, ..Event::default() });
        builder.push(Event { action: Action::AllocNew, addr: 128, size: 5, ..Event::default() });
        builder.finish()
    }

    /// Lines of the frames of the largest stack.
    fn lines_of(trace: &Trace, of: FlameOf, all_frames: bool) -> (Vec<u32>, u64, u64) {
        let totals = stack_totals(trace, of, all_frames);
        assert_eq!((totals.len(), totals[1].kind, totals[1].bytes), (2, LineKind::NoPythonLine, 5));
        let lines = totals[0].frames.iter().map(|frame| trace.stacks.frame(*frame).line).collect();
        (lines, totals[0].bytes, totals[0].count)
    }

    #[test]
    fn stacks_end_at_the_users_line_unless_all_is_asked_for() {
        let paths = [
            format!("{SITE}/mlx_memviz/run.py"),
            "<frozen runpy>".into(),
            "train.py".into(),
            format!("{SITE}/mlx_lm/trainer.py"),
            "model.py".into(),
            format!("{SITE}/mlx/nn/linear.py"),
        ];
        let trace = trace_of(&paths);
        assert_eq!(lines_of(&trace, FlameOf::Live(4), false), (vec![2, 3, 4], 10, 1));
        assert_eq!(lines_of(&trace, FlameOf::Leaked, true), (vec![1, 2, 3, 4, 5], 10, 1));
        assert_eq!(lines_of(&trace, FlameOf::Allocated, false), (vec![2, 3, 4], 20, 2));
    }

    #[test]
    fn memory_from_before_is_live_and_not_leaked() {
        let start =
            vec![Buffer { addr: 1, size: 7, ..Buffer::default() }, Buffer { addr: 2, size: 9, ..Buffer::default() }];
        let mut trace =
            Trace { start, base: memviz_trace::Base { active: 3, cached: 0 }, ..TraceBuilder::default().finish() };
        trace.events.push(Event { action: Action::FreeActiveToOs, addr: 2, size: 9, ..Event::default() });
        trace.events.push(Event { action: Action::AllocNew, addr: 2, size: 4, ..Event::default() });
        let sums = |of| stack_totals(&trace, of, false).iter().map(|row| (row.kind, row.bytes)).collect::<Vec<_>>();
        let (before, fresh, rest) = (LineKind::BeforeRecording, LineKind::NoPythonLine, LineKind::NotListed);
        assert_eq!(sums(FlameOf::Live(0)), [(before, 16), (rest, 3)]);
        assert_eq!(sums(FlameOf::Live(2)), [(before, 7), (fresh, 4), (rest, 3)]);
        assert_eq!(sums(FlameOf::Leaked), [(fresh, 4)]);
    }
}
