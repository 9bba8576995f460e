//! The immutable trace and the small tables beside its events.

use crate::event::Event;
use crate::ids::{StringId, ThreadId, WhatId};
use crate::ledger::Buffer;
use crate::stacks::StackTable;
use crate::strings::Strings;

/// Where, with what and how a trace was recorded. Empty strings mean "not known".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// Version of MLX that ran, "0.32.4".
    pub mlx_version: String,
    /// Back end of the allocator: "cpu", "cuda" or "metal".
    pub backend: String,
    /// Version of Python that ran, "3.11.7".
    pub python_version: String,
    /// Version of mlx-memviz that recorded.
    pub memviz_version: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Process id.
    pub pid: u32,
    /// Microseconds since 1970 at `time_nanos == 0`.
    pub start_unix_micros: u64,
    /// How Python stacks were taken: "raw frames (3.11)" or "public API: …" with the reason.
    pub walker: String,
    /// "buffers" or "arrays".
    pub level: String,
    /// Capacity of the ring, 0 for no limit.
    pub max_entries: u64,
    /// Events of buffers below this size were filtered, bytes.
    pub min_size: u64,
    /// Stacks were cut to that many innermost frames, 0 for never.
    pub depth: u32,
    /// Why parts of the run may be missing, one sentence each.
    pub notes: Vec<String>,
    /// Position among the processes of a distributed run (`mlx.launch`), `None` for a run of one process.
    pub rank: Option<u32>,
    /// How the recording ended.
    pub ending: Ending,
}

/// How a recording ended, as far as it could still be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ending {
    /// What ended it.
    pub kind: EndingKind,
    /// For people: "ValueError: shapes (3,4) and (5,)", "SIGSEGV at address 0x0"; empty when there is nothing to add.
    pub detail: String,
    /// Python stack of where it ended, the empty stack when not known.
    pub stack: crate::ids::StackId,
}

/// What ended a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndingKind {
    /// Nothing was written about it: a snapshot of a run that went on, or a file of another program.
    #[default]
    Unknown,
    /// The program stopped the recording, or ended by itself.
    Stopped,
    /// An exception that nobody handled ended the program.
    Exception,
    /// A signal ended the program; the last chunk was written on the way down.
    Signal,
    /// The file ends without a last chunk: SIGKILL, power loss or a full disk.
    Cut,
}

impl EndingKind {
    /// Every kind, by its number in files.
    pub const ALL: [EndingKind; 5] =
        [EndingKind::Unknown, EndingKind::Stopped, EndingKind::Exception, EndingKind::Signal, EndingKind::Cut];

    /// Lower-case name for reports.
    pub fn name(self) -> &'static str {
        match self {
            EndingKind::Unknown => "unknown",
            EndingKind::Stopped => "stopped",
            EndingKind::Exception => "exception",
            EndingKind::Signal => "signal",
            EndingKind::Cut => "cut",
        }
    }

    /// The kind of that name; `Unknown` for names of later versions.
    pub fn from_name(name: &str) -> EndingKind {
        EndingKind::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or_default()
    }
}

/// Events and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of events.
    pub events: u64,
    /// Sum of their sizes.
    pub bytes: u64,
}

impl Tally {
    /// Counts one event of `bytes`.
    pub fn add(&mut self, bytes: u64) {
        self.events += 1;
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}

/// What became of the buffer events: `recorded + dropped + filtered == seen`, in events and in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Every buffer event that happened while recording.
    pub seen: Tally,
    /// Fell out of the ring.
    pub dropped: Tally,
    /// Left out by the minimum-size filter.
    pub filtered: Tally,
    /// Events that the recorder could not record (it panicked or ran out of memory): these make a trace inexact.
    pub lost: u64,
    /// Records of other kinds (array events, markers) that fell out of the ring.
    pub dropped_others: u64,
}

/// Primitive, shape and dtype of the array that owns a buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct What {
    /// As MLX prints it, "Add", "CompiledAddMultiply"; empty for a leaf array.
    pub primitive: StringId,
    /// "float32"; empty when not known.
    pub dtype: StringId,
    /// Elements along each axis; `None` when not known.
    pub shape: Option<Box<[i32]>>,
    /// The buffer is a temporary inside the primitive, not its output.
    pub is_temporary: bool,
}

