//! Functions that only `mlx_memviz.bench` calls: what is measured, and what is subtracted.

use pyo3::prelude::*;

use crate::errors;

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
