//! What happens to an event once a hook has it: counted, filtered, written to the ring, and the buffer table kept true.
//!
//! Safe code over plain values, under the recorder's lock. Knows neither MLX nor Python: hooks read their memory and hand
//! over numbers. Invariants, after every call: `totals` equals what MLX counts, every buffer of the table is active or
//! cached, and `recorded + dropped + filtered == seen`.
//!
//! `marks` keeps what is beside the events, `drained` hands out to a writer.

mod drained;
mod marks;

pub use drained::{Drained, Known, RawWhat};

use memviz_trace::{
    Action, Buffer, Checkpoint, Context, Counts, Device, Event, Hits, Mark, NO_STREAM, StackId, StringId, Strings,
    Tally, ThreadId, Totals, WhatId,
};
use rustc_hash::FxHashMap;

use crate::gap::{self, Gap};
use crate::options::Options;
use crate::places::Places;
use crate::store::Store;
use crate::table::{BufferTable, Entry, Handle};
use crate::whats::WhatTable;

/// Limit of the CPU's cache in a process that sets none: a recording that begins with another one says so in a mark.
const DEFAULT_CACHE_LIMIT: u64 = 32 << 20;

/// Highest value of a sum.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeakNote {
    /// Bytes.
    pub bytes: u64,
    /// When, nanoseconds since the recording started.
    pub time_nanos: u64,
    /// Number of events up to that moment.
    pub index: u64,
}

/// A thread that took part.
#[derive(Clone, Copy, Debug)]
pub struct ThreadNote {
    /// The kernel's id.
    pub native_id: u64,
    /// Its name when first seen.
    pub name: StringId,
}

/// An array that takes a buffer: what `set_data` tells.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// Line that built it; 0 keeps the line of the primitive that is running.
    pub built: StackId,
    /// Primitive, shape and dtype.
    pub what: WhatId,
    /// Stream and device of its primitive; [`NO_STREAM`] keeps those of the primitive that is running.
    pub stream: i16,
    /// Device of that stream.
    pub device: Device,
}

/// A buffer in MLX's cache from before the recording.
#[derive(Clone, Copy, Debug)]
pub struct Cached {
    /// As MLX knows it.
    pub handle: u64,
    /// Of its memory.
    pub addr: u64,
    /// Bytes.
    pub size: u64,
    /// [`Event::flags`] of its memory.
    pub flags: u16,
}

/// An allocation that failed, for observers.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// Device it was asked of.
    pub device: Device,
    /// Bytes asked for.
    pub requested: u64,
    /// Sums at that moment.
    pub totals: Totals,
}

/// The recorder's state. In this order, what every event touches first: the thread that allocates and the one that frees
/// hand these lines to each other with the lock.
#[derive(Debug)]
#[repr(C)]
pub struct Recorder {
    totals: Totals,
    last_nanos: u64,
    /// Net change of active and cached bytes by filtered events since the last record.
    unwritten: (i64, i64),
    peak_active: PeakNote,
    peak_reserved: PeakNote,
    seen: Tally,
    table: BufferTable,
    store: Store,
    by_action: [Tally; 7],
    hits: Hits,
    options: Options,
    totals_at_start: Totals,
    /// Streamed: buffers that were known then.
    at_start: Vec<Buffer>,
    filtered: Tally,
    lost: u64,
    steps: u64,
    cache_limit: u64,
    marks: Vec<Mark>,
    checkpoints: Vec<Checkpoint>,
    threads: Vec<ThreadNote>,
    /// A thread was entered or renamed since threads were taken.
    has_new_threads: bool,
    /// Failed allocations that no one was told of yet, the newest 64.
    failures: Vec<Failure>,
    /// Level `arrays`: the line that built each array, by id.
    arrays: Vec<StackId>,
    /// Streamed, while the queue is full: what happens to buffers meanwhile.
    gap: Gap,
    dropped_others: u64,
    /// Streamed: events that were taken before their owner was known, as they are known now.
    amended: Vec<(u64, Event)>,
    /// Where handles are not addresses: empty on CPU.
    pub(crate) places: Places,
    /// Names that never move, by address.
    pub static_names: FxHashMap<usize, StringId>,
    /// Names of threads, primitives and annotations.
    pub strings: Strings,
    /// Primitives, shapes and dtypes.
    pub whats: WhatTable,
}

