//! Recordings that lie: every request is answered, and nothing in the answers is too long or too large.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use memviz_trace::{
    Action, Base, Buffer, Event, Frame as StackFrame, Mark, MarkKind, StackId, ThreadId, Trace, TraceBuilder, What,
};
use memviz_view::Api;
use serde_json::Value;
use support::{api_of_trace, json};

const MARKUP: &str = "<img src=x onerror=alert(1)></script><!-- \u{202e}";
const BYS: [&str; 8] = ["line", "module", "primitive", "dtype", "annotation", "device", "thread", "step"];

fn hostile() -> Trace {
    let mut builder = TraceBuilder::default();
    let long = "é".repeat(3_000_000);
    let [markup, long] = [MARKUP, &long].map(|text| builder.intern(text));
    let what = builder.intern_what(What {
        primitive: markup,
        dtype: long,
        shape: Some(Box::new([i32::MIN; 9])),
        is_temporary: true,
    });
    let mut stack = StackId(0);
    for line in 0..300 {
        let frame =
            StackFrame { file: long, function: markup, line: u32::MAX - line, column: line, is_native: line % 3 == 0 };
        let frame = builder.trace.stacks.intern_frame(frame);
        stack = builder.trace.stacks.push(stack, frame);
    }
    let event = |action, time_nanos, addr, size| Event {
        action,
        time_nanos,
        addr,
        size,
        what,
        built: stack,
        triggered: stack,
        slack: u32::MAX,
        ..Event::default()
    };
    let huge = 1 << 53;
    let events = [
        event(Action::AllocNew, u64::MAX, u64::MAX, u64::MAX / 4),
        event(Action::AllocNew, 5, 0, huge),
        event(Action::AllocNew, 1 << 60, 7, 0),
        event(Action::FreeActiveToCache, 3, 0, huge),
        event(Action::FreeActiveToCache, 3, 0, huge),
        event(Action::AllocReuse, 0, 0, huge),
        event(Action::AllocReuse, 0, 99, huge),
        event(Action::FreeCacheToOs, 9, 99, u64::MAX),
        event(Action::Oom, 10, u64::MAX, u64::MAX),
        event(Action::FilteredNet, 11, u64::MAX, u64::MAX),
        event(Action::FilteredNet, 11, 1 << 63, 1 << 63),
        event(Action::ArrayCreated, 12, 0, 0),
        event(Action::ArrayTookBuffer, 12, u64::MAX, 0),
        event(Action::ArraySharesBuffer, 12, u64::MAX, 0),
        event(Action::ArrayDied, 12, 0, 0),
        event(Action::AllocMakeBuffer, 12, 64, 1),
        event(Action::FreeActiveToOs, 13, u64::MAX, u64::MAX / 4),
        event(Action::AllocNew, 12, 128, 3),
    ];
    let mut trace = builder.finish();
    trace.events = events.to_vec();
    trace.start = vec![Buffer { addr: 64, size: 12, built: stack, alloc_nanos: u64::MAX, ..Buffer::default() }];
    trace.base = Base { active: 5, cached: 6 };
    let mark = |index, time_nanos, kind| Mark { index, time_nanos, thread: ThreadId(9), kind };
    trace.marks = vec![
        mark(0, 0, MarkKind::Step(u64::MAX)),
        mark(3, u64::MAX, MarkKind::AnnotationBegin(long)),
        mark(2, 1, MarkKind::Step(0)),
        mark(u64::MAX, 4, MarkKind::CacheLimit(u64::MAX)),
    ];
    trace.header.command = vec![MARKUP.repeat(1000)];
    trace.header.notes = vec![MARKUP.repeat(1000); 300];
    trace.header.start_unix_micros = u64::MAX;
    trace
}

