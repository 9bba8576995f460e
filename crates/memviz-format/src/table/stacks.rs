//! One row per stack that an event or a buffer names: all frames, outermost first, and the user's line.

use memviz_trace::{FrameId, StackId};
use rustc_hash::FxHashSet;

use super::{Cell, Kind, Lined, Sink, Texts, stack};
use crate::FormatError;
use crate::profile::frame_name;

pub(super) const COLUMNS: &[(&str, Kind)] = &[
    ("rank", Kind::Int),
    ("stack", Kind::Int),
    ("file", Kind::Text),
    ("line", Kind::Int),
    ("function", Kind::Text),
    ("depth", Kind::Int),
    ("frames", Kind::Text),
];

pub(super) fn rows(recording: &Lined<'_>, sink: &mut dyn Sink) -> Result<(), FormatError> {
    let trace = recording.trace;
    let texts = Texts::new(recording);
    let of_events = trace.events.iter().flat_map(|event| [event.built, event.triggered]);
    let of_start = trace.start.iter().flat_map(|buffer| [buffer.built, buffer.triggered]);
    let used: FxHashSet<StackId> = of_events.chain(of_start).filter(|id| *id != StackId(0)).collect();
    let mut used: Vec<StackId> = used.into_iter().collect();
    used.sort_unstable();
    for id in used {
        let mut frames: Vec<FrameId> = trace.stacks.innermost_first(id).collect();
        frames.reverse();
        let names: Vec<String> = frames.iter().map(|frame| frame_name(trace, *frame)).collect();
        let [file, line, function] = texts.place(texts.line(id));
        let depth = Cell::Int(names.len() as i64);
        sink.row(&[texts.rank(), stack(id), file, line, function, depth, Cell::Text(&names.join(";"))])?;
    }
    Ok(())
}
