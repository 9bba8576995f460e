//! A recording made ready once and replayed many times: what a slider, a sweep or a plot needs.
//!
//! The calls are read off the events once, which takes about as long as a replay. Not here: the answer in full (`replay`).

use std::ops::Deref;

use memviz_alloc::Usage;
use memviz_trace::Trace;

use crate::about::duration_nanos;
use crate::calls::Calls;
use crate::replay::OverTime;
use crate::scenario::{Scenario, ScenarioOptions};
use crate::simulate::{Columns, simulate_each};

/// Sums of a replay at a moment. `reserved == active + cached`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayedAt {
    /// Events of the trace up to then: 0 is before the first one.
    pub after_events: usize,
    /// Bytes in use.
    pub active_bytes: u64,
    /// Bytes that the allocator keeps beside.
    pub cached_bytes: u64,
}

impl ReplayedAt {
    fn of(after_events: usize, usage: Usage) -> ReplayedAt {
        ReplayedAt { after_events, active_bytes: usage.active, cached_bytes: usage.cached }
    }

    /// Active and cached bytes.
    pub fn reserved_bytes(&self) -> u64 {
        self.active_bytes.saturating_add(self.cached_bytes)
    }
}

/// A recording and its calls. `T` is `&Trace`, `Arc<Trace>` or the like.
///
/// ```
/// use memviz_analyze::{Replayer, ScenarioOptions};
/// use memviz_trace::{Action, Event, TraceBuilder};
///
/// let mut builder = TraceBuilder::default();
/// builder.trace.header.backend = "cpu".to_owned();
/// builder.push(Event { action: Action::AllocNew, addr: 0x1000, size: 64, ..Event::default() });
/// builder.push(Event { action: Action::FreeActiveToCache, addr: 0x1000, size: 64, ..Event::default() });
/// let trace = builder.finish();
///
/// let replayer = Replayer::new(&trace);
/// let no_cache = ScenarioOptions { cache_limit: Some(0), ..ScenarioOptions::default() };
/// let mut sums = Vec::new();
/// replayer.each(&no_cache, |at| sums.push((at.after_events, at.active_bytes, at.reserved_bytes())))?;
/// assert_eq!(sums, [(0, 0, 0), (1, 64, 64), (2, 0, 0)]);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct Replayer<T> {
    pub(crate) trace: T,
    pub(crate) calls: Calls,
}

impl<T: Deref<Target = Trace>> Replayer<T> {
    /// Reads the calls off the events.
    pub fn new(trace: T) -> Replayer<T> {
        let calls = Calls::of(&trace);
        Replayer { trace, calls }
    }

    /// Replays and tells the sums before the first event and after each call. `after_events` never falls; of several sums
    /// with the same one the last is that after the event. Events that are no call (a move, a mark) are not told.
    ///
    /// # Errors
    /// A sentence for the user: an unknown policy, a machine that is missing.
    pub fn each(&self, options: &ScenarioOptions, mut observe: impl FnMut(ReplayedAt)) -> Result<(), String> {
        let scenario = Scenario::new(&self.trace, options)?;
        simulate_each(&self.calls, &scenario, |after_events, usage| observe(ReplayedAt::of(after_events, usage)));
        Ok(())
    }

    /// The highest sums in each of `columns` equal slices of the recording's time.
    ///
    /// # Errors
    /// As `each`.
    pub fn over_time(&self, options: &ScenarioOptions, columns: usize) -> Result<OverTime, String> {
        let scenario = Scenario::new(&self.trace, options)?;
        let mut columns = Columns::new(duration_nanos(&self.trace), columns);
        simulate_each(&self.calls, &scenario, |after_events, usage| self.note(&mut columns, after_events, usage));
        Ok(OverTime::of(columns))
    }

    pub(crate) fn note(&self, columns: &mut Columns, after_events: usize, usage: Usage) {
        let last = after_events.checked_sub(1).and_then(|at| self.trace.events.get(at));
        columns.note(last.map_or(0, |event| event.time_nanos), usage);
    }
}
