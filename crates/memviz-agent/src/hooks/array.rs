//! Hooks in arrays: birth, taking a buffer, and at level `arrays` sharing and death.
#![expect(unsafe_code, reason = "stands in for members of MLX's array")]

use memviz_trace::{Action, Event, StackId, ThreadId, WhatId};

use super::contained;
use crate::originals::{self, Ptr};
use crate::recorder::{Owner, Recorder};
use crate::state::{self, Pending, ThreadNotes};
use crate::whats::WhatKey;
use crate::{objects, stamp, vtables};

/// Stack of a stamp: the stamp is the stack's id at level `buffers`, the array's id at level `arrays`.
#[inline]
pub fn stack_of_stamp(recorder: &Recorder, stamp: Option<u32>) -> StackId {
    let id = stamp.unwrap_or(0);
    if state::records_arrays() { recorder.stack_of_array(id) } else { StackId(id) }
}

/// `ArrayDesc::init`: every array passes here once, on the thread that builds it.
///
/// # Safety
/// As the original: `desc` is an `ArrayDesc` under construction.
pub unsafe extern "C-unwind" fn init(desc: Ptr) {
    // SAFETY: passes the caller's argument on.
    unsafe { (originals::get().init)(desc) };
    if state::is_on() {
        contained(|| {
            // SAFETY: `init` returned, so shape, dtype and primitive are set, and only this thread knows the descriptor.
            unsafe { born(desc as usize) };
        });
    }
}

/// # Safety
/// `desc` is a new `ArrayDesc`, known only to this thread.
#[inline]
unsafe fn born(desc: usize) {
    // An array that is born while a primitive runs is the primitive's own: no Python line built it. Most are weak copies.
    let is_inside = state::with_notes(|notes| notes.primitive.get() != 0);
    let stack = if is_inside { StackId(0) } else { state::capture_built() };
    // SAFETY: by contract.
    unsafe {
        let primitive = objects::primitive_of(desc);
        if primitive != 0 {
            vtables::meet(primitive);
        }
        let id = if state::records_arrays() { created(desc, primitive, stack) } else { stack.0 };
        stamp::write(desc, &objects::layout().desc, id);
    }
}

/// Level `arrays`: enters the array and returns its id.
///
/// # Safety
/// As `born`.
#[cold]
unsafe fn created(desc: usize, primitive: usize, stack: StackId) -> u32 {
    let mut guard = state::recorder();
    let Some(recorder) = guard.as_mut() else { return 0 };
    // SAFETY: by contract.
    let what = unsafe { intern_what(recorder, desc, primitive, false) };
    let id = recorder.add_array(stack);
    note_array(recorder, Action::ArrayCreated, id, 0, what, stack);
    // SAFETY: by contract.
    unsafe { note_inputs(recorder, id, desc) };
    id
}

/// What the array is computed from: it keeps these alive until it is evaluated.
///
/// # Safety
/// As `born`.
unsafe fn note_inputs(recorder: &mut Recorder, id: u32, desc: usize) {
    let layout = &objects::layout().desc;
    // SAFETY: by contract; every input is a live array.
    let mut ids = unsafe { objects::descs_of(desc + layout.inputs) }
        .map(|input| unsafe { stamp::read(input, layout) }.unwrap_or(0))
        .filter(|&input| input != 0)
        .peekable();
    while ids.peek().is_some() {
        let inputs: [u32; 4] = std::array::from_fn(|_| ids.next().unwrap_or(0));
        let (thread, time_nanos) = (state::with_notes(|notes| notes.thread(recorder)), state::now());
        recorder.note(Event { time_nanos, thread, ..Event::array_inputs(id, &inputs) });
    }
}

fn note_array(recorder: &mut Recorder, action: Action, array: u32, addr: u64, what: WhatId, built: StackId) {
    let (thread, triggered) = state::with_notes(|notes| (notes.thread(recorder), notes.evaluated.get()));
    let time_nanos = state::now();
    let slack = array;
    recorder.note(Event { time_nanos, addr, slack, what, built, triggered, thread, action, ..Event::default() });
}

