//! Stacks as a calling-context tree: a stack is its innermost node, and a node knows its caller.

use rustc_hash::FxHashMap;

use crate::ids::{FrameId, StackId, StringId};

/// One line of a stack. Line and column count from 1; 0 means "not known".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Path as Python or the symboliser says it.
    pub file: StringId,
    /// Qualified name of the function.
    pub function: StringId,
    /// Line number, from 1.
    pub line: u32,
    /// Column in UTF-8 bytes, from 1 (Python 3.11 and later).
    pub column: u32,
    /// A frame of machine code, below the Python frames that called it.
    pub is_native: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Node {
    caller: StackId,
    frame: FrameId,
}

/// Every distinct stack of a trace. Two stacks have the same id if and only if they have the same frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackTable {
    nodes: Vec<Node>,
    frames: Vec<Frame>,
    node_ids: FxHashMap<Node, StackId>,
    frame_ids: FxHashMap<Frame, FrameId>,
}

impl Default for StackTable {
    fn default() -> Self {
        // Node 0 is the empty stack; its frame is never read.
        let root = Node { caller: StackId(0), frame: FrameId(0) };
        StackTable {
            nodes: vec![root],
            frames: Vec::new(),
            node_ids: FxHashMap::default(),
            frame_ids: FxHashMap::default(),
        }
    }
}

impl StackTable {
    /// The id of a frame, new or old.
    pub fn intern_frame(&mut self, frame: Frame) -> FrameId {
        let next = FrameId(self.frames.len() as u32);
        let id = *self.frame_ids.entry(frame).or_insert(next);
        if id == next {
            self.frames.push(frame);
        }
        id
    }

    /// The stack that `caller` becomes when it calls into `frame`.
    pub fn push(&mut self, caller: StackId, frame: FrameId) -> StackId {
        let node = Node { caller, frame };
        let next = StackId(self.nodes.len() as u32);
        let id = *self.node_ids.entry(node).or_insert(next);
        if id == next {
            self.nodes.push(node);
        }
        id
    }

    /// Frames of a stack, innermost first.
    pub fn innermost_first(&self, stack: StackId) -> impl Iterator<Item = FrameId> + '_ {
        let mut at = stack;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at.index()).filter(|_| at != StackId(0))?;
            at = node.caller;
            Some(node.frame)
        })
    }

    /// A frame by id.
    pub fn frame(&self, id: FrameId) -> Frame {
        self.frames[id.index()]
    }

    /// Caller of the innermost frame: the stack without it. The empty stack is its own caller.
    pub fn caller(&self, stack: StackId) -> StackId {
        self.nodes[stack.index()].caller
    }

    /// Innermost frame, or `None` for the empty stack.
    pub fn innermost(&self, stack: StackId) -> Option<FrameId> {
        (stack != StackId(0)).then(|| self.nodes[stack.index()].frame)
    }

    /// Number of distinct frames.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Number of distinct stacks, the empty one included: every `StackId` is below it.
    pub fn stack_count(&self) -> usize {
        self.nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_frames_same_id_and_innermost_first() {
        let mut table = StackTable::default();
        let [a, b] = [1, 2].map(|line| table.intern_frame(Frame { line, ..Frame::default() }));
        let outer = table.push(StackId(0), a);
        let inner = table.push(outer, b);
        assert_eq!(table.push(outer, b), inner);
        assert_ne!(table.push(StackId(0), b), inner);
        assert_eq!(table.innermost_first(inner).collect::<Vec<_>>(), [b, a]);
        assert_eq!(table.innermost_first(StackId(0)).count(), 0);
        assert_eq!(table.caller(inner), outer);
    }
}
