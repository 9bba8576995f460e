//! Memory of an NVIDIA GPU, by the driver that is found at run time.
//!
//! Needs libcuda of CUDA 11.4 or later when a heap is made, nothing to build. Each call pushes the device's primary context,
//! which the CUDA runtime and so MLX use as well, and pops it: the caller's own context stays.
//!
//! Not here: copies and kernels. Whoever frees a block has waited for the work that uses it.
#![expect(unsafe_code, reason = "calls the CUDA driver")]

use std::ffi::c_int;
use std::ptr::{from_mut, null_mut};

use cudarc::driver::sys;

use super::Heap;

/// First driver that has each function called here, as `cuDriverGetVersion` says it.
const OLDEST_DRIVER: c_int = 11_040;

/// How a block is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CudaKind {
    /// `cuMemAlloc`: device memory, one call to the driver each.
    Device,
    /// `cuMemAllocAsync` on a stream of the heap's own: device memory of the driver's pool, which keeps freed bytes until
    /// [`CudaHeap::trim`] or a later wait for the stream.
    Pooled,
    /// `cuMemAllocManaged`: pages that move between host and device, more than the device has if need be.
    Managed,
}

/// Why there is no heap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// libcuda cannot be loaded.
    #[error("no CUDA driver: cannot load libcuda.so.1; install NVIDIA's driver or use another heap")]
    NoDriver,
    /// Functions are missing.
    #[error("the CUDA driver is for CUDA {}.{}, expected 11.4 or later; install a newer driver", found / 1000, found % 1000 / 10)]
    OldDriver {
        /// 1000 × major + 10 × minor.
        found: i32,
    },
    /// The machine has fewer devices.
    #[error("no CUDA device {ordinal}: the driver shows {count}; give a smaller number, see CUDA_VISIBLE_DEVICES")]
    NoDevice {
        /// Device asked for, from 0.
        ordinal: u32,
        /// Devices there are.
        count: u32,
    },
    /// The device has no memory of that kind.
    #[error("CUDA device {ordinal} has no {kind:?} memory; use CudaKind::Device")]
    Unsupported {
        /// Device asked for.
        ordinal: u32,
        /// Kind asked for.
        kind: CudaKind,
    },
    /// A call failed.
    #[error("the CUDA driver refused {call}: {name}")]
    Driver {
        /// Function of the driver.
        call: &'static str,
        /// Its error, such as `CUDA_ERROR_NO_DEVICE`.
        name: String,
    },
}

/// Memory of one device. Blocks can be used from every stream of the device's primary context as soon as they are handed out.
#[derive(Debug)]
pub struct CudaHeap {
    kind: CudaKind,
    device: sys::CUdevice,
    context: sys::CUcontext,
    /// Where `Pooled` allocates and frees; null for the other kinds.
    stream: sys::CUstream,
    pool: sys::CUmemoryPool,
}

// SAFETY: the handles name objects of the driver, which may be used from any thread; nothing here changes after `new`.
unsafe impl Send for CudaHeap {}
// SAFETY: as above.
unsafe impl Sync for CudaHeap {}

fn ok(result: sys::CUresult, call: &'static str) -> Result<(), CudaError> {
    result.result().map_err(|error| {
        let name =
            error.error_name().map_or_else(|_| format!("{result:?}"), |name| name.to_string_lossy().into_owned());
        CudaError::Driver { call, name }
    })
}

/// Starts the driver and returns how many devices it shows.
fn start_driver() -> Result<u32, CudaError> {
    // SAFETY: loads libcuda, whose initialisers have no demands on the caller.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    let (mut found, mut count) = (0, 0);
    // SAFETY: the library is there; every release since CUDA 2.2 has this function, which writes one number.
    ok(unsafe { sys::cuDriverGetVersion(&mut found) }, "cuDriverGetVersion")?;
    if found < OLDEST_DRIVER {
        return Err(CudaError::OldDriver { found });
    }
    // SAFETY: takes no pointer; may be called more than once.
    ok(unsafe { sys::cuInit(0) }, "cuInit")?;
    // SAFETY: the driver was started; writes one number.
    ok(unsafe { sys::cuDeviceGetCount(&mut count) }, "cuDeviceGetCount")?;
    Ok(u32::try_from(count).unwrap_or(0))
}

fn has_kind(device: sys::CUdevice, kind: CudaKind) -> Result<bool, CudaError> {
    use sys::CUdevice_attribute::{CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED};
    let attribute = match kind {
        CudaKind::Device => return Ok(true),
        CudaKind::Pooled => CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
        CudaKind::Managed => CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
    };
    let mut has = 0;
    // SAFETY: `device` came from `cuDeviceGet`; writes one number.
    ok(unsafe { sys::cuDeviceGetAttribute(&mut has, attribute, device) }, "cuDeviceGetAttribute")?;
    Ok(has != 0)
}

