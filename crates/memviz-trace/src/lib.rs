//! What a recorded MLX run is: events, buffers, stacks, and the equations they obey.
//!
//! A [`Trace`] is an immutable set of columns. Everything that answers a question (peak, growth, exports) is a function of
//! it; everything that records fills it through [`TraceBuilder`]. [`Trace::check`] proves the equations below, and each
//! test that makes or reads a trace calls it.
//!
//! The equations:
//! - an address is active or cached, never both, never twice; a free follows its allocation; `FreeCacheToOS` follows
//!   `FreeActiveToCache`;
//! - after every event `active == Σ size of active buffers`, `cached == Σ size of cached buffers` and
//!   `reserved == active + cached`, where what existed before the first event is carried as a base;
//! - at every checkpoint `active == mx.get_active_memory()` and `cached == mx.get_cache_memory()`;
//! - `recorded + dropped + filtered == seen`, in events and in bytes.
//!
//! Not here: reading or writing files (`memviz-format`), answers (`memviz-analyze`), recording (`memviz-agent`).
//!
//! ```
//! use memviz_trace::{Action, Event, TraceBuilder};
//!
//! let mut builder = TraceBuilder::default();
//! builder.push(Event { action: Action::AllocNew, addr: 0x1000, size: 64, ..Event::default() });
//! builder.push(Event { action: Action::FreeActiveToOs, addr: 0x1000, size: 64, ..Event::default() });
//! let trace = builder.finish();
//! assert_eq!(trace.check().unwrap().peak_active.bytes, 64);
//! ```

mod builder;
mod check;
mod choices;
mod event;
mod hits;
mod ids;
mod ledger;
mod marks;
mod rename;
mod stacks;
mod strings;
mod trace;

pub use builder::TraceBuilder;
pub use check::{CheckReport, Peak, Violation};
pub use choices::{Context, Level};
pub use event::{Action, Device, DeviceKind, Event, NO_STREAM};
pub use hits::Hits;
pub use ids::{FrameId, StackId, StringId, ThreadId, WhatId};
pub use ledger::{Buffer, Ledger, LedgerError, Totals};
pub use marks::MarkCursor;
pub use stacks::{Frame, StackTable};
pub use strings::Strings;
pub use trace::{
    Base, Checkpoint, CheckpointKind, Counts, DeviceMemory, Ending, EndingKind, Header, Mark, MarkKind, Tally, Thread,
    Trace, What,
};
