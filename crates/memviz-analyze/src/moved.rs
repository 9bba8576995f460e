//! Which line of one run is which line of another, after the program was edited.
//!
//! Lines are the same only within one function of one file. Files are the same by path; of those that are left, by name,
//! when only one on each side has it. Within a function lines keep their order, and of all such pairings the one is taken
//! whose lines agree best in what they allocated in the whole run: primitives, then primitives with dtype and shape. Lines
//! that agree in neither are not paired, unless the number is the same.

use std::collections::BTreeMap;

use memviz_trace::{FrameId, Trace, WhatId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::lines::UserLines;

/// More pairs than this within one function are not compared: lines are then paired by number only.
const MOST_PAIRS: usize = 1 << 20;
/// What the same number adds to the agreement of two lines (2 at most): it decides between equals.
const SAME_NUMBER: f32 = 0.1;

/// File and function.
type Function = (String, String);

/// What a line allocated.
#[derive(Debug, Default)]
struct Made {
    primitives: FxHashSet<String>,
    shapes: FxHashSet<(String, String, Option<Vec<i32>>)>,
}

/// The lines that allocated, in order, by function.
type Functions = BTreeMap<Function, BTreeMap<u32, Made>>;

/// Lines of `before` as lines of `after`.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    files: FxHashMap<String, String>,
    lines: FxHashMap<Function, FxHashMap<u32, u32>>,
}

impl Moved {
    /// Pairs the lines that allocated in two runs.
    pub fn between(before: &Trace, after: &Trace) -> Moved {
        let (before, after) = (made_by_line(before), made_by_line(after));
        let files = same_files(&before, &after);
        let mut lines = FxHashMap::default();
        for ((file, function), old) in &before {
            let file = files.get(file).unwrap_or(file);
            let Some(new) = after.get(&(file.clone(), function.clone())) else { continue };
            lines.insert((file.clone(), function.clone()), pair(old, new));
        }
        Moved { files, lines }
    }

    /// Where a line of `before` is in `after`: its file, and its number if it is there.
    pub fn find(&self, file: &str, function: &str, line: u32) -> (String, Option<u32>) {
        let file = self.files.get(file).map_or(file, |file| file).to_owned();
        let key = (file, function.to_owned());
        let number = self.lines.get(&key).and_then(|lines| lines.get(&line)).copied();
        (key.0, number)
    }
}

fn made_by_line(trace: &Trace) -> Functions {
    let lines = UserLines::new(trace);
    let mut seen: FxHashSet<(FrameId, WhatId)> = FxHashSet::default();
    let allocs = trace.events.iter().filter(|event| event.action.is_alloc());
    let allocs = allocs.map(|event| (event.built, event.triggered, event.what));
    let start = trace.start.iter().map(|buffer| (buffer.built, buffer.triggered, buffer.what));
    for (built, triggered, what) in start.chain(allocs) {
        if let Some(frame) = lines.line_of(built).or_else(|| lines.line_of(triggered)) {
            seen.insert((frame, what));
        }
    }
    let mut functions: Functions = BTreeMap::new();
    let text = |id| trace.strings.get(id).to_owned();
    for (frame, what) in seen {
        let (frame, what) = (trace.stacks.frame(frame), trace.what(what));
        let lines = functions.entry((text(frame.file), text(frame.function))).or_default();
        let made = lines.entry(frame.line).or_default();
        made.primitives.insert(text(what.primitive));
        made.shapes.insert((text(what.primitive), text(what.dtype), what.shape.as_deref().map(<[i32]>::to_vec)));
    }
    functions
}

/// Files of the first run that have another path in the second.
fn same_files(before: &Functions, after: &Functions) -> FxHashMap<String, String> {
    let (old, new) = (files_of(before), files_of(after));
    let (old_names, new_names) = (by_name(old.difference(&new)), by_name(new.difference(&old)));
    let only = |files: &Vec<&String>| match files.as_slice() {
        [only] => Some((*only).clone()),
        _ => None,
    };
    let pairs = old_names.iter().filter_map(|(name, old)| Some((only(old)?, only(new_names.get(name)?)?)));
    pairs.collect()
}

fn files_of(functions: &Functions) -> FxHashSet<String> {
    functions.keys().map(|(file, _)| file.clone()).collect()
}

