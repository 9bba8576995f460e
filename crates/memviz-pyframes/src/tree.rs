//! The calling-context tree: a stack is its innermost node, and a node is one call site under one caller.
//!
//! An id is exact by construction: a child is found by (caller, key) with both compared, and no hash is ever trusted.
//! The key names one instruction of one code object, and code objects are kept for ever from first sight: without
//! that, 18 of 400 short-lived functions took over the address of another and stacks merged (measured on 3.10).
//!
//! A node has three homes: what the walker touches ([`Hot`], 16 bytes), what readers on other threads want ([`Node`],
//! 16 bytes with its lock-free cell), and a slot in the hash table of children (16 bytes, at most three quarters full).

use crate::append_only::AppendOnly;
use crate::codes::{CodeId, Codes};

/// One call site under one caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The stack without its innermost frame; 0 is the empty stack.
    pub caller: u32,
    /// The code object, or [`CodeId::NONE`] for a node to be left out when a stack is shown.
    pub code: CodeId,
    /// Byte offset of the instruction, -1 before the first.
    pub lasti: i32,
}

/// "This stack could not be stored." Being no valid index it passes through every further step of a walk.
pub(crate) const LOST: u32 = u32::MAX;

/// Set in keys made of a code id, so that they never equal an instruction pointer or a packed pointer.
const CODE_KEY: u64 = 1 << 63;

static NODES: AppendOnly<Node> = AppendOnly::new();

/// Number of nodes so far, the empty stack (id 0) included: every id is below it.
pub fn node_count() -> u32 {
    NODES.len()
}

/// A node by id, on any thread, with or without the GIL. Id 0 is the empty stack and its own caller.
pub fn node(id: u32) -> Option<Node> {
    NODES.get(id)
}

/// Most call sites have one callee most of the time, so its key is kept inline: the next node costs one compare.
#[derive(Clone, Copy)]
struct Hot {
    last_child_key: u64,
    last_child: u32,
}

impl Hot {
    /// No key is all ones: it would be the key of [`CodeId::NONE`].
    const NO_CHILD: Hot = Hot { last_child_key: u64::MAX, last_child: LOST };
}

/// `node` 0 is an empty slot: the root is nobody's child.
#[derive(Clone, Copy, Default)]
struct Slot {
    key: u64,
    caller: u32,
    node: u32,
}

/// Guarded by the GIL, on free-threaded builds by a lock.
pub(crate) struct Tree {
    hot: Vec<Hot>,
    /// Open addressing, linear probing; the length is a power of two.
    slots: Vec<Slot>,
    pub(crate) codes: Codes,
}

impl Tree {
    pub(crate) const fn new() -> Tree {
        Tree { hot: Vec::new(), slots: Vec::new(), codes: Codes::new() }
    }

    /// Makes the empty stack, once.
    pub(crate) fn plant_root(&mut self) {
        if self.hot.is_empty() && NODES.push(Node { caller: 0, code: CodeId::NONE, lasti: -1 }) == Some(0) {
            self.hot.push(Hot::NO_CHILD);
            self.slots.resize(1024, Slot::default());
        }
    }

    /// The node of `key` under `caller`. On first sight `describe` says what it is; its `None` means "do not store".
    #[inline(always)]
    pub(crate) fn child(
        &mut self,
        caller: u32,
        key: u64,
        describe: impl FnOnce(&mut Codes) -> Option<(CodeId, i32)>,
    ) -> u32 {
        match self.hot.get(caller as usize) {
            Some(hot) if hot.last_child_key == key => hot.last_child,
            _ => self.other_child(caller, key, describe),
        }
    }

    #[inline(never)]
    fn other_child(
        &mut self,
        caller: u32,
        key: u64,
        describe: impl FnOnce(&mut Codes) -> Option<(CodeId, i32)>,
    ) -> u32 {
        let known = self.find(caller, key);
        let Some(hot) = self.hot.get_mut(caller as usize) else { return LOST };
        if let Some(child) = known {
            *hot = Hot { last_child_key: key, last_child: child };
            return child;
        }
        let Some((code, lasti)) = describe(&mut self.codes) else { return LOST };
        self.add(caller, key, Node { caller, code, lasti }).unwrap_or(LOST)
    }

