//! Sizes in order: what is the smallest size at or above `n` that has a block?
//!
//! A B+ tree whose nodes carry a bit per entry, "there is something below", the way a hierarchical bitmap does. A size stays
//! in the tree while it has no block, with its bit cleared, so taking and returning blocks only flips bits: no node is
//! split, joined or allocated, and a search skips any number of empty sizes in logarithmic time.
//!
//! Needs each size to be inserted once. Knows nothing about blocks: `cache` keeps those.

/// Entries of a node: one bit each in a word.
const FANOUT: usize = 64;
const NONE: u32 = u32::MAX;

/// `keys[..len]` ascend. In a leaf `links` are the caller's numbers. Above, they are nodes, `keys[slot]` bounds the keys of
/// that child from below, and a bit is set when the child's `live` is not 0. The first child has no bound: its key may be above
/// some of its keys, and only serves to find the way from a node to its slot in the parent.
#[derive(Clone, Debug)]
struct Node {
    live: u64,
    parent: u32,
    len: u32,
    is_leaf: bool,
    keys: [u64; FANOUT],
    links: [u32; FANOUT],
}

impl Node {
    fn new(is_leaf: bool) -> Node {
        Node { live: 0, parent: NONE, len: 0, is_leaf, keys: [0; FANOUT], links: [NONE; FANOUT] }
    }

    fn len(&self) -> usize {
        self.len as usize
    }

    /// The entry that `key` is, or belongs below.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let len = self.len().max(1);
        self.keys[1..len].partition_point(|&at| at <= key)
    }

    fn insert(&mut self, key: u64, link: u32, is_live: bool) {
        let len = self.len();
        let unbounded = if self.is_leaf { 0 } else { len.min(1) };
        if unbounded == 1 {
            self.keys[0] = self.keys[0].min(key);
        }
        let slot = unbounded + self.keys[unbounded..len].partition_point(|&at| at < key);
        self.keys.copy_within(slot..len, slot + 1);
        self.links.copy_within(slot..len, slot + 1);
        (self.keys[slot], self.links[slot]) = (key, link);
        let low = self.live & !from(slot);
        self.live = low | ((self.live & from(slot)) << 1) | (u64::from(is_live) << slot);
        self.len += 1;
    }

    /// Moves the upper half to a new node.
    fn split(&mut self) -> Node {
        let mut right = Node::new(self.is_leaf);
        let half = FANOUT / 2;
        right.keys[..half].copy_from_slice(&self.keys[half..]);
        right.links[..half].copy_from_slice(&self.links[half..]);
        right.live = self.live >> half;
        self.live &= !from(half);
        (self.len, right.len) = (half as u32, half as u32);
        right
    }
}

/// Bits of `slot` and all above it.
#[inline]
fn from(slot: usize) -> u64 {
    u64::MAX.checked_shl(slot as u32).unwrap_or(0)
}

/// The tree.
#[derive(Clone, Debug)]
pub struct SizeIndex {
    nodes: Vec<Node>,
    root: u32,
    /// The leaf of each link.
    leaf_of: Vec<u32>,
}

impl Default for SizeIndex {
    fn default() -> Self {
        SizeIndex { nodes: vec![Node::new(true)], root: 0, leaf_of: Vec::new() }
    }
}

