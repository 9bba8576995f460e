//! Hooks inside the MLX process and the recorder they feed.
//!
//! Attaches to the libmlx that a process has loaded: replaces pointers through which MLX calls its own functions, never
//! code. [`session::probe`] looks, [`self_test::SelfTest`] proves, [`session::start`] installs all or nothing and
//! [`session::stop`] restores all. What the hooks see goes through the [`recorder`] into a ring, and [`dump`] makes a
//! [`memviz_trace::Trace`] of it.
//!
//! Needs: the GIL where a function says so. Leaves to others: Python objects (`memviz-py`), answers (`memviz-analyze`).
//!
//! ```
//! // No MLX here, so attaching is refused and nothing is patched.
//! let refused = memviz_agent::session::probe("0.32.4").unwrap_err();
//! assert_eq!(refused.to_string(), "mlx is not loaded in this process; import mlx.core first");
//! ```

pub mod bench;
pub mod crash;
mod driver;
pub mod dump;
pub mod error;
pub mod fork;
mod gap;
pub mod graph;
mod hooks;
pub mod linux;
mod lock;
pub mod mlx;
mod names;
mod native;
mod objects;
pub mod oom;
pub mod options;
mod originals;
pub mod places;
pub mod plan;
pub mod probe;
pub mod python;
mod queue;
pub mod recorder;
mod ring;
pub mod self_test;
pub mod session;
mod stamp;
mod state;
mod store;
pub mod stream;
mod table;
mod vtables;
pub mod wake;
mod whats;
