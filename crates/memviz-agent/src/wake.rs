//! Wakes the thread that writes a streamed recording: something is worth writing before its time is up.
//!
//! Callable in hooks and in signal handlers: one atomic, and a system call when the writer sleeps.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::linux;

static DUE: AtomicU32 = AtomicU32::new(0);

/// Ends the writer's sleep, or its next one.
#[inline]
pub fn wake() {
    if DUE.swap(1, Ordering::Release) == 0 {
        linux::futex_wake_one(&DUE);
    }
}

/// Sleeps until woken, for `limit` at most.
pub fn sleep(limit: Duration) {
    if DUE.swap(0, Ordering::Acquire) == 0 {
        linux::futex_wait_for(&DUE, 0, limit);
        DUE.store(0, Ordering::Relaxed);
    }
}
