//! Start, stop and what lies between.
//!
//! ```text
//!            probe, self-test             stop
//!   Idle ───────────────────▶ Recording ──────▶ Idle
//!    │ refused: stays Idle        │ fork, in the child
//!    ▼                            ▼
//!   AttachError                 detached: every pointer restored
//! ```
//!
//! Installing is all or nothing, and stopping restores every pointer. Code is never unloaded: a thread may be inside a hook.
#![expect(unsafe_code, reason = "exchanges pointers in MLX's tables")]

use std::ffi::c_void;
use std::sync::OnceLock;
use std::time::Duration;

use memviz_image::SlotAddr;
use memviz_trace::{Checkpoint, CheckpointKind, Context, DeviceMemory, Level, MarkKind, Totals};

use crate::error::AttachError;
use crate::hooks::{alloc, array};
use crate::linux::{self, ProtectError};
use crate::lock::Lock;
use crate::mlx::backend::Kind;
use crate::objects::Memory;
use crate::options::Options;
use crate::plan::{self, Function, PLAN};
use crate::probe::{self, AllocatorProbe, CacheWords, HookSlot, Probe};
use crate::recorder::{Cached, Recorder};
use crate::state::{self, Switches};
use crate::{driver, fork, native, objects, originals, stamp, vtables};

static PROBE: OnceLock<Probe> = OnceLock::new();

/// What was replaced, and by what it must be replaced again.
static INSTALLED: Lock<Option<Installed>> = Lock::new(None);

#[derive(Debug, Default)]
struct Installed {
    replaced: Vec<Replaced>,
    /// Images loaded when the slots were last looked for.
    load_count: u64,
    level: Level,
}

#[derive(Clone, Copy, Debug)]
struct Replaced {
    slot: SlotAddr,
    before: u64,
    after: u64,
}

/// Looks at the loaded MLX; the result is kept.
///
/// # Errors
/// Why it cannot be recorded.
pub fn probe(version: &str) -> Result<&'static Probe, AttachError> {
    if let Some(probe) = PROBE.get() {
        return Ok(probe);
    }
    let probe = probe::probe(version)?;
    objects::set_layout(probe.layout);
    Ok(PROBE.get_or_init(|| probe))
}

/// Starts recording in the MLX that `probe` found. The caller holds the GIL.
///
/// # Errors
/// A recording runs already, or the hooks cannot be installed; everything is as before then.
pub fn start(probe: &'static Probe, options: Options) -> Result<(), AttachError> {
    if fork::is_child() {
        return Err(AttachError::ForkedChild);
    }
    fork::register();
    let mut installed = INSTALLED.lock();
    if installed.is_some() {
        return Err(AttachError::AlreadyRecording);
    }
    if options.native {
        native::prepare();
    }
    let slots = probe::slots(probe)?;
    let mut new = Installed { load_count: linux::load_count(), level: options.level, ..Installed::default() };
    match new.install(probe, &slots, options) {
        Ok(()) => {
            *installed = Some(new);
            Ok(())
        }
        Err(error) => {
            new.restore();
            state::turn_off();
            *state::recorder() = None;
            Err(error.into())
        }
    }
}

impl Installed {
    fn install(&mut self, probe: &Probe, slots: &[HookSlot], options: Options) -> Result<(), ProtectError> {
        state::forget_evictions();
        let device = device_memory(probe);
        let mut recorder = state::recorder();
        stamp::renew(linux::monotonic_nanos());
        state::turn_on(Switches {
            captures: options.context != Context::None,
            captures_frees: options.context == Context::All,
            records_arrays: options.level == Level::Arrays,
            records_native: options.native,
        });
        // From here on every malloc and free of MLX waits for the recorder's lock (on CUDA, its records do).
        self.swap_allocator(&probe.allocator)?;
        let totals = originals::counters();
        if totals != Totals::default() {
            // A call that another thread had begun before ends within microseconds.
            std::thread::sleep(Duration::from_millis(1));
        }
        let (totals, cached) = base(probe.allocator.cache.as_ref());
        state::forget_evictions();
        let mut new = Recorder::new(options, totals, &cached);
        new.checkpoint(CheckpointKind::Start, state::now(), totals, device);
        *recorder = Some(new);
        drop(recorder);
        self.patch_slots(probe, slots)
    }