impl Recorder {
    /// A recorder for a process in which MLX counts `totals` and `cached` lists the buffers of its cache that are known.
    pub fn new(options: Options, totals: Totals, cached: &[Cached]) -> Recorder {
        let mut recorder = Recorder {
            store: Store::new(&options),
            options,
            table: BufferTable::new(),
            totals,
            totals_at_start: totals,
            at_start: Vec::new(),
            unwritten: (0, 0),
            seen: Tally::default(),
            filtered: Tally::default(),
            lost: 0,
            by_action: [Tally::default(); 7],
            hits: Hits::default(),
            peak_active: PeakNote { bytes: totals.active, ..PeakNote::default() },
            peak_reserved: PeakNote { bytes: totals.reserved(), ..PeakNote::default() },
            last_nanos: 0,
            steps: 0,
            cache_limit: DEFAULT_CACHE_LIMIT,
            marks: Vec::new(),
            checkpoints: Vec::new(),
            threads: Vec::new(),
            has_new_threads: false,
            failures: Vec::new(),
            arrays: vec![StackId(0)],
            gap: Gap::default(),
            dropped_others: 0,
            amended: Vec::new(),
            places: Places::default(),
            static_names: FxHashMap::default(),
            strings: Strings::default(),
            whats: WhatTable::default(),
        };
        for &Cached { handle, addr, size, flags } in cached {
            let alloc = Event { addr, size, flags, ..Event::default() };
            if handle != addr {
                recorder.place(handle, addr);
            }
            recorder.enter(Entry { alloc, alloc_index: u64::MAX, handle: handle.into(), is_cached: true });
        }
        if recorder.options.is_streamed {
            recorder.at_start = recorder.buffers_unsorted().collect();
        }
        recorder
    }

    fn enter(&mut self, entry: Entry) {
        if self.table.insert(entry).is_err() {
            self.lost += 1;
        }
    }

    /// A buffer at `event.addr` became active; the action is decided here: a reuse if the address is cached. Returns the
    /// number of the event, `u64::MAX` when it was not written.
    #[inline]
    pub fn alloc(&mut self, event: Event) -> u64 {
        self.alloc_as(event.addr.into(), event)
    }

    /// As `alloc`, for a buffer that MLX does not know by its address.
    pub(crate) fn alloc_as(&mut self, handle: Handle, mut event: Event) -> u64 {
        self.note_gap(&event);
        let previous = self.table.get_mut(event.addr).map(|entry| entry.is_cached);
        event.action = if previous == Some(true) { Action::AllocReuse } else { Action::AllocNew };
        let cached_change = if event.action == Action::AllocReuse { -(event.size as i64) } else { 0 };
        let written = written_alloc(event, self.options.context);
        let alloc_index = self.count(&event, written, event.size as i64, cached_change);
        self.enter(Entry { alloc: event, alloc_index, handle, is_cached: false });
        alloc_index
    }

    /// An array took the buffer at `addr` that event `alloc_index` allocated. That event is completed.
    pub fn own(&mut self, addr: u64, alloc_index: u64, owner: Owner) {
        let is_that_use = |entry: &&mut Entry| !entry.is_cached && entry.alloc_index == alloc_index;
        let Some(entry) = self.table.get_mut(addr).filter(is_that_use) else { return };
        let alloc = &mut entry.alloc;
        alloc.what = owner.what;
        if owner.built != StackId(0) {
            alloc.built = owner.built;
        }
        if owner.stream != NO_STREAM {
            alloc.stream = owner.stream;
            alloc.device = owner.device;
        }
        let alloc = *alloc;
        if let Some(written) = self.store.get_mut(alloc_index) {
            written.what = alloc.what;
            written.stream = alloc.stream;
            written.device = alloc.device;
            if is_on_allocs(self.options.context) {
                written.built = alloc.built;
            }
        } else if self.options.is_streamed && alloc_index != u64::MAX && !self.store.is_full() {
            self.amended.push((alloc_index, written_alloc(alloc, self.options.context)));
        }
    }

