//! Under which policy, limits and machine a recording is replayed.
//!
//! The recording's own policy is that of its back end and MLX version. Names are `memviz_alloc`'s, and "cpu", which is the
//! CPU policy of the recording's version; beyond MLX, PyTorch's two, and "ideal".

use memviz_alloc::{MetalDevice, Policy, SegmentPolicy};
use memviz_trace::Trace;

use crate::size::bytes_from_text;

/// What a user asks for; empty means "as recorded".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScenarioOptions {
    /// "metal", "cuda", "cpu", "cpu-0.32", "cpu-0.28"; for comparison "pytorch", "expandable", "ideal".
    pub policy: Option<String>,
    /// `mx.set_cache_limit` at the start; recorded changes of the limit are left out then.
    pub cache_limit: Option<u64>,
    /// `mx.set_memory_limit` at the start.
    pub memory_limit: Option<u64>,
    /// Machine, as [`MetalDevice`], with the name that the user gave.
    pub device: Option<(String, MetalDevice)>,
    /// `mx.clear_cache()` at every step.
    pub clears_every_step: bool,
}

/// The allocator that is replayed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rules {
    Mlx(Policy),
    Segments(SegmentPolicy),
    /// With hindsight, on a machine of that many bytes.
    Ideal {
        memory: u64,
    },
}

impl Rules {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Rules::Mlx(policy) => policy.name,
            Rules::Segments(policy) => policy.name,
            Rules::Ideal { .. } => IDEAL,
        }
    }

    /// What it mirrors, for people.
    pub(crate) fn mirrors(&self) -> String {
        match self {
            Rules::Mlx(policy) => format!("mlx {}", policy.mlx_versions),
            Rules::Segments(policy) => format!("torch {}", policy.torch_versions),
            Rules::Ideal { .. } => "a bound, no allocator".to_owned(),
        }
    }

    /// The policy, if it is one of MLX's.
    pub(crate) fn mlx(&self) -> Option<&Policy> {
        match self {
            Rules::Mlx(policy) => Some(policy),
            _ => None,
        }
    }

    /// The memory limit at the start.
    pub(crate) fn memory_limit(&self) -> u64 {
        match self {
            Rules::Mlx(policy) => policy.memory_limit,
            Rules::Segments(policy) => policy.memory,
            Rules::Ideal { memory } => *memory,
        }
    }
}

/// Rules with their limits, ready to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scenario {
    pub(crate) rules: Rules,
    pub(crate) cache_limit: Option<u64>,
    pub(crate) memory_limit: Option<u64>,
    pub(crate) clears_every_step: bool,
    /// Bytes of memory that blocks may take, where the machine is known.
    pub(crate) memory: Option<u64>,
    /// Nothing differs from the recorded run.
    pub(crate) is_as_recorded: bool,
}

/// Memory of the machine where a policy's limits need one and none is known: they decide nothing there (CPU).
const ANY_MEMORY: u64 = 1 << 40;
/// Name of the bound.
const IDEAL: &str = "ideal";

impl Scenario {
    /// Resolves `options` for `trace`.
    ///
    /// # Errors
    /// A sentence for the user: an unknown policy, a policy that needs a machine, step marks that are missing.
    pub(crate) fn new(trace: &Trace, options: &ScenarioOptions) -> Result<Scenario, String> {
        let own = own_policy(trace);
        let wanted = options.policy.as_deref().or(options.device.as_ref().map(|_| "metal"));
        let name = wanted.unwrap_or(own);
        let name = if name == "cpu" { cpu_policy(trace) } else { name };
        let rules = rules(trace, name, options)?;
        if options.cache_limit.is_some() {
            rules.must_have_cache_limit()?;
        }
        if options.clears_every_step && !trace.marks.iter().any(|mark| is_step(mark.kind)) {
            return Err("no steps are marked in the recording: call mlx_memviz.step() in the loop".to_owned());
        }
        let has_limits = options.cache_limit.is_some() || options.memory_limit.is_some();
        Ok(Scenario {
            is_as_recorded: name == own && !has_limits && !options.clears_every_step && options.device.is_none(),
            cache_limit: options.cache_limit,
            memory_limit: options.memory_limit,
            clears_every_step: options.clears_every_step,
            memory: options.device.as_ref().map(|(_, device)| device.memory).or_else(|| cuda_memory(trace)),
            rules,
        })
    }
}

