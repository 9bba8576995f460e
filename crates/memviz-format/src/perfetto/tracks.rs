//! The tracks of one process, and packets on them.

use std::io::Write;

use memviz_trace::{ThreadId, Trace};
use prost::Message;

use super::proto;
use crate::FormatError;

/// Ids of threads that the recorder did not know: above those that Linux gives.
const FIRST_MADE_UP_TID: i64 = 1 << 23;
/// Tracks of a process that are none of a thread's.
const STEPS: u64 = 1;
const COUNTERS: u64 = 2;
const FIRST_THREAD: u64 = 16;

/// A counter of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counter {
    Active,
    Cached,
    Reserved,
}

impl Counter {
    pub(super) const ALL: [(Counter, &str); 3] = [
        (Counter::Active, "MLX active memory"),
        (Counter::Cached, "MLX cached memory"),
        (Counter::Reserved, "MLX reserved memory"),
    ];
}

/// Which thing something is shown on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Track {
    Process,
    Steps,
    Memory(Counter),
    /// Annotations.
    Thread(ThreadId),
    /// Evaluations on that thread: they need not nest with annotations.
    Evaluations(ThreadId),
}

/// Writes the packets of one process.
pub(super) struct Packets<'w> {
    out: &'w mut dyn Write,
    buffer: Vec<u8>,
    /// Position of the process in the file.
    process: u32,
    start_nanos: u64,
}

