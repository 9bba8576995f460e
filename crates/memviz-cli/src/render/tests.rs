//! The whole text on a scripted run, at several widths.

use std::path::Path;

use super::Page;
use super::paint::columns_of;
use super::summary::{summary_json, summary_text_in};
use crate::answer::Report;
use memviz_analyze::{By, Growth, GrowthOptions, Held, HeldOptions, Instant, Leaks, Summary, Written};
use memviz_trace::{
    Action, Base, Buffer, Checkpoint, CheckpointKind, Ending, EndingKind, Event, Frame, Header, Mark, MarkKind,
    StackId, Tally, ThreadId, Trace, TraceBuilder, What, WhatId,
};

const SITE: &str = "/home/u/proj/.venv/lib/python3.12/site-packages";

/// A builder of the script below.
struct Script {
    builder: TraceBuilder,
    nanos: u64,
}

impl Script {
    fn new() -> Script {
        let mut builder = TraceBuilder::default();
        builder.trace.header = Header {
            mlx_version: "0.32.4".into(),
            backend: "metal".into(),
            python_version: "3.12.7".into(),
            memviz_version: "0.1.0".into(),
            command: vec!["train.py".into(), "--name".into(), "first run".into()],
            pid: 4711,
            ..Header::default()
        };
        Script { builder, nanos: 0 }
    }

    fn stack(&mut self, frames: &[(&str, &str, u32)]) -> StackId {
        let mut stack = StackId(0);
        for &(file, function, line) in frames {
            let (file, function) = (self.builder.intern(file), self.builder.intern(function));
            let frame = Frame { file, function, line, column: 0, is_native: false };
            let frame = self.builder.trace.stacks.intern_frame(frame);
            stack = self.builder.trace.stacks.push(stack, frame);
        }
        stack
    }

    fn what(&mut self, primitive: &str) -> WhatId {
        let primitive = self.builder.intern(primitive);
        self.builder.intern_what(What { primitive, ..What::default() })
    }

    fn event(&mut self, action: Action, addr: u64, size: u64, built: StackId, primitive: &str) {
        self.nanos += 1_000_000;
        let what = self.what(primitive);
        self.builder.push(Event { time_nanos: self.nanos, action, addr, size, built, what, ..Event::default() });
    }

    fn step(&mut self, number: u64) {
        let index = self.builder.trace.events.len() as u64;
        let mark = Mark { index, time_nanos: self.nanos, thread: ThreadId(0), kind: MarkKind::Step(number) };
        self.builder.trace.marks.push(mark);
    }
}

/// Two steps of a training loop. Peaks: active after event 17 of step 1, reserved after the last event.
fn training() -> Trace {
    let mut script = Script::new();
    script.builder.trace.base = Base { active: 3 << 20, cached: 0 };
    script.builder.trace.start = vec![Buffer { addr: 0x10, size: 5 << 20, ..Buffer::default() }];
    let train = ("/home/u/proj/train.py", "<module>", 12);
    let linear = format!("{SITE}/mlx/nn/layers/linear.py");
    let llama = format!("{SITE}/mlx_lm/models/llama.py");
    let forward = script.stack(&[train, ("/home/u/proj/model/a_rather_long_name.py", "Block.__call__", 53)]);
    let outer = script.stack(&[train, (&linear, "Linear.__call__", 70)]);
    let library = script.stack(&[(&llama, "Attention.__call__", 71), (&linear, "Linear.__call__", 70)]);
    for layer in 0..8 {
        let primitive = if layer % 4 == 0 { "Softmax" } else { "Matmul" };
        script.event(Action::AllocNew, 0x100 + layer, 48 << 20, forward, primitive);
        if layer < 3 {
            script.event(Action::AllocNew, 0x200 + layer, (layer + 1) << 10, outer, "");
        }
    }
    script.event(Action::AllocNew, 0x300, 96 << 20, library, "CompiledSigmoidMultiplyBroadcast");
    script.event(Action::AllocNew, 0x301, 700, StackId(0), "Add");
    script.step(1);
    script.event(Action::FreeActiveToCache, 0x300, 96 << 20, library, "CompiledSigmoidMultiplyBroadcast");
    script.event(Action::AllocReuse, 0x300, 96 << 20, library, "Matmul");
    for line in 0..9 {
        let stack = script.stack(&[("/home/u/proj/train.py", "loss", 100 + line)]);
        script.event(Action::AllocNew, 0x400 + u64::from(line), 4096, stack, "Divide");
    }
    script.event(Action::FreeActiveToCache, 0x100, 48 << 20, forward, "Softmax");
    let small = script.stack(&[train]);
    script.event(Action::AllocNew, 0x500, 1 << 20, small, "Add");
    finish(script)
}

fn finish(script: Script) -> Trace {
    let index = script.builder.trace.events.len() as u64;
    let mut trace = script.builder.finish();
    let end = memviz_analyze::find_peaks(&trace).end;
    let (active, cached) = (end.active_bytes, end.cached_bytes);
    let kind = CheckpointKind::Stop;
    let time_nanos = 1_204_000_000;
    let (mlx_active, mlx_cached, device) = (active, cached, None);
    trace.checkpoints = vec![Checkpoint { index, time_nanos, kind, active, cached, mlx_active, mlx_cached, device }];
    trace.check().unwrap();
    trace
}

fn summary() -> Summary {
    let mut summary = Summary::new(&training());
    summary.written = vec![Written { path: "/home/u/proj/memviz-train-4711.pickle".into(), size_bytes: 48_200 }];
    summary
}

