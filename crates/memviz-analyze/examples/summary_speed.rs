//! Time that a summary and the other answers take: `cargo run --release -p memviz-analyze --example summary_speed`.
//!
//! Two traces of about a million events: a training loop with 200 stacks, and a run that frees nothing, with a stack for
//! every fourth buffer.

#[path = "../../memviz-format/tests/simulate/mod.rs"]
mod simulate;

use std::time::Instant;

use memviz_analyze::{Growth, GrowthOptions, Held, HeldOptions, Instant as Moment, Leaks, Summary};
use memviz_trace::{Event, Frame, StackId, Trace, TraceBuilder};

fn main() {
    time("training loop", &simulate::training(1250, 355, false));
    time("nothing freed", &nothing_freed(1_000_000));
}

fn time(name: &str, trace: &Trace) {
    for _ in 0..3 {
        let started = Instant::now();
        let summary = Summary::new(trace);
        let secs = started.elapsed().as_secs_f64();
        println!("{name}: {} events in {secs:.3} s, {:?}", trace.events.len(), summary.checked);
    }
    let started = Instant::now();
    let held = Held::new(trace, HeldOptions { top: 10, ..HeldOptions::default() });
    println!("  peak in {:.3} s, {:?}", started.elapsed().as_secs_f64(), held.map(|held| held.total));
    let started = Instant::now();
    let growth = Growth::new(trace, GrowthOptions { top: 5, ..GrowthOptions::default() });
    println!(
        "  growth in {:.3} s, {:?} loops",
        started.elapsed().as_secs_f64(),
        growth.map(|growth| growth.loops.len())
    );
    let started = Instant::now();
    let leaks = Leaks::new(trace, (Moment::Start, Moment::Last), None, 10);
    println!("  leaks in {:.3} s, {:?}", started.elapsed().as_secs_f64(), leaks.map(|leaks| leaks.leaked));
}

fn nothing_freed(events: u64) -> Trace {
    let mut builder = TraceBuilder::default();
    let file = builder.intern("/home/user/project/train.py");
    for number in 0..events {
        let frame =
            Frame { file, line: 1 + number as u32 / 4 % 5000, column: number as u32 / 20_000, ..Frame::default() };
        let frame = builder.trace.stacks.intern_frame(frame);
        let built = builder.trace.stacks.push(StackId(number as u32 / 8), frame);
        builder.push(Event {
            time_nanos: number,
            addr: 0x10_0000 + number * 4096,
            size: 4096,
            built,
            ..Event::default()
        });
    }
    builder.finish()
}
