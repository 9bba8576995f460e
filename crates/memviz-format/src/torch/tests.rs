//! Python's pickle sees what our parser sees, and PyTorch's own snapshots become valid traces.

#[path = "../../tests/simulate/mod.rs"]
mod simulate;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use memviz_trace::{Action, Device, DeviceKind, Event, MarkKind, NO_STREAM, Tally, TraceBuilder};

use super::document::{Document, Limits, Value};
use super::{json, machine, read, write};

/// Loads a pickle from standard input and prints it as JSON.
const PYTHON: &str = "import json, pickle, sys; json.dump(pickle.load(sys.stdin.buffer), sys.stdout)";

fn python_json(pickle: &[u8]) -> Vec<u8> {
    let mut child = Command::new("python3")
        .args(["-c", PYTHON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs python3");
    child.stdin.take().unwrap().write_all(pickle).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

fn assert_same(a: &Document<'_>, left: Value, b: &Document<'_>, right: Value) {
    match (a.list(left), a.dict(left)) {
        (Some(items), _) => {
            let others = b.list(right).unwrap();
            assert_eq!(items.len(), others.len());
            items.iter().zip(others).for_each(|(left, right)| assert_same(a, *left, b, *right));
        }
        (_, Some(pairs)) => {
            let others = b.dict(right).unwrap();
            assert_eq!(pairs.len(), others.len());
            for ((name, left), (other, right)) in pairs.iter().zip(others) {
                assert_eq!(a.str(*name), b.str(*other));
                assert_same(a, *left, b, *right);
            }
        }
        _ if a.str(left).is_some() => assert_eq!(a.str(left), b.str(right)),
        _ => assert_eq!(left, right),
    }
}

#[test]
fn python_loads_the_same_values() {
    for trace in [simulate::training(4, 60, false), simulate::training(3, 60, true)] {
        let mut file = Vec::new();
        write(&trace, &mut file).unwrap();
        let limits = Limits::default();
        let text = python_json(&file);
        let ours = machine::parse_keeping(&file, &limits, true).unwrap();
        let pythons = json::parse(&text, &limits).unwrap();
        assert_same(&ours, ours.root, &pythons, pythons.root);
        assert_eq!(read(&text, &limits).unwrap(), trace, "the JSON form holds the trace as well");
    }
}

#[test]
fn entries_are_not_shared_and_batches_are_small() {
    let mut file = Vec::new();
    write(&simulate::training(20, 200, false), &mut file).unwrap();
    let document = machine::parse_keeping(&file, &Limits::default(), true).unwrap();
    let lists = document.list(document.get(document.root, "device_traces").unwrap()).unwrap();
    let mut entries: Vec<u32> = lists
        .iter()
        .flat_map(|list| document.list(*list).unwrap())
        .map(|entry| if let Value::Dict(at) = entry { *at } else { panic!("{entry:?}") })
        .collect();
    let count = entries.len();
    entries.sort_unstable();
    entries.dedup();
    assert_eq!(entries.len(), count);
    assert!(count > 5000);
}

#[test]
fn a_snapshot_of_pytorch_becomes_a_valid_trace() {
    let text = br#"{"device_traces": [[
        {"action": "free_completed", "addr": 4096, "size": 100, "stream": 0, "time_us": 5},
        {"action": "segment_alloc", "addr": 8192, "size": 2048, "stream": 77, "time_us": 7, "frames": []},
        {"action": "alloc", "addr": 8192, "size": 1000, "stream": 77, "time_us": 7, "category": "gradient",
         "frames": [{"name": "inner", "filename": "a.py", "line": 3}, {"name": "outer", "filename": "b.py", "line": 4}]},
        {"action": "snapshot", "addr": 0, "size": 1000, "stream": 0, "time_us": 9}]],
      "segments": [
        {"device": 0, "address": 4096, "total_size": 512, "stream": 0, "blocks":
          [{"size": 512, "requested_size": 100, "state": "inactive", "frames": []}]},
        {"device": 0, "address": 8192, "total_size": 2048, "stream": 77, "blocks":
          [{"size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": []},
           {"size": 1024, "requested_size": 0, "state": "inactive", "frames": []}]}],
      "external_annotations": [{"stage": "START", "name": "step", "device": 0, "time_us": 6},
                               {"stage": "END", "name": "step", "device": 0, "time_us": 8}]}"#;
    let trace = read(text, &Limits::default()).unwrap();
    let report = trace.check().unwrap();
    assert_eq!((report.peak_active.bytes, report.peak_reserved.bytes), (1000, 2560));
    assert_eq!((trace.start.len(), trace.start[0].size), (1, 100));
    let alloc = trace.events.iter().find(|event| event.action == Action::AllocNew).unwrap();
    assert_eq!((trace.primitive(alloc.what), alloc.stream, alloc.time_nanos), ("gradient", 1, 2000));
    let innermost = trace.stacks.frame(trace.stacks.innermost(alloc.built).unwrap());
    assert_eq!((trace.strings.get(innermost.function), innermost.line), ("inner", 3));
    assert!(matches!(trace.marks[0].kind, MarkKind::AnnotationBegin(name) if trace.strings.get(name) == "step"));
}

