//! What was held at a moment: active buffers grouped by line, module, primitive, dtype, shape, annotation or stack, in bytes
//! and number; temporaries of the evaluation under way apart from what survives it.
//!
//! The data of `memviz peak`. `total == temporary + surviving == Σ groups + rest`, in bytes and in buffers.

use std::ops::Range;

use memviz_trace::{CheckReport, Frame, FrameId, StackId, Trace};
use serde::Serialize;

use crate::about::About;
use crate::evaluation::Evaluation;
use crate::groups::Groups;
use crate::instant::{Instant, step_range};
use crate::lines::UserLines;
use crate::peak::{LineTotal, Moment, Peaks, find_peaks_in, live_and_moment};
use crate::summary::Rest;
use crate::tree::{TreeRow, tree_of};

/// Version of the JSON form of [`Held`].
pub const HELD_SCHEMA: u32 = 1;

/// What rows of the table stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The line that built the array; frames of libraries are folded into the user's line that called them.
    #[default]
    Line,
    /// The chain of `__call__` and `__init__` methods on the stack: "Model/Block/Linear".
    Module,
    /// As MLX prints it; "no primitive" for leaf arrays.
    Primitive,
    /// "float32".
    Dtype,
    /// Dtype and shape: "float32 [512, 512]".
    Shape,
    /// Names of `annotate` that were open when it was allocated.
    Annotation,
    /// The whole stack that built the array.
    Stack,
}

/// Bytes and number of buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// Bytes.
    pub bytes: u64,
    /// Buffers.
    pub count: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, bytes: u64, count: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.count += count;
    }
}

/// A line of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct StackLine {
    /// Path as Python says it.
    pub file: String,
    /// Line number, from 1.
    pub line: u32,
    /// Qualified name of the function.
    pub function: String,
}

impl StackLine {
    pub(crate) fn of(trace: &Trace, frame: Frame) -> StackLine {
        let text = |id| trace.strings.get(id).to_owned();
        StackLine { file: text(frame.file), line: frame.line, function: text(frame.function) }
    }

    /// All empty and 0 where there is no Python line.
    pub(crate) fn of_line(trace: &Trace, line: Option<FrameId>) -> StackLine {
        line.map(|id| StackLine::of(trace, trace.stacks.frame(id))).unwrap_or_default()
    }
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeldGroup {
    /// What the rows are: a module, a primitive …; empty for lines.
    pub name: String,
    /// The line that built most of it, and its bytes, number and primitives.
    #[serde(flatten)]
    pub line: LineTotal,
    /// Of them, temporaries.
    pub temporary: Amount,
    /// Outermost first, by [`By::Stack`] only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<StackLine>,
}

/// What was held at a moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// [`HELD_SCHEMA`].
    pub schema: u32,
    /// Which run.
    pub about: About,
    /// Older events fell out of the ring: "before the recording" means before the events kept.
    pub is_window: bool,
    /// "peak active", "peak reserved", "highest of the step", "at that time", "last", "start".
    pub which: &'static str,
    /// When.
    pub moment: Moment,
    /// What rows stand for.
    pub by: By,
    /// All active memory.
    pub total: Amount,
    /// Made by the evaluation under way and freed by MLX before its end.
    pub temporary: Amount,
    /// The rest.
    pub surviving: Amount,
    /// The line that was evaluating, when one was.
    pub evaluated_at: Option<StackLine>,
    /// Largest first.
    pub groups: Vec<HeldGroup>,
    /// What `groups` leaves out.
    pub rest: Rest,
    /// With `--frames all`: calls, outermost first, each with all that it and what it called built.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tree: Vec<TreeRow>,
}

/// What to say about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldOptions {
    /// The reserved peak instead of the active one.
    pub reserved: bool,
    /// Another moment than the peak; of a step, the highest one within it.
    pub at: Option<Instant>,
    /// Rows.
    pub by: By,
    /// Number of rows.
    pub top: usize,
    /// Give the tree of calls.
    pub all_frames: bool,
}

impl Held {
    /// What `trace` held.
    ///
    /// # Errors
    /// A sentence for the user: a step that the trace does not have.
    pub fn new(trace: &Trace, options: HeldOptions) -> Result<Held, String> {
        let report = trace.check().ok();
        let (after_events, which) = position(trace, options, report.as_ref())?;
        let (live, moment) = live_and_moment(trace, after_events, report.is_some());
        let evaluation = Evaluation::at(trace, after_events);
        let (mut temporary, mut groups) = (Amount::default(), Groups::new(trace, options.by, &live.buffers));
        for buffer in &live.buffers {
            let is_temporary = evaluation.is_temporary(trace, buffer);
            temporary.add(if is_temporary { buffer.size } else { 0 }, u64::from(is_temporary));
            groups.add(buffer, is_temporary);
        }
        let total = Amount { bytes: live.active_bytes, count: live.buffers.len() as u64 };
        let (groups, rest) = groups.finish(live.unlisted_bytes, options.top);
        Ok(Held {
            schema: HELD_SCHEMA,
            about: About::new(trace),
            is_window: trace.counts.dropped.events > 0 || trace.first_index > 0,
            which,
            moment,
            by: options.by,
            total,
            temporary,
            surviving: Amount { bytes: total.bytes - temporary.bytes, count: total.count - temporary.count },
            evaluated_at: evaluation.triggered.and_then(|stack| user_line(trace, stack)),
            groups,
            rest,
            tree: if options.all_frames { tree_of(trace, &live, options.top) } else { Vec::new() },
        })
    }
}

/// The user's line of one stack.
pub(crate) fn user_line(trace: &Trace, stack: StackId) -> Option<StackLine> {
    if stack == StackId(0) {
        return None;
    }
    let frame = UserLines::new(trace).line_of(stack)?;
    Some(StackLine::of(trace, trace.stacks.frame(frame)))
}

fn position(
    trace: &Trace,
    options: HeldOptions,
    report: Option<&CheckReport>,
) -> Result<(usize, &'static str), String> {
    let highest = |range: Range<usize>| {
        let Peaks { active, reserved, .. } = find_peaks_in(trace, range);
        if options.reserved { reserved.after_events } else { active.after_events }
    };
    Ok(match options.at {
        None | Some(Instant::Peak) => {
            let after_events = match report {
                Some(report) if options.reserved => report.peak_reserved.after_events,
                Some(report) => report.peak_active.after_events,
                None => highest(0..trace.events.len()),
            };
            (after_events, if options.reserved { "peak reserved" } else { "peak active" })
        }
        Some(Instant::Step(step)) => (highest(step_range(trace, step)?), "highest of the step"),
        Some(at) => (
            at.resolve(trace)?,
            match at {
                Instant::Start => "start",
                Instant::Last => "last",
                _ => "at that time",
            },
        ),
    })
}
