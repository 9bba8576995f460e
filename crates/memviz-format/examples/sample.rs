//! Writes a made-up training loop: `cargo run -p memviz-format --example sample -- OUT.pickle|OUT.memviz [KIND]`.
//!
//! KIND: `small` (default), `devices` (two devices), `empty` (no event), `large` (a million events), `ranks` (a trace file of
//! two processes, as those in `tests/traces`).

use memviz_format::trace_file;
use memviz_trace::{Ending, EndingKind};

#[path = "../tests/simulate/mod.rs"]
mod simulate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: sample OUT [small|devices|empty|large|ranks]")?;
    let kind = args.next().unwrap_or_default();
    if kind == "ranks" {
        return ranks(path.as_ref());
    }
    let trace = match kind.as_str() {
        "empty" => memviz_trace::TraceBuilder::default().finish(),
        "devices" => simulate::training(6, 60, true),
        "large" => simulate::training(1250, 355, false),
        _ => simulate::training(6, 60, false),
    };
    trace.check()?;
    let started = std::time::Instant::now();
    memviz_format::write_path(&trace, path.as_ref())?;
    let bytes = std::fs::metadata(&path)?.len();
    println!("{} events in {:.3} s: {bytes} bytes", trace.events.len(), started.elapsed().as_secs_f64());
    Ok(())
}

fn ranks(path: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut ranks = [simulate::training(3, 20, false), simulate::training(4, 20, true)];
    for (number, trace) in ranks.iter_mut().enumerate() {
        trace.header.rank = Some(number as u32);
    }
    let detail = "ValueError: shapes (3,4) and (5,)".to_owned();
    let stack = ranks[1].events[0].built;
    ranks[1].header.ending = Ending { kind: EndingKind::Exception, detail, stack };
    memviz_format::write_whole(path, |out| trace_file::write_all(&ranks.each_ref(), out).map(drop))?;
    Ok(())
}