    fn swap_allocator(&mut self, allocator: &AllocatorProbe) -> Result<(), ProtectError> {
        let vtable = own_vtable(allocator);
        self.replace(SlotAddr(allocator.object), vtable)?;
        if let Some(cache) = &allocator.cache {
            self.replace(cache.invoke_size, alloc::invoke_size as *const c_void as u64)?;
            self.replace(cache.invoke_free, alloc::invoke_free as *const c_void as u64)?;
        }
        Ok(())
    }

    fn patch_slots(&mut self, probe: &Probe, slots: &[HookSlot]) -> Result<(), ProtectError> {
        for slot in slots {
            let Some(planned) = PLAN.iter().find(|planned| planned.function == slot.function) else { continue };
            let Some(hook) = planned.hook(probe.allocator.table.kind) else { continue };
            let is_needed = planned.level == Level::Buffers || self.level == Level::Arrays;
            if is_needed && !self.replaced.iter().any(|replaced| replaced.slot == slot.addr) {
                self.replace(slot.addr, hook as u64)?;
            }
        }
        Ok(())
    }

    fn replace(&mut self, slot: SlotAddr, after: u64) -> Result<(), ProtectError> {
        // SAFETY: a slot of the plan, the allocator's vtable pointer, or an invoker of its cache: each is an aligned pointer
        // of MLX's that is called with the type our function has.
        let before = unsafe { linux::swap_pointer(slot, after as *const c_void) }? as u64;
        self.replaced.push(Replaced { slot, before, after });
        Ok(())
    }

    /// Puts everything back that is still ours: a tool that hooked after us keeps its hook.
    fn restore(&mut self) {
        vtables::restore_all();
        for replaced in self.replaced.drain(..).rev() {
            if linux::read_u64(replaced.slot.0) == Some(replaced.after) {
                // SAFETY: as in `replace`; the pointer that MLX had there before. A page that could be made writable
                // once can be made so again; if not, the hook stays and does nothing.
                let _restored = unsafe { linux::swap_pointer(replaced.slot, replaced.before as *const c_void) };
            }
        }
    }

    /// Lazy binding may have put MLX's function back into a slot, and modules loaded since have slots of their own.
    fn refresh(&mut self, probe: &Probe) {
        let load_count = linux::load_count();
        if load_count != self.load_count {
            self.load_count = load_count;
            if let Ok(slots) = probe::slots(probe) {
                let _incomplete = self.patch_slots(probe, &slots);
            }
        }
        for replaced in &self.replaced {
            if linux::read_u64(replaced.slot.0) == Some(replaced.before) {
                // SAFETY: as in `replace`.
                let _patched = unsafe { linux::swap_pointer(replaced.slot, replaced.after as *const c_void) };
            }
        }
    }
}

/// A copy of the allocator's vtable with our malloc and free, made once.
fn own_vtable(allocator: &AllocatorProbe) -> u64 {
    static VTABLE: OnceLock<Box<[u64]>> = OnceLock::new();
    let vtable = VTABLE.get_or_init(|| {
        let mut copy = allocator.vtable.clone();
        let (malloc, free) = plan::allocator_hooks(allocator.table.kind);
        copy[2 + allocator.malloc] = malloc as u64;
        copy[2 + allocator.free] = free as u64;
        copy.into()
    });
    vtable[2..].as_ptr() as u64
}

/// MLX's counters and the buffers in its cache, least recent first. Read without MLX's lock and therefore until two readings
/// agree: `clear_cache` may run on another thread. Buffers that cannot be listed stay a mere sum.
fn base(cache: Option<&CacheWords>) -> (Totals, Vec<Cached>) {
    for _ in 0..100 {
        let before = originals::counters();
        let cached = cache.and_then(cached_buffers).unwrap_or_default();
        let sum: u64 = cached.iter().map(|buffer| buffer.size).sum();
        if originals::counters() == before && sum == before.cached {
            return (before, cached);
        }
    }
    (originals::counters(), Vec::new())
}

