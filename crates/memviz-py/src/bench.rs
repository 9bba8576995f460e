//! Functions that only `mlx_memviz.bench` calls: what is measured, and what is subtracted.

use std::sync::Arc;
use std::time::Instant;

use memviz_agent::bench::MlxAllocator;
use memviz_alloc::{Buffer, CachingAllocator, HostHeap, Policy};
use memviz_analyze::{Replayer, ScenarioOptions, device_from_text};
use pyo3::prelude::*;

use crate::errors;
use crate::trace::Trace;

/// Does nothing: the cost of a call, to be subtracted from that of `capture`.
#[pyfunction]
pub fn bench_nothing() -> u32 {
    0
}

/// `capture` by Python's public functions, whichever walker is in use.
#[pyfunction]
pub fn bench_public_capture() -> u32 {
    memviz_pyframes::capture_by_public_walk()
}

/// Nanoseconds for `count` allocations and frees of `size_bytes` by MLX's allocator, without the GIL.
#[pyfunction]
pub fn bench_allocator(py: Python<'_>, version: &str, size_bytes: usize, count: u32) -> PyResult<u64> {
    let probe = memviz_agent::session::probe(version).map_err(errors::attach)?;
    let time = py.detach(|| memviz_agent::bench::allocate_and_free(probe, size_bytes, count));
    let unreadable = || errors::AttachError::new_err("the vtable of MLX's allocator cannot be read");
    time.map(|time| time.as_nanos() as u64).ok_or_else(unreadable)
}

/// Smallest size that `BenchAllocators` caches; each further buffer has one byte more.
const FIRST_SIZE: u64 = 64;

/// MLX's allocator and ours, each with the same number of cached buffers, all of different sizes.
#[pyclass(module = "mlx_memviz._native", unsendable)]
pub struct BenchAllocators {
    mlx: MlxAllocator,
    ours: CachingAllocator<HostHeap>,
    cached: u64,
}

#[pymethods]
impl BenchAllocators {
    /// The caller has emptied MLX's cache and given it a limit that `cached` buffers fit in.
    #[new]
    fn new(py: Python<'_>, version: &str, cached: u64) -> PyResult<BenchAllocators> {
        let probe = memviz_agent::session::probe(version).map_err(errors::attach)?;
        let unreadable = || errors::AttachError::new_err("the vtable of MLX's allocator cannot be read");
        let mlx = MlxAllocator::new(probe).ok_or_else(unreadable)?;
        let policy = Policy { cache_limit: u64::MAX, ..Policy::cpu_0_32(0) };
        let bench = BenchAllocators { mlx, ours: CachingAllocator::new(policy, HostHeap::default()), cached };
        bench.fill(py)?;
        Ok(bench)
    }

    /// Caches the buffers again, in both.
    fn fill(&self, _py: Python<'_>) -> PyResult<()> {
        let sizes = FIRST_SIZE..FIRST_SIZE + self.cached;
        let theirs: Vec<_> = sizes.clone().map(|size| self.mlx.malloc(size as usize)).collect();
        theirs.into_iter().for_each(|buffer| self.mlx.free(buffer));
        let ours: Result<Vec<Buffer>, _> = sizes.map(|size| self.ours.malloc(size)).collect();
        ours.map_err(refused)?.into_iter().try_for_each(|buffer| self.ours.free(buffer)).map_err(refused)
    }

    /// Nanoseconds for `count` hits, each freed at once, of random cached sizes, by MLX.
    fn mlx_hits(&self, count: u32) -> u64 {
        let sizes = sizes(self.cached, count);
        let start = Instant::now();
        for size in sizes {
            self.mlx.free(self.mlx.malloc(size as usize));
        }
        start.elapsed().as_nanos() as u64
    }

    /// The same by our allocator.
    fn our_hits(&self, count: u32) -> PyResult<u64> {
        let sizes = sizes(self.cached, count);
        let start = Instant::now();
        for size in sizes {
            self.ours.malloc(size).and_then(|buffer| self.ours.free(buffer)).map_err(refused)?;
        }
        Ok(start.elapsed().as_nanos() as u64)
    }

    /// Nanoseconds to bring our cache down to `limit` bytes, by setting that limit.
    fn shrink_ours(&self, limit: u64) -> u64 {
        let start = Instant::now();
        self.ours.set_cache_limit(limit);
        let nanos = start.elapsed().as_nanos() as u64;
        self.ours.set_cache_limit(u64::MAX);
        nanos
    }

    /// Bytes in our cache.
    fn our_cached_bytes(&self) -> u64 {
        self.ours.cache_memory()
    }

    /// Hits and misses of our allocator so far.
    fn our_lookups(&self) -> (u64, u64) {
        let total = self.ours.counters().total();
        (total.hits, total.misses)
    }
}

/// A recording whose calls were read off its events, for the time of a replay alone.
#[pyclass(module = "mlx_memviz._native", frozen)]
pub struct BenchReplay(Replayer<Arc<memviz_trace::Trace>>);

#[pymethods]
impl BenchReplay {
    #[new]
    fn new(py: Python<'_>, trace: &Trace) -> BenchReplay {
        let trace = Arc::clone(trace.inner());
        BenchReplay(py.detach(|| Replayer::new(trace)))
    }

    /// Nanoseconds of a replay under a policy on a machine, with the sums after each call looked at.
    fn nanos(&self, py: Python<'_>, policy: &str, device: &str) -> PyResult<u64> {
        let machine = device_from_text(device).map_err(pyo3::exceptions::PyValueError::new_err)?;
        let device = Some((device.to_owned(), machine));
        let options = ScenarioOptions { policy: Some(policy.to_owned()), device, ..ScenarioOptions::default() };
        py.detach(|| {
            let (start, mut most) = (Instant::now(), 0);
            self.0.each(&options, |at| most = at.reserved_bytes().max(most))?;
            std::hint::black_box(most);
            Ok(start.elapsed().as_nanos() as u64)
        })
        .map_err(|error: String| pyo3::exceptions::PyValueError::new_err(error))
    }
}

fn refused(error: memviz_alloc::AllocError) -> PyErr {
    pyo3::exceptions::PyMemoryError::new_err(error.to_string())
}

/// `count` sizes among `cached`, drawn before the clock starts.
fn sizes(cached: u64, count: u32) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        FIRST_SIZE + state % cached.max(1)
    };
    (0..count).map(|_| draw()).collect()
}
