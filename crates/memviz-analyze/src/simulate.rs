//! A recording's calls under a policy: the loop that replays and sweeps run, and the numbers it leaves.
//!
//! Needs [`Calls`]; decisions are `memviz_alloc::Engine`'s. After a refused allocation the run goes on without that buffer, so
//! that one replay tells all. Not here: which policy (`scenario`), what is said about it (`replay`).

use memviz_alloc::{AllocError, Block, BlockId, Engine, Malloc, Need, Place, Sink, Usage};
use memviz_trace::{Action, Event};

use crate::calls::{Call, CallKind, Calls};
use crate::held::Amount;
use crate::scenario::Scenario;

/// A number of the run and when it was reached first: events of the trace up to then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Highest {
    pub(crate) usage: Usage,
    pub(crate) after_events: usize,
}

/// An allocation that the policy refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) after_events: usize,
    pub(crate) error: AllocError,
}

/// What a run under a policy comes to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Calls to the system or driver that made a block.
    pub(crate) made: Amount,
    /// Calls that gave one back.
    pub(crate) given_back: Amount,
    /// Of them, evictions.
    pub(crate) evicted: Amount,
    pub(crate) peak_active: Highest,
    pub(crate) peak_reserved: Highest,
    pub(crate) most_cached: Highest,
    pub(crate) most_blocks: Highest,
    pub(crate) end: Usage,
    /// First moment at which the blocks needed more than the machine's memory.
    pub(crate) over_memory: Option<usize>,
    pub(crate) refused: Option<Refused>,
    pub(crate) refusals: u64,
}

impl Outcome {
    pub(crate) fn hit_rate(&self) -> Option<f64> {
        let all = self.hits + self.misses;
        (all > 0).then(|| self.hits as f64 / all as f64)
    }
}

/// Listens to the engine.
#[derive(Debug, Default)]
struct System {
    made: Amount,
    given_back: Amount,
    evicted: Amount,
}

