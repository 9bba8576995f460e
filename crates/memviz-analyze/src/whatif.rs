//! Numbers of a replay that a slider moves: peaks, hits, calls to the system, the first failure. Cheaper than [`crate::Replay`],
//! which also says what was alive and compares.
//!
//! Not here: menus of a page, columns of a picture (whoever observes).

use std::ops::Deref;

use memviz_alloc::{MetalDevice, Policy, SegmentPolicy};
use memviz_trace::{Action, Trace};
use serde::Serialize;

use crate::held::Amount;
use crate::peak::Moment;
use crate::replay::Counted;
use crate::replayer::{ReplayedAt, Replayer};
use crate::scenario::{Scenario, ScenarioOptions};
use crate::simulate::{Highest, simulate_each};

/// A moment and a number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BytesAt {
    /// Events of the trace up to then.
    pub event: usize,
    /// Bytes.
    pub bytes: u64,
}

/// Numbers of a run, recorded or replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WhatIf {
    /// How the allocator decides; "" for a recording whose policy needs a machine that is not known.
    pub policy: String,
    /// Cache limit at the start; `None` where there is none or it is not known.
    pub cache_limit: Option<u64>,
    /// Memory limit at the start.
    pub memory_limit: Option<u64>,
    /// Most active bytes.
    pub peak_active: BytesAt,
    /// Most active and cached bytes.
    pub peak_reserved: BytesAt,
    /// Allocations that reused a cached buffer.
    pub hits: u64,
    /// Allocations that came new.
    pub misses: u64,
    /// `hits / (hits + misses)`; `None` without allocations.
    pub hit_rate: Option<f64>,
    /// What the system or driver made.
    pub made: Amount,
    /// What left the cache for the system.
    pub evicted: Amount,
    /// The first allocation that fails, with the bytes asked for, or the first moment that needs more than the machine's memory.
    pub out_of_memory: Option<BytesAt>,
}

/// A name for a menu.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// As [`ScenarioOptions`] takes it.
    pub name: &'static str,
    /// For people.
    pub about: String,
}

/// Policies that a recording can be replayed under.
pub fn policy_choices() -> Vec<Choice> {
    let choice = |name: &'static str, about: String| Choice { name, about };
    let machine = MetalDevice::new(0, 0);
    let mlx = Policy::NAMES.into_iter().filter_map(|name| {
        Some(choice(name, format!("MLX's allocator, mlx {}", Policy::named(name, &machine)?.mlx_versions)))
    });
    let torch = SegmentPolicy::NAMES.into_iter().filter_map(|name| {
        Some(choice(name, format!("PyTorch's allocator, torch {}", SegmentPolicy::named(name, 0)?.torch_versions)))
    });
    mlx.chain(torch).chain([choice("ideal", "a bound: what no allocator can better".to_owned())]).collect()
}

/// Machines that a recording can be replayed on.
pub fn device_choices() -> Vec<Choice> {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let known = MetalDevice::names().filter_map(|name| Some((name, MetalDevice::named(name)?)));
    known
        .map(|(name, device)| {
            let about = format!("{:.0} GiB, working set {:.1} GiB", gib(device.memory), gib(device.working_set));
            Choice { name, about }
        })
        .collect()
}

impl<T: Deref<Target = Trace>> Replayer<T> {
    /// Replays and tells the numbers; `observe` hears the sums as in [`Replayer::each`].
    ///
    /// # Errors
    /// A sentence for the user: an unknown policy, a machine that is missing.
    pub fn whatif(&self, options: &ScenarioOptions, mut observe: impl FnMut(ReplayedAt)) -> Result<WhatIf, String> {
        let scenario = Scenario::new(&self.trace, options)?;
        let memory = scenario.memory.unwrap_or(u64::MAX);
        let mut over = None;
        let outcome = simulate_each(&self.calls, &scenario, |event, usage| {
            let at = ReplayedAt { after_events: event, active_bytes: usage.active, cached_bytes: usage.cached };
            let bytes = at.reserved_bytes();
            if bytes > memory && over.is_none() {
                over = Some(BytesAt { event, bytes });
            }
            observe(at);
        });
        let asked =
            |event: usize| event.checked_sub(1).and_then(|at| self.trace.events.get(at)).map_or(0, |at| at.requested());
        let refused = outcome.first_refusal().map(|(event, _)| BytesAt { event, bytes: asked(event) });
        Ok(WhatIf {
            policy: scenario.rules.name().to_owned(),
            cache_limit: scenario.cache_limit_at_start(self.calls.start_limit),
            memory_limit: Some(scenario.memory_limit.unwrap_or(scenario.rules.memory_limit())),
            peak_active: BytesAt { event: outcome.peak_active.after_events, bytes: outcome.peak_active.usage.active },
            peak_reserved: reserved(outcome.peak_reserved),
            hits: outcome.tally.hits,
            misses: outcome.tally.misses,
            hit_rate: outcome.hit_rate(),
            made: outcome.tally.made,
            evicted: outcome.tally.evicted,
            out_of_memory: refused.into_iter().chain(over).min_by_key(|at| at.event),
        })
    }

