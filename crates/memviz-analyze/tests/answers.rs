//! Laws of peak, growth and leaks on scripted and simulated traces, and on traces that contradict themselves.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../memviz-format/tests/simulate/mod.rs"]
mod simulate;

use memviz_analyze::{By, Every, Growth, GrowthOptions, Held, HeldOptions, Instant, Leaks, Summary, Verdict, suggest};
use memviz_trace::{Action, Base, Event, Frame, Mark, MarkKind, StackId, ThreadId, Trace, TraceBuilder, What, WhatId};
use proptest::prelude::*;
use simulate::Simulator;

const EVERY_BY: [By; 7] = [By::Line, By::Module, By::Primitive, By::Dtype, By::Shape, By::Annotation, By::Stack];

#[derive(Default)]
struct Script {
    builder: TraceBuilder,
    nanos: u64,
}

impl Script {
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

    fn event(&mut self, action: Action, addr: u64, size: u64, built: StackId, triggered: StackId) {
        self.nanos += 1_000;
        let what = if built == StackId(0) { WhatId(0) } else { self.what("Add") };
        let thread = ThreadId(u32::from(action.is_free() && triggered == StackId(0)) as _);
        self.builder.push(Event {
            time_nanos: self.nanos,
            action,
            addr,
            size,
            built,
            triggered,
            what,
            thread,
            ..Event::default()
        });
    }

    fn what(&mut self, primitive: &str) -> WhatId {
        let (primitive, dtype) = (self.builder.intern(primitive), self.builder.intern("float32"));
        self.builder.intern_what(What { primitive, dtype, shape: Some([16, 16].into()), ..What::default() })
    }

    fn mark(&mut self, kind: MarkKind) {
        let index = self.builder.trace.events.len() as u64;
        self.builder.trace.marks.push(Mark { index, time_nanos: self.nanos, thread: ThreadId(0), kind });
    }

    fn finish(self) -> Trace {
        let trace = self.builder.finish();
        trace.check().expect("scripts are valid");
        trace
    }
}

/// 20 steps: each keeps 1 MiB of line 7, and evaluates a temporary of 4 MiB of line 8 that MLX frees by itself.
fn leaking(is_marked: bool) -> Trace {
    let mut script = Script::default();
    let (kept, made) = (script.stack(&[("t.py", "f", 7)]), script.stack(&[("t.py", "f", 8)]));
    let eval = script.stack(&[("t.py", "f", 9)]);
    for step in 0..20 {
        script.event(Action::AllocNew, 0x1000 + step, 1 << 20, kept, StackId(0));
        script.event(Action::AllocNew, 0x9000, 4 << 20, made, eval);
        script.event(Action::AllocNew, 0x9001, 2 << 20, made, eval);
        script.event(Action::FreeActiveToOs, 0x9000, 4 << 20, made, StackId(0));
        script.event(Action::FreeActiveToOs, 0x9001, 2 << 20, made, kept);
        if is_marked {
            script.mark(MarkKind::Step(step + 1));
        }
    }
    script.finish()
}

#[test]
fn temporaries_are_what_mlx_itself_frees() {
    let held = Held::new(&leaking(false), HeldOptions { top: 10, ..HeldOptions::default() }).unwrap();
    assert_eq!((held.total.bytes, held.total.count), (26 << 20, 22));
    assert_eq!((held.temporary.bytes, held.temporary.count), (4 << 20, 1), "line 7 let go of the other one");
    assert_eq!(held.evaluated_at.unwrap().line, 9);
    let rows: Vec<_> =
        held.groups.iter().map(|row| (row.line.line, row.line.bytes, row.line.count, row.temporary.bytes)).collect();
    assert_eq!(rows, [(7, 20 << 20, 20, 0), (8, 6 << 20, 2, 4 << 20)]);
    let at_step = HeldOptions { at: Some(Instant::Step(3)), top: 1, ..HeldOptions::default() };
    let held = Held::new(&leaking(true), at_step).unwrap();
    assert_eq!((held.total.bytes, held.groups.len(), held.rest.lines, held.rest.bytes), (10 << 20, 1, 1, 4 << 20));
    let missing = HeldOptions { at: Some(Instant::Step(30)), ..HeldOptions::default() };
    assert_eq!(Held::new(&leaking(true), missing).unwrap_err(), "no step 30 in the recording: it has 0 to 19");
}

