//! `pinned`, `retrace`, `cache` and `diff` on scripted traces: exact totals, sums that agree, and traces that lie.

#[path = "../../memviz-format/tests/simulate/mod.rs"]
mod simulate;

use memviz_analyze::{Amount, Cache, Cause, Diff, NearMissKind, Pinned, Retrace, Side, WithoutArrayKind};
use memviz_trace::{Action, Event, Frame, StackId, ThreadId, Trace, TraceBuilder, What, WhatId};
use proptest::prelude::*;

/// A recording of level `arrays`, event by event.
struct Script {
    builder: TraceBuilder,
    next_array: u32,
    nanos: u64,
}

impl Script {
    fn new() -> Script {
        let mut builder = TraceBuilder::default();
        builder.trace.header.level = "arrays".into();
        builder.trace.header.backend = "cpu".into();
        Script { builder, next_array: 1, nanos: 0 }
    }

    /// A stack of lines of `train.py`, outermost first; the functions are named by depth.
    fn stack(&mut self, lines: &[u32]) -> StackId {
        let file = self.builder.intern("/home/u/train.py");
        let mut stack = StackId(0);
        for (depth, &line) in lines.iter().enumerate() {
            let function = self.builder.intern(["<module>", "f", "g"][depth]);
            let frame = self.builder.trace.stacks.intern_frame(Frame { file, function, line, ..Frame::default() });
            stack = self.builder.trace.stacks.push(stack, frame);
        }
        stack
    }

    fn what(&mut self, primitive: &str, shape: &[i32]) -> WhatId {
        let (primitive, dtype) = (self.builder.intern(primitive), self.builder.intern("float32"));
        self.builder.intern_what(What { primitive, dtype, shape: Some(shape.into()), is_temporary: false })
    }

    fn push(&mut self, event: Event) {
        self.nanos += 1000;
        self.builder.push(Event { time_nanos: self.nanos, ..event });
    }

    /// An array that is not evaluated.
    fn array(&mut self, built: StackId, primitive: &str, shape: &[i32], inputs: &[u32]) -> u32 {
        let (slack, what) = (self.next_array, self.what(primitive, shape));
        self.next_array += 1;
        self.push(Event { action: Action::ArrayCreated, slack, built, what, ..Event::default() });
        for four in inputs.chunks(4) {
            self.push(Event::array_inputs(slack, four));
        }
        slack
    }

    fn alloc(&mut self, addr: u64, size: u64, built: StackId) {
        self.push(Event { action: Action::AllocNew, addr, size, built, ..Event::default() });
    }

    fn note(&mut self, action: Action, array: u32, addr: u64) {
        self.push(Event { action, slack: array, addr, ..Event::default() });
    }

    /// An array with a buffer of its own at `addr`.
    fn filled(&mut self, built: StackId, shape: &[i32], addr: u64) -> u32 {
        let array = self.array(built, "Full", shape, &[]);
        self.note(Action::ArrayEvaluated, array, 0);
        self.alloc(addr, shape.iter().map(|&axis| axis as u64 * 4).product(), built);
        self.note(Action::ArrayTookBuffer, array, addr);
        array
    }

    fn finish(self) -> Trace {
        let trace = self.builder.finish();
        trace.check().expect("a valid script");
        trace
    }
}

fn pinned(trace: &Trace) -> Pinned {
    Pinned::new(trace, trace.events.len()).expect("array events")
}

#[test]
fn a_view_pins_a_buffer_once_its_base_died() {
    let mut script = Script::new();
    let (base_line, view_line) = (script.stack(&[1]), script.stack(&[2]));
    let base = script.filled(base_line, &[4096], 0x1000);
    for length in [16, 8] {
        let view = script.array(view_line, "Slice", &[length], &[base]);
        script.note(Action::ArrayEvaluated, view, 0);
        script.note(Action::ArraySharesBuffer, view, 0x1000);
    }
    let until = script.builder.trace.events.len();
    script.note(Action::ArrayDied, base, 0);
    let trace = script.finish();
    assert_eq!(Pinned::new(&trace, until).unwrap().views, []);
    let found = pinned(&trace);
    let row = &found.views[0];
    assert_eq!((row.buffer.line, row.view.line, row.primitive.as_str()), (1, 2, "Slice"));
    assert_eq!((row.count, row.bytes, row.reached_bytes, row.pinned_bytes), (1, 16384, 96, 16288));
    assert_eq!((found.views.len(), found.waiting_count, found.without_arrays.len()), (1, 0, 0));
}

