//! What keeps memory alive although nobody seems to use it: small views of big buffers, buffers without arrays, arrays that
//! wait for an evaluation, traces of compiled functions.
//!
//! A pure function of a recording of level `arrays` and a moment. References from Python are not recorded: that an array is
//! alive means that something holds it, a variable, a list, a NumPy view of it, or a cycle.

use memviz_trace::{StringId, Trace, WhatId};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::about::About;
use crate::arrays::{Arrays, NeedsArrays, bytes_of};
use crate::compile::Traces;
use crate::held::{Amount, StackLine};
use crate::lines::UserLines;
use crate::peak::{Moment, moment_at};

/// Version of the JSON form of [`Pinned`]; a field that changes its meaning or goes raises it.
pub const PINNED_SCHEMA: u32 = 1;
/// A view pins a buffer when the part that no array reaches has at least this many bytes …
const LEAST_PINNED_BYTES: u64 = 1024;
/// … and is at least this share of the buffer: 1 / 2.
const LEAST_PINNED_PART: u64 = 2;
/// How many lines an entry names for the buffers that it holds.
const HELD_LINES: usize = 4;

/// What keeps memory alive at a moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pinned {
    /// [`PINNED_SCHEMA`].
    pub schema: u32,
    /// The run.
    pub about: About,
    /// When.
    pub moment: Moment,
    /// Buffers of which the arrays alive reach half or less, most unreachable bytes first.
    pub views: Vec<PinnedByView>,
    /// Active buffers that no array alive uses, most bytes first.
    pub without_arrays: Vec<WithoutArray>,
    /// Arrays that are not evaluated, by the line that built them, most arrays first.
    pub waiting: Vec<Waiting>,
    /// All of `waiting`.
    pub waiting_count: u64,
    /// Buffers that wait with them: each counted once.
    pub waiting_holds: Amount,
    /// Buffers made while tracing compiled functions that still keep their traces; `memviz retrace` says which.
    pub compiled: Amount,
    /// Active buffers that arrays from before the recording use: nothing is known of those.
    pub unknown: Amount,
}

/// Buffers of one line that are kept by small views of one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PinnedByView {
    /// Line that built the buffers' first arrays.
    pub buffer: StackLine,
    /// Line that built the largest array that is alive.
    pub view: StackLine,
    /// Primitive of that array.
    pub primitive: String,
    /// Number of buffers.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the arrays alive, at most those of the buffer.
    pub reached_bytes: u64,
    /// `bytes - reached_bytes`: what a copy of the views would free.
    pub pinned_bytes: u64,
}

/// Why no array alive uses a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WithoutArrayKind {
    /// Its arrays died: work that is still to run holds it, or another library.
    ArraysDied,
    /// Scratch memory of a primitive: no array ever took it.
    Scratch,
}

/// Buffers of one line that no array alive uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WithoutArray {
    /// Why.
    pub kind: WithoutArrayKind,
    /// Line that built them.
    pub line: StackLine,
    /// Primitive that made them.
    pub primitive: String,
    /// Number of buffers.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Arrays of one line that wait for an evaluation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// Line that built them.
    pub line: StackLine,
    /// Number of arrays.
    pub count: u64,
    /// Their bytes, once they are evaluated.
    pub needs_bytes: u64,
    /// Primitives with most arrays, most first.
    pub primitives: Vec<(String, u64)>,
    /// When the oldest was built, nanoseconds since the recording started.
    pub oldest_nanos: u64,
    /// Evaluated buffers that they are computed from, which stay alive as long as they wait; each counted once a line.
    pub holds: Amount,
    /// The lines that built these, most bytes first.
    pub held_lines: Vec<HeldLine>,
}

/// Buffers of one line that waiting arrays hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldLine {
    /// Line that built them.
    pub line: StackLine,
    /// Number of buffers.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Pinned {
    /// Answers for the moment after `after_events` events of `trace`.
    ///
    /// # Errors
    /// The recording has no array events.
    pub fn new(trace: &Trace, after_events: usize) -> Result<Pinned, NeedsArrays> {
        let arrays = Arrays::new(trace, after_events)?;
        let asked = Asked { trace, traces: Traces::find(trace, &arrays), lines: UserLines::new(trace), arrays };
        let users = asked.users();
        let (waiting, waiting_holds) = asked.waiting();
        Ok(Pinned {
            schema: PINNED_SCHEMA,
            about: About::new(trace),
            moment: moment_at(trace, after_events),
            views: asked.views(&users),
            without_arrays: asked.without_arrays(&users),
            waiting_count: waiting.iter().map(|row| row.count).sum(),
            waiting,
            waiting_holds,
            compiled: asked.compiled(),
            unknown: asked.unknown(),
        })
    }
}

