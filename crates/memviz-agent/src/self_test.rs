//! The attach-time self-test: empty arrays, built from Python, must look as the release's table says.
//!
//! Arrays of no elements are used because they leave no trace in the process: they count 0 bytes, never enter the cache and
//! need no stream (MLX numbers streams in order of first use, so running an operation here would be seen by the program).
//! Primitives are checked without running one: `probe` compares every class's vtable with the symbol table, and `vtables`
//! looks again at each one it meets.
#![expect(unsafe_code, reason = "one hook, and one pointer exchange")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use memviz_image::ReadMemory;
use memviz_trace::{Action, Event, StackId};

use crate::error::AttachError;
use crate::hooks::array;
use crate::linux::{self, OwnMemory};
use crate::options::Options;
use crate::originals::Ptr;
use crate::plan::Function;
use crate::probe::Probe;
use crate::{session, stamp};

static TESTING_THREAD: AtomicU64 = AtomicU64::new(0);
static LAST_DESC: AtomicU64 = AtomicU64::new(0);

/// The hook of `ArrayDesc::init` that also remembers the descriptor.
unsafe extern "C-unwind" fn init_and_note(desc: Ptr) {
    if linux::thread_id() == TESTING_THREAD.load(Ordering::Relaxed) {
        LAST_DESC.store(desc as u64, Ordering::Relaxed);
    }
    // SAFETY: passes the caller's argument on.
    unsafe { array::init(desc) };
}

/// A self-test under way: hooks are installed. Ends, restoring everything, when dropped.
#[derive(Debug)]
pub struct SelfTest {
    probe: &'static Probe,
    checked: Vec<Event>,
}

impl SelfTest {
    /// Installs the hooks for the test. The caller holds the GIL and keeps it.
    ///
    /// # Errors
    /// As `session::start`.
    pub fn begin(probe: &'static Probe) -> Result<SelfTest, AttachError> {
        session::start(probe, Options { max_entries: 1024, ..Options::default() })?;
        let test = SelfTest { probe, checked: Vec::new() };
        TESTING_THREAD.store(linux::thread_id(), Ordering::Relaxed);
        for slot in session::slots_of(Function::Init)? {
            // SAFETY: a slot of `ArrayDesc::init`; the function has its type. `session::stop` leaves a slot alone that
            // does not hold its own hook, so `drop` puts that one back first.
            unsafe { linux::swap_pointer(slot, init_and_note as *const c_void) }?;
        }
        Ok(test)
    }

    fn failed(&self, step: &'static str, what: String) -> AttachError {
        AttachError::SelfTest { version: self.probe.version.clone(), step, what }
    }

    /// Checks the array that the calling line just built: a leaf of no elements with that shape and dtype.
    ///
    /// # Errors
    /// What differs.
    pub fn check_leaf(&mut self, shape: &[i32], dtype_code: u32, item_size: u8) -> Result<(), AttachError> {
        let desc = LAST_DESC.swap(0, Ordering::Relaxed);
        if desc == 0 {
            return Err(self.failed("init", "no descriptor was seen while an array was built".to_owned()));
        }
        let layout = &self.probe.layout.desc;
        let word = |offset: usize| linux::read_u64(desc + offset as u64).unwrap_or(u64::MAX);
        let found = read_i32s(word(layout.shape + 8), word(layout.shape + 16));
        self.expect("shape", &found.as_deref(), &Some(shape))?;
        let dtype = word(layout.dtype);
        self.expect("dtype", &(dtype as u32, (dtype >> 32) as u8), &(dtype_code, item_size))?;
        self.expect("primitive of a leaf", &word(layout.primitive), &0)?;
        self.expect("status", &(word(layout.status) as u32), &2)?;
        self.expect("inputs of a leaf", &(word(layout.inputs), word(layout.inputs + 8)), &(0, 0))?;
        let buffer = linux::read_u64(word(layout.data)).unwrap_or(0);
        let event = self.last_event("malloc", buffer, Action::AllocNew)?;
        // SAFETY: the descriptor of an array that the calling line still holds.
        let stamp = unsafe { stamp::read(desc as usize, layout) };
        self.expect("stamp", &stamp.map(StackId), &Some(event.built))?;
        if event.built == StackId(0) {
            return Err(self.failed("stack", "no Python stack was taken, expected that of the self-test".to_owned()));
        }
        self.checked.push(event);
        Ok(())
    }

    /// Checks that the array checked first was freed since.
    ///
    /// # Errors
    /// What differs.
    pub fn check_freed(&mut self) -> Result<(), AttachError> {
        if self.checked.is_empty() {
            return Err(self.failed("free", "no array was checked before".to_owned()));
        }
        let alloc = self.checked.remove(0);
        let freed = self.last_event("free", alloc.addr, Action::FreeActiveToOs)?;
        self.expect("line of a freed buffer", &freed.built, &alloc.built)
    }

    /// The newest event of `addr`, which must be `action` of 0 bytes.
    fn last_event(&self, step: &'static str, addr: u64, action: Action) -> Result<Event, AttachError> {
        let events = session::with_recorder(|recorder| recorder.store().to_vec())?;
        let Some(event) = events.into_iter().rev().find(|event| event.addr == addr && event.action.is_buffer()) else {
            return Err(self.failed(step, format!("no event for the buffer at {addr:#x}")));
        };
        self.expect(step, &(event.action, event.size), &(action, 0))?;
        Ok(event)
    }

    fn expect<T: PartialEq + std::fmt::Debug>(
        &self,
        step: &'static str,
        found: &T,
        expected: &T,
    ) -> Result<(), AttachError> {
        if found == expected {
            Ok(())
        } else {
            Err(self.failed(step, format!("found {found:?}, expected {expected:?}")))
        }
    }

    /// Ends the test: restores everything, and reads every slot back to prove it.
    ///
    /// # Errors
    /// The counters differ, or a hook is still in place.
    pub fn finish(self) -> Result<(), AttachError> {
        let point = session::checkpoint(memviz_trace::CheckpointKind::User)?;
        let (found, expected) = ((point.active, point.cached), (point.mlx_active, point.mlx_cached));
        self.expect("active and cached bytes", &found, &expected)?;
        let probe = self.probe;
        drop(self);
        match session::hooked_slots(probe)? {
            0 => Ok(()),
            left => Err(AttachError::SelfTest {
                version: probe.version.clone(),
                step: "restore",
                what: format!("{left} pointers still lead to our hooks, expected 0"),
            }),
        }
    }
}

impl Drop for SelfTest {
    fn drop(&mut self) {
        TESTING_THREAD.store(0, Ordering::Relaxed);
        for slot in session::slots_of(Function::Init).unwrap_or_default() {
            // SAFETY: as in `begin`.
            let _back = unsafe { linux::swap_pointer(slot, array::init as *const c_void) };
        }
        let _stopped = session::stop();
    }
}

/// The integers between two addresses.
fn read_i32s(begin: u64, end: u64) -> Option<Vec<i32>> {
    let len = usize::try_from(end.checked_sub(begin)?).ok().filter(|&len| len <= 64)?;
    let mut bytes = vec![0; len];
    OwnMemory.read(begin, &mut bytes).ok()?;
    Some(bytes.chunks_exact(4).map(|four| i32::from_ne_bytes([four[0], four[1], four[2], four[3]])).collect())
}
