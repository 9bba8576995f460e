//! Machines: memory size and what Metal recommends to use of it.

/// What MLX's Metal allocator asks of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetalDevice {
    /// `hw.memsize`, bytes.
    pub memory: u64,
    /// `recommendedMaxWorkingSetSize`, bytes.
    pub working_set: u64,
    /// `maxBufferLength`, bytes.
    pub max_buffer: u64,
    /// `iogpu.rsrc_limit`, else what MLX takes in its place.
    pub resource_limit: u64,
    /// Small buffers have a heap: not in a virtual machine ("Apple Paravirtual device").
    pub has_heap: bool,
}

/// `resource_limit` where the system does not tell (mlx/backend/metal/device_info.cpp).
pub const RESOURCE_LIMIT: u64 = 499_000;
