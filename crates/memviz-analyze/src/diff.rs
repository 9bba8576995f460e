//! Two runs, or two moments of one, compared: what changed, by line and by primitive.
//!
//! `change == Σ change of the rows` for bytes and for buffers, rows that did not change left out. Which line is which after
//! an edit is decided in `moved`.

use std::collections::BTreeMap;

use memviz_trace::Trace;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::about::About;
use crate::held::Amount;
use crate::moved::Moved;
use crate::peak::{LineKind, LineTotal, Live, Moment, find_peaks, live_at, moment_at, top_lines};

/// Version of the JSON form of [`Diff`]; a field that changes its meaning or goes raises it.
pub const DIFF_SCHEMA: u32 = 1;

/// A run and the number of its events up to the moment that is compared.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The run.
    pub trace: &'a Trace,
    /// Events up to the moment.
    pub after_events: usize,
}

/// Two runs compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// [`DIFF_SCHEMA`].
    pub schema: u32,
    /// The first run.
    pub before: About,
    /// The second.
    pub after: About,
    /// Peak against peak and end against end, or the two moments asked for.
    pub comparisons: Vec<Comparison>,
    /// Growth that is a finding, if one was given.
    pub fail_over_bytes: Option<u64>,
    /// Active bytes of a comparison grew by more than that.
    pub is_over: bool,
}

/// Two moments compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// "peak", "end" or "moments".
    pub what: &'static str,
    /// Of the first run.
    pub before: Moment,
    /// Of the second.
    pub after: Moment,
    /// Active buffers of the first.
    pub before_count: u64,
    /// Active buffers of the second.
    pub after_count: u64,
    /// Change of active bytes.
    pub change_bytes: i64,
    /// Change of the number of active buffers.
    pub change_count: i64,
    /// Lines that changed, largest change first.
    pub lines: Vec<ChangedLine>,
    /// Primitives that changed, likewise; "" are leaf arrays.
    pub primitives: Vec<ChangedPrimitive>,
    /// Lines that are the same on both sides, in bytes and number of buffers.
    pub unchanged_lines: u64,
}

/// A line that holds more or less.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedLine {
    /// Whether it is a line, and if not, what the row is.
    pub kind: LineKind,
    /// Path as Python says it, of the second run if it is there.
    pub file: String,
    /// Qualified name of the function.
    pub function: String,
    /// Line number in the second run, or where it is only in the first, there.
    pub line: u32,
    /// Its number in the first run, where that is another.
    pub moved_from: Option<u32>,
    /// In the first run.
    pub before: Amount,
    /// In the second.
    pub after: Amount,
    /// `after.bytes - before.bytes`.
    pub change_bytes: i64,
    /// `after.count - before.count`.
    pub change_count: i64,
}

/// A primitive whose outputs hold more or less.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedPrimitive {
    /// As MLX prints it; "" for leaf arrays.
    pub primitive: String,
    /// In the first run.
    pub before: Amount,
    /// In the second.
    pub after: Amount,
    /// `after.bytes - before.bytes`.
    pub change_bytes: i64,
    /// `after.count - before.count`.
    pub change_count: i64,
}

impl Diff {
    /// Compares peak with peak and end with end.
    pub fn of_runs(before: &Trace, after: &Trace) -> Diff {
        let (old, new) = (find_peaks(before), find_peaks(after));
        let moments = [("peak", old.active, new.active), ("end", old.end, new.end)];
        let moved = Moved::between(before, after);
        let compare = |(what, old, new): (&'static str, Moment, Moment)| {
            Sides { before, after, moved: &moved }.compare(what, old, new)
        };
        Diff::new(before, after, moments.map(compare).into())
    }

    /// Compares two moments.
    pub fn of_moments(before: Side<'_>, after: Side<'_>) -> Diff {
        let moment = |side: Side<'_>| moment_at(side.trace, side.after_events);
        let is_one_run = std::ptr::eq(before.trace, after.trace);
        let moved = if is_one_run { Moved::default() } else { Moved::between(before.trace, after.trace) };
        let sides = Sides { before: before.trace, after: after.trace, moved: &moved };
        Diff::new(before.trace, after.trace, vec![sides.compare("moments", moment(before), moment(after))])
    }

    fn new(before: &Trace, after: &Trace, comparisons: Vec<Comparison>) -> Diff {
        let (before, after) = (About::new(before), About::new(after));
        Diff { schema: DIFF_SCHEMA, before, after, comparisons, fail_over_bytes: None, is_over: false }
    }

    /// Makes growth of more than `bytes` a finding.
    #[must_use]
    pub fn fail_over(mut self, bytes: u64) -> Diff {
        self.fail_over_bytes = Some(bytes);
        self.is_over =
            self.comparisons.iter().any(|one| u64::try_from(one.change_bytes).is_ok_and(|grown| grown > bytes));
        self
    }
}

