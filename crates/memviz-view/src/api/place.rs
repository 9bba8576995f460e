//! `place`: a moment on all three axes, by position, by number or by name.

use memviz_layout::Moment;
use serde_json::json;

use super::{Api, axis, maybe_moment, moment};
use crate::answer::{Answer, Refusal};
use crate::clip;
use crate::query::{Query, wrong};
use crate::store::Loaded;

pub(super) fn answer(api: &Api, query: &str) -> Result<Answer, Refusal> {
    let query = Query::new(query, &["r", "axis", "at", "event", "name"], &[])?;
    let loaded = api.asked(&query)?;
    let (layout, trace) = (loaded.layout(), loaded.trace());
    let found = match query.filled("name") {
        Some(name) => named(&query, &loaded, name)?,
        None if query.get("event").is_some() => moment(&query, "event", &loaded)?,
        None => layout.moment_of(trace, axis(&query)?, query.real("at")?)?,
    };
    let place = layout.place(trace, found);
    Ok(Answer::json(&json!({
        "event": place.event,
        "nanos": clip::number(place.nanos),
        "time": place.time.min(clip::float(clip::MOST)),
        "step": place.step.map(|step| step.min(clip::float(clip::MOST))),
    })))
}

/// The moment of that name, seen from `event`. Before the first step and after the last are the start and the end.
fn named(query: &Query, loaded: &Loaded, name: &str) -> Result<Moment, Refusal> {
    let layout = loaded.layout();
    let from = maybe_moment(query, "event", loaded)?.unwrap_or(0);
    Ok(match name {
        "peak-active" => layout.peak_active().event,
        "peak-reserved" => layout.peak_reserved().event,
        "start" => 0,
        "end" => layout.events(),
        "next-step" => layout.next_step(from).unwrap_or(layout.events()),
        "previous-step" => layout.previous_step(from).unwrap_or(0),
        other => {
            let expected = "peak-active, peak-reserved, end, start, next-step or previous-step";
            return Err(wrong("name", other, expected));
        }
    })
}
