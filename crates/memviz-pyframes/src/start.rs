//! Start and stop: which walker runs, and the one call that everything is about, [`capture`].
#![expect(unsafe_code, reason = "calls through a function pointer kept in an atomic; starts on the caller's word")]

use std::fmt;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use crate::api::{Address, Api};
use crate::cpython::{self, F_LASTI_3_10, FrameLayout, Offsets};
use crate::memory::{Memory, PipeMemory};
use crate::raw::RawWalker;
use crate::{gil, public, tables, verify};

/// Which build of Python runs; the caller reads it from `sys`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonBuild {
    /// `sys.hexversion`
    pub hexversion: u32,
    /// Built with `Py_GIL_DISABLED`, whether or not the GIL is enabled now.
    pub is_free_threaded: bool,
    /// `sys.abiflags` contains `d`.
    pub is_debug: bool,
    /// `sys.implementation.name == "cpython"`
    pub is_cpython: bool,
}

impl PythonBuild {
    /// Major and minor version.
    pub fn version(&self) -> (u32, u32) {
        (self.hexversion >> 24, self.hexversion >> 16 & 0xff)
    }
}

/// Why there can be no Python stacks at all.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitError {
    /// PyPy and others.
    #[error("not CPython, so Python stacks cannot be read")]
    NotCPython,
    /// Before 3.10.
    #[error("CPython {major}.{minor} is too old for Python stacks (need 3.10 or later)")]
    TooOld {
        /// Major version.
        major: u32,
        /// Minor version.
        minor: u32,
    },
    /// The process exports no such function.
    #[error("no symbol {symbol} in this process, so Python stacks cannot be read")]
    MissingSymbol {
        /// Its name.
        symbol: &'static str,
    },
    /// Called without the GIL.
    #[error("this thread does not hold the GIL; call initialise with it")]
    NoGil,
    /// Called in a sub-interpreter.
    #[error("this is a sub-interpreter; call initialise in the main one")]
    SubInterpreter,
    /// 3.10 only: `f_lasti` is elsewhere, so not even the public walk can tell lines.
    #[error("PyFrameObject.f_lasti of this CPython 3.10 is not where it should be")]
    UnknownFrameObject,
}

/// How stacks are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Walker {
    /// The interpreter's own frames, by offsets.
    RawFrames,
    /// `PyEval_GetFrame` and `PyFrame_GetBack`.
    PublicApi {
        /// Why not raw frames.
        reason: String,
    },
}

impl fmt::Display for Walker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = VERSION.load(Ordering::Relaxed);
        match self {
            Walker::RawFrames => write!(f, "raw frames ({}.{})", version >> 8, version & 0xff),
            Walker::PublicApi { reason } => write!(f, "public API: {reason}"),
        }
    }
}

type Capture = fn() -> u32;

fn capture_nothing() -> u32 {
    0
}

/// The capture function in use, as a pointer.
static CAPTURE: AtomicPtr<()> = AtomicPtr::new(capture_nothing as Capture as *mut ());
/// `major << 8 | minor`
static VERSION: AtomicU32 = AtomicU32::new(0);
static STATE: Mutex<Option<State>> = Mutex::new(None);

struct State {
    walker: Walker,
    offsets: Option<Offsets>,
}

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Innermost node of this thread's Python stack; 0 when there is none: no GIL on this thread, a sub-interpreter, no
/// frames, not initialised, shut down.
///
/// The raw walk makes no Python object, takes no lock and runs no Python code; it allocates only when it meets a new
/// stack. The public walk makes frame objects (CPython 3.11 and later), as any debugger does. Stacks are never cut.
#[inline]
pub fn capture() -> u32 {
    let function = CAPTURE.load(Ordering::Acquire);
    // SAFETY: only values of type `Capture` are stored.
    unsafe { std::mem::transmute::<*mut (), Capture>(function)() }
}

/// The public walk, whichever is in use; for comparison.
#[doc(hidden)]
pub fn capture_by_public_walk() -> u32 {
    public::capture()
}

/// Finds Python's functions, chooses a walker and checks it on the current stack. Idempotent: once it has succeeded,
/// further calls return the walker in use.
///
/// An error means that not even the public walk can be had.
///
/// # Safety
/// The GIL is held, in the main interpreter, and `build` tells the truth.
pub unsafe fn initialise(build: PythonBuild) -> Result<Walker, InitError> {
    // SAFETY: by contract.
    unsafe { start(&build, cpython::walker_for(&build)) }
}

