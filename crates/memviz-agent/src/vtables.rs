//! Vtables of primitives: patched on first sight, so that classes of user extensions are covered like MLX's own.
//!
//! Hooks look the original up by vtable, without a lock: entries are published once, in a table that only grows.
#![expect(unsafe_code, reason = "replaces two slots of each primitive's vtable")]

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use memviz_image::SlotAddr;
use memviz_trace::StringId;

use crate::hooks::eval;
use crate::lock::Lock;
use crate::mlx::primitive::{SLOT_EVAL_CPU, SLOT_EVAL_GPU, SLOT_NAME};
use crate::originals::{EvalPrimitive, function};
use crate::recorder::Recorder;
use crate::{linux, objects};

/// MLX 0.32.4 has 137 classes; the table is never more than half full.
const PLACES: usize = 2048;

struct Entry {
    /// Address of the vtable, 0 while free. Stored last.
    vtable: AtomicUsize,
    originals: [AtomicUsize; 2],
    /// Our functions are in the vtable.
    is_patched: AtomicBool,
    /// The name is built on first call (`Compiled`, `View`) and lives in the primitive.
    has_own_name: AtomicBool,
}

static ENTRIES: [Entry; PLACES] = [const {
    Entry {
        vtable: AtomicUsize::new(0),
        originals: [const { AtomicUsize::new(0) }; 2],
        is_patched: AtomicBool::new(false),
        has_own_name: AtomicBool::new(false),
    }
}; PLACES];

/// Serialises patching, and counts the entries.
static PATCHING: Lock<usize> = Lock::new(0);
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// The entry of a vtable, or the free one where it belongs.
#[inline]
fn find(vtable: usize) -> &'static Entry {
    let mut at = (vtable >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PLACES.trailing_zeros());
    loop {
        let found = ENTRIES[at].vtable.load(Ordering::Acquire);
        if found == vtable || found == 0 {
            return &ENTRIES[at];
        }
        at = (at + 1) % PLACES;
    }
}

/// A primitive that an array was just given: patches its vtable if it is new, and builds its name if it builds one.
///
/// # Safety
/// `primitive` is a live `Primitive` that no other thread uses yet.
#[inline]
pub unsafe fn meet(primitive: usize) {
    // SAFETY: by contract.
    let vtable = unsafe { objects::vtable_of(primitive) };
    let entry = find(vtable);
    if entry.vtable.load(Ordering::Relaxed) == 0 || !entry.is_patched.load(Ordering::Relaxed) {
        // SAFETY: by contract.
        unsafe { patch(vtable, primitive) };
    } else if entry.has_own_name.load(Ordering::Relaxed) {
        // SAFETY: by contract: the first call of `name`, on the thread that builds the array.
        unsafe { objects::name_of(primitive) };
    }
}

/// # Safety
/// As `meet`; `vtable` is the primitive's.
#[cold]
unsafe fn patch(vtable: usize, primitive: usize) {
    let mut count = PATCHING.lock();
    let entry = find(vtable);
    let is_new = entry.vtable.load(Ordering::Relaxed) == 0;
    if entry.is_patched.load(Ordering::Relaxed) || (is_new && *count >= PLACES / 2) {
        return;
    }
    let Some(slots) = check(vtable) else {
        REFUSED.fetch_add(1, Ordering::Relaxed);
        return;
    };
    if is_new {
        // SAFETY: by contract, as in `meet`.
        let name = unsafe { objects::name_of(primitive) };
        let is_static = linux::images().iter().any(|image| image.contains(name.as_ptr() as u64));
        entry.has_own_name.store(!is_static, Ordering::Relaxed);
        for (original, slot) in entry.originals.iter().zip(slots) {
            original.store(slot, Ordering::Relaxed);
        }
        entry.vtable.store(vtable, Ordering::Release);
        *count += 1;
    }
    entry.is_patched.store(true, Ordering::Release);
    store(vtable, SLOT_EVAL_CPU, eval::eval_cpu as *const c_void);
    store(vtable, SLOT_EVAL_GPU, eval::eval_gpu as *const c_void);
}

/// The two functions of a vtable, if it looks like a primitive's: eval_cpu, eval_gpu and name must be code.
fn check(vtable: usize) -> Option<[usize; 2]> {
    let images = linux::images();
    let is_code = |addr: u64| images.iter().any(|image| image.is_code(addr));
    let slot = |slot: usize| linux::read_u64((vtable + 8 * slot) as u64).filter(|&addr| is_code(addr));
    slot(SLOT_NAME)?;
    Some([slot(SLOT_EVAL_CPU)? as usize, slot(SLOT_EVAL_GPU)? as usize])
}

fn store(vtable: usize, slot: usize, function: *const c_void) {
    let slot = SlotAddr((vtable + 8 * slot) as u64);
    // SAFETY: a slot of a vtable that was just read. Any caller may be given our function: it has the original's type,
    // and finds the original by the vtable. A page that cannot be made writable leaves the slot as it was, which loses
    // the context of that class and nothing else.
    if unsafe { linux::swap_pointer(slot, function) }.is_err() {
        REFUSED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Restores every vtable.
pub fn restore_all() {
    let _patching = PATCHING.lock();
    for entry in ENTRIES.iter().filter(|entry| entry.is_patched.load(Ordering::Relaxed)) {
        let vtable = entry.vtable.load(Ordering::Relaxed);
        for (slot, original) in [SLOT_EVAL_CPU, SLOT_EVAL_GPU].into_iter().zip(&entry.originals) {
            store(vtable, slot, original.load(Ordering::Relaxed) as *const c_void);
        }
        entry.is_patched.store(false, Ordering::Relaxed);
    }
}

/// Classes whose vtable could not be patched: their temporaries lack a context.
pub fn refused() -> usize {
    REFUSED.load(Ordering::Relaxed)
}

/// Number of vtables that are patched now.
pub fn patched() -> usize {
    ENTRIES.iter().filter(|entry| entry.is_patched.load(Ordering::Relaxed)).count()
}

/// MLX's own function in a slot of a patched vtable.
///
/// # Safety
/// The vtable was patched before: the caller is one of our functions in it. `slot` is 0 or 1.
#[inline]
pub unsafe fn original(vtable: usize, slot: usize) -> EvalPrimitive {
    let address = find(vtable).originals[slot].load(Ordering::Relaxed);
    // SAFETY: by contract the entry exists, and holds what the vtable held.
    unsafe { function(address as u64) }
}

/// Interned name of a primitive. Static names are known by address, not by class: a `Reduce` is a "Sum" or a "Max". Others
/// are known by content.
///
/// # Safety
/// `primitive` is a live `Primitive` whose name was built by `meet` or is static.
#[inline]
pub unsafe fn intern_name(recorder: &mut Recorder, primitive: usize) -> StringId {
    // SAFETY: by contract.
    let (name, vtable) = unsafe { (objects::name_of(primitive), objects::vtable_of(primitive)) };
    let entry = find(vtable);
    let is_static = entry.vtable.load(Ordering::Relaxed) != 0 && !entry.has_own_name.load(Ordering::Relaxed);
    if is_static { recorder.intern_static(name) } else { recorder.strings.intern(text(name)) }
}

fn text(name: &CStr) -> &str {
    name.to_str().unwrap_or("?")
}

impl Recorder {
    /// Interns a string that never moves or changes, by its address.
    fn intern_static(&mut self, name: &'static CStr) -> StringId {
        if let Some(&id) = self.static_names.get(&(name.as_ptr() as usize)) {
            return id;
        }
        let id = self.strings.intern(text(name));
        self.static_names.insert(name.as_ptr() as usize, id);
        id
    }
}
