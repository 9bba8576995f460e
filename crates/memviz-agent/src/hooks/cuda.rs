//! Hooks for CUDA's allocator, whose buffers are handles to memory that can move, and most of whose allocations bypass the
//! vtable: `malloc_async` is called directly, and its buffer is first seen when an array takes it in `set_data`.
//!
//! Our lock is not held across an allocation here: CUDA may wait for work of other threads inside. So between the moment at
//! which MLX counts a buffer and the one at which it is recorded, on the same thread and a moment later, our sums lack that
//! buffer and nothing else. A buffer is recorded before it can be freed; its address is recorded after the free that made it
//! available, because frees are recorded under the lock that is held across the real one.
#![expect(unsafe_code, reason = "stands in for functions of MLX's CUDA back end")]

use std::ffi::CStr;

use memviz_trace::{Event, StackId};

use super::alloc::{Freeing, describe_by_context, event_here};
use super::{array, contained};
use crate::linux;
use crate::mlx::SetDataAbi;
use crate::objects::{self, Memory};
use crate::originals::{self, Ptr};
use crate::places::Mover;
use crate::recorder::Recorder;
use crate::state::{self, Pending, ThreadNotes};

/// Where another buffer's memory is now. It may be moving at this moment, which takes MLX nanoseconds from the free of the old
/// memory to the store of the new address; and it may be a buffer that is gone, so it is read through the kernel.
fn locate(handle: u64) -> Option<(u64, u16)> {
    objects::allocator().memory(handle, linux::read_u64).map(|memory| (memory.addr, memory.flags))
}

/// As `locate`, waiting for the address to differ from `addr`.
fn locate_beside(addr: u64) -> impl Fn(u64) -> Option<(u64, u16)> {
    move |handle| {
        let moved = || locate(handle).filter(|&(now, _)| now != addr);
        (0..1000).find_map(|_| {
            let found = moved();
            if found.is_none() {
                std::thread::yield_now();
            }
            found
        })
    }
}

/// A buffer that this thread has just got.
struct Got {
    time_nanos: u64,
    handle: u64,
    memory: Memory,
    requested: u64,
}

impl Got {
    fn event(&self, recorder: &mut Recorder, notes: &ThreadNotes) -> Event {
        state::drain_evictions(recorder);
        let Memory { addr, size, flags, .. } = self.memory;
        let slack = u32::try_from(size.saturating_sub(self.requested)).unwrap_or(u32::MAX);
        Event { slack, flags, ..event_here(notes, recorder, self.time_nanos, addr, size) }
    }

    /// Records it; `expected` is the descriptor that `event` was attributed to.
    fn record(&self, recorder: &mut Recorder, event: Event, expected: usize) -> Pending {
        let alloc_index = recorder.alloc_placed(self.handle, event, &locate_beside(event.addr));
        Pending { addr: event.addr, alloc_index, expected }
    }
}

/// `CudaAllocator::malloc`, which arrays made on the host and CPU streams call.
///
/// # Safety
/// As the original: `allocator` is MLX's allocator.
pub unsafe extern "C-unwind" fn malloc(allocator: Ptr, size: usize) -> Ptr {
    let originals = originals::get();
    if !state::is_on() {
        // SAFETY: passes the caller's arguments on.
        return unsafe { (originals.malloc)(allocator, size) };
    }
    let attempt = Attempt { requested: size as u64 };
    // SAFETY: passes the caller's arguments on. If it throws, `attempt` records the failure.
    let buffer = unsafe { (originals.malloc)(allocator, size) };
    std::mem::forget(attempt);
    if !buffer.is_null() {
        contained(|| {
            state::with_notes(|notes| {
                let (time_nanos, handle, requested) = (state::now(), buffer as u64, size as u64);
                // SAFETY: the allocator returned it a moment ago and it is not freed yet.
                let memory = unsafe { objects::memory_of(handle) };
                let mut guard = state::recorder();
                let Some(recorder) = guard.as_mut() else { return };
                let got = Got { time_nanos, handle, memory, requested };
                let mut event = got.event(recorder, notes);
                let expected = describe_by_context(notes, recorder, &mut event);
                let forgotten = notes.push_pending(got.record(recorder, event, expected));
                // SAFETY: what the eval hook noted is alive until it returns.
                unsafe { array::own_scratch(recorder, notes, forgotten.into_iter()) };
            });
        });
    }
    buffer
}

