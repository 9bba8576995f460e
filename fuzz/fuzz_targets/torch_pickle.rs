//! Any bytes as a snapshot: an error or a trace, in bounded memory; and a trace that was read can be checked, written and
//! read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memviz_format::torch::{self, Limits};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_memory_bytes: 64 << 20, max_events: 100_000, ..Limits::default() };
    let Ok(trace) = torch::read(bytes, &limits) else { return };
    let _ = trace.check();
    let mut file = Vec::new();
    if torch::write(&trace, &mut file).is_ok() {
        let back = torch::read(&file, &Limits::default()).expect("what was written can be read");
        assert_eq!(back, trace);
    }
});