    /// The active buffer at `event.addr` was freed: into the cache or out of the process. What is known of the buffer
    /// (its array, the line that built it, its stream) is added to the event.
    #[inline]
    pub fn free(&mut self, event: Event, is_recycled: bool) {
        self.free_as(event.addr.into(), event, is_recycled);
    }

    /// As `free`, for a buffer that MLX does not know by its address.
    pub(crate) fn free_as(&mut self, handle: Handle, mut event: Event, is_recycled: bool) {
        event.action = if is_recycled { Action::FreeActiveToCache } else { Action::FreeActiveToOs };
        let cached_change = if is_recycled { event.size as i64 } else { 0 };
        self.note_gap(&event);
        match self.table.get_mut(event.addr) {
            Some(entry) => {
                entry.is_cached = is_recycled;
                describe(&mut event, &entry.alloc);
                if !is_recycled {
                    self.table.remove(event.addr);
                }
            }
            None if is_recycled => {
                // From before the recording: known from now on.
                let alloc = Event { time_nanos: 0, triggered: StackId(0), action: Action::AllocNew, ..event };
                self.enter(Entry { alloc, alloc_index: u64::MAX, handle, is_cached: true });
            }
            None => {}
        }
        self.count(&event, written_free(event, self.options.context), -(event.size as i64), cached_change);
    }

    /// What is recorded at `addr`.
    #[inline]
    pub(crate) fn entry_at(&mut self, addr: u64) -> Option<&Entry> {
        self.table.get_mut(addr).map(|entry| &*entry)
    }

    /// The active buffer at `addr`, as the allocation that began its use.
    pub(crate) fn active_at(&mut self, addr: u64) -> Option<Event> {
        self.table.get_mut(addr).filter(|entry| !entry.is_cached).map(|entry| entry.alloc)
    }

    /// MLX gave the cached buffer that it knows by `handle` back.
    pub fn evict(&mut self, handle: u64, time_nanos: u64) {
        let addr = self.forget_place(handle);
        self.leave(addr, time_nanos, 0);
    }

    /// The cached buffer at `addr` left the cache and the process.
    pub(crate) fn leave(&mut self, addr: u64, time_nanos: u64, flags: u16) {
        let Some(entry) = self.table.remove(addr) else {
            self.lost += 1;
            return;
        };
        if self.store.is_full() && entry.alloc.size >= self.options.min_size {
            self.gap.note(addr, gap::state_of(Some(&entry)));
        }
        let size = entry.alloc.size;
        let mut event = Event { time_nanos, addr, size, flags, action: Action::FreeCacheToOs, ..Event::default() };
        describe(&mut event, &entry.alloc);
        self.count(&event, written_free(event, self.options.context), 0, -(size as i64));
    }

    /// An allocation failed; MLX's active counter grew by `counted` all the same.
    pub fn oom(&mut self, requested: u64, counted: u64, mut event: Event) {
        event.action = Action::Oom;
        event.size = requested;
        event.addr = counted;
        if self.failures.len() == 64 {
            self.failures.remove(0);
        }
        self.failures.push(Failure { device: event.device, requested, totals: self.totals });
        self.totals.active += counted;
        if self.store.is_full() {
            self.unwritten.0 += counted as i64;
        }
        self.push(event);
    }

    /// Failed allocations since the last call.
    pub fn take_failures(&mut self) -> Vec<Failure> {
        std::mem::take(&mut self.failures)
    }

