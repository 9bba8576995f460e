//! `bands`: what is drawn above the picture.

use serde_json::{Value, json};

use super::timeline::bytes;
use super::{Api, window};
use crate::answer::{Answer, Refusal};
use crate::clip;
use crate::frame::Frame;
use crate::query::Query;

pub(super) fn answer(api: &Api, query: &str) -> Result<Answer, Refusal> {
    let query = Query::new(query, &["r", "axis", "from", "to", "columns"], &[])?;
    let window = window(&query)?;
    let loaded = api.asked(&query)?;
    let bands = loaded.layout().bands(loaded.trace(), &window)?;
    let lanes = bands.lanes.iter().map(|lane| json!({ "kind": lane.kind, "name": clip::text(&lane.name) }));
    let marks = bands.marks.iter().map(|mark| {
        json!({ "at": mark.at, "event": mark.event, "kind": mark.kind, "label": clip::text(&mark.label), "count": mark.count })
    });
    let mut frame = Frame::new(json!({
        "axis": window.axis.name(), "from": window.from, "to": window.to, "columns": window.columns,
        "labels": bands.labels.iter().map(|label| clip::text(label)).collect::<Vec<_>>(),
        "lanes": lanes.collect::<Vec<Value>>(),
        "marks": marks.collect::<Vec<Value>>(),
    }));
    for (name, values) in [
        ("active", &bands.active),
        ("cached", &bands.cached),
        ("reserved", &bands.reserved),
        ("cache_limit", &bands.cache_limit),
        ("memory_limit", &bands.memory_limit),
        ("device_used", &bands.device_used),
    ] {
        bytes(&mut frame, name, values);
    }
    frame.u32("span_lane", bands.span_lane.iter().copied());
    frame.u32("span_label", bands.span_label.iter().copied());
    frame.f64("span_from", bands.span_from.iter().copied());
    frame.f64("span_to", bands.span_to.iter().copied());
    frame.u32("span_count", bands.span_count.iter().copied());
    Ok(Answer::frame(frame.finish()))
}
