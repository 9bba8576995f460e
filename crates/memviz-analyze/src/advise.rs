//! What to do about the cache: advice with its number, got by replaying the recording, or nothing.
//!
//! A limit is found by replays under the recording's own policy, and its numbers are those of the replay at that limit. A
//! gain below [`LEAST_BYTES`] is not worth a line. Not here: what a replay is (`simulate`), near misses (`cache`).

use memviz_trace::Trace;
use serde::Serialize;

use crate::about::About;
use crate::cache::{Cache, NearMiss};
use crate::calls::Calls;
use crate::held::StackLine;
use crate::replay::{Replay, ReplayOptions, SweepPoint};
use crate::scenario::{Scenario, ScenarioOptions};
use crate::simulate::{Outcome, simulate};

/// Version of the JSON form of [`Advise`]; a field that changes its meaning or goes raises it.
pub const ADVISE_SCHEMA: u32 = 1;
/// Smaller gains are not mentioned.
const LEAST_BYTES: u64 = 16 << 20;
/// No limit: no recording comes near.
const UNLIMITED: u64 = 1 << 60;
/// Halvings of a limit that are told.
const HALVINGS: usize = 6;
/// Lines of sizes that defeat the cache.
const MOST_NEAR_MISSES: usize = 3;
/// Limits are whole MiB.
const MIB: u64 = 1 << 20;

/// All advice about a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advise {
    /// [`ADVISE_SCHEMA`].
    pub schema: u32,
    /// The run.
    pub about: About,
    /// The run as it was, replayed.
    pub now: SweepPoint,
    /// What there is to say; empty when there is nothing.
    pub advice: Vec<Advice>,
    /// The advised limit and its halvings down to no cache: what each costs.
    pub halvings: Vec<SweepPoint>,
}

/// One thing to do, or to know.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Advice {
    /// The cache is too small: a higher limit makes fewer buffers.
    RaiseLimit {
        /// `mx.set_cache_limit` of this.
        to: SweepPoint,
    },
    /// The cache keeps more than it needs for the same hits.
    LowerLimit {
        /// `mx.set_cache_limit` of this.
        to: SweepPoint,
        /// Less active and cached bytes at the peak.
        saves_bytes: u64,
    },
    /// Bytes that went into the cache and were never used again.
    NeverReused {
        /// Evicted, or left at the end.
        bytes: u64,
        /// All that went in.
        of_bytes: u64,
        /// The line with most of them.
        line: StackLine,
    },
    /// A line that asks for sizes just outside of what cached buffers serve.
    DefeatsCache(NearMiss),
    /// `mx.clear_cache()` at each step lowers the peak.
    ClearEveryStep {
        /// Less active and cached bytes at the peak.
        saves_bytes: u64,
        /// More bytes that the system has to make.
        costs_bytes: u64,
        /// Steps that are marked.
        steps: u64,
    },
    /// Whether the run fits a machine.
    Fits {
        /// The machine, as the user named it.
        device: String,
        /// It does.
        fits: bool,
        /// Most active and cached bytes there.
        peak_bytes: u64,
        /// Its memory.
        memory_bytes: u64,
    },
}

impl Advise {
    /// Advice about `trace`; `device` asks whether it fits there.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn new(trace: &Trace, scenario: &ScenarioOptions) -> Result<Advise, String> {
        let own = Scenario::new(trace, &ScenarioOptions::default()).or_else(|_| Scenario::new(trace, scenario))?;
        let calls = Calls::of(trace);
        let now = simulate(&calls, &own);
        let mut advice = Vec::new();
        let limit = limit_advice(&calls, &own, &now);
        let halvings = limit.as_ref().map_or_else(Vec::new, |(_, limit)| halvings(&calls, &own, *limit));
        advice.extend(limit.map(|(advice, _)| advice));
        advice.extend(cache_advice(trace));
        advice.extend(clear_advice(&calls, &own, &now));
        advice.extend(fits_advice(trace, scenario)?);
        let limit = own.cache_limit_at_start(calls.start_limit).unwrap_or(0);
        Ok(Advise {
            schema: ADVISE_SCHEMA,
            about: About::new(trace),
            now: SweepPoint::of(limit, &now),
            advice,
            halvings,
        })
    }
}

/// Does `a` reuse as well as `b`, to 1 %?
fn is_as_good(a: &Outcome, b: &Outcome) -> bool {
    let within = |a: u64, b: u64| a <= b.saturating_add(b / 100);
    within(a.tally.misses, b.tally.misses) && within(a.tally.made.bytes, b.tally.made.bytes)
}

