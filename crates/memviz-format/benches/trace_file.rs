//! Cost of a trace file of a million events, 200 stacks of 12 frames: `cargo bench -p memviz-format --bench trace_file`.
//!
//! A fixed trace, so that bytes can be compared between versions; times are the median of seven runs and their spread.
//! `many lines` is the same size with a line and shape of its own for each of 20,000 allocations.

#[path = "../tests/simulate/mod.rs"]
mod simulate;

use std::hint::black_box;
use std::time::Instant;

use memviz_format::torch::Limits;
use memviz_format::trace_file::{self, Part, Start, Writer};
use memviz_trace::{Base, Ending, Trace};
use simulate::Simulator;

const RUNS: usize = 7;

fn main() {
    bench("training loop", &simulate::training(1401, 355, false));
    bench("many lines", &many_lines());
}

fn bench(name: &str, trace: &Trace) {
    let file = trace_file::write_all(&[trace], Vec::new()).expect("a trace that fits");
    let events = trace.events.len() as f64;
    println!("{name}: {events} events, {:.2} bytes per event", file.len() as f64 / events);
    measure("write", events, || drop(black_box(trace_file::write_all(&[trace], Vec::new()))));
    measure("write in parts of 4096", events, || stream(trace));
    measure("read", events, || drop(trace_file::read(&file, &Limits::default()).expect("our own file")));
}

fn stream(trace: &Trace) {
    let mut writer = Writer::create(std::io::sink(), &trace.header, &Start::of(trace)).expect("a sink");
    for events in trace.events.chunks(4096) {
        let part = Part { events, checkpoints: &[], marks: &[], ..Part::of(trace) };
        writer.append(&part).expect("a sink");
    }
    writer.finish(&Ending::default(), &[]).expect("a sink");
}

/// No period, many owners, sizes and addresses: what packs badly.
fn many_lines() -> Trace {
    let mut sim = Simulator::new(20_000, 8);
    sim.begin(&[], Base::default());
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..500_000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        sim.nanos += 400 + random % 3000;
        sim.alloc((1 + (random >> 20) % 300) << 14, (random >> 40) as u32 % 16384, (random >> 8) as usize % 20_000);
        while sim.active() > 400 {
            sim.nanos += 100 + random % 700;
            sim.free((random >> 30) as usize, true);
        }
    }
    sim.finish()
}

fn measure(name: &str, events: f64, mut run: impl FnMut()) {
    let mut seconds: Vec<f64> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            run();
            started.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let (median, least, most) = (seconds[RUNS / 2], seconds[0], seconds[RUNS - 1]);
    println!("  {name}: {median:.3} s ({least:.3} to {most:.3}), {:.1} million events/s", events / median / 1e6);
}
