//! The current Python stack as one `u32`, exact, in tens of nanoseconds (CPython 3.10 and later, in process).
//!
//! Builds with a GIL whose layout is known are walked frame by frame through the interpreter's own structures;
//! free-threaded, debug and unknown builds through the public C API, 5 to 30 times slower. Which one, start-up
//! decides: [`initialise`] compares the layout with what the interpreter publishes and with the public API on the
//! current stack, and the self-test ([`SELF_TEST_SOURCE`]) does so again on a stack with every kind of frame.
//!
//! The caller provides: one call of [`initialise`] with the GIL, the self-test, and [`shut_down`] from `atexit`.
//! Then any thread may call [`capture`] at any time, inside malloc or in a destructor.
//!
//! Not here: where captures happen (`memviz-agent`) and how stacks are stored in a trace (`memviz-trace`).
//!
//! ```
//! use memviz_pyframes as pyframes;
//! // No interpreter runs in this process, so there is no stack and nothing to walk.
//! assert_eq!(pyframes::capture(), 0);
//! assert!(!pyframes::holds_gil());
//! assert!(pyframes::walker().is_none());
//! ```

mod api;
mod append_only;
mod codes;
#[doc(hidden)]
pub mod cpython;
mod gil;
mod memory;
mod public;
mod raw;
mod resolve;
mod shadow;
mod start;
mod tables;
mod tree;
mod verify;

pub use codes::CodeId;
#[doc(hidden)]
pub use codes::code_address;
pub use gil::holds_gil;
pub use resolve::{Resolver, Site, resolve_site};
pub use start::{InitError, PythonBuild, Walker, capture, initialise, shut_down, use_public_walk, walker};
#[doc(hidden)]
pub use start::{capture_by_public_walk, initialise_with};
pub use tables::memory_bytes;
pub use tree::{Node, node, node_count};
pub use verify::{Mismatch, matches_public_walk};

pub(crate) use start::raw_offsets;

/// Python source of the self-test. Execute it in a namespace whose `probe` is a callable that calls
/// [`matches_public_walk`] and returns whether it was `Ok`; afterwards `matches` there says whether all were, and
/// `probes` how many there were. If not all matched, call [`use_public_walk`].
pub const SELF_TEST_SOURCE: &str = include_str!("self_test.py");
