//! Compiled functions that are traced again and again, and what each trace keeps.
//!
//! A pure function of a recording of level `arrays` and a moment. How a trace is recognised, and what is not seen, is in
//! `compile`.

use memviz_trace::{FrameId, StackId, StringId, Trace, WhatId};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::about::About;
use crate::arrays::{Arrays, NeedsArrays};
use crate::compile::{Traced, Traces};
use crate::held::{Amount, StackLine};
use crate::lines::UserLines;
use crate::peak::{Moment, moment_at};

/// Version of the JSON form of [`Retrace`]; a field that changes its meaning or goes raises it.
pub const RETRACE_SCHEMA: u32 = 1;
/// How many call lines, signatures and varying axes of a function are listed.
const EXAMPLES: usize = 8;

/// Every compiled function that was traced up to a moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Retrace {
    /// [`RETRACE_SCHEMA`].
    pub schema: u32,
    /// The run.
    pub about: About,
    /// When.
    pub moment: Moment,
    /// Most traces first.
    pub functions: Vec<TracedFunction>,
    /// Traces of all functions.
    pub traces: u64,
    /// Of these, traces that are still kept at the moment.
    pub alive: u64,
}

/// Why a function was traced more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It was not.
    TracedOnce,
    /// No two traces have inputs of the same shapes and dtypes.
    NewShapes,
    /// All have the same shapes and dtypes: a new compiled function each time, or another constant among its arguments.
    NewFunction,
    /// Some of each.
    Both,
}

/// A compiled function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TracedFunction {
    /// First line of its body that built an array; empty when it built none.
    pub body: StackLine,
    /// Lines that call it, with the number of traces that each caused, most first.
    pub calls: Vec<(StackLine, u64)>,
    /// How often it was traced.
    pub traces: u64,
    /// Traces that are still kept.
    pub alive: u64,
    /// Why.
    pub cause: Cause,
    /// Different shapes and dtypes of its inputs.
    pub signatures: u64,
    /// The first of them: `float32[256], int32[8,2]`.
    pub first_signatures: Vec<String>,
    /// Axes that differ between traces with the same number of inputs and axes.
    pub varying: Vec<VaryingAxis>,
    /// Buffers that its body made while tracing and that outlived the tracing: constants.
    pub made: Amount,
    /// Of these, those of traces that are still kept.
    pub kept: Amount,
    /// Active buffers of other lines that the kept traces use, such as weights that the body closes over.
    pub captured: Amount,
    /// Arrays that the kept traces consist of.
    pub kept_arrays: u64,
}

/// An axis of an input that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VaryingAxis {
    /// Position among the array inputs, from 0.
    pub input: u32,
    /// Axis, from 0.
    pub axis: u32,
    /// Number of different lengths.
    pub lengths: u64,
    /// Smallest.
    pub smallest: i32,
    /// Largest.
    pub largest: i32,
}

/// File and function of the frame below the call; the line of the call for a body that built nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Body(StringId, StringId),
    Call(Option<FrameId>),
}

impl Retrace {
    /// Answers for the moment after `after_events` events of `trace`.
    ///
    /// # Errors
    /// The recording has no array events.
    pub fn new(trace: &Trace, after_events: usize) -> Result<Retrace, NeedsArrays> {
        let arrays = Arrays::new(trace, after_events)?;
        let traces = Traces::find(trace, &arrays);
        let lines = UserLines::new(trace);
        let mut by_function: FxHashMap<Key, Vec<&Traced>> = FxHashMap::default();
        for traced in &traces.all {
            let frame = body_frame(trace, traced).map(|frame| trace.stacks.frame(frame));
            let key = frame
                .map_or_else(|| Key::Call(lines.line_of(traced.call)), |frame| Key::Body(frame.file, frame.function));
            by_function.entry(key).or_default().push(traced);
        }
        let describe = |group: Vec<&Traced>| Group { trace, arrays: &arrays, lines: &lines, group }.describe();
        let mut functions: Vec<TracedFunction> = by_function.into_values().map(describe).collect();
        functions.sort_by(|a, b| {
            b.traces
                .cmp(&a.traces)
                .then_with(|| (b.made.bytes, b.made.count).cmp(&(a.made.bytes, a.made.count)))
                .then_with(|| a.body.cmp(&b.body))
        });
        Ok(Retrace {
            schema: RETRACE_SCHEMA,
            about: About::new(trace),
            moment: moment_at(trace, after_events),
            traces: functions.iter().map(|function| function.traces).sum(),
            alive: functions.iter().map(|function| function.alive).sum(),
            functions,
        })
    }
}

/// The frame of the compiled function itself: the outermost one below the call.
fn body_frame(trace: &Trace, traced: &Traced) -> Option<FrameId> {
    let mut at = traced.body;
    let mut frame = None;
    while at != traced.call && at != StackId(0) {
        frame = trace.stacks.innermost(at);
        at = trace.stacks.caller(at);
    }
    frame
}

struct Group<'a> {
    trace: &'a Trace,
    arrays: &'a Arrays,
    lines: &'a UserLines,
    /// Traces of one function, in order; never empty.
    group: Vec<&'a Traced>,
}

