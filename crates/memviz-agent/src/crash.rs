//! On the way down: signals that end the program let the writer of a streamed recording finish first.
//!
//! A handler can neither allocate nor lock. So it writes nothing itself: it wakes the writer's thread, which is an ordinary
//! thread with nothing to fear from the one that crashed, and sleeps until the last chunk is written, `PATIENCE` at most.
//! Refused: writing raw events in the handler. They would need a second format, ids that only the writer can translate, and
//! a lock that the crashed thread may hold.
//!
//! ```text
//!   a fault, abort()                        handler sleeps ── writer: last chunk ── handler goes on to who was there before
//!   SIGTERM, SIGHUP (only where default)    handler returns ─ writer: last chunk ── writer sends the signal again
//! ```
//!
//! The second kind does not sleep: it may have interrupted a hook that holds the recorder's lock, which the program must
//! give back first. A fault holds it in one case that matters: inside MLX's own malloc, which writes to the null pointer
//! that the system gave it when memory ran out (0.30 and later, on the CPU). Hooks note when they call it; the thread that
//! holds the lock sleeps in the handler then, outside our code, so the writer may use what the lock guards.
//!
//! Whoever handled the signal before is called afterwards, by putting it back and letting the signal happen again: the same
//! fault at the same instruction, or the same signal once more. So faulthandler, core dumps and the parent see what they
//! would have seen. The writer's own faults, forked children and recordings that ended pass straight through.
#![expect(unsafe_code, reason = "signal handlers")]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use memviz_trace::StackId;

use crate::{linux, wake};

/// How long a crash waits for its last chunk. A writer that hangs, on a disk that does or on a lock of malloc's that the
/// crashed thread holds, must not keep the program from ending.
const PATIENCE: Duration = Duration::from_secs(3);

/// Signals, their names, and whether the program ends where they are handled.
const SIGNALS: [(c_int, &str, bool); 7] = [
    (libc::SIGSEGV, "SIGSEGV", true),
    (libc::SIGBUS, "SIGBUS", true),
    (libc::SIGFPE, "SIGFPE", true),
    (libc::SIGILL, "SIGILL", true),
    (libc::SIGABRT, "SIGABRT", true),
    (libc::SIGTERM, "SIGTERM", false),
    (libc::SIGHUP, "SIGHUP", false),
];

/// What was there before our handlers, and how often each was passed on to.
struct Before([UnsafeCell<MaybeUninit<libc::sigaction>>; SIGNALS.len()]);

// SAFETY: written by `install` before the handler that reads it is installed; both start and stop under the session's lock.
unsafe impl Sync for Before {}

static BEFORE: Before = Before([const { UnsafeCell::new(MaybeUninit::uninit()) }; SIGNALS.len()]);
static HAS_BEFORE: [AtomicBool; SIGNALS.len()] = [const { AtomicBool::new(false) }; SIGNALS.len()];
static PASSED_ON: [AtomicU32; SIGNALS.len()] = [const { AtomicU32::new(0) }; SIGNALS.len()];

/// The process whose recording is streamed; 0 for none.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The writer's thread.
static WRITER: AtomicUsize = AtomicUsize::new(0);
/// The signal that ends the program; 0 for none.
static SIGNAL: AtomicU32 = AtomicU32::new(0);
/// When it came.
static SIGNAL_NANOS: AtomicU64 = AtomicU64::new(0);
static HAS_FAULT_ADDR: AtomicBool = AtomicBool::new(false);
static FAULT_ADDR: AtomicU64 = AtomicU64::new(0);
/// The crashed thread sleeps in its handler and holds the recorder's lock, outside our code.
static HOLDER_SLEEPS: AtomicBool = AtomicBool::new(false);
/// 1 once the last chunk is written.
static IS_WRITTEN: AtomicU32 = AtomicU32::new(0);

/// The thread inside MLX's malloc or free; 0 for none. Guarded by the recorder's lock, which that thread holds.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static INSIDE_SIZE: AtomicU64 = AtomicU64::new(0);
static INSIDE_STACK: AtomicU32 = AtomicU32::new(0);

/// A call of MLX's allocator under way, with the recorder's lock held.
pub struct Inside;