    /// The same numbers of the run as it was recorded.
    pub fn as_recorded(&self) -> WhatIf {
        let trace: &Trace = &self.trace;
        let counted = Counted::recorded(trace);
        let scenario = Scenario::new(trace, &ScenarioOptions::default()).ok();
        let failed = trace.events.iter().position(|event| event.action == Action::Oom);
        let at = |moment: Moment, bytes| BytesAt { event: moment.after_events, bytes };
        WhatIf {
            policy: scenario.as_ref().map_or("", |scenario| scenario.rules.name()).to_owned(),
            cache_limit: scenario.as_ref().and_then(|scenario| scenario.cache_limit_at_start(self.calls.start_limit)),
            memory_limit: scenario.as_ref().map(|scenario| scenario.rules.memory_limit()),
            peak_active: at(counted.peak_active, counted.peak_active.active_bytes),
            peak_reserved: at(counted.peak_reserved, counted.peak_reserved.reserved_bytes()),
            hits: counted.hits,
            misses: counted.misses,
            hit_rate: counted.hit_rate,
            made: counted.made,
            evicted: counted.evicted,
            out_of_memory: failed.map(|at| BytesAt { event: at + 1, bytes: trace.events[at].size }),
        }
    }
}

fn reserved(highest: Highest) -> BytesAt {
    BytesAt { event: highest.after_events, bytes: highest.usage.active.saturating_add(highest.usage.cached) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Replay, ReplayOptions};
    use memviz_trace::{Event, TraceBuilder};

    fn trace() -> Trace {
        let mut builder = TraceBuilder::default();
        builder.trace.header.backend = "cpu".to_owned();
        for (action, addr, size) in [
            (Action::AllocNew, 0x1000, 1 << 20),
            (Action::FreeActiveToCache, 0x1000, 1 << 20),
            (Action::AllocReuse, 0x1000, 1 << 20),
            (Action::AllocNew, 0x0020_0000, 3 << 20),
        ] {
            builder.push(Event { action, addr, size, ..Event::default() });
        }
        builder.finish()
    }

    #[test]
    fn numbers_are_those_of_the_full_answer() {
        let trace = trace();
        let replayer = Replayer::new(&trace);
        for policy in ["cpu", "cpu-0.28", "pytorch", "ideal"] {
            let scenario = ScenarioOptions { policy: Some(policy.to_owned()), ..ScenarioOptions::default() };
            let mut most = 0;
            let short = replayer.whatif(&scenario, |at| most = at.reserved_bytes().max(most)).unwrap();
            let full = Replay::new(&trace, &ReplayOptions { scenario, sweep: None }).unwrap();
            assert_eq!(short.peak_reserved.bytes, full.replayed.peak_reserved.reserved_bytes(), "{policy}");
            assert_eq!(
                (most, short.hits, short.misses),
                (short.peak_reserved.bytes, full.replayed.hits, full.replayed.misses)
            );
            assert_eq!((short.made, short.evicted), (full.replayed.made, full.replayed.evicted));
            let recorded = replayer.as_recorded();
            assert_eq!((recorded.hits, recorded.peak_active.bytes), (full.recorded.hits, 4 << 20));
        }
    }

    #[test]
    fn a_small_machine_runs_out() {
        let trace = trace();
        let device = Some(("tiny".to_owned(), MetalDevice::new(2 << 20, 2 << 20)));
        let options = ScenarioOptions { device, ..ScenarioOptions::default() };
        let answer = Replayer::new(&trace).whatif(&options, |_| ()).unwrap();
        assert_eq!(answer.out_of_memory.map(|at| at.event), Some(4));
    }

    #[test]
    fn every_choice_is_one() {
        let trace = trace();
        let replayer = Replayer::new(&trace);
        for choice in policy_choices() {
            let device =
                device_choices().first().map(|first| (first.name.to_owned(), MetalDevice::named(first.name).unwrap()));
            let options =
                ScenarioOptions { policy: Some(choice.name.to_owned()), device, ..ScenarioOptions::default() };
            assert!(replayer.whatif(&options, |_| ()).is_ok(), "{}", choice.name);
        }
    }
}