impl Group<'_> {
    fn describe(&self) -> TracedFunction {
        let is_alive = |traced: &&&Traced| traced.is_alive(self.arrays);
        let signatures = self.signatures();
        let different: FxHashSet<&Vec<WhatId>> = signatures.iter().collect();
        let (made, kept, captured, kept_arrays) = self.buffers();
        TracedFunction {
            body: StackLine::of_line(self.trace, self.group.first().and_then(|first| body_frame(self.trace, first))),
            calls: self.calls(),
            traces: self.group.len() as u64,
            alive: self.group.iter().filter(is_alive).count() as u64,
            cause: cause(self.group.len(), different.len()),
            signatures: different.len() as u64,
            first_signatures: self.first_signatures(&signatures),
            varying: self.varying(&signatures),
            made,
            kept,
            captured,
            kept_arrays,
        }
    }

    fn signatures(&self) -> Vec<Vec<WhatId>> {
        self.group.iter().map(|traced| traced.signature(self.arrays)).collect()
    }

    fn first_signatures(&self, signatures: &[Vec<WhatId>]) -> Vec<String> {
        let mut seen = FxHashSet::default();
        let firsts = signatures.iter().filter(|signature| seen.insert(*signature)).take(EXAMPLES);
        firsts
            .map(|inputs| inputs.iter().take(EXAMPLES).map(|&what| self.text(what)).collect::<Vec<_>>().join(", "))
            .collect()
    }

    /// "float32[256]".
    fn text(&self, what: WhatId) -> String {
        let what = self.trace.what(what);
        let axes: Vec<String> = what.shape.iter().flat_map(|axes| axes.iter().map(i32::to_string)).collect();
        format!("{}[{}]", self.trace.strings.get(what.dtype), axes.join(","))
    }

    fn calls(&self) -> Vec<(StackLine, u64)> {
        let mut by_line: FxHashMap<Option<FrameId>, u64> = FxHashMap::default();
        for traced in &self.group {
            *by_line.entry(self.lines.line_of(traced.call)).or_default() += 1;
        }
        let mut calls: Vec<_> =
            by_line.into_iter().map(|(line, count)| (StackLine::of_line(self.trace, line), count)).collect();
        calls.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        calls.truncate(EXAMPLES);
        calls
    }

    fn varying(&self, signatures: &[Vec<WhatId>]) -> Vec<VaryingAxis> {
        let mut lengths: FxHashMap<(usize, usize), FxHashSet<i32>> = FxHashMap::default();
        let axes_of = |what: WhatId| self.trace.what(what).shape.as_deref().unwrap_or_default();
        let Some(first) = signatures.first() else { return Vec::new() };
        let alike = |other: &&Vec<WhatId>| {
            other.len() == first.len() && other.iter().zip(first).all(|(a, b)| axes_of(*a).len() == axes_of(*b).len())
        };
        for signature in signatures.iter().filter(alike) {
            for (input, &what) in signature.iter().enumerate() {
                for (axis, &length) in axes_of(what).iter().enumerate() {
                    lengths.entry((input, axis)).or_default().insert(length);
                }
            }
        }
        let mut varying: Vec<VaryingAxis> = lengths
            .into_iter()
            .filter(|(_, lengths)| lengths.len() > 1)
            .map(|((input, axis), lengths)| VaryingAxis {
                input: input as u32,
                axis: axis as u32,
                lengths: lengths.len() as u64,
                smallest: lengths.iter().min().copied().unwrap_or(0),
                largest: lengths.iter().max().copied().unwrap_or(0),
            })
            .collect();
        varying.sort_by_key(|one| (std::cmp::Reverse(one.lengths), one.input, one.axis));
        varying.truncate(EXAMPLES);
        varying
    }

    /// Made, kept and captured buffers, and arrays kept.
    fn buffers(&self) -> (Amount, Amount, Amount, u64) {
        let (mut made, mut kept, mut captured, mut kept_arrays) =
            (Amount::default(), Amount::default(), Amount::default(), 0);
        let (mut seen, mut outside) = (FxHashSet::default(), FxHashSet::default());
        for traced in &self.group {
            let own: FxHashSet<usize> = traced.placeholders.iter().chain(&traced.members).copied().collect();
            let is_kept = traced.is_alive(self.arrays);
            let end = traced.members.iter().map(|&at| self.arrays.all[at].created).max().unwrap_or(0);
            for array in own.iter().map(|&at| &self.arrays.all[at]) {
                kept_arrays += u64::from(is_kept && array.is_alive());
                let Some(used) = array.buffer.filter(|&buffer| seen.insert(buffer)).map(|at| &self.arrays.uses[at])
                else {
                    continue;
                };
                if used.freed > end {
                    made.add(used.size, 1);
                }
                if used.is_active() && is_kept {
                    kept.add(used.size, 1);
                }
            }
            let inputs = own.iter().filter(|_| is_kept).flat_map(|&at| self.arrays.inputs(at));
            for buffer in inputs.filter(|input| !own.contains(input)).filter_map(|at| self.arrays.all[at].buffer) {
                if self.arrays.uses[buffer].is_active() && outside.insert(buffer) {
                    captured.add(self.arrays.uses[buffer].size, 1);
                }
            }
        }
        (made, kept, captured, kept_arrays)
    }
}

fn cause(traces: usize, signatures: usize) -> Cause {
    match (traces, signatures) {
        (0 | 1, _) => Cause::TracedOnce,
        (_, 1) => Cause::NewFunction,
        (traces, signatures) if traces == signatures => Cause::NewShapes,
        _ => Cause::Both,
    }
}
