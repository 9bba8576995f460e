//! [`Layout`]: all blocks of a trace and its sums, and the questions about single blocks and moments.
//!
//! Not here: the pass that makes it (`pass`), pictures (`scene`, `bands`), positions (`place`).

use std::ops::Range;

use memviz_trace::{Buffer, Totals, Trace};

use crate::axes::Axes;
use crate::blocks::Blocks;
use crate::pass::{Happening, layout_of};
use crate::presence::Presence;
use crate::spans::Activity;
use crate::sums::Sums;
use crate::types::{BlockId, BlockInfo, Moment, PeakAt, Tenants};

/// The blocks of a trace, its sums at every moment, its axes: about 30 bytes an event.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) axes: Axes,
    pub(crate) blocks: Blocks,
    pub(crate) presence: Presence,
    pub(crate) sums: Sums,
    pub(crate) happenings: Vec<Happening>,
    pub(crate) activity: Activity,
    pub(crate) peak_active: PeakAt,
    pub(crate) peak_reserved: PeakAt,
}

impl Layout {
    /// Passes over the events of `trace` once.
    pub fn new(trace: &Trace) -> Layout {
        layout_of(trace)
    }

    /// Number of events taken in: moments are 0 to this.
    pub fn events(&self) -> Moment {
        self.sums.last()
    }

    /// Number of blocks.
    pub fn blocks(&self) -> BlockId {
        self.blocks.len()
    }

    /// Positions on the axes.
    pub fn axes(&self) -> &Axes {
        &self.axes
    }

    /// Active and cached bytes at a moment; at the end for moments beyond it. Active bytes are never fewer than those of the
    /// blocks, as in `memviz_analyze::live_at`.
    pub fn totals_at(&self, moment: Moment) -> Totals {
        self.sums.at(moment)
    }

    /// The first moment with most active bytes, that of `memviz_analyze::find_peaks`.
    pub fn peak_active(&self) -> PeakAt {
        self.peak_active
    }

    /// The first moment with most active and cached bytes, that of `memviz_analyze::find_peaks`.
    pub fn peak_reserved(&self) -> PeakAt {
        self.peak_reserved
    }

    /// A block by number.
    pub fn block(&self, id: BlockId) -> Option<BlockInfo> {
        self.blocks.info(id)
    }

    /// The buffer as the block's allocation made it; of before the first event, as the trace lists it.
    pub fn buffer(&self, trace: &Trace, id: BlockId) -> Option<Buffer> {
        match self.block(id)?.alloc_event {
            Some(position) => trace.events.get(position).map(Buffer::from_alloc),
            None => trace.start.get(self.blocks.start(id)?).copied(),
        }
    }

    /// Blocks alive at a moment, oldest first. A block on the move between two addresses is not among them, as its bytes are not
    /// in the sums.
    pub fn live_blocks(&self, moment: Moment) -> Vec<BlockId> {
        let moment = moment.min(self.events());
        let mut live = self.presence.at(&self.blocks, moment);
        for gap in self.blocks.gaps_within(moment, moment) {
            live.retain(|&id| id != gap.block);
        }
        live
    }

    /// The block at that height of the stack, in bytes from its bottom. Bytes of no known block lie on top of all blocks.
    pub fn block_at(&self, moment: Moment, height: u64) -> Option<BlockId> {
        let mut top: u128 = 0;
        self.live_blocks(moment).into_iter().find(|&id| {
            top += u128::from(self.blocks.size(id));
            u128::from(height) < top
        })
    }

    /// Blocks born by the events `moments`, as a range of numbers: those between the moment `start` and the moment `end`.
    pub fn born_in(&self, moments: Range<Moment>) -> Range<BlockId> {
        let first = self.blocks.born_until(moments.start);
        first..self.blocks.born_until(moments.end).max(first)
    }

    /// Blocks that died by these events, by number. Looks at every block.
    pub fn died_in(&self, moments: Range<Moment>) -> impl Iterator<Item = BlockId> + '_ {
        let died = move |id: &BlockId| moments.start < self.blocks.died(*id) && self.blocks.died(*id) <= moments.end;
        (0..self.blocks.born_until(moments.end)).filter(died)
    }

    /// Who else had the address that the block was allocated at. Looks at every block.
    pub fn tenants(&self, trace: &Trace, id: BlockId) -> Tenants {
        let Some(addr) = self.buffer(trace, id).map(|buffer| buffer.addr) else { return Tenants::default() };
        let takers = self.takers_unsorted(trace, addr);
        let own = (self.blocks.born(id), id);
        Tenants {
            previous: takers.iter().filter(|taker| **taker < own).max().map(|taker| taker.1),
            next: takers.iter().filter(|taker| **taker > own).min().map(|taker| taker.1),
            count: takers.len() as u64,
        }
    }

    /// When each block took an address, by its allocation or by a move.
    fn takers_unsorted(&self, trace: &Trace, addr: u64) -> Vec<(Moment, BlockId)> {
        let addr_before = |moment: Moment| {
            let position = (moment as usize).checked_sub(1)?;
            trace.events.get(position).map(|event| event.addr)
        };
        let is_taker = |id: &BlockId| match self.blocks.start(*id) {
            Some(position) => trace.start.get(position).is_some_and(|buffer| buffer.addr == addr),
            None => addr_before(self.blocks.born(*id)) == Some(addr),
        };
        let allocated = (0..self.blocks.len()).filter(is_taker).map(|id| (self.blocks.born(id), id));
        let moved = self.blocks.gaps().iter().filter(|gap| addr_before(gap.to) == Some(addr));
        allocated.chain(moved.map(|gap| (gap.to, gap.block))).collect()
    }

    /// Bytes of the layout itself.
    pub fn memory_bytes(&self) -> usize {
        let parts = [
            self.axes.memory_bytes(),
            self.blocks.memory_bytes(),
            self.presence.memory_bytes(),
            self.sums.memory_bytes(),
            self.activity.memory_bytes(),
            size_of_val(&self.happenings[..]),
        ];
        parts.into_iter().sum()
    }
}