/// A thread of the recorded process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The kernel's id, 0 when not known.
    pub native_id: u64,
    /// `threading.Thread.name`, else what the kernel calls it.
    pub name: StringId,
}

/// Memory that exists before the first event and is not listed among `Trace::start`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Base {
    /// Active bytes whose buffers are not known one by one.
    pub active: u64,
    /// Cached bytes whose buffers are not known one by one.
    pub cached: u64,
}

/// Why a checkpoint was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckpointKind {
    /// The recording started.
    #[default]
    Start,
    /// A step mark.
    Step,
    /// The user asked.
    User,
    /// The recording stopped, or a trace was made of it.
    Stop,
    /// An allocation failed on a device; the `Oom` event is the one before.
    Oom,
}

impl CheckpointKind {
    /// Lower-case name for reports.
    pub fn name(self) -> &'static str {
        match self {
            CheckpointKind::Start => "start",
            CheckpointKind::Step => "step",
            CheckpointKind::User => "user",
            CheckpointKind::Stop => "stop",
            CheckpointKind::Oom => "oom",
        }
    }
}

/// What the driver says of the devices that this process uses, all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Number of devices.
    pub devices: u64,
    /// Bytes that are free, whoever uses the rest.
    pub free: u64,
    /// Bytes that there are.
    pub total: u64,
    /// Bytes that this process's memory pools hold.
    pub pool: u64,
}

impl DeviceMemory {
    /// Bytes in use: this process's and any other's.
    pub fn used(&self) -> u64 {
        self.total.saturating_sub(self.free)
    }
}

/// Our sums beside MLX's own counters, read at one moment with no allocator call under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Number of events before it, counted from the start of the recording.
    pub index: u64,
    /// Nanoseconds since the recording started.
    pub time_nanos: u64,
    /// Why it was taken.
    pub kind: CheckpointKind,
    /// The recorder's running sum, bytes.
    pub active: u64,
    /// The recorder's running sum, bytes.
    pub cached: u64,
    /// `mx.get_active_memory()`.
    pub mlx_active: u64,
    /// `mx.get_cache_memory()`.
    pub mlx_cached: u64,
    /// What the driver said at the same moment; `None` where no driver is asked (CPU).
    pub device: Option<DeviceMemory>,
}

/// A point in time that a user named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of events before it, counted from the start of the recording.
    pub index: u64,
    /// Nanoseconds since the recording started.
    pub time_nanos: u64,
    /// Thread that set it.
    pub thread: ThreadId,
    /// What it is.
    pub kind: MarkKind,
}

/// Kinds of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A step of a training or generation loop ends and the next one begins.
    Step(u64),
    /// `annotate(name)` was entered on that thread.
    AnnotationBegin(StringId),
    /// The innermost open annotation of that thread was left.
    AnnotationEnd,
    /// The cache's limit was found changed: bytes. Written where the recorder can see it (the CPU's cache); before the first
    /// such mark, the limit is that of a process that sets none.
    CacheLimit(u64),
}

/// A recorded run. Fields are public and plain: the trace is data, and nothing in it is kept twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Where, with what and how it was recorded.
    pub header: Header,
    /// Records in order of time.
    pub events: Vec<Event>,
    /// Records before `events[0]` that fell out of the ring: `events[i]` is number `first_index + i` of the recording.
    pub first_index: u64,
    /// Buffers that exist before `events[0]`, sorted by address.
    pub start: Vec<Buffer>,
    /// Bytes that exist before `events[0]` beside `start`.
    pub base: Base,
    /// Comparisons with MLX's counters, in order.
    pub checkpoints: Vec<Checkpoint>,
    /// Steps and annotations, in order.
    pub marks: Vec<Mark>,
    /// What became of all events.
    pub counts: Counts,
    /// Stacks.
    pub stacks: StackTable,
    /// Primitives, shapes and dtypes; entry 0 is "not known".
    pub whats: Vec<What>,
    /// Threads; entry 0 is "not known".
    pub threads: Vec<Thread>,
    /// Strings of all tables.
    pub strings: Strings,
}

impl Trace {
    /// What an event's buffer is for.
    pub fn what(&self, id: WhatId) -> &What {
        self.whats.get(id.index()).unwrap_or(&self.whats[0])
    }

    /// Name of the primitive, "" for leaf arrays.
    pub fn primitive(&self, id: WhatId) -> &str {
        self.strings.get(self.what(id).primitive)
    }
}
