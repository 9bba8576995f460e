//! The platform seam on Linux: loaded images, safe reads, page protection, clock and thread ids.
//!
//! `macos/mod.rs` will export the same names. Everything that calls into libc for the agent is here.
#![expect(unsafe_code, reason = "dl_iterate_phdr, process_vm_readv, dlsym and page protection")]

use std::ffi::{CStr, CString, c_int, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use memviz_image::{ReadMemory, SlotAddr, Unreadable};

/// A loaded image.
#[derive(Clone, Debug)]
pub struct Image {
    /// Path as the loader knows it; empty for the main program.
    pub path: PathBuf,
    /// Difference between addresses in memory and in the file.
    pub bias: u64,
    /// Address of its dynamic section.
    pub dynamic_addr: u64,
    /// Address ranges that it is loaded at, with the flag "is executable".
    pub segments: Vec<(std::ops::Range<u64>, bool)>,
}

impl Image {
    /// Does an address belong to the image?
    pub fn contains(&self, addr: u64) -> bool {
        self.segments.iter().any(|(range, _)| range.contains(&addr))
    }

    /// Does an address belong to its code?
    pub fn is_code(&self, addr: u64) -> bool {
        self.segments.iter().any(|(range, is_executable)| *is_executable && range.contains(&addr))
    }
}

/// Every loaded image, in load order.
pub fn images() -> Vec<Image> {
    extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, images: *mut c_void) -> c_int {
        // SAFETY: `images` is the vector passed below, not otherwise used during the call.
        let images = unsafe { &mut *images.cast::<Vec<Image>>() };
        // SAFETY: the loader passes a valid record for the duration of the call.
        images.extend(unsafe { image_from_info(&*info) });
        0
    }
    let mut images: Vec<Image> = Vec::new();
    // SAFETY: `visit` matches the callback type, and `images` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut images).cast()) };
    images
}

/// # Safety
/// `info` is as the loader passes it to the callback of `dl_iterate_phdr`.
unsafe fn image_from_info(info: &libc::dl_phdr_info) -> Option<Image> {
    if info.dlpi_phdr.is_null() {
        return None;
    }
    // SAFETY: by contract, the loader's name is a C string.
    let path = if info.dlpi_name.is_null() { c"" } else { unsafe { CStr::from_ptr(info.dlpi_name) } };
    // SAFETY: by contract, `dlpi_phdr` points to `dlpi_phnum` program headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let bias = info.dlpi_addr;
    let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
    let segments = headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(|header| {
        let start = bias.wrapping_add(header.p_vaddr);
        (start..start.saturating_add(header.p_memsz), header.p_flags & libc::PF_X != 0)
    });
    Some(Image {
        path: PathBuf::from(path.to_string_lossy().into_owned()),
        bias,
        dynamic_addr: bias.wrapping_add(dynamic.p_vaddr),
        segments: segments.collect(),
    })
}

/// Number of images loaded so far: when it grows, new slots may need a hook.
pub fn load_count() -> u64 {
    extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, count: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid record, and `count` is the integer passed below.
        unsafe { *count.cast::<u64>() = (*info).dlpi_adds };
        1
    }
    let mut count = 0_u64;
    // SAFETY: `visit` matches the callback type, and `count` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut count).cast()) };
    count
}

/// Memory of this process, read so that a wrong address is an error and not a crash.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnMemory;

impl ReadMemory for OwnMemory {
    fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let len = into.len();
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: len };
        let remote = libc::iovec { iov_base: addr as *mut c_void, iov_len: len };
        // SAFETY: `local` describes `into`; the kernel validates `remote` and reports a bad address as an error.
        let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        if usize::try_from(read) == Ok(len) { Ok(()) } else { Err(Unreadable { addr, len }) }
    }
}

/// The `u64` at an address, or `None` if it cannot be read.
pub fn read_u64(addr: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    OwnMemory.read(addr, &mut bytes).ok()?;
    Some(u64::from_ne_bytes(bytes))
}

/// Address of a symbol of the loaded image at `path`, as its users see it.
pub fn symbol_of(path: &std::path::Path, symbol: &str) -> Option<*const c_void> {
    let path = CString::new(path.to_str()?).ok()?;
    let symbol = CString::new(symbol).ok()?;
    // SAFETY: both are C strings; RTLD_NOLOAD only returns a handle of an image that is loaded already.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: `handle` is valid. It is not closed: the image stays loaded as long as hooks point into it.
    let found = unsafe { libc::dlsym(handle, symbol.as_ptr()) };
    (!found.is_null()).then_some(found.cast_const())
}

/// Address of a symbol of the whole process (Python's own functions).
pub fn symbol(name: &CStr) -> Option<*const c_void> {
    // SAFETY: `name` is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found.cast_const())
}

/// A pointer of another module could not be replaced.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the pointer at {addr:#x} writable; the system forbids it")]
pub struct ProtectError {
    /// Address of the pointer.
    pub addr: u64,
    /// What the system said.
    #[source]
    pub source: region::Error,
}

/// Stores `new` at `slot` and returns what was there. The page's protection is as before afterwards.
///
/// # Errors
/// The page cannot be made writable; nothing was stored.
///
/// # Safety
/// `slot` is the 8-byte aligned address of a pointer that stays mapped, and every reader of it may be given `new`.
pub unsafe fn swap_pointer(slot: SlotAddr, new: *const c_void) -> Result<*const c_void, ProtectError> {
    let cell = slot.0 as *mut *mut c_void;
    // SAFETY: the page is mapped by contract; the guard restores its protection when dropped.
    let _writable = unsafe { region::protect_with_handle(cell, 8, region::Protection::READ_WRITE) }
        .map_err(|source| ProtectError { addr: slot.0, source })?;
    // SAFETY: aligned and mapped by contract, and writable now. A thread that calls through the slot meanwhile sees the
    // old or the new pointer; both stay callable, because hooks are restored but never unloaded.
    let cell = unsafe { AtomicPtr::from_ptr(cell) };
    Ok(cell.swap(new.cast_mut(), Ordering::AcqRel))
}

