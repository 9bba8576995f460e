//! Any bytes as a trace file: an error or traces, in bounded memory; and traces that were read can be checked, written and
//! read again.
//!
//! The first byte chooses: even, the rest is the file; odd, the rest is edits of three bytes each (place, value) to a good
//! file whose chunks are not compressed, with checksums set right, so that tables are reached without stored seeds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memviz_format::torch::Limits;
use memviz_format::trace_file;
use memviz_trace::Trace;

mod edited;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let file = if first & 1 == 0 { rest.to_vec() } else { edited::edited(rest) };
    let limits = Limits { max_memory_bytes: 64 << 20, max_events: 100_000, ..Limits::default() };
    let Ok(traces) = trace_file::read(&file, &limits) else { return };
    for trace in &traces {
        let _ = trace.check();
    }
    let all: Vec<&Trace> = traces.iter().collect();
    let written = trace_file::write_all(&all, Vec::new()).expect("what was read can be written");
    assert_eq!(trace_file::read(&written, &Limits::default()).expect("what was written can be read"), traces);
});
