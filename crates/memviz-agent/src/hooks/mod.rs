//! The functions that MLX calls instead of its own.
//!
//! They run inside the user's process, on any thread, with or without the GIL, possibly during thread exit or after fork.
//! So hooks do not log, panic, take the GIL or run Python code, and on the steady path they do not allocate. Each calls the
//! original exactly once, outside anything that would catch a C++ exception, and adds only its bookkeeping, which is
//! contained: a panic there becomes a counted loss.
//!
//! Every recorded free follows its recorded allocation in the same address's history: both are recorded under the lock
//! that is held across the real call, so the order of events is the order in which MLX's counters changed.

pub mod alloc;
pub mod array;
pub mod cuda;
pub mod eval;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::recorder::Recorder;
use crate::state;

/// Runs bookkeeping so that a panic in it does not reach MLX: it is counted as a loss instead.
#[inline]
fn contained(run: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(run)).is_err()
        && let Some(recorder) = state::recorder().as_mut()
    {
        recorder.lose();
    }
}

/// The same with the recorder at hand, whose lock the caller holds.
#[inline]
fn contained_with(recorder: &mut Recorder, run: impl FnOnce(&mut Recorder)) {
    if catch_unwind(AssertUnwindSafe(|| run(recorder))).is_err() {
        recorder.lose();
    }
}