/// Snapshots of PyTorch are not in this repository: MEMVIZ_TORCH_SNAPSHOTS names a folder of them.
#[test]
fn real_snapshots_of_pytorch_become_valid_traces() {
    let Some(folder) = std::env::var_os("MEMVIZ_TORCH_SNAPSHOTS").filter(|folder| !folder.is_empty()) else {
        eprintln!("skipped: MEMVIZ_TORCH_SNAPSHOTS is not set");
        return;
    };
    let mut seen = 0;
    for file in std::fs::read_dir(Path::new(&folder)).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "pickle") {
            let trace = read(&std::fs::read(&path).unwrap(), &Limits::default()).unwrap();
            let report = trace.check().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(report.peak_active.bytes > 0 && report.peak_reserved.bytes >= report.peak_active.bytes);
            seen += 1;
        }
    }
    assert!(seen > 0, "no *.pickle in {}", Path::new(&folder).display());
}

/// Action, address, size, stream and GPU.
const ON_TWO_GPUS: [(Action, u64, u64, i16, u8); 7] = [
    (Action::AllocNew, 0x1000, 100, 0, 0),
    (Action::AllocNew, 0x2000, 200, 1, 1),
    // A leaf: no stream says where it is.
    (Action::AllocNew, 0x3000, 8, NO_STREAM, 0),
    (Action::FreeActiveToCache, 0x2000, 200, 1, 1),
    (Action::AllocReuse, 0x2000, 200, 1, 1),
    (Action::FreeActiveToOs, 0x1000, 100, 0, 0),
    (Action::FreeActiveToCache, 0x2000, 200, 1, 1),
];

#[test]
fn each_gpu_has_a_list_of_its_own() {
    let mut builder = TraceBuilder::default();
    builder.trace.header.backend = "cuda".to_owned();
    builder.trace.events = ON_TWO_GPUS
        .into_iter()
        .map(|(action, addr, size, stream, gpu)| {
            let device = if stream == NO_STREAM { Device::default() } else { Device::new(DeviceKind::Gpu, gpu) };
            Event { action, addr, size, stream, device, ..Event::default() }
        })
        .collect();
    builder.trace.counts.seen = Tally { events: 7, bytes: 1008 };
    let trace = builder.finish();
    trace.check().unwrap();
    let mut file = Vec::new();
    write(&trace, &mut file).unwrap();
    assert_eq!(read(&file, &Limits::default()).unwrap(), trace);
    let document = machine::parse_keeping(&file, &Limits::default(), true).unwrap();
    let items = |name| document.list(document.get(document.root, name).unwrap()).unwrap();
    let numbers = |dict, names: [&str; 2]| names.map(|name| document.get(dict, name).unwrap());
    let entries: Vec<Vec<[Value; 2]>> = items("device_traces")
        .iter()
        .map(|list| document.list(*list).unwrap().iter().map(|entry| numbers(*entry, ["addr", "size"])).collect())
        .collect();
    let addrs = |of: &[[Value; 2]]| {
        let mut addrs: Vec<Value> = of.iter().map(|entry| entry[0]).collect();
        addrs.dedup();
        // The entry of the snapshot itself has none.
        addrs.retain(|addr| *addr != Value::Int(0));
        addrs
    };
    let [first, second] = &entries[..] else { panic!("{} lists", entries.len()) };
    assert_eq!(addrs(first), [0x1000, 0x3000, 0x1000].map(Value::Int));
    assert_eq!(addrs(second), [Value::Int(0x2000)]);
    let segments: Vec<_> = items("segments").iter().map(|one| numbers(*one, ["device", "address"])).collect();
    assert_eq!(segments, [[1, 0x2000], [0, 0x3000]].map(|pair| pair.map(Value::Int)));
}
