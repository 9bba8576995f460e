//! "What if": a recorded run under another policy, other limits or on another machine.
//!
//! A replay asks the policy for what the program asked for, in the recorded order; it cannot know what the program would
//! have done after an allocation that is refused, so it goes on without that buffer and says when the first one was.
//! Buffers below a recording's minimum size are summed up only. Needs no stacks. Not here: what to do about it (`advise`).

use std::ops::Deref;

use memviz_trace::{Hits, Totals, Trace};
use serde::Serialize;

use crate::about::{About, duration_nanos};
use crate::agreement::Agreement;
use crate::at_peak::AtPeak;
use crate::calls::Calls;
use crate::held::Amount;
use crate::peak::{Moment, find_peaks};
use crate::replayer::Replayer;
use crate::scenario::{Scenario, ScenarioOptions};
use crate::simulate::{Columns, Highest, Outcome, simulate, simulate_each};

/// Version of the JSON form of [`Replay`]; a field that changes its meaning or goes raises it.
pub const REPLAY_SCHEMA: u32 = 1;
/// Slices of time of [`Replay::over_time`].
const COLUMNS: usize = 120;
/// Most points of a sweep.
const MOST_POINTS: usize = 1000;

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayOptions {
    /// Policy, limits, machine.
    pub scenario: ScenarioOptions,
    /// Cache limits to try, bytes: from, to, number of points.
    pub sweep: Option<(u64, u64, usize)>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replay {
    /// [`REPLAY_SCHEMA`].
    pub schema: u32,
    /// The run.
    pub about: About,
    /// Older events fell out of the ring: "before the recording" means before the events kept.
    pub is_window: bool,
    /// What it was replayed under.
    pub under: Under,
    /// As it was recorded.
    pub recorded: Counted,
    /// As it would have been.
    pub replayed: Counted,
    /// Blocks that exist, against what the device allows.
    pub most_blocks: Blocks,
    /// The first allocation that the policy refuses.
    pub refused: Option<Refusal>,
    /// Allocations that it refuses.
    pub refusals: u64,
    /// Bytes of the machine's memory, where the machine is known.
    pub memory_bytes: Option<u64>,
    /// When active and cached bytes exceed that memory for the first time.
    pub over_memory: Option<When>,
    /// An allocation is refused, or active and cached bytes exceed the machine's memory; `None` where neither can be known.
    pub is_out_of_memory: Option<bool>,
    /// What was alive at the replayed peak of active bytes.
    pub at_peak_active: AtPeak,
    /// And at that of active and cached ones; `None` where that is the same moment.
    pub at_peak_reserved: Option<AtPeak>,
    /// Highest bytes of equal slices of time.
    pub over_time: OverTime,
    /// A CPU run replayed as it was: does the model decide as MLX did? `None` where that cannot be compared.
    pub agreement: Option<Agreement>,
    /// Limits that were tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<SweepPoint>,
    /// Events that contradict those before them and were left out.
    pub skipped_events: u64,
    /// Buffers below this many bytes were not recorded one by one, so they are in no number but the sums.
    pub min_size_bytes: u64,
}

/// Policy, limits and machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Under {
    /// Name.
    pub policy: &'static str,
    /// What it mirrors, for people: "mlx 0.32.0 to 0.32.4".
    pub mirrors: String,
    /// Releases of MLX that have it; `None` for those that no MLX has.
    pub mlx_versions: Option<&'static str>,
    /// Machine, as the user named it.
    pub device: Option<String>,
    /// Limit at the start; `None` for a policy without one.
    pub cache_limit_bytes: Option<u64>,
    /// Limit at the start.
    pub memory_limit_bytes: u64,
    /// The cache is cleared at every step.
    pub clears_every_step: bool,
}

/// Numbers of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counted {
    /// Allocations that reused a cached buffer.
    pub hits: u64,
    /// Allocations that came new.
    pub misses: u64,
    /// `hits / (hits + misses)`; `None` without allocations.
    pub hit_rate: Option<f64>,
    /// Buffers, segments or pages that the system or driver made.
    pub made: Amount,
    /// Those that it got back.
    pub given_back: Amount,
    /// Of them, evicted from the cache.
    pub evicted: Amount,
    /// Most active bytes.
    pub peak_active: Moment,
    /// Most active and cached bytes.
    pub peak_reserved: Moment,
    /// The end.
    pub end: Moment,
}

