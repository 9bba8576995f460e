//! The native module `mlx_memviz._native`: thin classes and functions over the other crates.
//!
//! The Python package wraps every name here; nothing in this crate decides anything. Errors are mapped in `errors`.

use pyo3::prelude::*;

mod bench;
mod command;
mod errors;
mod events;
mod graph;
mod oom;
mod outlet;
mod recording;
mod reports;
mod self_test;
mod stream;
mod trace;
mod viewer;
mod views;

#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::bench::{BenchAllocators, BenchReplay, bench_allocator, bench_nothing, bench_public_capture};
    #[pymodule_export]
    use super::command::command;
    #[pymodule_export]
    use super::errors::{AttachError, MemvizError, TraceError};
    #[pymodule_export]
    use super::events::trace_from_events;
    #[pymodule_export]
    use super::graph::read_graph;
    #[pymodule_export]
    use super::oom::set_oom_callback;
    #[pymodule_export]
    use super::recording::{
        Stopped, annotate_begin, annotate_end, checkpoint, flush_stream, hooked_slots, is_recording, layout, probe,
        snapshot_marker, start, stats, step, stop, stop_stream, stream_to, take_failures, trace,
    };
    #[pymodule_export]
    use super::reports::{ask, load};
    #[pymodule_export]
    use super::self_test::{
        SelfTest, capture, init_frames, matches_public_walk, set_active_threads, shut_down, use_public_walk, walker,
    };
    #[pymodule_export]
    use super::trace::Trace;
    #[pymodule_export]
    use super::viewer::{Viewer, serve, write_html};
    #[pymodule_export]
    use super::views::{bytes_from_text, lines_at, text_from_bytes, timeline_of};

    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    /// Source of the frame walker's self-test; it expects a function `probe`.
    #[pymodule_export]
    const FRAMES_SELF_TEST: &str = memviz_pyframes::SELF_TEST_SOURCE;
}
