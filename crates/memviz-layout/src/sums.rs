//! Active and cached bytes at every moment, and their extremes over ranges of moments.
//!
//! Sixteen bytes a moment, and four extremes for every [`CHUNK`] of them: a range costs its two ends and one step a chunk.

use memviz_trace::Totals;

use crate::types::Moment;

/// Moments per chunk.
const CHUNK: usize = 64;

/// Sums by moment. Never empty once moment 0 is pushed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    active: Vec<u64>,
    cached: Vec<u64>,
    chunks: Vec<Extremes>,
}

/// Of one chunk.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    most_active: u64,
    least_active: u64,
    most_cached: u64,
    most_reserved: u64,
}

impl Extremes {
    fn of(totals: Totals) -> Extremes {
        Extremes {
            most_active: totals.active,
            least_active: totals.active,
            most_cached: totals.cached,
            most_reserved: totals.reserved(),
        }
    }

    fn with(self, totals: Totals) -> Extremes {
        Extremes {
            most_active: self.most_active.max(totals.active),
            least_active: self.least_active.min(totals.active),
            most_cached: self.most_cached.max(totals.cached),
            most_reserved: self.most_reserved.max(totals.reserved()),
        }
    }
}

impl Sums {
    pub(crate) fn with_capacity(moments: usize) -> Sums {
        Sums {
            active: Vec::with_capacity(moments),
            cached: Vec::with_capacity(moments),
            chunks: Vec::with_capacity(moments.div_ceil(CHUNK)),
        }
    }

    /// Appends the sums of the next moment.
    pub(crate) fn push(&mut self, totals: Totals) {
        match self.chunks.last_mut().filter(|_| !self.active.len().is_multiple_of(CHUNK)) {
            Some(chunk) => *chunk = chunk.with(totals),
            None => self.chunks.push(Extremes::of(totals)),
        }
        self.active.push(totals.active);
        self.cached.push(totals.cached);
    }

    /// The last moment.
    pub(crate) fn last(&self) -> Moment {
        self.active.len().saturating_sub(1) as Moment
    }

    /// Sums at a moment; of the last one for moments beyond it.
    pub(crate) fn at(&self, moment: Moment) -> Totals {
        let at = (moment as usize).min(self.active.len().saturating_sub(1));
        let get = |values: &[u64]| values.get(at).copied().unwrap_or(0);
        Totals { active: get(&self.active), cached: get(&self.cached) }
    }

    /// The first moment of `first..=last` with most active bytes.
    pub(crate) fn most_active(&self, first: Moment, last: Moment) -> (Moment, u64) {
        self.best(first, last, |totals| totals.active, |chunk| chunk.most_active, |new, old| new > old)
    }

    /// The fewest active bytes in `first..=last`.
    pub(crate) fn least_active(&self, first: Moment, last: Moment) -> u64 {
        self.best(first, last, |totals| totals.active, |chunk| chunk.least_active, |new, old| new < old).1
    }

    /// The most cached bytes in `first..=last`.
    pub(crate) fn most_cached(&self, first: Moment, last: Moment) -> u64 {
        self.best(first, last, |totals| totals.cached, |chunk| chunk.most_cached, |new, old| new > old).1
    }

    /// The most active plus cached bytes in `first..=last`.
    pub(crate) fn most_reserved(&self, first: Moment, last: Moment) -> u64 {
        self.best(first, last, Totals::reserved, |chunk| chunk.most_reserved, |new, old| new > old).1
    }

    fn best(
        &self,
        first: Moment,
        last: Moment,
        value: fn(Totals) -> u64,
        of_chunk: fn(&Extremes) -> u64,
        is_better: fn(u64, u64) -> bool,
    ) -> (Moment, u64) {
        let end = (last as usize + 1).min(self.active.len());
        let mut best = (first, value(self.at(first)));
        let mut at = first as usize;
        while at < end {
            let chunk = self.chunks.get(at / CHUNK).filter(|_| at.is_multiple_of(CHUNK) && at + CHUNK <= end);
            let (found, step) =
                chunk.map_or_else(|| (value(self.at(at as Moment)), 1), |chunk| (of_chunk(chunk), CHUNK));
            if is_better(found, best.1) {
                best = (at as Moment, found);
            }
            at += step;
        }
        // Within a chunk, the moment itself.
        let exact = (best.0..).take(CHUNK).find(|&moment| value(self.at(moment)) == best.1);
        (exact.unwrap_or(best.0), best.1)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&self.active[..]) + size_of_val(&self.cached[..]) + size_of_val(&self.chunks[..])
    }
}
