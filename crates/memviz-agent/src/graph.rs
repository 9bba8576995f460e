//! The operations that MLX would run to make some arrays, read off their descriptors without evaluating anything.
//!
//! An operation waits when its outputs are not scheduled; MLX's own `eval` walks the same way (`mlx/transforms.cpp`,
//! `eval_impl`). Descriptors are copied through the kernel and every pointer in them is checked, so a release that looks
//! unlike its table gives an error and not a crash. Nothing is kept alive, written or evaluated.
//!
//! Needs: arrays that the caller keeps alive, the GIL, and no thread that evaluates these very arrays meanwhile (MLX's
//! `export_to_dot` needs the same). Leaves to others: Python objects (`memviz-py`), text of stacks (`dump`).
#![expect(unsafe_code, reason = "asks live primitives for their names")]

use memviz_image::ReadMemory;
use memviz_trace::StackId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::hooks::array::stack_of_stamp;
use crate::linux::{self, Image, OwnMemory};
use crate::mlx::primitive::SLOT_NAME;
use crate::mlx::{self, Layout, Sharing};
use crate::whats::MAX_AXES;
use crate::{objects, state};

/// Bytes of a `std::vector<array>` beyond which a descriptor is not believed: four million arrays.
const MAX_VECTOR_BYTES: u64 = 1 << 26;
/// `ArrayDesc` follows the counters of its `shared_ptr` (libstdc++'s `make_shared`).
const CONTROL_BLOCK_BYTES: u64 = 16;

/// The graph could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the graph: {what}")]
pub struct GraphError {
    /// Which part looks unlike the release's table.
    pub what: String,
}

fn unlike<T>(what: impl Into<String>) -> Result<T, GraphError> {
    Err(GraphError { what: what.into() })
}

/// An array: what MLX will make, or what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Elements along each axis.
    pub axes: Vec<i32>,
    /// MLX's name; "?" for a code that this release should not have.
    pub dtype: &'static str,
    /// Elements times the size of one.
    pub bytes: u64,
}

/// Where an operation takes an input from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An output of another operation that waits: its node, and which of its outputs.
    Node(u32, u32),
    /// An array that needs no operation: its place in [`Graph::leaves`].
    Leaf(u32),
}

/// An operation that waits.
#[derive(Clone, Debug)]
pub struct Node {
    /// As MLX names it.
    pub primitive: String,
    /// What it will make; one but for primitives such as `DivMod` and `Compiled`.
    pub outputs: Vec<Shape>,
    /// What it takes.
    pub inputs: Vec<Source>,
    /// Bytes that its outputs need when no buffer is reused; 0 where they share their input's.
    pub bytes: u64,
    /// The stack that built it; `None` when no recording ran then, or none runs now.
    pub built: Option<StackId>,
}

/// What a leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// It has a buffer. Its evaluation may still be running: MLX allocates when it starts one.
    InMemory,
    /// Neither data nor an operation: an argument of a function that is being traced.
    Placeholder,
}

/// An array that needs no operation.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// What it is.
    pub kind: LeafKind,
    /// Its shape.
    pub shape: Shape,
    /// The stack that built it, as in [`Node`].
    pub built: Option<StackId>,
    is_row_contiguous: bool,
}

/// What waits, inputs before the operations that take them, and what is there.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Operations.
    pub nodes: Vec<Node>,
    /// Arrays at their edges.
    pub leaves: Vec<Leaf>,
    /// The arrays that were asked for, in order.
    pub roots: Vec<Source>,
}

/// Descriptor inside a Python object of nanobind's: after the object's head of `head_bytes` the distance to the C++ value
/// (an i32), which is the array itself or a pointer to it. `None` when neither place holds an array.
pub fn desc_of_object(layout: &Layout, object: u64, head_bytes: u64) -> Option<u64> {
    let distance = i64::from(linux::read_u64(object + head_bytes)? as i32);
    let value = object.checked_add_signed(distance)?;
    let places = [Some(value), linux::read_u64(value)];
    let descs = places.into_iter().flatten().filter_map(|place| {
        let (desc, control) = (linux::read_u64(place)?, linux::read_u64(place + 8)?);
        (control.checked_add(CONTROL_BLOCK_BYTES) == Some(desc)).then_some(desc)
    });
    descs.into_iter().find(|&desc| Desc::read(layout, desc).is_ok())
}

