//! Two ways to read another's structures: directly, when they are known to be alive, and through a pipe, when the
//! address may be wrong because the layout has not been verified yet.
#![expect(unsafe_code, reason = "reads memory of the interpreter")]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::api::Address;

/// Reads memory at an address.
pub(crate) trait Memory {
    /// `N` bytes, or `None` where nothing is mapped.
    fn bytes<const N: usize>(&self, address: Address) -> Option<[u8; N]>;

    /// A pointer or other 8-byte word.
    fn word(&self, address: Address) -> Option<usize> {
        self.bytes(address).map(|bytes| u64::from_ne_bytes(bytes) as usize)
    }

    /// A C `int`.
    fn int(&self, address: Address) -> Option<i32> {
        self.bytes(address).map(i32::from_ne_bytes)
    }
}

/// Plain loads.
pub(crate) struct LiveMemory(());

impl LiveMemory {
    /// # Safety
    /// For as long as the value lives, it is asked only for fields of live objects whose layout has been verified.
    pub(crate) unsafe fn new() -> LiveMemory {
        LiveMemory(())
    }
}

impl Memory for LiveMemory {
    fn bytes<const N: usize>(&self, address: Address) -> Option<[u8; N]> {
        // SAFETY: the field is mapped by the contract of `new`; a byte array needs no alignment.
        Some(unsafe { std::ptr::read(address as *const [u8; N]) })
    }
}

/// Loads that cannot fault: the kernel copies the bytes into a pipe and answers EFAULT for an unmapped address.
///
/// About 1 us a read, on every Unix; `process_vm_readv` is Linux only and often forbidden in containers.
pub(crate) struct PipeMemory {
    read_end: OwnedFd,
    write_end: OwnedFd,
}

impl PipeMemory {
    /// Opens the pipe; `None` when the process has no file descriptor left.
    pub(crate) fn new() -> Option<PipeMemory> {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for the two descriptors.
        if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: both were opened just now and belong to nobody else.
        let [read_end, write_end] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        Some(PipeMemory { read_end, write_end })
    }
}

impl Memory for PipeMemory {
    fn bytes<const N: usize>(&self, address: Address) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        // SAFETY: `write` reads at most N bytes and reports an unmapped address as an error. N is far below the
        // capacity of a pipe (4096 at least), which is empty before and after, so neither call blocks.
        let written = unsafe { libc::write(self.write_end.as_raw_fd(), address as *const libc::c_void, N) };
        if written <= 0 {
            return None;
        }
        // SAFETY: `bytes` has room for the at most N bytes in the pipe.
        let read = unsafe { libc::read(self.read_end.as_raw_fd(), bytes.as_mut_ptr().cast(), N) };
        (read == N as isize).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wild_address_is_none_and_the_pipe_still_works() {
        let memory = PipeMemory::new().unwrap();
        let value = 0x0123_4567_89ab_cdef_usize;
        assert_eq!(memory.word(8), None);
        assert_eq!(memory.word(usize::MAX - 4096), None);
        assert_eq!(memory.word(std::ptr::from_ref(&value) as Address), Some(value));
    }
}
