//! `whatif`: the run replayed under another policy, with other limits or on another machine, as curves of a viewport.

use memviz_analyze::{BytesAt, ReplayedAt, ScenarioOptions, WhatIf, device_choices, device_from_text, policy_choices};
use memviz_layout::Moment;
use serde_json::{Map, Value, json};

use super::{Api, window};
use crate::answer::{Answer, Refusal};
use crate::clip;
use crate::frame::Frame;
use crate::query::Query;
use crate::store::Loaded;

const KNOWN: [&str; 9] = ["r", "axis", "from", "to", "columns", "policy", "device", "cache_limit", "memory_limit"];

pub(super) fn answer(api: &Api, query: &str) -> Result<Answer, Refusal> {
    let query = Query::new(query, &KNOWN, &[])?;
    let window = window(&query)?;
    let loaded = api.asked(&query)?;
    let options = options(&query, &loaded)?;
    let mut curve = Curve::new(loaded.layout().columns(loaded.trace(), &window)?);
    let answer = loaded.replayer().whatif(&options, |at| curve.note(at)).map_err(Refusal::bad)?;
    let mut header = numbers(&answer);
    header.insert("recorded".to_owned(), Value::Object(numbers(loaded.as_recorded())));
    let mut frame = Frame::new(Value::Object(header));
    for (name, value) in [("from", json!(window.from)), ("to", json!(window.to)), ("columns", json!(window.columns))] {
        frame.set(name, value);
    }
    let columns = curve.finish();
    for (at, name) in ["active", "cached", "reserved"].into_iter().enumerate() {
        frame.f64(name, columns.iter().map(|column| clip::float(column[at])));
    }
    Ok(Answer::frame(frame.finish()))
}

fn options(query: &Query, loaded: &Loaded) -> Result<ScenarioOptions, Refusal> {
    let device = query.filled("device").map(|name| Ok((name.to_owned(), device_from_text(name)?))).transpose();
    let device = device.map_err(|error: String| Refusal::bad(error))?;
    // PyTorch's snapshots were recorded under PyTorch's allocator.
    let own = (loaded.facts().kind == "torch" && device.is_none()).then_some("pytorch");
    Ok(ScenarioOptions {
        policy: query.filled("policy").or(own).map(str::to_owned),
        cache_limit: query.maybe_bytes("cache_limit")?,
        memory_limit: query.maybe_bytes("memory_limit")?,
        device,
        clears_every_step: false,
    })
}

fn numbers(run: &WhatIf) -> Map<String, Value> {
    let at = |at: BytesAt| json!({ "event": clip::count(at.event), "bytes": clip::number(at.bytes) });
    let fields = [
        ("peak_active", at(run.peak_active)),
        ("peak_reserved", at(run.peak_reserved)),
        ("hit_rate", json!(run.hit_rate)),
        ("hits", json!(clip::number(run.hits))),
        ("misses", json!(clip::number(run.misses))),
        ("os_allocations", json!(clip::number(run.made.count))),
        ("os_bytes", json!(clip::number(run.made.bytes))),
        ("evictions", json!(clip::number(run.evicted.count))),
        ("out_of_memory", run.out_of_memory.map_or(Value::Null, at)),
        ("policy", json!(run.policy)),
        ("cache_limit", json!(run.cache_limit.map(clip::number))),
        ("memory_limit", json!(run.memory_limit.map(clip::number))),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// `whatif/choices`: what the menus offer and where the sliders are.
pub(super) fn choices(api: &Api, query: &str) -> Result<Answer, Refusal> {
    let query = Query::new(query, &["r"], &[])?;
    let loaded = api.asked(&query)?;
    let recorded = loaded.as_recorded();
    Ok(Answer::json(&json!({
        "policies": policy_choices(),
        "devices": device_choices(),
        "cache_limit": recorded.cache_limit.map(clip::number),
        "memory_limit": recorded.memory_limit.map(clip::number),
        "largest": clip::number(recorded.peak_reserved.bytes),
    })))
}

/// The highest sums of each column: those of the state it begins with, and of every later one in it.
struct Curve {
    /// First and last moment of each column.
    columns: Vec<(Moment, Moment)>,
    at: usize,
    now: [u64; 3],
    most: Vec<[u64; 3]>,
}

impl Curve {
    fn new(columns: Vec<(Moment, Moment)>) -> Curve {
        Curve { at: 0, now: [0; 3], most: vec![[0; 3]; columns.len()], columns }
    }

    fn note(&mut self, told: ReplayedAt) {
        let sums = [told.active_bytes, told.cached_bytes, told.reserved_bytes()];
        let event = Moment::try_from(told.after_events).unwrap_or(Moment::MAX);
        while self.columns.get(self.at).is_some_and(|(_, last)| *last < event) {
            raise(&mut self.most[self.at], self.now);
            self.at += 1;
        }
        if let Some((first, _)) = self.columns.get(self.at).copied() {
            if first < event {
                raise(&mut self.most[self.at], self.now);
            }
            if first <= event {
                raise(&mut self.most[self.at], sums);
            }
        }
        self.now = sums;
    }

    fn finish(mut self) -> Vec<[u64; 3]> {
        for column in self.most.iter_mut().skip(self.at) {
            raise(column, self.now);
        }
        self.most
    }
}

fn raise(most: &mut [u64; 3], now: [u64; 3]) {
    most.iter_mut().zip(now).for_each(|(most, now)| *most = now.max(*most));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_shows_what_it_begins_with_and_all_that_follows() {
        let mut curve = Curve::new(vec![(0, 0), (0, 2), (3, 3), (3, 3), (4, 9)]);
        for (after_events, active_bytes) in [(0, 1), (1, 9), (2, 4), (4, 6), (5, 2)] {
            curve.note(ReplayedAt { after_events, active_bytes, cached_bytes: 0 });
        }
        let active: Vec<u64> = curve.finish().iter().map(|column| column[0]).collect();
        assert_eq!(active, [1, 9, 4, 4, 6]);
    }
}