/// The advice, and the limit that it names.
fn limit_advice(calls: &Calls, own: &Scenario, now: &Outcome) -> Option<(Advice, u64)> {
    let unlimited = simulate(calls, &own.with_cache_limit(UNLIMITED));
    if unlimited.tally.hits == 0 {
        return None;
    }
    let spared = now.tally.made.bytes.saturating_sub(unlimited.tally.made.bytes);
    let raises = spared >= LEAST_BYTES && now.tally.made.bytes > unlimited.tally.made.bytes.saturating_mul(2);
    let goal = if raises { &unlimited } else { now };
    let (limit, outcome) = smallest_limit(calls, own, goal, unlimited.most_cached.usage.cached)?;
    let to = SweepPoint::of(limit, &outcome);
    if raises {
        return Some((Advice::RaiseLimit { to }, limit));
    }
    let saves_bytes = SweepPoint::of(0, now).peak_reserved_bytes.saturating_sub(to.peak_reserved_bytes);
    (saves_bytes >= LEAST_BYTES).then_some((Advice::LowerLimit { to, saves_bytes }, limit))
}

/// The smallest limit in whole MiB that does as well as `goal`. Hits grow with the limit but for ties, so the range is
/// halved; what is returned was replayed.
fn smallest_limit(calls: &Calls, own: &Scenario, goal: &Outcome, most: u64) -> Option<(u64, Outcome)> {
    let (mut low, mut high) = (0, most.div_ceil(MIB));
    let at = |mib: u64| simulate(calls, &own.with_cache_limit(mib.saturating_mul(MIB)));
    let mut best = at(high);
    if !is_as_good(&best, goal) {
        return None;
    }
    while low < high {
        let middle = low.midpoint(high);
        let tried = at(middle);
        if is_as_good(&tried, goal) {
            (high, best) = (middle, tried);
        } else {
            low = middle + 1;
        }
    }
    Some((high.saturating_mul(MIB), best))
}

fn halvings(calls: &Calls, own: &Scenario, limit: u64) -> Vec<SweepPoint> {
    let halved = (0..HALVINGS).map(|times| limit >> times).take_while(|&limit| limit > 0);
    halved.chain([0]).map(|limit| SweepPoint::of(limit, &simulate(calls, &own.with_cache_limit(limit)))).collect()
}

fn cache_advice(trace: &Trace) -> Vec<Advice> {
    let cache = Cache::new(trace);
    let bytes = |row: &crate::cache::NotReused| row.evicted.bytes.saturating_add(row.left.bytes);
    let never = cache.not_reused.iter().map(bytes).fold(0, u64::saturating_add);
    let is_much = never >= LEAST_BYTES && never > cache.entered.bytes / 4;
    let row = cache.not_reused.first().filter(|_| is_much);
    let never =
        row.map(|row| Advice::NeverReused { bytes: never, of_bytes: cache.entered.bytes, line: row.line.clone() });
    let near = cache.near_misses.into_iter().filter(|near| near.bytes >= LEAST_BYTES).take(MOST_NEAR_MISSES);
    never.into_iter().chain(near.map(Advice::DefeatsCache)).collect()
}

fn clear_advice(calls: &Calls, own: &Scenario, now: &Outcome) -> Option<Advice> {
    if calls.steps == 0 {
        return None;
    }
    let clearing = Scenario { clears_every_step: true, ..own.clone() };
    let cleared = simulate(calls, &clearing);
    let peak = |outcome: &Outcome| SweepPoint::of(0, outcome).peak_reserved_bytes;
    let saves_bytes = peak(now).saturating_sub(peak(&cleared));
    let costs_bytes = cleared.tally.made.bytes.saturating_sub(now.tally.made.bytes);
    let steps = calls.steps;
    (saves_bytes >= LEAST_BYTES).then_some(Advice::ClearEveryStep { saves_bytes, costs_bytes, steps })
}

fn fits_advice(trace: &Trace, scenario: &ScenarioOptions) -> Result<Option<Advice>, String> {
    let Some((device, machine)) = &scenario.device else { return Ok(None) };
    let replay = Replay::new(trace, &ReplayOptions { scenario: scenario.clone(), sweep: None })?;
    Ok(Some(Advice::Fits {
        device: device.clone(),
        fits: replay.is_out_of_memory != Some(true),
        peak_bytes: replay.replayed.peak_reserved.reserved_bytes(),
        memory_bytes: machine.memory,
    }))
}
