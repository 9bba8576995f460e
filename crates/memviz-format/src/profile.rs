//! Memory by call stack, on its way to the formats of profilers: collapsed stacks, SVG, speedscope, pprof.
//!
//! The caller says which memory and sums it up; this holds the sums and gives frames their readable names. One
//! [`StackSum`] per stack and primitive; formats that know no primitives add them up.

use std::collections::BTreeMap;

use memviz_trace::{FrameId, Trace};

/// Bytes and buffers of one stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackSum {
    /// Outermost first.
    pub frames: Vec<FrameId>,
    /// What stands in place of frames when there are none: "no Python line".
    pub label: &'static str,
    /// Primitive that made the buffers, "" for leaf arrays.
    pub primitive: String,
    /// Bytes.
    pub bytes: u64,
    /// Buffers.
    pub count: u64,
}

/// What a flame graph measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Bytes.
    #[default]
    Bytes,
    /// Buffers.
    Count,
}

impl Measure {
    /// Plural, for titles.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Bytes => "bytes",
            Measure::Count => "buffers",
        }
    }

    pub(crate) fn of(self, sum: &StackSum) -> u64 {
        match self {
            Measure::Bytes => sum.bytes,
            Measure::Count => sum.count,
        }
    }
}

/// Memory by stack.
#[derive(Clone, Debug)]
pub struct Profile<'t> {
    /// The trace that the frames belong to.
    pub trace: &'t Trace,
    /// What it shows: "active at the peak, 1.2 GiB".
    pub title: String,
    /// The sums.
    pub sums: Vec<StackSum>,
}

impl Profile<'_> {
    /// Sum of all stacks.
    pub fn total(&self, measure: Measure) -> u64 {
        self.sums.iter().fold(0, |sum, stack| sum.saturating_add(measure.of(stack)))
    }

    /// Names of frames, outermost first or, `inverted`, innermost first, with what they hold; sorted, and none is 0.
    pub(crate) fn named(&self, measure: Measure, inverted: bool) -> BTreeMap<Vec<String>, u64> {
        let mut named: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for sum in self.sums.iter().filter(|sum| measure.of(sum) > 0) {
            let mut names: Vec<String> = sum.frames.iter().map(|frame| self.frame_name(*frame)).collect();
            if names.is_empty() {
                names.push(sum.label.to_owned());
            }
            if inverted {
                names.reverse();
            }
            let total = named.entry(names).or_default();
            *total = total.saturating_add(measure.of(sum));
        }
        named
    }

    pub(crate) fn frame_name(&self, id: FrameId) -> String {
        frame_name(self.trace, id)
    }
}

/// "forward (model.py:30)".
pub(crate) fn frame_name(trace: &Trace, id: FrameId) -> String {
    let frame = trace.stacks.frame(id);
    let path = trace.strings.get(frame.file);
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    match (trace.strings.get(frame.function), file, frame.line) {
        ("", "", _) => "?".to_owned(),
        (function, "", _) => function.to_owned(),
        (function, file, 0) => format!("{function} ({file})"),
        (function, file, line) => format!("{function} ({file}:{line})"),
    }
}
