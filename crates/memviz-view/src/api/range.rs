//! `range`: what was allocated, freed and left over between two moments, and what the cache served.

use memviz_layout::By;
use memviz_trace::Action;
use serde_json::{Value, json};

use super::moment::Amount;
use super::{Api, moment, timeline};
use crate::answer::{Answer, Refusal};
use crate::clip;
use crate::query::{Query, wrong};

/// Rows.
const MOST_ROWS: usize = 1000;

pub(super) fn answer(api: &Api, query: &str) -> Result<Answer, Refusal> {
    let query = Query::new(query, &["r", "from", "to"], &[])?;
    let loaded = api.asked(&query)?;
    let (from, to) = (moment(&query, "from", &loaded)?, moment(&query, "to", &loaded)?);
    if from > to {
        return Err(wrong("to", &to.to_string(), &format!("{from} or more")));
    }
    let (layout, trace, groups) = (loaded.layout(), loaded.trace(), loaded.groups(By::Line));
    let (mut allocated, mut survived, mut freed) = (Amount::default(), Amount::default(), Amount::default());
    let mut rows = vec![(Amount::default(), Amount::default()); groups.len()];
    for id in layout.born_in(from..to) {
        let Some(block) = layout.block(id) else { continue };
        let lives = u64::from(block.died > to);
        allocated.add(block.size, 1);
        survived.add(block.size * lives, lives);
        if let Some(row) = rows.get_mut(groups.of(id) as usize) {
            row.0.add(block.size, 1);
            row.1.add(block.size * lives, lives);
        }
    }
    for id in layout.died_in(from..to) {
        freed.add(layout.block(id).map_or(0, |block| block.size), 1);
    }
    let [mut hit, mut missed, mut to_os] = [Amount::default(); 3];
    let events = trace.events.get(from as usize..to as usize).unwrap_or_default();
    for event in events.iter().filter(|event| !event.is_move()) {
        match event.action {
            Action::AllocReuse => hit.add(event.size, 1),
            Action::AllocNew => missed.add(event.size, 1),
            Action::FreeActiveToOs | Action::FreeCacheToOs => to_os.add(event.size, 1),
            _ => {}
        }
    }
    let mut shown: Vec<(usize, (Amount, Amount))> =
        rows.into_iter().enumerate().filter(|(_, row)| row.0.count > 0).collect();
    shown.sort_by_key(|(_, row)| std::cmp::Reverse((row.0.bytes, row.0.count)));
    let cut = shown.split_off(MOST_ROWS.min(shown.len()));
    let left = cut.iter().fold(Amount::default(), |mut sum, (_, row)| {
        sum.add(row.0.bytes, row.0.count);
        sum
    });
    let described = |(group, (allocated, survived)): &(usize, (Amount, Amount))| {
        let mut row: Value = timeline::described(groups, clip::short(*group));
        row["allocated_bytes"] = json!(clip::number(allocated.bytes));
        row["allocated_count"] = json!(clip::number(allocated.count));
        row["survived_bytes"] = json!(clip::number(survived.bytes));
        row["survived_count"] = json!(clip::number(survived.count));
        row
    };
    let nanos = layout.place(trace, to).nanos.saturating_sub(layout.place(trace, from).nanos);
    Ok(Answer::json(&json!({
        "from": from, "to": to, "nanos": clip::number(nanos),
        "allocated": allocated.json(), "freed": freed.json(), "survived": survived.json(),
        "hit": hit.json(), "missed": missed.json(), "to_os": to_os.json(),
        "groups": shown.iter().map(described).collect::<Vec<_>>(),
        "left_out": { "groups": cut.len(), "bytes": clip::number(left.bytes), "count": clip::number(left.count) },
    })))
}
