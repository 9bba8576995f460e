//! `flame`: call stacks of what was live, as a tree; of two moments with both sums.
//!
//! A trace's stacks are a tree already: a stack knows its caller, which has the lower number. So stacks are taken in order of
//! their numbers, and each becomes the child of its caller's node. Frames of memviz itself are left out, and frames that
//! differ in their column only are one.

use memviz_analyze::{FrameClass, LineKind};
use memviz_layout::Moment;
use memviz_trace::{Buffer, Frame, StackId, Trace};
use rustc_hash::FxHashMap;
use serde_json::json;

use super::{Api, maybe_moment, moment, names};
use crate::answer::{Answer, Refusal};
use crate::clip;
use crate::frame;
use crate::query::Query;
use crate::store::Loaded;

/// A part below this share of the whole is joined with others.
const SMALLEST_SHARE: u64 = 2000;
/// The parent of the root.
const NO_PARENT: u32 = u32::MAX;

pub(super) fn answer(api: &Api, query: &str) -> Result<Answer, Refusal> {
    let query = Query::new(query, &["r", "event", "other"], &[])?;
    let loaded = api.asked(&query)?;
    let at = moment(&query, "event", &loaded)?;
    let other = maybe_moment(&query, "other", &loaded)?;
    let mut tree = Tree::new(&loaded);
    tree.add(at, 0);
    if let Some(other) = other {
        tree.add(other, 1);
    }
    Ok(Answer::frame(tree.finish().encode(other.is_some())))
}

/// Bytes and blocks at the one moment and at the other.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    bytes: [u64; 2],
    count: [u64; 2],
}

impl Sums {
    fn add(&mut self, other: Sums) {
        for at in 0..2 {
            self.bytes[at] = self.bytes[at].saturating_add(other.bytes[at]);
            self.count[at] = self.count[at].saturating_add(other.count[at]);
        }
    }

    /// Large children first.
    fn weight(&self) -> u64 {
        self.bytes[0].max(self.bytes[1])
    }

    fn is_small(&self, whole: &Sums) -> bool {
        let small = |at: usize| u128::from(self.bytes[at]) * u128::from(SMALLEST_SHARE) < u128::from(whole.bytes[at]);
        (0..2).all(|at| self.bytes[at] == 0 || small(at))
    }
}

/// What a node is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    /// And whether it is the user's code.
    Frame(Frame, bool),
    Text(&'static str),
}

#[derive(Debug)]
struct Node {
    parent: usize,
    name: Name,
    sums: Sums,
}

/// The tree under construction. Node 0 is the root; a node comes after its parent.
struct Tree<'t> {
    loaded: &'t Loaded,
    trace: &'t Trace,
    nodes: Vec<Node>,
    ids: FxHashMap<(usize, Name), usize>,
}

impl<'t> Tree<'t> {
    fn new(loaded: &'t Loaded) -> Tree<'t> {
        let root = Node { parent: 0, name: Name::Text("all"), sums: Sums::default() };
        Tree { loaded, trace: loaded.trace(), nodes: vec![root], ids: FxHashMap::default() }
    }

    fn add(&mut self, moment: Moment, at: usize) {
        let (layout, lines) = (self.loaded.layout(), self.loaded.lines());
        let mut by_stack: FxHashMap<StackId, Sums> = FxHashMap::default();
        let mut listed = 0_u64;
        for id in layout.live_blocks(moment) {
            let (Some(block), Some(buffer)) = (layout.block(id), layout.buffer(self.trace, id)) else { continue };
            listed = listed.saturating_add(block.size);
            let has_line = |stack: &StackId| lines.line_of(*stack).is_some();
            match [buffer.built, buffer.triggered].into_iter().find(has_line) {
                Some(stack) => by_stack.entry(stack).or_default().add(one(&buffer, at)),
                None if block.alloc_event.is_none() => self.label(LineKind::BeforeRecording, one(&buffer, at)),
                None => self.label(LineKind::NoPythonLine, one(&buffer, at)),
            }
        }
        let active = layout.totals_at(moment).active;
        if active > listed {
            let mut rest = Sums::default();
            rest.bytes[at] = active - listed;
            self.label(LineKind::NotListed, rest);
        }
        self.add_stacks(by_stack);
    }

    fn label(&mut self, kind: LineKind, sums: Sums) {
        let node = self.child(0, Name::Text(kind.label()));
        self.nodes[node].sums.add(sums);
    }

    fn add_stacks(&mut self, by_stack: FxHashMap<StackId, Sums>) {
        let mut stacks: Vec<(StackId, Sums)> = by_stack.into_iter().collect();
        stacks.sort_unstable_by_key(|(stack, _)| *stack);
        let mut known: FxHashMap<StackId, usize> = FxHashMap::default();
        for (stack, sums) in stacks {
            let node = self.node_of(stack, &mut known);
            self.nodes[node].sums.add(sums);
        }
    }

    /// The node of a stack: walks out to a stack that is known, then in again.
    fn node_of(&mut self, stack: StackId, known: &mut FxHashMap<StackId, usize>) -> usize {
        let stacks = &self.trace.stacks;
        let (mut path, mut at, mut node) = (Vec::new(), stack, 0);
        while at != StackId(0) {
            if let Some(found) = known.get(&at) {
                node = *found;
                break;
            }
            path.push(at);
            at = stacks.caller(at);
        }
        while let Some(inner) = path.pop() {
            if let Some(id) = stacks.innermost(inner) {
                let frame = Frame { column: 0, ..stacks.frame(id) };
                let class = self.loaded.class(id);
                if class != FrameClass::Memviz {
                    node = self.child(node, Name::Frame(frame, class == FrameClass::User));
                }
            }
            known.insert(inner, node);
        }
        node
    }

    fn child(&mut self, parent: usize, name: Name) -> usize {
        let next = self.nodes.len();
        let id = *self.ids.entry((parent, name)).or_insert(next);
        if id == next {
            self.nodes.push(Node { parent, name, sums: Sums::default() });
        }
        id
    }

    /// Adds children to their parents, then lists the tree depth first without small parts.
    fn finish(mut self) -> Listed<'t> {
        for at in (1..self.nodes.len()).rev() {
            let Node { parent, sums, .. } = self.nodes[at];
            self.nodes[parent].sums.add(sums);
        }
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            children[node.parent].push(at);
        }
        let mut listed = Listed::new(self.trace, self.nodes[0].sums);
        let mut waiting = vec![(0, NO_PARENT)];
        while let Some((at, parent)) = waiting.pop() {
            let place = listed.push(parent, self.nodes[at].name, self.nodes[at].sums);
            let sums = |child: &usize| self.nodes[*child].sums;
            let (mut large, small): (Vec<usize>, Vec<usize>) =
                children[at].iter().partition(|child| !sums(child).is_small(&self.nodes[0].sums));
            // The joined parts are a leaf; they may come before their larger siblings in the list as in the picture.
            if !small.is_empty() {
                let mut joined = Sums::default();
                small.iter().for_each(|child| joined.add(sums(child)));
                listed.smaller.push((place, joined));
            }
            large.sort_by_key(|child| sums(child).weight());
            waiting.extend(large.into_iter().map(|child| (child, place)));
        }
        listed
    }
}

