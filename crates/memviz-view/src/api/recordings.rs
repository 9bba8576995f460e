//! `recordings`: what there is, and what can be asked about it.

use memviz_analyze::{Ended, NeedsArrays};
use serde_json::{Value, json};

use super::{Api, names};
use crate::answer::{Answer, Refusal};
use crate::clip;
use crate::query::Query;
use crate::store::{Entry, EntryState, Loaded};

/// Notes of one recording.
const MOST_NOTES: usize = 50;

pub(super) fn answer(api: &Api, query: &str) -> Result<Answer, Refusal> {
    Query::new(query, &[], &[])?;
    let recordings: Vec<Value> = api.store.entries().iter().enumerate().map(|(r, entry)| describe(r, entry)).collect();
    Ok(Answer::json(&json!({
        "schema": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "form": "server",
        "left_out": [],
        "recordings": recordings,
    })))
}

fn describe(r: usize, entry: &Entry) -> Value {
    let mut value = match &entry.state {
        EntryState::Ready(loaded) => ready(loaded),
        EntryState::Reading(part) => unknown("reading", *part, None),
        EntryState::Failed(error) => unknown("failed", 0.0, Some(error)),
    };
    value["r"] = json!(r);
    value["name"] = json!(clip::text(&entry.name));
    value["path"] = json!(clip::text(&entry.path));
    value
}

/// A recording of which nothing is known yet has every field all the same.
fn unknown(state: &str, read: f64, error: Option<&String>) -> Value {
    let nothing = json!({ "event": 0, "nanos": 0, "bytes": 0 });
    let why_not = error.map_or_else(|| "it is still being read".to_owned(), |error| clip::text(error).into_owned());
    json!({
        "state": state, "read": read, "error": error.map(|error| clip::text(error)),
        "kind": "memviz", "device": "", "backend": "", "rank": null,
        "command": "", "mlx_version": "", "python_version": "", "level": "",
        "events": 0, "blocks": 0, "from_nanos": 0, "to_nanos": 0, "start_unix_nanos": "",
        "steps": null, "peak_active": nothing, "peak_reserved": nothing, "end_active": 0, "end_reserved": 0,
        "ending": null, "notes": [], "annotated": false,
        "can": { "pinned": why_not, "retrace": why_not, "whatif": why_not },
    })
}

fn ready(loaded: &Loaded) -> Value {
    let (trace, layout, facts) = (loaded.trace(), loaded.layout(), loaded.facts());
    let header = &trace.header;
    let peak = |at: memviz_layout::PeakAt| {
        let nanos = layout.place(trace, at.event).nanos;
        json!({ "event": at.event, "nanos": clip::number(nanos), "bytes": clip::number(at.bytes) })
    };
    let start = header.start_unix_micros;
    json!({
        "state": "ready", "read": 1.0, "error": null,
        "kind": facts.kind,
        "device": names::device(facts.device),
        "backend": clip::text(&header.backend),
        "rank": header.rank,
        "command": clip::owned(header.command.iter().map(|word| clip::text(word)).take(clip::MOST_CHARS).collect::<Vec<_>>().join(" ")),
        "mlx_version": clip::text(&header.mlx_version),
        "python_version": clip::text(&header.python_version),
        "level": clip::text(&header.level),
        "events": layout.events(),
        "blocks": layout.blocks(),
        "from_nanos": clip::number(facts.from_nanos),
        "to_nanos": clip::number(facts.to_nanos),
        "start_unix_nanos": if start == 0 { String::new() } else { (u128::from(start) * 1000).to_string() },
        "steps": facts.steps.map(|(first, last)| [clip::number(first), clip::number(last)]),
        "peak_active": peak(layout.peak_active()),
        "peak_reserved": peak(layout.peak_reserved()),
        "end_active": clip::number(facts.end.active),
        "end_reserved": clip::number(facts.end.reserved()),
        "ending": ending(loaded),
        "notes": notes(loaded),
        "annotated": facts.is_annotated,
        "can": can(loaded),
    })
}

fn ending(loaded: &Loaded) -> Value {
    let ended = Ended::new(loaded.trace());
    if ended.kind == "unknown" {
        return Value::Null;
    }
    let place = ended.line.as_ref().map_or_else(String::new, names::stack_line);
    json!({ "kind": ended.kind, "detail": clip::text(&ended.detail), "where": place })
}

/// What may be missing, and what doesn't hold.
fn notes(loaded: &Loaded) -> Vec<String> {
    let facts = loaded.facts();
    let mut notes: Vec<String> = facts.notes.iter().take(MOST_NOTES).map(|note| clip::owned(note.as_str())).collect();
    if facts.notes.len() > MOST_NOTES {
        notes.push(format!("{} more notes: `memviz report` prints them", facts.notes.len() - MOST_NOTES));
    }
    notes
}

fn can(loaded: &Loaded) -> Value {
    let facts = loaded.facts();
    let arrays = if facts.has_arrays { Value::Bool(true) } else { json!(NeedsArrays.to_string()) };
    let none = "the recording has no allocations, so there is nothing to replay";
    let whatif = if facts.has_allocations { Value::Bool(true) } else { json!(none) };
    json!({ "pinned": arrays, "retrace": arrays, "whatif": whatif })
}