impl CudaHeap {
    /// Memory of device `ordinal`, counted from 0 as `CUDA_VISIBLE_DEVICES` shows them.
    ///
    /// # Errors
    /// There is no driver, no such device, or the device has no memory of that kind.
    pub fn new(ordinal: u32, kind: CudaKind) -> Result<CudaHeap, CudaError> {
        let count = start_driver()?;
        let number = c_int::try_from(ordinal).ok().filter(|_| ordinal < count);
        let number = number.ok_or(CudaError::NoDevice { ordinal, count })?;
        let (mut device, mut context) = (0, null_mut());
        // SAFETY: the driver was started; writes one number.
        ok(unsafe { sys::cuDeviceGet(&mut device, number) }, "cuDeviceGet")?;
        if !has_kind(device, kind)? {
            return Err(CudaError::Unsupported { ordinal, kind });
        }
        // SAFETY: `device` came from the driver; writes one handle, which `drop` releases.
        ok(unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, device) }, "cuDevicePrimaryCtxRetain")?;
        let mut heap = CudaHeap { kind, device, context, stream: null_mut(), pool: null_mut() };
        if kind == CudaKind::Pooled {
            heap.open_pool()?;
        }
        Ok(heap)
    }

    fn open_pool(&mut self) -> Result<(), CudaError> {
        let (mut stream, mut pool) = (null_mut(), null_mut());
        // SAFETY: `device` came from the driver; writes one handle, which the device owns.
        ok(unsafe { sys::cuDeviceGetMemPool(&mut pool, self.device) }, "cuDeviceGetMemPool")?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the context is current; writes one handle, which `drop` destroys.
        self.in_context("cuStreamCreate", || unsafe { sys::cuStreamCreate(&mut stream, flags) })?;
        (self.stream, self.pool) = (stream, pool);
        Ok(())
    }

    /// Calls the driver while this heap's context is the thread's.
    fn in_context(&self, call: &'static str, run: impl FnOnce() -> sys::CUresult) -> Result<(), CudaError> {
        // SAFETY: the context is retained until `drop`.
        ok(unsafe { sys::cuCtxPushCurrent_v2(self.context) }, "cuCtxPushCurrent")?;
        let result = ok(run(), call);
        let mut popped = null_mut();
        // SAFETY: the context that was pushed above is on top of this thread's stack.
        ok(unsafe { sys::cuCtxPopCurrent_v2(&mut popped) }, "cuCtxPopCurrent")?;
        result
    }

    /// Free and total bytes of the device, as the driver counts them over all processes: the total is [`crate::Policy::cuda`]'s.
    ///
    /// # Errors
    /// The driver refused.
    pub fn memory(&self) -> Result<(u64, u64), CudaError> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the context is current; writes two numbers.
        self.in_context("cuMemGetInfo", || unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((free as u64, total as u64))
    }

    /// Waits for the heap's frees and makes the driver's pool give back what nobody uses, for the whole process. Nothing to do
    /// for kinds other than [`CudaKind::Pooled`].
    ///
    /// # Errors
    /// The driver refused.
    pub fn trim(&self) -> Result<(), CudaError> {
        if self.kind != CudaKind::Pooled {
            return Ok(());
        }
        self.wait()?;
        // SAFETY: the pool is the device's and lives as long as the driver.
        self.in_context("cuMemPoolTrimTo", || unsafe { sys::cuMemPoolTrimTo(self.pool, 0) })
    }

    /// Waits for what the heap's stream has to do.
    fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: the context is current and the stream is this heap's.
        self.in_context("cuStreamSynchronize", || unsafe { sys::cuStreamSynchronize(self.stream) })
    }

    fn ask(&self, bytes: usize) -> Result<u64, CudaError> {
        let mut addr = 0;
        let attach = sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32;
        match self.kind {
            // SAFETY: the context is current; writes one address.
            CudaKind::Device => self.in_context("cuMemAlloc", || unsafe { sys::cuMemAlloc_v2(&mut addr, bytes) }),
            CudaKind::Managed => {
                // SAFETY: as above.
                self.in_context("cuMemAllocManaged", || unsafe { sys::cuMemAllocManaged(&mut addr, bytes, attach) })
            }
            CudaKind::Pooled => {
                // SAFETY: as above; the stream is this heap's.
                self.in_context("cuMemAllocAsync", || unsafe { sys::cuMemAllocAsync(&mut addr, bytes, self.stream) })?;
                // Only then may other streams use the block.
                self.wait()
            }
        }?;
        Ok(addr)
    }
}

impl Heap for CudaHeap {
    fn allocate(&self, size: u64) -> Option<u64> {
        // The driver refuses 0 bytes; a byte gives an address of its own.
        self.ask(usize::try_from(size).ok()?.max(1)).ok()
    }

    fn free(&self, addr: u64, _size: u64) {
        // A free fails when an earlier kernel broke the context: its memory is lost then anyway, and every later call says so.
        let _broken = match self.kind {
            // SAFETY: the contract of `Heap`: `allocate` of this heap gave this address, and nobody uses it any more.
            CudaKind::Pooled => self.in_context("cuMemFreeAsync", || unsafe { sys::cuMemFreeAsync(addr, self.stream) }),
            // SAFETY: as above.
            _ => self.in_context("cuMemFree", || unsafe { sys::cuMemFree_v2(addr) }),
        };
    }

    fn driver_bytes(&self) -> Option<u64> {
        if self.kind != CudaKind::Pooled {
            return None;
        }
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
        let mut bytes = 0_u64;
        // SAFETY: the pool is the device's; this attribute is a number of 64 bits.
        let result = unsafe { sys::cuMemPoolGetAttribute(self.pool, attribute, from_mut(&mut bytes).cast()) };
        result.result().is_ok().then_some(bytes)
    }
}

impl Drop for CudaHeap {
    fn drop(&mut self) {
        if !self.stream.is_null() {
            // SAFETY: the stream is this heap's; the driver ends it after its last free.
            let _gone = self.in_context("cuStreamDestroy", || unsafe { sys::cuStreamDestroy_v2(self.stream) });
        }
        // SAFETY: retained once, by `new`.
        let _gone = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}