/// Shape of a descriptor: for the caller to compare with what Python says.
///
/// # Errors
/// The descriptor looks unlike the table.
pub fn shape_of(layout: &Layout, desc: u64) -> Result<Shape, GraphError> {
    Desc::read(layout, desc)?.shape()
}

/// A copy of a descriptor.
struct Desc {
    layout: mlx::DescLayout,
    /// As aligned as the original, for the stamp in it.
    words: Vec<u64>,
}

impl Desc {
    fn read(layout: &Layout, addr: u64) -> Result<Desc, GraphError> {
        let layout = layout.desc;
        let mut bytes = vec![0; layout.size];
        if OwnMemory.read(addr, &mut bytes).is_err() {
            return unlike(format!("no descriptor at {addr:#x}"));
        }
        let words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes)).collect();
        let desc = Desc { layout, words };
        if desc.status() > 2 {
            return unlike(format!("status is {}, expected 0 to 2", desc.status()));
        }
        Ok(desc)
    }

    fn word(&self, offset: usize) -> u64 {
        self.words[offset / 8]
    }

    fn status(&self) -> u32 {
        self.word(self.layout.status) as u32
    }

    fn primitive(&self) -> u64 {
        self.word(self.layout.primitive)
    }

    fn waits(&self) -> bool {
        self.status() == 0 && self.primitive() != 0
    }

    fn is_row_contiguous(&self) -> bool {
        self.word(self.layout.flags) & 0b10 != 0
    }

    fn shape(&self) -> Result<Shape, GraphError> {
        let (begin, end) = (self.word(self.layout.shape + 8), self.word(self.layout.shape + 16));
        let len = end.wrapping_sub(begin);
        if len % 4 != 0 || len / 4 > MAX_AXES as u64 {
            return unlike(format!("a shape of {len} bytes, expected up to {MAX_AXES} axes"));
        }
        let mut bytes = vec![0; len as usize];
        if OwnMemory.read(begin, &mut bytes).is_err() {
            return unlike("a shape cannot be read");
        }
        let axes: Vec<i32> = bytes.chunks_exact(4).map(|axis| axis.try_into().map_or(0, i32::from_ne_bytes)).collect();
        let dtype = self.word(self.layout.dtype);
        let item_bytes = (dtype >> 32) & 0xff;
        let elements = axes.iter().fold(1_u64, |product, &axis| product.saturating_mul(axis.max(0) as u64));
        let name = mlx::DTYPES.get(dtype as u32 as usize).copied().unwrap_or("?");
        Ok(Shape { axes, dtype: name, bytes: elements.saturating_mul(item_bytes) })
    }

    /// Descriptors in the vector at `offset`; each array is its descriptor and the counters before that.
    fn arrays(&self, offset: usize) -> Result<Vec<u64>, GraphError> {
        let (begin, end) = (self.word(offset), self.word(offset + 8));
        let len = end.wrapping_sub(begin);
        if len % 16 != 0 || len > MAX_VECTOR_BYTES {
            return unlike(format!("a list of arrays of {len} bytes"));
        }
        let mut bytes = vec![0; len as usize];
        if len > 0 && OwnMemory.read(begin, &mut bytes).is_err() {
            return unlike("a list of arrays cannot be read");
        }
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
        let arrays = bytes.chunks_exact(16).map(|array| (word(&array[..8]), word(&array[8..])));
        let descs = arrays.map(|(desc, control)| match control.checked_add(CONTROL_BLOCK_BYTES) {
            Some(expected) if expected == desc => Ok(desc),
            _ => unlike("an input is no array"),
        });
        descs.collect()
    }

    fn built(&self, is_recording: bool) -> Option<StackId> {
        let addr = self.words.as_ptr() as usize;
        // SAFETY: a copy of a whole descriptor, alive during the call.
        let stamp = unsafe { crate::stamp::read(addr, &self.layout) }.filter(|_| is_recording)?;
        state::recorder().as_ref().map(|recorder| stack_of_stamp(recorder, Some(stamp)))
    }
}

/// An operation whose inputs are being visited.
struct Open {
    entry: u32,
    inputs: Vec<u64>,
    next: usize,
}

struct Walk<'a> {
    layout: &'a Layout,
    is_recording: bool,
    images: Vec<Image>,
    /// Vtables whose `name` is code of a loaded library.
    vtables: FxHashSet<u64>,
    /// By descriptor; nodes are numbered as they are met.
    known: FxHashMap<u64, Source>,
    met: Vec<Option<Node>>,
    finished: Vec<u32>,
    leaves: Vec<Leaf>,
}

