//! Files that are cut, damaged or made to hurt give an error with a place, never a panic, a hang or a lot of memory.

#![allow(clippy::unwrap_used, reason = "tests")]

mod simulate;

use memviz_format::FormatError;
use memviz_format::torch::{self, Limits};
use proptest::prelude::*;

fn small() -> Limits {
    Limits { max_memory_bytes: 1 << 20, ..Limits::default() }
}

fn refusal(bytes: &[u8]) -> String {
    torch::read(bytes, &small()).unwrap_err().to_string()
}

fn sample() -> Vec<u8> {
    let mut file = Vec::new();
    torch::write(&simulate::training(1, 12, false), &mut file).unwrap();
    file
}

#[test]
fn every_truncation_is_an_error() {
    let file = sample();
    for length in 0..file.len() {
        let error = torch::read(&file[..length], &Limits::default()).unwrap_err();
        let is_expected = matches!(error, FormatError::Truncated { offset, .. } if offset == length) || length == 0;
        assert!(is_expected, "{length}: {error}");
    }
}

#[test]
fn code_is_refused_with_its_place() {
    let os_system = b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.";
    assert_eq!(
        refusal(os_system),
        "byte 17: opcode STACK_GLOBAL: this pickle wants to run code; snapshots hold plain data, so nothing was read"
    );
    for opcode in [b'c', b'R', b'b', b'i', b'o', 0x81, 0x92, b'P', b'Q', 0x82, 0x83, 0x84] {
        assert!(refusal(&[0x80, 4, b'}', opcode, b'.']).contains("wants to run code"), "{opcode:#x}");
    }
    assert_eq!(
        refusal(b"\x80\x04C\x01x."),
        "byte 2: found opcode 0x43; expected plain data (dict, list, tuple, str, int, float, bool or None)"
    );
}

#[test]
fn lengths_beyond_the_file_are_errors() {
    for head in
        [&b"X\xff\xff\xff\xff"[..], b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff", b"\x8b\xff\xff\xff\xff", b"\x8c\x09"]
    {
        let bytes = [b"\x80\x04", head, b"abc"].concat();
        assert!(refusal(&bytes).starts_with(&format!("byte {}: the file ends", bytes.len())));
    }
    assert!(refusal(b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f}.").contains("the rest of a frame"));
}

#[test]
fn depth_and_memory_are_bounded() {
    let deep = [&b"\x80\x04"[..], &b"(".repeat(2000)].concat();
    assert_eq!(
        refusal(&deep),
        "byte 1002: more than 1000 open containers; the file is damaged or hostile, or needs a higher limit"
    );
    for bomb in [&b"]"[..], b"N", b"]\x94", b"K\x01\x94", b")", b"}a"] {
        let bytes = [&b"\x80\x04"[..], &bomb.repeat(200_000)].concat();
        torch::read(&bytes, &small()).unwrap_err();
    }
    let nested = [&b"\x80\x04"[..], &b"]".repeat(10_000), &b"a".repeat(9_999), b"."].concat();
    assert_eq!(refusal(&nested), "device_traces: found no such key; expected the key");
    assert!(refusal(b"\x80\x04Nr\xff\xff\xff\xff.").contains("memo slot 4294967295 after 0 of them"));
    assert!(refusal(b"\x80\x04h\x07.").contains("expected one that was filled before"));
}

#[test]
fn stacks_and_marks_must_match() {
    for body in [
        &b"a."[..],
        b"e.",
        b"u.",
        b"s.",
        b"0.",
        b"2.",
        b"(.",
        b"]]",
        b".",
        b"NN.",
        b"]Ku.",
        b"](NNu.",
        b"}(Nu.",
        b"(a.",
        b"N(NNs.",
    ] {
        torch::read(&[b"\x80\x04", body].concat(), &small()).unwrap_err();
    }
}

#[test]
fn a_container_within_itself_does_not_hang() {
    let own_root = b"\x80\x04}\x94(\x8c\x0adevice_tracesh\x00\x8c\x08segmentsh\x00u.";
    torch::read(own_root, &small()).unwrap_err();
    let list = b"\x80\x04}(\x8c\x0ddevice_traces]\x94h\x00a\x8c\x08segments]u.";
    torch::read(list, &small()).unwrap_err();
}

#[test]
fn shared_lists_do_not_multiply() {
    // One list of 1000 events, listed as the trace of 1000 devices: a million events out of a few thousand bytes.
    let event = b"}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x01\x8c\x04sizeK\x01u\x94";
    let inner = [&b"]("[..], event, &b"h\x00".repeat(999), b"e\x94"].concat();
    let outer = [&b"]("[..], &inner, &b"h\x01".repeat(999), b"e"].concat();
    let file = [&b"\x80\x04}(\x8c\x0ddevice_traces"[..], &outer, b"\x8c\x08segments]u."].concat();
    let limits = Limits { max_events: 10_000, ..Limits::default() };
    assert!(torch::read(&file, &limits).unwrap_err().to_string().contains("more than 10000 events"));
}

#[test]
fn shared_ranks_do_not_multiply() {
    // One small trace, listed as 3000 ranks by reference.
    let trace = simulate::training(1, 5, false);
    let mut one = Vec::new();
    torch::write(&trace, &mut one).unwrap();
    let key = b"\x8c\x0amlx_memviz";
    let start = one.windows(key.len()).position(|window| window == key).unwrap() + key.len();
    let end = start + one[start..].windows(15).position(|window| &window[2..] == b"device_traces").unwrap() - 1;
    assert_eq!(one[end], b's');
    let head = b"\x80\x04}\x8c\x0amlx_memviz}(\x8c\x06formatK\x02\x8c\x05ranks](";
    let limits = Limits { max_events: 100_000, ..Limits::default() };
    // The memo slot of the rank comes after those of its strings, however many these are.
    let error_with = |slot: u8| {
        let repeat = [b'h', slot].repeat(3000);
        let file = [&head[..], &one[start..end], b"\x94", &repeat, b"eus."].concat();
        torch::read_all(&file, &limits).unwrap_err().to_string()
    };
    assert!((0..=255).any(|slot| error_with(slot).contains("more than 100000 events and table entries")));
}

proptest! {
    #[test]
    fn damaged_files(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut file = sample();
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok(trace) = torch::read(&file, &Limits::default()) {
            let _ = trace.check();
            let _ = torch::write(&trace, &mut Vec::new());
        }
    }

    #[test]
    fn any_opcodes(bytes in proptest::collection::vec(prop_oneof![prop::sample::select(&b"\x80\x04}](u)aes.(NKh\x94\x8c\x85\x86dlt012"[..]), any::<u8>()], 0..80)) {
        let _ = torch::read(&[b"\x80\x04", &bytes[..]].concat(), &small());
    }
}