/// What a row is about, in words of the second run.
type Key = (LineKind, String, String, u32);

#[derive(Default)]
struct Pair {
    moved_from: Option<u32>,
    before: Amount,
    after: Amount,
}

impl Pair {
    fn change(&self) -> (i64, i64) {
        (change(self.before.bytes, self.after.bytes), change(self.before.count, self.after.count))
    }
}

fn change(before: u64, after: u64) -> i64 {
    let change = i128::from(after) - i128::from(before);
    i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX })
}

struct Sides<'a> {
    before: &'a Trace,
    after: &'a Trace,
    moved: &'a Moved,
}

impl Sides<'_> {
    fn compare(&self, what: &'static str, before: Moment, after: Moment) -> Comparison {
        let old = live_at(self.before, before.after_events);
        let new = live_at(self.after, after.after_events);
        let (lines, unchanged_lines) = self.lines(&top_lines(self.before, &old), &top_lines(self.after, &new));
        let count = |live: &Live| live.buffers.len() as u64;
        Comparison {
            what,
            before,
            after,
            before_count: count(&old),
            after_count: count(&new),
            change_bytes: change(before.active_bytes, after.active_bytes),
            change_count: change(count(&old), count(&new)),
            lines,
            primitives: self.primitives(&old, &new),
            unchanged_lines,
        }
    }

    fn lines(&self, old: &[LineTotal], new: &[LineTotal]) -> (Vec<ChangedLine>, u64) {
        let mut pairs: BTreeMap<Key, Pair> = BTreeMap::new();
        let mut gone: BTreeMap<Key, Pair> = BTreeMap::new();
        let is_one_run = std::ptr::eq(self.before, self.after);
        for row in old {
            let (file, number) = self.moved.find(&row.file, &row.function, row.line);
            let number = number.or((is_one_run || row.kind != LineKind::Line).then_some(row.line));
            // A line that is in the first run only must not meet another of that number in the second.
            let rows = if number.is_some() { &mut pairs } else { &mut gone };
            let pair = rows.entry((row.kind, file, row.function.clone(), number.unwrap_or(row.line))).or_default();
            pair.moved_from = number.filter(|&number| number != row.line).map(|_| row.line);
            pair.before = Amount { count: row.count, bytes: row.bytes };
        }
        for row in new {
            let pair = pairs.entry((row.kind, row.file.clone(), row.function.clone(), row.line)).or_default();
            pair.after = Amount { count: row.count, bytes: row.bytes };
        }
        let all = pairs.len() + gone.len();
        let is_changed = |(_, pair): &(Key, Pair)| pair.change() != (0, 0);
        let mut rows: Vec<ChangedLine> =
            pairs.into_iter().chain(gone).filter(is_changed).map(ChangedLine::of).collect();
        // Stable: rows with equal changes stay in order of file and line.
        rows.sort_by_key(|row| std::cmp::Reverse((row.change_bytes.unsigned_abs(), row.change_count.unsigned_abs())));
        let unchanged = (all - rows.len()) as u64;
        (rows, unchanged)
    }

    fn primitives(&self, old: &Live, new: &Live) -> Vec<ChangedPrimitive> {
        let mut pairs: FxHashMap<&str, Pair> = FxHashMap::default();
        for buffer in &old.buffers {
            pairs.entry(self.before.primitive(buffer.what)).or_default().before.add(buffer.size, 1);
        }
        for buffer in &new.buffers {
            pairs.entry(self.after.primitive(buffer.what)).or_default().after.add(buffer.size, 1);
        }
        let changed = pairs.into_iter().filter(|(_, pair)| pair.change() != (0, 0));
        let mut rows: Vec<ChangedPrimitive> = changed.map(ChangedPrimitive::of).collect();
        rows.sort_by(|a, b| {
            let size = |row: &ChangedPrimitive| (row.change_bytes.unsigned_abs(), row.change_count.unsigned_abs());
            size(b).cmp(&size(a)).then_with(|| a.primitive.cmp(&b.primitive))
        });
        rows
    }
}

impl ChangedLine {
    fn of(((kind, file, function, line), pair): (Key, Pair)) -> ChangedLine {
        let (change_bytes, change_count) = pair.change();
        let Pair { moved_from, before, after } = pair;
        ChangedLine { kind, file, function, line, moved_from, before, after, change_bytes, change_count }
    }
}

impl ChangedPrimitive {
    fn of((primitive, pair): (&str, Pair)) -> ChangedPrimitive {
        let (change_bytes, change_count) = pair.change();
        let (primitive, before, after) = (primitive.to_owned(), pair.before, pair.after);
        ChangedPrimitive { primitive, before, after, change_bytes, change_count }
    }
}
