//! Does this thread hold the GIL, and in the main interpreter?
//!
//! Not `PyGILState_Check`: once any sub-interpreter was created it answers 1 on every thread (measured, 3.10 to 3.15).
//! Instead the thread state that Python calls current. Since 3.12 that is thread-local, and NULL without the GIL
//! (free-threaded: while detached). Before, it is that of whoever holds the GIL, on any thread, so it is compared with
//! the thread state which this thread registered. Cost: 3 to 6 ns.
#![expect(unsafe_code, reason = "calls C functions through pointers kept in atomics")]

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::api::{Address, Api, symbol};
use crate::{InitError, PythonBuild};

type Getter = unsafe extern "C" fn() -> Address;

/// `PyThreadState_GetUnchecked`; null before [`initialise`] and after [`shut_down`].
static CURRENT: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
/// `PyGILState_GetThisThreadState`, called only where `CURRENT` is process-wide.
static THIS_THREAD: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
static CURRENT_IS_PROCESS_WIDE: AtomicBool = AtomicBool::new(false);
/// `PyInterpreterState *` of the main interpreter. Ids of others would outlive their code objects.
static MAIN_INTERPRETER: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Calls a getter, or answers 0 where there is none.
#[inline(always)]
fn call(getter: &AtomicPtr<()>) -> Address {
    let function = getter.load(Ordering::Acquire);
    if function.is_null() {
        return 0;
    }
    // SAFETY: `initialise` stores only the two getters, which take nothing, return a pointer and may be called on any
    // thread at any time: they read one variable (3.10, 3.11: after a check that the key exists).
    unsafe { std::mem::transmute::<*mut (), Getter>(function)() }
}

/// This thread's `PyThreadState *` if it holds the GIL, else 0. Pointers are compared here, never dereferenced.
#[inline(always)]
pub(crate) fn own_thread_state(current_is_process_wide: bool) -> Address {
    let current = call(&CURRENT);
    if current_is_process_wide && current != 0 && current != call(&THIS_THREAD) {
        return 0;
    }
    current
}

/// The build is older than 3.12.
pub(crate) fn current_is_process_wide() -> bool {
    CURRENT_IS_PROCESS_WIDE.load(Ordering::Relaxed)
}

/// The interpreter to which every id belongs.
#[inline(always)]
pub(crate) fn main_interpreter() -> Address {
    MAIN_INTERPRETER.load(Ordering::Relaxed)
}

/// As [`own_thread_state`] for a build whose layout is unknown, and 0 in a sub-interpreter.
pub(crate) fn own_main_thread_state(api: &Api) -> Address {
    let tstate = own_thread_state(current_is_process_wide());
    if tstate == 0 {
        return 0;
    }
    // SAFETY: the thread state is this thread's own and current, so it is alive.
    let interpreter = unsafe { (api.PyThreadState_GetInterpreter)(tstate) };
    if interpreter == main_interpreter() { tstate } else { 0 }
}

/// Finds the getters and remembers the main interpreter.
pub(crate) fn initialise(api: &Api, build: &PythonBuild) -> Result<(), InitError> {
    let process_wide = build.version() < (3, 12);
    let (name, symbol_name): (&CStr, _) = match build.version() < (3, 13) {
        true => (c"_PyThreadState_UncheckedGet", "_PyThreadState_UncheckedGet"),
        false => (c"PyThreadState_GetUnchecked", "PyThreadState_GetUnchecked"),
    };
    let current = symbol(name).ok_or(InitError::MissingSymbol { symbol: symbol_name })?;
    let missing = InitError::MissingSymbol { symbol: "PyGILState_GetThisThreadState" };
    let this_thread = symbol(c"PyGILState_GetThisThreadState").ok_or(missing)?;
    THIS_THREAD.store(this_thread.cast(), Ordering::Release);
    CURRENT_IS_PROCESS_WIDE.store(process_wide, Ordering::Release);
    CURRENT.store(current.cast(), Ordering::Release);
    if own_thread_state(process_wide) == 0 {
        return Err(InitError::NoGil);
    }
    // SAFETY: this thread holds the GIL.
    let (own, main) = unsafe { ((api.PyInterpreterState_Get)(), (api.PyInterpreterState_Main)()) };
    if own != main {
        return Err(InitError::SubInterpreter);
    }
    MAIN_INTERPRETER.store(main, Ordering::Release);
    Ok(())
}

/// From now on no thread holds the GIL, as far as this crate is concerned.
pub(crate) fn shut_down() {
    CURRENT.store(std::ptr::null_mut(), Ordering::Release);
}

/// Whether this thread holds the GIL (free-threaded build: is attached), in the main interpreter, before
/// [`crate::shut_down`]. 3 to 6 ns; callable on any thread at any time.
#[inline]
pub fn holds_gil() -> bool {
    Api::get().is_some_and(|api| own_main_thread_state(api) != 0)
}