/// Sleeps while `word` holds `value`; may wake early.
#[cold]
pub fn futex_wait(word: &AtomicU32, value: u32) {
    let (operation, no_timeout) = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, std::ptr::null::<libc::timespec>());
    // SAFETY: the word lives through the call; the kernel only reads it.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, no_timeout) };
}

/// Sleeps while `word` holds `value`, for `limit` at most; may wake early. Callable in a signal handler.
pub fn futex_wait_for(word: &AtomicU32, value: u32, limit: std::time::Duration) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let limit = libc::timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    // SAFETY: the word and the time live through the call; the kernel only reads them.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, &raw const limit) };
}

/// Wakes every thread that sleeps on `word`.
pub fn futex_wake_all(word: &AtomicU32) {
    // SAFETY: the kernel uses the address as a key only.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX) };
}

/// Wakes one thread that sleeps on `word`.
#[cold]
pub fn futex_wake_one(word: &AtomicU32) {
    // SAFETY: the kernel uses the address as a key only.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
}

/// Nanoseconds of the monotonic clock.
pub fn monotonic_nanos() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The kernel's id of this thread.
pub fn thread_id() -> u64 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::gettid() as u64 }
}

/// The kernel's name of this thread.
pub fn thread_name() -> String {
    let mut name = [0_u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    CStr::from_bytes_until_nul(&name).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Registers of the calling frame, as an unwinder starts from them, with an address inside the caller.
#[inline(always)]
pub fn unwind_registers() -> (u64, framehop::UnwindRegsNative) {
    #[cfg(target_arch = "x86_64")]
    {
        let (ip, sp, bp): (u64, u64, u64);
        // SAFETY: reads three registers.
        unsafe {
            std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) ip, out(reg) sp, out(reg) bp, options(nomem, nostack));
        }
        (ip, framehop::UnwindRegsNative::new(ip, sp, bp))
    }
    #[cfg(target_arch = "aarch64")]
    {
        let (ip, lr, sp, fp): (u64, u64, u64, u64);
        // SAFETY: reads four registers.
        unsafe {
            std::arch::asm!("adr {}, .", "mov {}, lr", "mov {}, sp", "mov {}, fp", out(reg) ip, out(reg) lr, out(reg) sp, out(reg) fp, options(nomem, nostack));
        }
        (ip, framehop::UnwindRegsNative::new(lr, sp, fp))
    }
}

/// The word at an address of this thread's own stack, or `None` outside of it.
#[inline]
pub fn read_own_stack(addr: u64) -> Option<u64> {
    let here = (&raw const addr) as u64;
    if !addr.is_multiple_of(8) || addr < here || addr.checked_add(8)? > stack_end() {
        return None;
    }
    // SAFETY: aligned, and between this frame and the end of the thread's stack, which is mapped and its own.
    Some(unsafe { *(addr as *const u64) })
}

/// End of this thread's stack, asked of pthreads once a thread.
fn stack_end() -> u64 {
    thread_local! {
        static END: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }
    END.with(|end| {
        if end.get() == 0 {
            end.set(ask_stack_end());
        }
        end.get()
    })
}

fn ask_stack_end() -> u64 {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut base, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are initialised by the first call if it succeeds, read by the second and destroyed once.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) == 0 {
            libc::pthread_attr_getstack(attributes.as_ptr(), &mut base, &mut size);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
        }
    }
    base as u64 + size as u64
}

/// Registers functions to be called around `fork`: before it, and after it in the parent and in the child.
pub fn at_fork(prepare: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) {
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> c_int;
    }
    // SAFETY: the functions live as long as the process. A failure (no memory) leaves forked children attached, which
    // is harmless until they allocate on MLX.
    unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) };
}

/// This thread, as a number that differs from that of every other live thread. Callable in a signal handler.
#[inline]
pub fn this_thread() -> usize {
    // SAFETY: reads a register.
    unsafe { libc::pthread_self() as usize }
}

/// `errno` of this thread.
pub fn errno() -> c_int {
    // SAFETY: the place is this thread's own.
    unsafe { *libc::__errno_location() }
}

/// Sets `errno` of this thread.
pub fn set_errno(errno: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Sends a signal to this thread.
pub fn send_to_this_thread(signal: c_int) {
    // SAFETY: plain numbers.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
}

/// Gives this thread a stack for signal handlers, if it has none; it is kept for ever.
pub fn ensure_signal_stack() {
    const SIZE: usize = 64 * 1024;
    // SAFETY: all zeros is a valid `stack_t`, which the call fills.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::sigaltstack(std::ptr::null(), &mut stack) };
    if stack.ss_flags & libc::SS_DISABLE == 0 {
        return;
    }
    let memory: &'static mut [u8] = Box::leak(vec![0; SIZE].into_boxed_slice());
    let stack = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: SIZE };
    // SAFETY: the memory lives for ever and nobody else uses it.
    unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) };
}

/// Blocks every signal on this thread but those that a fault raises; returns what was blocked before. A thread that is made
/// now inherits it, so signals of the program go to the program's threads.
pub fn block_signals() -> libc::sigset_t {
    // SAFETY: all zeros is a valid set; the calls fill and read it.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT] {
            libc::sigdelset(&mut all, fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    }
}

/// Undoes `block_signals`.
pub fn unblock_signals(before: &libc::sigset_t) {
    // SAFETY: a set that the system gave.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}