struct Asked<'a> {
    trace: &'a Trace,
    arrays: Arrays,
    traces: Traces,
    lines: UserLines,
}

/// Arrays alive that use a buffer: how many bytes they reach, and the largest.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    count: u64,
    /// `None` when the size of one is not known.
    reached: Option<u64>,
    largest: Option<(u64, usize)>,
}

impl Asked<'_> {
    /// For every use of a buffer, who uses it at the moment.
    fn users(&self) -> Vec<Users> {
        let none = Users { reached: Some(0), ..Users::default() };
        let mut users = vec![none; self.arrays.uses.len()];
        for (at, array) in self.arrays.all.iter().enumerate().filter(|(_, array)| array.is_alive()) {
            let Some(of) = array.buffer.map(|buffer| &mut users[buffer]) else { continue };
            let bytes = bytes_of(self.trace, array.what);
            of.count += 1;
            of.reached = of.reached.zip(bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
            of.largest = of.largest.max(bytes.map(|bytes| (bytes, at)));
        }
        users
    }

    fn views(&self, users: &[Users]) -> Vec<PinnedByView> {
        let mut groups: FxHashMap<_, (u64, u64, u64)> = FxHashMap::default();
        for (used, by) in self.arrays.uses.iter().zip(users).filter(|(used, _)| used.is_active()) {
            let (Some(reached), Some((_, view)), false) = (by.reached, by.largest, used.has_unknown_user) else {
                continue;
            };
            let reached = reached.min(used.requested);
            let pinned = used.requested - reached;
            if pinned < LEAST_PINNED_BYTES || reached > used.requested / LEAST_PINNED_PART {
                continue;
            }
            let view = &self.arrays.all[view];
            let key = (self.lines.line_of(used.built), self.lines.line_of(view.built), self.primitive_of(view.what));
            let sum = groups.entry(key).or_default();
            *sum = (sum.0 + 1, sum.1.saturating_add(used.size), sum.2.saturating_add(reached));
        }
        let mut rows: Vec<PinnedByView> = groups
            .into_iter()
            .map(|((buffer, view, primitive), (count, bytes, reached_bytes))| PinnedByView {
                buffer: StackLine::of_line(self.trace, buffer),
                view: StackLine::of_line(self.trace, view),
                primitive: self.trace.strings.get(primitive).to_owned(),
                count,
                bytes,
                reached_bytes,
                pinned_bytes: bytes.saturating_sub(reached_bytes),
            })
            .collect();
        rows.sort_by(|a, b| {
            b.pinned_bytes.cmp(&a.pinned_bytes).then_with(|| (&a.buffer, &a.view).cmp(&(&b.buffer, &b.view)))
        });
        rows
    }

    fn primitive_of(&self, what: WhatId) -> StringId {
        self.trace.what(what).primitive
    }

    fn without_arrays(&self, users: &[Users]) -> Vec<WithoutArray> {
        let mut groups: FxHashMap<_, Amount> = FxHashMap::default();
        for (used, by) in self.arrays.uses.iter().zip(users) {
            if !used.is_active() || used.has_unknown_user || by.count > 0 {
                continue;
            }
            let kind = if used.is_taken { WithoutArrayKind::ArraysDied } else { WithoutArrayKind::Scratch };
            let key = (kind, self.lines.line_of(used.built), self.primitive_of(used.what));
            groups.entry(key).or_default().add(used.size, 1);
        }
        let mut rows: Vec<WithoutArray> = groups
            .into_iter()
            .map(|((kind, line, primitive), sum)| WithoutArray {
                kind,
                line: StackLine::of_line(self.trace, line),
                primitive: self.trace.strings.get(primitive).to_owned(),
                count: sum.count,
                bytes: sum.bytes,
            })
            .collect();
        rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| (&a.line, &a.primitive).cmp(&(&b.line, &b.primitive))));
        rows
    }

    fn waiting(&self) -> (Vec<Waiting>, Amount) {
        let mut groups: FxHashMap<_, WaitingGroup> = FxHashMap::default();
        let (mut all_held, mut total) = (FxHashSet::default(), Amount::default());
        for at in 0..self.arrays.all.len() {
            if self.traces.of(at).is_some() || !self.arrays.is_waiting(self.trace, at) {
                continue;
            }
            let array = &self.arrays.all[at];
            let group = groups.entry(self.lines.line_of(array.built)).or_default();
            group.add(bytes_of(self.trace, array.what).unwrap_or(0), array.created_nanos);
            *group.primitives.entry(self.primitive_of(array.what)).or_default() += 1;
            let buffers = self.arrays.inputs(at).filter_map(|input| self.arrays.all[input].buffer);
            for buffer in buffers.filter(|&buffer| self.arrays.uses[buffer].is_active()) {
                group.held.insert(buffer);
                if all_held.insert(buffer) {
                    total.add(self.arrays.uses[buffer].size, 1);
                }
            }
        }
        let mut rows: Vec<Waiting> = groups
            .into_iter()
            .map(|(line, group)| self.waiting_row(StackLine::of_line(self.trace, line), group))
            .collect();
        rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.line.cmp(&b.line)));
        (rows, total)
    }

    fn waiting_row(&self, line: StackLine, group: WaitingGroup) -> Waiting {
        let (mut holds, mut by_line) = (Amount::default(), FxHashMap::<_, Amount>::default());
        for used in group.held.iter().map(|&buffer| &self.arrays.uses[buffer]) {
            holds.add(used.size, 1);
            by_line.entry(self.lines.line_of(used.built)).or_default().add(used.size, 1);
        }
        let held_line = |(line, sum): (_, Amount)| HeldLine {
            line: StackLine::of_line(self.trace, line),
            count: sum.count,
            bytes: sum.bytes,
        };
        let mut held_lines: Vec<HeldLine> = by_line.into_iter().map(held_line).collect();
        held_lines.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.line.cmp(&b.line)));
        held_lines.truncate(HELD_LINES);
        let name = |(primitive, count)| (self.trace.strings.get(primitive).to_owned(), count);
        let mut primitives: Vec<(String, u64)> = group.primitives.into_iter().map(name).collect();
        primitives.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        primitives.truncate(HELD_LINES);
        let (count, needs_bytes, oldest_nanos) = (group.count, group.needs_bytes, group.oldest_nanos);
        Waiting { line, count, needs_bytes, primitives, oldest_nanos, holds, held_lines }
    }

    /// Buffers of arrays that the traces alive keep.
    fn compiled(&self) -> Amount {
        let alive: Vec<bool> = self.traces.all.iter().map(|traced| traced.is_alive(&self.arrays)).collect();
        let (mut seen, mut sum) = (FxHashSet::default(), Amount::default());
        for (at, array) in self.arrays.all.iter().enumerate().filter(|(_, array)| array.is_alive()) {
            let is_kept = self.traces.of(at).is_some_and(|traced| alive[traced]);
            let Some(buffer) = array.buffer.filter(|_| is_kept) else { continue };
            if self.arrays.uses[buffer].is_active() && seen.insert(buffer) {
                sum.add(self.arrays.uses[buffer].size, 1);
            }
        }
        sum
    }

    fn unknown(&self) -> Amount {
        let mut sum = Amount::default();
        let unknown = self.arrays.uses.iter().filter(|used| used.is_active() && used.has_unknown_user);
        unknown.for_each(|used| sum.add(used.size, 1));
        sum
    }
}

#[derive(Default)]
struct WaitingGroup {
    count: u64,
    needs_bytes: u64,
    oldest_nanos: u64,
    primitives: FxHashMap<StringId, u64>,
    held: FxHashSet<usize>,
}

impl WaitingGroup {
    fn add(&mut self, needs_bytes: u64, created_nanos: u64) {
        self.oldest_nanos = if self.count == 0 { created_nanos } else { self.oldest_nanos.min(created_nanos) };
        self.count += 1;
        self.needs_bytes = self.needs_bytes.saturating_add(needs_bytes);
    }
}
