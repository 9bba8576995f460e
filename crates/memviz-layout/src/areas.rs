//! Areas: bytes of each group in every column, for the groups that hold most of the picture.

use rustc_hash::FxHashMap;

use crate::bricks::largest_first;
use crate::groups::Groups;
use crate::layout::Layout;
use crate::samples::{Sampled, Seen};
use crate::scene::{Drawn, bytes_as_f64};
use crate::types::Picture;

/// Most groups of a picture; the others are its rest.
const MOST_AREAS: usize = 24;

impl Layout {
    pub(crate) fn areas(&self, groups: &Groups, sampled: &Sampled) -> Drawn {
        let columns = sampled.samples.moments.len();
        let seen = self.seen(&sampled.samples);
        let mut weight: FxHashMap<u32, f64> = FxHashMap::default();
        for seen in &seen {
            let bytes = self.blocks.size(seen.block) as f64 * f64::from(seen.to - seen.from);
            *weight.entry(groups.of(seen.block)).or_default() += bytes;
        }
        let mut order = largest_first(weight);
        order.truncate(MOST_AREAS);
        let position: FxHashMap<u32, usize> = order.iter().enumerate().map(|(at, group)| (*group, at)).collect();
        // Differences from column to column, then sums; wrapping, so that the order of changes doesn't matter.
        let mut area = vec![0_u64; order.len() * columns];
        let mut change = |seen: &Seen, bytes: u64| {
            let Some(at) = position.get(&groups.of(seen.block)) else { return };
            let row = &mut area[at * columns..(at + 1) * columns];
            for (column, bytes) in [(seen.from, bytes), (seen.to, bytes.wrapping_neg())] {
                if let Some(value) = row.get_mut(usize::from(column)) {
                    *value = value.wrapping_add(bytes);
                }
            }
        };
        seen.iter().for_each(|seen| change(seen, self.blocks.size(seen.block)));
        self.gaps_in(&sampled.samples).iter().for_each(|gap| change(gap, self.blocks.size(gap.block).wrapping_neg()));
        let mut rest = sampled.active.clone();
        for row in area.chunks_mut(columns) {
            let mut sum: u64 = 0;
            for (value, rest) in row.iter_mut().zip(&mut rest) {
                sum = sum.wrapping_add(*value);
                *value = sum;
                *rest = rest.wrapping_sub(sum);
            }
        }
        Drawn {
            picture: Picture::Areas(area.into_iter().map(bytes_as_f64).collect()),
            groups: order,
            rest: rest.into_iter().map(bytes_as_f64).collect(),
            outside: vec![0.0; columns],
            bricks: 0,
        }
    }
}
