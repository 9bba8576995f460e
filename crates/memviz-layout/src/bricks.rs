//! Bricks: which blocks are a pixel or more, and where each lies in every column.
//!
//! Columns are walked from left to right. Between two of them a [`Stack`] takes in who came and who went; then the bricks
//! between `low` and `high` are visited, and a brick whose bottom has moved begins a new run.

use rustc_hash::FxHashMap;

use crate::blocks::Blocks;
use crate::groups::Groups;
use crate::layout::Layout;
use crate::samples::{Sampled, Samples, Seen};
use crate::scene::{Drawn, bytes_as_f64};
use crate::stack::Stack;
use crate::types::{BlockId, Bricks, Picture, Viewport};

/// Rows by which a bottom moves when a new run begins.
const MOVED_ROWS: f32 = 0.25;

/// Bit of `Plan::place` for a brick.
const BRICK: u32 = 1 << 31;

/// Who comes and goes in which column. Small, because there may be as many as blocks: 16 bytes each.
struct Plan {
    /// Every block that is alive in a sample, by number and so by the column in which it comes.
    seen: Vec<Seen>,
    /// Of each: its place in the stack and [`BRICK`], or the place of the next brick above it.
    place: Vec<u32>,
    /// Positions in `seen`, by the column in which they go.
    go: Vec<u32>,
    /// First position in `go` of each column.
    go_from: Vec<u32>,
    /// Goings and comings of blocks on the move, by column.
    moves: Vec<Change>,
    /// The bricks, by place.
    block: Vec<BlockId>,
}

/// A block goes or comes in between.
#[derive(Clone, Copy, Debug)]
struct Change {
    column: u16,
    comes: bool,
    seen: u32,
}

/// The stack while columns are walked.
struct Walk<'a> {
    blocks: &'a Blocks,
    plan: &'a Plan,
    stack: Stack,
    next_come: usize,
    next_move: usize,
    /// Bytes of live bricks.
    standing: u64,
}

/// Runs in the order in which they end.
#[derive(Clone, Copy, Debug)]
struct Run {
    place: u32,
    from: u16,
    to: u16,
    bottom: f32,
}

/// The run of each brick that has not ended; `to == 0`: none yet.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    bottom: f32,
    from: u16,
    to: u16,
}

impl Layout {
    pub(crate) fn bricks(&self, groups: &Groups, sampled: &Sampled, view: &Viewport) -> Drawn {
        let plan = self.plan(&sampled.samples, view.row_bytes());
        let mut walk = Walk::new(&self.blocks, &plan);
        let mut open = vec![Open::default(); plan.block.len()];
        let mut runs: Vec<Run> = Vec::new();
        let columns = sampled.active.len();
        let (mut rest, mut outside) = (Vec::with_capacity(columns), Vec::with_capacity(columns));
        for (column, &active) in sampled.active.iter().enumerate() {
            walk.enter_column(column);
            let mut drawn: u64 = 0;
            walk.stack.visit(view.low, view.high, |place, size, bottom| {
                drawn = drawn.wrapping_add(size);
                let rows = (bottom as f64 - view.low) / view.row_bytes();
                runs.extend(open[place].extend(place, column as u16, rows as f32));
            });
            rest.push(bytes_as_f64(active.wrapping_sub(walk.standing)));
            outside.push(bytes_as_f64(walk.standing.wrapping_sub(drawn)));
        }
        drop(walk);
        runs.extend(open.iter().enumerate().filter_map(|(place, open)| open.run(place)));
        let (bricks, groups) = assemble(&self.blocks, &plan, &runs, groups);
        Drawn { picture: Picture::Bricks(bricks), groups, rest, outside, bricks: plan.block.len() as u64 }
    }

    /// Bricks are of `row_bytes` or more.
    fn plan(&self, samples: &Samples, row_bytes: f64) -> Plan {
        let mut plan = Plan {
            seen: self.seen(samples),
            place: Vec::new(),
            go: Vec::new(),
            go_from: Vec::new(),
            moves: Vec::new(),
            block: Vec::new(),
        };
        plan.place.reserve_exact(plan.seen.len());
        for seen in &plan.seen {
            let place = plan.block.len() as u32;
            let is_brick = self.blocks.size(seen.block) as f64 >= row_bytes;
            plan.place.push(if is_brick { place | BRICK } else { place });
            if is_brick {
                plan.block.push(seen.block);
            }
        }
        (plan.go, plan.go_from) = by_column(&plan.seen, samples.moments.len());
        plan.add_moves(&self.gaps_in(samples));
        plan
    }
}

impl Plan {
    fn add_moves(&mut self, gaps: &[Seen]) {
        for gap in gaps {
            let Ok(seen) = self.seen.binary_search_by_key(&gap.block, |seen| seen.block) else { continue };
            for (column, comes) in [(gap.from, false), (gap.to, true)] {
                self.moves.push(Change { column, comes, seen: seen as u32 });
            }
        }
        self.moves.sort_by_key(|change| change.column);
    }
}

