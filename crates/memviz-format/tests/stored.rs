//! Files of every version of the trace file stay readable: `tests/traces` at the root, one for each, never edited; and
//! recordings of a GPU, which the machines that run the tests do not have, keep the facts that they were made with.
//!
//! `v1` was made by the example `sample` when the version was new; `cuda_train` and `cuda_generate` are what `train.py small`
//! and `generate.py` of `ci/gpu` left on an H200, with MLX 0.32.4. What they hold is stated here, not computed by today's code.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use memviz_format::torch::Limits;
use memviz_trace::{Device, DeviceKind, EndingKind, Event, NO_STREAM, StackId, Totals, Trace};

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces").join(name)
}

fn open(name: &str) -> Vec<Trace> {
    memviz_format::read_path(&stored(name), &Limits::default(), &mut |_, _| {}).unwrap()
}

#[test]
fn version_1() {
    let ranks = open("v1.memviz");
    let facts: Vec<_> = ranks
        .iter()
        .map(|trace| {
            let report = trace.check().unwrap();
            (trace.header.rank, report.events, report.peak_active.bytes, report.end.active, report.end.cached)
        })
        .collect();
    assert_eq!(facts, FACTS);
    let [first, second] = &ranks[..] else { panic!("{} traces", ranks.len()) };
    assert_eq!(first.header.ending.kind, EndingKind::Unknown);
    assert_eq!(second.header.ending.kind, EndingKind::Exception);
    assert_eq!(second.header.ending.detail, "ValueError: shapes (3,4) and (5,)");
    let frame = second.stacks.frame(second.stacks.innermost(second.header.ending.stack).unwrap());
    assert_eq!((second.strings.get(frame.file), frame.line), ("/home/user/project/model.py", 100));
    assert_eq!(second.header.command, ["train.py", "--größe=1"]);
    assert_eq!(second.marks.len(), 11);
    assert_eq!(second.primitive(second.events[0].what), "Matmul");
}

/// Rank, events, peak of active bytes, active and cached bytes at the end.
const FACTS: [(Option<u32>, usize, u64, u64, u64); 2] =
    [(Some(0), 133, 27_131_904, 11_862_016, 18_743_296), (Some(1), 173, 27_131_904, 11_862_016, 23_986_176)];

/// What the programs printed on the GPU; `peak_active` is MLX's own, from `mx.get_peak_memory()`.
struct OfCuda {
    name: &'static str,
    events: usize,
    checkpoints: usize,
    peak_active: u64,
    peak_reserved: u64,
    end: Totals,
    allocations: usize,
    temporaries: usize,
    scalars: usize,
}

const OF_CUDA: [OfCuda; 2] = [
    OfCuda {
        name: "cuda_train.memviz",
        events: 7570,
        checkpoints: 9,
        peak_active: 2_923_560,
        peak_reserved: 3_454_752,
        end: Totals { active: 795_680, cached: 2_659_072 },
        allocations: 3830,
        temporaries: 144,
        scalars: 2228,
    },
    OfCuda {
        name: "cuda_generate.memviz",
        events: 611,
        checkpoints: 26,
        peak_active: 120_360,
        peak_reserved: 159_312,
        end: Totals { active: 83_216, cached: 76_096 },
        allocations: 309,
        temporaries: 24,
        scalars: 59,
    },
];

#[test]
fn recordings_of_cuda() {
    for facts in OF_CUDA {
        let [trace] = <[Trace; 1]>::try_from(open(facts.name)).unwrap();
        let report = trace.check().unwrap();
        assert_eq!((report.events, report.checkpoints), (facts.events, facts.checkpoints), "{}", facts.name);
        assert_eq!((report.peak_active.bytes, report.peak_reserved.bytes), (facts.peak_active, facts.peak_reserved));
        assert_eq!(report.end, facts.end);
        let is_alloc = |event: &&Event| event.action.is_alloc() && event.size > 0;
        let allocs: Vec<&Event> = trace.events.iter().filter(is_alloc).collect();
        assert_eq!(allocs.len(), facts.allocations);
        assert!(allocs.iter().all(|event| event.built != StackId(0)));
        let temporaries = allocs.iter().filter(|event| trace.what(event.what).is_temporary).count();
        assert_eq!(temporaries, facts.temporaries, "every other one is an array's, with its line");
        let scalars: Vec<&&Event> = allocs.iter().filter(|event| event.flags & Event::SCALAR_POOL != 0).collect();
        assert_eq!(scalars.len(), facts.scalars);
        assert!(scalars.iter().all(|event| event.size == 8));
        let gpu = Device::new(DeviceKind::Gpu, 0);
        assert!(allocs.iter().all(|event| event.stream == NO_STREAM || (event.stream, event.device) == (0, gpu)));
        for point in &trace.checkpoints {
            let device = point.device.unwrap();
            assert_eq!((device.devices, device.total), (1, 150_109_880_320), "the driver's view of one H200");
            assert!(device.total - device.free > point.mlx_active + point.mlx_cached);
        }
    }
}

#[test]
fn every_stored_file_has_its_test() {
    let folder = std::fs::read_dir(stored("")).unwrap();
    let mut names: Vec<String> = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["cuda_generate.memviz", "cuda_train.memviz", "v1.memviz"]);
}
