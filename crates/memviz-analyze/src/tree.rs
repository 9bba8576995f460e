//! The calls that built what was held, as a tree: each call with all that it and what it called built.

use memviz_trace::{StackId, Trace};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::held::{Amount, StackLine};
use crate::peak::Live;

/// A branch below this share of all bytes is left out.
const LEAST_SHARE: f64 = 0.005;
/// Deepest call shown.
const DEEPEST: usize = 200;

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TreeRow {
    /// 0 for the outermost.
    pub depth: usize,
    /// Where.
    #[serde(flatten)]
    pub line: StackLine,
    /// Of it and what it called.
    #[serde(flatten)]
    pub amount: Amount,
}

/// Depth first, the largest of each level first, `top` of each level at most.
pub(crate) fn tree_of(trace: &Trace, live: &Live, top: usize) -> Vec<TreeRow> {
    let mut amounts: Vec<Amount> = vec![Amount::default(); trace.stacks.stack_count()];
    for buffer in &live.buffers {
        if let Some(amount) = amounts.get_mut(buffer.built.index()) {
            amount.add(buffer.size, 1);
        }
    }
    let mut called: FxHashMap<StackId, Vec<StackId>> = FxHashMap::default();
    // A caller is interned before the stack that calls on, so one pass from the end sums up.
    for stack in (1..amounts.len() as u32).rev().map(StackId) {
        let amount = amounts[stack.index()];
        if amount.count > 0 {
            let caller = trace.stacks.caller(stack);
            amounts[caller.index()].add(amount.bytes, amount.count);
            called.entry(caller).or_default().push(stack);
        }
    }
    let least = (amounts[0].bytes as f64 * LEAST_SHARE) as u64;
    let mut rows = Vec::new();
    let mut pending = vec![(StackId(0), 0_usize)];
    while let Some((stack, depth)) = pending.pop() {
        if let Some(frame) = trace.stacks.innermost(stack) {
            let line = StackLine::of(trace, trace.stacks.frame(frame));
            rows.push(TreeRow { depth: depth - 1, line, amount: amounts[stack.index()] });
        }
        let mut below = called.remove(&stack).unwrap_or_default();
        below.sort_by_key(|stack| (std::cmp::Reverse(amounts[stack.index()].bytes), *stack));
        below.truncate(top);
        let shown = below.into_iter().filter(|stack| depth < DEEPEST && amounts[stack.index()].bytes >= least);
        // The largest comes off the pile first.
        let shown: Vec<(StackId, usize)> = shown.map(|stack| (stack, depth + 1)).collect();
        pending.extend(shown.into_iter().rev());
    }
    rows
}
