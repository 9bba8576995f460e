//! Hits, misses and evictions, by size class.
//!
//! A class is a power of two: class `k` holds sizes of `2^(k-1) .. 2^k - 1` bytes, class 0 the size 0. Hits and misses are
//! filed under the size that was looked for, evictions under the size of the block.

use memviz_trace::Hits;

/// Number of classes.
pub const SIZE_CLASSES: usize = 65;

/// The class of a size.
#[inline]
pub fn size_class(size: u64) -> usize {
    (u64::BITS - size.leading_zeros()) as usize
}

/// What happened to one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that a cached block served.
    pub hits: u64,
    /// Bytes of those blocks.
    pub hit_bytes: u64,
    /// Requests that no cached block fitted.
    pub misses: u64,
    /// Blocks that left the cache for the operating system.
    pub evictions: u64,
    /// Bytes of those blocks.
    pub evicted_bytes: u64,
}

impl Tally {
    /// Hits by lookups, from 0 to 1; `None` before the first lookup.
    pub fn hit_rate(&self) -> Option<f64> {
        Hits { hits: self.hits, misses: self.misses }.rate()
    }
}

/// Counters of all classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    classes: [Tally; SIZE_CLASSES],
}

impl Default for Counters {
    fn default() -> Self {
        Counters { classes: [Tally::default(); SIZE_CLASSES] }
    }
}

impl Counters {
    #[inline]
    pub(crate) fn hit(&mut self, looked_for: u64, found: u64) {
        let tally = &mut self.classes[size_class(looked_for)];
        tally.hits += 1;
        tally.hit_bytes = tally.hit_bytes.wrapping_add(found);
    }

    #[inline]
    pub(crate) fn miss(&mut self, looked_for: u64) {
        self.classes[size_class(looked_for)].misses += 1;
    }

    #[inline]
    pub(crate) fn evict(&mut self, size: u64) {
        let tally = &mut self.classes[size_class(size)];
        tally.evictions += 1;
        tally.evicted_bytes = tally.evicted_bytes.wrapping_add(size);
    }

    /// The counters of one class, see [`size_class`].
    pub fn class(&self, class: usize) -> Tally {
        self.classes.get(class).copied().unwrap_or_default()
    }

    /// All classes together.
    pub fn total(&self) -> Tally {
        self.classes.iter().fold(Tally::default(), |sum, class| Tally {
            hits: sum.hits + class.hits,
            hit_bytes: sum.hit_bytes.wrapping_add(class.hit_bytes),
            misses: sum.misses + class.misses,
            evictions: sum.evictions + class.evictions,
            evicted_bytes: sum.evicted_bytes.wrapping_add(class.evicted_bytes),
        })
    }
}