impl SizeIndex {
    fn at(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    fn at_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// The leaf that `size` is in, or would be.
    #[inline]
    fn leaf(&self, size: u64) -> u32 {
        let mut node = self.root;
        while !self.at(node).is_leaf {
            let here = self.at(node);
            node = here.links[here.slot(size)];
        }
        node
    }

    /// Enters a size that has no block. `link` is what `next` returns for it.
    pub fn insert(&mut self, size: u64, link: u32) {
        let leaf = self.leaf(size);
        self.insert_entry(leaf, size, link);
    }

    /// Puts an entry into a node, or into its new right half when it is full.
    fn insert_entry(&mut self, mut node: u32, key: u64, link: u32) {
        if self.at(node).len() == FANOUT {
            let right = self.split(node);
            if key >= self.at(right).keys[0] {
                node = right;
            }
        }
        let is_live = !self.at(node).is_leaf && self.at(link).live != 0;
        let was_live = self.at(node).live != 0;
        self.at_mut(node).insert(key, link, is_live);
        self.adopt(node, link);
        if is_live && !was_live {
            self.tell_parent(node);
        }
    }

    fn adopt(&mut self, node: u32, link: u32) {
        if !self.at(node).is_leaf {
            self.at_mut(link).parent = node;
            return;
        }
        let at = link as usize;
        if self.leaf_of.len() <= at {
            self.leaf_of.resize(at + 1, NONE);
        }
        self.leaf_of[at] = node;
    }

    fn add_node(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    fn split(&mut self, node: u32) -> u32 {
        let half = self.at_mut(node).split();
        let (key, moved) = (half.keys[0], half.links);
        let right = self.add_node(half);
        for &link in &moved[..FANOUT / 2] {
            self.adopt(right, link);
        }
        let parent = match self.at(node).parent {
            NONE => self.grow(node),
            parent => parent,
        };
        self.tell_parent(node);
        self.insert_entry(parent, key, right);
        right
    }

    /// A new root above the old one.
    fn grow(&mut self, old: u32) -> u32 {
        let mut root = Node::new(false);
        root.insert(self.at(old).keys[0], old, self.at(old).live != 0);
        self.root = self.add_node(root);
        self.at_mut(old).parent = self.root;
        self.root
    }

    /// Carries up whether something lives below `node`.
    #[inline]
    fn tell_parent(&mut self, mut node: u32) {
        while self.at(node).parent != NONE {
            let (parent, key, is_live) = (self.at(node).parent, self.at(node).keys[0], self.at(node).live != 0);
            let above = self.at_mut(parent);
            let was_live = above.live != 0;
            set(above, key, is_live);
            if (above.live != 0) == was_live {
                return;
            }
            node = parent;
        }
    }

    /// Says whether a size has a block.
    #[inline]
    pub fn set_live(&mut self, size: u64, link: u32, is_live: bool) {
        let leaf = self.leaf_of[link as usize];
        let node = self.at_mut(leaf);
        let was_live = node.live != 0;
        set(node, size, is_live);
        if (node.live != 0) != was_live {
            self.tell_parent(leaf);
        }
    }

    /// The links of all sizes that have a block, the smallest size first.
    pub fn live(&self) -> Vec<u32> {
        let mut links = Vec::new();
        self.collect(self.root, &mut links);
        links
    }

    fn collect(&self, node: u32, links: &mut Vec<u32>) {
        let here = self.at(node);
        let mut live = here.live;
        while live != 0 {
            let link = here.links[live.trailing_zeros() as usize];
            if here.is_leaf {
                links.push(link)
            } else {
                self.collect(link, links)
            }
            live &= live - 1;
        }
    }

    /// The smallest size at or above `size` that has a block, with its link.
    #[inline]
    pub fn next(&self, size: u64) -> Option<(u64, u32)> {
        let mut node = self.leaf(size);
        let here = self.at(node);
        let mut live = here.live & from(here.keys[..here.len()].partition_point(|&at| at < size));
        while live == 0 {
            let (parent, key) = (self.at(node).parent, self.at(node).keys[0]);
            if parent == NONE {
                return None;
            }
            live = self.at(parent).live & from(self.at(parent).slot(key) + 1);
            node = parent;
        }
        let mut slot = live.trailing_zeros() as usize;
        while !self.at(node).is_leaf {
            node = self.at(node).links[slot];
            slot = self.at(node).live.trailing_zeros() as usize;
        }
        Some((self.at(node).keys[slot], self.at(node).links[slot]))
    }
}

#[inline]
fn set(node: &mut Node, key: u64, is_live: bool) {
    let slot = node.slot(key);
    node.live = (node.live & !(1 << slot)) | (u64::from(is_live) << slot);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u64),
        Set(usize, bool),
        Next(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0u64..2000).prop_map(Op::Insert),
            4 => (any::<usize>(), any::<bool>()).prop_map(|(at, is_live)| Op::Set(at, is_live)),
            2 => (0u64..2100).prop_map(Op::Next),
        ]
    }

    fn nth(sizes: &BTreeMap<u64, (u32, bool)>, at: usize) -> Option<(u64, u32)> {
        let (&size, &(link, _)) = sizes.iter().nth(at.checked_rem(sizes.len())?)?;
        Some((size, link))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// The tree against a sorted map, deep enough for three levels.
        #[test]
        fn agrees_with_a_sorted_map(ops in prop::collection::vec(op(), 1..6000)) {
            let (mut index, mut sizes) = (SizeIndex::default(), BTreeMap::new());
            let mut links = 0;
            for op in ops {
                match op {
                    Op::Insert(size) if !sizes.contains_key(&size) => {
                        index.insert(size, links);
                        sizes.insert(size, (links, false));
                        links += 1;
                    }
                    Op::Insert(_) => {}
                    Op::Set(at, is_live) => if let Some((size, link)) = nth(&sizes, at) {
                        index.set_live(size, link, is_live);
                        sizes.insert(size, (link, is_live));
                    },
                    Op::Next(from) => {
                        let live = sizes.values().filter(|(_, is_live)| *is_live).map(|&(link, _)| link);
                        prop_assert_eq!(index.live(), live.collect::<Vec<_>>());
                        let expected = sizes.range(from..).find(|(_, (_, is_live))| *is_live);
                        prop_assert_eq!(index.next(from), expected.map(|(&size, &(link, _))| (size, link)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_first_child_may_split_below_its_key() {
        let mut index = SizeIndex::default();
        for size in (100..165u64).chain(0..90) {
            index.insert(size, size as u32);
        }
        for size in [3, 80, 140] {
            index.set_live(size, size as u32, true);
        }
        assert_eq!(
            [0, 4, 81, 141].map(|size| index.next(size).map(|found| found.0)),
            [Some(3), Some(80), Some(140), None]
        );
    }

    /// Three levels, whose sizes wander down and up, so that nodes fill at both ends.
    #[test]
    fn wandering_sizes_agree_with_a_sorted_set() {
        let (mut index, mut live, mut known) = (SizeIndex::default(), BTreeMap::new(), BTreeMap::new());
        let mut state = 1u64;
        for round in 0..400_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let middle = (round % 200_000).abs_diff(100_000);
            let size = middle + (state >> 33) % 20_000;
            match (state >> 60, known.get(&size)) {
                (0..10, None) => {
                    known.insert(size, size as u32);
                    index.insert(size, size as u32);
                }
                (0..10, Some(&link)) => {
                    index.set_live(size, link, state >> 59 & 1 == 0);
                    if state >> 59 & 1 == 0 {
                        live.insert(size, link)
                    } else {
                        live.remove(&size)
                    };
                }
                _ => assert_eq!(index.next(size), live.range(size..).next().map(|(&size, &link)| (size, link))),
            }
        }
        assert!(known.len() > 8_000, "{}", known.len());
    }

    #[test]
    fn a_hundred_thousand_sizes_in_falling_order() {
        let mut index = SizeIndex::default();
        for size in (0..100_000u64).rev() {
            index.insert(size * 3, size as u32);
        }
        assert_eq!(index.next(0), None);
        index.set_live(299_997, 99_999, true);
        assert_eq!(index.next(0), Some((299_997, 99_999)));
        index.set_live(299_997, 99_999, false);
    }
}
