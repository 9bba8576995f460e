//! Trace files that are cut, damaged, of another version or made to hurt; disks that are full.

#![allow(clippy::unwrap_used, reason = "tests")]

mod simulate;

use std::io::Write;

use memviz_format::FormatError;
use memviz_format::torch::{self, Limits};
use memviz_format::trace_file::{self, Part, Start, Writer, write_all};
use memviz_trace::{Ending, EndingKind, Trace};

const PART_EVENTS: usize = 7;

fn read(bytes: &[u8]) -> Result<Vec<Trace>, FormatError> {
    trace_file::read(bytes, &Limits::default())
}

fn refusal(bytes: &[u8]) -> String {
    let limits = Limits { max_memory_bytes: 1 << 20, max_events: 1000, ..Limits::default() };
    trace_file::read(bytes, &limits).unwrap_err().to_string()
}

/// Small, because it is read once for each of its bytes.
fn sample() -> Trace {
    let mut sim = simulate::Simulator::new(2, 2);
    sim.begin(&[(4096, true), (100, false)], memviz_trace::Base { active: 5000, cached: 0 });
    for pick in 0..14 {
        sim.nanos += 90;
        sim.alloc(1 << (pick % 5), 0, pick);
        if pick % 2 == 1 {
            sim.free(pick, pick % 4 == 1);
        }
    }
    sim.finish()
}

/// A file of several parts, and where each append ended.
fn in_parts(trace: &Trace) -> (Vec<u8>, Vec<(usize, usize)>) {
    let mut writer = Writer::create(Vec::new(), &trace.header, &Start::of(trace)).unwrap();
    let mut ends = Vec::new();
    let mut counts = memviz_trace::Counts::default();
    for (number, events) in trace.events.chunks(PART_EVENTS).enumerate() {
        events.iter().filter(|event| event.action.is_buffer()).for_each(|event| counts.seen.add(event.size));
        writer.append(&Part { events, counts, marks: &[], checkpoints: &[], ..Part::of(trace) }).unwrap();
        ends.push((writer.get_ref().len(), (PART_EVENTS * (number + 1)).min(trace.events.len())));
    }
    (writer.finish(&Ending { kind: EndingKind::Stopped, ..Ending::default() }, &[]).unwrap(), ends)
}

#[test]
fn a_file_cut_at_any_byte_opens_up_to_its_last_whole_chunk() {
    let trace = sample();
    let (file, ends) = in_parts(&trace);
    for length in 0..file.len() {
        let whole = ends.iter().rev().find(|(end, _)| *end <= length).map_or(0, |(_, events)| *events);
        match read(&file[..length]) {
            Ok(back) => {
                let [back] = &back[..] else { panic!("{} traces", back.len()) };
                assert_eq!(back.header.ending.kind, EndingKind::Cut);
                assert_eq!(back.events, trace.events[..whole], "{length} bytes");
                assert_eq!(back.check().unwrap().events, whole);
                let is_torn = back.header.notes.len() > trace.header.notes.len();
                let is_at_end = ends.iter().any(|(end, _)| *end == length);
                assert!(is_torn || is_at_end || whole == 0, "{length}: {:?}", back.header.notes);
            }
            Err(error) => {
                assert!(
                    matches!(error, FormatError::Truncated { offset, .. } if offset == length),
                    "{length}: {error}"
                );
                assert_eq!(whole, 0);
            }
        }
    }
}

