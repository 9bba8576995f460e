//! "What if": a recorded run under another policy, other limits or on another machine.
//!
//! A replay asks the policy for what the program asked for, in the recorded order; it cannot know what the program would
//! have done after an allocation that is refused, so it goes on without that buffer and says when the first one was.
//! Buffers below a recording's minimum size are summed up only. Needs no stacks. Not here: what to do about it (`advise`).

use memviz_trace::{Totals, Trace};
use serde::Serialize;

use crate::about::{About, duration_nanos};
use crate::agreement::Agreement;
use crate::calls::Calls;
use crate::held::Amount;
use crate::peak::{Moment, find_peaks};
use crate::scenario::{Scenario, ScenarioOptions};
use crate::simulate::{Columns, Highest, Outcome, simulate, simulate_over_time};

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
    /// Releases of MLX that have it.
    pub mlx_versions: &'static str,
    /// Machine, as the user named it.
    pub device: Option<String>,
    /// Limit at the start.
    pub cache_limit_bytes: u64,
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
    /// Buffers that the system or driver made.
    pub made: Amount,
    /// Buffers that it got back.
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

/// Memory over time: three lists of the same length.
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
        let scenario = Scenario::new(trace, &options.scenario)?;
        let calls = Calls::of(trace);
        let columns = Columns::new(duration_nanos(trace), COLUMNS);
        let (outcome, columns) = simulate_over_time(&calls, &scenario, &trace.events, columns);
        let refused = outcome
            .refused
            .as_ref()
            .map(|refused| Refusal { at: When::of(trace, refused.after_events), reason: refused.error.to_string() });
        let over_memory = outcome.over_memory.map(|after_events| When::of(trace, after_events));
        let is_out = refused.is_some() || over_memory.is_some();
        Ok(Replay {
            schema: REPLAY_SCHEMA,
            about: About::new(trace),
            under: Under::of(&scenario, &options.scenario, calls.start_limit),
            recorded: Counted::recorded(trace),
            replayed: Counted::of(trace, &outcome),
            most_blocks: Blocks {
                count: outcome.most_blocks.usage.blocks,
                limit: Some(scenario.policy.max_blocks).filter(|&most| most != u64::MAX),
                at: When::of(trace, outcome.most_blocks.after_events),
            },
            is_out_of_memory: (is_out || scenario.memory.is_some()).then_some(is_out),
            refused,
            refusals: outcome.refusals,
            memory_bytes: scenario.memory,
            over_memory,
            over_time: OverTime::of(columns),
            agreement: Agreement::of(trace, &scenario),
            sweep: sweep(&calls, &scenario, options.sweep)?,
            skipped_events: calls.skipped,
            min_size_bytes: trace.header.min_size,
        })
    }
}

/// Replays under each limit.
fn sweep(calls: &Calls, scenario: &Scenario, range: Option<(u64, u64, usize)>) -> Result<Vec<SweepPoint>, String> {
    let Some((from, to, points)) = range else { return Ok(Vec::new()) };
    if !(2..=MOST_POINTS).contains(&points) || from >= to {
        return Err(format!("a sweep goes up, over 2 to {MOST_POINTS} points; found {from} to {to} over {points}"));
    }
    let last = points as u128 - 1;
    let limits = (0..=last).map(|at| from + (u128::from(to - from) * at / last) as u64);
    Ok(limits.map(|limit| SweepPoint::of(limit, &simulate(calls, &scenario.with_cache_limit(limit)))).collect())
}

impl SweepPoint {
    pub(crate) fn of(cache_limit_bytes: u64, outcome: &Outcome) -> SweepPoint {
        let Totals { active, cached } = totals(outcome.peak_reserved);
        let peak_reserved_bytes = active.saturating_add(cached);
        SweepPoint { cache_limit_bytes, hit_rate: outcome.hit_rate(), made: outcome.made, peak_reserved_bytes }
    }
}

fn totals(highest: Highest) -> Totals {
    Totals { active: highest.usage.active, cached: highest.usage.cached }
}

impl Under {
    fn of(scenario: &Scenario, options: &ScenarioOptions, start_limit: Option<u64>) -> Under {
        let policy = &scenario.policy;
        Under {
            policy: policy.name,
            mlx_versions: policy.mlx_versions,
            device: options.device.as_ref().map(|(name, _)| name.clone()),
            cache_limit_bytes: scenario.cache_limit.or(start_limit).unwrap_or(policy.cache_limit),
            memory_limit_bytes: scenario.memory_limit.unwrap_or(policy.memory_limit),
            clears_every_step: scenario.clears_every_step,
        }
    }
}

impl Counted {
    fn of(trace: &Trace, outcome: &Outcome) -> Counted {
        let moment = |highest: Highest| Moment::of(trace, highest.after_events, totals(highest));
        Counted {
            hits: outcome.hits,
            misses: outcome.misses,
            hit_rate: outcome.hit_rate(),
            made: outcome.made,
            given_back: outcome.given_back,
            evicted: outcome.evicted,
            peak_active: moment(outcome.peak_active),
            peak_reserved: moment(outcome.peak_reserved),
            end: moment(Highest { usage: outcome.end, after_events: trace.events.len() }),
        }
    }

    pub(crate) fn recorded(trace: &Trace) -> Counted {
        use memviz_trace::Action::{AllocNew, AllocReuse, FreeActiveToOs, FreeCacheToOs};
        let peaks = find_peaks(trace);
        let mut counted =
            Counted { peak_active: peaks.active, peak_reserved: peaks.reserved, end: peaks.end, ..Counted::default() };
        for event in trace.events.iter().filter(|event| !event.is_move()) {
            match event.action {
                AllocReuse => counted.hits += 1,
                AllocNew => counted.made.add(event.size, 1),
                FreeActiveToOs => counted.given_back.add(event.size, 1),
                FreeCacheToOs => {
                    counted.given_back.add(event.size, 1);
                    counted.evicted.add(event.size, 1);
                }
                _ => {}
            }
        }
        counted.misses = counted.made.count;
        let all = counted.hits + counted.misses;
        counted.hit_rate = (all > 0).then(|| counted.hits as f64 / all as f64);
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
    fn of(columns: Columns) -> OverTime {
        let width_nanos = columns.width_nanos;
        let columns = columns.filled();
        let list = |at: usize| columns.iter().map(|column| column[at]).collect();
        OverTime { width_nanos, active_bytes: list(0), cached_bytes: list(1), reserved_bytes: list(2) }
    }
}
