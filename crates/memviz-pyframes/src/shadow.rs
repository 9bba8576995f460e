//! The last stack of each thread, so that a capture costs a lookup only for the frames that changed.
//!
//! Entries go from the root outwards: frame address, key, and the tree node of the keys up to there. A walk starts at
//! the innermost frame, guesses its depth from a hint table (addresses on the data stack repeat), and goes down to the
//! root comparing each frame with its entry.
//!
//! A shadow may be stale, or belong to a thread that is gone and whose thread state's address was reused: nothing in
//! it is believed. An entry's frame address is dereferenced only after it was found equal to a pointer read from the
//! live chain, which makes it the address of a live frame; its key is then read from that frame; and an entry's node
//! is used only if its key and all keys below it were found unchanged. So `nodes[i]` is always the node of
//! `keys[0..=i]`, a fact about the tree and not about any thread.
//!
//! No depth limit: the arrays grow with the stack.
#![expect(unsafe_code, reason = "dereferences frame addresses")]

use crate::api::Address;
use crate::cpython::FrameLayout;
use crate::raw::{describe_live, key, launder, previous};
use crate::tree::{LOST, Tree};

/// Threads remembered at a time; beyond it they take turns.
const MAX_SHADOWS: usize = 64;
const HINTS: usize = 1024;

#[derive(Clone, Copy)]
struct Entry {
    frame: Address,
    key: u64,
}

/// One thread's last stack.
pub(crate) struct Shadow {
    entries: Vec<Entry>,
    /// As long as `entries`: the node of the keys up to there.
    nodes: Vec<u32>,
    /// How many entries are valid. The vectors only grow, so that the loops have slices to fill and no checks.
    len: usize,
    /// Hash of a frame's address to its depth when last seen.
    hints: Box<[u32; HINTS]>,
    /// Frames of the capture in progress that are not in `entries`, innermost first.
    pending: Vec<Address>,
}

/// Where the live chain, followed from a frame, left the shadow.
struct Verified {
    /// Entries from this index up to the first frame's were found alive.
    from: usize,
    /// Lowest index whose key changed; one above the first frame's if none did.
    lowest_changed: usize,
    /// The live chain goes on here; 0 at its end.
    next: Address,
}

impl Shadow {
    fn new() -> Shadow {
        Shadow { entries: Vec::new(), nodes: Vec::new(), len: 0, hints: Box::new([0; HINTS]), pending: Vec::new() }
    }

    /// The node of the stack whose innermost frame is `innermost`.
    ///
    /// # Safety
    /// The GIL is held and `innermost` heads this thread's chain of live frames, in layout `L`.
    #[inline(always)]
    pub(crate) unsafe fn walk<L: FrameLayout>(&mut self, tree: &mut Tree, innermost: Address) -> u32 {
        self.pending.clear();
        let mut frame = innermost;
        let (mut known, mut lowest_changed) = (0, 0);
        while frame != 0 {
            let depth = self.hints[hint(frame)] as usize;
            // SAFETY: `frame` is in the live chain: it is its head, or was read from a live frame's `previous`.
            let verified = unsafe { self.verify::<L>(tree, frame, depth) };
            if verified.from == 0 && verified.next == 0 {
                (known, lowest_changed) = (depth + 1, verified.lowest_changed);
                break;
            }
            if verified.from > depth {
                self.pending.push(frame);
                // SAFETY: as above.
                frame = unsafe { previous::<L>(frame) };
            } else {
                // Alive, but under other callers than last time.
                self.pending.extend(self.entries[verified.from..=depth].iter().rev().map(|entry| entry.frame));
                frame = verified.next;
            }
        }
        // SAFETY: the pending frames and the lowest `known` entries are alive: the walk has just met each of them.
        let node = unsafe { self.update::<L>(tree, known, lowest_changed) };
        if node == LOST { 0 } else { node }
    }

    /// Follows the live chain from `frame` and the entries from `depth` down, while they agree.
    ///
    /// # Safety
    /// As for [`Shadow::walk`], with `frame` anywhere in the chain.
    #[inline(always)]
    unsafe fn verify<L: FrameLayout>(&self, tree: &mut Tree, frame: Address, depth: usize) -> Verified {
        let mut verified = Verified { from: depth + 1, lowest_changed: depth + 1, next: frame };
        let Some(entries) = self.entries.get(..=depth).filter(|_| depth < self.len) else { return verified };
        for (i, entry) in entries.iter().enumerate().rev() {
            // Before the comparison: behind it the compiler takes both for one and loads through the live pointer.
            let predicted = launder(entry.frame);
            if entry.frame != verified.next {
                return verified;
            }
            // SAFETY: `predicted` equals `next`, which is `frame` or was read from a live frame and is not 0, since no
            // entry's frame is.
            unsafe {
                if key::<L>(predicted, &mut tree.codes) != entry.key {
                    verified.lowest_changed = i;
                }
                verified.next = previous::<L>(predicted);
            }
            verified.from = i;
        }
        verified
    }

