//! What hooks share: the switch, the recorder, and each thread's notes.
//!
//! Everything here is a static that is never dropped: hooks may run on any thread, during thread exit and after Python is
//! gone. The thread-local part is `const`-initialised and has no destructor, for the same reason.

#![expect(unsafe_code, reason = "the recorder of a thread that crashed")]

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use memviz_trace::{StackId, ThreadId};

use crate::crash;
use crate::linux;
use crate::lock::{Guard, Lock};
use crate::native;
use crate::objects;
use crate::python;
use crate::recorder::Recorder;

static IS_ON: AtomicBool = AtomicBool::new(false);
static CAPTURES: AtomicBool = AtomicBool::new(false);
static CAPTURES_FREES: AtomicBool = AtomicBool::new(false);
static RECORDS_ARRAYS: AtomicBool = AtomicBool::new(false);
static RECORDS_NATIVE: AtomicBool = AtomicBool::new(false);
static START_NANOS: AtomicU64 = AtomicU64::new(0);
/// Number of the recording: thread ids and stamps of earlier ones are not valid.
static SESSION: AtomicU32 = AtomicU32::new(0);

static RECORDER: Lock<Option<Recorder>> = Lock::new(None);

/// Buffers that MLX's cache gave back, with the time. A leaf lock: the cache's callback runs under the allocator's mutex.
static EVICTIONS: Lock<Vec<Evicted>> = Lock::new(Vec::new());
static HAS_EVICTIONS: AtomicBool = AtomicBool::new(false);

/// Switches that hooks read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Switches {
    /// Take the stack when an array is built.
    pub captures: bool,
    /// Take the stack when a buffer is freed.
    pub captures_frees: bool,
    /// Level `arrays`.
    pub records_arrays: bool,
    /// C++ frames too.
    pub records_native: bool,
}

/// Turns hooks on. The caller holds the recorder's lock and puts a recorder in before it lets go.
pub fn turn_on(switches: Switches) {
    CAPTURES.store(switches.captures, Ordering::Relaxed);
    CAPTURES_FREES.store(switches.captures_frees, Ordering::Relaxed);
    RECORDS_ARRAYS.store(switches.records_arrays, Ordering::Relaxed);
    RECORDS_NATIVE.store(switches.records_native, Ordering::Relaxed);
    START_NANOS.store(linux::monotonic_nanos(), Ordering::Relaxed);
    SESSION.fetch_add(1, Ordering::Relaxed);
    IS_ON.store(true, Ordering::Release);
}

/// Turns hooks into mere passages.
pub fn turn_off() {
    IS_ON.store(false, Ordering::Release);
}

/// Are hooks to record?
#[inline]
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Acquire)
}

/// Are array events wanted?
#[inline]
pub fn records_arrays() -> bool {
    RECORDS_ARRAYS.load(Ordering::Relaxed)
}

/// Number of the present recording.
#[inline]
pub fn session() -> u32 {
    SESSION.load(Ordering::Relaxed)
}

/// Nanoseconds since the recording started.
#[inline]
pub fn now() -> u64 {
    linux::monotonic_nanos().saturating_sub(START_NANOS.load(Ordering::Relaxed))
}

/// The recorder's lock. `None` inside when nothing is recorded.
#[inline]
pub fn recorder() -> Guard<'static, Option<Recorder>> {
    RECORDER.lock()
}

/// The recorder's lock for the writer; `None` when the program is ending, because the holder may never give it back.
pub fn recorder_unless_ending() -> Option<Guard<'static, Option<Recorder>>> {
    loop {
        for _ in 0..100 {
            if let Some(guard) = RECORDER.try_lock() {
                return Some(guard);
            }
            std::hint::spin_loop();
        }
        if crash::ended().is_some() {
            return None;
        }
        std::thread::sleep(std::time::Duration::from_micros(20));
    }
}

