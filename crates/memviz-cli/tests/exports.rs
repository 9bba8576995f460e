//! What `flamegraph`, `export` and `merge` write about a small recording, whole; and what they refuse.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use memviz_cli::{Outcome, Streams, main_with};
use memviz_trace::{
    Action, Event, Frame, Header, Mark, MarkKind, StackId, StringId, Thread, ThreadId, Trace, TraceBuilder, What,
};

/// Exit code, standard output and standard error of `memviz words…`.
fn memviz(words: &[&str]) -> (i32, String, String) {
    let args: Vec<OsString> = std::iter::once("memviz").chain(words.iter().copied()).map(OsString::from).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        out: &mut out,
        err: &mut err,
        out_color: false,
        err_color: false,
        out_width: 100,
        shows_progress: false,
    };
    let Outcome::Exit(code) = main_with(args, &mut streams) else { panic!("{words:?}") };
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn stack(builder: &mut TraceBuilder, places: &[(&str, &str, u32)]) -> StackId {
    places.iter().fold(StackId(0), |caller, (file, function, line)| {
        let (file, function) = (builder.intern(file), builder.intern(function));
        let frame = builder.trace.stacks.intern_frame(Frame { file, function, line: *line, ..Frame::default() });
        builder.trace.stacks.push(caller, frame)
    })
}

/// Two steps: weights that stay, an activation that goes to the cache and comes back, a leaf array.
fn recording(rank: Option<u32>) -> Trace {
    let mut builder = TraceBuilder::default();
    let command = vec!["/u/train.py".to_owned()];
    builder.trace.header = Header { command, pid: 7, start_unix_micros: 1_000_000, rank, ..Header::default() };
    let name = builder.intern("MainThread");
    let thread = builder.push_thread(Thread { native_id: 7, name });
    let (primitive, dtype) = (builder.intern("Matmul"), builder.intern("float32"));
    let what = What { primitive, dtype, shape: Some([2, 8].into()), is_temporary: false };
    let matmul = builder.intern_what(what);
    let leaf =
        builder.intern_what(What { dtype, shape: Some([4].into()), primitive: StringId(0), is_temporary: false });
    let main = ("/u/train.py", "<module>", 9);
    let model = stack(&mut builder, &[main, ("/u/model.py", "Model; \"big\"", 3)]);
    let eval = stack(&mut builder, &[main, ("/u/train.py", "step", 5)]);
    let event = |time_nanos, action, addr, size, built| Event {
        time_nanos,
        action,
        addr,
        size,
        built,
        what: matmul,
        triggered: eval,
        thread,
        stream: 0,
        ..Event::default()
    };
    builder.push(event(1000, Action::AllocNew, 0x100, 64, model));
    builder.push(event(2000, Action::AllocNew, 0x200, 32, eval));
    builder.push(event(3000, Action::FreeActiveToCache, 0x200, 32, eval));
    builder.push(Event { slack: 8, ..event(5000, Action::AllocReuse, 0x200, 32, eval) });
    builder.push(Event {
        what: leaf,
        triggered: StackId(0),
        stream: -1,
        ..event(6000, Action::AllocNew, 0x300, 16, StackId(0))
    });
    let forward = builder.intern("forward");
    let mark = |index, kind| Mark { index, time_nanos: 500 + 1000 * index, thread: ThreadId(1), kind };
    builder.trace.marks =
        vec![mark(1, MarkKind::AnnotationBegin(forward)), mark(2, MarkKind::AnnotationEnd), mark(3, MarkKind::Step(1))];
    builder.finish()
}

