//! `Trace::check`: the equations of the crate's header, proven for one trace, or the first violation with its event.

use crate::event::Event;
use crate::ledger::{Ledger, LedgerError, Totals};
use crate::trace::{Checkpoint, Tally, Trace};

/// The highest value of a sum, and when it was reached first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Bytes.
    pub bytes: u64,
    /// Number of events of the trace (not of the recording) up to that moment: 0 is the state before the first event.
    pub after_events: usize,
}

impl Peak {
    fn raise(&mut self, bytes: u64, after_events: usize) {
        if bytes > self.bytes {
            *self = Peak { bytes, after_events };
        }
    }
}

/// What a successful check found on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Events replayed.
    pub events: usize,
    /// Checkpoints compared with MLX's counters.
    pub checkpoints: usize,
    /// Highest active bytes.
    pub peak_active: Peak,
    /// Highest active plus cached bytes.
    pub peak_reserved: Peak,
    /// Sums after the last event.
    pub end: Totals,
}

/// The first equation that a trace breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The state before the first event contradicts itself.
    #[error("state before the first event: {0}")]
    Start(LedgerError),
    /// An event contradicts those before it.
    #[error("event {index} at {time_nanos} ns: {error}")]
    Event {
        /// Number of the event, counted from the start of the recording.
        index: u64,
        /// Its time.
        time_nanos: u64,
        /// The contradiction.
        error: LedgerError,
    },
    /// Time runs backwards.
    #[error("event {index} is at {found} ns, before its predecessor at {previous} ns")]
    TimeRunsBack {
        /// Number of the event.
        index: u64,
        /// Its time.
        found: u64,
        /// The time before it.
        previous: u64,
    },
    /// Our sums differ from what the recorder said or from MLX's own counters.
    #[error(
        "checkpoint ({kind}) after event {index}: replayed active {active} and cached {cached}; the recorder had {recorded_active} and {recorded_cached}; MLX had {mlx_active} and {mlx_cached} (bytes)"
    )]
    Checkpoint {
        /// Why the checkpoint was taken.
        kind: &'static str,
        /// Number of events before it.
        index: u64,
        /// Sum of the replay.
        active: u64,
        /// Sum of the replay.
        cached: u64,
        /// Running sum of the recorder.
        recorded_active: u64,
        /// Running sum of the recorder.
        recorded_cached: u64,
        /// `mx.get_active_memory()`.
        mlx_active: u64,
        /// `mx.get_cache_memory()`.
        mlx_cached: u64,
    },
    /// `recorded + dropped + filtered != seen`.
    #[error("recorded {recorded:?} + dropped {dropped:?} + filtered {filtered:?} is not seen {seen:?}")]
    Counts {
        /// Buffer events in the trace.
        recorded: Tally,
        /// Fell out of the ring.
        dropped: Tally,
        /// Left out by the filter.
        filtered: Tally,
        /// All of them.
        seen: Tally,
    },
    /// The recorder lost events.
    #[error("{0} events could not be recorded; sums after them are not exact")]
    Lost(u64),
}

impl Trace {
    /// Replays the trace and proves its equations; see the crate's header for them.
    ///
    /// # Errors
    /// The first violation, with the event or checkpoint that shows it.
    pub fn check(&self) -> Result<CheckReport, Violation> {
        let mut ledger = Ledger::at_start(self).map_err(Violation::Start)?;
        let mut report = CheckReport { events: self.events.len(), ..CheckReport::default() };
        report.note(ledger.totals(), 0);
        let mut pending = self.checkpoints.iter().skip_while(|point| point.index < self.first_index).peekable();
        let mut previous_nanos = 0;
        for (position, event) in self.events.iter().enumerate() {
            let index = self.first_index + position as u64;
            while let Some(point) = pending.next_if(|point| point.index <= index) {
                report.compare(point, ledger.totals())?;
            }
            if event.time_nanos < previous_nanos {
                return Err(Violation::TimeRunsBack { index, found: event.time_nanos, previous: previous_nanos });
            }
            previous_nanos = event.time_nanos;
            ledger.apply(event).map_err(|error| Violation::Event { index, time_nanos: event.time_nanos, error })?;
            report.note(ledger.totals(), position + 1);
        }
        for point in pending {
            report.compare(point, ledger.totals())?;
        }
        report.end = ledger.totals();
        self.check_counts()?;
        Ok(report)
    }

    fn check_counts(&self) -> Result<(), Violation> {
        let counts = &self.counts;
        let mut recorded = Tally::default();
        for event in self.events.iter().filter(|event: &&Event| event.action.is_buffer()) {
            recorded.add(event.size);
        }
        let sum =
            |of: fn(&Tally) -> u64| of(&recorded).wrapping_add(of(&counts.dropped)).wrapping_add(of(&counts.filtered));
        let total = Tally { events: sum(|tally| tally.events), bytes: sum(|tally| tally.bytes) };
        if total != counts.seen {
            let (dropped, filtered, seen) = (counts.dropped, counts.filtered, counts.seen);
            return Err(Violation::Counts { recorded, dropped, filtered, seen });
        }
        if counts.lost > 0 { Err(Violation::Lost(counts.lost)) } else { Ok(()) }
    }
}

impl CheckReport {
    fn note(&mut self, totals: Totals, after_events: usize) {
        self.peak_active.raise(totals.active, after_events);
        self.peak_reserved.raise(totals.reserved(), after_events);
    }

    fn compare(&mut self, point: &Checkpoint, replayed: Totals) -> Result<(), Violation> {
        self.checkpoints += 1;
        let agrees = (replayed.active, replayed.cached) == (point.active, point.cached)
            && (point.active, point.cached) == (point.mlx_active, point.mlx_cached);
        if agrees {
            return Ok(());
        }
        Err(Violation::Checkpoint {
            kind: point.kind.name(),
            index: point.index,
            active: replayed.active,
            cached: replayed.cached,
            recorded_active: point.active,
            recorded_cached: point.cached,
            mlx_active: point.mlx_active,
            mlx_cached: point.mlx_cached,
        })
    }
}
