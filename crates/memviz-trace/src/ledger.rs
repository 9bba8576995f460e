//! The state machine of buffers: what is active and what is cached after each event.
//!
//! The one place that knows what an action does to memory. `check`, peak search and the writers all replay through it.
//! Needs events in order; does not know files, names or threads.

use rustc_hash::FxHashMap;

use crate::event::{Action, Device, Event, NO_STREAM};
use crate::ids::{StackId, ThreadId, WhatId};
use crate::trace::{Base, Trace};

/// A buffer that exists at some moment. `is_cached == false` means active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Address.
    pub addr: u64,
    /// Bytes that the allocator counts for it.
    pub size: u64,
    /// `size` minus the bytes asked for by its last user.
    pub slack: u32,
    /// In the cache, waiting for a new user.
    pub is_cached: bool,
    /// Wraps memory that MLX does not own.
    pub is_wrapper: bool,
    /// When its present (or, cached, its last) user took it.
    pub alloc_nanos: u64,
    /// What that user is.
    pub what: WhatId,
    /// Line that built that user.
    pub built: StackId,
    /// Evaluation that made it allocate.
    pub triggered: StackId,
    /// Thread that it was allocated on.
    pub thread: ThreadId,
    /// Stream of that user, or [`NO_STREAM`].
    pub stream: i16,
    /// Device of that stream.
    pub device: Device,
    /// [`Event::UNIFIED`] and [`Event::SCALAR_POOL`].
    pub flags: u16,
}

impl Default for Buffer {
    fn default() -> Self {
        Buffer::from_alloc(&Event { stream: NO_STREAM, ..Event::default() })
    }
}

impl Buffer {
    /// The buffer that an allocation event brings to life.
    pub fn from_alloc(event: &Event) -> Buffer {
        Buffer {
            addr: event.addr,
            size: event.size,
            slack: event.slack,
            is_cached: false,
            is_wrapper: event.action == Action::AllocMakeBuffer,
            alloc_nanos: event.time_nanos,
            what: event.what,
            built: event.built,
            triggered: event.triggered,
            thread: event.thread,
            stream: event.stream,
            device: event.device,
            flags: event.flags & !Event::MOVED,
        }
    }

    /// The allocation that began its present (or, cached, its last) use: [`Buffer::from_alloc`] of it is this buffer, active.
    pub fn to_alloc(&self) -> Event {
        Event {
            time_nanos: self.alloc_nanos,
            addr: self.addr,
            size: self.size,
            slack: self.slack,
            what: self.what,
            built: self.built,
            triggered: self.triggered,
            thread: self.thread,
            stream: self.stream,
            device: self.device,
            action: if self.is_wrapper { Action::AllocMakeBuffer } else { Action::AllocNew },
            flags: self.flags & !Event::MOVED,
        }
    }

    /// Bytes that its user asked for.
    pub fn requested(&self) -> u64 {
        self.size - u64::from(self.slack).min(self.size)
    }
}

/// Running sums, bytes. `reserved() == active + cached`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Used by arrays.
    pub active: u64,
    /// Kept by MLX for reuse.
    pub cached: u64,
}

impl Totals {
    /// Held by MLX: active and cached.
    pub fn reserved(self) -> u64 {
        self.active.saturating_add(self.cached)
    }
}

/// Why an event contradicts those before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// An allocation at an address that is active.
    #[error("{action} of {size} bytes at {addr:#x}, which is active already")]
    AllocOfActive {
        /// The event's action.
        action: &'static str,
        /// The event's size.
        size: u64,
        /// The event's address.
        addr: u64,
    },
    /// A new buffer at an address that is cached: it should have been a reuse.
    #[error("{action} of {size} bytes at {addr:#x}, which is cached: expected AllocReuse or a FreeCacheToOS before it")]
    NewOfCached {
        /// The event's action.
        action: &'static str,
        /// The event's size.
        size: u64,
        /// The event's address.
        addr: u64,
    },
    /// A free, reuse or eviction of an address in the wrong state.
    #[error("{action} at {addr:#x}, which is {found}; expected {expected}")]
    WrongState {
        /// The event's action.
        action: &'static str,
        /// The event's address.
        addr: u64,
        /// "active", "cached" or "not there".
        found: &'static str,
        /// "active" or "cached".
        expected: &'static str,
    },
    /// An event names another size than the buffer has.
    #[error("{action} at {addr:#x} says {found} bytes; the buffer has {expected}")]
    SizeChanged {
        /// The event's action.
        action: &'static str,
        /// The event's address.
        addr: u64,
        /// Size in the event.
        found: u64,
        /// Size of the buffer.
        expected: u64,
    },
    /// A sum would fall below zero or leave 64 bits.
    #[error("{action} at {addr:#x} takes the {what} bytes out of range: {before} {change:+}")]
    OutOfRange {
        /// The event's action.
        action: &'static str,
        /// The event's address.
        addr: u64,
        /// "active" or "cached".
        what: &'static str,
        /// The sum before the event.
        before: u64,
        /// The change.
        change: i128,
    },
}

/// Buffers and sums after some event.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    buffers: FxHashMap<u64, Buffer>,
    totals: Totals,
}