/// A folder with the recording as `run.pickle`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let trace = recording(None);
    trace.check().unwrap();
    memviz_format::write_path(&trace, &folder.path().join("run.pickle")).unwrap();
    folder
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn text_exports_are_whole() {
    let folder = folder();
    let at = |name: &str| text(&folder.path().join(name));
    for name in ["out.csv", "out.speedscope.json", "out.txt"] {
        let (code, _, err) = memviz(&["export", &at("run.pickle"), "-o", &at(name)]);
        assert_eq!((code, err.as_str()), (0, ""), "{name}");
    }
    let files = ["out.csv", "out.buffers.csv", "out.stacks.csv", "out.speedscope.json", "out.txt"];
    let all: Vec<String> = files.iter().map(|name| format!("== {name}\n{}", read(folder.path(), name))).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn flame_graphs_show_what_is_asked_for() {
    let folder = folder();
    let run = text(&folder.path().join("run.pickle"));
    let collapsed = |more: &[&str]| {
        let (code, out, err) = memviz(&[&["flamegraph", &run, "-o", "-", "--format", "collapsed"], more].concat());
        assert_eq!((code, err.as_str()), (0, ""), "{more:?}");
        format!("== {}\n{out}", more.join(" "))
    };
    let asked: &[&[&str]] = &[
        &[],
        &["--inverted"],
        &["--count"],
        &["--of", "allocated"],
        &["--of", "leaked", "--count"],
        &["--at", "0"],
        &["--at", "2us"],
        &["--at", "start"],
    ];
    insta::assert_snapshot!(asked.iter().map(|more| collapsed(more)).collect::<Vec<_>>().join("\n"));
    let (code, svg, _) = memviz(&["flamegraph", &run, "-o", "-"]);
    assert_eq!(code, 0);
    assert!(svg.contains("<title>step (train.py:5) (32 bytes, 28.57%)</title>"), "{svg}");
}

#[test]
fn what_cannot_be_written_is_refused() {
    let folder = folder();
    let at = |name: &str| text(&folder.path().join(name));
    let run = at("run.pickle");
    let before = std::fs::read(folder.path().join("run.pickle")).unwrap();
    let cases: [(&[&str], &str); 6] = [
        (&["export", &run, "-o", &run], "it is the recording that is read; give another name with -o"),
        (&["export", &run, "-o", &at("out.xyz")], "says no format: expected .pickle, .parquet"),
        (&["export", &run, "-o", &at("missing/out.csv")], "No such file or directory"),
        (&["flamegraph", &run, "-o", &at("out.png")], "no format has the suffix \"png\""),
        (&["flamegraph", &run, "--at", "5", "-o", "-"], "no step 5 in the recording: it has 0 to 1"),
        (&["merge", &run, "-o", &at("out.csv")], "no recording has the suffix \"csv\""),
    ];
    for (words, expected) in cases {
        let (code, out, err) = memviz(words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}");
        assert!(err.contains(expected), "{words:?}: {err}");
    }
    assert_eq!(std::fs::read(folder.path().join("run.pickle")).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn merged_ranks_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let names: Vec<PathBuf> = (0..3).map(|rank| at(&format!("run.rank{rank}.pickle"))).collect();
    for (rank, name) in (0..).zip(&names) {
        memviz_format::write_path(&recording((rank > 0).then_some(rank)), name).unwrap();
    }
    let inputs: Vec<String> = names.iter().rev().map(|name| text(name)).collect();
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    for output in ["all.pickle", "all.memviz"] {
        let output = at(output);
        let (code, out, err) = memviz(&[&["merge", "-o", &text(&output)], &inputs[..]].concat());
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(out.starts_with("3 processes, ranks 0 to 2\n"), "{out}");
        let traces = memviz_format::read_path(&output, &Default::default(), &mut |_, _| {}).unwrap();
        let expected: Vec<Trace> = (0..3).map(|rank| recording(Some(rank))).collect();
        assert_eq!(traces, expected);
        let (code, _, err) = memviz(&["export", &text(&output), "-o", &text(&at("all.csv"))]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(read(folder.path(), "all.csv").lines().count(), 1 + 3 * 5);
    }
    let (code, _, err) = memviz(&["merge", inputs[0], inputs[0], "-o", &text(&at("twice.memviz"))]);
    assert_eq!(code, 2);
    assert!(err.contains("are both rank 2; expected one recording for each process"), "{err}");
}
