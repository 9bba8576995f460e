//! Replays of recordings that `memviz_alloc` made of itself: under the same policy nothing may change, and what another limit
//! gives is what an allocator with that limit does.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use memviz_alloc::{Buffer, CachingAllocator, MetalDevice, Policy, TraceRecorder, VirtualHeap};
use memviz_analyze::{Advice, Advise, AtPeak, Replay, ReplayOptions, Replayer, ScenarioOptions, device_from_text};
use memviz_trace::{Action, Event, Mark, MarkKind, ThreadId, Trace, TraceBuilder};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

type Allocator = CachingAllocator<VirtualHeap, TraceRecorder>;

/// Runs a program of pairs: what to do, and with which size or buffer.
fn record(backend: &str, policy: Policy, cache_limit: Option<u64>, program: &[(u8, u64)]) -> Trace {
    let allocator: Allocator = CachingAllocator::with_sink(policy, VirtualHeap::default(), TraceRecorder::new(backend));
    if let Some(limit) = cache_limit {
        allocator.set_cache_limit(limit);
    }
    let mut live: Vec<Buffer> = Vec::new();
    for &(what, number) in program {
        match what {
            0..=5 => live.extend(allocator.malloc(number % (40 * MIB)).ok()),
            6 if backend == "cpu" => allocator.clear_cache(),
            _ if live.is_empty() => {}
            _ => {
                let at = number as usize % live.len();
                allocator.free(live.swap_remove(at)).unwrap();
            }
        }
    }
    let recorder = allocator.with_sink_mut(|sink| std::mem::replace(sink, TraceRecorder::new(backend)));
    for buffer in live {
        allocator.free(buffer).unwrap();
    }
    recorder.finish()
}

fn replay(trace: &Trace, scenario: ScenarioOptions) -> Replay {
    Replay::new(trace, &ReplayOptions { scenario, sweep: None }).unwrap()
}

fn programs() -> impl Strategy<Value = Vec<(u8, u64)>> {
    let size = prop_oneof![0..300u64, 0..100_000u64, Just(MIB), Just(2 * MIB - 1), 0..(40 * MIB)];
    proptest::collection::vec((0..12u8, size), 0..300)
}

fn assert_same(found: &Replay) {
    let (recorded, replayed) = (&found.recorded, &found.replayed);
    assert_eq!(
        (recorded.made, recorded.given_back, recorded.evicted),
        (replayed.made, replayed.given_back, replayed.evicted)
    );
    assert_eq!((recorded.hits, recorded.misses), (replayed.hits, replayed.misses));
    assert_eq!((recorded.peak_active, recorded.end), (replayed.peak_active, replayed.end));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_same_policy_changes_nothing(program in programs()) {
        let trace = record("cpu", Policy::cpu_0_32(1 << 40), None, &program);
        trace.check().unwrap();
        let found = replay(&trace, ScenarioOptions::default());
        assert_same(&found);
        let agreement = found.agreement.unwrap();
        prop_assert_eq!(agreement.difference, None);
        prop_assert_eq!(agreement.events as usize, trace.events.len());
    }

    #[test]
    fn the_same_machine_changes_nothing(program in programs()) {
        let machine = MetalDevice::new(300 * MIB, 200 * MIB);
        let trace = record("metal", Policy::metal(&machine), None, &program);
        let device = Some(("small".to_owned(), machine));
        assert_same(&replay(&trace, ScenarioOptions { device, ..ScenarioOptions::default() }));
    }

    #[test]
    fn another_limit_is_predicted(program in programs(), limit in 0..(200 * MIB)) {
        // `clear_cache` with nothing cached leaves no event, so a larger cache is not cleared there.
        let program: Vec<(u8, u64)> = program.into_iter().filter(|&(what, _)| what != 6).collect();
        let policy = || Policy::cpu_0_32(1 << 40);
        let predicted = replay(
            &record("cpu", policy(), None, &program),
            ScenarioOptions { cache_limit: Some(limit), ..ScenarioOptions::default() },
        );
        let real = replay(&record("cpu", policy(), Some(limit), &program), ScenarioOptions::default()).recorded;
        prop_assert_eq!((real.hits, real.made, real.evicted), {
            let found = &predicted.replayed;
            (found.hits, found.made, found.evicted)
        });
        prop_assert_eq!(real.peak_reserved.reserved_bytes(), predicted.replayed.peak_reserved.reserved_bytes());
    }
}

