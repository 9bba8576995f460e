//! What is alive at one moment of rest and was not at an earlier one, by line, with number and age.
//!
//! The data of `memviz leaks`. Whether that is a leak, only the program knows: `docs/is_it_a_leak.md`.

use memviz_trace::{Buffer, Trace};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::about::About;
use crate::held::Amount;
use crate::instant::Instant;
use crate::peak::{Group, LineKey, LineKeys, LineTotal, Moment, live_and_moment};
use crate::summary::Rest;

/// Version of the JSON form of [`Leaks`].
pub const LEAKS_SCHEMA: u32 = 1;

/// What is alive at `end` and was not at `begin`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Leaks {
    /// [`LEAKS_SCHEMA`].
    pub schema: u32,
    /// Which run.
    pub about: About,
    /// The earlier moment.
    pub begin: Moment,
    /// The later moment.
    pub end: Moment,
    /// Buffers alive at `end` that were not at `begin`.
    pub leaked: Amount,
    /// Buffers alive at both.
    pub kept: Amount,
    /// Buffers alive at `begin` only.
    pub freed: Amount,
    /// Change of the active bytes whose buffers are not known one by one.
    pub unlisted_change_bytes: i64,
    /// Largest first.
    pub lines: Vec<LeakLine>,
    /// What `lines` leaves out.
    pub rest: Rest,
    /// Bytes from which on it is a finding, when asked for.
    pub fail_over_bytes: Option<u64>,
    /// `leaked.bytes > fail_over_bytes`.
    pub is_over: bool,
}

/// What one line leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeakLine {
    /// The line, its bytes, buffers and primitives.
    #[serde(flatten)]
    pub line: LineTotal,
    /// Age of its oldest buffer at `end`, nanoseconds.
    pub oldest_nanos: u64,
    /// Age of its newest.
    pub newest_nanos: u64,
}

struct Members {
    group: Group,
    oldest_nanos: u64,
    newest_nanos: u64,
}

impl Leaks {
    /// Compares two moments of `trace`.
    ///
    /// # Errors
    /// A sentence for the user: a moment that the trace does not have, or the later one first.
    pub fn new(
        trace: &Trace,
        (begin, end): (Instant, Instant),
        fail_over_bytes: Option<u64>,
        top: usize,
    ) -> Result<Leaks, String> {
        let (from, to) = (begin.resolve(trace)?, end.resolve(trace)?);
        if to < from {
            return Err(format!("the second moment is event {to}, before the first, event {from}"));
        }
        let is_sound = trace.check().is_ok();
        let (before, begin) = live_and_moment(trace, from, is_sound);
        let (after, end) = live_and_moment(trace, to, is_sound);
        // An address that was freed and allocated again holds another buffer: its time tells them apart.
        let identity = |buffer: &Buffer| (buffer.addr, buffer.alloc_nanos, buffer.size);
        let was_there: FxHashSet<_> = before.buffers.iter().map(identity).collect();
        let (mut leaked, mut kept) = (Amount::default(), Amount::default());
        let keys = LineKeys::new(trace);
        let mut groups: FxHashMap<LineKey, Members> = FxHashMap::default();
        for buffer in &after.buffers {
            if was_there.contains(&identity(buffer)) {
                kept.add(buffer.size, 1);
                continue;
            }
            leaked.add(buffer.size, 1);
            groups.entry(keys.of(buffer)).or_default().add(buffer);
        }
        let (lines, rest) = rows(trace, groups, end_nanos(trace, &end), top);
        let at_begin: u64 = before.buffers.iter().map(|buffer| buffer.size).sum();
        let freed_count = before.buffers.len() as u64 - kept.count.min(before.buffers.len() as u64);
        Ok(Leaks {
            schema: LEAKS_SCHEMA,
            about: About::new(trace),
            begin,
            end,
            leaked,
            kept,
            freed: Amount { bytes: at_begin.saturating_sub(kept.bytes), count: freed_count },
            unlisted_change_bytes: after.unlisted_bytes.wrapping_sub(before.unlisted_bytes) as i64,
            lines,
            rest,
            fail_over_bytes,
            is_over: fail_over_bytes.is_some_and(|limit| leaked.bytes > limit),
        })
    }
}

/// The end of the run lies after its last event: a buffer ages also while nothing happens.
fn end_nanos(trace: &Trace, end: &Moment) -> u64 {
    let is_last = end.after_events == trace.events.len();
    if is_last { About::new(trace).duration_nanos } else { end.time_nanos }
}

fn rows(trace: &Trace, groups: FxHashMap<LineKey, Members>, end_nanos: u64, top: usize) -> (Vec<LeakLine>, Rest) {
    let row = |(key, members): (LineKey, Members)| LeakLine {
        line: members.group.total(trace, key),
        oldest_nanos: end_nanos.saturating_sub(members.oldest_nanos),
        newest_nanos: end_nanos.saturating_sub(members.newest_nanos),
    };
    let mut lines: Vec<LeakLine> = groups.into_iter().map(row).collect();
    lines.sort_by(|a, b| b.line.bytes.cmp(&a.line.bytes).then_with(|| a.line.place().cmp(&b.line.place())));
    let mut rest = Rest::default();
    for row in lines.drain(top.min(lines.len())..) {
        rest = Rest { lines: rest.lines + 1, bytes: rest.bytes + row.line.bytes, count: rest.count + row.line.count };
    }
    (lines, rest)
}

impl Default for Members {
    fn default() -> Members {
        Members { group: Group::default(), oldest_nanos: u64::MAX, newest_nanos: 0 }
    }
}

impl Members {
    fn add(&mut self, buffer: &Buffer) {
        self.group.add(buffer);
        self.oldest_nanos = self.oldest_nanos.min(buffer.alloc_nanos);
        self.newest_nanos = self.newest_nanos.max(buffer.alloc_nanos);
    }
}
