//! How long answers take and what a recording costs in memory, on a made-up recording of a million events.
//!
//! `cargo run -p memviz-view --profile dev-fast --example answer_time [EVENTS]`. Prints medians and 95th percentiles, JSON with
//! `--json` as second argument.

use std::sync::Arc;
use std::time::Instant;

use memviz_trace::{Action, Event, Frame, Mark, MarkKind, StackId, ThreadId, Trace, TraceBuilder, What};
use memviz_view::{Api, Input, Store};

const ASKED: usize = 60;
const STEP: usize = 5000;

fn main() {
    let events = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let is_json = std::env::args().any(|word| word == "--json");
    let before = resident_bytes();
    let trace = Arc::new(made_up(events));
    let begin = Instant::now();
    let store = Store::open(vec![Input::Trace("made up".to_owned(), trace)]);
    store.wait(|_| ());
    let opened = begin.elapsed();
    let api = Api::new(store, |_, _, _| Ok("{}".to_owned()));
    let mut rows = vec![("open".to_owned(), opened.as_secs_f64() * 1e3, opened.as_secs_f64() * 1e3)];
    for (name, request) in requests(events) {
        let mut times: Vec<f64> = (0..ASKED).map(|at| millis(&api, &request(at))).collect();
        let first = times[0];
        times.sort_by(f64::total_cmp);
        rows.push((format!("{name}_first"), first, first));
        rows.push((name.to_owned(), times[ASKED / 2], times[ASKED * 95 / 100]));
    }
    let bytes = (resident_bytes() - before) as f64 / events as f64;
    for (name, median, most) in &rows {
        match is_json {
            true => println!(r#"{{"name": "{name}", "p50_ms": {median:.3}, "p95_ms": {most:.3}}}"#),
            false => println!("{name:<24} {median:>9.2} ms  p95 {most:>9.2} ms"),
        }
    }
    println!(
        "{}",
        if is_json {
            format!(r#"{{"name": "bytes_per_event", "value": {bytes:.1}}}"#)
        } else {
            format!("{bytes:.1} bytes an event")
        }
    );
}

type Request = Box<dyn Fn(usize) -> String>;

fn requests(events: usize) -> Vec<(&'static str, Request)> {
    // Windows of every width, moved along, as one who zooms and pans asks.
    let window = move |axis: &str, at: usize| {
        let all = events as f64 * if axis == "time" { 1000.0 } else { 1.0 };
        let width = all / f64::from(1 << (at % 12));
        let from = (all - width) * (at as f64 / ASKED as f64);
        format!("r=0&axis={axis}&from={from}&to={}&columns=1400", from + width)
    };
    let moment = move |at: usize| at * events / ASKED;
    let high = 1_u64 << 31;
    vec![
        (
            "timeline_time",
            Box::new(move |at| format!("timeline?{}&low=0&high={high}&rows=500&by=line", window("time", at))),
        ),
        (
            "timeline_event",
            Box::new(move |at| format!("timeline?{}&low=0&high={high}&rows=500&by=line", window("event", at))),
        ),
        (
            "areas",
            Box::new(move |at| format!("timeline?{}&low=0&high={high}&rows=500&by=line&areas=1", window("time", at))),
        ),
        ("bands", Box::new(move |at| format!("bands?{}", window("time", at)))),
        ("moment", Box::new(move |at| format!("moment?r=0&event={}&by=line", moment(at)))),
        ("moment_difference", Box::new(move |at| format!("moment?r=0&event={}&by=line&other=0", moment(at)))),
        ("flame", Box::new(move |at| format!("flame?r=0&event={}", moment(at)))),
        ("range", Box::new(move |at| format!("range?r=0&from={}&to={events}", moment(at)))),
        ("find", Box::new(move |at| format!("find?r=0&text=layer{at}&by=line"))),
        ("block", Box::new(move |at| format!("block?r=0&id={}", moment(at) / 3))),
        (
            "whatif",
            Box::new(move |at| {
                format!("whatif?{}&policy=&device=&cache_limit={}&memory_limit=", window("time", at), at << 24)
            }),
        ),
    ]
}

fn millis(api: &Api, request: &str) -> f64 {
    let (path, query) = request.split_once('?').unwrap_or((request, ""));
    let begin = Instant::now();
    let answer = api.answer(path, query);
    assert!(answer.is_ok(), "{request}: {}", String::from_utf8_lossy(&answer.body));
    begin.elapsed().as_secs_f64() * 1e3
}

/// A loop of steps over a thousand lines: most blocks die soon, some live a step, few stay.
fn made_up(events: usize) -> Trace {
    let mut builder = TraceBuilder::default();
    builder.trace.header.backend = "cpu".to_owned();
    let file = builder.intern("/home/u/train.py");
    let stacks: Vec<StackId> = (0..1000)
        .map(|line| {
            let function = builder.intern(&format!("layer{}", line % 40));
            let outer =
                builder.trace.stacks.intern_frame(Frame { file, function, line: line % 40, ..Frame::default() });
            let inner = builder.trace.stacks.intern_frame(Frame { file, function, line, ..Frame::default() });
            let outer = builder.trace.stacks.push(StackId(0), outer);
            builder.trace.stacks.push(outer, inner)
        })
        .collect();
    let primitive = builder.intern("Matmul");
    let what = builder.intern_what(What { primitive, ..What::default() });
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut live: Vec<(u64, u64)> = Vec::new();
    let mut cached: Vec<(u64, u64)> = Vec::new();
    for at in 0..events {
        let time_nanos = at as u64 * 1000;
        let built = stacks[random(1000) as usize];
        let frees = live.len() > 200 && (live.len() > 2000 || random(2) == 0);
        let event = if frees {
            let old = if random(50) == 0 { random(live.len() as u64) } else { live.len() as u64 - 1 - random(100) };
            let (addr, size) = live.swap_remove(old as usize);
            cached.push((addr, size));
            Event { action: Action::FreeActiveToCache, addr, size, ..Event::default() }
        } else if random(4) > 0 && !cached.is_empty() {
            let (addr, size) = cached.swap_remove(random(cached.len() as u64) as usize);
            live.push((addr, size));
            Event { action: Action::AllocReuse, addr, size, ..Event::default() }
        } else {
            let (addr, size) = ((at as u64 + 1) << 24, 256 << random(13));
            live.push((addr, size));
            Event { action: Action::AllocNew, addr, size, ..Event::default() }
        };
        builder.push(Event { time_nanos, built, what, ..event });
    }
    let mut trace = builder.finish();
    let step = |nth: usize| Mark {
        index: (nth * STEP) as u64,
        time_nanos: (nth * STEP) as u64 * 1000,
        thread: ThreadId(0),
        kind: MarkKind::Step(nth as u64),
    };
    trace.marks = (1..events / STEP).map(step).collect();
    trace
}

/// What this process has in memory; 0 where the system doesn't say.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap_or(0) * 1024
}
