//! One row per use of a buffer: from the allocation that made it active to the free that ended that, in order of the ends;
//! then what is active after the last event.

use memviz_trace::{Action, Buffer, Event, Ledger};
use rustc_hash::FxHashMap;

use super::{Cell, Kind, Lined, OWNER, RAN_ON, Sink, Texts, joined};
use crate::FormatError;

pub(super) const COLUMNS: &[(&str, Kind)] = &joined::<_, 30>(&[
    &[
        ("rank", Kind::Int),
        ("addr", Kind::Unsigned),
        ("size", Kind::Int),
        ("requested", Kind::Int),
        ("alloc_index", Kind::Int),
        ("free_index", Kind::Int),
        ("alloc_time_nanos", Kind::Int),
        ("free_time_nanos", Kind::Int),
        ("lifetime_nanos", Kind::Int),
        ("alloc_action", Kind::Text),
        ("free_action", Kind::Text),
        ("at_peak", Kind::Bool),
        ("step", Kind::Int),
        ("free_step", Kind::Int),
        ("annotation", Kind::Text),
    ],
    &OWNER,
    &RAN_ON,
]);

/// The beginning of a use. Without one, the buffer is older than the recording.
struct Begin {
    position: usize,
    action: Action,
    step: Option<u64>,
    annotation: String,
}

/// The end of a use. Without one, the buffer is active after the last event.
struct End<'e> {
    position: usize,
    event: &'e Event,
    step: Option<u64>,
}

pub(super) fn rows(recording: &Lined<'_>, sink: &mut dyn Sink) -> Result<(), FormatError> {
    let trace = recording.trace;
    let mut texts = Texts::new(recording);
    let mut ledger = Ledger::at_start(trace).unwrap_or_default();
    let mut marks = trace.mark_cursor();
    let mut begins: FxHashMap<u64, Begin> = FxHashMap::default();
    for (position, event) in trace.events.iter().enumerate() {
        marks.advance_to(trace.first_index + position as u64);
        let buffer = ledger.get(event.addr).copied().filter(|_| event.action.is_free());
        if ledger.apply(event).is_err() {
            continue;
        }
        if event.action.is_alloc() {
            texts.annotate(&marks, event.thread);
            let annotation = texts.annotation.text.clone();
            begins.insert(event.addr, Begin { position, action: event.action, step: marks.step(), annotation });
        } else if let Some(buffer) = buffer {
            let begin = begins.remove(&event.addr);
            let end = End { position, event, step: marks.step() };
            sink.row(&row(&texts, &buffer, begin.as_ref(), Some(&end)))?;
        }
    }
    for buffer in ledger.buffers().iter().filter(|buffer| !buffer.is_cached) {
        sink.row(&row(&texts, buffer, begins.get(&buffer.addr), None))?;
    }
    Ok(())
}

fn row<'a>(
    texts: &'a Texts<'_>,
    buffer: &Buffer,
    begin: Option<&'a Begin>,
    end: Option<&End<'_>>,
) -> [Cell<'a>; COLUMNS.len()] {
    let Lined { trace, peak_after_events: peak, .. } = texts.recording;
    let index = |position: usize| Cell::size(trace.first_index + position as u64);
    let begin_nanos = begin.map(|_| buffer.alloc_nanos);
    let end_nanos = end.map(|end| end.event.time_nanos);
    let lifetime = begin_nanos.zip(end_nanos).map(|(begin, end)| end.saturating_sub(begin));
    let at_peak = begin.is_none_or(|begin| begin.position < *peak) && end.is_none_or(|end| end.position >= *peak);
    joined(&[
        &[
            texts.rank(),
            Cell::Unsigned(buffer.addr),
            Cell::size(buffer.size),
            Cell::size(buffer.requested()),
            begin.map_or(Cell::Null, |begin| index(begin.position)),
            end.map_or(Cell::Null, |end| index(end.position)),
            Cell::size_or_null(begin_nanos),
            Cell::size_or_null(end_nanos),
            Cell::size_or_null(lifetime),
            begin.map_or(Cell::Null, |begin| Cell::Text(begin.action.name())),
            end.map_or(Cell::Null, |end| Cell::Text(end.event.action.name())),
            Cell::Bool(at_peak),
            Cell::size_or_null(begin.and_then(|begin| begin.step)),
            Cell::size_or_null(end.and_then(|end| end.step)),
            begin.map_or(Cell::Null, |begin| Cell::text(&begin.annotation)),
        ],
        &texts.owner(buffer.what, buffer.built, buffer.triggered),
        &texts.ran_on(buffer.thread, buffer.stream, buffer.device),
    ])
}
