//! Any bytes as a snapshot: an error or traces, in bounded memory; and traces that were read can be checked, written and
//! read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memviz_format::torch::{self, Limits};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_memory_bytes: 64 << 20, max_events: 100_000, ..Limits::default() };
    let Ok(traces) = torch::read_all(bytes, &limits) else { return };
    traces.iter().for_each(|trace| drop(trace.check()));
    let mut file = Vec::new();
    if torch::write_all(&traces.iter().collect::<Vec<_>>(), &mut file).is_ok() {
        let back = torch::read_all(&file, &Limits::default()).expect("what was written can be read");
        assert_eq!(back, traces);
    }
});
