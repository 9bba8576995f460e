//! Which blocks are alive at a moment, in order: lists of live blocks every few thousand events, and what was born since.
//!
//! A list is written when as many events have passed as it is worth, so all lists together take at most a byte an event.

use crate::blocks::Blocks;
use crate::types::{BlockId, Moment};

/// Fewest events between two lists.
const LEAST_EVENTS: u32 = 4096;
/// Events between two lists, for each block in them.
const EVENTS_PER_BLOCK: u32 = 4;

/// Live blocks at some moments. A block within a gap of a move is in the lists; `Blocks` knows gaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Presence {
    ids: Vec<BlockId>,
    lists: Vec<List>,
}

#[derive(Clone, Copy, Debug)]
struct List {
    moment: Moment,
    /// First of its ids; it ends where the next list begins.
    first: usize,
    /// Blocks that were born up to its moment.
    born: BlockId,
}

impl Presence {
    /// Writes a list if it is time for one. `is_present` says of a block born so far whether it still is there.
    pub(crate) fn note(&mut self, moment: Moment, born: BlockId, alive: u32, is_present: impl Fn(BlockId) -> bool) {
        let Some(last) = self.lists.last().copied() else {
            let first = self.ids.len();
            self.ids.extend((0..born).filter(|&id| is_present(id)));
            self.lists.push(List { moment, first, born });
            return;
        };
        if moment - last.moment < LEAST_EVENTS.max(alive.saturating_mul(EVENTS_PER_BLOCK)) {
            return;
        }
        let first = self.ids.len();
        for at in last.first..first {
            let id = self.ids[at];
            if is_present(id) {
                self.ids.push(id);
            }
        }
        self.ids.extend((last.born..born).filter(|&id| is_present(id)));
        self.lists.push(List { moment, first, born });
    }

    /// Blocks that are there at `moment`, oldest first, gaps not taken off.
    pub(crate) fn at(&self, blocks: &Blocks, moment: Moment) -> Vec<BlockId> {
        let after = self.lists.partition_point(|list| list.moment <= moment);
        let Some(list) = after.checked_sub(1).and_then(|at| self.lists.get(at)) else { return Vec::new() };
        let end = self.lists.get(after).map_or(self.ids.len(), |next| next.first);
        let listed = self.ids.get(list.first..end).unwrap_or_default().iter().copied();
        let since = list.born..blocks.born_until(moment).max(list.born);
        listed.chain(since).filter(|&id| blocks.died(id) > moment).collect()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&self.ids[..]) + size_of_val(&self.lists[..])
    }
}
