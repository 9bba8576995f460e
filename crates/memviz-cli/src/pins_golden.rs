//! The whole text of `pinned`, `retrace`, `cache` and `diff` on a scripted run, at several widths.

use std::path::Path;

use memviz_analyze::{Cache, Diff, Pinned, Retrace};
use memviz_trace::{Action, Event, Frame, Header, StackId, Trace, TraceBuilder, What, WhatId};

use crate::answer::Report;
use crate::render::Page;

const MIB: u64 = 1 << 20;

/// A run of level `arrays`; `batch` scales what it holds, `shift` moves its lines down.
struct Script {
    builder: TraceBuilder,
    arrays: u32,
    nanos: u64,
    shift: u32,
}

impl Script {
    fn stack(&mut self, frames: &[(&str, u32)]) -> StackId {
        let mut stack = StackId(0);
        for &(function, line) in frames {
            let (file, function) = (self.builder.intern("/home/u/proj/train.py"), self.builder.intern(function));
            let frame = Frame { file, function, line: line + self.shift, ..Frame::default() };
            let frame = self.builder.trace.stacks.intern_frame(frame);
            stack = self.builder.trace.stacks.push(stack, frame);
        }
        stack
    }

    fn what(&mut self, primitive: &str, shape: &[i32]) -> WhatId {
        let (primitive, dtype) = (self.builder.intern(primitive), self.builder.intern("float32"));
        self.builder.intern_what(What { primitive, dtype, shape: Some(shape.into()), is_temporary: false })
    }

    fn push(&mut self, event: Event) {
        self.nanos += 250_000;
        self.builder.push(Event { time_nanos: self.nanos, ..event });
    }

    fn array(&mut self, built: StackId, primitive: &str, shape: &[i32], inputs: &[u32]) -> u32 {
        self.arrays += 1;
        let (slack, what) = (self.arrays, self.what(primitive, shape));
        self.push(Event { action: Action::ArrayCreated, slack, built, what, ..Event::default() });
        if !inputs.is_empty() {
            self.push(Event::array_inputs(slack, inputs));
        }
        slack
    }

    fn note(&mut self, action: Action, slack: u32, addr: u64) {
        self.push(Event { action, slack, addr, ..Event::default() });
    }

    fn buffer(&mut self, action: Action, addr: u64, size: u64, built: StackId, primitive: &str) {
        let what = self.what(primitive, &[]);
        self.push(Event { action, addr, size, built, what, ..Event::default() });
    }

    fn filled(&mut self, built: StackId, shape: &[i32], addr: u64) -> u32 {
        let array = self.array(built, "Full", shape, &[]);
        self.note(Action::ArrayEvaluated, array, 0);
        let size = 4 * shape.iter().map(|&axis| axis as u64).product::<u64>();
        self.buffer(Action::AllocNew, addr, size, built, "Full");
        self.note(Action::ArrayTookBuffer, array, addr);
        array
    }
}

fn run(batch: i32, shift: u32) -> Trace {
    let mut builder = TraceBuilder::default();
    builder.trace.header = Header {
        mlx_version: "0.32.4".into(),
        backend: "cpu".into(),
        python_version: "3.12.7".into(),
        command: vec!["train.py".into()],
        level: "arrays".into(),
        ..Header::default()
    };
    let mut script = Script { builder, arrays: 0, nanos: 0, shift };
    let table = script.stack(&[("<module>", 3)]);
    let row = script.stack(&[("<module>", 8), ("embed", 5)]);
    let base = script.filled(table, &[4096, 1024], 0x1000_0000);
    let view = script.array(row, "Slice", &[1, 1024], &[base]);
    script.note(Action::ArrayEvaluated, view, 0);
    script.note(Action::ArraySharesBuffer, view, 0x1000_0000);
    script.note(Action::ArrayDied, base, 0);
    let (data, loss) = (script.stack(&[("<module>", 21)]), script.stack(&[("<module>", 24), ("loss", 14)]));
    let (call, body) = (script.stack(&[("<module>", 24)]), script.stack(&[("<module>", 24), ("step", 17)]));
    for step in 0..3 {
        let addr = 0x2000_0000 + step * 0x100_0000;
        let x = script.filled(data, &[batch, 1024], addr);
        let placeholder = script.array(call, "", &[batch + step as i32, 1024], &[]);
        let constant = script.array(body, "", &[], &[]);
        script.buffer(Action::AllocNew, addr + 0x80_0000, 4, body, "");
        script.note(Action::ArrayTookBuffer, constant, addr + 0x80_0000);
        script.array(body, "Multiply", &[batch, 1024], &[placeholder, constant]);
        let ready = script.array(data, "Add", &[1], &[]);
        script.note(Action::ArrayEvaluated, ready, 0);
        script.note(Action::ArrayDied, ready, 0);
        script.array(loss, "Multiply", &[batch, 1024], &[x]);
    }
    let scratch = script.stack(&[("<module>", 30)]);
    script.buffer(Action::AllocNew, 0x5000_0000, 2 * MIB, scratch, "QRF");
    for (addr, size) in [(0x6000_0000, 12 * MIB), (0x7000_0000, 6 * MIB)] {
        script.buffer(Action::AllocNew, addr, size, scratch, "Sort");
        script.buffer(Action::FreeActiveToCache, addr, size, scratch, "Sort");
    }
    script.buffer(Action::AllocReuse, 0x7000_0000, 6 * MIB, scratch, "Sort");
    script.buffer(Action::AllocNew, 0x8000_0000, 7 * MIB, scratch, "Sort");
    script.buffer(Action::FreeActiveToOs, 0x8000_0000, 7 * MIB, scratch, "Sort");
    script.buffer(Action::FreeCacheToOs, 0x6000_0000, 12 * MIB, scratch, "Sort");
    script.buffer(Action::FreeActiveToCache, 0x7000_0000, 6 * MIB, scratch, "Sort");
    let trace = script.builder.finish();
    trace.check().expect("a valid script");
    trace
}

fn reports() -> Vec<(&'static str, Box<dyn Report>)> {
    let trace = run(64, 0);
    let end = trace.events.len();
    vec![
        ("pinned", Box::new(Pinned::new(&trace, end).expect("array events"))),
        ("retrace", Box::new(Retrace::new(&trace, end).expect("array events"))),
        ("cache", Box::new(Cache::new(&trace))),
        ("diff", Box::new(Diff::of_runs(&trace, &run(96, 2)).fail_over(MIB / 4))),
    ]
}

fn text(report: &dyn Report, width: usize) -> String {
    let mut page = Page::below(Path::new("/home/u/proj"), width, false);
    report.draw(&mut page);
    page.finish()
}

#[test]
fn reports_read_well() {
    for (name, report) in reports() {
        insta::assert_snapshot!(name, text(&*report, 100));
        insta::assert_snapshot!(format!("{name}_60"), text(&*report, 60));
        insta::assert_snapshot!(format!("{name}_json"), report.json());
    }
}

#[test]
fn no_line_is_wider_than_the_page() {
    for (name, report) in reports() {
        for width in 60..160 {
            let text = text(&*report, width);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= width, "{name} at {width}: {text}");
        }
    }
}

#[test]
fn growth_over_the_limit_is_a_finding() {
    let findings = reports().into_iter().map(|(name, report)| (name, report.is_finding()));
    assert_eq!(findings.filter(|(_, is_finding)| *is_finding).map(|(name, _)| name).collect::<Vec<_>>(), ["diff"]);
}
