//! Interned (primitive, dtype, shape) triples: one id instead of three fields in every event.
//!
//! A lookup compares whole keys, so two arrays share an id only if they agree; it allocates only on first sight.

use hashbrown::HashTable;
use memviz_trace::{StringId, WhatId};
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// More axes than any MLX array has; longer shapes are stored as "not known".
pub const MAX_AXES: usize = 16;

/// A triple as hooks read it off an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhatKey<'a> {
    /// Name of the primitive; 0 for a leaf array.
    pub primitive: StringId,
    /// MLX's dtype code, or [`NO_DTYPE`].
    pub dtype: u8,
    /// Not the primitive's output but a temporary inside it.
    pub is_temporary: bool,
    /// Elements along each axis.
    pub shape: &'a [i32],
}

/// `dtype` of a triple whose dtype is not known.
pub const NO_DTYPE: u8 = u8::MAX;

#[derive(Clone, Copy, Debug)]
struct Stored {
    primitive: StringId,
    dtype: u8,
    is_temporary: bool,
    axes: u8,
    first_axis: u32,
}

/// The table. Id 0 is "not known".
#[derive(Debug, Default)]
pub struct WhatTable {
    stored: Vec<Stored>,
    axes: Vec<i32>,
    ids: HashTable<u32>,
}

fn hash(key: &WhatKey) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u64(u64::from(key.primitive.0) << 16 | u64::from(key.dtype) << 8 | u64::from(key.is_temporary));
    for &axis in key.shape {
        hasher.write_u32(axis as u32);
    }
    hasher.finish()
}

impl WhatTable {
    /// The id of a triple, new or old.
    pub fn intern(&mut self, key: WhatKey) -> WhatId {
        let hash_of_key = hash(&key);
        let found = self.ids.find(hash_of_key, |&at| view(&self.stored, &self.axes, at) == key);
        if let Some(&at) = found {
            return WhatId(at + 1);
        }
        let at = self.stored.len() as u32;
        let first_axis = self.axes.len() as u32;
        self.axes.extend_from_slice(key.shape);
        let (primitive, dtype, is_temporary) = (key.primitive, key.dtype, key.is_temporary);
        self.stored.push(Stored { primitive, dtype, is_temporary, axes: key.shape.len() as u8, first_axis });
        let (stored, axes) = (&self.stored, &self.axes);
        self.ids.insert_unique(hash_of_key, at, |&at| hash(&view(stored, axes, at)));
        WhatId(at + 1)
    }

    /// Every triple, in order of id, from 1.
    pub fn iter(&self) -> impl Iterator<Item = WhatKey<'_>> {
        (0..self.stored.len() as u32).map(|at| view(&self.stored, &self.axes, at))
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.stored.capacity() * size_of::<Stored>() + self.axes.capacity() * 4 + self.ids.capacity() * 5
    }
}

fn view<'a>(stored: &[Stored], axes: &'a [i32], at: u32) -> WhatKey<'a> {
    let entry = stored[at as usize];
    let first = entry.first_axis as usize;
    WhatKey {
        primitive: entry.primitive,
        dtype: entry.dtype,
        is_temporary: entry.is_temporary,
        shape: &axes[first..first + usize::from(entry.axes)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_triples_share_an_id_and_others_do_not() {
        let mut table = WhatTable::default();
        let key = |primitive, shape| WhatKey { primitive: StringId(primitive), dtype: 10, is_temporary: false, shape };
        let first = table.intern(key(1, &[2, 3]));
        assert_eq!(first, WhatId(1));
        let others = [table.intern(key(2, &[2, 3])), table.intern(key(1, &[3, 2])), table.intern(key(1, &[2, 3, 1]))];
        assert_eq!(others, [WhatId(2), WhatId(3), WhatId(4)]);
        assert_eq!(table.intern(key(1, &[2, 3])), first);
        assert_eq!(table.iter().nth(2).map(|what| what.shape.to_vec()), Some(vec![3, 2]));
    }
}
