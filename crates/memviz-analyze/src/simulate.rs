//! A recording's calls under a policy: the loop that replays and sweeps run, and the numbers it leaves.
//!
//! Needs [`Calls`]; decisions are those of a [`Model`]. After a refused allocation the run goes on without that buffer, so
//! that one replay tells all. Not here: which policy (`scenario`), what is said about it (`replay`).

use memviz_alloc::{AllocError, Usage};
use memviz_trace::Hits;

use crate::calls::{Call, CallKind, Calls};
use crate::model::{Ideal, Mlx, Model, Segments, Tally};
use crate::scenario::{Rules, Scenario};

/// A number of the run and when it was reached first: events of the trace up to then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Highest {
    pub(crate) usage: Usage,
    pub(crate) after_events: usize,
}

/// What a run under a policy comes to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    pub(crate) peak_active: Highest,
    pub(crate) peak_reserved: Highest,
    pub(crate) most_cached: Highest,
    pub(crate) most_blocks: Highest,
    pub(crate) end: Usage,
    /// First moment at which the blocks needed more than the machine's memory.
    pub(crate) over_memory: Option<usize>,
    /// Why the first allocation was refused, and events up to each one that was, in order.
    pub(crate) refused: Option<AllocError>,
    pub(crate) refusals: Vec<u32>,
}

impl Outcome {
    /// Events up to the first allocation that was refused, and why.
    pub(crate) fn first_refusal(&self) -> Option<(usize, &AllocError)> {
        Some((*self.refusals.first()? as usize, self.refused.as_ref()?))
    }

    pub(crate) fn hit_rate(&self) -> Option<f64> {
        Hits { hits: self.tally.hits, misses: self.tally.misses }.rate()
    }
}

/// The highest active, cached and reserved bytes of equal slices of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    pub(crate) width_nanos: u64,
    pub(crate) columns: Vec<[u64; 3]>,
}

impl Columns {
    pub(crate) fn new(duration_nanos: u64, count: usize) -> Columns {
        Columns { width_nanos: duration_nanos / count.max(1) as u64 + 1, columns: vec![[0; 3]; count] }
    }

    pub(crate) fn note(&mut self, time_nanos: u64, usage: Usage) {
        let last = self.columns.len().saturating_sub(1);
        let at = usize::try_from(time_nanos / self.width_nanos.max(1)).unwrap_or(last).min(last);
        if let Some(column) = self.columns.get_mut(at) {
            let now = [usage.active, usage.cached, usage.active.saturating_add(usage.cached)];
            column.iter_mut().zip(now).for_each(|(most, now)| *most = now.max(*most));
        }
    }

    /// A slice in which nothing happened shows what the one before it shows.
    pub(crate) fn filled(mut self) -> Vec<[u64; 3]> {
        for at in 1..self.columns.len() {
            if self.columns[at] == [0; 3] {
                self.columns[at] = self.columns[at - 1];
            }
        }
        self.columns
    }
}

/// Runs all calls.
pub(crate) fn simulate(calls: &Calls, scenario: &Scenario) -> Outcome {
    simulate_each(calls, scenario, |_, _| ())
}

/// The same; `observe` hears the events of the trace up to each call, and the sums after it.
pub(crate) fn simulate_each(calls: &Calls, scenario: &Scenario, mut observe: impl FnMut(usize, Usage)) -> Outcome {
    let (limit, slots) = (scenario.memory_limit, calls.slots);
    match &scenario.rules {
        Rules::Mlx(policy) => run(Mlx::new(policy, limit, slots), calls, scenario, observe),
        Rules::Segments(policy) => run(Segments::new(policy, limit, slots), calls, scenario, observe),
        Rules::Ideal { memory } => {
            let memory = limit.unwrap_or(u64::MAX).min(*memory);
            let known = run(Ideal::new(memory, None, slots), calls, scenario, |_, _| ());
            let goal = Some(known.peak_active.usage.active);
            run(Ideal::new(memory, goal, slots), calls, scenario, &mut observe)
        }
    }
}

fn run(model: impl Model, calls: &Calls, scenario: &Scenario, mut observe: impl FnMut(usize, Usage)) -> Outcome {
    let mut run = Run { model, scenario, outcome: Outcome::default() };
    run.begin(calls);
    observe(0, run.model.usage());
    for call in &calls.calls {
        let usage = run.step(call);
        observe(call.after_events as usize, usage);
    }
    run.outcome.tally = run.model.tally();
    run.outcome.end = run.model.usage();
    run.outcome
}

/// A run under way.
struct Run<'a, M> {
    model: M,
    scenario: &'a Scenario,
    outcome: Outcome,
}

impl<M: Model> Run<'_, M> {
    /// Buffers from before the first event are there without a call.
    fn begin(&mut self, calls: &Calls) {
        if let Some(limit) = self.scenario.cache_limit.or(calls.start_limit) {
            self.model.set_cache_limit(limit);
        }
        self.model.shift_base(i64::try_from(calls.base).unwrap_or(i64::MAX));
        for buffer in &calls.start {
            self.model.seed(buffer.slot, buffer.requested);
        }
        for buffer in calls.start.iter().filter(|buffer| buffer.is_cached) {
            self.model.free(buffer.slot);
        }
        self.model.begin();
        self.note(0);
    }

    #[inline]
    fn step(&mut self, call: &Call) -> Usage {
        let model = &mut self.model;
        let answer = match call.kind {
            CallKind::Malloc => model.malloc(call.slot, call.bytes),
            CallKind::Wrap => model.wrap(call.slot, call.bytes),
            CallKind::Failed => model.fail(call.bytes),
            CallKind::Free => {
                model.free(call.slot);
                Ok(())
            }
            _ => {
                self.set(call);
                Ok(())
            }
        };
        if let Err(error) = answer {
            self.refuse(error, call);
        }
        self.note(call.after_events as usize)
    }

    #[cold]
    fn set(&mut self, call: &Call) {
        match call.kind {
            CallKind::Base => self.model.shift_base(call.bytes as i64),
            CallKind::CacheLimit if self.scenario.cache_limit.is_none() => self.model.set_cache_limit(call.bytes),
            CallKind::Step if self.scenario.clears_every_step => self.model.clear_cache(),
            CallKind::Clear => self.model.clear_cache(),
            _ => {}
        }
    }

    #[cold]
    fn refuse(&mut self, error: AllocError, call: &Call) {
        self.outcome.refusals.push(call.after_events);
        self.outcome.refused.get_or_insert(error);
    }

    #[inline]
    fn note(&mut self, after_events: usize) -> Usage {
        let usage = self.model.usage();
        let reserved = usage.active.saturating_add(usage.cached);
        let now = Highest { usage, after_events };
        let outcome = &mut self.outcome;
        if usage.active > outcome.peak_active.usage.active {
            outcome.peak_active = now;
        }
        if reserved > outcome.peak_reserved.usage.active.saturating_add(outcome.peak_reserved.usage.cached) {
            outcome.peak_reserved = now;
        }
        if usage.cached > outcome.most_cached.usage.cached {
            outcome.most_cached = now;
        }
        if usage.blocks > outcome.most_blocks.usage.blocks {
            outcome.most_blocks = now;
        }
        if outcome.over_memory.is_none() && self.scenario.memory.is_some_and(|memory| reserved > memory) {
            outcome.over_memory = Some(after_events);
        }
        usage
    }
}