    /// A record that changes no sum: markers and array events.
    pub fn note(&mut self, event: Event) {
        self.push(event);
    }

    /// The recorder failed to record something; the trace says so.
    pub fn lose(&mut self) {
        self.lost += 1;
    }

    /// Counts a buffer event and writes it unless filtered. Returns its number, `u64::MAX` when it was not written.
    fn count(&mut self, event: &Event, written: Event, active: i64, cached: i64) -> u64 {
        self.seen.add(event.size);
        self.by_action[event.action as usize].add(event.size);
        self.hits.note(event);
        self.totals.active = self.totals.active.wrapping_add_signed(active);
        self.totals.cached = self.totals.cached.wrapping_add_signed(cached);
        let index = if event.size < self.options.min_size {
            self.filtered.add(event.size);
            self.unwritten.0 += active;
            self.unwritten.1 += cached;
            u64::MAX
        } else {
            self.push(written)
        };
        self.raise_peaks(event.time_nanos);
        index
    }

    /// Streamed and the queue is full: keeps what the address was before this event. A buffer that was there before the
    /// recording is not in the table; its free says what it was.
    #[inline]
    fn note_gap(&mut self, event: &Event) {
        if !self.store.is_full() || event.size < self.options.min_size {
            return;
        }
        let before = gap::state_of(self.table.get_mut(event.addr).as_deref());
        let was_unknown = before.is_none() && event.action.is_free();
        self.gap.note(event.addr, if was_unknown { Some((*event, false)) } else { before });
    }

    /// There is room again: what happened meanwhile is written in short.
    fn close_gap(&mut self) {
        if self.gap.is_empty() {
            return;
        }
        let min_size = self.options.min_size;
        let (gap, table) = (&mut self.gap, &mut self.table);
        let events = gap
            .close(|addr| gap::state_of(table.get_mut(addr).filter(|entry| entry.alloc.size >= min_size).as_deref()));
        self.write_unwritten(self.last_nanos);
        for event in events {
            let written = match event.action.is_alloc() {
                true => written_alloc(event, self.options.context),
                false => written_free(event, self.options.context),
            };
            self.push_raw(Event { time_nanos: self.last_nanos, ..written });
        }
    }

    fn raise_peaks(&mut self, time_nanos: u64) {
        let index = self.store.next_index();
        for (peak, bytes) in [
            (&mut self.peak_active, self.totals.active),
            (&mut self.peak_reserved, self.totals.active.wrapping_add(self.totals.cached)),
        ] {
            if bytes > peak.bytes {
                *peak = PeakNote { bytes, time_nanos, index };
            }
        }
    }

    fn push(&mut self, mut event: Event) -> u64 {
        if self.store.is_full() {
            self.dropped_others += u64::from(!event.action.is_buffer());
            return u64::MAX;
        }
        self.write_unwritten(event.time_nanos);
        event.time_nanos = self.forward(event.time_nanos);
        self.push_raw(event)
    }

    fn write_unwritten(&mut self, time_nanos: u64) {
        let (active, cached) = std::mem::take(&mut self.unwritten);
        if (active, cached) != (0, 0) {
            let time_nanos = self.forward(time_nanos);
            self.push_raw(Event::filtered_net(time_nanos, active, cached));
        }
    }

    fn push_raw(&mut self, event: Event) -> u64 {
        match self.store.push(event) {
            Some(index) => index,
            None => {
                self.lost += 1;
                u64::MAX
            }
        }
    }

    /// Time never runs back along the ring, though threads read the clock before they get the lock.
    fn forward(&mut self, time_nanos: u64) -> u64 {
        self.last_nanos = self.last_nanos.max(time_nanos);
        self.last_nanos
    }

