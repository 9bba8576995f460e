//! Reading MLX's objects in hooks: descriptors, primitives, vectors. The few raw loads of the hot path.
//!
//! Offsets come from `mlx::Layout`, proven by the attach-time self-test, so these read directly and not through the kernel.
#![expect(unsafe_code, reason = "loads fields of MLX's live objects at proven offsets")]

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use memviz_trace::{Device, DeviceKind, Event, NO_STREAM};

use crate::mlx::backend::{BackEnd, Kind};
use crate::mlx::{self, Layout, SetDataAbi};
use crate::originals::{Name, Ptr, function};
use crate::whats::MAX_AXES;

static LAYOUT: OnceLock<Layout> = OnceLock::new();

/// Sets the layout of the loaded MLX. The first call counts.
pub fn set_layout(layout: Layout) {
    let _already_set = LAYOUT.set(layout);
}

/// Layout of the loaded MLX.
#[inline]
pub fn layout() -> &'static Layout {
    match LAYOUT.get() {
        Some(layout) => layout,
        None => unreachable!("a hook ran before the layout was chosen"),
    }
}

/// The loaded MLX's allocator, as hooks need it.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// Its table.
    pub table: BackEnd,
    /// Addresses of its pool of scalars.
    pub scalar_pool: (u64, u64),
    /// `allocator::free` as libmlx passes it for a deleter; 0 where there is none.
    pub free: u64,
    /// Address of the cache's limit; 0 where it is not known.
    pub cache_limit: u64,
}

static ALLOCATOR: OnceLock<Allocator> = OnceLock::new();

/// Sets the loaded MLX's allocator. The first call counts.
pub fn set_allocator(allocator: Allocator) {
    let _already_set = ALLOCATOR.set(allocator);
}

/// The loaded MLX's allocator.
pub fn allocator() -> &'static Allocator {
    match ALLOCATOR.get() {
        Some(allocator) => allocator,
        None => unreachable!("a hook ran before the allocator was known"),
    }
}

/// What a buffer's pointer points to says of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Address; the handle itself for a buffer without memory, of 0 bytes.
    pub addr: u64,
    /// Bytes.
    pub size: u64,
    /// [`Event::flags`].
    pub flags: u16,
    /// The host can use it as it is.
    pub is_on_device: bool,
}

impl Allocator {
    /// Reads a buffer with `read`, which is given addresses inside it.
    pub fn memory(&self, handle: u64, read: impl Fn(u64) -> Option<u64>) -> Option<Memory> {
        let layout = &self.table.buffer;
        let field = |offset: usize| read(handle + offset as u64);
        let size = field(layout.size)?;
        let addr = match layout.data {
            None => handle,
            Some(offset) => Some(field(offset)?).filter(|&addr| addr != 0).unwrap_or(handle),
        };
        let is_on_device = match layout.device {
            None => false,
            Some(offset) => field(offset)? as i32 >= 0,
        };
        let is_scalar = (self.scalar_pool.0..self.scalar_pool.1).contains(&addr);
        let unified = if self.table.kind == Kind::Cuda && !is_on_device { Event::UNIFIED } else { 0 };
        let flags = unified | if is_scalar { Event::SCALAR_POOL } else { 0 };
        Some(Memory { addr, size, flags, is_on_device })
    }
}

/// The cache's limit in bytes, where it is known. MLX's extension keeps the address of `set_cache_limit` from its import on,
/// so no hook sees the call: the word that it sets is read instead.
#[inline]
pub fn cache_limit() -> Option<u64> {
    let addr = ALLOCATOR.get().map(|allocator| allocator.cache_limit).filter(|&addr| addr != 0)?;
    // SAFETY: a word of the allocator, which lives as long as the process; MLX writes it whole, under its own mutex.
    Some(unsafe { (*(addr as *const AtomicU64)).load(Ordering::Relaxed) })
}

/// The memory of a buffer.
///
/// # Safety
/// `handle` is a live buffer of the loaded MLX's allocator.
#[inline]
pub unsafe fn memory_of(handle: u64) -> Memory {
    // SAFETY: by contract; the table's offsets lie in the buffer. The device is an i32 in its last word, which is padded
    // to 8 bytes.
    let read = |addr: u64| Some(unsafe { load(addr as usize, 0) });
    allocator().memory(handle, read).unwrap_or(Memory { addr: handle, size: 0, flags: 0, is_on_device: false })
}

/// Does the memory that `set_data` is given belong to MLX's allocator, to be freed there?
///
/// # Safety
/// `argument` and `deleter` are what a caller of `set_data` passed for the buffer or data and for the deleter.
#[inline]
pub unsafe fn is_owned(argument: Ptr, deleter: Ptr) -> bool {
    match layout().set_data {
        // SAFETY: by contract, a pointer to an `allocator::Data`.
        SetDataAbi::Data => unsafe { load::<u8>(argument as usize, mlx::data::OWNED) != 0 },
        SetDataAbi::Buffer | SetDataAbi::BufferAndOffset => {
            // SAFETY: by contract, a pointer to a `std::function`: storage, then at +16 its manager, 0 when it is empty.
            // A plain function is stored as its address.
            let (target, manager): (u64, u64) = unsafe { (load(deleter as usize, 0), load(deleter as usize, 16)) };
            manager != 0 && target != 0 && target == allocator().free
        }
    }
}

/// # Safety
/// `addr + offset` is a readable, aligned `T`.
#[inline]
unsafe fn load<T: Copy>(addr: usize, offset: usize) -> T {
    // SAFETY: by contract.
    unsafe { *((addr + offset) as *const T) }
}