/// The cache's list: nodes of (previous, next, buffer), most recent first.
fn cached_buffers(cache: &CacheWords) -> Option<Vec<Cached>> {
    let mut buffers = Vec::new();
    let mut node = linux::read_u64(cache.list_head)?;
    while node != 0 && buffers.len() < 10_000_000 {
        let handle = linux::read_u64(node + 16)?;
        let Memory { addr, size, flags, .. } = objects::allocator().memory(handle, linux::read_u64)?;
        buffers.push(Cached { handle, addr, size, flags });
        node = linux::read_u64(node + 8)?;
    }
    buffers.reverse();
    Some(buffers)
}

/// Stops recording, restores every pointer and hands out the recorder, with a last checkpoint.
///
/// # Errors
/// Nothing was being recorded.
pub fn stop() -> Result<Recorder, AttachError> {
    let mut installed = INSTALLED.lock();
    let mut installed = installed.take().ok_or(not_recording())?;
    let recorder = when_settled(|slot, mlx, device| {
        let mut recorder = slot.take()?;
        recorder.checkpoint(CheckpointKind::Stop, state::now(), mlx, device);
        state::turn_off();
        Some(recorder)
    });
    state::turn_off();
    installed.restore();
    recorder.ok_or(AttachError::NotRecording)
}

fn not_recording() -> AttachError {
    if fork::is_child() { AttachError::ForkedChild } else { AttachError::NotRecording }
}

/// Keeps other threads from starting and stopping, around a fork.
pub fn raw_lock() {
    INSTALLED.raw_lock();
}

/// Undoes `raw_lock`.
pub fn raw_unlock() {
    INSTALLED.raw_unlock();
}

/// In the child of a fork: restores every pointer. Was anything installed?
pub fn detach() -> bool {
    let Some(mut installed) = INSTALLED.lock().take() else { return false };
    state::turn_off();
    installed.restore();
    // Not dropped: the parent's threads may have been in the middle of changing it.
    std::mem::forget(state::recorder().take());
    true
}

/// Is a recording running?
pub fn is_recording() -> bool {
    INSTALLED.lock().is_some()
}

/// Runs `f` on the recorder while no allocator call is under way.
///
/// # Errors
/// Nothing is being recorded.
pub fn with_recorder<R>(f: impl FnOnce(&mut Recorder) -> R) -> Result<R, AttachError> {
    match state::recorder().as_mut() {
        Some(recorder) => {
            state::drain_evictions(recorder);
            Ok(f(recorder))
        }
        None => Err(not_recording()),
    }
}

/// Compares with MLX's counters.
///
/// # Errors
/// Nothing is being recorded.
pub fn checkpoint(kind: CheckpointKind) -> Result<Checkpoint, AttachError> {
    refresh();
    when_settled(|slot, mlx, device| Some(slot.as_mut()?.checkpoint(kind, state::now(), mlx, device)))
        .ok_or_else(not_recording)
}

/// Compares with MLX's counters after an allocation failed. The caller may be inside MLX, and holds no lock.
pub fn checkpoint_of_oom() -> Option<Checkpoint> {
    when_settled(|slot, mlx, device| Some(slot.as_mut()?.checkpoint(CheckpointKind::Oom, state::now(), mlx, device)))
}

fn refresh() {
    if let (Some(installed), Some(probe)) = (INSTALLED.lock().as_mut(), PROBE.get()) {
        installed.refresh(probe);
    }
}

/// Runs `f`, under the recorder's lock, at a moment at which our sums are MLX's counters. Where MLX counts an allocation before
/// we can record it (CUDA), a thread may be between the two: the lock is released, so that it can go on, and taken again. If
/// they still differ after some milliseconds, `f` runs all the same, and the trace shows the difference.
fn when_settled<R>(f: impl FnOnce(&mut Option<Recorder>, Totals, Option<DeviceMemory>) -> Option<R>) -> Option<R> {
    let device = PROBE.get().and_then(device_memory);
    for _ in 0..50 {
        let mut guard = state::recorder();
        let mlx = settle(guard.as_mut()?);
        if guard.as_ref()?.totals() == mlx {
            return f(&mut guard, mlx, device);
        }
        drop(guard);
        std::thread::sleep(Duration::from_micros(100));
    }
    let mut guard = state::recorder();
    let mlx = settle(guard.as_mut()?);
    f(&mut guard, mlx, device)
}

