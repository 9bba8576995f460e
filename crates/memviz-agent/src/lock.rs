//! The recorder's one lock.
//!
//! It is held around MLX's own malloc and free, so that events are recorded in the order in which MLX's counters change
//! (lock order: this one, then the allocator's mutex). It is never held across `eval`, `set_data`, `copy_shared_buffer`,
//! `~ArrayDesc`, `set_cache_limit` or `clear_cache`: those wait for threads whose frees need it.
//!
//! Our own and not `std::sync::Mutex`, for two reasons: `fork` handlers must lock before the fork and unlock in both
//! processes, which no guard can do; and a waiter spins for some microseconds before it sleeps, because sections last
//! 0.1 to 0.3 µs and are shared by the thread that evaluates and the one that executes, for which a sleep costs more than
//! everything else here. The algorithm is Drepper's third mutex ("Futexes Are Tricky", 2011).
#![expect(unsafe_code, reason = "futex calls and the data that the lock guards")]

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::linux;

const FREE: u32 = 0;
const HELD: u32 = 1;
const HELD_WITH_SLEEPERS: u32 = 2;

/// Rounds of spinning before sleeping, 20 to 100 ns each.
const SPINS: u32 = 100;

/// A value behind a lock, for statics. Threads take turns at writing the line of the state; 128 bytes, because lines are
/// fetched in pairs, keep from it what every hook reads, with or without the lock.
#[repr(align(128))]
pub struct Lock<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through `Guard`, of which the state lets one exist at a time, and through `raw_lock`
// with `raw_unlock`, which do not touch it.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Access to the value until dropped. Unlocks also when a C++ exception passes: hooks are `extern "C-unwind"`.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Lock<T> {
    /// An unlocked lock.
    pub const fn new(value: T) -> Lock<T> {
        Lock { state: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock. Not reentrant.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        self.raw_lock();
        Guard { lock: self }
    }

    /// The lock, if nobody holds it.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        let taken = self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        // Not `then_some`: a guard made in vain would let go of the lock of its holder.
        taken.is_ok().then(|| Guard { lock: self })
    }

    /// The value, though another thread holds the lock.
    ///
    /// # Safety
    /// That thread does not use the value, nor lets go of the lock, as long as the reference lives.
    #[expect(clippy::mut_from_ref, reason = "as `UnsafeCell::get`")]
    pub unsafe fn value_of_sleeping_holder(&self) -> &mut T {
        // SAFETY: by contract.
        unsafe { &mut *self.value.get() }
    }

    /// Locks without access to the value, for `fork` handlers.
    #[inline]
    pub fn raw_lock(&self) {
        if self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..SPINS {
            std::hint::spin_loop();
            if self.state.load(Ordering::Relaxed) == FREE
                && self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return;
            }
        }
        while self.state.swap(HELD_WITH_SLEEPERS, Ordering::Acquire) != FREE {
            linux::futex_wait(&self.state, HELD_WITH_SLEEPERS);
        }
    }

    /// Undoes `raw_lock` of this thread, or, in the child of a fork, of the thread that forked.
    #[inline]
    pub fn raw_unlock(&self) {
        if self.state.swap(FREE, Ordering::Release) == HELD_WITH_SLEEPERS {
            linux::futex_wake_one(&self.state);
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: a guard exists, so this thread holds the lock and no other reference to the value is alive.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `&mut self` excludes a second borrow through this guard.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
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

    #[test]
    fn a_lock_that_is_not_had_stays_with_its_holder() {
        static HELD: Lock<()> = Lock::new(());
        let _guard = HELD.lock();
        assert!(HELD.try_lock().is_none());
        assert!(HELD.try_lock().is_none(), "the first attempt let go of it");
    }
}
