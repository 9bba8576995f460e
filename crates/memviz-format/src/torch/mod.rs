//! PyTorch memory snapshots: the pickle that `torch.cuda.memory._dump_snapshot` writes and that pytorch.org/memory_viz and
//! `torch/cuda/_memory_viz.py` read.
//!
//! [`write()`] makes one of a trace. [`read()`] gives the trace back, and reads those of PyTorch, without running code. What
//! is written where: `formats/torch_snapshot.md`.

mod document;
mod entries;
mod exact;
mod exact_read;
mod extras;
mod foreign;
mod json;
mod machine;
mod opcodes;
mod pickler;
mod reader;
mod scan;
mod segments;
mod shared;
#[cfg(test)]
mod tests;
mod words;
mod writer;

pub use document::Limits;
pub use reader::{read, read_all, read_from};
pub use writer::{WriteReport, write, write_all};

/// Top-level key of what only our own reader needs.
const OWN_KEY: &str = "mlx_memviz";