fn one(buffer: &Buffer, at: usize) -> Sums {
    let mut sums = Sums::default();
    (sums.bytes[at], sums.count[at]) = (buffer.size, 1);
    sums
}

/// Nodes in the order of the answer.
struct Listed<'t> {
    trace: &'t Trace,
    whole: Sums,
    names: Vec<String>,
    name_ids: FxHashMap<Name, u32>,
    rows: Vec<(u32, u32, bool, Sums)>,
    /// Parent and sums of parts that were joined.
    smaller: Vec<(u32, Sums)>,
}

impl<'t> Listed<'t> {
    fn new(trace: &'t Trace, whole: Sums) -> Listed<'t> {
        Listed {
            trace,
            whole,
            names: Vec::new(),
            name_ids: FxHashMap::default(),
            rows: Vec::new(),
            smaller: Vec::new(),
        }
    }

    fn push(&mut self, parent: u32, name: Name, sums: Sums) -> u32 {
        let next = clip::short(self.names.len());
        let id = *self.name_ids.entry(name).or_insert(next);
        let is_own = matches!(name, Name::Frame(_, true));
        if id == next {
            self.names.push(match name {
                Name::Frame(frame, _) => names::frame(self.trace, frame),
                Name::Text(text) => text.to_owned(),
            });
        }
        self.rows.push((parent, id, is_own, sums));
        clip::short(self.rows.len() - 1)
    }

    fn encode(mut self, has_other: bool) -> Vec<u8> {
        self.place_smaller();
        let total = |at: usize| clip::number(self.whole.bytes[at]);
        let other_total = has_other.then(|| total(1));
        let mut frame =
            frame::Frame::new(json!({ "names": self.names, "total": total(0), "other_total": other_total }));
        frame.u32("parent", self.rows.iter().map(|row| row.0));
        frame.u32("name", self.rows.iter().map(|row| row.1));
        frame.u8("own", &self.rows.iter().map(|row| u8::from(row.2)).collect::<Vec<_>>());
        let moments = if has_other { 2 } else { 1 };
        for (at, (bytes, count)) in
            [("bytes", "count"), ("other_bytes", "other_count")].into_iter().enumerate().take(moments)
        {
            frame.f64(bytes, self.rows.iter().map(|row| clip::float(row.3.bytes[at])));
            frame.u32(count, self.rows.iter().map(|row| u32::try_from(row.3.count[at]).unwrap_or(u32::MAX)));
        }
        frame.finish()
    }

    /// Puts joined parts behind the last of their siblings, so that the list stays depth first.
    fn place_smaller(&mut self) {
        if self.smaller.is_empty() {
            return;
        }
        let name = clip::short(self.names.len());
        self.names.push("… smaller".to_owned());
        let ends = self.ends();
        let mut after: FxHashMap<u32, Vec<(u32, Sums)>> = FxHashMap::default();
        for (parent, sums) in std::mem::take(&mut self.smaller) {
            after.entry(ends[parent as usize]).or_default().push((parent, sums));
        }
        let rows = std::mem::take(&mut self.rows);
        let mut moved = Vec::with_capacity(rows.len());
        for (at, (parent, id, is_own, sums)) in rows.into_iter().enumerate() {
            let parent = moved.get(parent as usize).copied().unwrap_or(NO_PARENT);
            moved.push(clip::short(self.rows.len()));
            self.rows.push((parent, id, is_own, sums));
            // Inner parents end first.
            for (parent, sums) in after.remove(&clip::short(at)).unwrap_or_default().into_iter().rev() {
                self.rows.push((moved[parent as usize], name, false, sums));
            }
        }
    }

    /// The last row below each row, itself without any.
    fn ends(&self) -> Vec<u32> {
        let mut ends: Vec<u32> = (0..self.rows.len()).map(clip::short).collect();
        for at in (1..self.rows.len()).rev() {
            let parent = self.rows[at].0 as usize;
            ends[parent] = ends[parent].max(ends[at]);
        }
        ends
    }
}
