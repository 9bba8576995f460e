//! Memory as a source of bytes, and bounded reads from it.

use crate::error::ImageError;

/// Memory by absolute address: a live process, a file laid out by its program headers, a byte array in a test.
///
/// A read is all or nothing and may be refused for any reason. Contents may be hostile, and may change between reads.
pub trait ReadMemory {
    /// Fills `into` with the bytes from `addr` on.
    fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), Unreadable>;
}

/// A range of addresses that could not be read as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("memory not readable: {len} bytes at {addr:#x}")]
pub struct Unreadable {
    /// Start of the range.
    pub addr: u64,
    /// Its bytes.
    pub len: usize,
}

/// Bytes read at once. A size that lies is found out after allocating no more than this beyond what is really there.
const CHUNK_BYTES: usize = 64 * 1024;

pub(crate) fn read_u64(memory: &dyn ReadMemory, addr: u64, what: &'static str) -> Result<u64, ImageError> {
    let mut word = [0; 8];
    memory.read(addr, &mut word).map_err(|source| ImageError::Unreadable { what, source })?;
    Ok(u64::from_le_bytes(word))
}

/// A range of memory that lies inside the address space and is not larger than its limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    what: &'static str,
    addr: u64,
    size_bytes: u64,
}

impl Table {
    pub(crate) fn new(what: &'static str, addr: u64, size_bytes: u64, limit_bytes: u64) -> Result<Table, ImageError> {
        if size_bytes > limit_bytes {
            return Err(ImageError::TooBig { what, found: size_bytes, limit: limit_bytes });
        }
        if addr.checked_add(size_bytes).is_none() {
            return Err(ImageError::OutOfAddressSpace { what, base: addr, offset: size_bytes });
        }
        Ok(Table { what, addr, size_bytes })
    }

    /// The whole table.
    pub(crate) fn read(&self, memory: &dyn ReadMemory) -> Result<Vec<u8>, ImageError> {
        let mut bytes = Vec::new();
        self.for_each_chunk(memory, CHUNK_BYTES, |chunk| bytes.extend_from_slice(chunk))?;
        Ok(bytes)
    }

    /// Each entry of `N` bytes, in order. Bytes after the last whole entry are left out.
    pub(crate) fn for_each_entry<const N: usize>(
        &self,
        memory: &dyn ReadMemory,
        mut each: impl FnMut(&[u8; N]),
    ) -> Result<(), ImageError> {
        self.for_each_chunk(memory, CHUNK_BYTES / N * N, |chunk| chunk.as_chunks().0.iter().for_each(&mut each))
    }

    fn for_each_chunk(
        &self,
        memory: &dyn ReadMemory,
        chunk_bytes: usize,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), ImageError> {
        let mut buffer = vec![0; chunk_bytes.min(self.size_bytes as usize)];
        let mut at = 0;
        while at < self.size_bytes {
            let len = (self.size_bytes - at).min(chunk_bytes as u64) as usize;
            memory
                .read(self.addr + at, &mut buffer[..len])
                .map_err(|source| ImageError::Unreadable { what: self.what, source })?;
            each(&buffer[..len]);
            at += len as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Readable up to an address; remembers the sizes asked for.
    struct UpTo(u64, RefCell<Vec<usize>>);

    impl ReadMemory for UpTo {
        fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), Unreadable> {
            self.1.borrow_mut().push(into.len());
            if addr + into.len() as u64 > self.0 {
                return Err(Unreadable { addr, len: into.len() });
            }
            into.iter_mut().zip(addr..).for_each(|(byte, addr)| *byte = addr as u8);
            Ok(())
        }
    }

    #[test]
    fn a_size_that_lies_is_found_out_in_the_first_chunk_that_is_not_there() {
        let memory = UpTo(100_000, RefCell::default());
        let table = Table::new("table", 0, 1 << 30, 1 << 30).unwrap();
        let error = table.read(&memory).unwrap_err();
        assert_eq!(
            error,
            ImageError::Unreadable { what: "table", source: Unreadable { addr: 65_536, len: CHUNK_BYTES } }
        );
        assert_eq!(*memory.1.borrow(), [CHUNK_BYTES, CHUNK_BYTES]);
    }

    #[test]
    fn entries_never_straddle_two_reads() {
        let memory = UpTo(1 << 20, RefCell::default());
        let table = Table::new("table", 5, 24 * 10_000 + 7, 1 << 20).unwrap();
        let mut next = 5;
        let mut count = 0;
        table
            .for_each_entry::<24>(&memory, |entry| {
                assert_eq!(entry[0], next as u8);
                next += 24;
                count += 1;
            })
            .unwrap();
        assert_eq!(count, 10_000);
    }

    #[test]
    fn limits_are_checked_before_anything_is_read() {
        let error = Table::new("table bytes", 8, 1 << 60, 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "table bytes: 1152921504606846976, more than the 1048576 that are read");
        let error = Table::new("table", u64::MAX - 7, 9, 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "table at 0xfffffffffffffff8 + 0x9 leaves the address space");
    }
}
