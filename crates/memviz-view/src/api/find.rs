//! `find`: groups by a text in their name or in a stack of their blocks.
//!
//! A hostile recording may have long texts in many frames: each text is searched once, however many frames have it.

use memviz_layout::{BlockId, Groups, NEVER};
use memviz_trace::{Frame, FrameId, StackId, StringId, Trace};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::moment::Amount;
use super::{Api, by, names, timeline};
use crate::answer::{Answer, Refusal};
use crate::clip;
use crate::query::Query;
use crate::store::Loaded;

/// Rows.
const MOST_ROWS: usize = 100;

pub(super) fn answer(api: &Api, query: &str) -> Result<Answer, Refusal> {
    let query = Query::new(query, &["r", "text", "by"], &[])?;
    let (text, by) = (query.need("text")?.to_lowercase(), by(&query)?);
    let loaded = api.asked(&query)?;
    let groups = loaded.groups(by);
    let sums = sums(&loaded, groups);
    let mut found: Vec<(u32, Amount)> =
        matching(&loaded, groups, &text).map(|group| (group, sums[group as usize])).collect();
    found.retain(|(_, sum)| sum.count > 0);
    found.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.bytes, sum.count)));
    let left_out = found.len().saturating_sub(MOST_ROWS);
    found.truncate(MOST_ROWS);
    let highest = highest(&loaded, groups, &found);
    let rows = found.iter().zip(highest).map(|((group, sum), event)| {
        let mut row: Value = timeline::described(groups, *group);
        row["bytes"] = json!(clip::number(sum.bytes));
        row["count"] = json!(clip::number(sum.count));
        row["event"] = json!(event);
        row
    });
    Ok(Answer::json(&json!({ "groups": rows.collect::<Vec<_>>(), "left_out": left_out })))
}

/// All allocations of every group.
fn sums(loaded: &Loaded, groups: &Groups) -> Vec<Amount> {
    let layout = loaded.layout();
    let mut sums = vec![Amount::default(); groups.len()];
    for id in 0..layout.blocks() {
        if let (Some(sum), Some(block)) = (sums.get_mut(groups.of(id) as usize), layout.block(id)) {
            sum.add(block.size, 1);
        }
    }
    sums
}

/// Groups that the text names, or that have a block with a stack that has it.
fn matching(loaded: &Loaded, groups: &Groups, text: &str) -> impl Iterator<Item = u32> {
    let (layout, trace) = (loaded.layout(), loaded.trace());
    let count = clip::short(groups.len());
    let mut is_found: Vec<bool> = (0..count).map(|group| groups.name(group).to_lowercase().contains(text)).collect();
    let stacks = stacks_with(trace, text);
    let has = |stack: StackId| stacks.get(stack.index()).copied().unwrap_or(false);
    if stacks.iter().any(|is_in| *is_in) {
        for id in 0..layout.blocks() {
            let Some(found) = is_found.get_mut(groups.of(id) as usize).filter(|found| !**found) else { continue };
            *found = layout.buffer(trace, id).is_some_and(|buffer| has(buffer.built) || has(buffer.triggered));
        }
    }
    (0..count).filter(move |group| is_found[*group as usize])
}

/// For every stack, whether a line of it has the text.
fn stacks_with(trace: &Trace, text: &str) -> Vec<bool> {
    let mut texts = Texts { trace, text, known: FxHashMap::default() };
    let frames = (0..clip::short(trace.stacks.frame_count())).map(FrameId);
    let frames: Vec<bool> = frames.map(|id| texts.in_frame(trace.stacks.frame(id))).collect();
    let mut stacks = vec![false; trace.stacks.stack_count()];
    for at in 1..stacks.len() {
        let stack = StackId(clip::short(at));
        // A caller has the lower number.
        let outer = stacks[trace.stacks.caller(stack).index()];
        stacks[at] = outer || trace.stacks.innermost(stack).is_some_and(|frame| frames[frame.index()]);
    }
    stacks
}

struct Texts<'a> {
    trace: &'a Trace,
    text: &'a str,
    known: FxHashMap<StringId, bool>,
}

impl Texts<'_> {
    fn in_frame(&mut self, frame: Frame) -> bool {
        self.in_string(frame.file)
            || self.in_string(frame.function)
            || names::frame(self.trace, frame).to_lowercase().contains(self.text)
    }

    fn in_string(&mut self, id: StringId) -> bool {
        let (trace, text) = (self.trace, self.text);
        *self.known.entry(id).or_insert_with(|| trace.strings.get(id).to_lowercase().contains(text))
    }
}

/// The moment at which each of the groups held most.
fn highest(loaded: &Loaded, groups: &Groups, found: &[(u32, Amount)]) -> Vec<u32> {
    let layout = loaded.layout();
    let mut rows: Vec<Option<usize>> = vec![None; groups.len()];
    found.iter().enumerate().for_each(|(row, (group, _))| rows[*group as usize] = Some(row));
    let row_of = |id: BlockId| rows.get(groups.of(id) as usize).copied().flatten();
    let mut changes: Vec<(u32, usize, i128)> = Vec::new();
    for id in 0..layout.blocks() {
        if let (Some(row), Some(block)) = (row_of(id), layout.block(id)) {
            changes.push((block.born, row, i128::from(block.size)));
            if block.died != NEVER {
                changes.push((block.died, row, -i128::from(block.size)));
            }
        }
    }
    // What dies in a moment is gone in it, so it comes first.
    changes.sort_unstable_by_key(|(moment, _, change)| (*moment, *change));
    let mut now = vec![0_i128; found.len()];
    let mut most = vec![(0_i128, 0_u32); found.len()];
    for (moment, row, change) in changes {
        now[row] += change;
        if now[row] > most[row].0 {
            most[row] = (now[row], moment);
        }
    }
    most.into_iter().map(|(_, moment)| moment).collect()
}