impl<'w> Packets<'w> {
    pub(super) fn new(out: &'w mut dyn Write, process: u32, start_micros: u64) -> Packets<'w> {
        Packets { out, buffer: Vec::new(), process, start_nanos: start_micros.saturating_mul(1000) }
    }

    fn uuid(&self, track: Track) -> u64 {
        let local = match track {
            Track::Process => 0,
            Track::Steps => STEPS,
            Track::Memory(counter) => COUNTERS + counter as u64,
            Track::Thread(thread) => FIRST_THREAD + 2 * u64::from(thread.0),
            Track::Evaluations(thread) => FIRST_THREAD + 2 * u64::from(thread.0) + 1,
        };
        (u64::from(self.process) + 1) << 32 | local
    }

    fn packet(&mut self, packet: proto::TracePacket) -> Result<(), FormatError> {
        let packet = proto::TracePacket { trusted_packet_sequence_id: Some(self.process + 1), ..packet };
        self.buffer.clear();
        // Encoding into a vector cannot run out of room.
        let _ = proto::Trace { packet: vec![packet] }.encode(&mut self.buffer);
        self.out.write_all(&self.buffer).map_err(FormatError::Write)
    }

    /// Says that times are both boot time and real time, so that the page can show the date.
    pub(super) fn clock(&mut self) -> Result<(), FormatError> {
        let clock = |id| proto::Clock { clock_id: Some(id), timestamp: Some(self.start_nanos) };
        let clocks = [proto::BOOTTIME, proto::REALTIME].map(clock).to_vec();
        let snapshot = proto::ClockSnapshot { clocks, primary_trace_clock: Some(proto::BOOTTIME) };
        self.packet(proto::TracePacket {
            timestamp: Some(self.start_nanos),
            clock_snapshot: Some(snapshot),
            sequence_flags: Some(proto::STATE_CLEARED),
            ..Default::default()
        })
    }

    /// The process with its counters and steps.
    pub(super) fn describe_process(&mut self, trace: &Trace, pid: i32) -> Result<(), FormatError> {
        let name = process_name(trace);
        let process = proto::ProcessDescriptor {
            pid: Some(pid),
            cmdline: trace.header.command.clone(),
            process_name: Some(name.clone()),
        };
        self.describe(
            Track::Process,
            None,
            proto::TrackDescriptor {
                process: Some(process),
                child_ordering: Some(proto::EXPLICIT),
                ..Default::default()
            },
        )?;
        for (at, (counter, name)) in (0..).zip(Counter::ALL) {
            self.describe(
                Track::Memory(counter),
                Some(Track::Process),
                proto::TrackDescriptor {
                    name: Some(name.to_owned()),
                    counter: Some(proto::CounterDescriptor { unit: Some(proto::SIZE_BYTES) }),
                    sibling_order_rank: Some(at),
                    ..Default::default()
                },
            )?;
        }
        self.describe(
            Track::Steps,
            Some(Track::Process),
            proto::TrackDescriptor {
                name: Some("steps".to_owned()),
                sibling_order_rank: Some(3),
                ..Default::default()
            },
        )
    }

    /// A thread and its evaluations.
    pub(super) fn describe_thread(&mut self, trace: &Trace, pid: i32, id: ThreadId) -> Result<(), FormatError> {
        let thread = trace.threads.get(id.index());
        let made_up = FIRST_MADE_UP_TID + i64::from(id.0);
        let tid = thread.and_then(|thread| i64::try_from(thread.native_id).ok()).filter(|tid| *tid > 0);
        let name = thread.map_or("", |thread| trace.strings.get(thread.name));
        let name = if name.is_empty() { "thread not known" } else { name };
        self.describe(
            Track::Thread(id),
            None,
            proto::TrackDescriptor {
                thread: Some(proto::ThreadDescriptor {
                    pid: Some(pid),
                    tid: Some(tid.unwrap_or(made_up)),
                    thread_name: Some(name.to_owned()),
                }),
                ..Default::default()
            },
        )?;
        self.describe(
            Track::Evaluations(id),
            Some(Track::Thread(id)),
            proto::TrackDescriptor { name: Some("evaluations".to_owned()), ..Default::default() },
        )
    }

    fn describe(
        &mut self,
        track: Track,
        parent: Option<Track>,
        descriptor: proto::TrackDescriptor,
    ) -> Result<(), FormatError> {
        let parent_uuid = parent.map(|parent| self.uuid(parent));
        let descriptor = proto::TrackDescriptor { uuid: Some(self.uuid(track)), parent_uuid, ..descriptor };
        self.packet(proto::TracePacket { track_descriptor: Some(descriptor), ..Default::default() })
    }

    fn event(&mut self, nanos: u64, track: Track, event: proto::TrackEvent) -> Result<(), FormatError> {
        let event = proto::TrackEvent { track_uuid: Some(self.uuid(track)), ..event };
        let timestamp = Some(self.start_nanos.saturating_add(nanos));
        self.packet(proto::TracePacket { timestamp, track_event: Some(event), ..Default::default() })
    }

    pub(super) fn counter(&mut self, nanos: u64, counter: Counter, bytes: u64) -> Result<(), FormatError> {
        let value = i64::try_from(bytes).unwrap_or(i64::MAX);
        let event = proto::TrackEvent { kind: Some(proto::COUNTER), counter_value: Some(value), ..Default::default() };
        self.event(nanos, Track::Memory(counter), event)
    }

    pub(super) fn begin(
        &mut self,
        nanos: u64,
        track: Track,
        category: &str,
        name: &str,
        numbers: &[(&str, u64)],
    ) -> Result<(), FormatError> {
        self.named(proto::SLICE_BEGIN, nanos, track, category, name, numbers)
    }

    pub(super) fn instant(
        &mut self,
        nanos: u64,
        track: Track,
        name: &str,
        numbers: &[(&str, u64)],
    ) -> Result<(), FormatError> {
        self.named(proto::INSTANT, nanos, track, "event", name, numbers)
    }

    fn named(
        &mut self,
        kind: i32,
        nanos: u64,
        track: Track,
        category: &str,
        name: &str,
        numbers: &[(&str, u64)],
    ) -> Result<(), FormatError> {
        let number = |(name, value): &(&str, u64)| proto::DebugAnnotation {
            name: Some((*name).to_owned()),
            uint_value: Some(*value),
        };
        let event = proto::TrackEvent {
            kind: Some(kind),
            name: Some(name.to_owned()),
            categories: vec![category.to_owned()],
            debug_annotations: numbers.iter().map(number).collect(),
            ..Default::default()
        };
        self.event(nanos, track, event)
    }

    pub(super) fn end(&mut self, nanos: u64, track: Track) -> Result<(), FormatError> {
        self.event(nanos, track, proto::TrackEvent { kind: Some(proto::SLICE_END), ..Default::default() })
    }
}

/// "rank 2: train.py".
fn process_name(trace: &Trace) -> String {
    let word = trace.header.command.first().map_or("recording", String::as_str);
    let program = word.rsplit('/').next().unwrap_or(word);
    match trace.header.rank {
        Some(rank) => format!("rank {rank}: {program}"),
        None => program.to_owned(),
    }
}
