//! Positions on the axes of time and steps, from moments and back.
//!
//! Positions never fall from one moment to the next, whatever the trace says: a time that goes back counts as the latest
//! one before it, a step number that goes back as one more than the step before it. So each conversion is a binary search,
//! and a moment that is converted to a position and back lands on the last moment with the same position.

use memviz_analyze::step_ranges;
use memviz_trace::{Event, Trace};

use crate::types::{Axis, Moment};

/// Step numbers are clipped here, so that adding one still changes them.
const MOST_STEP: u64 = 1 << 52;

/// Conversions of one trace.
#[derive(Clone, Debug, Default)]
pub struct Axes {
    events: Moment,
    start_nanos: u64,
    /// Running maximum of the events' times, where they go back.
    rising: Option<Vec<u64>>,
    steps: Vec<Step>,
}

/// A marked step: the moments after `start`, up to and with `end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) number: u64,
    pub(crate) start: Moment,
    pub(crate) end: Moment,
    pub(crate) from_nanos: u64,
    pub(crate) to_nanos: u64,
    /// Position on the axis: the number, where numbers rise.
    pub(crate) at: f64,
}

impl Axes {
    pub(crate) fn new(trace: &Trace, events: Moment) -> Axes {
        let taken = trace.events.get(..events as usize).unwrap_or_default();
        let start_nanos = if trace.first_index > 0 { taken.first().map_or(0, |event| event.time_nanos) } else { 0 };
        let is_rising = taken.is_sorted_by_key(|event| event.time_nanos);
        let rising = (!is_rising).then(|| running_max(taken));
        let mut axes = Axes { events, start_nanos, rising, steps: Vec::new() };
        axes.steps = axes.steps_of(trace);
        axes
    }

    fn steps_of(&self, trace: &Trace) -> Vec<Step> {
        let mut at: Option<u64> = None;
        let step = |(number, range): (u64, std::ops::Range<usize>)| {
            let least = at.map_or(0, |before| before + 1);
            let place = number.clamp(least, least.max(MOST_STEP));
            at = Some(place);
            let moment = |position: usize| (position.min(self.events as usize)) as Moment;
            let (start, end) = (moment(range.start), moment(range.end));
            let (from_nanos, to_nanos) = (self.nanos(trace, start), self.nanos(trace, end));
            Step { number, start, end, from_nanos, to_nanos, at: place as f64 }
        };
        let mut ranges = step_ranges(trace);
        // A loop that is marked before its first event has no step before the first mark.
        if ranges.len() > 1 && ranges[0].1.is_empty() {
            ranges.remove(0);
        }
        ranges.into_iter().map(step).collect()
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Time of the last event of a moment; never falls.
    pub fn nanos(&self, trace: &Trace, moment: Moment) -> u64 {
        let Some(last) = (moment.min(self.events) as usize).checked_sub(1) else { return self.start_nanos };
        match &self.rising {
            Some(rising) => rising.get(last).copied().unwrap_or(0),
            None => trace.events.get(last).map_or(0, |event| event.time_nanos),
        }
    }

    /// Position of a moment; `None` on the step axis of a recording without steps.
    pub fn position(&self, trace: &Trace, axis: Axis, moment: Moment) -> Option<f64> {
        let moment = moment.min(self.events);
        match axis {
            Axis::Event => Some(f64::from(moment)),
            Axis::Time => Some(self.nanos(trace, moment) as f64),
            Axis::Step => self.step_under_way(moment).map(|step| self.step_position(trace, step, moment)),
        }
    }

    /// Position of a time, where the moment alone does not say it: that of marks.
    pub(crate) fn position_of_time(&self, trace: &Trace, axis: Axis, moment: Moment, nanos: u64) -> Option<f64> {
        if axis != Axis::Time {
            return self.position(trace, axis, moment);
        }
        let after = if moment < self.events { self.nanos(trace, moment + 1) } else { u64::MAX };
        let before = self.nanos(trace, moment);
        Some(nanos.clamp(before, after.max(before)) as f64)
    }

    /// The last moment at or before a position; 0 where there is none.
    pub fn moment(&self, trace: &Trace, axis: Axis, at: f64) -> Moment {
        self.count(trace, axis, at, true).saturating_sub(1)
    }

    /// Number of moments before `edge`, or up to and with it.
    pub(crate) fn count(&self, trace: &Trace, axis: Axis, edge: f64, inclusive: bool) -> Moment {
        let is_before = |position: f64| position < edge || (inclusive && position == edge);
        match axis {
            Axis::Event => {
                let count = if inclusive { edge.floor() + 1.0 } else { edge.ceil() };
                count.clamp(0.0, f64::from(self.events) + 1.0) as Moment
            }
            Axis::Time if !is_before(self.start_nanos as f64) => 0,
            Axis::Time => 1 + self.count_times(trace, is_before),
            Axis::Step => {
                let passed = self.steps.partition_point(|step| is_before(self.step_position(trace, step, step.end)));
                let Some(step) = self.steps.get(passed) else { return self.events.saturating_add(1) };
                // Moment 0 is in the first step, though it is not after its start.
                let first = if passed == 0 { 0 } else { step.start + 1 };
                let is_passed = |moment| is_before(self.step_position(trace, step, moment));
                partition(first, step.end.max(first), is_passed)
            }
        }
    }

    fn count_times(&self, trace: &Trace, is_before: impl Fn(f64) -> bool) -> Moment {
        let count = match &self.rising {
            Some(rising) => rising.partition_point(|&nanos| is_before(nanos as f64)),
            None => {
                let taken = trace.events.get(..self.events as usize).unwrap_or_default();
                taken.partition_point(|event| is_before(event.time_nanos as f64))
            }
        };
        count as Moment
    }

    /// The step that a moment belongs to: that of its last event.
    pub(crate) fn step_under_way(&self, moment: Moment) -> Option<&Step> {
        let at = if moment == 0 { 0 } else { self.steps.partition_point(|step| step.end < moment) };
        self.steps.get(at).or_else(|| self.steps.last())
    }

    fn step_position(&self, trace: &Trace, step: &Step, moment: Moment) -> f64 {
        let moment = moment.clamp(step.start, step.end);
        let (passed, whole) = if step.to_nanos > step.from_nanos {
            let nanos = self.nanos(trace, moment).clamp(step.from_nanos, step.to_nanos);
            (nanos - step.from_nanos, step.to_nanos - step.from_nanos)
        } else {
            (u64::from(moment - step.start), u64::from(step.end - step.start))
        };
        step.at + if whole == 0 { 0.0 } else { passed as f64 / whole as f64 }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.rising.as_ref().map_or(0, |rising| size_of_val(&rising[..])) + size_of_val(&self.steps[..])
    }
}

fn running_max(events: &[Event]) -> Vec<u64> {
    let highest = events.iter().scan(0, |highest: &mut u64, event| {
        *highest = (*highest).max(event.time_nanos);
        Some(*highest)
    });
    highest.collect()
}

/// The first of `first..end` for which `is_before` is false, else `end`.
fn partition(first: Moment, end: Moment, is_before: impl Fn(Moment) -> bool) -> Moment {
    let (mut low, mut high) = (first, end);
    while low < high {
        let middle = low.midpoint(high);
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
