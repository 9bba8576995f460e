//! One event of ours to one, two or three trace entries of PyTorch.
//!
//! Also follows which buffers are alive, because an entry belongs to the device that its buffer was made for and because
//! the segments after the last event follow from it. Accepts contradicting traces: a dump must work when a check fails.

use memviz_trace::{Action, Buffer, Event, MarkCursor, NO_STREAM, StackId, Trace};
use rustc_hash::FxHashMap;

use super::pickler::{ListBatch, Memo, Pickler};
use super::scan::Scan;
use super::segments::own_frame;
use super::shared::Shared;
use super::words::Word;

/// A buffer, the trace list it belongs to, and its address as the pickle knows it.
#[derive(Clone, Copy)]
pub(super) struct Alive {
    pub(super) buffer: Buffer,
    pub(super) home: usize,
    addr: Option<Memo>,
}

/// Buffers by address.
#[derive(Default)]
pub(super) struct AliveMap(FxHashMap<u64, Alive>);

impl AliveMap {
    pub(super) fn at_start(trace: &Trace, scan: &Scan) -> AliveMap {
        let alive = |buffer: &Buffer| {
            let home = scan.home(buffer.stream, buffer.device);
            Alive { buffer: *buffer, home, addr: None }
        };
        AliveMap(trace.start.iter().map(|buffer| (buffer.addr, alive(buffer))).collect())
    }

    /// Takes an event into account; says which list it belongs to and where its address is written.
    fn follow(&mut self, event: &Event, scan: &Scan) -> (usize, Option<Memo>) {
        let own = (scan.home(event.stream, event.device), None);
        let place = |alive: &Alive| (alive.home, alive.addr);
        match event.action {
            Action::AllocNew | Action::AllocMakeBuffer => self.put(event, own),
            Action::AllocReuse => self.put(event, self.0.get(&event.addr).map_or(own, place)),
            Action::FreeActiveToCache => self.0.get_mut(&event.addr).map_or(own, |alive| {
                alive.buffer.is_cached = true;
                place(alive)
            }),
            Action::FreeActiveToOs | Action::Release | Action::FreeCacheToOs => {
                self.0.remove(&event.addr).map_or(own, |alive| place(&alive))
            }
            _ => own,
        }
    }

    fn put(&mut self, event: &Event, (home, addr): (usize, Option<Memo>)) -> (usize, Option<Memo>) {
        self.0.insert(event.addr, Alive { buffer: Buffer::from_alloc(event), home, addr });
        (home, addr)
    }

    fn remember(&mut self, event: &Event, memo: Option<Memo>) {
        if let Some(alive) = self.0.get_mut(&event.addr) {
            alive.addr = memo;
        }
    }

    /// Sum of the active buffers of one list, as far as readers can count.
    pub(super) fn active_bytes(&self, home: usize) -> u64 {
        let active = self.0.values().filter(|alive| alive.home == home && !alive.buffer.is_cached);
        active.fold(0u64, |sum, alive| sum.saturating_add(alive.buffer.size)).min(1 << 61)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Every buffer, by address.
    pub(super) fn sorted(&self) -> Vec<Alive> {
        let mut all: Vec<Alive> = self.0.values().copied().collect();
        all.sort_unstable_by_key(|alive| alive.buffer.addr);
        all
    }
}

/// Writes the trace list of one device.
pub(super) struct EntryWriter<'a, 'w, 't> {
    pub(super) pickler: &'a mut Pickler<'w>,
    pub(super) shared: &'a mut Shared<'t>,
    pub(super) scan: &'a Scan,
    /// Memo numbers of the categories, then "unknown".
    pub(super) categories: &'a [Memo],
    pub(super) start_micros: u64,
    pub(super) list: ListBatch,
    pub(super) entries: u64,
    /// Number of the event at hand.
    pub(super) index: u64,
    /// Where the address of the event at hand is written.
    pub(super) addr: Option<Memo>,
    /// Where the time of the event at hand is written.
    pub(super) time: Option<Memo>,
}

