//! The samples of a picture's columns, and which blocks are alive in them.
//!
//! A block that is born and gone between two samples is in no column, so a picture's work is one look at each block of the
//! window and the rest for those that are seen.

use memviz_trace::Trace;

use crate::layout::Layout;
use crate::types::{BlockId, Invalid, Moment, Window};

/// One moment for each column, never falling.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    pub(crate) moments: Vec<Moment>,
    /// First and last moment of the window.
    pub(crate) bounds: (Moment, Moment),
    /// Column of the first sample at or after the beginning of each bucket of `1 << shift` moments.
    buckets: Vec<u32>,
    shift: u32,
}

/// A block and the columns in which it is alive, but for gaps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) block: BlockId,
    pub(crate) from: u16,
    pub(crate) to: u16,
}

/// Sums of the columns.
pub(crate) struct Sampled {
    pub(crate) samples: Samples,
    pub(crate) active: Vec<u64>,
    pub(crate) lowest: Vec<u64>,
}

impl Layout {
    pub(crate) fn sampled(&self, trace: &Trace, window: &Window) -> Result<Sampled, Invalid> {
        let columns = self.columns(trace, window)?;
        let bounds = (columns.first().map_or(0, |column| column.0), columns.last().map_or(0, |column| column.1));
        let (mut moments, mut active) = (Vec::with_capacity(columns.len()), Vec::with_capacity(columns.len()));
        let mut lowest = Vec::with_capacity(columns.len());
        for (first, last) in columns {
            let (moment, bytes) = self.sums.most_active(first, last);
            moments.push(moment);
            active.push(bytes);
            lowest.push(self.sums.least_active(first, last));
        }
        Ok(Sampled { samples: Samples::new(moments, bounds), active, lowest })
    }

    /// Every block that is alive in a sample, by rising number.
    pub(crate) fn seen(&self, samples: &Samples) -> Vec<Seen> {
        let (Some(&first), Some(&last)) = (samples.moments.first(), samples.moments.last()) else { return Vec::new() };
        let present = self.presence.at(&self.blocks, first);
        let born = self.born_in(first..last);
        let mut seen = Vec::with_capacity(present.len() + born.len());
        for block in present {
            seen.push(Seen { block, from: 0, to: samples.column_from(self.blocks.died(block)) });
        }
        let mut from = 0;
        for block in born {
            let (born, died) = (self.blocks.born(block), self.blocks.died(block));
            while samples.moments[from] < born {
                from += 1;
            }
            if died > samples.moments[from] {
                seen.push(Seen { block, from: from as u16, to: samples.column_from(died) });
            }
        }
        seen
    }

    /// Columns whose sample lies in a gap of a move.
    pub(crate) fn gaps_in(&self, samples: &Samples) -> Vec<Seen> {
        let (Some(&first), Some(&last)) = (samples.moments.first(), samples.moments.last()) else { return Vec::new() };
        let gaps = self.blocks.gaps_within(first, last).iter();
        let columns = gaps.map(|gap| Seen {
            block: gap.block,
            from: samples.column_from(gap.from),
            to: samples.column_from(gap.to),
        });
        columns.filter(|gap| gap.from < gap.to).collect()
    }

    /// Blocks that are alive at some moment of the window.
    pub(crate) fn blocks_within(&self, (first, last): (Moment, Moment)) -> u64 {
        self.presence.at(&self.blocks, first).len() as u64 + self.born_in(first..last).len() as u64
    }
}

impl Samples {
    fn new(moments: Vec<Moment>, bounds: (Moment, Moment)) -> Samples {
        let (first, last) = (moments.first().copied().unwrap_or(0), moments.last().copied().unwrap_or(0));
        let span = last - first;
        let shift = (0..32).find(|shift| (span >> shift) as usize <= 4 * moments.len()).unwrap_or(0);
        let mut buckets = Vec::with_capacity((span >> shift) as usize + 2);
        let mut column = 0;
        for bucket in 0..=(span >> shift) {
            let begin = first + (bucket << shift);
            while moments.get(column).is_some_and(|&moment| moment < begin) {
                column += 1;
            }
            buckets.push(column as u32);
        }
        Samples { moments, bounds, buckets, shift }
    }

    /// The first column whose sample is at or after a moment; the number of columns when none is.
    pub(crate) fn column_from(&self, moment: Moment) -> u16 {
        let (Some(&first), Some(&last)) = (self.moments.first(), self.moments.last()) else { return 0 };
        if moment <= first {
            return 0;
        }
        if moment > last {
            return self.moments.len() as u16;
        }
        let bucket = ((moment - first) >> self.shift) as usize;
        let low = self.buckets.get(bucket).copied().unwrap_or(0) as usize;
        let high = self.buckets.get(bucket + 1).map_or(self.moments.len(), |&column| column as usize);
        let near = self.moments.get(low..high).unwrap_or_default();
        (low + near.partition_point(|&sample| sample < moment)) as u16
    }
}
