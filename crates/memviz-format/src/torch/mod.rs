//! PyTorch memory snapshots: the pickle that `torch.cuda.memory._dump_snapshot` writes and that pytorch.org/memory_viz and
//! `torch/cuda/_memory_viz.py` read.
//!
//! [`write()`] makes one of a trace. What is written where: `formats/torch_snapshot.md`.

mod entries;
mod exact;
mod extras;
#[allow(dead_code, reason = "the reader needs the rest")]
mod opcodes;
mod pickler;
mod scan;
mod segments;
mod shared;
mod words;
mod writer;

pub use writer::{WriteReport, write};

/// Top-level key of what only our own reader needs.
const OWN_KEY: &str = "mlx_memviz";
