//! The one pass over the events that makes a [`Layout`]: [`memviz_trace::Ledger`] says what is true, this numbers the blocks.

use memviz_trace::{Action, Event, Ledger, Totals, Trace};
use rustc_hash::FxHashMap;

use crate::axes::Axes;
use crate::blocks::Blocks;
use crate::layout::Layout;
use crate::presence::Presence;
use crate::spans::Gathering;
use crate::sums::Sums;
use crate::types::{BlockId, Moment, NEVER, PeakAt};

/// A moment at which something other than an allocation or free happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Happening {
    pub(crate) moment: Moment,
    pub(crate) kind: HappeningKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HappeningKind {
    Oom,
    Snapshot,
    ClearCache,
}

/// A block between two addresses.
struct Moving {
    block: BlockId,
    from: Moment,
    size: u64,
}

struct Pass {
    ledger: Ledger,
    /// Blocks by address.
    active: FxHashMap<u64, BlockId>,
    moving: Option<Moving>,
    /// Sum of the sizes of active blocks: negative changes of the filter may bring the ledger's sum below it.
    listed: u128,
    alive: u32,
    blocks: Blocks,
    presence: Presence,
    happenings: Vec<Happening>,
    /// The cache became empty by an eviction at this moment; the next buffer event says why.
    emptied: Option<Moment>,
    /// The recorded allocator evicts on its own, inside `malloc`.
    trims: bool,
}

/// Takes in all events.
pub(crate) fn layout_of(trace: &Trace) -> Layout {
    let events = trace.events.len().min(NEVER as usize - 1);
    let axes = Axes::new(trace, events as Moment);
    let mut pass = Pass::new(trace);
    let mut sums = Sums::with_capacity(events + 1);
    let mut activity = Gathering::new(&axes);
    let (mut peak_active, mut peak_reserved) = pass.first_peaks();
    sums.push(pass.totals());
    for (position, event) in trace.events.iter().take(events).enumerate() {
        let after = position as Moment + 1;
        pass.event(after, event);
        activity.event(position as Moment, event);
        let totals = pass.ledger.totals();
        raise(&mut peak_active, after, totals.active);
        raise(&mut peak_reserved, after, totals.reserved());
        sums.push(pass.totals());
        pass.note(after);
    }
    pass.settle_clear(None);
    pass.blocks.shrink();
    let Pass { blocks, presence, happenings, .. } = pass;
    Layout { axes, blocks, presence, sums, happenings, activity: activity.finish(trace), peak_active, peak_reserved }
}

fn raise(peak: &mut PeakAt, event: Moment, bytes: u64) {
    if bytes > peak.bytes {
        *peak = PeakAt { event, bytes };
    }
}

impl Pass {
    fn new(trace: &Trace) -> Pass {
        let allocations = trace.events.iter().filter(|event| event.action.is_alloc()).count();
        let mut pass = Pass {
            ledger: Ledger::default(),
            active: FxHashMap::default(),
            moving: None,
            listed: 0,
            alive: 0,
            blocks: Blocks::with_capacity(allocations),
            presence: Presence::default(),
            happenings: Vec::new(),
            emptied: None,
            trims: trace.header.backend != "cpu",
        };
        // A start that contradicts itself counts as empty, as everywhere.
        if let Ok(ledger) = Ledger::at_start(trace) {
            pass.ledger = ledger;
            pass.start(trace);
        }
        pass.note(0);
        pass
    }

    fn start(&mut self, trace: &Trace) {
        let active = (0..trace.start.len()).filter(|&at| !trace.start[at].is_cached);
        let mut positions: Vec<usize> = active.collect();
        positions.sort_by_key(|&at| trace.start[at].alloc_nanos);
        for at in positions {
            let buffer = &trace.start[at];
            let id = self.blocks.push_start(at as u32, buffer.size);
            self.enter(buffer.addr, id, buffer.size);
        }
    }

    fn first_peaks(&self) -> (PeakAt, PeakAt) {
        let totals = self.ledger.totals();
        (PeakAt { event: 0, bytes: totals.active }, PeakAt { event: 0, bytes: totals.reserved() })
    }

    /// The ledger's sums, active never below that of the blocks, as in `memviz_analyze::live_at`.
    fn totals(&self) -> Totals {
        let Totals { active, cached } = self.ledger.totals();
        Totals { active: active.max(u64::try_from(self.listed).unwrap_or(u64::MAX)), cached }
    }

    fn enter(&mut self, addr: u64, id: BlockId, size: u64) {
        self.active.insert(addr, id);
        self.listed += u128::from(size);
        self.alive += 1;
    }

    fn event(&mut self, after: Moment, event: &Event) {
        if self.ledger.apply(event).is_err() {
            return;
        }
        match event.action {
            Action::Oom => self.happen(after, HappeningKind::Oom),
            Action::Snapshot => self.happen(after, HappeningKind::Snapshot),
            action if action.is_buffer() => self.buffer(after, event),
            _ => {}
        }
    }

    fn buffer(&mut self, after: Moment, event: &Event) {
        self.settle_clear(Some(event));
        if event.action.is_alloc() {
            self.alloc(after, event);
        } else if event.action.is_free() {
            self.free(after, event);
        } else if self.ledger.totals().cached == 0 {
            self.emptied = Some(after);
        }
    }

    fn happen(&mut self, moment: Moment, kind: HappeningKind) {
        self.happenings.push(Happening { moment, kind });
    }

    /// Evictions that leave nothing cached are `clear_cache`, unless the allocator makes room for what comes next.
    fn settle_clear(&mut self, next: Option<&Event>) {
        let Some(moment) = self.emptied.take() else { return };
        let makes_room = self.trims && next.is_some_and(|next| next.action.is_alloc());
        if !makes_room {
            let at = self.happenings.partition_point(|before| before.moment <= moment);
            self.happenings.insert(at, Happening { moment, kind: HappeningKind::ClearCache });
        }
    }

    fn alloc(&mut self, after: Moment, event: &Event) {
        let moves = event.action == Action::AllocNew && event.is_move();
        let moved = if moves { self.moving.take().filter(|moving| moving.size == event.size) } else { None };
        let id = match moved {
            Some(moving) => {
                self.blocks.move_over(moving.block, moving.from, after);
                moving.block
            }
            None => self.blocks.push(event.size, after),
        };
        self.enter(event.addr, id, event.size);
    }

    fn free(&mut self, after: Moment, event: &Event) {
        let Some(block) = self.active.remove(&event.addr) else { return };
        self.listed = self.listed.saturating_sub(u128::from(event.size));
        self.alive = self.alive.saturating_sub(1);
        self.blocks.end(block, after);
        if event.action == Action::FreeActiveToOs && event.is_move() {
            self.moving = Some(Moving { block, from: after, size: event.size });
        }
    }

    fn note(&mut self, moment: Moment) {
        let moving = self.moving.as_ref().map(|moving| moving.block);
        let blocks = &self.blocks;
        let is_present = |id| blocks.died(id) == NEVER || moving == Some(id);
        self.presence.note(moment, blocks.len(), self.alive, is_present);
    }
}