/// Asks everything that can be asked; returns JSON answers.
fn ask_everything(api: &Api) -> Vec<Value> {
    let list = json(api, "recordings");
    let events = list["recordings"][0]["events"].as_u64().unwrap();
    let blocks = list["recordings"][0]["blocks"].as_u64().unwrap();
    let mut answers = vec![list];
    let mut ask = |request: &str, may_refuse: bool| {
        let (path, query) = request.split_once('?').unwrap();
        let answer = api.answer(path, query);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(answer.is_ok() || (may_refuse && (400..500).contains(&answer.status)), "{request}: {text:.300}");
        if let Ok(value) = serde_json::from_str(&text) {
            answers.push(value);
        }
    };
    for axis in ["time", "event", "step"] {
        // Without steps there is no such axis.
        let may_refuse = axis == "step";
        for (from, to) in [("0", "1"), ("-1e300", "1e300"), ("0", "18446744073709551615"), ("3", "3.0000001")] {
            let window = format!("r=0&axis={axis}&from={from}&to={to}&columns=33");
            for (low, high) in [("0", "10"), ("0", "1e19"), ("9e15", "1e16")] {
                for by in BYS {
                    ask(&format!("timeline?{window}&low={low}&high={high}&rows=40&by={by}"), may_refuse);
                    ask(&format!("timeline?{window}&low={low}&high={high}&rows=40&by={by}&areas=1"), may_refuse);
                }
            }
            ask(&format!("bands?{window}"), may_refuse);
            ask(&format!("whatif?{window}&policy=ideal&cache_limit=&memory_limit="), may_refuse);
            ask(&format!("whatif?{window}&policy=cpu&cache_limit=18446744073709551615&memory_limit=0"), may_refuse);
            ask(&format!("whatif?{window}&policy=pytorch"), may_refuse);
            ask(&format!("place?r=0&axis={axis}&at={to}"), may_refuse);
        }
    }
    for name in ["peak-active", "peak-reserved", "end", "start", "next-step", "previous-step"] {
        ask(&format!("place?r=0&name={name}&event={events}"), false);
    }
    for event in 0..=events {
        for by in BYS {
            ask(&format!("moment?r=0&event={event}&by={by}&other={events}"), false);
        }
        ask(&format!("flame?r=0&event={event}&other=0"), false);
        ask(&format!("at?r=0&event={event}&height=1e300"), false);
        ask(&format!("at?r=0&event={event}&height=-1"), false);
        ask(&format!("range?r=0&from={event}&to={events}"), false);
    }
    for block in 0..blocks {
        ask(&format!("block?r=0&id={block}"), false);
    }
    for by in BYS {
        ask(&format!("find?r=0&text=IMG&by={by}"), false);
        ask(&format!("find?r=0&text=&by={by}"), false);
    }
    ask("whatif/choices?r=0", false);
    ask("report?command=report&r=0", false);
    answers
}

/// Every text and number is within the format's bounds.
fn bounded(value: &Value) {
    match value {
        Value::String(text) => assert!(text.chars().count() <= 501, "{} characters", text.chars().count()),
        Value::Number(number) if !number.is_f64() => {
            assert!(
                number.as_u64().is_none_or(|number| number < 1 << 53) && number.as_i64() != Some(i64::MIN),
                "{number}"
            );
        }
        Value::Array(items) => items.iter().for_each(bounded),
        Value::Object(fields) => fields.values().for_each(bounded),
        _ => {}
    }
}

#[test]
fn a_recording_that_lies_is_answered_within_bounds() {
    let answers = ask_everything(&api_of_trace(hostile()));
    answers.iter().for_each(bounded);
    // Markup stays what it is: text, for the page to show as text.
    assert!(answers.iter().any(|answer| answer.to_string().contains("<img src=x")));
}

#[test]
fn an_empty_recording_is_answered() {
    let answers = ask_everything(&api_of_trace(TraceBuilder::default().finish()));
    let one = &answers[0]["recordings"][0];
    assert_eq!((&one["events"], &one["blocks"], &one["steps"]), (&0.into(), &0.into(), &Value::Null));
    assert!(one["can"]["whatif"].is_string() && one["can"]["pinned"].is_string());
}