/// A malloc under way. Dropped, that is by a C++ exception, it records that memory ran out.
struct Attempt {
    requested: u64,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        state::with_notes(|notes| {
            notes.failed.set(false);
            record_oom(notes, self.requested);
        });
    }
}

/// Records that an allocation of this thread failed, with what the driver says at this moment.
fn record_oom(notes: &ThreadNotes, requested: u64) {
    contained(|| {
        let built = state::capture_built();
        if let Some(recorder) = state::recorder().as_mut() {
            state::drain_evictions(recorder);
            let mut event = event_here(notes, recorder, state::now(), 0, 0);
            describe_by_context(notes, recorder, &mut event);
            if event.built == StackId(0) {
                event.built = built;
            }
            recorder.oom(requested, 0, event);
        }
    });
    contained(|| {
        let _point = crate::session::checkpoint_of_oom();
    });
    crate::oom::notify();
}

/// `CudaAllocator::free`.
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
        // SAFETY: the buffer is alive until the call below, and its memory does not move: nobody else has it.
        let memory = unsafe { objects::memory_of(buffer as u64) };
        let mut guard = state::recorder();
        let freeing = Freeing::begin(notes, buffer as u64);
        // SAFETY: passes the caller's arguments on. If it throws (up to 0.32.2), the notes are reset and the lock released.
        unsafe { (originals.free)(allocator, buffer) };
        let is_recycled = freeing.end();
        if let Some(recorder) = guard.as_mut() {
            super::contained_with(recorder, |recorder| {
                let mut event = event_here(notes, recorder, time_nanos, memory.addr, memory.size);
                event.flags = memory.flags;
                event.triggered = if freed_at == StackId(0) { notes.evaluated.get() } else { freed_at };
                if notes.has_pending() {
                    let scratch = notes.take_pending(memory.addr).filter(|pending| pending.expected != 0);
                    // SAFETY: what the eval hook noted is alive until it returns.
                    unsafe { array::own_scratch(recorder, notes, scratch.into_iter()) };
                }
                recorder.free_placed(buffer as u64, event, is_recycled, &locate_beside(memory.addr));
                state::drain_evictions(recorder);
            });
        }
    });
}

/// The short `array::set_data`.
///
/// # Safety
/// As the original.
pub unsafe extern "C-unwind" fn set_data_short(array: Ptr, buffer: Ptr, deleter: Ptr) {
    if state::is_on() {
        // SAFETY: the caller's array and buffer are alive.
        unsafe { took_buffer(array, buffer, deleter) };
    }
    // SAFETY: passes the caller's arguments on.
    unsafe { (originals::get().set_data_short)(array, buffer, deleter) };
}

/// The long `array::set_data`; see `SetDataLong`.
///
/// # Safety
/// As the original.
pub unsafe extern "C-unwind" fn set_data_long(
    array: Ptr,
    buffer: Ptr,
    size: usize,
    strides: Ptr,
    flags: u64,
    sixth: Ptr,
    seventh: Ptr,
) {
    if state::is_on() {
        let deleter = if objects::layout().set_data == SetDataAbi::BufferAndOffset { seventh } else { sixth };
        // SAFETY: the caller's array and buffer are alive.
        unsafe { took_buffer(array, buffer, deleter) };
    }
    // SAFETY: passes the caller's arguments on.
    unsafe { (originals::get().set_data_long)(array, buffer, size, strides, flags, sixth, seventh) };
}