#[test]
fn buffers_without_arrays_are_told_apart() {
    let mut script = Script::new();
    let line = script.stack(&[1]);
    let array = script.filled(line, &[4], 0x1000);
    script.note(Action::ArrayDied, array, 0);
    script.alloc(0x2000, 64, line);
    // An array from before the recording: nothing is known of what uses the buffer.
    script.alloc(0x3000, 32, line);
    script.note(Action::ArrayTookBuffer, 0, 0x3000);
    let found = pinned(&script.finish());
    let rows: Vec<_> = found.without_arrays.iter().map(|row| (row.kind, row.bytes)).collect();
    assert_eq!(rows, [(WithoutArrayKind::Scratch, 64), (WithoutArrayKind::ArraysDied, 16)]);
    assert_eq!(found.unknown, Amount { count: 1, bytes: 32 });
}

#[test]
fn a_moment_between_an_allocation_and_its_owner_knows_the_owner() {
    let mut script = Script::new();
    let line = script.stack(&[1]);
    script.filled(line, &[4], 0x1000);
    let trace = script.finish();
    let alloc = trace.events.iter().position(|event| event.action == Action::AllocNew).unwrap();
    let at_alloc = Pinned::new(&trace, alloc + 1).unwrap();
    assert_eq!((at_alloc.moment.active_bytes, at_alloc.without_arrays), (16, vec![]));
}

#[test]
fn waiting_arrays_hold_their_inputs_once() {
    let mut script = Script::new();
    let (batch, loss, total) = (script.stack(&[1]), script.stack(&[2]), script.stack(&[3]));
    let mut sum = 0;
    for step in 0..10 {
        let x = script.filled(batch, &[256], 0x1000 * (step + 1));
        let squared = script.array(loss, "Multiply", &[256], &[x, x]);
        sum = script.array(total, "Add", &[256], &[squared, sum, x]);
    }
    let found = pinned(&script.finish());
    let rows: Vec<_> = found.waiting.iter().map(|row| (row.line.line, row.count, row.holds, row.needs_bytes)).collect();
    let holds = Amount { count: 10, bytes: 10240 };
    assert_eq!(rows, [(2, 10, holds, 10240), (3, 10, holds, 10240)]);
    assert_eq!((found.waiting_count, found.waiting_holds), (20, holds));
    assert_eq!(found.waiting[0].held_lines[0].line.line, 1);
    assert_eq!(found.waiting[0].primitives, [("Multiply".to_owned(), 10)]);
}

/// A call of a compiled function: placeholder, a constant of the body, and an operation on both.
fn trace_once(script: &mut Script, call: StackId, body: StackId, length: i32, addr: u64) -> u32 {
    let placeholder = script.array(call, "", &[length], &[]);
    let constant = script.array(body, "", &[], &[]);
    script.alloc(addr, 4, body);
    script.note(Action::ArrayTookBuffer, constant, addr);
    let broadcast = script.array(body, "Broadcast", &[length], &[constant]);
    script.array(body, "Multiply", &[length], &[placeholder, broadcast]);
    // Rewritten at the line of the call: of a constant only, and what uses it.
    let again = script.array(call, "Broadcast", &[length], &[constant]);
    script.array(call, "Multiply", &[length], &[placeholder, again]);
    placeholder
}