/// Reads what waits for `descs`.
///
/// # Errors
/// A descriptor looks unlike the table.
///
/// # Safety
/// `descs` are descriptors of live arrays, the caller holds the GIL, and no thread evaluates these arrays during the call.
pub unsafe fn read(layout: &Layout, descs: &[u64]) -> Result<Graph, GraphError> {
    let mut walk = Walk {
        layout,
        is_recording: state::is_on(),
        images: linux::images(),
        vtables: FxHashSet::default(),
        known: FxHashMap::default(),
        met: Vec::new(),
        finished: Vec::new(),
        leaves: Vec::new(),
    };
    for &desc in descs {
        // SAFETY: by contract.
        unsafe { walk.visit(desc) }?;
    }
    walk.finish(descs)
}

impl Walk<'_> {
    /// Depth first, without recursion: a graph may be hundreds of thousands of operations deep.
    ///
    /// # Safety
    /// As `read`.
    unsafe fn visit(&mut self, root: u64) -> Result<(), GraphError> {
        // SAFETY: by contract, here and below: an input of a live array is a live array.
        let mut open: Vec<Open> = unsafe { self.meet(root) }?.into_iter().collect();
        while let Some(top) = open.last_mut() {
            let Some(&input) = top.inputs.get(top.next) else {
                self.close(open.pop());
                continue;
            };
            top.next += 1;
            // SAFETY: as above.
            open.extend(unsafe { self.meet(input) }?);
        }
        Ok(())
    }

    /// Enters an array; an operation that is new is to be visited.
    ///
    /// # Safety
    /// As `read`.
    unsafe fn meet(&mut self, addr: u64) -> Result<Option<Open>, GraphError> {
        if self.known.contains_key(&addr) {
            return Ok(None);
        }
        let desc = Desc::read(self.layout, addr)?;
        if !desc.waits() {
            let leaf = self.leaf(&desc)?;
            self.known.insert(addr, Source::Leaf(self.leaves.len() as u32));
            self.leaves.push(leaf);
            return Ok(None);
        }
        let entry = self.met.len() as u32;
        let inputs = desc.arrays(self.layout.desc.inputs)?;
        let outputs = self.outputs(addr, &desc, entry)?;
        // SAFETY: by contract.
        let primitive = unsafe { self.name(desc.primitive()) }?;
        let built = desc.built(self.is_recording);
        self.met.push(Some(Node { primitive, outputs, inputs: Vec::new(), bytes: 0, built }));
        Ok(Some(Open { entry, inputs, next: 0 }))
    }

    fn leaf(&self, desc: &Desc) -> Result<Leaf, GraphError> {
        let kind = if desc.status() == 0 { LeafKind::Placeholder } else { LeafKind::InMemory };
        let (built, is_row_contiguous) = (desc.built(self.is_recording), desc.is_row_contiguous());
        Ok(Leaf { kind, shape: desc.shape()?, built, is_row_contiguous })
    }

    /// All outputs of the operation that makes `addr`, in order, entered as known. MLX lists the others as siblings; which
    /// place is the array's own does not matter to a reader, so it comes first.
    fn outputs(&mut self, addr: u64, desc: &Desc, entry: u32) -> Result<Vec<Shape>, GraphError> {
        let mut shapes = vec![desc.shape()?];
        self.known.insert(addr, Source::Node(entry, 0));
        for (position, sibling) in desc.arrays(self.layout.desc.siblings)?.into_iter().enumerate() {
            shapes.push(Desc::read(self.layout, sibling)?.shape()?);
            self.known.insert(sibling, Source::Node(entry, position as u32 + 1));
        }
        Ok(shapes)
    }

    /// # Safety
    /// `primitive` is the primitive of a live array.
    unsafe fn name(&mut self, primitive: u64) -> Result<String, GraphError> {
        let vtable = linux::read_u64(primitive).unwrap_or(0);
        if !self.vtables.contains(&vtable) {
            let name = linux::read_u64(vtable.wrapping_add(8 * SLOT_NAME as u64)).unwrap_or(0);
            if !self.images.iter().any(|image| image.is_code(name)) {
                return unlike(format!("a primitive's name leads to {name:#x}, which is no code"));
            }
            self.vtables.insert(vtable);
        }
        // SAFETY: alive by contract, and `name` is code. No other thread builds the name: the GIL is held.
        Ok(unsafe { objects::name_of(primitive as usize) }.to_string_lossy().into_owned())
    }

    fn close(&mut self, open: Option<Open>) {
        let Some(Open { entry, inputs, .. }) = open else { return };
        let sources = inputs.iter().filter_map(|input| self.known.get(input).copied()).collect();
        if let Some(Some(node)) = self.met.get_mut(entry as usize) {
            node.inputs = sources;
        }
        self.finished.push(entry);
    }

    /// Numbers the operations in the order in which they were finished: inputs first.
    fn finish(mut self, descs: &[u64]) -> Result<Graph, GraphError> {
        let mut number = vec![0_u32; self.met.len()];
        for (at, &entry) in self.finished.iter().enumerate() {
            number[entry as usize] = at as u32;
        }
        let renumber = |source: Source| match source {
            Source::Node(entry, output) => Source::Node(number[entry as usize], output),
            leaf @ Source::Leaf(_) => leaf,
        };
        let mut nodes: Vec<Node> = Vec::with_capacity(self.finished.len());
        for entry in self.finished {
            if let Some(mut node) = self.met[entry as usize].take() {
                node.inputs = node.inputs.into_iter().map(renumber).collect();
                nodes.push(node);
            }
        }
        set_bytes(&mut nodes, &self.leaves);
        let roots = descs.iter().filter_map(|desc| self.known.get(desc).copied()).map(renumber).collect();
        Ok(Graph { nodes, leaves: self.leaves, roots })
    }
}