/// Positions in `seen` by the column in which they go, and where each column begins: a counting sort.
fn by_column(seen: &[Seen], columns: usize) -> (Vec<u32>, Vec<u32>) {
    let mut from = vec![0_u32; columns + 2];
    for seen in seen {
        from[usize::from(seen.to) + 1] += 1;
    }
    for column in 1..from.len() {
        from[column] += from[column - 1];
    }
    let mut next = from.clone();
    let mut sorted = vec![0_u32; seen.len()];
    for (at, seen) in seen.iter().enumerate() {
        let slot = &mut next[usize::from(seen.to)];
        sorted[*slot as usize] = at as u32;
        *slot += 1;
    }
    (sorted, from)
}

impl<'a> Walk<'a> {
    fn new(blocks: &'a Blocks, plan: &'a Plan) -> Walk<'a> {
        let sizes = plan.block.iter().map(|&block| blocks.size(block)).collect();
        Walk { blocks, plan, stack: Stack::new(sizes), next_come: 0, next_move: 0, standing: 0 }
    }

    /// Columns are entered in order. Who comes and goes in one column cancels out.
    fn enter_column(&mut self, column: usize) {
        let plan = self.plan;
        let going = plan.go_from[column] as usize..plan.go_from[column + 1] as usize;
        for &seen in &plan.go[going] {
            self.change(seen as usize, false);
        }
        while plan.seen.get(self.next_come).is_some_and(|seen| usize::from(seen.from) == column) {
            self.change(self.next_come, true);
            self.next_come += 1;
        }
        while let Some(change) = plan.moves.get(self.next_move).filter(|change| usize::from(change.column) == column) {
            self.change(change.seen as usize, change.comes);
            self.next_move += 1;
        }
    }

    #[inline]
    fn change(&mut self, seen: usize, comes: bool) {
        let (place, bytes) = (self.plan.place[seen], self.blocks.size(self.plan.seen[seen].block));
        let change = if comes { bytes } else { bytes.wrapping_neg() };
        if place & BRICK == 0 {
            self.stack.add(place as usize, change);
        } else {
            self.stack.add((place & !BRICK) as usize, change);
            self.stack.flip((place & !BRICK) as usize);
            self.standing = self.standing.wrapping_add(change);
        }
    }
}

impl Open {
    /// The brick lies `rows` above `low` in a column; the run that ended thereby.
    fn extend(&mut self, place: usize, column: u16, rows: f32) -> Option<Run> {
        if self.to == column && self.to > self.from && (rows - self.bottom).abs() < MOVED_ROWS {
            self.to = column + 1;
            return None;
        }
        let ended = self.run(place);
        *self = Open { bottom: rows, from: column, to: column + 1 };
        ended
    }

    fn run(&self, place: usize) -> Option<Run> {
        let Open { bottom, from, to } = *self;
        (to > from).then_some(Run { place: place as u32, from, to, bottom })
    }
}

/// Arrays of the bricks that have runs, and their groups, largest first.
fn assemble(blocks: &Blocks, plan: &Plan, runs: &[Run], groups: &Groups) -> (Bricks, Vec<u32>) {
    let mut next = vec![0_u32; plan.block.len()];
    for run in runs {
        next[run.place as usize] += 1;
    }
    let drawn = next.iter().filter(|runs| **runs > 0).count();
    let mut bricks = Bricks {
        block: Vec::with_capacity(drawn),
        size: Vec::with_capacity(drawn),
        group: Vec::with_capacity(drawn),
        run: Vec::with_capacity(drawn + 1),
        ..Bricks::default()
    };
    bricks.run.push(0);
    let mut end = 0;
    for (next, &block) in next.iter_mut().zip(&plan.block).filter(|(runs, _)| **runs > 0) {
        let runs = std::mem::replace(next, end);
        end += runs;
        bricks.run.push(end);
        bricks.block.push(block);
        bricks.size.push(bytes_as_f64(blocks.size(block)));
        bricks.group.push(groups.of(block));
    }
    bricks.run_from = vec![0; runs.len()];
    bricks.run_to = vec![0; runs.len()];
    bricks.run_bottom = vec![0.0; runs.len()];
    for run in runs {
        let at = next[run.place as usize] as usize;
        next[run.place as usize] += 1;
        bricks.run_from[at] = run.from.into();
        bricks.run_to[at] = run.to.into();
        bricks.run_bottom[at] = run.bottom;
    }
    let mut weight: FxHashMap<u32, f64> = FxHashMap::default();
    for (at, group) in bricks.group.iter().enumerate() {
        let runs = bricks.run[at] as usize..bricks.run[at + 1] as usize;
        let columns: u32 = runs.map(|run| bricks.run_to[run] - bricks.run_from[run]).sum();
        *weight.entry(*group).or_default() += bricks.size[at] * f64::from(columns);
    }
    let order = largest_first(weight);
    let position: FxHashMap<u32, u32> = order.iter().enumerate().map(|(at, group)| (*group, at as u32)).collect();
    for group in &mut bricks.group {
        *group = position.get(group).copied().unwrap_or(0);
    }
    (bricks, order)
}

/// Groups by falling weight.
pub(crate) fn largest_first(weight: FxHashMap<u32, f64>) -> Vec<u32> {
    let mut order: Vec<(u32, f64)> = weight.into_iter().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    order.into_iter().map(|(group, _)| group).collect()
}
