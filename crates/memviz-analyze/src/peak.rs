//! When memory was highest, what was active then, and which lines of the program it belongs to.
//!
//! Replays through [`Ledger`], which alone knows what an action does to memory. An event that contradicts those before it is
//! skipped, as `Ledger::apply` leaves the state alone then; `Trace::check` is what reports it.

use std::ops::Range;

use memviz_trace::{Action, Buffer, CheckReport, FrameId, Ledger, Totals, Trace, WhatId};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::lines::UserLines;

/// How many primitives a line names.
const PRIMITIVES_PER_LINE: usize = 4;

/// A moment of the run: the state after some event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// Number of events of the trace up to it: 0 is the state before the first one.
    pub after_events: usize,
    /// The same, counted from the start of the recording: more when older events fell out of the ring.
    pub index: u64,
    /// Nanoseconds since the recording started.
    pub time_nanos: u64,
    /// Step under way, when the loop is marked.
    pub step: Option<u64>,
    /// Bytes used by arrays.
    pub active_bytes: u64,
    /// Bytes kept by MLX for reuse.
    pub cached_bytes: u64,
}

impl Moment {
    /// Active and cached bytes.
    pub fn reserved_bytes(&self) -> u64 {
        self.active_bytes.saturating_add(self.cached_bytes)
    }

    pub(crate) fn of(trace: &Trace, after_events: usize, totals: Totals) -> Moment {
        let index = trace.first_index + after_events as u64;
        let mut cursor = trace.mark_cursor();
        // The moment belongs to its last event, so marks set after that event do not count.
        cursor.advance_to(index.saturating_sub(u64::from(after_events > 0)));
        let before_first = if trace.first_index > 0 { trace.events.first() } else { None };
        let last = after_events.checked_sub(1).and_then(|last| trace.events.get(last)).or(before_first);
        Moment {
            after_events,
            index,
            time_nanos: last.map_or(0, |event| event.time_nanos),
            step: cursor.step(),
            active_bytes: totals.active,
            cached_bytes: totals.cached,
        }
    }
}

/// The highest moments of a trace (each the first of its height) and its last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Peaks {
    /// Most active bytes.
    pub active: Moment,
    /// Most active plus cached bytes.
    pub reserved: Moment,
    /// After the last event.
    pub end: Moment,
    /// Events that contradict those before them and were skipped: 0 for a trace that passes its check.
    pub skipped_events: u64,
}

/// Replays `trace` once.
pub fn find_peaks(trace: &Trace) -> Peaks {
    find_peaks_in(trace, 0..trace.events.len())
}

/// The highest moments from the state before the first event of `range` to that after its last one.
pub fn find_peaks_in(trace: &Trace, range: Range<usize>) -> Peaks {
    let mut ledger = start_of(trace);
    replay(&mut ledger, trace, 0..range.start);
    let mut skipped_events = 0;
    let (mut active, mut reserved) = ((range.start, ledger.totals()), (range.start, ledger.totals()));
    for (position, event) in trace.events.iter().enumerate().take(range.end).skip(range.start) {
        skipped_events += u64::from(ledger.apply(event).is_err());
        let totals = ledger.totals();
        if totals.active > active.1.active {
            active = (position + 1, totals);
        }
        if totals.reserved() > reserved.1.reserved() {
            reserved = (position + 1, totals);
        }
    }
    let moment = |(after_events, totals)| Moment::of(trace, after_events, totals);
    let end = moment((range.end, ledger.totals()));
    Peaks { active: moment(active), reserved: moment(reserved), end, skipped_events }
}

/// Peaks of a trace that passed its check, and what is active at the active peak.
pub(crate) fn peaks_of_checked(trace: &Trace, report: &CheckReport) -> (Peaks, Live) {
    let (active_at, reserved_at) = (report.peak_active.after_events, report.peak_reserved.after_events);
    let (live, active) = live_of_checked(trace, active_at);
    let reserved = Moment::of(trace, reserved_at, totals_of_checked(trace, reserved_at));
    let end = Moment::of(trace, trace.events.len(), report.end);
    (Peaks { active, reserved, end, skipped_events: 0 }, live)
}

/// What is active after the first `after_events` events of a trace that passed its check.
///
/// Looks backwards: the last event of an address decides. A set of addresses is a tenth of the size of a ledger, and that
/// is what counts when a million buffers are alive.
fn live_of_checked(trace: &Trace, after_events: usize) -> (Live, Moment) {
    let totals = totals_of_checked(trace, after_events);
    let mut decided: FxHashSet<u64> = FxHashSet::default();
    let mut buffers = Vec::new();
    for event in trace.events.get(..after_events).unwrap_or_default().iter().rev() {
        if event.action.is_buffer() && decided.insert(event.addr) && event.action.is_alloc() {
            buffers.push(Buffer::from_alloc(event));
        }
    }
    let untouched = trace.start.iter().filter(|buffer| !buffer.is_cached && !decided.contains(&buffer.addr));
    buffers.extend(untouched.copied());
    (Live::of(buffers, totals.active), Moment::of(trace, after_events, totals))
}