/// Primitive, dtype and shape of a descriptor.
///
/// # Safety
/// `desc` is a live `ArrayDesc`, `primitive` a live `Primitive` or 0.
#[inline]
pub unsafe fn intern_what(recorder: &mut Recorder, desc: usize, primitive: usize, is_temporary: bool) -> WhatId {
    // SAFETY: by contract.
    unsafe {
        let primitive =
            if primitive == 0 { memviz_trace::StringId(0) } else { vtables::intern_name(recorder, primitive) };
        let (dtype, shape) = (objects::dtype_of(desc), objects::shape_of(desc));
        recorder.whats.intern(WhatKey { primitive, dtype, is_temporary, shape })
    }
}

/// The short `array::set_data`.
///
/// # Safety
/// As the original.
pub unsafe extern "C-unwind" fn set_data_short(array: Ptr, buffer: Ptr, deleter: Ptr) {
    if state::is_on() {
        // SAFETY: the caller's array and buffer are alive.
        unsafe { took_buffer(array, buffer) };
    }
    // SAFETY: passes the caller's arguments on.
    unsafe { (originals::get().set_data_short)(array, buffer, deleter) };
}

/// The long `array::set_data`, with one argument more than some releases pass; see `SetDataLong`.
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
        // SAFETY: the caller's array and buffer are alive.
        unsafe { took_buffer(array, buffer) };
    }
    // SAFETY: passes the caller's arguments on.
    unsafe { (originals::get().set_data_long)(array, buffer, size, strides, flags, sixth, seventh) };
}

/// # Safety
/// `array` is a live array, `argument` the second argument of `set_data`.
#[inline]
unsafe fn took_buffer(array: Ptr, argument: Ptr) {
    // SAFETY: by contract.
    let (addr, desc) = unsafe { (objects::buffer_in(argument), objects::desc_of(array)) };
    state::with_notes(|notes| {
        let Some(pending) = notes.take_pending(addr) else { return };
        // Nearly always the first output takes the first allocation, and the event says so already.
        if pending.expected == desc && !state::records_arrays() {
            return;
        }
        contained(|| {
            if let Some(recorder) = state::recorder().as_mut() {
                // SAFETY: the descriptor of a live array.
                unsafe { own(recorder, notes, desc, pending) };
            }
        });
    });
}

/// # Safety
/// `desc` is a live `ArrayDesc` that is about to own a pending buffer.
pub(super) unsafe fn own(recorder: &mut Recorder, notes: &ThreadNotes, desc: usize, pending: Pending) {
    // SAFETY: by contract; a running primitive is alive.
    let owner = unsafe { owner(recorder, notes.primitive.get(), desc) };
    recorder.own(pending.addr, pending.alloc_index, owner);
    if state::records_arrays() {
        // SAFETY: by contract.
        let stamp = unsafe { stamp::read(desc, &objects::layout().desc) };
        note_array(recorder, Action::ArrayTookBuffer, stamp.unwrap_or(0), pending.addr, owner.what, owner.built);
    }
}

/// What an array tells of a buffer that it takes while `running` is evaluated, 0 for nothing.
///
/// # Safety
/// `desc` is a live `ArrayDesc`, `running` a live `Primitive` or 0.
#[inline]
pub unsafe fn owner(recorder: &mut Recorder, running: usize, desc: usize) -> Owner {
    // SAFETY: by contract.
    unsafe {
        let stamp = stamp::read(desc, &objects::layout().desc);
        let own = objects::primitive_of(desc);
        // An array without a primitive, made while one runs, is a temporary of that primitive.
        let (primitive, is_temporary) = if own == 0 { (running, running != 0) } else { (own, false) };
        let (stream, device) = match primitive {
            0 => (memviz_trace::NO_STREAM, memviz_trace::Device::default()),
            primitive => objects::stream_of(primitive),
        };
        let what = intern_what(recorder, desc, primitive, is_temporary);
        Owner { built: stack_of_stamp(recorder, stamp), what, stream, device }
    }
}

