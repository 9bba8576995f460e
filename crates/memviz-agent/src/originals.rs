//! MLX's own functions, as hooks call them.
//!
//! Filled once, before any hook is installed, and never cleared: a thread may still be inside a hook after the hooks were
//! taken out.
#![expect(unsafe_code, reason = "turns addresses into functions of the types that MLX's symbols have")]

use std::ffi::c_void;
use std::sync::OnceLock;

/// Any pointer of MLX: an object, a buffer, a `std::vector`.
pub type Ptr = *mut c_void;

/// `ArrayDesc::init(this)`, `~ArrayDesc(this)`.
pub type OnDesc = unsafe extern "C-unwind" fn(Ptr);
/// `array::set_data(this, Buffer, Deleter*)` or `(this, Data*)`.
pub type SetDataShort = unsafe extern "C-unwind" fn(Ptr, Ptr, Ptr);
/// The long `array::set_data`: (this, buffer or Data*, size, strides*, flags, offset or deleter*, deleter*). Up to 0.31.2
/// and in 0.32.4 there are six arguments; passing a seventh word is harmless in both calling conventions.
pub type SetDataLong = unsafe extern "C-unwind" fn(Ptr, Ptr, usize, Ptr, u64, Ptr, Ptr);
/// The long `array::copy_shared_buffer(this, other, strides*, flags, size, offset)`.
pub type CopySharedBuffer = unsafe extern "C-unwind" fn(Ptr, Ptr, Ptr, u64, usize, i64);
/// `eval(std::vector<array>)` and `async_eval`: the vector is passed as a pointer to the caller's temporary.
pub type Eval = unsafe extern "C-unwind" fn(Ptr);
/// `Primitive::eval_cpu(this, inputs, outputs)` and `eval_gpu`.
pub type EvalPrimitive = unsafe extern "C-unwind" fn(Ptr, Ptr, Ptr);
/// `Primitive::name(this)`.
pub type Name = unsafe extern "C-unwind" fn(Ptr) -> *const std::ffi::c_char;
/// `Allocator::malloc(this, size)`.
pub type Malloc = unsafe extern "C-unwind" fn(Ptr, usize) -> Ptr;
/// `Allocator::free(this, buffer)`.
pub type Free = unsafe extern "C-unwind" fn(Ptr, Ptr);
/// `Allocator::size(this, buffer)`.
pub type Size = unsafe extern "C-unwind" fn(Ptr, Ptr) -> usize;
/// Invoker of `std::function<size_t(T*)>`: (storage, argument&&).
pub type InvokeSize = unsafe extern "C-unwind" fn(Ptr, *mut Ptr) -> usize;
/// Invoker of `std::function<void(T*)>`.
pub type InvokeFree = unsafe extern "C-unwind" fn(Ptr, *mut Ptr);
/// `get_active_memory()` and `get_cache_memory()`.
pub type Counter = unsafe extern "C-unwind" fn() -> usize;
/// `Buffer::raw_ptr(this)`.
pub type RawPtr = unsafe extern "C-unwind" fn(Ptr) -> Ptr;
/// `__cxa_throw(exception, type_info, destructor)`.
pub type Throw = unsafe extern "C-unwind" fn(Ptr, Ptr, Ptr) -> !;
/// `PyEval_SaveThread()`.
pub type SaveThread = unsafe extern "C-unwind" fn() -> Ptr;

/// Addresses of MLX's functions. `None` where a release or back end has none.
#[derive(Clone, Copy, Debug)]
pub struct Originals {
    /// `ArrayDesc::init`.
    pub init: OnDesc,
    /// `~ArrayDesc`.
    pub drop: OnDesc,
    /// The short `set_data`.
    pub set_data_short: SetDataShort,
    /// The long `set_data`.
    pub set_data_long: SetDataLong,
    /// The long `copy_shared_buffer`.
    pub copy_shared_buffer: CopySharedBuffer,
    /// `eval`.
    pub eval: Eval,
    /// `async_eval`.
    pub async_eval: Eval,
    /// `Allocator::malloc` of the allocator in use.
    pub malloc: Malloc,
    /// `Allocator::free`.
    pub free: Free,
    /// `Allocator::size`.
    pub size: Size,
    /// The cache's callback for the size of a buffer: called when a buffer is recycled.
    pub invoke_size: Option<InvokeSize>,
    /// The cache's callback that frees a buffer: called when one is evicted.
    pub invoke_free: Option<InvokeFree>,
    /// `get_active_memory`.
    pub active_memory: Counter,
    /// `get_cache_memory`.
    pub cache_memory: Counter,
    /// `PyEval_SaveThread`.
    pub save_thread: SaveThread,
    /// `Buffer::raw_ptr`; only hooked where it moves memory.
    pub raw_ptr: Option<RawPtr>,
    /// `__cxa_throw`; only hooked where allocations bypass the allocator's vtable.
    pub throw: Option<Throw>,
}

static ORIGINALS: OnceLock<Originals> = OnceLock::new();

/// Tells hooks where MLX's functions are. The first call counts.
pub fn set(originals: Originals) {
    let _already_set = ORIGINALS.set(originals);
}

/// MLX's functions.
///
/// # Panics
/// Before `set`: hooks are installed after it.
#[inline]
pub fn get() -> &'static Originals {
    match ORIGINALS.get() {
        Some(originals) => originals,
        None => unreachable!("a hook ran before MLX's functions were known"),
    }
}

/// Turns the address of an MLX function into a callable one.
///
/// # Safety
/// `F` is a function pointer type, and the function at `address` has that type; see the types above for each.
pub unsafe fn function<F: Copy>(address: u64) -> F {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = address as usize;
    // SAFETY: sizes are equal, and the contract says that the address is such a function.
    unsafe { std::mem::transmute_copy::<usize, F>(&address) }
}

/// Sums that MLX counts.
pub fn counters() -> memviz_trace::Totals {
    let originals = get();
    // SAFETY: both take no arguments and only read (under the allocator's mutex).
    let (active, cached) = unsafe { ((originals.active_memory)(), (originals.cache_memory)()) };
    memviz_trace::Totals { active: active as u64, cached: cached as u64 }
}
