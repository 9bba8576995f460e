//! Trace files, `.memviz`: written while the program runs, readable up to the last whole chunk whatever ends it.
//!
//! [`Writer`] takes what a recorder learns, part by part; [`write_all`] writes finished traces; [`read_from`] gives traces
//! back, one for each process in the file. The layout: `formats/memviz.md`.
//!
//! Needs somewhere to write and, from the caller, the decision when bytes must reach the disk (`fsync`). Does not open
//! files, starts no thread, does not judge what it reads: see [`Trace::check`](memviz_trace::Trace::check).
//!
//! ```
//! use memviz_format::torch::Limits;
//! use memviz_format::trace_file::{self, Part, Start, Writer};
//! use memviz_trace::{Action, Ending, EndingKind, Event, Header, Trace};
//!
//! let mut recorded = Trace::default();
//! recorded.events.push(Event { action: Action::AllocNew, addr: 0x1000, size: 64, ..Event::default() });
//! recorded.counts.seen.add(64);
//!
//! let mut writer = Writer::create(Vec::new(), &Header::default(), &Start::default())?;
//! writer.append(&Part::of(&recorded))?;
//! let stopped = Ending { kind: EndingKind::Stopped, ..Ending::default() };
//! let file = writer.finish(&stopped, &[])?;
//!
//! let back = trace_file::read(&file, &Limits::default())?.remove(0);
//! assert_eq!(back.events, recorded.events);
//! assert_eq!(back.check().unwrap().end.active, 64);
//! assert_eq!(back.header.ending, stopped);
//!
//! let killed = trace_file::read(&file[..file.len() - 1], &Limits::default())?.remove(0);
//! assert_eq!((killed.header.ending.kind, killed.events.len()), (EndingKind::Cut, 1));
//! # Ok::<(), memviz_format::FormatError>(())
//! ```

mod columns;
mod encode;
mod events;
mod frame;
mod header;
mod last_words;
mod part;
mod read;
mod section;
mod sums;
mod tables;
mod writer;

pub use frame::MAGIC;
pub use last_words::last_words;
pub use part::{Amendment, Part, Start, StartSums};
pub use read::{read, read_from};
pub use writer::{Writer, write_all};
