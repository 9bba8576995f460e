//! Hooks in the allocator: its vtable's malloc and free, and the two callbacks of its cache.
#![expect(unsafe_code, reason = "stands in for functions of MLX's allocator")]

use memviz_trace::{Event, StackId};

use super::{array, contained_with};
use crate::crash::{self, Inside};
use crate::objects;
use crate::originals::{self, Ptr};
use crate::recorder::Recorder;
use crate::state::{self, Pending, ThreadNotes};

/// An event of this thread for a buffer. The time is read before the lock is taken, to hold it the shorter; the recorder
/// sees to it that time never runs back along the ring.
#[inline]
pub(super) fn event_here(notes: &ThreadNotes, recorder: &mut Recorder, time_nanos: u64, addr: u64, size: u64) -> Event {
    Event { time_nanos, addr, size, thread: notes.thread(recorder), ..Event::default() }
}

/// Fills in what the running primitive tells: its first output is taken for the owner, whose descriptor is returned, or 0.
#[inline]
pub(super) fn describe_by_context(notes: &ThreadNotes, recorder: &mut Recorder, event: &mut Event) -> usize {
    event.triggered = notes.evaluated.get();
    let primitive = notes.primitive.get();
    if primitive == 0 {
        return 0;
    }
    // SAFETY: set by the eval hook of this thread, which is still running: primitive and outputs are alive.
    let Some(desc) = (unsafe { objects::descs_of(notes.outputs.get()).next() }) else {
        // SAFETY: as above.
        (event.stream, event.device) = unsafe { objects::stream_of(primitive) };
        return 0;
    };
    // SAFETY: an element of the live vector of outputs is a live array.
    let owner = unsafe { array::owner(recorder, primitive, desc) };
    (event.built, event.what, event.stream, event.device) = (owner.built, owner.what, owner.stream, owner.device);
    desc
}

/// `Allocator::malloc`.
///
/// # Safety
/// As the original: `allocator` is MLX's allocator.
pub unsafe extern "C-unwind" fn malloc(allocator: Ptr, size: usize) -> Ptr {
    let originals = originals::get();
    if !state::is_on() {
        // SAFETY: passes the caller's arguments on.
        return unsafe { (originals.malloc)(allocator, size) };
    }
    let time_nanos = state::now();
    let mut guard = state::recorder();
    catch_up(guard.as_mut());
    let mut attempt = Attempt { recorder: guard.as_mut(), time_nanos, requested: size };
    let inside = inside(size);
    // SAFETY: passes the caller's arguments on. If it throws, `attempt` records the failure and the lock is released.
    let buffer = unsafe { (originals.malloc)(allocator, size) };
    drop(inside);
    if buffer.is_null() && size > 0 {
        return buffer;
    }
    if let Some(recorder) = attempt.succeeded() {
        // SAFETY: `buffer` was returned by this allocator a moment ago and is not freed yet.
        let real_size = unsafe { (originals.size)(allocator, buffer) };
        contained_with(recorder, |recorder| {
            record_alloc(recorder, time_nanos, buffer as u64, real_size as u64, size as u64);
        });
    }
    buffer
}

/// What other calls did to the cache comes before what this one does.
#[inline]
fn catch_up(recorder: Option<&mut Recorder>) {
    if let Some(recorder) = recorder {
        contained_with(recorder, state::catch_up);
    }
}

/// Notes, where somebody wants to know after a crash, that this thread is inside MLX's allocator.
#[inline]
fn inside(size: usize) -> Option<Inside> {
    crash::is_watching().then(|| Inside::enter(size, state::with_notes(|notes| notes.evaluated.get())))
}

#[inline]
fn record_alloc(recorder: &mut Recorder, time_nanos: u64, addr: u64, size: u64, requested: u64) {
    state::drain_evictions(recorder);
    if addr == 0 {
        return;
    }
    state::with_notes(|notes| {
        let mut event = event_here(notes, recorder, time_nanos, addr, size);
        event.slack = u32::try_from(size.saturating_sub(requested)).unwrap_or(u32::MAX);
        let expected = describe_by_context(notes, recorder, &mut event);
        let alloc_index = recorder.alloc(event);
        let forgotten = notes.push_pending(Pending { addr, alloc_index, expected });
        if forgotten.is_some() {
            // SAFETY: what the eval hook noted is alive until it returns.
            unsafe { array::own_scratch(recorder, notes, forgotten.into_iter()) };
        }
    });
}

/// A malloc under way. Dropped before `succeeded`, also by a C++ exception, it records that memory ran out.
struct Attempt<'a> {
    recorder: Option<&'a mut Recorder>,
    time_nanos: u64,
    requested: usize,
}