/// MLX's counters. Evictions of `clear_cache` may be under way: they are queued before MLX lets go of its mutex, so once the
/// counter has been read they can be drained.
fn settle(recorder: &mut Recorder) -> Totals {
    let mut mlx = originals::counters();
    for _ in 0..100 {
        state::drain_evictions(recorder);
        if recorder.totals() == mlx {
            break;
        }
        mlx = originals::counters();
    }
    mlx
}

/// What the driver says, where one is used.
fn device_memory(probe: &Probe) -> Option<DeviceMemory> {
    if probe.allocator.table.kind == Kind::Cuda { driver::memory() } else { None }
}

/// Ends a step and compares with MLX's counters; returns the number of steps so far.
///
/// # Errors
/// Nothing is being recorded.
pub fn step() -> Result<u64, AttachError> {
    refresh();
    when_settled(|slot, mlx, device| {
        let recorder = slot.as_mut()?;
        recorder.checkpoint(CheckpointKind::Step, state::now(), mlx, device);
        let thread = array::thread_here(recorder);
        Some(recorder.step(state::now(), thread))
    })
    .ok_or_else(not_recording)
}

/// Opens an annotation on this thread.
///
/// # Errors
/// Nothing is being recorded.
pub fn annotate_begin(name: &str) -> Result<(), AttachError> {
    with_recorder(|recorder| {
        let thread = array::thread_here(recorder);
        let name = recorder.strings.intern(name);
        recorder.mark(state::now(), thread, MarkKind::AnnotationBegin(name));
    })
}

/// Closes the innermost annotation of this thread.
///
/// # Errors
/// Nothing is being recorded.
pub fn annotate_end() -> Result<(), AttachError> {
    with_recorder(|recorder| {
        let thread = array::thread_here(recorder);
        recorder.mark(state::now(), thread, MarkKind::AnnotationEnd);
    })
}

/// Writes a `Snapshot` marker with the active bytes, as PyTorch does when a snapshot is taken.
///
/// # Errors
/// Nothing is being recorded.
pub fn snapshot_marker() -> Result<(), AttachError> {
    with_recorder(|recorder| {
        let thread = array::thread_here(recorder);
        let (time_nanos, size) = (state::now(), recorder.totals().active);
        recorder.note(memviz_trace::Event {
            time_nanos,
            size,
            thread,
            action: memviz_trace::Action::Snapshot,
            ..memviz_trace::Event::default()
        });
    })
}

/// What a trace should tell about the hooks, one sentence each.
pub fn notes() -> Vec<String> {
    let refused = vtables::refused();
    let note = || format!("{refused} primitive classes could not be hooked; temporaries inside them lack a line");
    (refused > 0).then(note).into_iter().collect()
}

/// Slots that hold one of our functions, as read back from memory: 0 when nothing is installed.
pub fn hooked_slots(probe: &Probe) -> Result<usize, AttachError> {
    let kind = probe.allocator.table.kind;
    let hooks: Vec<u64> = PLAN.iter().filter_map(|planned| planned.hook(kind)).map(|hook| hook as u64).collect();
    let slots = probe::slots(probe)?;
    let is_hooked = |slot: &HookSlot| linux::read_u64(slot.addr.0).is_some_and(|found| hooks.contains(&found));
    let vtable = linux::read_u64(probe.allocator.object) != Some(probe.allocator.original_vtable);
    let cache = probe.allocator.cache.as_ref().is_some_and(|cache| {
        linux::read_u64(cache.invoke_size.0) == Some(alloc::invoke_size as *const c_void as u64)
            || linux::read_u64(cache.invoke_free.0) == Some(alloc::invoke_free as *const c_void as u64)
    });
    Ok(slots.iter().filter(|slot| is_hooked(slot)).count()
        + usize::from(vtable)
        + usize::from(cache)
        + vtables::patched())
}

/// Address of a planned function's slots, for the self-test.
pub fn slots_of(function: Function) -> Result<Vec<SlotAddr>, AttachError> {
    let Some(probe) = PROBE.get() else { return Err(AttachError::NotLoaded) };
    let slots = probe::slots(probe)?;
    Ok(slots.into_iter().filter(|slot| slot.function == function).map(|slot| slot.addr).collect())
}
