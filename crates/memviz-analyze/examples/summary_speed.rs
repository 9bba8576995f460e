//! Time that a summary takes: `cargo run --release -p memviz-analyze --example summary_speed [STEPS]`.
//!
//! The default of 1,250 steps of the simulated training loop is about a million events.

#[path = "../../memviz-format/tests/simulate/mod.rs"]
mod simulate;

use std::time::Instant;

fn main() {
    let steps = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1250);
    let trace = simulate::training(steps, 355, false);
    for _ in 0..5 {
        let started = Instant::now();
        let summary = memviz_analyze::Summary::new(&trace);
        let secs = started.elapsed().as_secs_f64();
        println!("{} events in {secs:.3} s, {:?}", trace.events.len(), summary.checked);
    }
}
