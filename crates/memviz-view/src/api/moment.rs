//! `moment`: what was live, by group; of two moments also the difference.

use memviz_layout::{By, Groups, Moment};
use memviz_trace::{Action, Trace};
use serde_json::{Value, json};

use super::{Api, by, maybe_moment, moment, timeline};
use crate::answer::{Answer, Refusal};
use crate::clip;
use crate::query::Query;
use crate::store::Loaded;

/// Rows when the request doesn't say.
const ROWS: usize = 1000;
/// Rows at most.
const MOST_ROWS: usize = 10_000;

/// Bytes and number of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) bytes: u64,
    pub(super) count: u64,
}

impl Amount {
    pub(super) fn add(&mut self, bytes: u64, count: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.count = self.count.saturating_add(count);
    }

    pub(super) fn json(self) -> Value {
        json!({ "bytes": clip::number(self.bytes), "count": clip::number(self.count) })
    }
}

/// The row of active bytes whose blocks are not known one by one.
pub(super) const NOT_LISTED: (&str, &str) = ("not known one by one", "not-listed");

/// Live bytes of every group, and those of no known block: together the active bytes.
struct Live {
    groups: Vec<Amount>,
    not_listed: u64,
    all: Amount,
}

impl Live {
    fn at(loaded: &Loaded, groups: &Groups, moment: Moment) -> Live {
        let layout = loaded.layout();
        let mut live = Live { groups: vec![Amount::default(); groups.len()], not_listed: 0, all: Amount::default() };
        for id in layout.live_blocks(moment) {
            let size = layout.block(id).map_or(0, |block| block.size);
            if let Some(group) = live.groups.get_mut(groups.of(id) as usize) {
                group.add(size, 1);
            }
            live.all.add(size, 1);
        }
        let active = layout.totals_at(moment).active;
        live.not_listed = active.saturating_sub(live.all.bytes);
        live.all.bytes = active.max(live.all.bytes);
        live
    }
}

/// A row: its group (`None` for what is not listed), now and then.
struct Row {
    group: Option<u32>,
    now: Amount,
    then: Amount,
}

pub(super) fn answer(api: &Api, query: &str) -> Result<Answer, Refusal> {
    let query = Query::new(query, &["r", "event", "by", "other", "limit"], &[])?;
    let by = by(&query)?;
    let limit = query.maybe_whole("limit")?.unwrap_or(ROWS).min(MOST_ROWS);
    let loaded = api.asked(&query)?;
    let at = moment(&query, "event", &loaded)?;
    let other = maybe_moment(&query, "other", &loaded)?;
    Ok(Answer::json(&table(&loaded, by, at, other, limit)))
}

fn table(loaded: &Loaded, by: By, at: Moment, other: Option<Moment>, limit: usize) -> Value {
    let (layout, trace, groups) = (loaded.layout(), loaded.trace(), loaded.groups(by));
    let now = Live::at(loaded, groups, at);
    let then = other.map(|other| Live::at(loaded, groups, other));
    let mut rows = rows(&now, then.as_ref());
    rows.sort_by_key(|row| std::cmp::Reverse(row.weight(then.is_some())));
    let cut = rows.split_off(limit.min(rows.len()));
    let left = cut.iter().fold(Amount::default(), |mut sum, row| {
        sum.add(row.now.bytes, row.now.count);
        sum
    });
    let place = layout.place(trace, at);
    let cached = Amount { bytes: layout.totals_at(at).cached, count: cached_count(trace, at) };
    let mut table = json!({
        "schema": 1, "event": at, "nanos": clip::number(place.nanos), "step": place.step_number.map(clip::number),
        "by": by.name(), "active": now.all.json(), "cached": cached.json(),
        "groups": rows.iter().map(|row| row.json(groups, then.is_some())).collect::<Vec<_>>(),
        "left_out": { "groups": cut.len(), "bytes": clip::number(left.bytes), "count": clip::number(left.count) },
    });
    if let Some(then) = then {
        table["other_active"] = then.all.json();
    }
    table
}

fn rows(now: &Live, then: Option<&Live>) -> Vec<Row> {
    let before = |group: usize| then.and_then(|then| then.groups.get(group)).copied().unwrap_or_default();
    let groups = now.groups.iter().enumerate();
    let mut rows: Vec<Row> = groups
        .map(|(group, amount)| Row { group: Some(clip::short(group)), now: *amount, then: before(group) })
        .collect();
    let not_listed = |bytes| Amount { bytes, count: 0 };
    let unlisted_then = not_listed(then.map_or(0, |then| then.not_listed));
    rows.push(Row { group: None, now: not_listed(now.not_listed), then: unlisted_then });
    rows.retain(|row| row.now != Amount::default() || row.then != Amount::default());
    rows
}

impl Row {
    fn weight(&self, is_difference: bool) -> (u64, u64) {
        match is_difference {
            true => (self.now.bytes.abs_diff(self.then.bytes), self.now.bytes),
            false => (self.now.bytes, self.now.count),
        }
    }

    fn json(&self, groups: &Groups, is_difference: bool) -> Value {
        let not_listed = || json!({ "name": NOT_LISTED.0, "key": NOT_LISTED.1 });
        let mut row = self.group.map_or_else(not_listed, |group| timeline::described(groups, group));
        row["bytes"] = json!(clip::number(self.now.bytes));
        row["count"] = json!(clip::number(self.now.count));
        if is_difference {
            row["other_bytes"] = json!(clip::number(self.then.bytes));
            row["other_count"] = json!(clip::number(self.then.count));
        }
        row
    }
}

/// Cached buffers by counting: exact in a recording that passes its check.
fn cached_count(trace: &Trace, moment: Moment) -> u64 {
    let start = trace.start.iter().filter(|buffer| buffer.is_cached).count() as i64;
    let events = trace.events.get(..moment as usize).unwrap_or_default();
    let change = events.iter().map(|event| match event.action {
        Action::FreeActiveToCache => 1,
        Action::AllocReuse | Action::FreeCacheToOs => -1,
        _ => 0,
    });
    u64::try_from(start + change.sum::<i64>()).unwrap_or(0)
}