/// Events that contradict each other are left out and counted, whatever they say.
#[test]
fn impossible_events_are_survived() {
    let mut builder = TraceBuilder::default();
    let event = |action, addr, size| Event { action, addr, size, ..Event::default() };
    for action in Action::ALL.into_iter().chain(Action::ALL) {
        builder.push(event(action, 0x1000, u64::MAX));
        builder.push(event(action, 0x1000, 64));
    }
    builder.trace.marks.push(Mark {
        index: 3,
        time_nanos: 0,
        thread: ThreadId(0),
        kind: MarkKind::CacheLimit(u64::MAX),
    });
    let trace = builder.finish();
    let names = ["cpu", "cpu-0.28", "metal", "cuda", "pytorch", "expandable", "ideal"];
    for policy in names.map(|name| Some(name.to_owned())) {
        let device = device_from_text("m3-16gb").map(|device| ("m3-16gb".to_owned(), device)).ok();
        let found = replay(&trace, ScenarioOptions { policy, device, ..ScenarioOptions::default() });
        assert!(found.skipped_events > 0);
    }
    assert!(replay(&trace, ScenarioOptions::default()).agreement.is_some_and(|found| found.difference.is_some()));
}

/// Two buffers of 32 MiB in turn, and 4 bytes that keep the second one out of the default cache.
#[test]
fn advice_names_the_limit_that_a_chain_needs() {
    let chain: Vec<(u8, u64)> = [(0, 4), (7, 0), (0, 32 * MIB), (7, 0)].repeat(50);
    let trace = record("cpu", Policy::cpu_0_32(1 << 40), None, &chain);
    let advise = Advise::new(&trace, &ScenarioOptions::default()).unwrap();
    let [Advice::RaiseLimit { to }] = &advise.advice[..] else { panic!("{:?}", advise.advice) };
    assert_eq!((to.cache_limit_bytes, to.made.count), (33 * MIB, 2));
    assert_eq!(advise.now.made.bytes, 50 * 32 * MIB + 4);
    let fixed = record("cpu", Policy::cpu_0_32(1 << 40), Some(to.cache_limit_bytes), &chain);
    assert_eq!(replay(&fixed, ScenarioOptions::default()).recorded.made, to.made);
}

fn under(policy: &str, memory: u64) -> ScenarioOptions {
    let device = Some(("machine".to_owned(), MetalDevice::new(memory, memory)));
    ScenarioOptions { policy: Some(policy.to_owned()), device, ..ScenarioOptions::default() }
}

/// Most bytes that were asked for and not freed yet.
fn most_asked_for(trace: &Trace) -> u64 {
    let (mut now, mut most, mut sizes) = (0, 0, std::collections::HashMap::new());
    for event in &trace.events {
        if event.action.is_alloc() {
            sizes.insert(event.addr, event.requested());
            now += event.requested();
        } else if event.action != Action::FreeCacheToOs {
            now -= sizes.remove(&event.addr).unwrap_or(0);
        }
        most = now.max(most);
    }
    most
}

