//! The loops of a run, and where their steps begin.
//!
//! A loop is marked (`mlx_memviz.step()`), cut by time, or found: a stack that evaluates again and again. Each evaluation
//! from that stack begins a step; see [`crate::evaluation`] for where one ends. Of the stacks found, those that evaluate most
//! often over the longest part of the run are taken first, and no loop overlaps another: a loop within a loop is a part of
//! the outer loop's step or the outer one is left out.

use std::ops::Range;

use memviz_trace::{StackId, ThreadId, Trace};
use rustc_hash::FxHashMap;

use crate::evaluation::entered;
use crate::instant::step_ranges;
use crate::trend::LEAST_STEPS;

/// Loops reported.
const MOST_LOOPS: usize = 8;
/// Steps of which values are kept; of longer loops every n-th step is looked at.
const MOST_STEPS: usize = 2000;

/// Slices of time of a run in which no loop was found.
const SLICES: u64 = 40;

/// What begins a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Every {
    /// Steps if the loop is marked, else evaluations, else a fortieth of the run.
    #[default]
    Auto,
    /// `mlx_memviz.step()`.
    Step,
    /// An evaluation from the same stack.
    Eval,
    /// Nanoseconds.
    Nanos(u64),
}

/// A loop of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    /// The evaluating stack, when evaluations begin the steps.
    pub(crate) evaluates: Option<StackId>,
    /// Equal slices of time begin the steps.
    pub(crate) is_time: bool,
    /// Boundaries: step `i` has the events `bounds[i]..bounds[i + 1]`.
    pub(crate) bounds: Vec<usize>,
    /// Steps of the loop between two boundaries: 1, or more of a long loop.
    pub(crate) stride: usize,
}

impl Steps {
    fn new(evaluates: Option<StackId>, mut bounds: Vec<usize>) -> Steps {
        let stride = bounds.len().div_ceil(MOST_STEPS).max(1);
        bounds = bounds.into_iter().step_by(stride).collect();
        Steps { evaluates, is_time: false, bounds, stride }
    }

    /// Events of the loop.
    pub(crate) fn events(&self) -> Range<usize> {
        self.bounds.first().copied().unwrap_or(0)..self.bounds.last().copied().unwrap_or(0)
    }
}

/// The loops of `trace`, in order of time, none overlapping another.
///
/// # Errors
/// A sentence for the user: steps asked for that are not marked, a time of 0.
pub(crate) fn loops_of(trace: &Trace, every: Every) -> Result<Vec<Steps>, String> {
    match every {
        Every::Nanos(0) => Err("a step of 0 s never ends".to_owned()),
        Every::Nanos(nanos) => Ok(vec![by_time(trace, nanos)]),
        Every::Eval => Ok(by_evaluation(trace)),
        Every::Step => by_mark(trace).map(|steps| vec![steps]).ok_or_else(|| {
            "the recording has no steps; mark them by mlx_memviz.step() at the end of each, or use --every eval"
                .to_owned()
        }),
        Every::Auto => Ok(found(trace)),
    }
}

fn found(trace: &Trace) -> Vec<Steps> {
    if let Some(steps) = by_mark(trace).filter(|steps| steps.bounds.len() > LEAST_STEPS) {
        return vec![steps];
    }
    let loops = by_evaluation(trace);
    let slice = trace.events.last().map_or(0, |event| event.time_nanos / SLICES);
    if loops.is_empty() && slice > 0 { vec![by_time(trace, slice)] } else { loops }
}

/// The last range, of a step that no mark ended, is left out.
fn by_mark(trace: &Trace) -> Option<Steps> {
    let mut ranges = step_ranges(trace);
    if ranges.last().is_some_and(|(_, range)| range.end == trace.events.len() && !is_marked_end(trace, range.end)) {
        ranges.pop();
    }
    let first = ranges.first()?.1.start;
    Some(Steps::new(None, std::iter::once(first).chain(ranges.iter().map(|(_, range)| range.end)).collect()))
}

fn is_marked_end(trace: &Trace, end: usize) -> bool {
    trace.marks.iter().rev().any(|mark| {
        matches!(mark.kind, memviz_trace::MarkKind::Step(_))
            && mark.index.saturating_sub(trace.first_index) as usize >= end
    })
}

fn by_time(trace: &Trace, nanos: u64) -> Steps {
    let end = trace.events.last().map_or(0, |event| event.time_nanos);
    let slices = (end / nanos).min(MOST_STEPS as u64 * 1000);
    let bound = |slice: u64| trace.events.partition_point(|event| event.time_nanos < slice.saturating_mul(nanos));
    Steps { is_time: true, ..Steps::new(None, (0..=slices).map(bound).collect()) }
}

fn by_evaluation(trace: &Trace) -> Vec<Steps> {
    let mut found: Vec<(StackId, Vec<usize>)> =
        visits(trace).into_iter().filter(|(_, visits)| visits.len() > LEAST_STEPS).collect();
    let score = |visits: &[usize]| visits.len() as u128 * (visits[visits.len() - 1] - visits[0]) as u128;
    found.sort_by_key(|(stack, visits)| (std::cmp::Reverse(score(visits)), *stack));
    let mut chosen: Vec<(StackId, Vec<usize>)> = Vec::new();
    for (stack, visits) in found {
        let (first, last) = (visits[0], visits[visits.len() - 1]);
        let overlaps = chosen.iter().any(|(_, other)| first < other[other.len() - 1] && other[0] < last);
        if chosen.len() < MOST_LOOPS && !overlaps {
            chosen.push((stack, visits));
        }
    }
    chosen.sort_by_key(|(_, visits)| visits[0]);
    chosen.into_iter().map(|(stack, visits)| Steps::new(Some(stack), visits)).collect()
}

/// Where evaluations from each stack begin.
fn visits(trace: &Trace) -> FxHashMap<StackId, Vec<usize>> {
    let mut visits: FxHashMap<StackId, Vec<usize>> = FxHashMap::default();
    let mut current: FxHashMap<ThreadId, StackId> = FxHashMap::default();
    for (position, event) in trace.events.iter().enumerate() {
        let Some(stack) = entered(event) else { continue };
        let before = current.insert(event.thread, stack);
        // Frees from a stack say that Python went on there; they begin no evaluation.
        let begins = event.action.is_alloc() && stack != StackId(0) && before != Some(stack);
        if begins {
            visits.entry(stack).or_default().push(position);
        }
    }
    visits
}