/// A disk that takes so many bytes.
struct Disk {
    bytes: Vec<u8>,
    room: usize,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = bytes.len().min(self.room - self.bytes.len());
        if count == 0 && !bytes.is_empty() {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_keeps_what_was_whole() {
    let trace = sample();
    let (file, ends) = in_parts(&trace);
    for room in (ends[0].0..file.len()).step_by(11) {
        let mut disk = Disk { bytes: Vec::new(), room };
        let mut writer = Writer::create(&mut disk, &trace.header, &Start::of(&trace)).unwrap();
        let mut counts = memviz_trace::Counts::default();
        let results: Vec<Result<(), FormatError>> = trace
            .events
            .chunks(PART_EVENTS)
            .map(|events| {
                events.iter().for_each(|event| counts.seen.add(event.size));
                writer.append(&Part { events, counts, marks: &[], checkpoints: &[], ..Part::of(&trace) })
            })
            .collect();
        let written = results.iter().take_while(|result| result.is_ok()).count();
        let mut failed = results[written..].iter();
        assert!(failed.next().is_none_or(|error| matches!(error, Err(FormatError::Write(_)))));
        assert!(failed.all(|error| matches!(error, Err(FormatError::Broken))), "nothing follows a torn chunk");
        assert!(writer.finish(&Ending::default(), &[]).is_err());
        let back = read(&disk.bytes).unwrap().remove(0);
        assert_eq!(back.events.len(), ends[written - 1].1);
        assert!(back.check().is_ok());
    }
}

fn chunk(kind: u16, section: u32, raw: &[u8]) -> Vec<u8> {
    sealed(kind, 0, section, raw, raw.len() as u32)
}

fn sealed(kind: u16, flags: u16, section: u32, stored: &[u8], raw_length: u32) -> Vec<u8> {
    let mut bytes = b"CHNK".to_vec();
    bytes.extend([kind.to_le_bytes(), flags.to_le_bytes()].concat());
    bytes.extend([section, stored.len() as u32, raw_length].map(u32::to_le_bytes).concat());
    let sum = crc32fast::hash(&[&bytes[..], stored].concat());
    bytes.extend(sum.to_le_bytes());
    bytes.extend(stored);
    bytes
}

fn file_header(version: u16) -> Vec<u8> {
    let mut bytes = trace_file::MAGIC.to_vec();
    bytes.extend([version.to_le_bytes(), [0; 2]].concat());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
    [file_header(1), chunks.concat()].concat()
}

#[test]
fn unknown_chunks_and_keys_are_skipped() {
    let header = chunk(1, 0, br#"{"mlx_version": "9", "colour": [1], "pid": 7}"#);
    let future = [chunk(900, 0, b"x"), chunk(2, 0, &[&99u32.to_le_bytes()[..], &3u32.to_le_bytes(), b"abc"].concat())];
    let end = chunk(3, 0, br#"{"kind": "abducted", "detail": "by aliens"}"#);
    let back = read(&file(&[&[header][..], &future, &[end]].concat())).unwrap().remove(0);
    assert_eq!(back.header.mlx_version, "9");
    assert_eq!(back.header.pid, 7);
    assert_eq!(back.header.ending, Ending { detail: "by aliens".into(), ..Ending::default() });
    assert_eq!(back.check().unwrap().events, 0);
}

#[test]
fn what_is_no_file_of_ours_says_so() {
    assert_eq!(
        refusal(b"hello, world, hello"),
        "byte 0: found [68, 65, 6c, 6c, 6f, 2c, 20, 77]; expected the first bytes of a trace file"
    );
    assert_eq!(refusal(b""), "byte 0: the file ends; expected the header of a trace file, 16 bytes");
    assert_eq!(refusal(&file_header(7)), "a trace file of version 7; this mlx-memviz reads up to 1; update mlx-memviz");
    assert_eq!(
        refusal(&file_header(1)),
        "byte 16: the file ends; expected a whole first chunk; nothing is recorded in this file"
    );
    let mut damaged = file_header(1);
    damaged[9] = 3;
    assert!(refusal(&damaged).starts_with("byte 12: found another checksum"));
}

#[test]
fn chunks_that_contradict_each_other_are_errors() {
    let header = || chunk(1, 0, b"{}");
    assert!(refusal(&file(&[chunk(2, 0, b"")])).starts_with("byte 16: found a chunk of section 0"));
    assert!(refusal(&file(&[header(), header()])).starts_with("byte 42: found a header of section 0"));
    assert!(refusal(&file(&[header(), chunk(1, 2, b"{}")])).starts_with("byte 42: found a header of section 2"));
    assert!(refusal(&file(&[header(), chunk(2, 0, &[1; 40])])).ends_with("expected tables as formats/memviz.md says"));
    assert!(refusal(&file(&[chunk(1, 0, b"{]")])).contains("JSON"));
    assert!(refusal(&file(&[header(), chunk(4, 0, &[0; 79])])).contains("last words that end early"));
}

#[test]
fn bombs_are_bounded() {
    let header = || chunk(1, 0, b"{}");
    let zeros = zstd::bulk::compress(&vec![0; 8 << 20], 3).unwrap();
    // More than it says, less than it says, more than a chunk may hold, no zstd at all.
    for (stored, raw_length) in [(&zeros, 100), (&zeros, 9 << 20), (&b"abc".to_vec(), 10)] {
        assert!(
            refusal(&file(&[header(), sealed(2, 1, 0, stored, raw_length)])).contains("a zstd frame of the length")
        );
    }
    let back = read(&file(&[header(), sealed(2, 1, 0, &zeros, 65 << 20)])).unwrap();
    assert_eq!(back[0].header.ending.kind, EndingKind::Cut);

    let many = simulate::training(40, 30, false);
    let whole = write_all(&[&many], Vec::new()).unwrap();
    assert!(many.events.len() > 1000);
    let limits = Limits { max_events: 1000, ..Limits::default() };
    let error = trace_file::read(&whole, &limits).unwrap_err().to_string();
    assert!(error.contains("more than 1000 events"), "{error}");
    let limits = Limits { max_memory_bytes: 50_000, ..Limits::default() };
    let error = trace_file::read(&whole, &limits).unwrap_err().to_string();
    assert!(error.contains("more than 50000 bytes of memory"), "{error}");

    let mut sections: Vec<Vec<u8>> = (0..1000).map(|section| chunk(1, section, b"{}")).collect();
    assert!(refusal(&file(&sections)).contains("bytes of memory"));
    sections.truncate(100);
    assert_eq!(read(&file(&sections)).unwrap().len(), 100);
}

/// Positions are added to it.
#[test]
fn a_first_event_has_a_number_of_63_bits() {
    let of = |first_index| Trace { first_index, ..sample() };
    let last = (1 << 63) - 1;
    assert_eq!(read(&write_all(&[&of(last)], Vec::new()).unwrap()).unwrap()[0].first_index, last);
    assert!(refusal(&write_all(&[&of(last + 1)], Vec::new()).unwrap()).contains("less than 2^63"));
    let mut pickle = Vec::new();
    torch::write(&of(last + 1), &mut pickle).unwrap();
    assert!(torch::read(&pickle, &Limits::default()).unwrap_err().to_string().contains("less than 2^63"));
}
