//! Writes a snapshot of a made-up training loop: `cargo run -p memviz-format --example sample -- OUT.pickle [KIND]`.
//!
//! KIND: `small` (default), `devices` (two devices), `empty` (no event), `large` (a million events).

#[path = "../tests/simulate/mod.rs"]
mod simulate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: sample OUT.pickle [small|devices|empty|large]")?;
    let kind = args.next().unwrap_or_default();
    let trace = match kind.as_str() {
        "empty" => memviz_trace::TraceBuilder::default().finish(),
        "devices" => simulate::training(6, 60, true),
        "large" => simulate::training(1250, 355, false),
        _ => simulate::training(6, 60, false),
    };
    trace.check()?;
    let started = std::time::Instant::now();
    let mut file = std::fs::File::create(&path)?;
    let report = memviz_format::torch::write(&trace, &mut file)?;
    println!("{} events in {:.3} s: {report:?}", trace.events.len(), started.elapsed().as_secs_f64());
    Ok(())
}