impl Inside {
    /// Asked for `size` bytes (0: a free) by the evaluation `triggered`.
    #[inline]
    pub fn enter(size: usize, triggered: StackId) -> Inside {
        INSIDE_SIZE.store(size as u64, Ordering::Relaxed);
        INSIDE_STACK.store(triggered.0, Ordering::Relaxed);
        INSIDE.store(linux::this_thread(), Ordering::Relaxed);
        Inside
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        INSIDE.store(0, Ordering::Relaxed);
    }
}

/// Is a recording streamed? Hooks note their calls then.
#[inline]
pub fn is_watching() -> bool {
    PROCESS.load(Ordering::Relaxed) != 0
}

/// What ends the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// "SIGSEGV at address 0x10".
    pub detail: String,
    /// The crash is inside MLX's malloc, which was asked for that many bytes.
    pub requested: Option<u64>,
    /// The evaluation that asked for them.
    pub triggered: StackId,
    number: c_int,
}

/// A signal asked for the end, if one did: for the writer.
pub fn ended() -> Option<Ended> {
    let number = SIGNAL.load(Ordering::Acquire) as c_int;
    let (_, name, _) = SIGNALS.iter().find(|(signal, ..)| *signal == number)?;
    let addr = HAS_FAULT_ADDR.load(Ordering::Relaxed).then(|| FAULT_ADDR.load(Ordering::Relaxed));
    let addr = addr.map_or_else(String::new, |addr| format!(" at address {addr:#x}"));
    let is_inside = HOLDER_SLEEPS.load(Ordering::Acquire);
    let size = if is_inside { INSIDE_SIZE.load(Ordering::Relaxed) } else { 0 };
    let asked = if size > 0 { format!(", in MLX's allocator, asked for {size} bytes") } else { String::new() };
    Some(Ended {
        detail: format!("{name}{addr}{asked}"),
        requested: (size > 0).then_some(size),
        triggered: StackId(if is_inside { INSIDE_STACK.load(Ordering::Relaxed) } else { 0 }),
        number,
    })
}

/// Does the thread that holds the recorder's lock sleep in a handler?
pub fn holder_sleeps() -> bool {
    HOLDER_SLEEPS.load(Ordering::Acquire)
}

/// The last chunk is written: lets the program end.
pub fn written(ended: &Ended) {
    IS_WRITTEN.store(1, Ordering::Release);
    linux::futex_wake_all(&IS_WRITTEN);
    if let Some(at) = position(ended.number).filter(|&at| !SIGNALS[at].2) {
        put_back(at);
        // SAFETY: sends a signal to this process.
        unsafe { libc::kill(libc::getpid(), ended.number) };
    }
}

fn position(signal: c_int) -> Option<usize> {
    SIGNALS.iter().position(|(number, ..)| *number == signal)
}

/// Begins to watch, for a writer that runs on this thread.
pub fn set_writer() {
    WRITER.store(linux::this_thread(), Ordering::Release);
}

/// Installs the handlers. SIGTERM and SIGHUP only where they have their default action: a program that handles them ends in
/// its own way, through Python. The calling thread gets an alternate stack if it has none, for faults by a full stack.
pub fn install() {
    for number in [&SIGNAL, &IS_WRITTEN] {
        number.store(0, Ordering::Relaxed);
    }
    HAS_FAULT_ADDR.store(false, Ordering::Relaxed);
    HOLDER_SLEEPS.store(false, Ordering::Relaxed);
    PROCESS.store(std::process::id(), Ordering::Release);
    linux::ensure_signal_stack();
    for (at, (signal, _, ends_there)) in SIGNALS.iter().enumerate() {
        PASSED_ON[at].store(0, Ordering::Relaxed);
        let before = action_of(*signal);
        let is_default = before.sa_sigaction == libc::SIG_DFL;
        let is_ours = before.sa_sigaction == handler as *const () as usize;
        if is_ours || before.sa_sigaction == libc::SIG_IGN || !(is_default || *ends_there) {
            continue;
        }
        // SAFETY: no handler of ours is installed for this signal, so nobody reads the place.
        unsafe { (*BEFORE.0[at].get()).write(before) };
        HAS_BEFORE[at].store(true, Ordering::Release);
        // SAFETY: all zeros is a valid `sigaction`.
        let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
        ours.sa_sigaction = handler as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: `handler` has the type that SA_SIGINFO asks for and lives as long as the process.
        unsafe { libc::sigaction(*signal, &ours, std::ptr::null_mut()) };
    }
}

