//! Files of every version of the trace file stay readable: `tests/traces` at the root, one for each, never edited.
//!
//! Made by the example `sample` when the version was new. What they hold is stated here, not computed by today's code.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use memviz_format::torch::Limits;
use memviz_trace::{EndingKind, Trace};

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces").join(name)
}

fn open(name: &str) -> Vec<Trace> {
    memviz_format::read_path(&stored(name), &Limits::default(), &mut |_, _| {}).unwrap()
}

#[test]
fn version_1() {
    let ranks = open("v1.memviz");
    let facts: Vec<_> = ranks
        .iter()
        .map(|trace| {
            let report = trace.check().unwrap();
            (trace.header.rank, report.events, report.peak_active.bytes, report.end.active, report.end.cached)
        })
        .collect();
    assert_eq!(facts, FACTS);
    let [first, second] = &ranks[..] else { panic!("{} traces", ranks.len()) };
    assert_eq!(first.header.ending.kind, EndingKind::Unknown);
    assert_eq!(second.header.ending.kind, EndingKind::Exception);
    assert_eq!(second.header.ending.detail, "ValueError: shapes (3,4) and (5,)");
    let frame = second.stacks.frame(second.stacks.innermost(second.header.ending.stack).unwrap());
    assert_eq!((second.strings.get(frame.file), frame.line), ("/home/user/project/model.py", 100));
    assert_eq!(second.header.command, ["train.py", "--größe=1"]);
    assert_eq!(second.marks.len(), 11);
    assert_eq!(second.primitive(second.events[0].what), "Matmul");
}

/// Rank, events, peak of active bytes, active and cached bytes at the end.
const FACTS: [(Option<u32>, usize, u64, u64, u64); 2] =
    [(Some(0), 133, 27_131_904, 11_862_016, 18_743_296), (Some(1), 173, 27_131_904, 11_862_016, 23_986_176)];

#[test]
fn every_stored_file_has_its_test() {
    let folder = std::fs::read_dir(stored("")).unwrap();
    let mut names: Vec<String> = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["v1.memviz"]);
}