fn text(summary: &Summary, width: usize) -> String {
    summary_text_in(summary, width, false, Path::new("/home/u/proj"))
}

#[test]
fn a_run_at_three_widths() {
    for width in [60, 80, 120] {
        insta::assert_snapshot!(format!("run_{width}"), text(&summary(), width));
    }
}

#[test]
fn a_run_in_color() {
    let text = summary_text_in(&summary(), 100, true, Path::new("/home/u/proj"));
    insta::assert_snapshot!("run_color", text.replace('\x1b', "␛"));
}

#[test]
fn a_run_as_json() {
    insta::assert_snapshot!("run_json", summary_json(&summary()));
}

#[test]
fn what_is_missing_is_said() {
    let mut trace = training();
    trace.header.max_entries = 24;
    trace.header.min_size = 512;
    trace.header.notes = vec!["threads that end without a frame are \"not known\"".into()];
    trace.counts.dropped = Tally { events: 1200, bytes: 1 << 30 };
    trace.counts.filtered = Tally { events: 7, bytes: 70 };
    trace.counts.lost = 2;
    insta::assert_snapshot!("run_missing", text(&Summary::new(&trace), 80));
}

#[test]
fn nothing_happened() {
    let trace = finish(Script::new());
    insta::assert_snapshot!("run_nothing", text(&Summary::new(&trace), 80));
}

#[test]
fn no_line_is_wider_than_asked() {
    for width in 60..=200 {
        for line in text(&summary(), width).lines() {
            assert!(columns_of(line) <= width, "{width}: {line}");
        }
    }
}

#[test]
fn colors_do_not_move_text() {
    let plain = text(&summary(), 100);
    let mut stripped = summary_text_in(&summary(), 100, true, Path::new("/home/u/proj"));
    while let Some(at) = stripped.find('\x1b') {
        let end = at + stripped[at..].find('m').unwrap();
        stripped.replace_range(at..=end, "");
    }
    let trimmed = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(trimmed(&plain), trimmed(&stripped));
}

/// A loop of 12 steps that keeps 1 MiB a step, and evaluates a temporary of 2 MiB.
fn growing() -> Trace {
    let mut script = Script::new();
    let kept = script.stack(&[("/home/u/proj/train.py", "<module>", 12), ("/home/u/proj/train.py", "keep", 40)]);
    let linear = format!("{SITE}/mlx/nn/layers/linear.py");
    let made = script.stack(&[("/home/u/proj/train.py", "<module>", 13), (&linear, "Linear.__call__", 70)]);
    let eval = script.stack(&[("/home/u/proj/train.py", "<module>", 14)]);
    for step in 0..12 {
        script.event(Action::AllocNew, 0x1000 + step, 1 << 20, kept, "Full");
        script.event(Action::AllocNew, 0x9000, 2 << 20, made, "Matmul");
        if let Some(last) = script.builder.trace.events.last_mut() {
            last.triggered = eval;
        }
        script.event(Action::FreeActiveToOs, 0x9000, 2 << 20, made, "Matmul");
        script.step(step + 1);
    }
    finish(script)
}

/// Every report of one trace, by name.
fn reports(trace: &Trace) -> Vec<(&'static str, Box<dyn Report>)> {
    let held = |options| Box::new(Held::new(trace, options).unwrap());
    let options = HeldOptions { top: 4, ..HeldOptions::default() };
    let growth = GrowthOptions { limit: Some(1 << 30), top: 4, ..GrowthOptions::default() };
    vec![
        ("peak", held(options)),
        ("peak_stacks", held(HeldOptions { by: By::Stack, at: Some(Instant::Last), ..options })),
        ("peak_shapes", held(HeldOptions { by: By::Shape, reserved: true, ..options })),
        ("peak_calls", held(HeldOptions { all_frames: true, ..options })),
        ("growth", Box::new(Growth::new(trace, growth).unwrap())),
        ("leaks", Box::new(Leaks::new(trace, (Instant::Start, Instant::Last), Some(1), 4).unwrap())),
    ]
}

fn drawn(report: &dyn Report, width: usize) -> String {
    let mut page = Page::below(Path::new("/home/u/proj"), width, false);
    report.draw(&mut page);
    page.finish()
}

#[test]
fn reports_at_three_widths() {
    for (trace, run) in [(training(), "training"), (growing(), "growing")] {
        for (name, report) in reports(&trace) {
            let texts: Vec<String> = [60, 80, 140].map(|width| drawn(&*report, width)).to_vec();
            insta::assert_snapshot!(format!("{run}_{name}"), texts.join("\n"));
        }
    }
}

#[test]
fn no_report_is_wider_than_asked() {
    for trace in [training(), growing(), Trace::default()] {
        for (name, report) in reports(&trace) {
            for width in 60..=160 {
                for line in drawn(&*report, width).lines() {
                    assert!(columns_of(line) <= width, "{name} {width}: {line}");
                }
            }
        }
    }
}

#[test]
fn a_bad_end_is_said_first() {
    let mut trace = growing();
    let detail = "ValueError: shapes (3,4) and (5,)".to_owned();
    trace.header.ending = Ending { kind: EndingKind::Exception, detail, stack: trace.events[1].triggered };
    let text = text(&Summary::new(&trace), 80);
    let expected = "Ended          by an exception that nobody handled: ValueError: shapes (3,4) and";
    assert_eq!(text.lines().nth(3), Some(expected));
    assert!(text.lines().nth(4).unwrap().ends_with("(5,), at train.py:14"), "{text}");
}