impl EntryWriter<'_, '_, '_> {
    /// Writes the entries of `event` if it belongs to list `home`.
    pub(super) fn event(&mut self, event: &Event, home: usize, alive: &mut AliveMap, marks: &MarkCursor<'_>) {
        let (list, addr) = alive.follow(event, self.scan);
        if list != home {
            return;
        }
        (self.addr, self.time) = (addr, None);
        self.entries_of(event, marks);
        if self.addr != addr {
            alive.remember(event, self.addr);
        }
    }

    fn entries_of(&mut self, event: &Event, marks: &MarkCursor<'_>) {
        match event.action {
            Action::AllocNew | Action::AllocMakeBuffer => {
                self.segment(Word::SegmentAlloc, event, stack_of(event.built, event.triggered));
                self.alloc(event, marks);
            }
            Action::AllocReuse => self.alloc(event, marks),
            Action::FreeActiveToCache => self.free(event),
            Action::FreeActiveToOs | Action::Release => {
                self.free(event);
                self.segment(Word::SegmentFree, event, stack_of(event.triggered, event.built));
            }
            Action::FreeCacheToOs => self.segment(Word::SegmentFree, event, stack_of(event.triggered, event.built)),
            Action::Oom => self.oom(event, marks),
            Action::Snapshot => self.snapshot(event, event.size, "snapshot"),
            _ => {}
        }
    }

    /// What every entry has; the caller adds the rest and closes the dict.
    fn open(&mut self, action: Word, event: &Event, size: u64) {
        self.entries += 1;
        let pickler = &mut *self.pickler;
        pickler.item(&mut self.list);
        pickler.begin_dict();
        pickler.word(Word::Action);
        pickler.word(action);
        pickler.word(Word::Addr);
        match self.addr {
            _ if !event.action.is_buffer() => pickler.int(0),
            Some(memo) => pickler.get(memo),
            None => {
                pickler.bits(event.addr);
                self.addr = Some(pickler.memoize());
            }
        }
        pickler.word(Word::Size);
        pickler.bits(size);
        pickler.word(Word::Stream);
        pickler.int(stream(event.stream));
        pickler.word(Word::TimeUs);
        match self.time {
            Some(memo) => pickler.get(memo),
            None => {
                pickler.bits(micros(self.start_micros, event.time_nanos));
                self.time = (action == Word::FreeRequested).then(|| pickler.memoize());
            }
        }
    }

    fn frames(&mut self, stack: StackId) {
        self.pickler.word(Word::Frames);
        self.shared.frames(self.pickler, stack);
    }

    fn context(&mut self) {
        self.pickler.word(Word::CompileContext);
        self.pickler.word(Word::NotApplicable);
        self.pickler.word(Word::PoolId);
        self.pickler.pool();
    }

    fn text(&mut self, event: &Event, marks: &MarkCursor<'_>) {
        self.pickler.word(Word::UserMetadata);
        self.shared.alloc_text(self.pickler, event, marks);
    }

    fn alloc(&mut self, event: &Event, marks: &MarkCursor<'_>) {
        self.open(Word::Alloc, event, event.requested());
        self.frames(stack_of(event.built, event.triggered));
        self.context();
        self.text(event, marks);
        self.category(event);
        self.pickler.end_dict();
    }

    fn category(&mut self, event: &Event) {
        let number = self.scan.category_of.get(event.what.index()).copied().map_or(self.categories.len(), usize::from);
        let memo = self.categories[number.min(self.categories.len() - 1)];
        self.pickler.word(Word::Category);
        self.pickler.get(memo);
    }

    fn free(&mut self, event: &Event) {
        self.open(Word::FreeRequested, event, event.requested());
        self.frames(stack_of(event.triggered, event.built));
        self.pickler.word(Word::UserMetadata);
        self.shared.owner_text(self.pickler, event.what, event.built);
        self.pickler.end_dict();
        self.open(Word::FreeCompleted, event, event.requested());
        self.pickler.end_dict();
    }

    fn segment(&mut self, action: Word, event: &Event, stack: StackId) {
        self.open(action, event, event.size);
        self.frames(stack);
        if action == Word::SegmentAlloc {
            self.category(event);
        }
        self.pickler.end_dict();
    }

    fn oom(&mut self, event: &Event, marks: &MarkCursor<'_>) {
        self.open(Word::Oom, event, event.size);
        self.pickler.word(Word::DeviceFree);
        self.pickler.bits(self.scan.device_free(self.index));
        self.frames(stack_of(event.built, event.triggered));
        self.context();
        self.text(event, marks);
        self.pickler.end_dict();
    }

    /// The marker that PyTorch writes when a snapshot is taken. Pages before July 2026 fail on categories when no entry
    /// has the category "unknown"; this one does.
    pub(super) fn snapshot(&mut self, event: &Event, active: u64, text: &str) {
        let event = Event { action: Action::Snapshot, ..*event };
        self.time = None;
        self.open(Word::Snapshot, &event, active);
        self.pickler.word(Word::Frames);
        own_frame(self.pickler, text);
        self.context();
        self.pickler.word(Word::UserMetadata);
        self.pickler.word(Word::Empty);
        self.pickler.word(Word::Category);
        self.pickler.word(Word::Unknown);
        self.pickler.end_dict();
    }
}

/// The first stack that is not empty.
pub(super) fn stack_of(first: StackId, second: StackId) -> StackId {
    if first == StackId(0) { second } else { first }
}

/// Readers know streams as numbers from 0.
pub(super) fn stream(stream: i16) -> i64 {
    if stream == NO_STREAM { 0 } else { stream.into() }
}

/// Microseconds since 1970.
pub(super) fn micros(start_micros: u64, time_nanos: u64) -> u64 {
    start_micros.saturating_add(time_nanos / 1000).min(i64::MAX as u64)
}