/// Bytes of every node, in order: whether a reshape copies depends on how its input lies in memory.
fn set_bytes(nodes: &mut [Node], leaves: &[Leaf]) {
    let mut is_row_contiguous: Vec<bool> = Vec::with_capacity(nodes.len());
    for node in nodes.iter_mut() {
        let input = node.inputs.first().is_some_and(|source| match *source {
            Source::Node(at, _) => is_row_contiguous[at as usize],
            Source::Leaf(at) => leaves[at as usize].is_row_contiguous,
        });
        let sharing = mlx::sharing(&node.primitive);
        let shares = match sharing {
            Sharing::Never => false,
            Sharing::Always { .. } => true,
            Sharing::WhenRowContiguous => input,
        };
        if !shares {
            node.bytes = node.outputs.iter().map(|output| output.bytes).sum();
        }
        is_row_contiguous.push(match sharing {
            Sharing::Always { keeps_order } => keeps_order && input,
            Sharing::Never | Sharing::WhenRowContiguous => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(primitive: &str, inputs: Vec<Source>) -> Node {
        let outputs = vec![Shape { axes: vec![4], dtype: "float32", bytes: 16 }];
        Node { primitive: primitive.to_owned(), outputs, inputs, bytes: 0, built: None }
    }

    #[test]
    fn a_reshape_copies_only_what_does_not_lie_in_order() {
        let shape = Shape { axes: vec![4], dtype: "float32", bytes: 16 };
        let leaf =
            |is_row_contiguous| Leaf { kind: LeafKind::InMemory, shape: shape.clone(), built: None, is_row_contiguous };
        let mut nodes = [
            node("Reshape", vec![Source::Leaf(0)]),
            node("Reshape", vec![Source::Leaf(1)]),
            node("Add", vec![Source::Leaf(1), Source::Leaf(1)]),
            node("Squeeze", vec![Source::Node(2, 0)]),
            node("Reshape", vec![Source::Node(3, 0)]),
            node("Transpose", vec![Source::Node(4, 0)]),
            node("Reshape", vec![Source::Node(5, 0)]),
        ];
        set_bytes(&mut nodes, &[leaf(true), leaf(false)]);
        assert_eq!(nodes.map(|node| node.bytes), [0, 16, 16, 0, 0, 0, 16]);
    }

    #[test]
    fn memory_that_is_no_array_is_an_error() {
        let layout = mlx::layout("0.32.4").unwrap();
        assert!(shape_of(&layout, 8).is_err());
        assert_eq!(desc_of_object(&layout, 8, 16), None);
        let noise = [u64::MAX; 64];
        assert!(shape_of(&layout, noise.as_ptr() as u64).is_err());
        assert_eq!(desc_of_object(&layout, noise.as_ptr() as u64, 16), None);
    }
}
