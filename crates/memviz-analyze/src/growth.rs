//! Whether memory grows from step to step, where, and how long that can go on.
//!
//! The data of `memviz growth`. Of each step the lowest active bytes and number of buffers count, in all and by line: what is
//! let go within a step is no growth. A trend and its verdict come from [`crate::trend`], steps from [`crate::loops`].

use memviz_trace::Trace;
use serde::Serialize;

use crate::about::About;
use crate::held::{Amount, StackLine, user_line};
use crate::loops::{Every, Steps, loops_of};
use crate::peak::LineTotal;
use crate::size::text_from_bytes;
use crate::trend::{LEAST_STEPS, NOISE_BUFFERS, NOISE_BYTES, Trend, Verdict};
use crate::watch::{LineSeries, Watch};

/// Version of the JSON form of [`Growth`].
pub const GROWTH_SCHEMA: u32 = 1;
/// Buffers that MLX can have at once on Apple silicon: `ResourceLimit` of `mlx/backend/metal/allocator.cpp`.
pub const MOST_BUFFERS: u64 = 499_000;

/// What to look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct GrowthOptions {
    /// What begins a step.
    pub every: Every,
    /// Bytes at which the run would end.
    pub limit: Option<u64>,
    /// Number of lines.
    pub top: usize,
}

/// Growth of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// [`GROWTH_SCHEMA`].
    pub schema: u32,
    /// Which run.
    pub about: About,
    /// Bytes at which the run would end, when given.
    pub limit_bytes: Option<u64>,
    /// Buffers at which MLX gives up.
    pub limit_buffers: u64,
    /// Which of `loops` to look at first: the one that grows most, else the one with most steps.
    pub main: Option<usize>,
    /// The loops, in order of time.
    pub loops: Vec<LoopGrowth>,
}

/// One loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoopGrowth {
    /// "step", "eval" or "time".
    pub every: &'static str,
    /// The line that evaluates once a step.
    pub evaluated_at: Option<StackLine>,
    /// Steps seen whole.
    pub steps: u64,
    /// Steps that each entry of `series` stands for.
    pub stride: u64,
    /// Lowest active bytes of each step. Slopes are per step of the loop, whatever the stride.
    pub bytes: Trend,
    /// Lowest number of active buffers of each step.
    pub buffers: Trend,
    /// The verdict on the loop: that on bytes, or on buffers when only these grow.
    pub verdict: Verdict,
    /// Why, a sentence.
    pub reason: String,
    /// Steps until `limit_bytes`, when it grows towards it.
    pub steps_to_limit_bytes: Option<u64>,
    /// Steps until `limit_buffers`.
    pub steps_to_limit_buffers: Option<u64>,
    /// Nanoseconds until the first of both limits.
    pub nanos_to_limit: Option<u64>,
    /// Lines that hold more in the end than in the beginning or whose verdict is "grows", most growth first.
    pub lines: Vec<LineGrowth>,
    /// Steps, oldest first.
    pub series: Vec<StepAmount>,
}

/// What one line holds from step to step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LineGrowth {
    /// The line, with what it holds at the end of the loop.
    #[serde(flatten)]
    pub line: LineTotal,
    /// Bytes.
    pub bytes_trend: Trend,
    /// Buffers.
    pub buffers_trend: Trend,
}

/// One step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StepAmount {
    /// Number of events of the trace before its end.
    pub after_events: usize,
    /// When it ended, nanoseconds.
    pub time_nanos: u64,
    /// Lowest active bytes and number of buffers.
    pub lowest: Amount,
    /// Highest active bytes.
    pub highest_bytes: u64,
}

impl Growth {
    /// Growth of `trace`.
    ///
    /// # Errors
    /// A sentence for the user: steps asked for that are not marked.
    pub fn new(trace: &Trace, options: GrowthOptions) -> Result<Growth, String> {
        let mut watch = Watch::new(trace);
        let mut done = 0;
        let mut loops = Vec::new();
        for steps in loops_of(trace, options.every)? {
            watch.skip(done..steps.events().start);
            done = steps.events().end;
            loops.push(loop_growth(trace, &mut watch, &steps, options));
        }
        let main = main_loop(&loops);
        let about = About::new(trace);
        let (limit_bytes, limit_buffers) = (options.limit, MOST_BUFFERS);
        Ok(Growth { schema: GROWTH_SCHEMA, about, limit_bytes, limit_buffers, main, loops })
    }

    /// The loop to speak of first.
    pub fn main_loop(&self) -> Option<&LoopGrowth> {
        self.loops.get(self.main?)
    }
}

/// The one that grows most, else the one with most steps.
fn main_loop(loops: &[LoopGrowth]) -> Option<usize> {
    let growth = |one: &LoopGrowth| match one.verdict {
        Verdict::Grows => (1 + (one.bytes.slope.max(0.0) * one.steps as f64) as u64, one.steps),
        _ => (0, one.steps),
    };
    (0..loops.len()).rev().max_by_key(|at| growth(&loops[*at]))
}