fn shifted(event: &Event, what: &'static str, before: u64, change: i128) -> Result<u64, LedgerError> {
    u64::try_from(i128::from(before) + change).map_err(|_| LedgerError::OutOfRange {
        action: event.action.name(),
        addr: event.addr,
        what,
        before,
        change,
    })
}

impl Ledger {
    /// State before the first event of `trace`. An address listed twice is reported as an allocation of an active one.
    pub fn at_start(trace: &Trace) -> Result<Ledger, LedgerError> {
        Ledger::new(&trace.start, trace.base)
    }

    /// State with these buffers and, beside them, `base` bytes.
    pub fn new(buffers: &[Buffer], base: Base) -> Result<Ledger, LedgerError> {
        let mut ledger =
            Ledger { buffers: FxHashMap::default(), totals: Totals { active: base.active, cached: base.cached } };
        for buffer in buffers {
            let event = Event { addr: buffer.addr, size: buffer.size, ..Event::default() };
            ledger.shift(&event, if buffer.is_cached { 0 } else { 1 }, if buffer.is_cached { 1 } else { 0 })?;
            if ledger.buffers.insert(buffer.addr, *buffer).is_some() {
                return Err(LedgerError::AllocOfActive { action: "start", size: buffer.size, addr: buffer.addr });
            }
        }
        Ok(ledger)
    }

    /// Sums after the last event.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The buffer at an address.
    pub fn get(&self, addr: u64) -> Option<&Buffer> {
        self.buffers.get(&addr)
    }

    /// Every buffer, active and cached, in no order.
    pub fn buffers_unsorted(&self) -> impl Iterator<Item = &Buffer> {
        self.buffers.values()
    }

    /// Every buffer, active and cached, by address.
    pub fn buffers(&self) -> Vec<Buffer> {
        let mut all: Vec<Buffer> = self.buffers.values().copied().collect();
        all.sort_unstable_by_key(|buffer| buffer.addr);
        all
    }

    /// Takes one event into account. On an error the ledger is as before.
    pub fn apply(&mut self, event: &Event) -> Result<(), LedgerError> {
        match event.action {
            Action::AllocNew | Action::AllocMakeBuffer => self.alloc_new(event),
            Action::AllocReuse => self.alloc_reuse(event),
            Action::FreeActiveToCache => self.free_to_cache(event),
            Action::FreeActiveToOs | Action::Release => self.remove(event, false),
            Action::FreeCacheToOs => self.remove(event, true),
            Action::Oom => self.add(event, i128::from(event.addr), 0),
            Action::FilteredNet => self.add(event, i128::from(event.addr as i64), i128::from(event.size as i64)),
            _ => Ok(()),
        }
    }

    fn add(&mut self, event: &Event, active: i128, cached: i128) -> Result<(), LedgerError> {
        let active = shifted(event, "active", self.totals.active, active)?;
        let cached = shifted(event, "cached", self.totals.cached, cached)?;
        self.totals = Totals { active, cached };
        Ok(())
    }

    fn shift(&mut self, event: &Event, active_sign: i128, cached_sign: i128) -> Result<(), LedgerError> {
        let size = i128::from(event.size);
        self.add(event, active_sign * size, cached_sign * size)
    }

    fn alloc_new(&mut self, event: &Event) -> Result<(), LedgerError> {
        let (action, size, addr) = (event.action.name(), event.size, event.addr);
        match self.buffers.get(&addr) {
            Some(buffer) if buffer.is_cached => return Err(LedgerError::NewOfCached { action, size, addr }),
            Some(_) => return Err(LedgerError::AllocOfActive { action, size, addr }),
            None => {}
        }
        self.shift(event, 1, 0)?;
        self.buffers.insert(addr, Buffer::from_alloc(event));
        Ok(())
    }

    fn alloc_reuse(&mut self, event: &Event) -> Result<(), LedgerError> {
        self.expect(event, true)?;
        self.shift(event, 1, -1)?;
        self.buffers.insert(event.addr, Buffer::from_alloc(event));
        Ok(())
    }

    fn free_to_cache(&mut self, event: &Event) -> Result<(), LedgerError> {
        self.expect(event, false)?;
        self.shift(event, -1, 1)?;
        if let Some(buffer) = self.buffers.get_mut(&event.addr) {
            buffer.is_cached = true;
        }
        Ok(())
    }

    fn remove(&mut self, event: &Event, from_cache: bool) -> Result<(), LedgerError> {
        self.expect(event, from_cache)?;
        let (active, cached) = if from_cache { (0, -1) } else { (-1, 0) };
        self.shift(event, active, cached)?;
        self.buffers.remove(&event.addr);
        Ok(())
    }

    /// The event's buffer must exist, in that state, with that size.
    fn expect(&self, event: &Event, cached: bool) -> Result<(), LedgerError> {
        let state = |is_cached| if is_cached { "cached" } else { "active" };
        let (action, addr) = (event.action.name(), event.addr);
        let found = self.buffers.get(&addr);
        match found {
            Some(buffer) if buffer.is_cached == cached && buffer.size == event.size => Ok(()),
            Some(buffer) if buffer.is_cached == cached => {
                Err(LedgerError::SizeChanged { action, addr, found: event.size, expected: buffer.size })
            }
            _ => Err(LedgerError::WrongState {
                action,
                addr,
                found: found.map_or("not there", |buffer| state(buffer.is_cached)),
                expected: state(cached),
            }),
        }
    }
}
