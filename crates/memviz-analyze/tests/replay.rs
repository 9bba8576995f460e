//! Replays of recordings that `memviz_alloc` made of itself: under the same policy nothing may change, and what another limit
//! gives is what an allocator with that limit does.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use memviz_alloc::{Buffer, CachingAllocator, MetalDevice, Policy, TraceRecorder, VirtualHeap};
use memviz_analyze::{Advice, Advise, Replay, ReplayOptions, ScenarioOptions, device_from_text};
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
    let names = ["cpu", "cpu-0.28", "metal", "cuda"];
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