/// A moment and the number of blocks then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Blocks {
    /// Blocks, active and cached.
    pub count: u64,
    /// Most that the device allows; `None` for no limit.
    pub limit: Option<u64>,
    /// When there were that many.
    pub at: When,
}

/// A moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct When {
    /// Events of the recording up to then.
    pub index: u64,
    /// Nanoseconds since the recording started.
    pub time_nanos: u64,
}

/// An allocation that a policy refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// When.
    pub at: When,
    /// Why, for people.
    pub reason: String,
}

/// Memory over time: three lists of the same length. [`Replayer::over_time`] gives it in any number of slices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OverTime {
    /// Nanoseconds that an entry stands for.
    pub width_nanos: u64,
    /// Most active bytes.
    pub active_bytes: Vec<u64>,
    /// Most cached bytes.
    pub cached_bytes: Vec<u64>,
    /// Most active and cached bytes; not necessarily at the moments of the two others.
    pub reserved_bytes: Vec<u64>,
}

/// The run under one cache limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SweepPoint {
    /// `mx.set_cache_limit`, bytes.
    pub cache_limit_bytes: u64,
    /// Hits by allocations.
    pub hit_rate: Option<f64>,
    /// Buffers that the system or driver made.
    pub made: Amount,
    /// Most active and cached bytes.
    pub peak_reserved_bytes: u64,
}

impl Replay {
    /// Replays `trace`.
    ///
    /// # Errors
    /// A sentence for the user: an unknown policy, a machine that is missing, a sweep without points.
    pub fn new(trace: &Trace, options: &ReplayOptions) -> Result<Replay, String> {
        Replayer::new(trace).replay(options)
    }
}

impl<T: Deref<Target = Trace>> Replayer<T> {
    /// The answer in full.
    ///
    /// # Errors
    /// As [`Replay::new`].
    pub fn replay(&self, options: &ReplayOptions) -> Result<Replay, String> {
        let (trace, calls): (&Trace, &Calls) = (&self.trace, &self.calls);
        let scenario = Scenario::new(trace, &options.scenario)?;
        let mut columns = Columns::new(duration_nanos(trace), COLUMNS);
        let outcome = simulate_each(calls, &scenario, |after, usage| self.note(&mut columns, after, usage));
        let refused = outcome
            .first_refusal()
            .map(|(after_events, error)| Refusal { at: When::of(trace, after_events), reason: error.to_string() });
        let over_memory = outcome.over_memory.map(|after_events| When::of(trace, after_events));
        let is_out = refused.is_some() || over_memory.is_some();
        let replayed = Counted::of(trace, &outcome);
        let at_peak = |moment: Moment| AtPeak::of(trace, calls, &outcome.refusals, moment);
        let (active, reserved) = (replayed.peak_active, replayed.peak_reserved);
        Ok(Replay {
            schema: REPLAY_SCHEMA,
            about: About::new(trace),
            is_window: trace.counts.dropped.events > 0 || trace.first_index > 0,
            under: Under::of(&scenario, &options.scenario, calls.start_limit),
            recorded: Counted::recorded(trace),
            replayed,
            most_blocks: Blocks::of(trace, &scenario, outcome.most_blocks),
            is_out_of_memory: (is_out || scenario.memory.is_some()).then_some(is_out),
            refused,
            refusals: outcome.refusals.len() as u64,
            memory_bytes: scenario.memory,
            over_memory,
            at_peak_active: at_peak(active),
            at_peak_reserved: (reserved.after_events != active.after_events).then(|| at_peak(reserved)),
            over_time: OverTime::of(columns),
            agreement: Agreement::of(trace, &scenario),
            sweep: sweep(calls, &scenario, options.sweep)?,
            skipped_events: calls.skipped,
            min_size_bytes: trace.header.min_size,
        })
    }
}

impl Blocks {
    fn of(trace: &Trace, scenario: &Scenario, most: Highest) -> Blocks {
        let limit = scenario.rules.mlx().map(|policy| policy.max_blocks).filter(|&most| most != u64::MAX);
        Blocks { count: most.usage.blocks, limit, at: When::of(trace, most.after_events) }
    }
}