fn action_of(signal: c_int) -> libc::sigaction {
    // SAFETY: all zeros is a valid `sigaction`, and the call only writes it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action);
        action
    }
}

/// Takes the handlers off. One that somebody put another handler on top of stays and passes on.
pub fn uninstall() {
    PROCESS.store(0, Ordering::Release);
    for (at, (signal, ..)) in SIGNALS.iter().enumerate() {
        if action_of(*signal).sa_sigaction == handler as *const () as usize {
            put_back(at);
        }
    }
}

/// Callable in a handler.
fn put_back(at: usize) {
    let signal = SIGNALS[at].0;
    // Another handler may have been put on top of ours and ours on top of it again; then it led back to us, and the default
    // action ends the round.
    let is_first = PASSED_ON[at].fetch_add(1, Ordering::AcqRel) == 0;
    // SAFETY: all zeros is a valid `sigaction`: the default action.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    if is_first && HAS_BEFORE[at].load(Ordering::Acquire) {
        // SAFETY: written before the flag was set, and not while a handler is installed.
        before = unsafe { (*BEFORE.0[at].get()).assume_init_read() };
    }
    // SAFETY: an action that was installed before, or the default one.
    unsafe { libc::sigaction(signal, &before, std::ptr::null_mut()) };
}

extern "C" fn handler(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    let errno = linux::errno();
    let Some(at) = position(signal) else { return };
    // SAFETY: the kernel passes a valid record.
    let (code, addr) = unsafe { ((*info).si_code, (*info).si_addr() as u64) };
    // Positive: raised by the kernel for the instruction that was interrupted.
    let is_fault = code > 0 && signal != libc::SIGABRT;
    let is_watched =
        PROCESS.load(Ordering::Acquire) == std::process::id() && WRITER.load(Ordering::Acquire) != linux::this_thread();
    let ends_here = SIGNALS[at].2;
    // Who asks again after that has waited long enough for a writer that hangs.
    let is_late = SIGNAL.load(Ordering::Acquire) != 0
        && linux::monotonic_nanos().saturating_sub(SIGNAL_NANOS.load(Ordering::Relaxed)) > PATIENCE.as_nanos() as u64;
    if is_watched && !is_late && PASSED_ON[at].load(Ordering::Acquire) == 0 {
        tell_writer(signal, is_fault.then_some(addr), ends_here);
        if !ends_here {
            linux::set_errno(errno);
            return;
        }
    }
    put_back(at);
    if !is_fault {
        // Blocked until this handler returns.
        linux::send_to_this_thread(signal);
    }
    linux::set_errno(errno);
}

fn tell_writer(signal: c_int, fault_addr: Option<u64>, ends_here: bool) {
    if SIGNAL.load(Ordering::Acquire) == 0 {
        SIGNAL_NANOS.store(linux::monotonic_nanos(), Ordering::Relaxed);
        FAULT_ADDR.store(fault_addr.unwrap_or(0), Ordering::Relaxed);
        HAS_FAULT_ADDR.store(fault_addr.is_some(), Ordering::Relaxed);
        HOLDER_SLEEPS.store(ends_here && INSIDE.load(Ordering::Relaxed) == linux::this_thread(), Ordering::Release);
        // Two threads that crash at once: the second waits for the same chunk.
        let _second = SIGNAL.compare_exchange(0, signal as u32, Ordering::AcqRel, Ordering::Relaxed);
    }
    wake::wake();
    let end = linux::monotonic_nanos() + PATIENCE.as_nanos() as u64;
    while ends_here && IS_WRITTEN.load(Ordering::Acquire) == 0 && linux::monotonic_nanos() < end {
        linux::futex_wait_for(&IS_WRITTEN, 0, Duration::from_millis(100));
    }
}