/// # Safety
/// `array` is a live array; `argument` and `deleter` are what a caller of `set_data` passed.
#[inline]
unsafe fn took_buffer(array: Ptr, argument: Ptr, deleter: Ptr) {
    // SAFETY: by contract.
    let (handle, desc) = unsafe { (objects::buffer_in(argument), objects::desc_of(array)) };
    if handle == 0 {
        return;
    }
    state::with_notes(|notes| {
        // Most calls are weak copies of arrays that have an owner: they end here, without a look at the buffer, which few
        // of them have in their cache, and without the lock.
        // SAFETY: by contract.
        let is_owned = unsafe { objects::is_owned(argument, deleter) };
        if !is_owned && !notes.has_pending() {
            return;
        }
        contained(|| {
            // SAFETY: `set_data` is given a live buffer.
            let memory = unsafe { objects::memory_of(handle) };
            let pending = match notes.take_pending(memory.addr) {
                Some(pending) if pending.expected == desc && !state::records_arrays() => return,
                None if !is_owned => return,
                pending => pending,
            };
            let time_nanos = state::now();
            let mut guard = state::recorder();
            let Some(recorder) = guard.as_mut() else { return };
            // SAFETY: the descriptor of a live array, and a live buffer.
            unsafe {
                let adopted = || adopt(recorder, notes, desc, time_nanos, handle, memory);
                let Some(pending) = pending.or_else(adopted) else { return };
                if pending.expected != desc || state::records_arrays() {
                    array::own(recorder, notes, desc, pending);
                }
            }
        });
    });
}

/// Records the allocation of a buffer that `malloc_async` returned to this thread a moment ago; `None` if it is known.
///
/// # Safety
/// `memory` is that of the live buffer `handle`, and `desc` is the live descriptor that takes it.
unsafe fn adopt(
    recorder: &mut Recorder,
    notes: &ThreadNotes,
    desc: usize,
    time_nanos: u64,
    handle: u64,
    memory: Memory,
) -> Option<Pending> {
    state::drain_evictions(recorder);
    if recorder.is_active(handle, memory.addr) {
        return None;
    }
    // SAFETY: by contract. A buffer can be larger than what its array shows of it.
    let requested = unsafe { objects::bytes_of(desc) }.min(memory.size);
    let got = Got { time_nanos, handle, memory, requested };
    let mut event = got.event(recorder, notes);
    // SAFETY: by contract.
    unsafe { describe_by_array(notes, recorder, &mut event, desc) };
    Some(got.record(recorder, event, desc))
}

/// Fills in what the array that takes the buffer tells, and for one that no line built, because it is a temporary, the line
/// that built what the running primitive computes.
///
/// # Safety
/// `desc` is a live descriptor; the notes are those of this thread, whose running primitive and outputs are alive.
unsafe fn describe_by_array(notes: &ThreadNotes, recorder: &mut Recorder, event: &mut Event, desc: usize) {
    let running = notes.primitive.get();
    // SAFETY: by contract.
    let owner = unsafe { array::owner(recorder, running, desc) };
    event.triggered = notes.evaluated.get();
    (event.built, event.what, event.stream, event.device) = (owner.built, owner.what, owner.stream, owner.device);
    if event.built == StackId(0) && running != 0 {
        // SAFETY: by contract.
        event.built = unsafe { array::stack_of_outputs(recorder, notes.outputs.get()) };
    }
}

/// `Buffer::raw_ptr`: memory on the device moves to memory that the host can use.
///
/// # Safety
/// As the original: `this` is a `Buffer`.
pub unsafe extern "C-unwind" fn raw_ptr(this: Ptr) -> Ptr {
    let original = match originals::get().raw_ptr {
        Some(original) => original,
        None => unreachable!("hooked only where it is known"),
    };
    // SAFETY: a `Buffer` is one word.
    let handle = unsafe { *this.cast::<u64>() };
    // SAFETY: a `Buffer` holds a live buffer or null.
    let may_move = state::is_on() && handle != 0 && unsafe { objects::memory_of(handle) }.is_on_device;
    // SAFETY: passes the caller's argument on.
    let ptr = unsafe { original(this) };
    if may_move {
        contained(|| record_move(handle));
    }
    ptr
}

