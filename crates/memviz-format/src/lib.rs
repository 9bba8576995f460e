//! Files of mlx-memviz: bytes in, bytes out.
//!
//! [`trace_file`] is our own format: written while a program runs, readable whatever ends it. [`torch`] writes what PyTorch's
//! memory_viz page and `torch.cuda._memory_viz` read, and reads it back without running code. The other modules write only:
//! [`table`] (Parquet, CSV, JSON), [`perfetto`], and what shows a [`Profile`]. Needs a [`memviz_trace::Trace`]; does not
//! analyse, does not record.
//!
//! ```
//! use memviz_format::torch::{self, Limits};
//! use memviz_trace::{Action, Event, TraceBuilder};
//!
//! let mut builder = TraceBuilder::default();
//! builder.push(Event { action: Action::AllocNew, addr: 0x1000, size: 64, ..Event::default() });
//! let trace = builder.finish();
//! let mut file = Vec::new();
//! torch::write(&trace, &mut file)?;
//! assert_eq!(torch::read(&file, &Limits::default())?, trace);
//! # Ok::<(), memviz_format::FormatError>(())
//! ```

#[cfg(feature = "exports")]
pub mod chart;
#[cfg(feature = "exports")]
pub mod collapsed;
mod error;
#[cfg(feature = "exports")]
pub mod flamegraph;
mod open;
mod packed;
#[cfg(feature = "exports")]
pub mod perfetto;
#[cfg(feature = "exports")]
pub mod pprof;
#[cfg(feature = "exports")]
mod profile;
#[cfg(feature = "exports")]
pub mod speedscope;
#[cfg(feature = "exports")]
pub mod table;
pub mod torch;
pub mod trace_file;

pub use error::FormatError;
pub use open::{read_path, write_path, write_whole};
#[cfg(feature = "exports")]
pub use profile::{Measure, Profile, StackSum};
#[cfg(feature = "exports")]
pub use table::{Lined, Table};
