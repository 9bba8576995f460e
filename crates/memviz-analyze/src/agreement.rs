//! Does the model decide as MLX did? A recorded CPU run against `memviz_alloc`, event by event.
//!
//! Compared after each call: the buffer that was reused, by address, or that none was; where a free sent it; evictions, in
//! order; active and cached bytes. The program's own calls are taken from the recording: allocations, frees, a changed
//! limit, and `clear_cache`, which is what evicts there beside a lower limit.
//!
//! Needs a recording of all events, from a cache with at most one buffer on. Not for Metal and CUDA, whose evictions are written before the
//! allocation that caused them.

use std::collections::VecDeque;

use memviz_alloc::{Block, Engine, Freed, Malloc, Need, Place, Policy, Trim};
use memviz_trace::{Action, Event, Ledger, MarkKind, Trace};
use serde::Serialize;

use crate::calls::start_limit;
use crate::scenario::Scenario;

/// Outcome of the comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Events compared.
    pub events: u64,
    /// Of them, allocations that reused a buffer.
    pub reuses: u64,
    /// Evictions.
    pub evictions: u64,
    /// The first event at which model and recording differ; nothing after it is compared.
    pub difference: Option<Difference>,
}

/// Where the two part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Number of the event, counted from the start of the recording.
    pub index: u64,
    /// Its time.
    pub time_nanos: u64,
    /// What the recording has.
    pub recorded: String,
    /// What the model does.
    pub model: String,
}

struct Comparison<'a> {
    trace: &'a Trace,
    engine: Engine,
    ledger: Ledger,
    /// Evictions of the model that the recording has to show next.
    evictions: VecDeque<Block>,
    next_mark: usize,
    agreement: Agreement,
}

impl Agreement {
    /// Compares; `None` where the recording does not allow it.
    pub(crate) fn of(trace: &Trace, scenario: &Scenario) -> Option<Agreement> {
        let is_whole = trace.header.min_size == 0 && trace.first_index == 0 && trace.base.cached == 0;
        // Which of two cached buffers is older is not recorded.
        let has_order = trace.start.iter().filter(|buffer| buffer.is_cached).count() <= 1;
        let policy = scenario.rules.mlx().filter(|policy| policy.trim == Trim::WhenLimitIsSet)?;
        if !scenario.is_as_recorded || !is_whole || !has_order {
            return None;
        }
        let mut comparison = Comparison::new(trace, policy);
        for (position, event) in trace.events.iter().enumerate() {
            if let Err((recorded, model)) = comparison.event(position, event) {
                let (index, time_nanos) = (position as u64, event.time_nanos);
                comparison.agreement.difference = Some(Difference { index, time_nanos, recorded, model });
                break;
            }
        }
        Some(comparison.agreement)
    }
}

/// What the recording has and what the model does.
type Parted = (String, String);