#[test]
fn growth_is_exact_by_step_and_by_evaluation() {
    for (is_marked, steps) in [(true, 20), (false, 19)] {
        let growth = Growth::new(
            &leaking(is_marked),
            GrowthOptions { limit: Some(40 << 20), top: 5, ..GrowthOptions::default() },
        );
        let growth = growth.unwrap();
        let main = growth.main_loop().unwrap();
        assert_eq!(
            (main.verdict, main.steps, main.bytes.slope, main.buffers.slope),
            (Verdict::Grows, steps, 1_048_576.0, 1.0)
        );
        assert_eq!(main.every, if is_marked { "step" } else { "eval" });
        assert_eq!((main.lines[0].line.line, main.lines[0].bytes_trend.slope), (7, 1_048_576.0));
        assert_eq!(main.lines.len(), 1);
        assert_eq!(main.steps_to_limit_bytes, Some((40 << 20) / (1 << 20) - main.bytes.last / (1 << 20)));
    }
    let trace = leaking(true);
    let next = suggest(&trace, &Summary::new(&trace));
    assert_eq!((next[0].command, next[0].because.as_str()), ("growth", "active memory grows 1.0 MiB a step"));
    let by_mark = GrowthOptions { every: Every::Step, ..GrowthOptions::default() };
    assert!(Growth::new(&leaking(false), by_mark).unwrap_err().contains("--every eval"));
}

#[test]
fn leaks_between_two_moments() {
    let trace = leaking(true);
    let leaks = Leaks::new(&trace, (Instant::Step(4), Instant::Step(9)), Some(1 << 20), 10).unwrap();
    assert_eq!((leaks.leaked.bytes, leaks.leaked.count, leaks.kept.count, leaks.freed.count), (5 << 20, 5, 5, 0));
    assert!(leaks.is_over);
    assert_eq!(
        (leaks.lines[0].line.line, leaks.lines[0].oldest_nanos, leaks.lines[0].newest_nanos),
        (7, 24_000, 4_000)
    );
    let error = Leaks::new(&trace, (Instant::Last, Instant::Start), None, 10).unwrap_err();
    assert_eq!(error, "the second moment is event 0, before the first, event 100");
}

#[test]
fn annotations_and_modules_name_groups() {
    let mut script = Script::default();
    let name = script.builder.intern("forward");
    let inner = script.stack(&[("m.py", "Model.__call__", 3), ("nn.py", "Linear.__call__", 9)]);
    script.event(Action::AllocNew, 1, 100, inner, StackId(0));
    script.mark(MarkKind::AnnotationBegin(name));
    script.event(Action::AllocNew, 2, 50, inner, StackId(0));
    script.mark(MarkKind::AnnotationEnd);
    script.event(Action::AllocNew, 3, 25, StackId(0), StackId(0));
    let trace = script.finish();
    let names = |by| {
        let held = Held::new(&trace, HeldOptions { by, top: 9, all_frames: true, ..HeldOptions::default() }).unwrap();
        assert_eq!(held.tree.iter().map(|row| (row.depth, row.amount.bytes)).collect::<Vec<_>>(), [(0, 150), (1, 150)]);
        held.groups.into_iter().map(|row| (row.name, row.line.bytes)).collect::<Vec<_>>()
    };
    assert_eq!(names(By::Annotation), [("no annotation".into(), 125), ("forward".into(), 50)]);
    assert_eq!(names(By::Module), [("Model/Linear".into(), 150), ("no module".into(), 25)]);
    assert_eq!(names(By::Shape), [("float32 [16, 16]".into(), 150), ("dtype not known, shape not known".into(), 25)]);
}