#[cold]
fn record_move(handle: u64) {
    let stack = state::capture_built();
    state::with_notes(|notes| {
        let mut guard = state::recorder();
        let Some(recorder) = guard.as_mut() else { return };
        let Some((addr, flags)) = locate(handle) else { return };
        let triggered = [stack, notes.evaluated.get(), notes.released.get()];
        let triggered = triggered.into_iter().find(|&stack| stack != StackId(0)).unwrap_or_default();
        let mover = Mover { time_nanos: state::now(), triggered, thread: notes.thread(recorder) };
        state::drain_evictions(recorder);
        recorder.moved(handle, addr, flags, mover, &locate_beside(addr));
    });
}

/// `__cxa_throw` as libmlx calls it: `malloc_async` reports a failed allocation by an exception and nothing else.
///
/// # Safety
/// As the original: a new exception of that type.
pub unsafe extern "C-unwind" fn throw(exception: Ptr, kind: Ptr, destructor: Ptr) -> ! {
    if state::is_on() {
        // SAFETY: by contract.
        if unsafe { is_out_of_memory(exception, kind) } {
            // The lock may be held by this very thread, so it is recorded when the exception leaves the primitive.
            state::with_notes(|notes| notes.failed.set(notes.primitive.get() != 0));
        }
    }
    match originals::get().throw {
        // SAFETY: passes the caller's arguments on.
        Some(original) => unsafe { original(exception, kind, destructor) },
        None => unreachable!("hooked only where it is known"),
    }
}

/// Is it what `malloc_async` throws: "cudaMallocAsync(…) failed: out of memory", or "[malloc] Unable to allocate …"?
///
/// # Safety
/// `exception` is an object of the type that `kind`, a `std::type_info`, describes.
unsafe fn is_out_of_memory(exception: Ptr, kind: Ptr) -> bool {
    // SAFETY: by contract; `type_info` keeps its name in its second word, and `std::runtime_error` the address of its
    // message, which ends in a zero byte (libstdc++'s copy-on-write string).
    unsafe {
        if CStr::from_ptr(*kind.cast::<*const std::ffi::c_char>().add(1)) != c"St13runtime_error" {
            return false;
        }
        let text = *exception.cast::<*const std::ffi::c_char>().add(1);
        !text.is_null() && says_out_of_memory(CStr::from_ptr(text).to_bytes())
    }
}

fn says_out_of_memory(text: &[u8]) -> bool {
    (text.starts_with(b"cudaMalloc") && text.ends_with(b"out of memory"))
        || text.starts_with(b"[malloc] Unable to allocate")
}

/// The primitive that this thread runs ended by an exception after an allocation of it failed: the first output without
/// memory is what it was for, else a temporary, of which the size is not known.
///
/// # Safety
/// The notes are those of this thread, whose running primitive and outputs are alive.
#[cold]
pub unsafe fn failed(notes: &ThreadNotes) {
    notes.failed.set(false);
    // SAFETY: by contract.
    let requested = unsafe {
        let waiting = |desc: &usize| objects::buffer_of(*desc) == 0;
        objects::descs_of(notes.outputs.get()).find(waiting).map_or(0, |desc| objects::bytes_of(desc))
    };
    record_oom(notes, requested);
}

#[cfg(test)]
mod tests {
    use super::says_out_of_memory;

    #[test]
    fn only_failed_allocations_are_taken_for_one() {
        for text in [
            "cudaMallocAsync(&data, size, stream) failed: out of memory",
            "cudaMallocManaged(&data, size) failed: out of memory",
            "[malloc] Unable to allocate 1024 bytes.",
        ] {
            assert!(says_out_of_memory(text.as_bytes()), "{text}");
        }
        for text in
            ["cudaGraphInstantiate(&graph) failed: out of memory", "cudaMallocAsync failed: invalid argument", ""]
        {
            assert!(!says_out_of_memory(text.as_bytes()), "{text}");
        }
    }
}
