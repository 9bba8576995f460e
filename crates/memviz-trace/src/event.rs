//! One event: a fixed-size record, 48 bytes, of something that happened to a buffer (or to an array, at level `arrays`).

use crate::ids::{StackId, ThreadId, WhatId};

/// `stream` of an event that belongs to no stream: leaf arrays made from Python or NumPy data, evictions.
pub const NO_STREAM: i16 = -1;

/// What happened. The first seven are the allocator's own, named as the recorder in the MLX fork names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Action {
    /// A buffer was made by the operating system or driver and became active.
    #[default]
    AllocNew = 0,
    /// A cached buffer became active again.
    AllocReuse = 1,
    /// Memory that MLX does not own was wrapped in a buffer (Metal's `make_buffer`).
    AllocMakeBuffer = 2,
    /// An active buffer went to the cache.
    FreeActiveToCache = 3,
    /// An active buffer was given back to the operating system or driver.
    FreeActiveToOs = 4,
    /// A cached buffer was given back: cache limit, `clear_cache`, memory pressure.
    FreeCacheToOs = 5,
    /// A wrapper made by `AllocMakeBuffer` was dropped.
    Release = 6,
    /// An allocation failed. `size` is what was asked for; `addr` holds the bytes that MLX's active counter grew by
    /// although nothing was allocated (the CPU allocator of 0.32 does that), usually 0.
    Oom = 7,
    /// A marker with no effect on memory, as PyTorch writes when a snapshot is taken.
    Snapshot = 8,
    /// The net effect of events left out by the minimum-size filter since the last record: `addr` and `size` hold the
    /// change of active and cached bytes as two's-complement integers.
    FilteredNet = 9,
    /// Level `arrays`: an array was created. `slack` holds the array's id in all six array actions.
    ArrayCreated = 10,
    /// Level `arrays`: an array took a buffer of its own at `addr`.
    ArrayTookBuffer = 11,
    /// Level `arrays`: an array shares the buffer at `addr` with another (view, donation).
    ArraySharesBuffer = 12,
    /// Level `arrays`: the evaluation of an array's primitive ran.
    ArrayEvaluated = 13,
    /// Level `arrays`: an array died.
    ArrayDied = 14,
    /// Level `arrays`: what an array that was just created is computed from. `addr` and `size` hold up to four ids of arrays
    /// ([`Event::inputs`]); an array of more inputs has several of these.
    ArrayInputs = 15,
}

impl Action {
    /// Every action, by its number.
    pub const ALL: [Action; 16] = [
        Action::AllocNew,
        Action::AllocReuse,
        Action::AllocMakeBuffer,
        Action::FreeActiveToCache,
        Action::FreeActiveToOs,
        Action::FreeCacheToOs,
        Action::Release,
        Action::Oom,
        Action::Snapshot,
        Action::FilteredNet,
        Action::ArrayCreated,
        Action::ArrayTookBuffer,
        Action::ArraySharesBuffer,
        Action::ArrayEvaluated,
        Action::ArrayDied,
        Action::ArrayInputs,
    ];

    /// The name users see, as the MLX fork's `get_memory_events` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Action::AllocNew => "AllocNew",
            Action::AllocReuse => "AllocReuse",
            Action::AllocMakeBuffer => "AllocMakeBuffer",
            Action::FreeActiveToCache => "FreeActiveToCache",
            Action::FreeActiveToOs => "FreeActiveToOS",
            Action::FreeCacheToOs => "FreeCacheToOS",
            Action::Release => "Release",
            Action::Oom => "Oom",
            Action::Snapshot => "Snapshot",
            Action::FilteredNet => "FilteredNet",
            Action::ArrayCreated => "ArrayCreated",
            Action::ArrayTookBuffer => "ArrayTookBuffer",
            Action::ArraySharesBuffer => "ArraySharesBuffer",
            Action::ArrayEvaluated => "ArrayEvaluated",
            Action::ArrayDied => "ArrayDied",
            Action::ArrayInputs => "ArrayInputs",
        }
    }

    /// The action of that number, if there is one.
    pub fn from_u8(number: u8) -> Option<Action> {
        Action::ALL.get(number as usize).copied()
    }

    /// Makes a buffer active.
    pub fn is_alloc(self) -> bool {
        matches!(self, Action::AllocNew | Action::AllocReuse | Action::AllocMakeBuffer)
    }

    /// Ends an active buffer.
    pub fn is_free(self) -> bool {
        matches!(self, Action::FreeActiveToCache | Action::FreeActiveToOs | Action::Release)
    }

    /// One of the seven actions of the allocator: what `Counts` counts.
    pub fn is_buffer(self) -> bool {
        self as u8 <= Action::Release as u8
    }

    /// About an array, not about memory.
    pub fn is_array(self) -> bool {
        self as u8 >= Action::ArrayCreated as u8
    }
}

/// Where a buffer lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DeviceKind {
    /// Host memory.
    #[default]
    Cpu = 0,
    /// Metal or CUDA.
    Gpu = 1,
}

