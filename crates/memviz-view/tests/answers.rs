//! Every request on stored recordings, against `memviz_analyze`: the same numbers.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use memviz_analyze::{find_peaks, live_at, moment_at};
use memviz_trace::Trace;
use memviz_view::{Api, Input};
use support::{Frame, api_of, ask, json, stored};

fn read(name: &str) -> Trace {
    memviz_format::read_path(&stored(name), &Default::default(), &mut |_, _| ()).unwrap().remove(0)
}

const NAMES: [&str; 3] = ["v1.memviz", "cuda_train.memviz", "cuda_generate.memviz"];

fn each(check: impl Fn(&Api, &Trace)) {
    for name in NAMES {
        check(&api_of(vec![Input::File(stored(name))]), &read(name));
    }
}

#[test]
fn recordings_have_the_peaks_of_the_analysis() {
    each(|api, trace| {
        let list = json(api, "recordings");
        let (one, peaks) = (&list["recordings"][0], find_peaks(trace));
        assert_eq!((&list["schema"], &list["form"]), (&1.into(), &"server".into()));
        assert_eq!((&one["state"], &one["kind"]), (&"ready".into(), &"memviz".into()));
        assert_eq!(one["peak_active"]["bytes"], peaks.active.active_bytes);
        assert_eq!(one["peak_active"]["event"], peaks.active.after_events);
        assert_eq!(one["peak_active"]["nanos"], peaks.active.time_nanos);
        assert_eq!(one["peak_reserved"]["bytes"], peaks.reserved.reserved_bytes());
        assert_eq!(one["end_active"], peaks.end.active_bytes);
        assert_eq!(one["end_reserved"], peaks.end.reserved_bytes());
        assert_eq!(one["events"], trace.events.len());
        let start = one["start_unix_nanos"].as_str().unwrap();
        assert_eq!(start, (u128::from(trace.header.start_unix_micros) * 1000).to_string());
    });
}

#[test]
fn pictures_add_up_in_every_column() {
    each(|api, trace| {
        let (events, high) = (trace.events.len(), find_peaks(trace).active.active_bytes);
        let window = format!("r=0&axis=event&from=0&to={}&columns=97", events + 1);
        for by in ["line", "module", "primitive", "dtype", "annotation", "device", "thread", "step"] {
            let view = format!("timeline?{window}&low=0&high={high}&rows=64&by={by}");
            let scene = Frame::ask(api, &view);
            let (active, moment) = (scene.f64("active"), scene.u32("moment"));
            assert_eq!(active.iter().copied().fold(0.0, f64::max), high as f64, "{by}");
            for (active, moment) in active.iter().zip(&moment).step_by(24) {
                assert_eq!(*active, moment_at(trace, *moment as usize).active_bytes as f64);
            }
            assert_eq!(drawn(&scene), active, "{by}");
            let areas = Frame::ask(api, &format!("{view}&areas=1"));
            let mut sums = areas.f64("rest");
            areas.f64("area").iter().enumerate().for_each(|(at, bytes)| sums[at % 97] += bytes);
            assert_eq!(sums, active, "areas by {by}");
            assert!(areas.header["groups"].as_array().unwrap().iter().all(|group| group["key"].is_string()));
        }
        let bands = Frame::ask(api, &format!("bands?{window}"));
        let reserved = find_peaks(trace).reserved.reserved_bytes();
        assert_eq!(bands.f64("reserved").iter().copied().fold(0.0, f64::max), reserved as f64);
    });
}

/// Bricks, the rest and what is outside, column by column.
fn drawn(scene: &Frame) -> Vec<f64> {
    let (mut sums, outside) = (scene.f64("rest"), scene.f64("outside"));
    sums.iter_mut().zip(outside).for_each(|(sum, outside)| *sum += outside);
    let (size, run) = (scene.f64("brick_size"), scene.u32("brick_run"));
    let (from, to) = (scene.u32("run_from"), scene.u32("run_to"));
    assert_eq!(scene.header["bricks"], size.len());
    for brick in 0..size.len() {
        for at in run[brick]..run[brick + 1] {
            (from[at as usize]..to[at as usize]).for_each(|column| sums[column as usize] += size[brick]);
        }
    }
    sums
}

#[test]
fn moments_and_flames_add_up_to_what_was_live() {
    each(|api, trace| {
        for event in [0, trace.events.len() / 3, find_peaks(trace).active.after_events, trace.events.len()] {
            let active = live_at(trace, event).active_bytes;
            for by in ["line", "primitive", "thread"] {
                let table = json(api, &format!("moment?r=0&event={event}&by={by}&limit=3"));
                let rows = table["groups"].as_array().unwrap().iter();
                let sum: u64 = rows.map(|row| row["bytes"].as_u64().unwrap()).sum();
                assert_eq!(sum + table["left_out"]["bytes"].as_u64().unwrap(), active);
                assert_eq!(table["active"]["bytes"], active);
                assert_eq!(table["cached"]["bytes"], moment_at(trace, event).cached_bytes);
            }
            let flame = Frame::ask(api, &format!("flame?r=0&event={event}&other=0"));
            assert_eq!((flame.header["total"].as_u64(), flame.f64("bytes")[0]), (Some(active), active as f64));
            assert_eq!(flame.header["other_total"], live_at(trace, 0).active_bytes);
            is_a_tree(&flame);
        }
    });
}

