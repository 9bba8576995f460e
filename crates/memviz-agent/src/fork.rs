//! fork: the child is detached, the parent goes on.
//!
//! The locks are taken before the fork, so that no other thread holds one in the copy, and given back in both processes.
//! The child then restores every pointer: it has one thread, and no hook is running.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{crash, linux, session, state, vtables};

static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Is this process a fork of one that was recording?
pub fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Registers the handlers, once.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| linux::at_fork(before, in_parent, in_child));
}

extern "C" fn before() {
    session::raw_lock();
    vtables::raw_lock();
    state::lock_all();
}

extern "C" fn in_parent() {
    state::unlock_all();
    vtables::raw_unlock();
    session::raw_unlock();
}

extern "C" fn in_child() {
    in_parent();
    if crash::is_watching() {
        crash::uninstall();
    }
    if session::detach() {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
}
