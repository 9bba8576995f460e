//! Any bytes as a trace file: an error or traces, in bounded memory; and traces that were read can be checked, written and
//! read again. The checksums would keep the fuzzer out, so the first byte says whether they are set right before reading.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memviz_format::torch::Limits;
use memviz_format::trace_file;
use memviz_trace::Trace;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, file)) = bytes.split_first() else { return };
    let mut file = file.to_vec();
    if first & 1 == 0 {
        set_checksums(&mut file);
    }
    let limits = Limits { max_memory_bytes: 64 << 20, max_events: 100_000, ..Limits::default() };
    let Ok(traces) = trace_file::read(&file, &limits) else { return };
    for trace in &traces {
        let _ = trace.check();
    }
    let all: Vec<&Trace> = traces.iter().collect();
    let written = trace_file::write_all(&all, Vec::new()).expect("what was read can be written");
    assert_eq!(trace_file::read(&written, &Limits::default()).expect("what was written can be read"), traces);
});

/// Layout: `formats/memviz.md`.
fn set_checksums(file: &mut [u8]) {
    if file.len() < 16 {
        return;
    }
    let sum = crc32fast::hash(&file[..12]);
    file[12..16].copy_from_slice(&sum.to_le_bytes());
    let mut rest = &mut file[16..];
    while rest.len() >= 24 {
        let length = u32::from_le_bytes([rest[12], rest[13], rest[14], rest[15]]) as usize;
        let Some(end) = length.checked_add(24).filter(|end| *end <= rest.len()) else { return };
        let (chunk, after) = rest.split_at_mut(end);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&chunk[..20]);
        hasher.update(&chunk[24..]);
        let sum = hasher.finalize();
        chunk[20..24].copy_from_slice(&sum.to_le_bytes());
        rest = after;
    }
}
