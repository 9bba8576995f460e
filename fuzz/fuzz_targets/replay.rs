//! Any trace under any policy and limits: a replay, advice or a sentence for the user, in time and memory that the number of
//! events bounds.
//!
//! The first bytes are the question. Of the rest, an even first byte makes events, however they contradict each other; an odd
//! one edits a good trace file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memviz_analyze::{Advise, Replay, ReplayOptions, Replayer, ScenarioOptions, device_from_text};
use memviz_format::torch::Limits;
use memviz_format::trace_file;
use memviz_trace::{
    Action, Base, Buffer, Device, DeviceKind, Event, Mark, MarkKind, ThreadId, Totals, Trace, TraceBuilder,
};

mod edited;

const POLICIES: [&str; 8] = ["", "cpu", "cpu-0.28", "metal", "cuda", "pytorch", "expandable", "ideal"];
const DEVICES: [&str; 4] = ["", "m3-16gb", "64MiB:32MiB", "17179869183GiB:8589934591GiB"];
/// Few enough that addresses and sizes meet again.
const SIZES: [u64; 16] = [
    0,
    1,
    8,
    255,
    512,
    4096,
    16_384,
    65_536,
    1 << 20,
    (1 << 20) + 1,
    10 << 20,
    20 << 20,
    1 << 30,
    1 << 40,
    1 << 63,
    u64::MAX,
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&[kind, policy, limits, cache, memory, points], rest)) = bytes.split_first_chunk::<6>() else { return };
    let named = |names: &[&'static str], at: u8| names[usize::from(at) % names.len()];
    let device = named(&DEVICES, policy >> 4);
    let scenario = ScenarioOptions {
        policy: Some(named(&POLICIES, policy & 15)).filter(|name| !name.is_empty()).map(str::to_owned),
        cache_limit: (limits & 1 > 0).then(|| size(cache)),
        memory_limit: (limits & 2 > 0).then(|| size(memory)),
        device: (!device.is_empty()).then(|| (device.to_owned(), device_from_text(device).expect("a good name"))),
        clears_every_step: limits & 4 > 0,
    };
    let sweep = (limits & 8 > 0).then(|| (0, size(cache), usize::from(points % 6)));
    let traces = if kind & 1 == 0 { vec![made(kind, rest)] } else { read(rest) };
    for trace in &traces {
        ask(trace, &ReplayOptions { scenario: scenario.clone(), sweep });
    }
});

fn ask(trace: &Trace, options: &ReplayOptions) {
    let replayer = Replayer::new(trace);
    let (mut last, mut most) = (None, 0);
    let told = replayer.each(&options.scenario, |at| {
        most = most.max(at.reserved_bytes());
        last = Some(at);
    });
    if let (Ok(replay), Some(last)) = (Replay::new(trace, options), last) {
        let end = &replay.replayed.end;
        assert_eq!((last.active_bytes, last.cached_bytes), (end.active_bytes, end.cached_bytes));
        assert!(told.is_ok() && most == replay.over_time.reserved_bytes.iter().copied().max().unwrap_or(0));
    }
    let _ = Advise::new(trace, &options.scenario);
}

fn size(byte: u8) -> u64 {
    SIZES[usize::from(byte & 15)].saturating_sub(u64::from(byte >> 6))
}

fn read(edits: &[u8]) -> Vec<Trace> {
    let limits = Limits { max_memory_bytes: 64 << 20, max_events: 10_000, ..Limits::default() };
    trace_file::read(&edited::edited(edits), &limits).unwrap_or_default()
}

/// Events, marks and what was there before them, four bytes each.
fn made(kind: u8, bytes: &[u8]) -> Trace {
    let mut builder = TraceBuilder::default();
    let header = &mut builder.trace.header;
    header.backend = ["cpu", "cuda", "metal", ""][usize::from(kind >> 1 & 3)].to_owned();
    header.mlx_version = ["0.32.4", "0.28.0", "", "x.y"][usize::from(kind >> 3 & 3)].to_owned();
    header.min_size = u64::from(kind >> 5 & 1) * 4096;
    let mut known = Vec::new();
    for (number, &[what, addr, bytes, more]) in bytes.as_chunks::<4>().0.iter().enumerate() {
        let (index, addr) = (number as u64, u64::from(addr) << 4);
        let kind = match what & 31 {
            20 => MarkKind::Step(index),
            21 => MarkKind::CacheLimit(size(bytes)),
            22 => {
                known.push(Buffer {
                    addr,
                    size: size(bytes),
                    slack: more.into(),
                    is_cached: what > 127,
                    ..Buffer::default()
                });
                continue;
            }
            at => {
                builder.push(event(index, Action::ALL[usize::from(at) % Action::ALL.len()], addr, bytes, more));
                continue;
            }
        };
        builder.trace.marks.push(Mark { index, time_nanos: index, thread: ThreadId(0), kind });
    }
    let totals = Totals { active: size(kind), cached: size(kind >> 4) };
    match kind >> 6 {
        0 => builder.start = Some((known, totals)),
        1 => (builder.end, builder.end_totals) = (Some(known), Some(totals)),
        2 => {}
        _ => {
            let mut trace = builder.finish();
            (trace.start, trace.base) = (known, Base { active: totals.active, cached: totals.cached });
            trace.first_index = size(kind >> 2) >> 1;
            return trace;
        }
    }
    builder.finish()
}

fn event(index: u64, action: Action, addr: u64, bytes: u8, more: u8) -> Event {
    let is_net = matches!(action, Action::FilteredNet | Action::Oom);
    Event {
        // Times that stand still and jump.
        time_nanos: index << (more & 1),
        addr: if is_net { size(more).wrapping_sub(size(bytes)) } else { addr },
        size: size(bytes),
        slack: u32::from(more).pow(u32::from(more >> 5).min(3)),
        device: Device::new(DeviceKind::Gpu, 0),
        action,
        flags: if more & 3 == 3 { Event::MOVED } else { 0 },
        ..Event::default()
    }
}
