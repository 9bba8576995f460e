//! How well MLX's buffer cache works: who hits it, who misses, what stays in it for nothing, what clearing it would give back.
//!
//! A pure function of the events. MLX takes the smallest cached buffer of at least `n` bytes for a request of `n`, if it is
//! smaller than `min(2 n, n + 2 pages)` (`BufferCache::reuse_from_cache` in `mlx/backend/common/buffer_cache.h`); a buffer
//! just outside that window is a near miss. Buffers cached before the recording are known if `Trace::start` lists them.

use std::collections::BTreeMap;

use memviz_trace::{Action, Event, FrameId, Hits, Ledger, Totals, Trace};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::about::About;
use crate::held::{Amount, StackLine};
use crate::lines::UserLines;
use crate::peak::Moment;

/// Version of the JSON form of [`Cache`]; a field that changes its meaning or goes raises it.
pub const CACHE_SCHEMA: u32 = 1;
/// Page of MLX's CPU allocator; the other allocators have pages of 16 KiB.
const CPU_PAGE: u64 = 4096;
const GPU_PAGE: u64 = 16384;

/// What a recording tells of the cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cache {
    /// [`CACHE_SCHEMA`].
    pub schema: u32,
    /// The run.
    pub about: About,
    /// Allocations that reused a cached buffer.
    pub hits: Amount,
    /// Allocations that came new.
    pub misses: Amount,
    /// `hits / (hits + misses)`, by number; `None` without allocations.
    pub hit_rate: Option<f64>,
    /// Bytes of reused buffers beyond what was asked for.
    pub slack_bytes: u64,
    /// By the line that built the array, most new bytes first.
    pub lines: Vec<CacheLine>,
    /// By size of the request, smallest first.
    pub sizes: Vec<SizeClass>,
    /// New allocations although the cache held a buffer of nearly the right size, most bytes first.
    pub near_misses: Vec<NearMiss>,
    /// Buffers that went into the cache.
    pub entered: Amount,
    /// Buffers given back to the system instead of going into the cache.
    pub passed_by: Amount,
    /// Buffers that the cache gave back to the system: its limit, `clear_cache`, memory pressure.
    pub evicted: Amount,
    /// Most bytes given back in a row, with nothing else in between.
    pub largest_eviction: Amount,
    /// Buffers that lie in the cache at the end.
    pub left: Amount,
    /// By the line that used them last, buffers that were evicted or are left: they lay in the cache for nothing.
    pub not_reused: Vec<NotReused>,
    /// When most bytes were cached: `clear_cache` would have given these back then.
    pub most_cached: Moment,
    /// When most bytes were active, with what `clear_cache` would have given back.
    pub peak_active: Moment,
    /// When most bytes were held by MLX, likewise.
    pub peak_reserved: Moment,
    /// The end, likewise.
    pub end: Moment,
    /// Size of a page in the rule of reuse.
    pub page_bytes: u64,
}

/// Hits and misses of a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheLine {
    /// The line.
    pub line: StackLine,
    /// Reused.
    pub hits: Amount,
    /// New.
    pub misses: Amount,
    /// `hits / (hits + misses)`, by number.
    pub hit_rate: f64,
}

/// Hits and misses of requests of `from_bytes` up to twice that, itself left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeClass {
    /// A power of two, or 0.
    pub from_bytes: u64,
    /// Reused.
    pub hits: Amount,
    /// New.
    pub misses: Amount,
    /// `hits / (hits + misses)`, by number.
    pub hit_rate: f64,
}

/// On which side of the window the cached buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NearMissKind {
    /// The smallest that is large enough has at most twice the bytes asked for.
    TooLarge,
    /// The largest lacks less than two pages, and less than half of what was asked for.
    TooSmall,
}

/// New allocations of a line although a buffer of nearly the right size was cached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NearMiss {
    /// The line.
    pub line: StackLine,
    /// What was wrong with the cached buffer.
    pub kind: NearMissKind,
    /// Number of allocations.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes asked for by the first of them.
    pub first_asked_bytes: u64,
    /// Size of the cached buffer then.
    pub first_cached_bytes: u64,
}

/// Buffers that lay in the cache for nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotReused {
    /// Line that built their last array.
    pub line: StackLine,
    /// Given back by the cache.
    pub evicted: Amount,
    /// There at the end.
    pub left: Amount,
}

impl Cache {
    /// Answers for the whole of `trace`.
    pub fn new(trace: &Trace) -> Cache {
        let mut replay = Replay::new(trace);
        for (position, event) in trace.events.iter().enumerate() {
            replay.meet(position, event);
        }
        replay.finish()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    hits: Amount,
    misses: Amount,
}

impl Rate {
    fn add(&mut self, is_hit: bool, bytes: u64) {
        if is_hit { self.hits.add(bytes, 1) } else { self.misses.add(bytes, 1) }
    }