/// [`initialise`] with a layout of the caller's choice, to see that a wrong one is refused.
///
/// # Safety
/// As for [`initialise`].
#[doc(hidden)]
pub unsafe fn initialise_with<L: FrameLayout>(build: PythonBuild) -> Result<Walker, InitError> {
    // SAFETY: by contract.
    unsafe { start(&build, Ok(RawWalker::of::<L>())) }
}

/// # Safety
/// As for [`initialise`].
unsafe fn start(build: &PythonBuild, raw: Result<RawWalker, String>) -> Result<Walker, InitError> {
    let mut state = state();
    if let Some(state) = &*state {
        return Ok(state.walker.clone());
    }
    let (major, minor) = build.version();
    if !build.is_cpython {
        return Err(InitError::NotCPython);
    }
    if (major, minor) < (3, 10) {
        return Err(InitError::TooOld { major, minor });
    }
    let api = Api::initialise()?;
    gil::initialise(api, build)?;
    VERSION.store(major << 8 | minor, Ordering::Relaxed);
    tables::set_free_threaded(build.is_free_threaded);
    // SAFETY: the GIL is held; planting the root allocates and no more.
    unsafe {
        tables::with_tables(|tables| tables.tree.plant_root());
        check_public_lasti(api)?;
    }
    // SAFETY: by contract.
    let checked = raw.and_then(|raw| unsafe { verify::check_layout(api, &raw.offsets, build) }.map(|()| raw));
    let (walker, offsets, function) = match checked {
        Ok(raw) => (Walker::RawFrames, Some(raw.offsets), raw.capture),
        Err(reason) => (Walker::PublicApi { reason }, None, public::capture as Capture),
    };
    CAPTURE.store(function as *mut (), Ordering::Release);
    *state = Some(State { walker: walker.clone(), offsets });
    Ok(walker)
}

/// 3.10 has no `PyFrame_GetLasti`: compares the field that takes its place with the attribute `f_lasti`.
///
/// # Safety
/// The GIL is held.
unsafe fn check_public_lasti(api: &Api) -> Result<(), InitError> {
    if api.PyFrame_GetLasti.is_some() {
        return Ok(());
    }
    // SAFETY: by contract; the frame is lent, and `f_lasti` is an int made without running Python code.
    unsafe {
        let frame: Address = (api.PyEval_GetFrame)();
        if frame == 0 {
            return Ok(());
        }
        let unit = PipeMemory::new().and_then(|memory| memory.int(frame + F_LASTI_3_10));
        let attribute = (api.PyObject_GetAttrString)(frame, c"f_lasti".as_ptr());
        if attribute == 0 {
            (api.PyErr_Clear)();
            return Err(InitError::UnknownFrameObject);
        }
        let expected = (api.PyLong_AsLong)(attribute);
        (api.Py_DecRef)(attribute);
        let agrees = unit.is_some_and(|unit| if unit < 0 { expected == -1 } else { i64::from(unit) * 2 == expected });
        if agrees { Ok(()) } else { Err(InitError::UnknownFrameObject) }
    }
}

/// The walker in use; `None` before [`initialise`] succeeded.
pub fn walker() -> Option<Walker> {
    state().as_ref().map(|state| state.walker.clone())
}

/// Offsets of the raw walker in use.
pub(crate) fn raw_offsets() -> Option<Offsets> {
    state().as_ref().and_then(|state| state.offsets)
}

/// Walks through the public API from now on: after a failed self-test, in tests and benchmarks. Ids given before keep
/// their meaning; a stack that had one gets a second, with the same frames.
pub fn use_public_walk(reason: &str) {
    if let Some(state) = &mut *state() {
        *state = State { walker: Walker::PublicApi { reason: reason.into() }, offsets: None };
        if Api::get().is_some() && CAPTURE.load(Ordering::Acquire) != capture_nothing as Capture as *mut () {
            CAPTURE.store(public::capture as Capture as *mut (), Ordering::Release);
        }
    }
}

/// No captures from now on; call it from an `atexit` callback, while the interpreter is whole. Nodes stay readable, and
/// sites can be resolved for as long as Python runs.
pub fn shut_down() {
    let _state = state();
    CAPTURE.store(capture_nothing as Capture as *mut (), Ordering::Release);
    gil::shut_down();
}