impl Sink for System {
    #[inline]
    fn event(&mut self, action: Action, block: Block, _: u64) {
        match action {
            Action::AllocNew => self.made.add(block.size, 1),
            Action::FreeActiveToOs => self.given_back.add(block.size, 1),
            Action::FreeCacheToOs => {
                self.given_back.add(block.size, 1);
                self.evicted.add(block.size, 1);
            }
            _ => {}
        }
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

    fn note(&mut self, time_nanos: u64, usage: Usage) {
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

/// A run under way.
struct Run<'a> {
    engine: Engine,
    scenario: &'a Scenario,
    blocks: Vec<Option<BlockId>>,
    next_addr: u64,
    system: System,
    outcome: Outcome,
}

/// Runs all calls.
pub(crate) fn simulate(calls: &Calls, scenario: &Scenario) -> Outcome {
    let mut run = Run::new(calls, scenario);
    for call in &calls.calls {
        run.step(call);
    }
    run.finish()
}

/// The same, with memory over the time of `events`.
pub(crate) fn simulate_over_time(
    calls: &Calls,
    scenario: &Scenario,
    events: &[Event],
    mut columns: Columns,
) -> (Outcome, Columns) {
    let mut run = Run::new(calls, scenario);
    for call in &calls.calls {
        run.step(call);
        let last = (call.after_events as usize).checked_sub(1).and_then(|at| events.get(at));
        columns.note(last.map_or(0, |event| event.time_nanos), run.engine.usage());
    }
    (run.finish(), columns)
}

impl<'a> Run<'a> {
    fn new(calls: &Calls, scenario: &'a Scenario) -> Run<'a> {
        let mut engine = Engine::new(scenario.policy.clone());
        if let Some(limit) = scenario.cache_limit.or(calls.start_limit) {
            engine.set_cache_limit(limit, &mut ());
        }
        if let Some(limit) = scenario.memory_limit {
            engine.set_memory_limit(limit);
        }
        engine.shift_base(i64::try_from(calls.base).unwrap_or(i64::MAX));
        let mut run = Run {
            engine,
            scenario,
            blocks: vec![None; calls.slots as usize],
            next_addr: 1 << 32,
            system: System::default(),
            outcome: Outcome::default(),
        };
        run.seed(calls);
        run.note(0);
        run
    }

    /// Buffers from before the first event are there without a call.
    fn seed(&mut self, calls: &Calls) {
        for buffer in &calls.start {
            let size = self.engine.policy().rounding.round(buffer.requested.min(i64::MAX as u64));
            let need = Need { size, place: Place::Device, requested: buffer.requested };
            self.blocks[buffer.slot as usize] = Some(self.commit(need));
        }
        for buffer in calls.start.iter().filter(|buffer| buffer.is_cached) {
            self.free(buffer.slot);
        }
        self.system = System::default();
    }

    #[inline]
    fn step(&mut self, call: &Call) {
        match call.kind {
            CallKind::Malloc => self.malloc(call),
            CallKind::Free => self.free(call.slot),
            CallKind::Wrap => self.wrap(call),
            CallKind::Failed => self.failed(call),
            CallKind::Base => self.engine.shift_base(call.bytes as i64),
            CallKind::CacheLimit if self.scenario.cache_limit.is_none() => {
                self.engine.set_cache_limit(call.bytes, &mut self.system);
            }
            CallKind::CacheLimit => {}
            CallKind::Step if !self.scenario.clears_every_step => {}
            CallKind::Clear | CallKind::Step => self.engine.clear_cache(&mut self.system),
        }
        self.note(call.after_events as usize);
    }

    #[inline]
    fn malloc(&mut self, call: &Call) {
        let found = self.engine.malloc(call.bytes, &mut self.system);
        self.blocks[call.slot as usize] = match found {
            Ok(Malloc::Reused(id)) => Some(id),
            Ok(Malloc::Needs(need)) => Some(self.commit(need)),
            Ok(Malloc::Null) => None,
            Err(error) => {
                self.refuse(error, call);
                None
            }
        };
    }

    fn commit(&mut self, need: Need) -> BlockId {
        let block = Block { addr: self.next_addr, size: need.size, place: need.place };
        self.next_addr += 16;
        self.engine.commit(need, block, None, &mut self.system)
    }

    #[cold]
    fn refuse(&mut self, error: AllocError, call: &Call) {
        self.outcome.refusals += 1;
        self.outcome.refused.get_or_insert(Refused { after_events: call.after_events as usize, error });
    }

    #[inline]
    fn free(&mut self, slot: u32) {
        let Some(id) = self.blocks[slot as usize].take() else { return };
        // A slot holds an active block, so the one possible refusal is that it is a wrapper.
        if self.engine.free(id, &mut self.system).is_err() {
            let _ = self.engine.release_wrapper(id, &mut self.system);
        }
    }

    /// Where nothing can be wrapped, MLX allocates and copies.
    #[cold]
    fn wrap(&mut self, call: &Call) {
        let block = Block { addr: self.next_addr, size: call.bytes, place: Place::Wrapped };
        self.next_addr += 16;
        match self.engine.make_buffer(block, &mut self.system) {
            Ok(Some(id)) => self.blocks[call.slot as usize] = Some(id),
            Ok(None) => self.malloc(call),
            Err(error) => self.refuse(error, call),
        }
    }

    /// The recorded allocator had no memory: neither has this one, after its own attempt to make room.
    #[cold]
    fn failed(&mut self, call: &Call) {
        match self.engine.malloc(call.bytes, &mut self.system) {
            Ok(Malloc::Needs(need)) => _ = self.engine.fail(need),
            Ok(Malloc::Reused(id)) => _ = self.engine.free(id, &mut self.system),
            Ok(Malloc::Null) => {}
            Err(error) => self.refuse(error, call),
        }
    }

    #[inline]
    fn note(&mut self, after_events: usize) {
        let usage = self.engine.usage();
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
    }

    fn finish(mut self) -> Outcome {
        let System { made, given_back, evicted } = self.system;
        // A request that no lookup precedes (0 bytes on CUDA) is a miss as well, as in the recording.
        (self.outcome.hits, self.outcome.misses) = (self.engine.counters().total().hits, made.count);
        (self.outcome.made, self.outcome.given_back, self.outcome.evicted) = (made, given_back, evicted);
        self.outcome.end = self.engine.usage();
        self.outcome
    }
}
