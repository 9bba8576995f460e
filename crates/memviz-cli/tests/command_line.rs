//! Command lines, from the words a user types to the plan or the exit code.

use std::ffi::OsString;
use std::path::Path;

use memviz_cli::{DoctorPlan, Outcome, Program, RunPlan, Streams, main_with};
use memviz_trace::{Action, Event, Trace, TraceBuilder};
use memviz_trace::{Context, Level};

/// Outcome, standard output and standard error of `memviz words…`.
fn memviz(words: &[&str]) -> (Outcome, String, String) {
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
    let outcome = main_with(args, &mut streams);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (outcome, text(out), text(err))
}

fn run_plan(words: &[&str]) -> RunPlan {
    match memviz(&[&["run"], words].concat()) {
        (Outcome::Run(plan), out, err) => {
            assert_eq!((out.as_str(), err.as_str()), ("", ""));
            plan
        }
        other => panic!("{other:?}"),
    }
}

fn defaults() -> RunPlan {
    RunPlan {
        what: Program::Script { path: "train.py".into() },
        args: vec![],
        output: None,
        max_entries: 1_000_000,
        min_size: 0,
        level: Level::Buffers,
        depth: 0,
        native: false,
        context: Context::All,
        quiet: false,
        view: false,
        json: false,
    }
}

#[test]
fn run_has_defaults() {
    assert_eq!(run_plan(&["train.py"]), defaults());
    assert_eq!(run_plan(&["train.py", "--quiet"]), RunPlan { args: vec!["--quiet".into()], ..defaults() });
}

#[test]
fn run_takes_every_flag() {
    let plan = run_plan(&[
        "-q",
        "--view",
        "--json",
        "-o",
        "a.pickle",
        "--max-entries=0",
        "--min-size",
        "4KiB",
        "--level",
        "arrays",
        "--depth",
        "0",
        "--native",
        "--context",
        "alloc",
        "-m",
        "mlx_lm",
        "generate",
        "-o",
        "x",
    ]);
    let expected = RunPlan {
        what: Program::Module { name: "mlx_lm".into() },
        args: ["generate", "-o", "x"].map(OsString::from).to_vec(),
        output: Some("a.pickle".into()),
        max_entries: 0,
        min_size: 4096,
        level: Level::Arrays,
        depth: 0,
        native: true,
        context: Context::Alloc,
        quiet: true,
        view: true,
        json: true,
    };
    assert_eq!(plan, expected);
}

#[test]
fn run_explains_what_is_wrong() {
    let cases = [
        (&[][..], "no program to run"),
        (&["-q"], "no program to run"),
        (&["-m"], "-m <MODULE>"),
        (&["--min-size", "4pages", "train.py"], "no unit"),
        (&["--level", "all", "train.py"], "[possible values: buffers, arrays]"),
        (&["--max-entrys", "3", "train.py"], "--max-entries"),
    ];
    for (words, expected) in cases {
        let (outcome, out, err) = memviz(&[&["run"], words].concat());
        assert_eq!((outcome, out.as_str()), (Outcome::Exit(2), ""), "{words:?}");
        assert!(err.contains(expected), "{words:?}: {err}");
    }
    assert_eq!(memviz(&["train.py"]).0, Outcome::Exit(2));
    assert_eq!(memviz(&[]).0, Outcome::Exit(2));
}

#[test]
fn help_and_version_go_to_standard_output() {
    for words in [&["--help"][..], &["run", "--help"], &["doctor", "-h"], &["check", "--help"]] {
        let (outcome, out, err) = memviz(words);
        assert_eq!((outcome, err.as_str()), (Outcome::Exit(0), ""));
        let (_, examples) = out.split_once("Examples:\n").unwrap();
        assert_eq!(examples.lines().filter(|line| line.starts_with("  memviz ")).count(), 3, "{out}");
        assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
    }
    assert_eq!(memviz(&["--version"]).1, format!("memviz {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_of_run_reads_well() {
    insta::assert_snapshot!(memviz(&["run", "--help"]).1);
}

#[test]
fn doctor_is_planned() {
    assert_eq!(memviz(&["doctor"]).0, Outcome::Doctor(DoctorPlan { json: false }));
    assert_eq!(memviz(&["doctor", "--json"]).0, Outcome::Doctor(DoctorPlan { json: true }));
}

fn two_buffers() -> Trace {
    let mut builder = TraceBuilder::default();
    let event = |action, addr, size| Event { action, addr, size, ..Event::default() };
    builder.push(event(Action::AllocNew, 0x1000, 3 << 20));
    builder.push(event(Action::FreeActiveToCache, 0x1000, 3 << 20));
    builder.push(event(Action::AllocNew, 0x2000, 1 << 20));
    builder.finish()
}

/// A recording in `folder`.
fn write(folder: &Path, trace: &Trace) -> String {
    let path = folder.join("run.pickle");
    let mut file = std::fs::File::create(&path).expect("a new file");
    memviz_format::torch::write(trace, &mut file).expect("a trace that can be written");
    path.to_str().expect("UTF-8").to_owned()
}

fn check_file(trace: &Trace, words: &[&str]) -> (Outcome, String, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), trace);
    memviz(&[&["check", &path], words].concat())
}

#[test]
fn check_says_ok() {
    let (outcome, out, err) = check_file(&two_buffers(), &[]);
    assert_eq!((outcome, err.as_str()), (Outcome::Exit(0), ""));
    let expected = "ok: 3 events, no checkpoint to compare with MLX, peak active 3.0 MiB, peak reserved 4.0 MiB\n";
    assert_eq!(out, expected);
    insta::assert_snapshot!("check_ok_json", check_file(&two_buffers(), &["--json"]).1);
}

#[test]
fn check_names_the_first_violation() {
    let mut trace = two_buffers();
    trace.events[1].addr = 0x3000;
    let (outcome, out, err) = check_file(&trace, &[]);
    assert_eq!((outcome, err.as_str()), (Outcome::Exit(1), ""));
    let expected = "violated: event 1 at 0 ns: FreeActiveToCache at 0x3000, which is not there; expected active\n";
    assert_eq!(out, expected);
    insta::assert_snapshot!("check_violated_json", check_file(&trace, &["--json"]).1);
}

#[test]
fn check_refuses_what_it_cannot_read() {
    let folder = tempfile::tempdir().unwrap();
    let garbage = folder.path().join("garbage.pickle");
    std::fs::write(&garbage, "import os").unwrap();
    for path in [garbage.as_path(), Path::new("/does/not/exist"), folder.path()] {
        let (outcome, out, err) = memviz(&["check", path.to_str().unwrap()]);
        assert_eq!((outcome, out.as_str()), (Outcome::Exit(2), ""));
        assert!(err.starts_with("memviz: cannot read "), "{err}");
    }
}

/// A reader that has gone away.
struct Closed;

impl std::io::Write for Closed {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn broken_pipe_is_a_success() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &two_buffers());
    for words in [vec!["--help".into()], vec!["check".into(), path.into()]] {
        let args: Vec<OsString> = std::iter::once("memviz".into()).chain(words).collect();
        let mut err = Vec::new();
        let streams = &mut Streams {
            out: &mut Closed,
            err: &mut err,
            out_color: false,
            err_color: false,
            out_width: 100,
            shows_progress: false,
        };
        assert_eq!((main_with(args, streams), err.as_slice()), (Outcome::Exit(0), &b""[..]));
    }
}
