//! Memory over time in a fixed number of columns, for a picture that is small however long the run was.
//!
//! A column shows the highest sums that were reached in it, so a peak of a microsecond is not lost; a column in which nothing
//! happened shows what the one before ended with. The highest column is the peak of [`crate::find_peaks`].

use memviz_trace::{Ledger, Totals, Trace};

use crate::about::duration_nanos;
use crate::peak::start_of;

/// The highest sums within one column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Most active bytes.
    pub active_bytes: u64,
    /// Most active plus cached bytes; not necessarily at the same moment.
    pub reserved_bytes: u64,
}

/// Memory over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Nanoseconds that all columns span together, from the start of the recording.
    pub duration_nanos: u64,
    /// Of equal width, oldest first.
    pub columns: Vec<Column>,
}

/// The timeline of a trace in `count` columns.
pub fn timeline(trace: &Trace, count: usize) -> Timeline {
    let duration_nanos = duration_nanos(trace);
    let mut ledger = start_of(trace);
    let mut events = trace.events.iter().peekable();
    let mut columns = Vec::with_capacity(count);
    for column in 1..=count {
        let end = if column == count { u64::MAX } else { share(duration_nanos, column, count) };
        let mut highest = Column::default().raised(&ledger);
        while let Some(event) = events.next_if(|event| event.time_nanos < end) {
            // An event that contradicts the state leaves it alone, as in `find_peaks`.
            let _ = ledger.apply(event);
            highest = highest.raised(&ledger);
        }
        columns.push(highest);
    }
    Timeline { duration_nanos, columns }
}

/// `whole * part / parts` without overflow.
fn share(whole: u64, part: usize, parts: usize) -> u64 {
    (u128::from(whole) * part as u128 / parts as u128) as u64
}

impl Column {
    fn raised(self, ledger: &Ledger) -> Column {
        let totals: Totals = ledger.totals();
        Column {
            active_bytes: self.active_bytes.max(totals.active),
            reserved_bytes: self.reserved_bytes.max(totals.reserved()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memviz_trace::{Action, Event, TraceBuilder};

    fn event(time_nanos: u64, action: Action, addr: u64, size: u64) -> Event {
        Event { time_nanos, action, addr, size, ..Event::default() }
    }

    #[test]
    fn columns_hold_the_highest_sums_and_carry_them_on() {
        let mut builder = TraceBuilder::default();
        builder.push(event(10, Action::AllocNew, 0x1000, 64));
        builder.push(event(11, Action::AllocNew, 0x2000, 32));
        builder.push(event(12, Action::FreeActiveToCache, 0x2000, 32));
        builder.push(event(100, Action::FreeActiveToOs, 0x1000, 64));
        let trace = builder.finish();
        let column = |active_bytes, reserved_bytes| Column { active_bytes, reserved_bytes };
        let found = timeline(&trace, 4);
        assert_eq!(found.duration_nanos, 100);
        assert_eq!(found.columns, [column(96, 96), column(64, 96), column(64, 96), column(64, 96)]);
        let peak = crate::find_peaks(&trace).active.active_bytes;
        for count in [1, 2, 3, 7, 1000] {
            let columns = timeline(&trace, count).columns;
            assert_eq!(columns.len(), count);
            assert_eq!(columns.iter().map(|column| column.active_bytes).max(), Some(peak), "{count}");
        }
        assert_eq!(timeline(&Trace::default(), 3).columns, [Column::default(); 3]);
        assert!(timeline(&trace, 0).columns.is_empty());
    }
}
