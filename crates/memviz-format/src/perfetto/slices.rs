//! Steps, annotations and evaluations as slices. What is open at the end of the recording ends there.

use std::collections::BTreeMap;

use memviz_trace::{Event, MarkKind, StackId, StringId, ThreadId};

use super::end_nanos;
use super::tracks::{Packets, Track};
use crate::FormatError;
use crate::table::Lined;

/// Allocations in a row on one thread that the same line made happen.
#[derive(Clone, Copy)]
struct Evaluation {
    triggered: StackId,
    start_nanos: u64,
    end_nanos: u64,
    bytes: u64,
    buffers: u64,
}

pub(super) struct Slices<'t> {
    recording: &'t Lined<'t>,
    next_mark: usize,
    step: Option<u64>,
    annotations: BTreeMap<ThreadId, Vec<StringId>>,
    evaluations: BTreeMap<ThreadId, Evaluation>,
}

impl<'t> Slices<'t> {
    /// Begins the step that is under way at the first event.
    pub(super) fn begin(recording: &'t Lined<'t>, packets: &mut Packets<'_>) -> Result<Slices<'t>, FormatError> {
        let (annotations, evaluations) = Default::default();
        let step = recording.trace.mark_cursor().step();
        let slices = Slices { recording, next_mark: 0, step, annotations, evaluations };
        slices.begin_step(recording.trace.events.first().map_or(0, |event| event.time_nanos), packets)?;
        Ok(slices)
    }

    /// Takes in the marks set before event `index`.
    pub(super) fn marks_before(&mut self, index: u64, packets: &mut Packets<'_>) -> Result<(), FormatError> {
        let trace = self.recording.trace;
        while let Some(mark) = trace.marks.get(self.next_mark).filter(|mark| mark.index <= index) {
            self.next_mark += 1;
            match mark.kind {
                MarkKind::Step(number) => self.new_step(number, mark.time_nanos, packets)?,
                MarkKind::AnnotationBegin(name) => {
                    self.annotations.entry(mark.thread).or_default().push(name);
                    let text = trace.strings.get(name);
                    packets.begin(mark.time_nanos, Track::Thread(mark.thread), "annotation", text, &[])?;
                }
                MarkKind::CacheLimit(_) => {}
                MarkKind::AnnotationEnd => {
                    if self.annotations.get_mut(&mark.thread).and_then(Vec::pop).is_some() {
                        packets.end(mark.time_nanos, Track::Thread(mark.thread))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn new_step(&mut self, number: u64, nanos: u64, packets: &mut Packets<'_>) -> Result<(), FormatError> {
        self.end_evaluations(packets)?;
        if self.step.is_some() {
            packets.end(nanos, Track::Steps)?;
        }
        self.step = Some(number);
        self.begin_step(nanos, packets)
    }

    fn begin_step(&self, nanos: u64, packets: &mut Packets<'_>) -> Result<(), FormatError> {
        let Some(number) = self.step else { return Ok(()) };
        packets.begin(nanos, Track::Steps, "step", &format!("step {number}"), &[("step", number)])
    }

    /// An allocation begins or extends an evaluation; what another line made happen on that thread ends it.
    pub(super) fn event(&mut self, event: &Event, packets: &mut Packets<'_>) -> Result<(), FormatError> {
        if event.triggered == StackId(0) {
            return Ok(());
        }
        if let Some(open) = self.evaluations.get(&event.thread).filter(|open| open.triggered != event.triggered) {
            self.write(event.thread, *open, packets)?;
            self.evaluations.remove(&event.thread);
        }
        if event.action.is_alloc() {
            let nanos = event.time_nanos;
            let fresh =
                Evaluation { triggered: event.triggered, start_nanos: nanos, end_nanos: nanos, bytes: 0, buffers: 0 };
            let open = self.evaluations.entry(event.thread).or_insert(fresh);
            open.end_nanos = nanos;
            open.bytes = open.bytes.saturating_add(event.size);
            open.buffers += 1;
        }
        Ok(())
    }

    fn end_evaluations(&mut self, packets: &mut Packets<'_>) -> Result<(), FormatError> {
        for (thread, open) in std::mem::take(&mut self.evaluations) {
            self.write(thread, open, packets)?;
        }
        Ok(())
    }

    fn write(&self, thread: ThreadId, done: Evaluation, packets: &mut Packets<'_>) -> Result<(), FormatError> {
        let track = Track::Evaluations(thread);
        let numbers = [("bytes", done.bytes), ("buffers", done.buffers)];
        packets.begin(done.start_nanos, track, "evaluation", &self.name(done.triggered), &numbers)?;
        packets.end(done.end_nanos, track)
    }

    /// "eval train.py:57".
    fn name(&self, triggered: StackId) -> String {
        let trace = self.recording.trace;
        let Some(line) = self.recording.lines.get(triggered.index()).copied().flatten() else {
            return "eval".to_owned();
        };
        let frame = trace.stacks.frame(line);
        let path = trace.strings.get(frame.file);
        format!("eval {}:{}", path.rsplit(['/', '\\']).next().unwrap_or(path), frame.line)
    }

    /// Takes in the remaining marks and ends what is open.
    pub(super) fn finish(mut self, packets: &mut Packets<'_>) -> Result<(), FormatError> {
        self.marks_before(u64::MAX, packets)?;
        self.end_evaluations(packets)?;
        let end = end_nanos(self.recording.trace);
        for (thread, names) in std::mem::take(&mut self.annotations) {
            for _ in names {
                packets.end(end, Track::Thread(thread))?;
            }
        }
        if self.step.is_some() { packets.end(end, Track::Steps) } else { Ok(()) }
    }
}