/// Kind and index of a device, packed in a byte: bit 7 is the kind, the rest the index.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Device(pub u8);

impl Device {
    /// `index` is cut to 7 bits: MLX counts devices from 0.
    pub fn new(kind: DeviceKind, index: u8) -> Device {
        Device(((kind as u8) << 7) | (index & 0x7f))
    }

    /// CPU or GPU.
    pub fn kind(self) -> DeviceKind {
        if self.0 & 0x80 == 0 { DeviceKind::Cpu } else { DeviceKind::Gpu }
    }

    /// Ordinal within its kind.
    pub fn index(self) -> u8 {
        self.0 & 0x7f
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind() {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Gpu => "gpu",
        };
        write!(f, "{kind}:{}", self.index())
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// One record, 48 bytes:
///
/// ```text
///  0        8        16       24    28    32     36         40      42      44      45      46
///  | time   | addr   | size   |slack|what |built |triggered |thread |stream |device |action |flags |
/// ```
///
/// Example: a 12 MiB block reused for a request of 12 MiB − 4 KiB, built by `c = a + b` and evaluated by `mx.eval(c)`, has
/// action `AllocReuse`, size 12582912, slack 4096, `built` the stack of the first line and `triggered` that of the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// Nanoseconds since the recording started (monotonic, never decreasing along a trace).
    pub time_nanos: u64,
    /// Address of the buffer.
    pub addr: u64,
    /// Bytes that the allocator counts for the buffer, so at least what was asked for.
    pub size: u64,
    /// `size` minus the bytes asked for. Array actions keep the array's id here.
    pub slack: u32,
    /// Primitive, shape and dtype of the array that owns the buffer.
    pub what: WhatId,
    /// Stack of the line that built the array that owns the buffer, on allocations and on frees.
    pub built: StackId,
    /// Stack of what made the event happen: of an allocation the evaluation, of a free the thread's own.
    pub triggered: StackId,
    /// Thread that the event happened on.
    pub thread: ThreadId,
    /// Index of the MLX stream that the owner's primitive runs on, or [`NO_STREAM`].
    pub stream: i16,
    /// Device of that stream.
    pub device: Device,
    /// What happened.
    pub action: Action,
    /// Where the memory is and how the event came about: [`Event::UNIFIED`], [`Event::SCALAR_POOL`], [`Event::MOVED`].
    pub flags: u16,
}

impl Default for Event {
    fn default() -> Self {
        Event {
            time_nanos: 0,
            addr: 0,
            size: 0,
            slack: 0,
            what: WhatId(0),
            built: StackId(0),
            triggered: StackId(0),
            thread: ThreadId(0),
            stream: NO_STREAM,
            device: Device(0),
            action: Action::AllocNew,
            flags: 0,
        }
    }
}

const _: () = assert!(size_of::<Event>() == 48);

impl Event {
    /// Flag: host and device share the memory (CUDA's managed or pinned memory).
    pub const UNIFIED: u16 = 1;
    /// Flag: a place in CUDA's pool of eight-byte scalars, which is made once.
    pub const SCALAR_POOL: u16 = 2;
    /// Flag: half of a move. A buffer that changes its address while it is used is a `FreeActiveToOs` of the old address
    /// and, with the same time, an `AllocNew` of the new one; MLX's counters do not change between the two.
    pub const MOVED: u16 = 4;

    /// Is it half of a move?
    pub fn is_move(&self) -> bool {
        self.flags & Event::MOVED != 0
    }

    /// Bytes asked for: `size - slack` for buffer events.
    pub fn requested(&self) -> u64 {
        if self.action.is_array() { self.size } else { self.size - u64::from(self.slack).min(self.size) }
    }

    /// An `ArrayInputs` record: the array `array` is computed from `inputs`, of which the first four are taken.
    pub fn array_inputs(array: u32, inputs: &[u32]) -> Event {
        let id = |at: usize| u64::from(inputs.get(at).copied().unwrap_or(0));
        let (addr, size) = (id(0) | id(1) << 32, id(2) | id(3) << 32);
        Event { addr, size, slack: array, action: Action::ArrayInputs, ..Event::default() }
    }

    /// The arrays that an `ArrayInputs` record names; those from before the recording have no id and are left out.
    pub fn inputs(&self) -> impl Iterator<Item = u32> {
        let ids = [self.addr as u32, (self.addr >> 32) as u32, self.size as u32, (self.size >> 32) as u32];
        let is_inputs = self.action == Action::ArrayInputs;
        ids.into_iter().filter(move |&id| is_inputs && id != 0)
    }

    /// A `FilteredNet` record for a net change of `active` and `cached` bytes.
    pub fn filtered_net(time_nanos: u64, active: i64, cached: i64) -> Event {
        Event { time_nanos, addr: active as u64, size: cached as u64, action: Action::FilteredNet, ..Event::default() }
    }
}
