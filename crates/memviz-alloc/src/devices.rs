//! Apple's machines by name: memory, recommended working set, and where each number was read.
//!
//! Metal answers per machine and macOS, so a number holds for the system of its source: up to macOS 15 the working set was
//! 2/3 of the memory up to 32 GiB and 3/4 above, newer systems recommend more. The largest buffer is 3/4 of the working set
//! wherever both were logged (16, 48 and 64 GiB); where a source does not name it, that share is taken.
//!
//! Not here: machines that users describe themselves (`memviz-analyze`).

use crate::device::{MetalDevice, RESOURCE_LIMIT};

/// Name, memory in GiB, working set in bytes, source of the working set.
type Row = (&'static str, u64, u64, &'static str);

/// 2/3 of the memory, as `recommendedMaxWorkingSetSize` rounds it.
const fn two_thirds(gib: u64) -> u64 {
    (gib << 30) * 2 / 3
}

/// 3/4 of the memory.
const fn three_quarters(gib: u64) -> u64 {
    (gib << 30) * 3 / 4
}

const ROWS: [Row; 12] = [
    ("m1-16gb", 16, two_thirds(16), "10922.67 MiB: ise-uiuc/magicoder#19; buffers of 8192 MiB there"),
    ("m1-pro-16gb", 16, two_thirds(16), "10922.67 MB: abetlen/llama-cpp-python#687"),
    (
        "m1-max-64gb",
        64,
        three_quarters(64),
        "49152.00 MiB: ggml-org/llama.cpp#1870; buffers of 36 GiB: gfx-rs/wgpu#2502",
    ),
    ("m2-24gb", 24, two_thirds(24), "17179.89 MB, the log of whisper.cpp on an Apple M2"),
    ("m2-max-32gb", 32, two_thirds(32), "21845.34 MiB: ollama/ollama#434"),
    ("m2-max-64gb", 64, three_quarters(64), "49152.00 MiB: ggml-org/llama.cpp#1870"),
    ("m2-max-96gb", 96, three_quarters(96), "73728.00 MiB: ggml-org/llama.cpp#3213"),
    ("m3-16gb", 16, two_thirds(16), "derived: the share of m3-24gb and of every 16 GiB machine logged up to macOS 15"),
    ("m3-24gb", 24, two_thirds(24), "\"using device Metal (Apple M3) - 16383 MiB free\", llama.cpp's log"),
    ("m4-16gb", 16, 12_713_120_000, "12713.12 MB: ggml 0.13.1's log on an M4, a system with Metal 4"),
    (
        "m4-pro-48gb",
        48,
        40_200_896_512,
        "mx.device_info() of an M4 Pro; max_buffer_length 30150672384, resource_limit 499000",
    ),
    ("m5-max-128gb", 128, 115_400_000_000, "\"115.4 of 137.4 GB\", mx.device_info() of an M5 Max"),
];

impl MetalDevice {
    /// Names that [`MetalDevice::named`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ROWS.iter().map(|row| row.0)
    }

    /// The machine of that name.
    pub fn named(name: &str) -> Option<MetalDevice> {
        let &(_, gib, working_set, _) = ROWS.iter().find(|row| row.0 == name)?;
        Some(MetalDevice::new(gib << 30, working_set))
    }

    /// Where the working set of that machine was read.
    pub fn source(name: &str) -> Option<&'static str> {
        ROWS.iter().find(|row| row.0 == name).map(|row| row.3)
    }

    /// A machine of which memory and working set are known.
    pub fn new(memory: u64, working_set: u64) -> MetalDevice {
        let max_buffer = working_set / 4 * 3;
        MetalDevice { memory, working_set, max_buffer, resource_limit: RESOURCE_LIMIT, has_heap: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_agree_with_their_sources() {
        let mib = |name| MetalDevice::named(name).map(|device| device.working_set as f64 / 1_048_576.0);
        for (name, logged) in [("m1-16gb", 10922.67), ("m2-max-32gb", 21845.34), ("m2-max-96gb", 73728.0)] {
            assert!((mib(name).unwrap() - logged).abs() < 0.02, "{name}");
        }
        assert_eq!(MetalDevice::named("m4-pro-48gb").unwrap().max_buffer, 30_150_672_384);
        assert_eq!(MetalDevice::named("m1-max-64gb").unwrap().max_buffer, 36 << 30);
        assert!(MetalDevice::names().all(|name| MetalDevice::source(name).is_some()));
        assert_eq!(MetalDevice::named("m9"), None);
    }
}