/// Depth first, children no more than their parent, largest first but for what was joined.
fn is_a_tree(flame: &Frame) {
    let (parent, bytes) = (flame.u32("parent"), flame.f64("bytes"));
    let mut below = vec![0.0; bytes.len()];
    let mut open = vec![0_u32];
    assert_eq!(parent[0], u32::MAX);
    for at in 1..bytes.len() {
        while *open.last().unwrap() != parent[at] {
            open.pop();
        }
        open.push(at as u32);
        below[parent[at] as usize] += bytes[at];
    }
    assert!(below.iter().zip(&bytes).all(|(below, own)| below <= own));
    assert_eq!(below[0], bytes[0]);
    assert_eq!((flame.raw("own", "u8", 1).len(), flame.u32("count").len()), (bytes.len(), bytes.len()));
}

#[test]
fn differences_are_ordered_by_their_size() {
    each(|api, trace| {
        let peak = find_peaks(trace).active;
        let table = json(api, &format!("moment?r=0&event={}&by=line&other=0", peak.after_events));
        let change =
            |row: &serde_json::Value| (row["bytes"].as_i64().unwrap() - row["other_bytes"].as_i64().unwrap()).abs();
        let changes: Vec<i64> = table["groups"].as_array().unwrap().iter().map(change).collect();
        assert!(changes.is_sorted_by(|a, b| a >= b));
        assert_eq!(table["other_active"]["bytes"], live_at(trace, 0).active_bytes);
    });
}

#[test]
fn places_are_the_same_moment_on_every_axis() {
    each(|api, trace| {
        let peaks = find_peaks(trace);
        for (name, event) in [("peak-active", peaks.active.after_events), ("end", trace.events.len()), ("start", 0)] {
            let named = json(api, &format!("place?r=0&name={name}&event=0"));
            assert_eq!(named["event"], event, "{name}");
            assert_eq!(json(api, &format!("place?r=0&event={event}")), named);
            assert_eq!(json(api, &format!("place?r=0&axis=event&at={event}")), named);
        }
    });
}

#[test]
fn blocks_and_ranges_account_for_the_run() {
    each(|api, trace| {
        let end = trace.events.len();
        let range = json(api, &format!("range?r=0&from=0&to={end}"));
        let bytes = |field: &str| range[field]["bytes"].as_u64().unwrap();
        let peaks = find_peaks(trace);
        let before = moment_at(trace, 0).active_bytes;
        assert_eq!(before + bytes("allocated") - bytes("freed"), peaks.end.active_bytes);
        let hits = memviz_trace::Hits::of(&trace.events);
        assert_eq!((&range["hit"]["count"], &range["missed"]["count"]), (&hits.hits.into(), &hits.misses.into()));
        let rows = range["groups"].as_array().unwrap().iter();
        assert_eq!(rows.map(|row| row["allocated_bytes"].as_u64().unwrap()).sum::<u64>(), bytes("allocated"));

        let found = json(api, &format!("at?r=0&event={}&height=0", peaks.active.after_events));
        let block = json(api, &format!("block?r=0&id={}", found["block"]));
        assert_eq!(block["id"], found["block"]);
        assert!(block["address"].as_str().unwrap().starts_with("0x"));
        assert!(block["born"]["event"].as_u64().unwrap() <= peaks.active.after_events as u64);
        let beyond = format!("at?r=0&event={}&height={}", peaks.active.after_events, peaks.active.active_bytes);
        assert!(json(api, &beyond)["block"].is_null());
    });
}