/// The rows of a table of what was alive, and how many buffers there are.
fn assert_adds_up(peak: &AtPeak) -> u64 {
    let rows: u64 = peak.groups.iter().map(|group| group.line.bytes).sum();
    assert_eq!(rows + peak.rest.bytes + peak.added_bytes, peak.moment.active_bytes, "{peak:?}");
    peak.groups.iter().map(|group| group.line.count).sum::<u64>() + peak.rest.count
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_policy_betters_the_ideal_one(program in programs()) {
        let trace = record("cpu", Policy::cpu_0_32(1 << 40), None, &program);
        let ideal = replay(&trace, under("ideal", 1 << 40));
        let needed = ideal.replayed.peak_active.active_bytes;
        prop_assert_eq!(needed, most_asked_for(&trace));
        prop_assert_eq!(ideal.replayed.peak_reserved.reserved_bytes(), needed);
        prop_assert_eq!((ideal.replayed.made.bytes, ideal.replayed.made.count), (needed, u64::from(needed > 0)));
        for policy in ["cpu-0.32", "cpu-0.28", "metal", "cuda", "pytorch", "expandable"] {
            let other = replay(&trace, under(policy, 1 << 40)).replayed;
            prop_assert!(other.peak_reserved.reserved_bytes() >= needed, "{policy}");
            prop_assert!(other.made.count >= ideal.replayed.made.count, "{policy}");
        }
        // With less memory than it needs, nothing fits.
        if needed > 0 {
            let small = |policy| replay(&trace, under(policy, needed - 1)).is_out_of_memory;
            prop_assert_eq!([small("ideal"), small("pytorch"), small("expandable")], [Some(true); 3]);
        }
    }

    #[test]
    fn what_was_alive_adds_up(program in programs(), memory in 1..(400 * MIB)) {
        let trace = record("cpu", Policy::cpu_0_32(1 << 40), None, &program);
        for policy in ["cpu-0.32", "cpu-0.28", "metal", "cuda", "pytorch", "expandable", "ideal"] {
            let found = replay(&trace, under(policy, memory));
            assert_adds_up(&found.at_peak_active);
            found.at_peak_reserved.iter().for_each(|peak| _ = assert_adds_up(peak));
            prop_assert_eq!(found.at_peak_active.moment, found.replayed.peak_active);
        }
    }

    #[test]
    fn sums_after_each_call_are_those_of_the_answer(program in programs(), memory in 1..(400 * MIB)) {
        let trace = record("cpu", Policy::cpu_0_32(1 << 40), None, &program);
        let replayer = Replayer::new(&trace);
        for policy in ["cpu-0.32", "metal", "pytorch", "expandable", "ideal"] {
            let (scenario, mut sums) = (under(policy, memory), Vec::new());
            replayer.each(&scenario, |at| sums.push(at)).unwrap();
            prop_assert!(sums.is_sorted_by_key(|at| at.after_events));
            let found = replay(&trace, scenario.clone());
            let (last, most) = (sums.last().unwrap(), sums.iter().map(|at| at.reserved_bytes()).max());
            prop_assert_eq!(most, Some(found.replayed.peak_reserved.reserved_bytes()));
            let end = &found.replayed.end;
            prop_assert_eq!((last.active_bytes, last.cached_bytes), (end.active_bytes, end.cached_bytes));
            prop_assert_eq!(replayer.over_time(&scenario, 120).unwrap(), found.over_time);
        }
    }
}

/// 3 MiB live in a segment of 20 MiB; a second one of 18 MiB does not fit into it.
#[test]
fn segments_reserve_more_than_is_asked_for() {
    let trace = record("cpu", Policy::cpu_0_32(1 << 40), None, &[(0, 3 * MIB), (0, 18 * MIB), (7, 1), (0, 16 * MIB)]);
    let pytorch = replay(&trace, under("pytorch", 1 << 30));
    assert_eq!((pytorch.under.cache_limit_bytes, pytorch.under.mirrors.as_str()), (None, "torch 2.11"));
    assert_eq!((pytorch.replayed.made.bytes, pytorch.replayed.made.count), (38 * MIB, 2));
    // 16 MiB are served from 17, and 1 MiB left over is not split off.
    assert_eq!((pytorch.replayed.hits, pytorch.replayed.end.active_bytes), (1, 20 * MIB));
    assert_eq!((assert_adds_up(&pytorch.at_peak_active), pytorch.at_peak_active.added_bytes), (2, 0));
    let expandable = replay(&trace, under("expandable", 1 << 30));
    assert_eq!((expandable.replayed.made.bytes, expandable.replayed.made.count), (40 * MIB, 2));
    let out = replay(&trace, under("pytorch", 37 * MIB));
    assert_eq!((out.refusals, assert_adds_up(&out.at_peak_active)), (1, 2));
    for (limit, sweep) in [(Some(1), None), (None, Some((0, MIB, 2)))] {
        let scenario = ScenarioOptions { cache_limit: limit, ..under("pytorch", 1 << 30) };
        let refused = Replay::new(&trace, &ReplayOptions { scenario, sweep }).unwrap_err();
        assert!(refused.contains("pytorch has no cache limit"), "{refused}");
    }
}
