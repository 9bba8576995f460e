//! What the list of recordings says of one: counted once, when it is laid out.

use memviz_analyze::step_ranges;
use memviz_layout::Layout;
use memviz_trace::{Device, DeviceKind, EndingKind, MarkKind, Totals, Trace};

/// The reader of foreign snapshots begins its note so.
const TORCH_NOTE: &str = "read from a PyTorch snapshot";

/// Facts about a recording.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// "memviz" or "torch".
    pub(crate) kind: &'static str,
    /// The device that most allocations were for.
    pub(crate) device: Device,
    pub(crate) from_nanos: u64,
    pub(crate) to_nanos: u64,
    pub(crate) steps: Option<(u64, u64)>,
    pub(crate) end: Totals,
    pub(crate) is_annotated: bool,
    pub(crate) has_arrays: bool,
    pub(crate) has_allocations: bool,
    /// What may be missing, and the first equation that doesn't hold.
    pub(crate) notes: Vec<String>,
}

impl Facts {
    pub(crate) fn new(trace: &Trace, layout: &Layout) -> Facts {
        let steps = step_ranges(trace);
        let numbers = || steps.iter().map(|(number, _)| *number);
        Facts {
            kind: if trace.header.notes.iter().any(|note| note.starts_with(TORCH_NOTE)) { "torch" } else { "memviz" },
            device: device(trace),
            from_nanos: trace.events.first().map_or(0, |event| event.time_nanos),
            to_nanos: trace.events.last().map_or(0, |event| event.time_nanos),
            steps: numbers().min().zip(numbers().max()),
            end: layout.totals_at(layout.events()),
            is_annotated: trace.marks.iter().any(|mark| matches!(mark.kind, MarkKind::AnnotationBegin(_))),
            has_arrays: trace.header.level == "arrays" || trace.events.iter().any(|event| event.action.is_array()),
            has_allocations: !trace.start.is_empty() || trace.events.iter().any(|event| event.action.is_alloc()),
            notes: notes(trace, layout),
        }
    }
}

fn notes(trace: &Trace, layout: &Layout) -> Vec<String> {
    let counts = &trace.counts;
    let mut notes = trace.header.notes.clone();
    if trace.header.ending.kind == EndingKind::Cut {
        notes.push("the file ends without its last chunk: what follows the last whole one is not shown".to_owned());
    }
    if counts.dropped.events > 0 {
        notes.push(format!("{} older events fell out of the ring: record with --max-entries 0", counts.dropped.events));
    }
    if counts.filtered.events > 0 {
        let (events, bytes) = (counts.filtered.events, trace.header.min_size);
        notes.push(format!("{events} events of buffers below {bytes} bytes are in the sums only"));
    }
    if counts.lost > 0 {
        notes.push(format!("{} events could not be recorded: sums after them are not exact", counts.lost));
    }
    if (layout.events() as usize) < trace.events.len() {
        notes.push(format!("only the first {} of {} events are shown", layout.events(), trace.events.len()));
    }
    if let Err(violation) = trace.check() {
        notes.push(format!("the recording contradicts itself, and numbers after this are not exact: {violation}"));
    }
    notes
}

fn device(trace: &Trace) -> Device {
    let mut counts = [0_u64; 256];
    let allocated = trace.events.iter().filter(|event| event.action.is_alloc()).map(|event| event.device);
    allocated.chain(trace.start.iter().map(|buffer| buffer.device)).for_each(|Device(at)| counts[usize::from(at)] += 1);
    let most = (0..=u8::MAX).rev().max_by_key(|at| counts[usize::from(*at)]).filter(|at| counts[usize::from(*at)] > 0);
    let is_gpu = matches!(trace.header.backend.as_str(), "cuda" | "metal");
    most.map_or(Device::new(if is_gpu { DeviceKind::Gpu } else { DeviceKind::Cpu }, 0), Device)
}