/// Runs `run` on the recorder on the way down, when the thread that holds its lock may have crashed; `None` when the lock
/// cannot be had in time.
pub fn with_recorder_at_the_end<R>(run: impl FnOnce(&mut Option<Recorder>) -> R) -> Option<R> {
    if crash::holder_sleeps() {
        // SAFETY: the holder sleeps in the handler of its crash, inside MLX's function and so outside our code, until the
        // writer, which calls this, is done; or it gives up, and what it does then ends the process.
        return Some(run(unsafe { RECORDER.value_of_sleeping_holder() }));
    }
    for _ in 0..1000 {
        if let Some(mut guard) = RECORDER.try_lock() {
            return Some(run(&mut guard));
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    None
}

/// Locks everything before a fork.
pub fn lock_all() {
    RECORDER.raw_lock();
    EVICTIONS.raw_lock();
}

/// Undoes `lock_all`, in the parent and in the child.
pub fn unlock_all() {
    EVICTIONS.raw_unlock();
    RECORDER.raw_unlock();
}

/// An eviction that waits to be recorded.
struct Evicted {
    addr: u64,
    time_nanos: u64,
    /// The cache's limit at that moment: `clear_cache` before a changed limit is told from what the new limit evicts.
    cache_limit: Option<u64>,
}

/// Queues the eviction of a cached buffer. Called with the allocator's mutex held.
pub fn queue_eviction(addr: u64) {
    let time = now();
    let mut queue = EVICTIONS.lock();
    queue.push(Evicted { addr, time_nanos: time, cache_limit: objects::cache_limit() });
    HAS_EVICTIONS.store(true, Ordering::Release);
}

/// Records the queued evictions. The recorder's lock is held, and no allocator call is half recorded, so each queued buffer
/// is cached.
#[inline]
pub fn drain_evictions(recorder: &mut Recorder) {
    if HAS_EVICTIONS.load(Ordering::Acquire) {
        drain_queue(recorder);
    }
}

#[cold]
fn drain_queue(recorder: &mut Recorder) {
    let mut queue = EVICTIONS.lock();
    for Evicted { addr, time_nanos, cache_limit } in queue.drain(..) {
        if let Some(limit) = cache_limit {
            recorder.cache_limit(now, limit);
        }
        recorder.evict(addr, time_nanos);
    }
    HAS_EVICTIONS.store(false, Ordering::Release);
}

/// Marks that the cache's limit is another one than before.
#[inline]
fn note_cache_limit(recorder: &mut Recorder) {
    if let Some(limit) = objects::cache_limit() {
        recorder.cache_limit(now, limit);
    }
}

/// Records what happened to the cache since the last allocator call: its limit was set, buffers were evicted. As
/// `drain_evictions`.
#[inline]
pub fn catch_up(recorder: &mut Recorder) {
    drain_evictions(recorder);
    note_cache_limit(recorder);
}

/// Forgets queued evictions: they belong to an earlier recording.
pub fn forget_evictions() {
    EVICTIONS.lock().clear();
    HAS_EVICTIONS.store(false, Ordering::Release);
}

/// A thread remembers that many allocations that no array has taken yet. One is usual; an operation with several outputs
/// or scratch buffers has a few.
const PENDING: usize = 8;

/// Events after which a thread that Python does not know is taken for one of MLX's own.
const NAME_TRIES: u8 = 32;

/// An allocation that no array has taken yet.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// Of the buffer.
    pub addr: u64,
    /// Number of its event, `u64::MAX` when it was not written: tells it from a later allocation at that address.
    pub alloc_index: u64,
    /// Descriptor of the array that its event was attributed to, 0 for none.
    pub expected: usize,
}

/// What a thread knows about what it is doing.
pub struct ThreadNotes {
    session: Cell<u32>,
    thread: Cell<ThreadId>,
    /// How often this thread's Python name is still to be asked for: MLX's own threads have none.
    name_tries: Cell<u8>,
    /// The primitive that is being evaluated, and its `outputs` vector; 0 outside.
    pub primitive: Cell<usize>,
    /// Address of the `std::vector<array>` that the primitive fills.
    pub outputs: Cell<usize>,
    /// Stack of the evaluation under way.
    pub evaluated: Cell<StackId>,
    /// Stack at which this thread last let go of the GIL inside MLX's extension.
    pub released: Cell<StackId>,
    /// Buffer inside the allocator's `free`, and whether the cache took it.
    pub freeing: Cell<u64>,
    /// Set by the cache's callback.
    pub is_recycled: Cell<bool>,
    /// The exception that is on its way says that an allocation failed (CUDA).
    pub failed: Cell<bool>,
    pending: [Cell<Pending>; PENDING],
    pending_count: Cell<usize>,
}

thread_local! {
    static NOTES: ThreadNotes = const {
        ThreadNotes {
            session: Cell::new(0),
            thread: Cell::new(ThreadId(0)),
            name_tries: Cell::new(0),
            primitive: Cell::new(0),
            outputs: Cell::new(0),
            evaluated: Cell::new(StackId(0)),
            released: Cell::new(StackId(0)),
            freeing: Cell::new(0),
            is_recycled: Cell::new(false),
            failed: Cell::new(false),
            pending: [const { Cell::new(Pending { addr: 0, alloc_index: 0, expected: 0 }) }; PENDING],
            pending_count: Cell::new(0),
        }
    };
}

/// This thread's notes.
#[inline]
pub fn with_notes<R>(run: impl FnOnce(&ThreadNotes) -> R) -> R {
    NOTES.with(run)
}

impl ThreadNotes {
    /// An allocation that waits for its array. When there are too many, the oldest is given back.
    #[inline]
    pub fn push_pending(&self, pending: Pending) -> Option<Pending> {
        let count = self.pending_count.get();
        if count < PENDING {
            self.pending[count].set(pending);
            self.pending_count.set(count + 1);
            return None;
        }
        let oldest = self.pending[0].get();
        for at in 1..PENDING {
            self.pending[at - 1].set(self.pending[at].get());
        }
        self.pending[PENDING - 1].set(pending);
        Some(oldest)
    }

    /// Is that allocation waiting for its array? It no longer is afterwards. 70 % of all `set_data` calls are weak copies
    /// of arrays that have an owner already: they end here, without a lock.
    #[inline]
    pub fn take_pending(&self, addr: u64) -> Option<Pending> {
        let count = self.pending_count.get();
        for at in (0..count).rev() {
            let pending = self.pending[at].get();
            if pending.addr == addr {
                self.pending[at].set(self.pending[count - 1].get());
                self.pending_count.set(count - 1);
                return Some(pending);
            }
        }
        None
    }

    /// Allocations that waited in vain, at the end of a primitive: scratch memory without an array.
    #[inline]
    pub fn drain_pending(&self) -> impl Iterator<Item = Pending> {
        (0..self.pending_count.replace(0)).map(|at| self.pending[at].get())
    }

    /// Does any allocation wait for its array?
    #[inline]
    pub fn has_pending(&self) -> bool {
        self.pending_count.get() > 0
    }

    /// This thread's id in the present recording.
    #[inline]
    pub fn thread(&self, recorder: &mut Recorder) -> ThreadId {
        if self.session.get() == session() && self.name_tries.get() == 0 {
            return self.thread.get();
        }
        self.register(recorder)
    }

    /// First sight in this recording, or no Python name yet: a thread may allocate before Python knows it.
    #[cold]
    fn register(&self, recorder: &mut Recorder) -> ThreadId {
        let is_new = self.session.replace(session()) != session();
        if is_new {
            self.pending_count.set(0);
            self.name_tries.set(NAME_TRIES);
        }
        let name = python::thread_name();
        self.name_tries.set(if name.is_some() { 0 } else { self.name_tries.get() - 1 });
        match name {
            Some(name) if !is_new => recorder.rename_thread(self.thread.get(), &name),
            None if !is_new => {}
            name => {
                let name = name.unwrap_or_else(linux::thread_name);
                self.thread.set(recorder.add_thread(linux::thread_id(), &name));
            }
        }
        self.thread.get()
    }
}

/// Takes the stack for an array that is being built: the Python frames and, on request, MLX's below them.
#[inline]
pub fn capture_built() -> StackId {
    if !CAPTURES.load(Ordering::Relaxed) {
        return StackId(0);
    }
    match memviz_pyframes::capture() {
        0 => StackId(0),
        python if RECORDS_NATIVE.load(Ordering::Relaxed) => StackId(native::capture(python)),
        python => StackId(python),
    }
}

/// Takes the Python stack for a free.
#[inline]
pub fn capture_freed() -> StackId {
    if CAPTURES_FREES.load(Ordering::Relaxed) { StackId(memviz_pyframes::capture()) } else { StackId(0) }
}
