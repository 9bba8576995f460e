//! Files of mlx-memviz: bytes in, bytes out.
//!
//! [`torch`] writes what PyTorch's memory_viz page and `torch.cuda._memory_viz` read, and reads it back without running
//! code. Needs a [`memviz_trace::Trace`]; does not open files, does not analyse, does not record.

mod error;
#[allow(dead_code, reason = "the reader needs the rest")]
mod packed;
pub mod torch;

pub use error::FormatError;