    fn rate(&self) -> Option<f64> {
        Hits { hits: self.hits.count, misses: self.misses.count }.rate()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Near {
    sum: Amount,
    first: (u64, u64),
}

/// The sums after some number of events.
type Reached = (usize, Totals);

struct Replay<'a> {
    trace: &'a Trace,
    lines: UserLines,
    page_bytes: u64,
    ledger: Ledger,
    /// Numbers of cached buffers by size.
    cached: BTreeMap<u64, u64>,
    all: Rate,
    slack_bytes: u64,
    by_line: FxHashMap<Option<FrameId>, Rate>,
    by_size: BTreeMap<u64, Rate>,
    near: FxHashMap<(Option<FrameId>, NearMissKind), Near>,
    entered: Amount,
    passed_by: Amount,
    evicted: Amount,
    eviction: Amount,
    largest_eviction: Amount,
    not_reused: FxHashMap<Option<FrameId>, (Amount, Amount)>,
    most_cached: Reached,
    peak_active: Reached,
    peak_reserved: Reached,
}

impl<'a> Replay<'a> {
    fn new(trace: &'a Trace) -> Replay<'a> {
        let ledger = Ledger::at_start(trace).unwrap_or_default();
        let mut cached = BTreeMap::new();
        for buffer in ledger.buffers_unsorted().filter(|buffer| buffer.is_cached) {
            *cached.entry(buffer.size).or_default() += 1;
        }
        let start = (0, ledger.totals());
        Replay {
            trace,
            lines: UserLines::new(trace),
            page_bytes: if trace.header.backend == "cpu" { CPU_PAGE } else { GPU_PAGE },
            ledger,
            cached,
            all: Rate::default(),
            slack_bytes: 0,
            by_line: FxHashMap::default(),
            by_size: BTreeMap::new(),
            near: FxHashMap::default(),
            entered: Amount::default(),
            passed_by: Amount::default(),
            evicted: Amount::default(),
            eviction: Amount::default(),
            largest_eviction: Amount::default(),
            not_reused: FxHashMap::default(),
            most_cached: start,
            peak_active: start,
            peak_reserved: start,
        }
    }

    /// An event that contradicts those before it is skipped.
    fn meet(&mut self, position: usize, event: &Event) {
        if self.ledger.apply(event).is_err() {
            return;
        }
        if event.action.is_buffer() && event.action != Action::FreeCacheToOs {
            self.eviction = Amount::default();
        }
        match event.action {
            // Nobody asked for a buffer whose memory moves.
            Action::AllocNew | Action::FreeActiveToOs if event.is_move() => {}
            Action::AllocNew => self.miss(event),
            Action::AllocReuse => self.hit(event),
            Action::FreeActiveToCache => {
                self.entered.add(event.size, 1);
                *self.cached.entry(event.size).or_default() += 1;
            }
            Action::FreeActiveToOs => self.passed_by.add(event.size, 1),
            Action::FreeCacheToOs => self.evict(event),
            _ => {}
        }
        self.raise(position + 1);
    }

    fn raise(&mut self, after_events: usize) {
        let totals = self.ledger.totals();
        for (highest, height) in [
            (&mut self.most_cached, (|totals| totals.cached) as fn(Totals) -> u64),
            (&mut self.peak_active, |totals| totals.active),
            (&mut self.peak_reserved, Totals::reserved),
        ] {
            if height(totals) > height(highest.1) {
                *highest = (after_events, totals);
            }
        }
    }

    fn line(&self, event: &Event) -> Option<FrameId> {
        self.lines.line_of(event.built).or_else(|| self.lines.line_of(event.triggered))
    }

    fn hit(&mut self, event: &Event) {
        self.forget(event.size);
        self.slack_bytes = self.slack_bytes.saturating_add(event.size - event.requested());
        self.count(event, true);
    }

    fn miss(&mut self, event: &Event) {
        self.count(event, false);
        let asked = event.requested();
        let Some((kind, size)) = self.nearest(asked) else { return };
        let near = self.near.entry((self.line(event), kind)).or_default();
        if near.sum.count == 0 {
            near.first = (asked, size);
        }
        near.sum.add(event.size, 1);
    }

    fn count(&mut self, event: &Event, is_hit: bool) {
        self.all.add(is_hit, event.size);
        self.by_line.entry(self.line(event)).or_default().add(is_hit, event.size);
        let asked = event.requested();
        let class = if asked == 0 { 0 } else { 1 << asked.ilog2() };
        self.by_size.entry(class).or_default().add(is_hit, event.size);
    }

    /// A cached buffer that nearly fits a request of `asked` bytes.
    fn nearest(&self, asked: u64) -> Option<(NearMissKind, u64)> {
        let larger = self.cached.range(asked..).next().map(|(&size, _)| size);
        if let Some(size) = larger.filter(|&size| size / 2 <= asked && !self.is_in_window(asked, size)) {
            return Some((NearMissKind::TooLarge, size));
        }
        let smaller = self.cached.range(..asked).next_back().map(|(&size, _)| size);
        let is_close = |size: &u64| asked - size < 2 * self.page_bytes && asked - size < asked / 2;
        smaller.filter(|size| larger.is_none() && is_close(size)).map(|size| (NearMissKind::TooSmall, size))
    }

    fn is_in_window(&self, asked: u64, size: u64) -> bool {
        size < asked.saturating_mul(2).min(asked.saturating_add(2 * self.page_bytes))
    }

    fn evict(&mut self, event: &Event) {
        self.forget(event.size);
        self.evicted.add(event.size, 1);
        self.eviction.add(event.size, 1);
        if self.eviction.bytes > self.largest_eviction.bytes {
            self.largest_eviction = self.eviction;
        }
        self.not_reused.entry(self.lines.line_of(event.built)).or_default().0.add(event.size, 1);
    }

    fn forget(&mut self, size: u64) {
        if let Some(count) = self.cached.get_mut(&size) {
            *count -= 1;
            if *count == 0 {
                self.cached.remove(&size);
            }
        }
    }

    fn finish(mut self) -> Cache {
        let mut left = Amount::default();
        for buffer in self.ledger.buffers_unsorted().filter(|buffer| buffer.is_cached) {
            left.add(buffer.size, 1);
            self.not_reused.entry(self.lines.line_of(buffer.built)).or_default().1.add(buffer.size, 1);
        }
        let trace = self.trace;
        let moment = |(after_events, totals)| Moment::of(trace, after_events, totals);
        Cache {
            schema: CACHE_SCHEMA,
            about: About::new(trace),
            hits: self.all.hits,
            misses: self.all.misses,
            hit_rate: self.all.rate(),
            slack_bytes: self.slack_bytes,
            lines: self.line_rows(),
            sizes: self.size_rows(),
            near_misses: self.near_rows(),
            entered: self.entered,
            passed_by: self.passed_by,
            evicted: self.evicted,
            largest_eviction: self.largest_eviction,
            left,
            not_reused: self.not_reused_rows(),
            most_cached: moment(self.most_cached),
            peak_active: moment(self.peak_active),
            peak_reserved: moment(self.peak_reserved),
            end: moment((trace.events.len(), self.ledger.totals())),
            page_bytes: self.page_bytes,
        }
    }

    fn line_rows(&self) -> Vec<CacheLine> {
        let row = |(&line, rate): (&Option<FrameId>, &Rate)| CacheLine {
            line: StackLine::of_line(self.trace, line),
            hits: rate.hits,
            misses: rate.misses,
            hit_rate: rate.rate().unwrap_or(0.0),
        };
        let mut rows: Vec<CacheLine> = self.by_line.iter().map(row).collect();
        rows.sort_by(|a, b| {
            (b.misses.bytes, b.hits.bytes).cmp(&(a.misses.bytes, a.hits.bytes)).then_with(|| a.line.cmp(&b.line))
        });
        rows
    }

    fn size_rows(&self) -> Vec<SizeClass> {
        let row = |(&from_bytes, rate): (&u64, &Rate)| SizeClass {
            from_bytes,
            hits: rate.hits,
            misses: rate.misses,
            hit_rate: rate.rate().unwrap_or(0.0),
        };
        self.by_size.iter().map(row).collect()
    }

    fn near_rows(&self) -> Vec<NearMiss> {
        let row = |(&(line, kind), near): (&(Option<FrameId>, NearMissKind), &Near)| NearMiss {
            line: StackLine::of_line(self.trace, line),
            kind,
            count: near.sum.count,
            bytes: near.sum.bytes,
            first_asked_bytes: near.first.0,
            first_cached_bytes: near.first.1,
        };
        let mut rows: Vec<NearMiss> = self.near.iter().map(row).collect();
        rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| (&a.line, a.kind).cmp(&(&b.line, b.kind))));
        rows
    }

    fn not_reused_rows(&self) -> Vec<NotReused> {
        let row = |(&line, &(evicted, left)): (&Option<FrameId>, &(Amount, Amount))| NotReused {
            line: StackLine::of_line(self.trace, line),
            evicted,
            left,
        };
        let mut rows: Vec<NotReused> = self.not_reused.iter().map(row).collect();
        let bytes = |row: &NotReused| row.evicted.bytes.saturating_add(row.left.bytes);
        rows.sort_by(|a, b| bytes(b).cmp(&bytes(a)).then_with(|| a.line.cmp(&b.line)));
        rows
    }
}
