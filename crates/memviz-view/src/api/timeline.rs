//! `timeline`: bricks or areas of one viewport.

use memviz_layout::{Bricks, Groups, Picture, Viewport};
use serde_json::{Value, json};

use super::{Api, by, window};
use crate::answer::{Answer, Refusal};
use crate::clip;
use crate::frame::Frame;
use crate::query::{Query, wrong};

const KNOWN: [&str; 10] = ["r", "axis", "from", "to", "columns", "low", "high", "rows", "by", "areas"];

pub(super) fn answer(api: &Api, query: &str) -> Result<Answer, Refusal> {
    let query = Query::new(query, &KNOWN, &[])?;
    let (by, window) = (by(&query)?, window(&query)?);
    let (low, high) = query.span("low", "high")?;
    let areas = match query.filled("areas") {
        None | Some("0") => false,
        Some("1") => true,
        Some(other) => return Err(wrong("areas", other, "1 or nothing")),
    };
    let view = Viewport { window, low, high, rows: query.pixels("rows")?, areas };
    let loaded = api.asked(&query)?;
    let groups = loaded.groups(by);
    let scene = loaded.layout().timeline(loaded.trace(), groups, &view)?;
    let bricks = if let Picture::Bricks(bricks) = &scene.picture { bricks.block.len() } else { 0 };
    let mut frame = Frame::new(json!({
        "axis": window.axis.name(), "from": window.from, "to": window.to, "columns": window.columns,
        "low": low, "high": high, "rows": view.rows, "by": by.name(),
        "groups": scene.groups.iter().map(|group| described(groups, *group)).collect::<Vec<_>>(),
        "bricks": bricks, "small": clip::number(scene.small),
    }));
    frame.u32("moment", scene.moment.iter().copied());
    for (name, values) in
        [("active", &scene.active), ("lowest", &scene.lowest), ("rest", &scene.rest), ("outside", &scene.outside)]
    {
        bytes(&mut frame, name, values);
    }
    match &scene.picture {
        Picture::Bricks(bricks) => encode(&mut frame, bricks),
        Picture::Areas(areas) => bytes(&mut frame, "area", areas),
    }
    Ok(Answer::frame(frame.finish()))
}

/// Name and key of a group.
pub(super) fn described(groups: &Groups, group: u32) -> Value {
    json!({ "name": clip::text(groups.name(group)), "key": groups.key(group) })
}

/// Bytes below 2^53; NaN stays.
pub(super) fn bytes(frame: &mut Frame, name: &str, values: &[f64]) {
    let most = clip::float(clip::MOST);
    frame.f64(name, values.iter().map(|value| if *value > most { most } else { *value }));
}

fn encode(frame: &mut Frame, bricks: &Bricks) {
    frame.u32("brick_block", bricks.block.iter().copied());
    bytes(frame, "brick_size", &bricks.size);
    frame.u32("brick_group", bricks.group.iter().copied());
    frame.u32("brick_run", bricks.run.iter().copied());
    frame.u32("run_from", bricks.run_from.iter().copied());
    frame.u32("run_to", bricks.run_to.iter().copied());
    frame.f32("run_bottom", bricks.run_bottom.iter().copied());
}