/// Sums after the first `after_events` events of a trace that passed its check: nothing can be out of range.
fn totals_of_checked(trace: &Trace, after_events: usize) -> Totals {
    let (mut active, mut cached) = (trace.base.active, trace.base.cached);
    for buffer in &trace.start {
        let sum = if buffer.is_cached { &mut cached } else { &mut active };
        *sum = sum.wrapping_add(buffer.size);
    }
    for event in trace.events.get(..after_events).unwrap_or_default() {
        match event.action {
            Action::AllocNew | Action::AllocMakeBuffer => active = active.wrapping_add(event.size),
            Action::AllocReuse => {
                active = active.wrapping_add(event.size);
                cached = cached.wrapping_sub(event.size);
            }
            Action::FreeActiveToCache => {
                active = active.wrapping_sub(event.size);
                cached = cached.wrapping_add(event.size);
            }
            Action::FreeActiveToOs | Action::Release => active = active.wrapping_sub(event.size),
            Action::FreeCacheToOs => cached = cached.wrapping_sub(event.size),
            Action::Oom => active = active.wrapping_add(event.addr),
            Action::FilteredNet => {
                active = active.wrapping_add(event.addr);
                cached = cached.wrapping_add(event.size);
            }
            _ => {}
        }
    }
    Totals { active, cached }
}

/// Takes events into account; one that contradicts the state is skipped, as in [`find_peaks`], so both see the same sums.
fn replay(ledger: &mut Ledger, trace: &Trace, events: Range<usize>) {
    for event in trace.events.get(events).unwrap_or_default() {
        let _ = ledger.apply(event);
    }
}

/// The state before the first event; a start that contradicts itself counts as empty.
pub(crate) fn start_of(trace: &Trace) -> Ledger {
    Ledger::at_start(trace).unwrap_or_default()
}

/// Active memory at one moment. `active_bytes == Σ buffers[i].size + unlisted_bytes`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// Active buffers, sorted by address.
    pub buffers: Vec<Buffer>,
    /// Active bytes whose buffers are not known one by one: the base of the trace, filtered events, failed allocations.
    pub unlisted_bytes: u64,
    /// All active bytes.
    pub active_bytes: u64,
}

impl Live {
    fn of(mut buffers: Vec<Buffer>, active_bytes: u64) -> Live {
        buffers.sort_by_key(|buffer| buffer.addr);
        // Sizes of a hostile trace may add up to more than 64 bits.
        let listed = buffers.iter().fold(0u64, |sum, buffer| sum.saturating_add(buffer.size));
        let active_bytes = active_bytes.max(listed);
        Live { buffers, unlisted_bytes: active_bytes - listed, active_bytes }
    }

    fn in_ledger(ledger: &Ledger) -> Live {
        let buffers = ledger.buffers_unsorted().filter(|buffer| !buffer.is_cached).copied().collect();
        Live::of(buffers, ledger.totals().active)
    }
}

/// What is active after the first `after_events` events of `trace`.
pub fn live_at(trace: &Trace, after_events: usize) -> Live {
    let mut ledger = start_of(trace);
    replay(&mut ledger, trace, 0..after_events.min(trace.events.len()));
    Live::in_ledger(&ledger)
}

/// The same, and the moment itself. `is_sound`: the trace passed its check.
pub(crate) fn live_and_moment(trace: &Trace, after_events: usize, is_sound: bool) -> (Live, Moment) {
    if is_sound {
        return live_of_checked(trace, after_events);
    }
    let mut ledger = start_of(trace);
    replay(&mut ledger, trace, 0..after_events.min(trace.events.len()));
    (Live::in_ledger(&ledger), Moment::of(trace, after_events, ledger.totals()))
}

/// The sums after the first `after_events` events of `trace`.
pub fn moment_at(trace: &Trace, after_events: usize) -> Moment {
    let after_events = after_events.min(trace.events.len());
    let mut ledger = start_of(trace);
    replay(&mut ledger, trace, 0..after_events);
    Moment::of(trace, after_events, ledger.totals())
}

/// Why a row of a table has the line it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// A line of Python.
    #[default]
    Line,
    /// Buffers without a stack that exist since before the first event.
    BeforeRecording,
    /// Buffers without a Python line, made while recording.
    NoPythonLine,
    /// Bytes whose buffers are not known one by one.
    NotListed,
}

impl LineKind {
    /// What stands in place of a line, "" for [`LineKind::Line`].
    pub fn label(self) -> &'static str {
        match self {
            LineKind::Line => "",
            LineKind::BeforeRecording => "before the recording",
            LineKind::NoPythonLine => "no Python line",
            LineKind::NotListed => "not known one by one",
        }
    }
}