    fn find(&self, caller: u32, key: u64) -> Option<u32> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash(caller, key) & mask;
        loop {
            let slot = self.slots.get(at)?;
            if slot.key == key && slot.caller == caller && slot.node != 0 {
                return Some(slot.node);
            }
            if slot.node == 0 {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn add(&mut self, caller: u32, key: u64, row: Node) -> Option<u32> {
        let node = NODES.push(row)?;
        self.hot.push(Hot::NO_CHILD);
        if let Some(hot) = self.hot.get_mut(caller as usize) {
            *hot = Hot { last_child_key: key, last_child: node };
        }
        if self.hot.len() * 4 > self.slots.len() * 3 {
            let doubled = vec![Slot::default(); self.slots.len() * 2];
            let old = std::mem::replace(&mut self.slots, doubled);
            old.into_iter().filter(|slot| slot.node != 0).for_each(|slot| self.place(slot));
        }
        self.place(Slot { key, caller, node });
        Some(node)
    }

    fn place(&mut self, slot: Slot) {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash(slot.caller, slot.key) & mask;
        while self.slots[at].node != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    /// Bytes held, the shared tables included.
    pub(crate) fn memory_bytes(&self) -> usize {
        let own = self.hot.capacity() * size_of::<Hot>() + self.slots.capacity() * size_of::<Slot>();
        own + NODES.memory_bytes() + self.codes.memory_bytes()
    }
}

/// Key of a position for which there is no usable pointer. Disjoint from pointers, and exact: 32 bits of code id,
/// 31 bits of offset, one bit to tell.
pub(crate) fn code_key(code: CodeId, lasti: i32) -> u64 {
    CODE_KEY | u64::from(code.0) << 31 | u64::from(lasti.wrapping_add(1) as u32 & 0x7fff_ffff)
}

#[inline(always)]
fn hash(caller: u32, key: u64) -> usize {
    let mixed = key ^ u64::from(caller).wrapping_mul(0xE703_7ED1_A0B4_28DB);
    let wide = u128::from(mixed) * 0x9E37_79B9_7F4A_7C15;
    (wide as u64 ^ (wide >> 64) as u64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn equal_paths_have_equal_ids_and_others_do_not() {
        let mut tree = Tree::new();
        tree.plant_root();
        let mut first_sights = 0;
        let mut ids = HashMap::new();
        for round in 0..2 {
            for path in 0..20_000_u64 {
                // A binary tree of keys that share their low bits, the worst case for a weak hash.
                let mut node = 0;
                for level in 0..14 {
                    node = tree.child(node, ((path >> level & 1) + 1) << 40, |_| {
                        first_sights += 1;
                        Some((CodeId(0), 0))
                    });
                }
                let id = *ids.entry(path & 0x3fff).or_insert(node);
                assert_eq!(id, node, "round {round}");
            }
        }
        let distinct: HashSet<_> = ids.values().collect();
        assert_eq!(distinct.len(), ids.len());
        assert_eq!(first_sights, (1 << 15) - 2);
        assert_eq!(node(0), Some(Node { caller: 0, code: CodeId::NONE, lasti: -1 }));
    }

    #[test]
    fn what_cannot_be_stored_stays_lost() {
        let mut tree = Tree { hot: vec![Hot::NO_CHILD], slots: vec![Slot::default(); 4], codes: Tree::new().codes };
        let lost = tree.child(0, 8, |_| None);
        assert_eq!(lost, LOST);
        assert_eq!(tree.child(lost, 8, |_| Some((CodeId(1), 0))), LOST);
    }

    #[test]
    fn code_keys_are_exact() {
        let keys =
            [(0, -1), (0, 0), (1, -1), (0, i32::MAX - 1), (u32::MAX - 1, 0)].map(|(c, l)| code_key(CodeId(c), l));
        let distinct: HashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert!(keys.iter().all(|key| key & CODE_KEY != 0));
    }
}