impl<'a> Comparison<'a> {
    fn new(trace: &'a Trace, policy: &Policy) -> Comparison<'a> {
        let mut engine = Engine::new(policy.clone());
        engine.index_addresses();
        if let Some(limit) = start_limit(trace) {
            engine.set_cache_limit(limit, &mut ());
        }
        engine.shift_base(i64::try_from(trace.base.active).unwrap_or(i64::MAX));
        for buffer in &trace.start {
            let need = Need { size: buffer.size, place: Place::Device, requested: buffer.size };
            let block = Block { addr: buffer.addr, size: buffer.size, place: Place::Device };
            let id = engine.commit(need, block, None, &mut ());
            if buffer.is_cached {
                // What MLX keeps fits its limit.
                let _ = engine.free(id, &mut ());
            }
        }
        let ledger = Ledger::at_start(trace).unwrap_or_default();
        let agreement = Agreement::default();
        Comparison { trace, engine, ledger, evictions: VecDeque::new(), next_mark: 0, agreement }
    }

    fn event(&mut self, position: usize, event: &Event) -> Result<(), Parted> {
        self.marks_before(position as u64);
        if self.ledger.apply(event).is_err() {
            return Err(("an event that cannot be true".to_owned(), "nothing".to_owned()));
        }
        match event.action {
            Action::FreeCacheToOs => self.evict(position, event)?,
            _ if event.action.is_buffer() || event.action == Action::Oom => self.call(event)?,
            _ => return Ok(()),
        }
        self.agreement.events += 1;
        self.sums()
    }

    fn marks_before(&mut self, index: u64) {
        while let Some(mark) = self.trace.marks.get(self.next_mark).filter(|mark| mark.index <= index) {
            self.next_mark += 1;
            if let MarkKind::CacheLimit(limit) = mark.kind {
                self.set_limit(limit);
            }
        }
    }

    fn set_limit(&mut self, limit: u64) {
        let evictions = &mut self.evictions;
        self.engine.set_cache_limit(limit, &mut |_: Action, block: Block, _: u64| evictions.push_back(block));
    }

    fn call(&mut self, event: &Event) -> Result<(), Parted> {
        if let Some(block) = self.evictions.front() {
            return Err((said(event), format!("evicts {} bytes at {:#x}", block.size, block.addr)));
        }
        match event.action {
            Action::FreeActiveToCache | Action::FreeActiveToOs | Action::Release => self.free(event),
            _ => self.malloc(event),
        }
    }

    fn malloc(&mut self, event: &Event) -> Result<(), Parted> {
        let requested = if event.action == Action::Oom { event.size } else { event.requested() };
        let found = self.engine.malloc(requested, &mut ()).map_err(|error| (said(event), error.to_string()))?;
        match (found, event.action) {
            (Malloc::Needs(need), Action::AllocNew) if need.size == event.size => {
                let block = Block { addr: event.addr, size: need.size, place: need.place };
                self.engine.commit(need, block, None, &mut ());
                Ok(())
            }
            (Malloc::Needs(need), Action::Oom) if self.engine.fail(need) == event.addr => Ok(()),
            (Malloc::Reused(id), Action::AllocReuse)
                if self.engine.block(id).is_some_and(|block| (block.addr, block.size) == (event.addr, event.size)) =>
            {
                self.agreement.reuses += 1;
                Ok(())
            }
            (Malloc::Reused(id), _) => {
                let block = self.engine.block(id).unwrap_or_default();
                Err((said(event), format!("reuses {} bytes at {:#x}", block.size, block.addr)))
            }
            (found, _) => Err((said(event), format!("{found:?}"))),
        }
    }

    fn free(&mut self, event: &Event) -> Result<(), Parted> {
        let unknown = || (said(event), "has no such buffer".to_owned());
        let id = self.engine.cache().find(event.addr).ok_or_else(unknown)?;
        match (self.engine.free(id, &mut ()).map_err(|_| unknown())?, event.action) {
            (Freed::Cached, Action::FreeActiveToCache) | (Freed::ToHeap(_), Action::FreeActiveToOs) => Ok(()),
            (Freed::Cached, _) => Err((said(event), "keeps it in the cache".to_owned())),
            (Freed::ToHeap(_), _) => Err((said(event), "gives it back to the system".to_owned())),
        }
    }

    fn evict(&mut self, position: usize, event: &Event) -> Result<(), Parted> {
        if self.evictions.is_empty() {
            self.release(position);
        }
        self.agreement.evictions += 1;
        match self.evictions.pop_front() {
            Some(block) if (block.addr, block.size) == (event.addr, event.size) => Ok(()),
            Some(block) => Err((said(event), format!("evicts {} bytes at {:#x}", block.size, block.addr))),
            None => Err((said(event), "evicts nothing".to_owned())),
        }
    }

    /// Evictions that no changed limit explains: `clear_cache`, or a limit that was set and set back before the next call.
    fn release(&mut self, position: usize) {
        let next = self.trace.marks[self.next_mark..].iter().find(|mark| matches!(mark.kind, MarkKind::CacheLimit(_)));
        let end = next.and_then(|mark| usize::try_from(mark.index).ok()).unwrap_or(usize::MAX);
        let events = &self.trace.events[position..self.trace.events.len().min(end.max(position))];
        let run = events.iter().take_while(|event| event.action == Action::FreeCacheToOs);
        let released: u64 = run.map(|event| event.size).sum();
        let limit = self.engine.limits().0;
        self.set_limit(self.engine.usage().cached.saturating_sub(released));
        self.set_limit(limit);
    }

    fn sums(&self) -> Result<(), Parted> {
        let (usage, totals) = (self.engine.usage(), self.ledger.totals());
        let waiting: u64 = self.evictions.iter().map(|block| block.size).sum();
        let model = (usage.active, usage.cached + waiting);
        if model == (totals.active, totals.cached) {
            return Ok(());
        }
        let text = |(active, cached): (u64, u64)| format!("{active} bytes active and {cached} cached");
        Err((text((totals.active, totals.cached)), text(model)))
    }
}

fn said(event: &Event) -> String {
    format!("{} of {} bytes at {:#x}", event.action.name(), event.size, event.addr)
}