impl<'a> Attempt<'a> {
    fn succeeded(&mut self) -> Option<&'a mut Recorder> {
        self.recorder.take()
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let Some(recorder) = self.recorder.take() else { return };
        let (requested, time_nanos) = (self.requested as u64, self.time_nanos);
        contained_with(recorder, |recorder| {
            state::drain_evictions(recorder);
            // The CPU allocator of 0.32 counts a failed allocation as active for ever.
            let counted = originals::counters().active.saturating_sub(recorder.totals().active);
            state::with_notes(|notes| {
                let mut event = event_here(notes, recorder, time_nanos, 0, 0);
                describe_by_context(notes, recorder, &mut event);
                if event.built == StackId(0) {
                    event.built = state::capture_built();
                }
                recorder.oom(requested, counted, event);
            });
        });
        crate::oom::notify();
    }
}

/// `Allocator::free`.
///
/// # Safety
/// As the original: `buffer` was returned by this allocator and is not used any more.
pub unsafe extern "C-unwind" fn free(allocator: Ptr, buffer: Ptr) {
    let originals = originals::get();
    if !state::is_on() || buffer.is_null() {
        // SAFETY: passes the caller's arguments on.
        return unsafe { (originals.free)(allocator, buffer) };
    }
    let freed_at = state::capture_freed();
    let time_nanos = state::now();
    state::with_notes(|notes| {
        let mut guard = state::recorder();
        catch_up(guard.as_mut());
        // SAFETY: the buffer is alive until the call below.
        let size = unsafe { (originals.size)(allocator, buffer) } as u64;
        let freeing = Freeing::begin(notes, buffer as u64);
        let inside = inside(0);
        // SAFETY: passes the caller's arguments on. If it throws (CUDA up to 0.32.2), the notes are reset and the lock
        // released.
        unsafe { (originals.free)(allocator, buffer) };
        drop(inside);
        let is_recycled = freeing.end();
        if let Some(recorder) = guard.as_mut() {
            contained_with(recorder, |recorder| {
                let event = event_here(notes, recorder, time_nanos, buffer as u64, size);
                record_free(recorder, notes, event, freed_at, is_recycled);
            });
        }
    });
}

#[inline]
fn record_free(recorder: &mut Recorder, notes: &ThreadNotes, mut event: Event, freed_at: StackId, is_recycled: bool) {
    if notes.has_pending() {
        let scratch = notes.take_pending(event.addr).filter(|pending| pending.expected != 0);
        if scratch.is_some() {
            // SAFETY: what the eval hook noted is alive until it returns.
            unsafe { array::own_scratch(recorder, notes, scratch.into_iter()) };
        }
    }
    event.triggered = if freed_at == StackId(0) { notes.evaluated.get() } else { freed_at };
    recorder.free(event, is_recycled);
    state::drain_evictions(recorder);
}

/// A free under way on this thread: the cache's callback notes here that it took the buffer.
pub(super) struct Freeing<'a> {
    notes: &'a ThreadNotes,
}

impl Freeing<'_> {
    #[inline]
    pub(super) fn begin(notes: &ThreadNotes, addr: u64) -> Freeing<'_> {
        notes.freeing.set(addr);
        notes.is_recycled.set(false);
        Freeing { notes }
    }

    #[inline]
    pub(super) fn end(self) -> bool {
        self.notes.is_recycled.get()
    }
}

impl Drop for Freeing<'_> {
    #[inline]
    fn drop(&mut self) {
        self.notes.freeing.set(0);
    }
}

/// The cache asks for the size of a buffer: inside a free of that buffer this means that it is being recycled.
///
/// # Safety
/// As the original. The allocator's mutex is held.
pub unsafe extern "C-unwind" fn invoke_size(storage: Ptr, buffer: *mut Ptr) -> usize {
    // SAFETY: the argument is a reference to a buffer pointer.
    let addr = unsafe { *buffer } as u64;
    state::with_notes(|notes| {
        if notes.freeing.get() == addr {
            notes.is_recycled.set(true);
        }
    });
    match originals::get().invoke_size {
        // SAFETY: passes the caller's arguments on.
        Some(original) => unsafe { original(storage, buffer) },
        None => 0,
    }
}

/// The cache gives a buffer back: an eviction.
///
/// # Safety
/// As the original. The allocator's mutex is held, so the recorder's lock is not taken here.
pub unsafe extern "C-unwind" fn invoke_free(storage: Ptr, buffer: *mut Ptr) {
    if state::is_on() {
        // SAFETY: the argument is a reference to a buffer pointer.
        state::queue_eviction(unsafe { *buffer } as u64);
    }
    if let Some(original) = originals::get().invoke_free {
        // SAFETY: passes the caller's arguments on.
        unsafe { original(storage, buffer) };
    }
}