impl Scenario {
    /// The cache's limit before the first call; `None` where there is none.
    pub(crate) fn cache_limit_at_start(&self, recorded: Option<u64>) -> Option<u64> {
        let policy = self.rules.mlx()?;
        Some(self.cache_limit.or(recorded).unwrap_or(policy.cache_limit))
    }

    /// The same with that cache limit from the start to the end.
    pub(crate) fn with_cache_limit(&self, bytes: u64) -> Scenario {
        Scenario { cache_limit: Some(bytes), is_as_recorded: false, ..self.clone() }
    }
}

fn is_step(kind: memviz_trace::MarkKind) -> bool {
    matches!(kind, memviz_trace::MarkKind::Step(_))
}

impl Rules {
    /// # Errors
    /// A sentence for the user.
    pub(crate) fn must_have_cache_limit(&self) -> Result<(), String> {
        let name = self.name();
        self.mlx().map(|_| ()).ok_or_else(|| format!("the policy {name} has no cache limit: leave the limit out"))
    }
}

fn rules(trace: &Trace, name: &str, options: &ScenarioOptions) -> Result<Rules, String> {
    let known = options.device.as_ref().map(|(_, device)| device.memory).or_else(|| cuda_memory(trace));
    let memory = known.unwrap_or(ANY_MEMORY);
    if name == IDEAL {
        return Ok(Rules::Ideal { memory });
    }
    if let Some(policy) = SegmentPolicy::named(name, memory) {
        return Ok(Rules::Segments(policy));
    }
    let machine = match (name, &options.device) {
        (_, Some((_, device))) => *device,
        ("metal", None) => return Err("the policy metal needs a machine: give --device, such as m3-16gb".to_owned()),
        ("cuda", None) if known.is_none() => {
            return Err("the policy cuda needs a machine: the recording names no memory, give --device".to_owned());
        }
        ("cuda", None) => machine(memory),
        _ => machine(ANY_MEMORY),
    };
    let names = || Policy::NAMES.into_iter().chain(SegmentPolicy::NAMES).chain([IDEAL]).collect::<Vec<_>>().join(", ");
    Policy::named(name, &machine).map(Rules::Mlx).ok_or_else(|| format!("no policy {name:?}; have cpu, {}", names()))
}

/// The machine that a user names: one of the table, or `MEMORY:WORKING-SET`, bytes.
///
/// # Errors
/// A sentence for the user.
pub fn device_from_text(text: &str) -> Result<MetalDevice, String> {
    if let Some(device) = MetalDevice::named(text) {
        return Ok(device);
    }
    let expected = || {
        let names: Vec<&str> = MetalDevice::names().collect();
        format!("no machine {text:?}; have {}; or give MEMORY:WORKING-SET, such as 16GiB:11GiB", names.join(", "))
    };
    let (memory, working_set) = text.split_once(':').ok_or_else(expected)?;
    let (memory, working_set) = (bytes_from_text(memory)?, bytes_from_text(working_set)?);
    if working_set > memory {
        return Err(format!("the working set of {text:?} is larger than its memory"));
    }
    Ok(MetalDevice::new(memory, working_set))
}

/// A machine of which only the memory counts.
fn machine(memory: u64) -> MetalDevice {
    MetalDevice { memory, working_set: memory, max_buffer: memory, resource_limit: u64::MAX, has_heap: false }
}

/// Bytes of the GPU, as the driver said while recording.
fn cuda_memory(trace: &Trace) -> Option<u64> {
    let said = trace.checkpoints.iter().find_map(|point| point.device)?;
    said.total.checked_div(said.devices)
}

/// The policy that the recorded run had.
fn own_policy(trace: &Trace) -> &'static str {
    match trace.header.backend.as_str() {
        "metal" => "metal",
        "cuda" => "cuda",
        _ => cpu_policy(trace),
    }
}

/// The CPU's policy in the MLX that ran: the cache came with 0.32.0. A version that cannot be read is taken for a new one.
fn cpu_policy(trace: &Trace) -> &'static str {
    let mut parts = trace.header.mlx_version.split('.').map_while(|part| part.parse::<u32>().ok());
    match (parts.next(), parts.next()) {
        (Some(0), Some(minor)) if minor < 32 => "cpu-0.28",
        _ => "cpu-0.32",
    }
}
