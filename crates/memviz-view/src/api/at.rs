//! `at`: which block is at a height of the stack.

use serde_json::json;

use super::{Api, moment};
use crate::answer::{Answer, Refusal};
use crate::query::Query;

pub(super) fn answer(api: &Api, query: &str) -> Result<Answer, Refusal> {
    let query = Query::new(query, &["r", "event", "height"], &[])?;
    let height = query.real("height")?;
    let loaded = api.asked(&query)?;
    let moment = moment(&query, "event", &loaded)?;
    // The cast keeps to the range of u64.
    let block = if height < 0.0 { None } else { loaded.layout().block_at(moment, height as u64) };
    Ok(Answer::json(&json!({ "block": block })))
}
