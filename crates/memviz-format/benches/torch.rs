//! Cost of a snapshot of a million events, 200 stacks of 12 frames: `cargo bench -p memviz-format --bench torch`.
//!
//! A fixed trace, so that bytes can be compared between versions; times are the median of seven runs and their spread.

#[path = "../tests/simulate/mod.rs"]
mod simulate;

use std::time::Instant;

use memviz_format::torch::{self, Limits};

const RUNS: usize = 7;

fn main() {
    let trace = simulate::training(1401, 355, false);
    let mut file = Vec::new();
    let report = torch::write(&trace, &mut file).expect("a trace that fits");
    let events = trace.events.len() as f64;
    let bytes = report.bytes as f64;
    println!("{events} events, {} entries of the page, {bytes} bytes", report.entries);
    println!("{:.1} bytes per event, {:.1} per entry", bytes / events, bytes / report.entries as f64);
    measure("write", || {
        file.clear();
        torch::write(&trace, &mut file).expect("a trace that fits");
    });
    measure("read", || drop(torch::read(&file, &Limits::default()).expect("our own file")));
    measure("check", || assert!(trace.check().is_ok()));
}

fn measure(name: &str, mut run: impl FnMut()) {
    let mut seconds: Vec<f64> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            run();
            started.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!("{name}: {:.3} s ({:.3} to {:.3})", seconds[RUNS / 2], seconds[0], seconds[RUNS - 1]);
}
