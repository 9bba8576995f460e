//! One row per event of the trace.

use memviz_trace::{Action, Event, Ledger, Totals};

use super::{Cell, Kind, Lined, Sink, Texts, secs, stack};
use crate::FormatError;

pub(super) const COLUMNS: &[(&str, Kind)] = &[
    ("rank", Kind::Int),
    ("index", Kind::Int),
    ("time_s", Kind::Float),
    ("time_nanos", Kind::Int),
    ("unix_micros", Kind::Int),
    ("action", Kind::Text),
    ("addr", Kind::Unsigned),
    ("size", Kind::Int),
    ("requested", Kind::Int),
    ("active_change", Kind::Int),
    ("cached_change", Kind::Int),
    ("active", Kind::Int),
    ("cached", Kind::Int),
    ("reserved", Kind::Int),
    ("primitive", Kind::Text),
    ("is_temporary", Kind::Bool),
    ("dtype", Kind::Text),
    ("shape", Kind::Text),
    ("file", Kind::Text),
    ("line", Kind::Int),
    ("function", Kind::Text),
    ("triggered_file", Kind::Text),
    ("triggered_line", Kind::Int),
    ("triggered_function", Kind::Text),
    ("built_stack", Kind::Int),
    ("triggered_stack", Kind::Int),
    ("step", Kind::Int),
    ("annotation", Kind::Text),
    ("thread", Kind::Text),
    ("stream", Kind::Int),
    ("device", Kind::Text),
    ("array", Kind::Int),
];

pub(super) fn rows(recording: &Lined<'_>, sink: &mut dyn Sink) -> Result<(), FormatError> {
    let trace = recording.trace;
    let mut texts = Texts::new(recording);
    let mut ledger = Ledger::at_start(trace).unwrap_or_default();
    let mut marks = trace.mark_cursor();
    for (index, event) in (trace.first_index..).zip(&trace.events) {
        marks.advance_to(index);
        texts.annotate(&marks, event.thread);
        let before = ledger.totals();
        // An event that contradicts those before it changes nothing, as in every report.
        let _skipped = ledger.apply(event);
        sink.row(&row(&texts, index, event, before, ledger.totals(), marks.step()))?;
    }
    Ok(())
}

fn row<'a>(
    texts: &'a Texts<'_>,
    index: u64,
    event: &Event,
    before: Totals,
    after: Totals,
    step: Option<u64>,
) -> [Cell<'a>; COLUMNS.len()] {
    let start_micros = texts.recording.trace.header.start_unix_micros;
    let [addr, size, requested] = numbers(event);
    let [primitive, is_temporary, dtype, shape] = texts.what(event.what);
    let [file, line, function] = texts.place(texts.line_of(event.built, event.triggered));
    let [triggered_file, triggered_line, triggered_function] = texts.place(texts.line(event.triggered));
    let [stream, device] = texts.stream(event.stream, event.device);
    [
        texts.rank(),
        Cell::size(index),
        secs(event.time_nanos),
        Cell::size(event.time_nanos),
        Cell::size(start_micros.saturating_add(event.time_nanos / 1000)),
        Cell::Text(event.action.name()),
        addr,
        size,
        requested,
        difference(before.active, after.active),
        difference(before.cached, after.cached),
        Cell::size(after.active),
        Cell::size(after.cached),
        Cell::size(after.active.saturating_add(after.cached)),
        primitive,
        is_temporary,
        dtype,
        shape,
        file,
        line,
        function,
        triggered_file,
        triggered_line,
        triggered_function,
        stack(event.built),
        stack(event.triggered),
        Cell::size_or_null(step),
        Cell::text(&texts.annotation.text),
        texts.thread(event.thread),
        stream,
        device,
        if event.action.is_array() { Cell::Int(event.slack.into()) } else { Cell::Null },
    ]
}

/// addr, size, requested: `FilteredNet` keeps changes there, and an `Oom` has no buffer.
fn numbers(event: &Event) -> [Cell<'static>; 3] {
    match event.action {
        Action::FilteredNet => [Cell::Null; 3],
        Action::Oom | Action::Snapshot => [Cell::Null, Cell::size(event.size), Cell::Null],
        _ if event.action.is_array() => [Cell::Unsigned(event.addr), Cell::size(event.size), Cell::Null],
        _ => [Cell::Unsigned(event.addr), Cell::size(event.size), Cell::size(event.requested())],
    }
}

fn difference(before: u64, after: u64) -> Cell<'static> {
    let change = i128::from(after) - i128::from(before);
    Cell::Int(change.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}