#[test]
fn searches_find_by_name_and_by_stack() {
    each(|api, trace| {
        let table = json(api, &format!("moment?r=0&event={}&by=primitive", find_peaks(trace).active.after_events));
        let name = table["groups"][0]["name"].as_str().unwrap();
        let text = name.to_uppercase().replace(' ', "%20");
        let found = json(api, &format!("find?r=0&text={text}&by=primitive"));
        let row = found["groups"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
        assert!(row["bytes"].as_u64() >= table["groups"][0]["bytes"].as_u64());
        let all = json(api, "find?r=0&text=.py&by=dtype");
        assert!(!all["groups"].as_array().unwrap().is_empty());
        let none = json(api, "find?r=0&text=%00nothing&by=line");
        assert_eq!((&none["groups"], &none["left_out"]), (&serde_json::json!([]), &0.into()));
    });
}

#[test]
fn replays_are_those_of_the_analysis() {
    let (api, trace) = (api_of(vec![Input::File(stored("v1.memviz"))]), read("v1.memviz"));
    let end = trace.events.len() + 1;
    let window = format!("r=0&axis=event&from=0&to={end}&columns=50");
    let scenario = memviz_analyze::ScenarioOptions { cache_limit: Some(0), ..Default::default() };
    let full = memviz_analyze::Replay::new(&trace, &memviz_analyze::ReplayOptions { scenario, sweep: None }).unwrap();
    let short = Frame::ask(&api, &format!("whatif?{window}&policy=&device=&cache_limit=0&memory_limit="));
    let peak = full.replayed.peak_reserved.reserved_bytes();
    assert_eq!(short.header["peak_reserved"]["bytes"], peak);
    assert_eq!(short.f64("reserved").iter().copied().fold(0.0, f64::max), peak as f64);
    assert_eq!(
        (&short.header["hits"], &short.header["misses"]),
        (&full.replayed.hits.into(), &full.replayed.misses.into())
    );
    assert_eq!(short.header["recorded"]["hits"], full.recorded.hits);
    let choices = json(&api, "whatif/choices?r=0");
    assert!(choices["policies"].as_array().unwrap().len() >= 7 && choices["devices"].as_array().unwrap().len() >= 10);
    let (status, error) = ask(&api, &format!("whatif?{window}&policy=nonsense"));
    assert!(status == 400 && error["error"].as_str().unwrap().contains("nonsense"));
}

#[test]
fn wrong_questions_say_what_is_expected() {
    let api = api_of(vec![Input::File(stored("v1.memviz"))]);
    let cases = [
        ("nothing", 404, "formats/view.md"),
        ("recordings?r=0", 400, "unknown parameter"),
        ("moment?r=0&event=0&by=line&colour=red", 400, "colour"),
        ("moment?r=0&event=0", 400, "by"),
        ("moment?r=0&event=0&by=colour", 400, "one of line"),
        ("moment?r=7&event=0&by=line", 404, "0 to 1"),
        ("moment?r=0&event=99999999&by=line", 400, "0 to"),
        ("moment?r=x&event=0&by=line", 400, "whole number"),
        ("timeline?r=0&axis=event&from=0&to=9&columns=9999999&low=0&high=9&rows=9&by=line", 400, "columns"),
        ("timeline?r=0&axis=event&from=9&to=0&columns=9&low=0&high=9&rows=9&by=line", 400, "more than 9"),
        ("timeline?r=0&axis=event&from=nan&to=9&columns=9&low=0&high=9&rows=9&by=line", 400, "finite"),
        ("bands?r=0&axis=height&from=0&to=9&columns=9", 400, "time, event or step"),
        ("block?r=0&id=4294967295", 400, "below"),
        ("place?r=0&name=elsewhere&event=0", 400, "peak-active"),
        ("range?r=0&from=9&to=3", 400, "9 or more"),
        ("report?command=export&r=0", 400, "one of report"),
        ("report?command=replay&r=0&option=-o&option=x.svg", 400, "writes no file"),
        ("report?command=replay&r=0&option=--output%3Dx.svg", 400, "writes no file"),
        ("report?command=peak", 400, "one recording"),
    ];
    for (request, status, part) in cases {
        let (found, error) = ask(&api, request);
        let text = error["error"].as_str().unwrap();
        assert!(found == status && text.contains(part), "{request}: {found} {text}");
    }
    assert_eq!(json(&api, "report?command=peak&r=0&option=--top&option=3")["schema"], 1);
}

#[test]
fn files_that_cannot_be_read_are_numbers_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.memviz");
    std::fs::write(&path, "no recording").unwrap();
    let api = api_of(vec![Input::File(path), Input::File(stored("v1.memviz"))]);
    let list = json(&api, "recordings");
    assert_eq!((&list["recordings"][0]["state"], &list["recordings"][1]["state"]), (&"failed".into(), &"ready".into()));
    assert!(list["recordings"][0]["error"].as_str().unwrap().contains("notes.memviz"));
    assert_eq!(ask(&api, "moment?r=0&event=0&by=line").0, 422);
    assert_eq!(list["recordings"][1]["r"], 1);
}

#[test]
fn a_cut_file_opens_up_to_its_last_whole_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.memviz");
    let whole = std::fs::read(stored("cuda_train.memviz")).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 7]).unwrap();
    let list = json(&api_of(vec![Input::File(path)]), "recordings");
    let one = &list["recordings"][0];
    let notes = one["notes"].as_array().unwrap();
    assert!(one["state"] == "ready" && !notes.is_empty(), "{one}");
    assert_eq!(one["ending"]["kind"], "cut");
}
