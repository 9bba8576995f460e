//! What differs between MLX's allocators: one table each, picked by the class that the loaded library uses.
//!
//! Sources: `mlx/backend/cuda/allocator.h` of each release, and `free_cuda_buffer` (before 0.30.6 `cuda_free`) of the wheels,
//! which holds the offset of the scalar pool and of a buffer's device; `tests/cuda_wheels.rs` reads both out of the wheels.

use super::parse;

/// Which allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `CommonAllocator`: a buffer is its address.
    Cpu,
    /// `CudaAllocator`: a buffer is a `CudaBuffer`, whose memory can move.
    Cuda,
}

/// Byte offsets in what a buffer's pointer points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLayout {
    /// Bytes of the buffer, a u64.
    pub size: usize,
    /// Address of its memory; `None` if the pointer itself stands for it.
    pub data: Option<usize>,
    /// Device of its memory, an i32, -1 for memory that host and device share; `None` if there is only one kind.
    pub device: Option<usize>,
}

/// An allocator's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackEnd {
    /// Which one.
    pub kind: Kind,
    /// "cpu", "cuda".
    pub name: &'static str,
    /// Its buffers.
    pub buffer: BufferLayout,
    /// It caches freed buffers.
    pub has_cache: bool,
    /// Offset in the allocator of the address of its pool of scalars.
    pub scalar_pool: Option<usize>,
    /// Offset in the allocator of the cache's limit, a u64, where it is known.
    pub cache_limit: Option<usize>,
}

/// Bytes of CUDA's pool of scalars: `small_pool_size` in `mlx/backend/cuda/allocator.cpp`.
pub const SCALAR_POOL_BYTES: u64 = 4 * 16384;

/// Releases of `mlx-cuda` (to 0.30.0), `mlx-cuda-12` and `mlx-cuda-13` (from 0.30.1) on PyPI that have a table, for messages.
pub const CUDA_RELEASES: &str = "0.29.4 to 0.30.6, 0.31.1 and 0.32.0 to 0.32.4";

const CPU_BUFFER: BufferLayout = BufferLayout { size: 0, data: None, device: None };

const CUDA_BUFFER: BufferLayout = BufferLayout { size: 8, data: Some(0), device: Some(16) };

/// The table for the class whose malloc has the mangled name `malloc`, in a release; `None`: do not attach.
pub fn back_end(malloc: &str, version: &str) -> Option<BackEnd> {
    if malloc.contains("15CommonAllocator") {
        let has_cache = parse(version)? >= (0, 32, 0);
        let (kind, name, buffer) = (Kind::Cpu, "cpu", CPU_BUFFER);
        // `max_pool_size_` of `CommonAllocator`, after the vtable's address and the memory limit (0.32.0 to 0.32.4).
        let cache_limit = has_cache.then_some(16);
        return Some(BackEnd { kind, name, buffer, has_cache, scalar_pool: None, cache_limit });
    }
    if !malloc.contains("13CudaAllocator") {
        return None;
    }
    // Before 0.29.4 its counters cannot be followed: a reused buffer counts with the size asked for, and the same buffer when
    // it is freed with its own, larger one.
    let pool = match parse(version)? {
        (0, 29, 4) | (0, 30, 0) => 0x100,
        (0, 30, 1..=6) | (0, 31, 1) | (0, 32, 0..=4) => 0x128,
        _ => return None,
    };
    let (kind, name, buffer) = (Kind::Cuda, "cuda", CUDA_BUFFER);
    Some(BackEnd { kind, name, buffer, has_cache: true, scalar_pool: Some(pool), cache_limit: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUDA: &str = "_ZN3mlx4core2cu13CudaAllocator6mallocEm";
    const CPU: &str = "_ZN3mlx4core9allocator15CommonAllocator6mallocEm";

    #[test]
    fn every_published_release_has_a_table_and_others_do_not() {
        for version in ["0.29.4", "0.30.0", "0.30.1", "0.30.6", "0.31.1", "0.32.0", "0.32.4"] {
            assert_eq!(back_end(CUDA, version).map(|found| found.name), Some("cuda"), "{version}");
        }
        for version in ["0.28.0", "0.29.3", "0.31.2", "0.31.0", "0.32.5", "0.27.1", "1.0.0", ""] {
            assert_eq!(back_end(CUDA, version), None, "{version}");
        }
        assert_eq!(back_end("_ZN3mlx4core5metal14MetalAllocator6mallocEm", "0.32.4"), None);
    }

    #[test]
    fn the_cpu_has_a_cache_from_0_32() {
        let has_cache = |version| back_end(CPU, version).map(|found| found.has_cache);
        assert_eq!([has_cache("0.31.2"), has_cache("0.32.0")], [Some(false), Some(true)]);
    }
}