/// Descriptor of an `array` (its first word).
///
/// # Safety
/// `array` points to a live `mlx::core::array`.
#[inline]
pub unsafe fn desc_of(array: Ptr) -> usize {
    // SAFETY: by contract; `array` is two words, the first points to its descriptor.
    unsafe { load(array as usize, 0) }
}

/// Descriptors of a `std::vector<array>`.
///
/// # Safety
/// `vector` points to a live `std::vector<array>` that does not change while the iterator is used.
pub unsafe fn descs_of(vector: usize) -> impl Iterator<Item = usize> {
    // SAFETY: by contract; begin and end are the first two words, elements are 16 bytes.
    let (begin, end): (usize, usize) = unsafe { (load(vector, 0), load(vector, 8)) };
    // SAFETY: every multiple of 16 between begin and end is a live array.
    (begin..end).step_by(16).map(|array| unsafe { load(array, 0) })
}

/// Primitive of a descriptor; 0 for a leaf or an array that is detached already.
///
/// # Safety
/// `desc` is a live `ArrayDesc`.
#[inline]
pub unsafe fn primitive_of(desc: usize) -> usize {
    // SAFETY: by contract, at the layout's offset.
    unsafe { load(desc, layout().desc.primitive) }
}

/// Vtable of a primitive.
///
/// # Safety
/// `primitive` is a live `Primitive`.
#[inline]
pub unsafe fn vtable_of(primitive: usize) -> usize {
    // SAFETY: by contract; the vtable pointer is the first word.
    unsafe { load(primitive, 0) }
}

/// Stream and device of a primitive.
///
/// # Safety
/// `primitive` is a live `Primitive`.
#[inline]
pub unsafe fn stream_of(primitive: usize) -> (i16, Device) {
    use mlx::primitive::{DEVICE_INDEX, DEVICE_TYPE, STREAM_INDEX};
    // SAFETY: by contract, at fixed offsets.
    let (stream, kind, index): (i32, i32, i32) =
        unsafe { (load(primitive, STREAM_INDEX), load(primitive, DEVICE_TYPE), load(primitive, DEVICE_INDEX)) };
    let kind = if kind == 0 { DeviceKind::Cpu } else { DeviceKind::Gpu };
    (i16::try_from(stream).unwrap_or(NO_STREAM), Device::new(kind, index as u8))
}

/// Name of a primitive: a C string that lives as long as the primitive, or for ever.
///
/// # Safety
/// `primitive` is a live `Primitive` of 0.26.5 or later. No other thread calls its `name` for the first time: `Compiled`
/// and `View` build the string then.
#[inline]
pub unsafe fn name_of<'a>(primitive: usize) -> &'a CStr {
    // SAFETY: by contract; slot 5 of every primitive's vtable is `name`.
    unsafe {
        let name: Name = function(load(vtable_of(primitive), 8 * mlx::primitive::SLOT_NAME));
        let text = name(primitive as Ptr);
        if text.is_null() { c"" } else { CStr::from_ptr(text) }
    }
}

/// Shape of a descriptor; empty when it has more axes than any MLX array has.
///
/// # Safety
/// `desc` is a live `ArrayDesc` whose shape does not change while the slice is used.
#[inline]
pub unsafe fn shape_of<'a>(desc: usize) -> &'a [i32] {
    let shape = layout().desc.shape;
    // SAFETY: by contract; `SmallVector` keeps begin at +8 and end at +16.
    unsafe {
        let (begin, end): (usize, usize) = (load(desc, shape + 8), load(desc, shape + 16));
        let axes = end.saturating_sub(begin) / 4;
        if axes == 0 || axes > MAX_AXES { &[] } else { std::slice::from_raw_parts(begin as *const i32, axes) }
    }
}

/// MLX's code of a descriptor's dtype.
///
/// # Safety
/// `desc` is a live `ArrayDesc`.
#[inline]
pub unsafe fn dtype_of(desc: usize) -> u8 {
    // SAFETY: by contract, at the layout's offset.
    unsafe { load::<u32>(desc, layout().desc.dtype) as u8 }
}

/// Buffer of a descriptor's data, 0 when it has none.
///
/// # Safety
/// `desc` is a live `ArrayDesc` whose data does not change during the call.
#[inline]
pub unsafe fn buffer_of(desc: usize) -> u64 {
    // SAFETY: by contract; `Data` begins with its buffer.
    unsafe {
        let data: usize = load(desc, layout().desc.data);
        if data == 0 { 0 } else { load(data, 0) }
    }
}

/// Buffer in the second argument of `set_data`.
///
/// # Safety
/// `argument` is what a caller of `set_data` passed.
#[inline]
pub unsafe fn buffer_in(argument: Ptr) -> u64 {
    match layout().set_data {
        SetDataAbi::Buffer | SetDataAbi::BufferAndOffset => argument as u64,
        // SAFETY: by contract, a pointer to an `allocator::Data`, which begins with its buffer.
        SetDataAbi::Data => unsafe { load(argument as usize, 0) },
    }
}

/// Bytes of the elements of a descriptor, as its shape and dtype say.
///
/// # Safety
/// `desc` is a live `ArrayDesc` whose shape does not change during the call.
pub unsafe fn bytes_of(desc: usize) -> u64 {
    // SAFETY: by contract, at the layout's offset.
    let (shape, item_size) = unsafe { (shape_of(desc), load::<u8>(desc, layout().desc.dtype + 4)) };
    shape.iter().fold(u64::from(item_size), |bytes, &axis| bytes.saturating_mul(axis.max(0) as u64))
}
