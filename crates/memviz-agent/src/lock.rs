//! The recorder's one lock.
//!
//! It is held around MLX's own malloc and free, so that events are recorded in the order in which MLX's counters change
//! (lock order: this one, then the allocator's mutex). It is never held across `eval`, `set_data`, `copy_shared_buffer`,
//! `~ArrayDesc`, `set_cache_limit` or `clear_cache`: those wait for threads whose frees need it.
//!
//! A pthread mutex and not `std::sync::Mutex`, for two reasons: `fork` handlers must lock before the fork and unlock in
//! both processes, and the adaptive kind spins first, which suits sections of 100 ns shared by two threads.
#![expect(unsafe_code, reason = "pthread mutexes and the data they guard")]

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// A value behind an adaptive pthread mutex, for statics.
pub struct Lock<T> {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through `Guard`, of which the mutex lets one exist at a time, and through `raw_lock`
// with `raw_unlock`, which do not touch it.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Access to the value until dropped. Unlocks also when a C++ exception passes: hooks are `extern "C-unwind"`.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Lock<T> {
    /// An unlocked lock.
    pub const fn new(value: T) -> Lock<T> {
        Lock { mutex: UnsafeCell::new(INITIAL_MUTEX), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock. Not reentrant.
    pub fn lock(&self) -> Guard<'_, T> {
        self.raw_lock();
        Guard { lock: self }
    }

    /// Locks without access to the value, for `fork` handlers.
    pub fn raw_lock(&self) {
        // SAFETY: the mutex is initialised, and lives as long as `self`. Locking an initialised normal mutex cannot fail.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
    }

    /// Undoes `raw_lock` of this thread, or, in the child of a fork, of the thread that forked.
    pub fn raw_unlock(&self) {
        // SAFETY: as in `raw_lock`; callers hold the lock.
        unsafe { libc::pthread_mutex_unlock(self.mutex.get()) };
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
const INITIAL_MUTEX: libc::pthread_mutex_t = libc::PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
const INITIAL_MUTEX: libc::pthread_mutex_t = libc::PTHREAD_MUTEX_INITIALIZER;

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a guard exists, so this thread holds the mutex and no other reference to the value is alive.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `&mut self` excludes a second borrow through this guard.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.raw_unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_never_hold_it_at_once() {
        static COUNTER: Lock<u64> = Lock::new(0);
        let bump = || (0..10_000).for_each(|_| *COUNTER.lock() += 1);
        std::thread::scope(|scope| {
            scope.spawn(bump);
            scope.spawn(bump);
        });
        assert_eq!(*COUNTER.lock(), 20_000);
    }
}
