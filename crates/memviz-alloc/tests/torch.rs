//! `SegmentEngine` against PyTorch itself: `tests/torch` has what `torch.cuda` 2.11.0 did on an H200 for random calls, without
//! and with `expandable_segments:True`, without a limit and with 0.75 GiB (`set_per_process_memory_fraction`).
//!
//! First line: version, bytes of the device, bytes allowed. Then one call a line with PyTorch's counters after it (allocated
//! bytes, reserved bytes, calls that took memory from the driver, calls that gave some back): `m NUMBER BYTES` is an allocation,
//! `o NUMBER BYTES` one that was refused, `f NUMBER` a free, `c` is `empty_cache`. A number after the counters is the address of
//! the segment that the driver made: of equal blocks the one at the lowest address serves.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::HashMap;

use memviz_alloc::{AllocError, SegmentEngine, SegmentPolicy};

/// Counters of the engine, as on a line.
fn counters(engine: &SegmentEngine) -> [u64; 4] {
    let (usage, (made, given_back)) = (engine.usage(), engine.driver_calls());
    [usage.active, usage.active + usage.cached, made.count, given_back.count]
}

/// Number of calls compared.
fn compare(policy: fn(u64) -> SegmentPolicy, text: &str) -> usize {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(' ').collect();
    let mut engine = SegmentEngine::new(policy(head[1].parse().unwrap()));
    engine.set_memory_limit(head[2].parse().unwrap());
    let mut blocks = HashMap::new();
    for (number, line) in lines.enumerate() {
        let (call, rest) = line.split_once(' ').unwrap();
        let numbers: Vec<u64> = rest.split(' ').map(|number| number.parse().unwrap()).collect();
        match call {
            "m" => {
                if let Some(&addr) = numbers.get(6) {
                    engine.place_next_segment(addr);
                }
                blocks.insert(numbers[0], engine.malloc(numbers[1]).unwrap().unwrap());
            }
            "o" => assert!(matches!(engine.malloc(numbers[1]), Err(AllocError::OutOfMemory { .. })), "{line}"),
            "f" => engine.free(blocks.remove(&numbers[0]).unwrap()).unwrap(),
            "c" => engine.clear_cache(),
            _ => panic!("{line}"),
        }
        let first = match call {
            "c" => 0,
            "f" => 1,
            _ => 2,
        };
        assert_eq!(counters(&engine)[..], numbers[first..first + 4], "call {number}: {line}");
    }
    text.lines().count() - 1
}

#[test]
fn segments_are_those_of_pytorch() {
    assert_eq!(compare(SegmentPolicy::pytorch, include_str!("torch/pytorch.txt")), 1500);
}

#[test]
fn segments_under_a_limit_are_those_of_pytorch() {
    assert_eq!(compare(SegmentPolicy::pytorch, include_str!("torch/pytorch_limit.txt")), 1500);
}

#[test]
fn ranges_that_grow_are_those_of_pytorch() {
    assert_eq!(compare(SegmentPolicy::expandable, include_str!("torch/expandable.txt")), 1500);
}

#[test]
fn ranges_under_a_limit_are_those_of_pytorch() {
    assert_eq!(compare(SegmentPolicy::expandable, include_str!("torch/expandable_limit.txt")), 1500);
}