    /// Enters a thread and returns its id.
    pub fn add_thread(&mut self, native_id: u64, name: &str) -> ThreadId {
        let name = self.strings.intern(name);
        self.threads.push(ThreadNote { native_id, name });
        self.has_new_threads = true;
        // Thread 0 is "not known"; a program with more than 65,534 threads shares the last id.
        ThreadId(self.threads.len().min(usize::from(u16::MAX)) as u16)
    }

    /// Gives a thread that was entered before its name a better one.
    pub fn rename_thread(&mut self, thread: ThreadId, name: &str) {
        let name = self.strings.intern(name);
        if let Some(note) = thread.index().checked_sub(1).and_then(|at| self.threads.get_mut(at)) {
            note.name = name;
            self.has_new_threads = true;
        }
    }

    /// Level `arrays`: enters an array and returns its id, from 1.
    pub fn add_array(&mut self, built: StackId) -> u32 {
        self.arrays.push(built);
        (self.arrays.len() - 1) as u32
    }

    /// Level `arrays`: the line that built an array.
    pub fn stack_of_array(&self, id: u32) -> StackId {
        self.arrays.get(id as usize).copied().unwrap_or_default()
    }

    /// What became of all events.
    pub fn counts(&self) -> Counts {
        Counts {
            seen: self.seen,
            dropped: self.store.dropped(self.seen, self.filtered),
            filtered: self.filtered,
            lost: self.lost,
            dropped_others: self.store.dropped_others() + self.dropped_others,
        }
    }

    /// Running sums.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Highest active and highest reserved bytes since the recording started.
    pub fn peaks(&self) -> (PeakNote, PeakNote) {
        (self.peak_active, self.peak_reserved)
    }

    /// Events and bytes by action, the first seven of [`Action`].
    pub fn by_action(&self) -> [Tally; 7] {
        self.by_action
    }

    /// Hits and misses of MLX's cache, filtered events included.
    pub fn hits(&self) -> Hits {
        self.hits
    }

    /// The options it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// MLX's counters when it was made.
    pub fn totals_at_start(&self) -> Totals {
        self.totals_at_start
    }

    /// Streamed: the buffers that were known when it was made, all cached.
    pub fn buffers_at_start(&self) -> &[Buffer] {
        &self.at_start
    }

    /// Events that are kept.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Marks, checkpoints and threads so far.
    pub fn notes(&self) -> (&[Mark], &[Checkpoint], &[ThreadNote]) {
        (&self.marks, &self.checkpoints, &self.threads)
    }

    /// Buffers that exist, those below the minimum size left out, in no order.
    pub fn buffers_unsorted(&self) -> impl Iterator<Item = Buffer> + '_ {
        let min_size = self.options.min_size;
        self.table.entries_unsorted().map(Entry::buffer).filter(move |buffer| buffer.size >= min_size)
    }

    /// Bytes that the recorder itself holds.
    pub fn memory_bytes(&self) -> usize {
        let events = self.store.memory_bytes();
        events + self.table.memory_bytes() + self.whats.memory_bytes() + self.places.memory_bytes()
    }
}

/// Adds to the end of a buffer's use what is known from its beginning.
fn describe(event: &mut Event, alloc: &Event) {
    event.slack = alloc.slack;
    event.what = alloc.what;
    event.built = alloc.built;
    event.stream = alloc.stream;
    event.device = alloc.device;
    event.flags |= alloc.flags & !Event::MOVED;
}

/// Do allocations carry stacks when they are written?
fn is_on_allocs(context: Context) -> bool {
    matches!(context, Context::All | Context::Alloc)
}

/// An allocation as it is written.
#[inline]
fn written_alloc(mut event: Event, context: Context) -> Event {
    if !is_on_allocs(context) {
        event.built = StackId(0);
        event.triggered = StackId(0);
    }
    event
}

/// A free or an eviction as it is written.
#[inline]
fn written_free(mut event: Event, context: Context) -> Event {
    if context != Context::All {
        event.built = StackId(0);
        event.triggered = StackId(0);
    }
    event
}