#[test]
fn traces_are_counted_by_shape_and_are_no_waiting_arrays() {
    let mut script = Script::new();
    let (call, body, data) = (script.stack(&[9]), script.stack(&[9, 5]), script.stack(&[8]));
    for (number, length) in [16, 32, 16].into_iter().enumerate() {
        let addr = 0x10_0000 * (number as u64 + 1);
        let x = script.filled(data, &[length], addr);
        trace_once(&mut script, call, body, length, addr + 0x1000);
        let result = script.array(call, "Multiply", &[length], &[x]);
        script.note(Action::ArrayEvaluated, result, 0);
        script.note(Action::ArraySharesBuffer, result, addr);
    }
    let trace = script.finish();
    let found = Retrace::new(&trace, trace.events.len()).unwrap();
    let function = &found.functions[0];
    assert_eq!((found.functions.len(), found.traces, found.alive), (1, 3, 3));
    assert_eq!((function.body.line, function.body.function.as_str()), (5, "f"));
    assert_eq!((function.calls[0].0.line, function.calls[0].1), (9, 3));
    assert_eq!((function.cause, function.signatures), (Cause::Both, 2));
    assert_eq!(function.first_signatures, ["float32[16]", "float32[32]"]);
    let constants = Amount { count: 3, bytes: 12 };
    assert_eq!((function.made, function.kept, function.kept_arrays), (constants, constants, 18));
    let pinned = pinned(&trace);
    assert_eq!((pinned.waiting_count, pinned.compiled), (0, constants));
}

#[test]
fn placeholders_that_die_before_anything_is_evaluated_are_no_compiled_function() {
    let mut script = Script::new();
    let (call, body) = (script.stack(&[9]), script.stack(&[9, 5]));
    let first = script.next_array;
    trace_once(&mut script, call, body, 16, 0x1000);
    for array in first..script.next_array {
        script.note(Action::ArrayDied, array, 0);
    }
    let other = script.array(call, "Add", &[4], &[]);
    script.note(Action::ArrayEvaluated, other, 0);
    let trace = script.finish();
    assert_eq!(Retrace::new(&trace, trace.events.len()).unwrap().functions, []);
}

#[test]
fn near_misses_lie_just_outside_the_window() {
    let kib = 1024;
    let cases = [
        (100 * kib, 107 * kib, None),
        (100 * kib, 108 * kib, Some(NearMissKind::TooLarge)),
        (100 * kib, 200 * kib, Some(NearMissKind::TooLarge)),
        (100 * kib, 201 * kib, None),
        (100 * kib, 99 * kib, Some(NearMissKind::TooSmall)),
        (100 * kib, 92 * kib, None),
    ];
    for (asked, cached, expected) in cases {
        let mut script = Script::new();
        let line = script.stack(&[1]);
        script.alloc(0x1000, cached, line);
        let free = Event { action: Action::FreeActiveToCache, addr: 0x1000, size: cached, ..Event::default() };
        script.push(Event { built: line, ..free });
        script.alloc(0x20_0000, asked, line);
        let found = Cache::new(&script.finish());
        let near = found.near_misses.first().map(|row| (row.kind, row.first_asked_bytes, row.first_cached_bytes));
        assert_eq!(near, expected.map(|kind| (kind, asked, cached)), "{asked} {cached}");
        assert_eq!((found.left, found.end.cached_bytes), (Amount { count: 1, bytes: cached }, cached));
    }
}

fn total(rows: impl Iterator<Item = Amount>) -> Amount {
    rows.fold(Amount::default(), |sum, row| Amount { count: sum.count + row.count, bytes: sum.bytes + row.bytes })
}

fn any_array_event() -> impl Strategy<Value = Event> {
    let ids = (0..20_u32, 0..20_u64, 0..4_u32, 0..6_u32, 0..3_u16);
    (0..16_usize, ids, any::<u32>()).prop_map(|(action, (slack, addr, what, built, thread), inputs)| Event {
        action: Action::ALL[action],
        slack,
        addr: if action == 15 { addr | u64::from(inputs) << 32 } else { addr },
        size: addr * 1000,
        what: WhatId(what),
        built: StackId(built),
        thread: ThreadId(thread),
        ..Event::default()
    })
}

