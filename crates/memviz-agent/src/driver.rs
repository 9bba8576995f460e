//! What CUDA's driver says of memory: asked at checkpoints only, of the driver that MLX has loaded.
//!
//! The runtime is linked into libmlx statically, so its functions cannot be called; the driver's are exported by
//! `libcuda.so.1`. Only devices are asked on which this process has a context: a question must not make one.
#![expect(unsafe_code, reason = "calls functions of CUDA's driver")]

use std::ffi::{c_int, c_uint, c_void};
use std::path::Path;
use std::sync::OnceLock;

use memviz_trace::DeviceMemory;

use crate::linux;
use crate::originals::function;

type Pool = *mut c_void;
type Context = *mut c_void;

/// `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT` of `cuda.h`.
const RESERVED_MEM_CURRENT: c_uint = 5;

/// Functions of the driver, each returning 0 on success.
#[derive(Clone, Copy)]
struct Driver {
    device: unsafe extern "C" fn(*mut c_int, c_int) -> c_int,
    device_count: unsafe extern "C" fn(*mut c_int) -> c_int,
    context_state: unsafe extern "C" fn(c_int, *mut c_uint, *mut c_int) -> c_int,
    retain: unsafe extern "C" fn(*mut Context, c_int) -> c_int,
    release: unsafe extern "C" fn(c_int) -> c_int,
    push: unsafe extern "C" fn(Context) -> c_int,
    pop: unsafe extern "C" fn(*mut Context) -> c_int,
    memory: unsafe extern "C" fn(*mut usize, *mut usize) -> c_int,
    default_pool: unsafe extern "C" fn(*mut Pool, c_int) -> c_int,
    pool_attribute: unsafe extern "C" fn(Pool, c_uint, *mut c_void) -> c_int,
}

fn driver() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    DRIVER.get_or_init(find).as_ref()
}

fn find() -> Option<Driver> {
    let symbol = |name: &str| linux::symbol_of(Path::new("libcuda.so.1"), name).map(|found| found as u64);
    // SAFETY: the types are those of `cuda.h`, where a device is an int and a size a size_t.
    unsafe {
        Some(Driver {
            device: function(symbol("cuDeviceGet")?),
            device_count: function(symbol("cuDeviceGetCount")?),
            context_state: function(symbol("cuDevicePrimaryCtxGetState")?),
            retain: function(symbol("cuDevicePrimaryCtxRetain")?),
            release: function(symbol("cuDevicePrimaryCtxRelease_v2")?),
            push: function(symbol("cuCtxPushCurrent_v2")?),
            pop: function(symbol("cuCtxPopCurrent_v2")?),
            memory: function(symbol("cuMemGetInfo_v2")?),
            default_pool: function(symbol("cuDeviceGetDefaultMemPool")?),
            pool_attribute: function(symbol("cuMemPoolGetAttribute")?),
        })
    }
}

/// Memory of the devices that this process uses; `None` without a driver or a context. The caller holds no lock: the driver may
/// wait for other threads.
pub fn memory() -> Option<DeviceMemory> {
    let driver = driver()?;
    let mut count = 0;
    // SAFETY: `count` is a valid place.
    if unsafe { (driver.device_count)(&mut count) } != 0 {
        return None;
    }
    let all = (0..count).filter_map(|ordinal| driver.ask(ordinal));
    all.reduce(|sum, one| DeviceMemory {
        devices: sum.devices + one.devices,
        free: sum.free + one.free,
        total: sum.total + one.total,
        pool: sum.pool + one.pool,
    })
}

impl Driver {
    fn ask(&self, ordinal: c_int) -> Option<DeviceMemory> {
        let mut device = 0;
        // SAFETY: a valid place.
        if unsafe { (self.device)(&mut device, ordinal) } != 0 {
            return None;
        }
        let (mut flags, mut is_active): (c_uint, c_int) = (0, 0);
        // SAFETY: both are valid places.
        if unsafe { (self.context_state)(device, &mut flags, &mut is_active) } != 0 || is_active == 0 {
            return None;
        }
        let mut context: Context = std::ptr::null_mut();
        // SAFETY: a valid place; the context is released below.
        if unsafe { (self.retain)(&mut context, device) } != 0 {
            return None;
        }
        let found = self.ask_in(context, device);
        // SAFETY: retained above.
        unsafe { (self.release)(device) };
        found
    }

    fn ask_in(&self, context: Context, device: c_int) -> Option<DeviceMemory> {
        let (mut free, mut total) = (0, 0);
        let mut popped: Context = std::ptr::null_mut();
        // SAFETY: a retained context, made current on this thread for the question and taken off again.
        let is_known = unsafe {
            if (self.push)(context) != 0 {
                return None;
            }
            let is_known = (self.memory)(&mut free, &mut total) == 0;
            (self.pop)(&mut popped);
            is_known
        };
        is_known.then(|| DeviceMemory { devices: 1, free: free as u64, total: total as u64, pool: self.pool(device) })
    }

    /// Bytes that the default memory pool holds; 0 where a device has none.
    fn pool(&self, device: c_int) -> u64 {
        let mut pool: Pool = std::ptr::null_mut();
        let mut bytes = 0_u64;
        // SAFETY: valid places; the attribute is a 64-bit number.
        unsafe {
            if (self.default_pool)(&mut pool, device) != 0
                || (self.pool_attribute)(pool, RESERVED_MEM_CURRENT, (&raw mut bytes).cast()) != 0
            {
                return 0;
            }
        }
        bytes
    }
}
