//! The table `sums`, one row a part: what became of all events up to its end, and where its columns of differences begin.

use memviz_trace::{Counts, Tally};

use super::columns::{Builder, Table};

/// The row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// Number of the part's first event.
    pub(super) first_index: u64,
    /// Its time.
    pub(super) first_nanos: u64,
    /// Id of the array of the part's first event about an array.
    pub(super) first_array: u32,
    pub(super) counts: Counts,
}

impl Sums {
    pub(super) fn table(&self) -> Builder {
        let counts = &self.counts;
        let mut table = Builder::default();
        for (name, number) in [
            ("first_index", self.first_index),
            ("first_nanos", self.first_nanos),
            ("first_array", self.first_array.into()),
            ("seen_events", counts.seen.events),
            ("seen_bytes", counts.seen.bytes),
            ("dropped_events", counts.dropped.events),
            ("dropped_bytes", counts.dropped.bytes),
            ("filtered_events", counts.filtered.events),
            ("filtered_bytes", counts.filtered.bytes),
            ("lost", counts.lost),
            ("dropped_others", counts.dropped_others),
        ] {
            table.unsigned(name, std::iter::once(number));
        }
        table
    }

    pub(super) fn read(table: &Table<'_>) -> Result<Sums, &'static str> {
        let number = |name| table.u64s(name)?.first().copied().ok_or("a table of sums without a row");
        let tally = |events, bytes| Ok::<_, &'static str>(Tally { events: number(events)?, bytes: number(bytes)? });
        Ok(Sums {
            first_index: number("first_index")?,
            first_nanos: number("first_nanos")?,
            first_array: number("first_array")? as u32,
            counts: Counts {
                seen: tally("seen_events", "seen_bytes")?,
                dropped: tally("dropped_events", "dropped_bytes")?,
                filtered: tally("filtered_events", "filtered_bytes")?,
                lost: number("lost")?,
                dropped_others: number("dropped_others")?,
            },
        })
    }
}
