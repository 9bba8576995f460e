//! Hooks around evaluation: which line asked for it, and which primitive runs.
#![expect(unsafe_code, reason = "stands in for MLX's eval functions")]

use std::cell::Cell;

use memviz_trace::StackId;

use super::contained;
use crate::originals::{self, EvalPrimitive, Ptr};
use crate::state::ThreadNotes;
use crate::{mlx, objects, state, vtables};

/// Sets a thread's note for as long as it lives; what was there comes back also when a C++ exception passes.
struct Scope<T: Copy> {
    note: fn(&state::ThreadNotes) -> &Cell<T>,
    before: T,
}

impl<T: Copy> Scope<T> {
    #[inline]
    fn enter(note: fn(&state::ThreadNotes) -> &Cell<T>, value: T) -> Scope<T> {
        Scope { note, before: state::with_notes(|notes| note(notes).replace(value)) }
    }
}

impl<T: Copy> Drop for Scope<T> {
    #[inline]
    fn drop(&mut self) {
        state::with_notes(|notes| (self.note)(notes).set(self.before));
    }
}

/// Stack that an evaluation starting now comes from: this thread's own if it holds the GIL, else the one at which it let go
/// of it.
#[inline]
fn asked_from() -> StackId {
    match state::capture_built() {
        StackId(0) => state::with_notes(|notes| notes.released.get()),
        stack => stack,
    }
}

/// `eval(std::vector<array>)`.
///
/// # Safety
/// As the original.
pub unsafe extern "C-unwind" fn eval(arrays: Ptr) {
    let _scope = state::is_on().then(|| Scope::enter(|notes| &notes.evaluated, asked_from()));
    // SAFETY: passes the caller's argument on.
    unsafe { (originals::get().eval)(arrays) };
}

/// `async_eval(std::vector<array>)`.
///
/// # Safety
/// As the original.
pub unsafe extern "C-unwind" fn async_eval(arrays: Ptr) {
    let _scope = state::is_on().then(|| Scope::enter(|notes| &notes.evaluated, asked_from()));
    // SAFETY: passes the caller's argument on.
    unsafe { (originals::get().async_eval)(arrays) };
}

/// `PyEval_SaveThread` as MLX's extension calls it: the last moment at which the thread's stack may be walked before `eval`
/// runs without the GIL.
///
/// # Safety
/// As the original: the GIL is held.
pub unsafe extern "C-unwind" fn save_thread() -> Ptr {
    if state::is_on() {
        contained(|| {
            let stack = state::capture_built();
            state::with_notes(|notes| notes.released.set(stack));
        });
    }
    // SAFETY: nothing is passed.
    unsafe { (originals::get().save_thread)() }
}

/// `Primitive::eval_cpu`.
///
/// # Safety
/// As the original.
pub unsafe extern "C-unwind" fn eval_cpu(primitive: Ptr, inputs: Ptr, outputs: Ptr) {
    // SAFETY: the caller's arguments.
    unsafe { eval_primitive(mlx::primitive::SLOT_EVAL_CPU, primitive, inputs, outputs) };
}

/// `Primitive::eval_gpu`.
///
/// # Safety
/// As the original.
pub unsafe extern "C-unwind" fn eval_gpu(primitive: Ptr, inputs: Ptr, outputs: Ptr) {
    // SAFETY: the caller's arguments.
    unsafe { eval_primitive(mlx::primitive::SLOT_EVAL_GPU, primitive, inputs, outputs) };
}

/// # Safety
/// `slot` is that of the function that MLX called; the rest as it passed them.
#[inline(always)]
unsafe fn eval_primitive(slot: usize, primitive: Ptr, inputs: Ptr, outputs: Ptr) {
    // SAFETY: MLX just called through this primitive's vtable.
    let original: EvalPrimitive = unsafe { vtables::original(objects::vtable_of(primitive as usize), slot) };
    if !state::is_on() {
        // SAFETY: passes the caller's arguments on.
        return unsafe { original(primitive, inputs, outputs) };
    }
    state::with_notes(|notes| {
        let _running = Running::enter(notes, primitive as usize, outputs as usize);
        // SAFETY: passes the caller's arguments on.
        unsafe { original(primitive, inputs, outputs) };
    });
}

/// The primitive that runs on this thread and the vector that it fills are in its notes for as long as this lives.
struct Running<'a> {
    notes: &'a ThreadNotes,
    /// Primitive and outputs that ran before: a primitive may evaluate another.
    before: (usize, usize),
}

impl Running<'_> {
    #[inline]
    fn enter(notes: &ThreadNotes, primitive: usize, outputs: usize) -> Running<'_> {
        if state::records_arrays() {
            // SAFETY: the vector is alive while its primitive runs.
            contained(|| unsafe { super::array::evaluated(outputs) });
        }
        Running { notes, before: (notes.primitive.replace(primitive), notes.outputs.replace(outputs)) }
    }

    #[cold]
    fn own_scratch(&self) {
        contained(|| {
            let scratch = self.notes.drain_pending();
            if let Some(recorder) = state::recorder().as_mut() {
                // SAFETY: the primitive and its outputs are alive until the hook returns.
                unsafe { super::array::own_scratch(recorder, self.notes, scratch) };
            }
        });
    }
}

impl Drop for Running<'_> {
    /// Also when the primitive threw.
    #[inline]
    fn drop(&mut self) {
        if self.notes.has_pending() {
            self.own_scratch();
        }
        if self.notes.failed.get() {
            // SAFETY: the primitive and its outputs are alive until the hook returns.
            unsafe { super::cuda::failed(self.notes) };
        }
        self.notes.primitive.set(self.before.0);
        self.notes.outputs.set(self.before.1);
    }
}
