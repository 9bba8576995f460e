//! The one set of tables of the process, and who may touch it.
//!
//! On GIL builds the GIL is the lock: only its holder captures, and it does not let go of it inside. A lock of our own
//! would cost 5 to 20 ns (measured). On free-threaded builds a mutex takes its place; it is a leaf lock: no Python
//! function that could wait is called under it.
#![expect(unsafe_code, reason = "a static that is guarded by the GIL")]

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::gil::holds_gil;
use crate::shadow::Shadows;
use crate::tree::Tree;

pub(crate) struct Tables {
    pub(crate) tree: Tree,
    pub(crate) shadows: Shadows,
}

struct Guarded(UnsafeCell<Tables>);

// SAFETY: the cell is reached only through `with_gil` and `with_lock`, whose contracts exclude each other's use.
unsafe impl Sync for Guarded {}

static TABLES: Guarded = Guarded(UnsafeCell::new(Tables { tree: Tree::new(), shadows: Shadows::new() }));
static LOCK: Mutex<()> = Mutex::new(());
static IS_FREE_THREADED: AtomicBool = AtomicBool::new(false);
static MEMORY_BYTES: AtomicUsize = AtomicUsize::new(0);

/// # Safety
/// The build has a GIL, this thread holds it, and `use_tables` neither releases it nor comes back here.
#[inline(always)]
pub(crate) unsafe fn with_gil<R>(use_tables: impl FnOnce(&mut Tables) -> R) -> R {
    // SAFETY: the GIL keeps other threads out, and the contract keeps this one from a second reference.
    use_tables(unsafe { &mut *TABLES.0.get() })
}

/// # Safety
/// The build is free-threaded, this thread is attached, and `use_tables` does not come back here.
unsafe fn with_lock<R>(use_tables: impl FnOnce(&mut Tables) -> R) -> R {
    let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: on a free-threaded build nobody reaches the tables but under this lock.
    use_tables(unsafe { &mut *TABLES.0.get() })
}

/// # Safety
/// This thread holds the GIL (free-threaded: is attached) in the main interpreter, and `use_tables` neither releases
/// it nor comes back here.
pub(crate) unsafe fn with_tables<R>(use_tables: impl FnOnce(&mut Tables) -> R) -> R {
    // SAFETY: the contract, and the flag says which kind of build this is.
    unsafe { if IS_FREE_THREADED.load(Ordering::Relaxed) { with_lock(use_tables) } else { with_gil(use_tables) } }
}

/// Says which of the two locks guards the tables; once, before anything uses them.
pub(crate) fn set_free_threaded(is_free_threaded: bool) {
    if is_free_threaded && !IS_FREE_THREADED.swap(true, Ordering::AcqRel) {
        // SAFETY: the handlers live as long as this library, which is never unloaded.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
    }
}

/// The lock while its process forks: a child in which another thread held it would wait for ever.
struct HeldForFork(UnsafeCell<Option<MutexGuard<'static, ()>>>);

// SAFETY: only a forking thread touches the cell, while it holds the lock whose guard is inside.
unsafe impl Sync for HeldForFork {}

static HELD_FOR_FORK: HeldForFork = HeldForFork(UnsafeCell::new(None));

extern "C" fn before_fork() {
    let guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: this thread holds the lock, so no other forking thread is here.
    unsafe { *HELD_FOR_FORK.0.get() = Some(guard) };
}

extern "C" fn after_fork() {
    // SAFETY: runs on the thread of `before_fork` (in the child: on its copy), which still holds the lock.
    drop(unsafe { (*HELD_FOR_FORK.0.get()).take() });
}

/// Bytes held by the tables of this crate; on a thread without the GIL, as of the last time it was asked with it.
pub fn memory_bytes() -> usize {
    if holds_gil() {
        // SAFETY: the GIL is held, and adding up capacities calls nothing.
        let bytes = unsafe { with_tables(|tables| tables.tree.memory_bytes() + tables.shadows.memory_bytes()) };
        MEMORY_BYTES.store(bytes, Ordering::Relaxed);
    }
    MEMORY_BYTES.load(Ordering::Relaxed)
}