/// The long `array::copy_shared_buffer` (the short one calls it): level `arrays` only.
///
/// # Safety
/// As the original.
pub unsafe extern "C-unwind" fn copy_shared_buffer(
    array: Ptr,
    other: Ptr,
    strides: Ptr,
    flags: u64,
    size: usize,
    offset: i64,
) {
    if state::is_on() {
        contained(|| {
            let mut guard = state::recorder();
            let Some(recorder) = guard.as_mut() else { return };
            // SAFETY: both arrays are alive, by the original's contract.
            let (stamp, addr) = unsafe {
                let stamp = stamp::read(objects::desc_of(array), &objects::layout().desc);
                (stamp, objects::buffer_of(objects::desc_of(other)))
            };
            let id = stamp.unwrap_or(0);
            let built = recorder.stack_of_array(id);
            note_array(recorder, Action::ArraySharesBuffer, id, addr, WhatId(0), built);
        });
    }
    // SAFETY: passes the caller's arguments on.
    unsafe { (originals::get().copy_shared_buffer)(array, other, strides, flags, size, offset) };
}

/// `~ArrayDesc`: level `arrays` only.
///
/// # Safety
/// As the original: `desc` is not used any more.
pub unsafe extern "C-unwind" fn drop_desc(desc: Ptr) {
    if state::is_on() {
        contained(|| {
            // SAFETY: the descriptor is alive until the original runs.
            let stamp = unsafe { stamp::read(desc as usize, &objects::layout().desc) };
            let Some(id) = stamp.filter(|&id| id != 0) else { return };
            if let Some(recorder) = state::recorder().as_mut() {
                note_array(recorder, Action::ArrayDied, id, 0, WhatId(0), recorder.stack_of_array(id));
            }
        });
    }
    // SAFETY: passes the caller's argument on.
    unsafe { (originals::get().drop)(desc) };
}

/// Level `arrays`: the running primitive fills these arrays.
///
/// # Safety
/// `outputs` is a live `std::vector<array>`.
#[cold]
pub unsafe fn evaluated(outputs: usize) {
    let mut guard = state::recorder();
    let Some(recorder) = guard.as_mut() else { return };
    // SAFETY: by contract.
    for desc in unsafe { objects::descs_of(outputs) } {
        // SAFETY: an element of a live vector is a live array.
        let stamp = unsafe { stamp::read(desc, &objects::layout().desc) };
        if let Some(id) = stamp.filter(|&id| id != 0) {
            note_array(recorder, Action::ArrayEvaluated, id, 0, WhatId(0), recorder.stack_of_array(id));
        }
    }
}

/// Scratch memory of the running primitive that no array took: it belongs to the primitive all the same.
///
/// # Safety
/// The notes are those of this thread, whose running primitive, if any, and outputs are alive.
#[cold]
pub unsafe fn own_scratch(recorder: &mut Recorder, notes: &ThreadNotes, scratch: impl Iterator<Item = Pending>) {
    let (primitive, outputs) = (notes.primitive.get(), notes.outputs.get());
    if primitive == 0 {
        return;
    }
    // SAFETY: by contract.
    let (name, (stream, device)) =
        unsafe { (vtables::intern_name(recorder, primitive), objects::stream_of(primitive)) };
    let key = WhatKey { primitive: name, dtype: crate::whats::NO_DTYPE, is_temporary: true, shape: &[] };
    let what = recorder.whats.intern(key);
    // SAFETY: by contract.
    let built = unsafe { stack_of_outputs(recorder, outputs) };
    for pending in scratch {
        recorder.own(pending.addr, pending.alloc_index, Owner { built, what, stream, device });
    }
}

/// The line that built the first of these arrays.
///
/// # Safety
/// `outputs` is a live `std::vector<array>` that does not change during the call.
pub unsafe fn stack_of_outputs(recorder: &Recorder, outputs: usize) -> StackId {
    // SAFETY: by contract.
    let stamp =
        unsafe { objects::descs_of(outputs).next().and_then(|desc| stamp::read(desc, &objects::layout().desc)) };
    stack_of_stamp(recorder, stamp)
}

/// The recorder's id of the thread, for marks.
pub fn thread_here(recorder: &mut Recorder) -> ThreadId {
    state::with_notes(|notes| notes.thread(recorder))
}