    /// Brings entries and nodes up to date: the lowest `known` entries are the live ones, with keys changed from
    /// `lowest_changed` up, and the pending frames follow. Returns the innermost node.
    ///
    /// # Safety
    /// As for [`Shadow::walk`]; the known and the pending frames are alive.
    #[inline(always)]
    unsafe fn update<L: FrameLayout>(&mut self, tree: &mut Tree, known: usize, lowest_changed: usize) -> u32 {
        // The nodes above a change depend on it, also those beyond `known`.
        if lowest_changed < known || !self.pending.is_empty() {
            self.len = known;
        }
        let mut node = match lowest_changed.min(known) {
            0 => 0,
            unchanged => self.nodes[unchanged - 1],
        };
        let changed = lowest_changed.min(known)..known;
        for (entry, memo) in self.entries[changed.clone()].iter_mut().zip(&mut self.nodes[changed]) {
            // SAFETY: a known frame, alive by contract.
            entry.key = unsafe { key::<L>(entry.frame, &mut tree.codes) };
            // SAFETY: as above.
            node = tree.child(node, entry.key, |codes| unsafe { describe_live::<L>(entry.frame, codes) });
            *memo = node;
        }
        if self.pending.is_empty() {
            return node;
        }
        self.make_room(known + self.pending.len());
        let room = self.entries[known..].iter_mut().zip(&mut self.nodes[known..]);
        for ((entry, memo), &frame) in room.zip(self.pending.iter().rev()) {
            // SAFETY: a pending frame, alive by contract.
            let key = unsafe { key::<L>(frame, &mut tree.codes) };
            // SAFETY: as above.
            node = tree.child(node, key, |codes| unsafe { describe_live::<L>(frame, codes) });
            (*entry, *memo) = (Entry { frame, key }, node);
            self.hints[hint(frame)] = self.len as u32;
            self.len += 1;
        }
        node
    }

    #[inline(always)]
    fn make_room(&mut self, len: usize) {
        if self.entries.len() < len {
            self.grow(len);
        }
    }

    #[cold]
    fn grow(&mut self, len: usize) {
        let len = len.next_power_of_two().max(64);
        self.entries.resize(len, Entry { frame: 0, key: 0 });
        self.nodes.resize(len, 0);
    }

    fn memory_bytes(&self) -> usize {
        let arrays = self.entries.capacity() * size_of::<Entry>() + self.nodes.capacity() * size_of::<u32>();
        arrays + self.pending.capacity() * size_of::<Address>() + HINTS * size_of::<u32>()
    }
}

#[inline(always)]
fn hint(frame: Address) -> usize {
    // Frames are 8-aligned; ten bits of a multiplicative hash.
    ((frame >> 3) as u32).wrapping_mul(0x9E37_79B1) as usize >> 22
}

/// The shadows, by address of the thread state: no thread-local and no destructor are needed.
pub(crate) struct Shadows {
    current_tstate: Address,
    current: usize,
    all: Vec<(Address, Shadow)>,
    next_to_reuse: usize,
}

impl Shadows {
    pub(crate) const fn new() -> Shadows {
        Shadows { current_tstate: 0, current: 0, all: Vec::new(), next_to_reuse: 0 }
    }

    /// The shadow of a thread state (not 0).
    #[inline(always)]
    pub(crate) fn of(&mut self, tstate: Address) -> &mut Shadow {
        if self.current_tstate != tstate {
            self.switch_to(tstate);
        }
        &mut self.all[self.current].1
    }

    #[cold]
    fn switch_to(&mut self, tstate: Address) {
        self.current = match self.all.iter().position(|(owner, _)| *owner == tstate) {
            Some(known) => known,
            None if self.all.len() < MAX_SHADOWS => {
                self.all.push((tstate, Shadow::new()));
                self.all.len() - 1
            }
            None => {
                self.next_to_reuse = (self.next_to_reuse + 1) % MAX_SHADOWS;
                self.all[self.next_to_reuse].0 = tstate;
                self.next_to_reuse
            }
        };
        self.current_tstate = tstate;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.all.iter().map(|(_, shadow)| size_of::<(Address, Shadow)>() + shadow.memory_bytes()).sum()
    }
}