/// Whatever a trace says, every answer comes, and rows add up.
fn ask_everything(trace: &Trace) -> Result<(), TestCaseError> {
    for by in EVERY_BY {
        for at in [None, Some(Instant::Last), Some(Instant::Nanos(30)), Some(Instant::Start)] {
            let options = HeldOptions { by, at, top: 2, all_frames: true, ..HeldOptions::default() };
            let held = Held::new(trace, options).map_err(TestCaseError::fail)?;
            let bytes: u64 = held.groups.iter().map(|row| row.line.bytes).sum();
            let count: u64 = held.groups.iter().map(|row| row.line.count).sum();
            prop_assert_eq!((bytes + held.rest.bytes, count + held.rest.count), (held.total.bytes, held.total.count));
            prop_assert_eq!(held.temporary.bytes + held.surviving.bytes, held.total.bytes);
        }
    }
    for every in [Every::Auto, Every::Eval, Every::Nanos(7)] {
        let growth =
            Growth::new(trace, GrowthOptions { every, limit: Some(100), top: 3 }).map_err(TestCaseError::fail)?;
        for one in &growth.loops {
            prop_assert!(one.series.iter().all(|step| step.lowest.bytes <= step.highest_bytes));
        }
    }
    let leaks = Leaks::new(trace, (Instant::Start, Instant::Last), None, 2).map_err(TestCaseError::fail)?;
    let bytes: u64 = leaks.lines.iter().map(|row| row.line.bytes).sum();
    prop_assert_eq!(bytes + leaks.rest.bytes, leaks.leaked.bytes);
    suggest(trace, &Summary::new(trace));
    Ok(())
}

proptest! {
    #[test]
    fn answers_add_up(
        start in prop::collection::vec((1..9_u64, any::<bool>()), 0..6),
        base in (0..3_u64, 0..3_u64),
        ops in prop::collection::vec((0..9_u8, 1..9_u64, 0..500_usize), 0..60),
    ) {
        let mut sim = Simulator::new(6, 3);
        sim.begin(&start, Base { active: base.0, cached: base.1 });
        for (kind, size, pick) in ops {
            sim.nanos += 10;
            match kind {
                0..=4 => sim.alloc(size, 0, pick),
                5 | 6 => sim.free(pick, true),
                7 => sim.free(pick, false),
                _ => sim.evict(pick),
            }
        }
        let trace = sim.finish();
        trace.check().expect("the simulator makes valid traces");
        let leaks = Leaks::new(&trace, (Instant::Start, Instant::Last), None, 9).unwrap();
        prop_assert_eq!(leaks.leaked.bytes + leaks.kept.bytes + base.0, leaks.end.active_bytes);
        ask_everything(&trace)?;
    }

    #[test]
    fn contradictions_are_answered(
        events in prop::collection::vec((0..15_u8, 0..4_u64, 0..5_u64, 0..9_u64, 0..4_u32), 0..40),
        marks in prop::collection::vec((0..60_u64, 0..3_u8), 0..6),
    ) {
        let mut script = Script::default();
        let stacks: Vec<StackId> =
            (0..4).map(|line| if line == 0 { StackId(0) } else { script.stack(&[("t.py", "f", line)]) }).collect();
        for (action, addr, size, time_nanos, stack) in events {
            let action = Action::from_u8(action).unwrap();
            let (built, triggered) = (stacks[stack as usize], stacks[(stack as usize + addr as usize) % 4]);
            script.builder.push(Event { action, addr, size, time_nanos, built, triggered, ..Event::default() });
        }
        for (index, kind) in marks {
            let kind = [MarkKind::Step(index), MarkKind::AnnotationEnd, MarkKind::Step(u64::MAX)][usize::from(kind)];
            script.builder.trace.marks.push(Mark { index, time_nanos: 0, thread: ThreadId(0), kind });
        }
        ask_everything(&script.builder.finish())?;
    }
}

#[test]
fn next_to_nothing_is_answered() {
    ask_everything(&Trace::default()).unwrap();
    let mut script = Script::default();
    script.event(Action::AllocNew, 1, u64::MAX, StackId(0), StackId(0));
    ask_everything(&script.builder.finish()).unwrap();
}