/// How many buffers of a line a primitive made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PrimitiveCount {
    /// As MLX prints it; empty for leaf arrays.
    pub primitive: String,
    /// Buffers.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What one line of the program holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineTotal {
    /// Whether it is a line, and if not, what the row is.
    pub kind: LineKind,
    /// The frame within the trace, for [`LineKind::Line`]; of frames that differ by column only, the first.
    #[serde(skip)]
    pub frame: Option<FrameId>,
    /// Path as Python says it.
    pub file: String,
    /// Qualified name of the function.
    pub function: String,
    /// Line number, from 1; 0 when not known.
    pub line: u32,
    /// Bytes of its buffers.
    pub bytes: u64,
    /// Number of its buffers; 0 for [`LineKind::NotListed`].
    pub count: u64,
    /// The primitives with most bytes, largest first.
    pub primitives: Vec<PrimitiveCount>,
}

/// Kind and frame of a row.
pub(crate) type LineKey = (LineKind, Option<FrameId>);

/// Active memory by the line that built it, largest first. The bytes of all rows add up to `live.active_bytes`.
pub fn top_lines(trace: &Trace, live: &Live) -> Vec<LineTotal> {
    let keys = LineKeys::new(trace);
    let mut groups: FxHashMap<LineKey, Group> = FxHashMap::default();
    for buffer in &live.buffers {
        groups.entry(keys.of(buffer)).or_default().add(buffer);
    }
    if live.unlisted_bytes > 0 {
        groups.insert(NOT_LISTED, Group { bytes: live.unlisted_bytes, ..Group::default() });
    }
    let mut totals: Vec<LineTotal> = groups.into_iter().map(|(key, group)| group.total(trace, key)).collect();
    totals.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.place().cmp(&b.place())));
    totals
}

/// The row of bytes whose buffers are not known.
pub(crate) const NOT_LISTED: LineKey = (LineKind::NotListed, None);

/// Tells the line of a buffer.
pub(crate) struct LineKeys<'a> {
    trace: &'a Trace,
    lines: UserLines,
}

impl<'a> LineKeys<'a> {
    pub(crate) fn new(trace: &'a Trace) -> LineKeys<'a> {
        LineKeys { trace, lines: UserLines::new(trace) }
    }

    /// The line that built the buffer's array, else the one that evaluated it.
    pub(crate) fn of(&self, buffer: &Buffer) -> LineKey {
        match self.lines.line_of(buffer.built).or_else(|| self.lines.line_of(buffer.triggered)) {
            Some(frame) => (LineKind::Line, Some(frame)),
            None if is_from_start(self.trace, buffer) => (LineKind::BeforeRecording, None),
            None => (LineKind::NoPythonLine, None),
        }
    }
}

pub(crate) fn is_from_start(trace: &Trace, buffer: &Buffer) -> bool {
    let found = trace.start.binary_search_by_key(&buffer.addr, |start| start.addr);
    found.is_ok_and(|at| Buffer { is_cached: buffer.is_cached, ..trace.start[at] } == *buffer)
}

/// Buffers of one row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    by_what: FxHashMap<WhatId, (u64, u64)>,
}

impl Group {
    pub(crate) fn add(&mut self, buffer: &Buffer) {
        self.bytes = self.bytes.saturating_add(buffer.size);
        self.count += 1;
        let (count, bytes) = self.by_what.entry(buffer.what).or_default();
        *count += 1;
        *bytes = bytes.saturating_add(buffer.size);
    }

    pub(crate) fn total(self, trace: &Trace, key: LineKey) -> LineTotal {
        let primitives = primitives(trace, &self.by_what);
        LineTotal { bytes: self.bytes, count: self.count, primitives, ..LineTotal::of(trace, key) }
    }
}

fn primitives(trace: &Trace, by_what: &FxHashMap<WhatId, (u64, u64)>) -> Vec<PrimitiveCount> {
    let mut by_name: FxHashMap<&str, (u64, u64)> = FxHashMap::default();
    for (what, (count, bytes)) in by_what {
        let sum = by_name.entry(trace.primitive(*what)).or_default();
        *sum = (sum.0 + count, sum.1.saturating_add(*bytes));
    }
    let owned = |(name, (count, bytes)): (&str, _)| PrimitiveCount { primitive: name.to_owned(), count, bytes };
    let mut all: Vec<PrimitiveCount> = by_name.into_iter().map(owned).collect();
    all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.primitive.cmp(&b.primitive)));
    all.truncate(PRIMITIVES_PER_LINE);
    all
}

impl LineTotal {
    /// A row without buffers yet.
    pub(crate) fn of(trace: &Trace, (kind, frame): LineKey) -> LineTotal {
        let place = frame.map(|id| trace.stacks.frame(id));
        let text = |id| trace.strings.get(id).to_owned();
        LineTotal {
            kind,
            frame,
            file: place.map_or_else(String::new, |frame| text(frame.file)),
            function: place.map_or_else(String::new, |frame| text(frame.function)),
            line: place.map_or(0, |frame| frame.line),
            ..LineTotal::default()
        }
    }

    /// Orders rows with equal numbers, so that equal traces print equal tables.
    pub(crate) fn place(&self) -> (LineKind, &str, u32, &str, Option<FrameId>) {
        (self.kind, &self.file, self.line, &self.function, self.frame)
    }
}
