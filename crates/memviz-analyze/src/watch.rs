//! Active memory of every line while a trace is replayed step by step: what each step lowers it to.
//!
//! Memory: one entry for each line and step in which the line changed. Not here: what the numbers mean (`growth`, `trend`).

use std::ops::Range;

use memviz_trace::{Buffer, Event, Ledger, Trace};
use rustc_hash::FxHashMap;

use crate::growth::StepAmount;
use crate::held::Amount;
use crate::loops::Steps;
use crate::peak::{LineKey, LineKeys, start_of};

/// A replay that knows what each line holds.
pub(crate) struct Watch<'a> {
    trace: &'a Trace,
    keys: LineKeys<'a>,
    ledger: Ledger,
    count: u64,
    lowest: Amount,
    lines: FxHashMap<LineKey, LineState>,
    /// Steps walked so far, over all loops: which step a line's lowest values belong to.
    step: usize,
    changed: Vec<LineKey>,
}

#[derive(Default)]
struct LineState {
    now: Amount,
    lowest: Amount,
    step: usize,
    at_begin: Amount,
    samples: Vec<Sample>,
}

/// A step in which a line changed.
struct Sample {
    nth: usize,
    lowest: Amount,
    end: Amount,
}

/// What a line held in each step of a loop.
pub(crate) struct LineSeries {
    pub(crate) key: LineKey,
    pub(crate) bytes: Vec<u64>,
    pub(crate) counts: Vec<u64>,
    pub(crate) end: Amount,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(trace: &'a Trace) -> Watch<'a> {
        let ledger = start_of(trace);
        let mut watch = Watch {
            trace,
            keys: LineKeys::new(trace),
            ledger: Ledger::default(),
            count: 0,
            lowest: Amount::default(),
            lines: FxHashMap::default(),
            step: 0,
            changed: Vec::new(),
        };
        for buffer in ledger.buffers_unsorted().filter(|buffer| !buffer.is_cached) {
            watch.change(buffer, true);
        }
        watch.ledger = ledger;
        watch
    }

    /// Replays events that belong to no loop.
    pub(crate) fn skip(&mut self, events: Range<usize>) {
        self.step += 1;
        for event in self.trace.events.get(events).unwrap_or_default() {
            self.apply(event);
        }
    }

    /// Replays a loop.
    pub(crate) fn walk(&mut self, steps: &Steps) -> Vec<StepAmount> {
        for line in self.lines.values_mut() {
            line.samples.clear();
            line.at_begin = line.now;
        }
        let ranges = steps.bounds.windows(2).map(|pair| pair[0]..pair[1]);
        ranges.enumerate().map(|(nth, range)| self.walk_step(nth, range)).collect()
    }

    fn walk_step(&mut self, nth: usize, range: Range<usize>) -> StepAmount {
        self.step += 1;
        self.changed.clear();
        self.lowest = Amount { bytes: self.ledger.totals().active, count: self.count };
        let mut highest_bytes = self.lowest.bytes;
        for event in self.trace.events.get(range.clone()).unwrap_or_default() {
            self.apply(event);
            let active = self.ledger.totals().active;
            highest_bytes = highest_bytes.max(active);
            self.lowest.bytes = self.lowest.bytes.min(active);
            self.lowest.count = self.lowest.count.min(self.count);
        }
        for key in &self.changed {
            if let Some(line) = self.lines.get_mut(key) {
                line.samples.push(Sample { nth, lowest: line.lowest, end: line.now });
            }
        }
        let last = range.end.checked_sub(1).and_then(|last| self.trace.events.get(last));
        let time_nanos = last.map_or(0, |event| event.time_nanos);
        StepAmount { after_events: range.end, time_nanos, lowest: self.lowest, highest_bytes }
    }

    fn apply(&mut self, event: &Event) {
        let freed = event.action.is_free().then(|| self.ledger.get(event.addr).copied()).flatten();
        if self.ledger.apply(event).is_err() {
            return;
        }
        if let Some(buffer) = freed {
            self.change(&buffer, false);
        } else if event.action.is_alloc() {
            self.change(&Buffer::from_alloc(event), true);
        }
    }

    fn change(&mut self, buffer: &Buffer, is_alloc: bool) {
        let key = self.keys.of(buffer);
        let line = self.lines.entry(key).or_default();
        if line.step != self.step {
            line.step = self.step;
            line.lowest = line.now;
            self.changed.push(key);
        }
        if is_alloc {
            self.count += 1;
            line.now.add(buffer.size, 1);
        } else {
            // The ledger said that the buffer was active, so it was added before.
            self.count = self.count.saturating_sub(1);
            line.now.bytes = line.now.bytes.saturating_sub(buffer.size);
            line.now.count = line.now.count.saturating_sub(1);
        }
        line.lowest.bytes = line.lowest.bytes.min(line.now.bytes);
        line.lowest.count = line.lowest.count.min(line.now.count);
    }

    /// The lines that grew most over the loop just walked, by bytes and by number, `top` of each at most.
    pub(crate) fn grown(&self, steps: usize, top: usize) -> Vec<LineSeries> {
        let mut by_bytes: Vec<(&LineKey, &LineState)> =
            self.lines.iter().filter(|(_, line)| line.has_grown()).collect();
        by_bytes.sort_by_key(|(key, line)| (std::cmp::Reverse(line.growth().bytes), **key));
        let mut by_count = by_bytes.clone();
        by_count.sort_by_key(|(key, line)| (std::cmp::Reverse(line.growth().count), **key));
        by_bytes.truncate(top);
        for candidate in by_count.into_iter().take(top) {
            if by_bytes.iter().all(|(key, _)| *key != candidate.0) {
                by_bytes.push(candidate);
            }
        }
        by_bytes.into_iter().map(|(key, line)| line.series(*key, steps)).collect()
    }
}

impl LineState {
    fn last(&self) -> Amount {
        self.samples.last().map_or(self.at_begin, |sample| sample.end)
    }

    fn growth(&self) -> Amount {
        let (last, first) = (self.last(), self.at_begin);
        Amount { bytes: last.bytes.saturating_sub(first.bytes), count: last.count.saturating_sub(first.count) }
    }

    fn has_grown(&self) -> bool {
        self.growth() != Amount::default()
    }

    fn series(&self, key: LineKey, steps: usize) -> LineSeries {
        let (mut bytes, mut counts) = (Vec::with_capacity(steps), Vec::with_capacity(steps));
        let mut before = self.at_begin;
        let mut samples = self.samples.iter().peekable();
        for nth in 0..steps {
            let sample = samples.next_if(|sample| sample.nth == nth);
            let lowest = sample.map_or(before, |sample| sample.lowest);
            bytes.push(lowest.bytes);
            counts.push(lowest.count);
            before = sample.map_or(before, |sample| sample.end);
        }
        LineSeries { key, bytes, counts, end: self.last() }
    }
}
