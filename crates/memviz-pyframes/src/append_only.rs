//! A table that only grows, whose rows never move: read by any thread without a lock while another appends.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Rows in the first chunk; each further chunk is twice as large.
const FIRST: usize = 1024;
const CHUNKS: usize = 21;

/// Rows by dense index.
pub(crate) struct AppendOnly<T> {
    len: AtomicU32,
    chunks: [OnceLock<Box<[OnceLock<T>]>>; CHUNKS],
}

impl<T: Copy> AppendOnly<T> {
    pub(crate) const fn new() -> Self {
        AppendOnly { len: AtomicU32::new(0), chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// Appends and returns the index, or `None` when the table is full (2^31 rows). One thread at a time.
    pub(crate) fn push(&self, row: T) -> Option<u32> {
        let index = self.len();
        let (chunk, offset) = place(index);
        let rows = self.chunks.get(chunk)?;
        let rows = rows.get_or_init(|| (0..FIRST << chunk).map(|_| OnceLock::new()).collect());
        rows.get(offset)?.set(row).ok()?;
        self.len.store(index + 1, Ordering::Release);
        Some(index)
    }

    /// A row that was appended before.
    pub(crate) fn get(&self, index: u32) -> Option<T> {
        let (chunk, offset) = place(index);
        self.chunks.get(chunk)?.get()?.get(offset)?.get().copied()
    }

    pub(crate) fn len(&self) -> u32 {
        self.len.load(Ordering::Acquire)
    }

    /// Bytes of the allocated chunks.
    pub(crate) fn memory_bytes(&self) -> usize {
        let rows: usize = self.chunks.iter().filter_map(OnceLock::get).map(|rows| rows.len()).sum();
        rows * size_of::<OnceLock<T>>()
    }
}

/// Chunk and offset of a row: chunk `c` begins at row `FIRST * (2^c - 1)`.
fn place(index: u32) -> (usize, usize) {
    let position = index as usize + FIRST;
    let chunk = (position.ilog2() - FIRST.ilog2()) as usize;
    (chunk, position - (FIRST << chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_index_across_chunks() {
        let table = AppendOnly::new();
        for i in 0..5000_u32 {
            assert_eq!(table.push(i * 3), Some(i));
        }
        assert!((0..5000).all(|i| table.get(i) == Some(i * 3)));
        assert_eq!(table.get(5000), None);
        assert_eq!(table.len(), 5000);
        assert_eq!(table.memory_bytes(), (1024 + 2048 + 4096) * size_of::<OnceLock<u32>>());
    }
}