fn loop_growth(trace: &Trace, watch: &mut Watch<'_>, steps: &Steps, options: GrowthOptions) -> LoopGrowth {
    let series = watch.walk(steps);
    let per_step = |values: Vec<u64>, noise: f64| {
        let trend = Trend::of(&values, noise);
        Trend { slope: trend.slope / steps.stride as f64, ..trend }
    };
    let bytes = per_step(series.iter().map(|step| step.lowest.bytes).collect(), NOISE_BYTES);
    let buffers = per_step(series.iter().map(|step| step.lowest.count).collect(), NOISE_BUFFERS);
    let line = |series: LineSeries| LineGrowth {
        line: LineTotal { bytes: series.end.bytes, count: series.end.count, ..LineTotal::of(trace, series.key) },
        bytes_trend: per_step(series.bytes, NOISE_BYTES),
        buffers_trend: per_step(series.counts, NOISE_BUFFERS),
    };
    let lines = watch.grown(series.len(), options.top).into_iter().map(line).collect();
    let (verdict, reason) = judge(&bytes, &buffers, series.len());
    let grown = LoopGrowth {
        every: match (options.every, steps.evaluates) {
            (_, Some(_)) => "eval",
            _ if steps.is_time => "time",
            _ => "step",
        },
        evaluated_at: steps.evaluates.and_then(|stack| user_line(trace, stack)),
        steps: (series.len() * steps.stride) as u64,
        stride: steps.stride as u64,
        bytes,
        buffers,
        verdict,
        reason,
        steps_to_limit_bytes: options.limit.and_then(|limit| bytes.steps_until(limit)),
        steps_to_limit_buffers: buffers.steps_until(MOST_BUFFERS),
        nanos_to_limit: None,
        lines,
        series,
    };
    LoopGrowth { nanos_to_limit: nanos_to_limit(&grown), ..grown }
}

/// The verdict on bytes, or that on buffers when only these grow; and why.
fn judge(bytes: &Trend, buffers: &Trend, steps: usize) -> (Verdict, String) {
    if bytes.verdict != Verdict::Grows && buffers.verdict == Verdict::Grows {
        let count = buffers.slope;
        let reason = format!("bytes: {}; but {count:.1} more buffers stay alive each step", reason(bytes, steps));
        return (Verdict::Grows, reason);
    }
    (bytes.verdict, reason(bytes, steps))
}

fn reason(trend: &Trend, steps: usize) -> String {
    let size = |bytes: f64| text_from_bytes(bytes.abs().round() as u64);
    let later = steps - steps / 2;
    let agreeing = (trend.agreeing.abs() * 100.0).round();
    match trend.verdict {
        Verdict::TooFewSteps => format!("{steps} steps were seen whole, a verdict takes {LEAST_STEPS}"),
        Verdict::Grows if trend.falls >= 2 => {
            format!("it falls {} times, to a higher level each time; now {}", trend.falls, size(trend.last as f64))
        }
        Verdict::Grows | Verdict::Shrinks => {
            let way = if trend.verdict == Verdict::Grows { "more" } else { "less" };
            let slope = size(trend.slope);
            format!(
                "{slope} {way} each step, in the later {later} of {steps} steps; {agreeing}% of pairs of them agree"
            )
        }
        Verdict::Sawtooth => format!(
            "it fell {} times by half its range or more, to no higher level; highest {}",
            trend.falls,
            size(trend.highest as f64)
        ),
        Verdict::WarmUp => format!(
            "it rose from {} in the first steps, and is at {} in the later {later} of {steps}",
            size(trend.first as f64),
            size(trend.last as f64)
        ),
        Verdict::FillsThenFlat => format!(
            "it rose from {}, then stayed at {} in the later {later} of {steps} steps",
            size(trend.first as f64),
            size(trend.last as f64)
        ),
        Verdict::Flat => format!(
            "it is at {} in the first and at {} in the last step",
            size(trend.first as f64),
            size(trend.last as f64)
        ),
    }
}

/// At the mean pace of the later half, because the first steps compile and load.
fn nanos_to_limit(grown: &LoopGrowth) -> Option<u64> {
    let steps = [grown.steps_to_limit_bytes, grown.steps_to_limit_buffers].into_iter().flatten().min()?;
    let (middle, last) = (grown.series.get(grown.series.len() / 2)?, grown.series.last()?);
    let between = (grown.series.len() - 1 - grown.series.len() / 2) as u64 * grown.stride;
    let nanos = last.time_nanos.saturating_sub(middle.time_nanos);
    (between > 0).then(|| (u128::from(nanos) * u128::from(steps) / u128::from(between)).min(u64::MAX.into()) as u64)
}