/// Replays under each limit.
fn sweep(calls: &Calls, scenario: &Scenario, range: Option<(u64, u64, usize)>) -> Result<Vec<SweepPoint>, String> {
    let Some((from, to, points)) = range else { return Ok(Vec::new()) };
    if !(2..=MOST_POINTS).contains(&points) || from >= to {
        return Err(format!("a sweep goes up, over 2 to {MOST_POINTS} points; found {from} to {to} over {points}"));
    }
    scenario.rules.must_have_cache_limit()?;
    let last = points as u128 - 1;
    let limits = (0..=last).map(|at| from + (u128::from(to - from) * at / last) as u64);
    Ok(limits.map(|limit| SweepPoint::of(limit, &simulate(calls, &scenario.with_cache_limit(limit)))).collect())
}

impl SweepPoint {
    pub(crate) fn of(cache_limit_bytes: u64, outcome: &Outcome) -> SweepPoint {
        let Totals { active, cached } = totals(outcome.peak_reserved);
        let peak_reserved_bytes = active.saturating_add(cached);
        SweepPoint { cache_limit_bytes, hit_rate: outcome.hit_rate(), made: outcome.tally.made, peak_reserved_bytes }
    }
}

fn totals(highest: Highest) -> Totals {
    Totals { active: highest.usage.active, cached: highest.usage.cached }
}

impl Under {
    fn of(scenario: &Scenario, options: &ScenarioOptions, start_limit: Option<u64>) -> Under {
        let rules = &scenario.rules;
        Under {
            policy: rules.name(),
            mirrors: rules.mirrors(),
            mlx_versions: rules.mlx().map(|policy| policy.mlx_versions),
            device: options.device.as_ref().map(|(name, _)| name.clone()),
            cache_limit_bytes: scenario.cache_limit_at_start(start_limit),
            memory_limit_bytes: scenario.memory_limit.unwrap_or(rules.memory_limit()),
            clears_every_step: scenario.clears_every_step,
        }
    }
}

impl Counted {
    fn of(trace: &Trace, outcome: &Outcome) -> Counted {
        let moment = |highest: Highest| Moment::of(trace, highest.after_events, totals(highest));
        Counted {
            hits: outcome.tally.hits,
            misses: outcome.tally.misses,
            hit_rate: outcome.hit_rate(),
            made: outcome.tally.made,
            given_back: outcome.tally.given_back,
            evicted: outcome.tally.evicted,
            peak_active: moment(outcome.peak_active),
            peak_reserved: moment(outcome.peak_reserved),
            end: moment(Highest { usage: outcome.end, after_events: trace.events.len() }),
        }
    }

    pub(crate) fn recorded(trace: &Trace) -> Counted {
        use memviz_trace::Action::{AllocNew, FreeActiveToOs, FreeCacheToOs};
        let peaks = find_peaks(trace);
        let mut counted =
            Counted { peak_active: peaks.active, peak_reserved: peaks.reserved, end: peaks.end, ..Counted::default() };
        for event in trace.events.iter().filter(|event| !event.is_move()) {
            match event.action {
                AllocNew => counted.made.add(event.size, 1),
                FreeActiveToOs => counted.given_back.add(event.size, 1),
                FreeCacheToOs => {
                    counted.given_back.add(event.size, 1);
                    counted.evicted.add(event.size, 1);
                }
                _ => {}
            }
        }
        let hits = Hits::of(&trace.events);
        (counted.hits, counted.misses, counted.hit_rate) = (hits.hits, hits.misses, hits.rate());
        counted
    }
}

impl When {
    pub(crate) fn of(trace: &Trace, after_events: usize) -> When {
        let last = after_events.checked_sub(1).and_then(|last| trace.events.get(last));
        When { index: trace.first_index + after_events as u64, time_nanos: last.map_or(0, |event| event.time_nanos) }
    }
}

impl OverTime {
    pub(crate) fn of(columns: Columns) -> OverTime {
        let width_nanos = columns.width_nanos;
        let columns = columns.filled();
        let list = |at: usize| columns.iter().map(|column| column[at]).collect();
        OverTime { width_nanos, active_bytes: list(0), cached_bytes: list(1), reserved_bytes: list(2) }
    }
}
