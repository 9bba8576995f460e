//! One row per event of the trace.

use memviz_trace::{Action, Event, Ledger, Totals};

use super::{Cell, Kind, Lined, OWNER, RAN_ON, Sink, Texts, joined, secs};
use crate::FormatError;

pub(super) const COLUMNS: &[(&str, Kind)] = &joined::<_, 32>(&[
    &[
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
    ],
    &OWNER,
    &[("step", Kind::Int), ("annotation", Kind::Text)],
    &RAN_ON,
    &[("array", Kind::Int)],
]);

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
    joined(&[
        &[
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
        ],
        &texts.owner(event.what, event.built, event.triggered),
        &[Cell::size_or_null(step), Cell::text(&texts.annotation.text)],
        &texts.ran_on(event.thread, event.stream, event.device),
        &[if event.action.is_array() { Cell::Int(event.slack.into()) } else { Cell::Null }],
    ])
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
