//! Host memory from the system's allocator.
#![expect(unsafe_code, reason = "calls the system's allocator and madvise")]

use std::alloc::{Layout, alloc, dealloc};

use super::Heap;

/// Bytes of a huge page on x86-64 and, with 4 KiB pages, on aarch64.
const HUGE_PAGE: usize = 2 << 20;

/// Blocks begin at a page; on request, those of a huge page or more begin at a huge page and ask the kernel for such pages.
#[derive(Debug)]
pub struct HostHeap {
    page: usize,
    huge_pages: bool,
}

impl Default for HostHeap {
    fn default() -> Self {
        HostHeap { page: page_size(), huge_pages: false }
    }
}

fn page_size() -> usize {
    // SAFETY: `sysconf` reads a constant of the system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(4096)
}

impl HostHeap {
    /// With huge pages for blocks of 2 MiB or more. The kernel may refuse: then they are ordinary pages.
    pub fn with_huge_pages() -> HostHeap {
        HostHeap { huge_pages: true, ..HostHeap::default() }
    }

    fn is_huge(&self, size: u64) -> bool {
        self.huge_pages && size >= HUGE_PAGE as u64
    }

    /// The same for the same size, so that `free` finds what `allocate` used.
    fn layout(&self, size: u64) -> Option<Layout> {
        let align = if self.is_huge(size) { HUGE_PAGE } else { self.page };
        Layout::from_size_align(usize::try_from(size).ok()?.max(1), align).ok()
    }
}

impl Heap for HostHeap {
    fn allocate(&self, size: u64) -> Option<u64> {
        let layout = self.layout(size)?;
        // SAFETY: the layout's size is at least 1.
        let addr = unsafe { alloc(layout) };
        #[cfg(target_os = "linux")]
        if !addr.is_null() && self.is_huge(size) {
            // SAFETY: the range was allocated a moment ago and begins at a page; the advice changes no contents.
            let _refused = unsafe { libc::madvise(addr.cast(), layout.size(), libc::MADV_HUGEPAGE) };
        }
        (!addr.is_null()).then_some(addr as u64)
    }

    fn free(&self, addr: u64, size: u64) {
        if let Some(layout) = self.layout(size) {
            // SAFETY: the contract of `Heap`: `allocate` of this heap gave this address for this size, so with this layout.
            unsafe { dealloc(addr as *mut u8, layout) };
        }
    }
}