fn by_name<'a>(files: impl Iterator<Item = &'a String>) -> FxHashMap<&'a str, Vec<&'a String>> {
    let mut names: FxHashMap<&str, Vec<&String>> = FxHashMap::default();
    for file in files {
        names.entry(file.rsplit(['/', '\\']).next().unwrap_or(file)).or_default().push(file);
    }
    names
}

/// Lines of one function, old to new: the pairing in order with the highest sum of agreements.
fn pair(old: &BTreeMap<u32, Made>, new: &BTreeMap<u32, Made>) -> FxHashMap<u32, u32> {
    if old.len().saturating_mul(new.len()) > MOST_PAIRS {
        return old.keys().filter(|line| new.contains_key(line)).map(|&line| (line, line)).collect();
    }
    let (old, new): (Vec<_>, Vec<_>) = (old.iter().collect(), new.iter().collect());
    let width = new.len() + 1;
    // best[a * width + b]: the best sum of the lines from a and from b on.
    let mut best = vec![0.0_f32; (old.len() + 1) * width];
    let agreement = |a: usize, b: usize| agree(old[a], new[b]);
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            let paired = agreement(a, b) + best[(a + 1) * width + b + 1];
            best[a * width + b] = paired.max(best[(a + 1) * width + b]).max(best[a * width + b + 1]);
        }
    }
    let (mut a, mut b, mut pairs) = (0, 0, FxHashMap::default());
    while a < old.len() && b < new.len() {
        let here = best[a * width + b];
        let score = agreement(a, b);
        if score > 0.0 && here == score + best[(a + 1) * width + b + 1] {
            pairs.insert(*old[a].0, *new[b].0);
            (a, b) = (a + 1, b + 1);
        } else if here == best[(a + 1) * width + b] {
            a += 1;
        } else {
            b += 1;
        }
    }
    pairs
}

fn agree((old_line, old): (&u32, &Made), (new_line, new): (&u32, &Made)) -> f32 {
    let same_number = if old_line == new_line { SAME_NUMBER } else { 0.0 };
    common(&old.primitives, &new.primitives) + common(&old.shapes, &new.shapes) + same_number
}

/// Share of the elements of either set that are in both.
fn common<T: Eq + std::hash::Hash>(a: &FxHashSet<T>, b: &FxHashSet<T>) -> f32 {
    let both = a.intersection(b).count();
    let either = a.len() + b.len() - both;
    if either == 0 { 0.0 } else { both as f32 / either as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: &[(u32, &str)]) -> BTreeMap<u32, Made> {
        let made = |primitive: &str| Made {
            primitives: [primitive.to_owned()].into_iter().collect(),
            shapes: [(primitive.to_owned(), "float32".to_owned(), Some(vec![4]))].into_iter().collect(),
        };
        lines.iter().map(|&(line, primitive)| (line, made(primitive))).collect()
    }

    fn paired(old: &[(u32, &str)], new: &[(u32, &str)]) -> Vec<(u32, u32)> {
        let mut pairs: Vec<(u32, u32)> = pair(&function(old), &function(new)).into_iter().collect();
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn lines_are_paired_by_what_they_made_and_in_order() {
        let old = [(10, "Add"), (11, "Matmul"), (12, "Exp")];
        assert_eq!(paired(&old, &old), [(10, 10), (11, 11), (12, 12)]);
        assert_eq!(paired(&old, &[(11, "Add"), (12, "Matmul"), (13, "Exp")]), [(10, 11), (11, 12), (12, 13)]);
        assert_eq!(
            paired(&old, &[(10, "Add"), (11, "Sin"), (12, "Matmul"), (13, "Exp")]),
            [(10, 10), (11, 12), (12, 13)]
        );
        assert_eq!(paired(&[(1, "Add"), (2, "Add")], &[(2, "Add"), (3, "Add")]), [(1, 2), (2, 3)]);
        assert_eq!(paired(&[(5, "Add")], &[(5, "Sin")]), [(5, 5)]);
        assert_eq!(paired(&[(5, "Add")], &[(6, "Sin")]), []);
        assert_eq!(paired(&[(5, "Add")], &[]), []);
    }

    #[test]
    fn a_function_of_very_many_lines_is_paired_by_number() {
        let many: Vec<(u32, &str)> = (0..1100).map(|line| (line, "Add")).collect();
        assert_eq!(paired(&many, &many[1..]).first(), Some(&(1, 1)));
    }
}