proptest! {
    /// Any events in any order, with ids that no table has.
    #[test]
    fn a_trace_that_lies_is_answered(events in prop::collection::vec(any_array_event(), 0..200), at in 0..220_usize) {
        let mut script = Script::new();
        script.stack(&[9, 5, 3]);
        script.what("Add", &[300]);
        let mut trace = script.finish();
        trace.events = events;
        let found = Pinned::new(&trace, at).unwrap();
        for row in &found.views {
            prop_assert!(row.reached_bytes + row.pinned_bytes == row.bytes && row.pinned_bytes >= row.reached_bytes);
        }
        Retrace::new(&trace, at).unwrap();
        Cache::new(&trace);
        Diff::of_runs(&trace, &Trace::default());
        Diff::of_moments(Side { trace: &trace, after_events: at }, Side { trace: &trace, after_events: 3 });
    }

    #[test]
    fn rows_of_the_cache_add_up(ops in prop::collection::vec((0..9_u8, 1..9_u64, 0..500_usize), 0..300)) {
        let mut sim = simulate::Simulator::new(6, 3);
        for (kind, size, pick) in ops {
            match kind {
                0..=4 => sim.alloc(size * 5000, 0, pick),
                5 | 6 => sim.free(pick, true),
                7 => sim.free(pick, false),
                _ => sim.evict(pick),
            }
        }
        let trace = sim.finish();
        let end = trace.check().unwrap().end;
        let found = Cache::new(&trace);
        let buffers = |action| total(trace.events.iter().filter(|event| event.action == action).map(|event| Amount { count: 1, bytes: event.size }));
        prop_assert_eq!((found.hits, found.misses), (buffers(Action::AllocReuse), buffers(Action::AllocNew)));
        prop_assert_eq!((found.entered, found.evicted), (buffers(Action::FreeActiveToCache), buffers(Action::FreeCacheToOs)));
        prop_assert_eq!(found.passed_by, buffers(Action::FreeActiveToOs));
        prop_assert_eq!(total(found.lines.iter().map(|row| row.hits)), found.hits);
        prop_assert_eq!(total(found.lines.iter().map(|row| row.misses)), found.misses);
        prop_assert_eq!(total(found.sizes.iter().map(|row| row.misses)), found.misses);
        prop_assert_eq!(total(found.not_reused.iter().map(|row| row.evicted)), found.evicted);
        prop_assert_eq!(total(found.not_reused.iter().map(|row| row.left)), found.left);
        prop_assert_eq!(found.left.bytes, end.cached);
        prop_assert!(found.most_cached.cached_bytes >= found.peak_reserved.cached_bytes);
        prop_assert_eq!(found.entered.count, found.hits.count + found.evicted.count + found.left.count);
    }

    #[test]
    fn changes_of_a_diff_add_up(
        old in prop::collection::vec((0..8_u8, 1..9_u64, 0..500_usize), 0..80),
        new in prop::collection::vec((0..8_u8, 1..9_u64, 0..500_usize), 0..80),
    ) {
        let trace = |ops: Vec<(u8, u64, usize)>| {
            let mut sim = simulate::Simulator::new(6, 3);
            for (kind, size, pick) in ops {
                match kind {
                    0..=4 => sim.alloc(size, 0, pick),
                    _ => sim.free(pick, kind == 5),
                }
            }
            sim.finish()
        };
        let (old, new) = (trace(old), trace(new));
        for one in Diff::of_runs(&old, &new).comparisons {
            prop_assert_eq!(one.lines.iter().map(|row| row.change_bytes).sum::<i64>(), one.change_bytes);
            prop_assert_eq!(one.lines.iter().map(|row| row.change_count).sum::<i64>(), one.change_count);
            prop_assert_eq!(one.primitives.iter().map(|row| row.change_bytes).sum::<i64>(), one.change_bytes);
        }
        let same = Diff::of_runs(&old, &old.clone());
        prop_assert!(same.comparisons.iter().all(|one| one.lines.is_empty() && one.primitives.is_empty()));
    }
}

#[test]
fn growth_beyond_the_limit_is_a_finding() {
    let grown = |size| {
        let mut script = Script::new();
        let line = script.stack(&[1]);
        script.alloc(0x1000, size, line);
        script.finish()
    };
    let diff = Diff::of_runs(&grown(1000), &grown(1500));
    assert!(!diff.clone().fail_over(500).is_over);
    assert!(diff.fail_over(499).is_over);
    assert!(!Diff::of_runs(&grown(1500), &grown(1000)).fail_over(0).is_over);
}
