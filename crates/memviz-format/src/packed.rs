//! Events in few bytes, exactly: about 6 for a free and 10 for an allocation.
//!
//! Needs events one after the other; the decoder needs the same bytes in the same order. Holds the buffers that are alive,
//! nothing else. Does not judge: a stream that contradicts itself comes back as it went in (`Trace::check` judges).
//!
//! One event, every number an unsigned LEB128 integer:
//!
//! ```text
//!  flags | time | addr | size? | slack? | what? | built? | triggered? | thread? | stream and device? | flags?
//!
//!  flags   bits 0-3 action; 4 the address is known: `addr` is a slot; 5 size, 6 slack, 7 what, 8 built, 9 triggered,
//!          10 thread, 11 stream and device, 12 flags differ from the guess and follow
//!  time    zigzag difference to the event before, ns
//!  addr    slot of the buffer, else zigzag difference to the last buffer event's address
//!  guess   size, slack, what, built, stream, device and flags of the last event at that address, else 0 and no stream;
//!          triggered and thread of the event before
//!  slot    an address gets the slot freed last, else the next one; it loses it when its buffer is given back
//! ```
//!
//! Example: `13 e8 07 02` is a `FreeActiveToCache` of slot 2, 500 ns later, with nothing new.

use memviz_trace::{Action, Device, Event, NO_STREAM, StackId, ThreadId, WhatId};
use rustc_hash::FxHashMap;

const KNOWN: u64 = 1 << 4;
const SIZE: u64 = 1 << 5;
const SLACK: u64 = 1 << 6;
const WHAT: u64 = 1 << 7;
const BUILT: u64 = 1 << 8;
const TRIGGERED: u64 = 1 << 9;
const THREAD: u64 = 1 << 10;
const STREAM: u64 = 1 << 11;
const FLAGS: u64 = 1 << 12;

fn zigzag(to: u64, from: u64) -> u64 {
    let difference = to.wrapping_sub(from) as i64;
    ((difference << 1) ^ (difference >> 63)) as u64
}

fn unzigzag(coded: u64, from: u64) -> u64 {
    from.wrapping_add((coded >> 1) ^ (coded & 1).wrapping_neg())
}

fn stream_and_device(event: &Event) -> u64 {
    (u64::from(event.stream as u16) << 8) | u64::from(event.device.0)
}

/// What both sides know: the guess for the next event.
#[derive(Default)]
struct State {
    slot_of: FxHashMap<u64, u32>,
    slots: Vec<Event>,
    free: Vec<u32>,
    last: Event,
    last_addr: u64,
}

impl State {
    fn guess(&self, slot: Option<u32>) -> Event {
        let (triggered, thread) = (self.last.triggered, self.last.thread);
        let at = slot.map_or(Event { stream: NO_STREAM, ..Event::default() }, |slot| self.slots[slot as usize]);
        Event { triggered, thread, time_nanos: self.last.time_nanos, ..at }
    }

    fn settle(&mut self, event: &Event, slot: Option<u32>) {
        self.last = *event;
        if !event.action.is_buffer() {
            return;
        }
        self.last_addr = event.addr;
        let gone = matches!(event.action, Action::FreeActiveToOs | Action::FreeCacheToOs | Action::Release);
        match (slot, gone) {
            (Some(slot), true) => {
                self.slot_of.remove(&event.addr);
                self.free.push(slot);
            }
            (Some(slot), false) => self.slots[slot as usize] = *event,
            (None, true) => {}
            (None, false) => self.open_slot(event),
        }
    }

    fn open_slot(&mut self, event: &Event) {
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        if slot as usize == self.slots.len() {
            self.slots.push(*event);
        } else {
            self.slots[slot as usize] = *event;
        }
        self.slot_of.insert(event.addr, slot);
    }
}

/// Turns events into bytes.
#[derive(Default)]
pub(crate) struct Encoder {
    state: State,
    bytes: Vec<u8>,
}

impl Encoder {
    /// Appends an event to [`Encoder::bytes`].
    pub(crate) fn push(&mut self, event: &Event) {
        let slot = if event.action.is_buffer() { self.state.slot_of.get(&event.addr).copied() } else { None };
        let guess = self.state.guess(slot);
        let differing = [
            (SIZE, event.size, guess.size),
            (SLACK, event.slack.into(), guess.slack.into()),
            (WHAT, event.what.0.into(), guess.what.0.into()),
            (BUILT, event.built.0.into(), guess.built.0.into()),
            (TRIGGERED, event.triggered.0.into(), guess.triggered.0.into()),
            (THREAD, event.thread.0.into(), guess.thread.0.into()),
            (STREAM, stream_and_device(event), stream_and_device(&guess)),
            (FLAGS, event.flags.into(), guess.flags.into()),
        ];
        let mut flags = event.action as u64 | if slot.is_some() { KNOWN } else { 0 };
        flags |= differing.iter().filter(|(_, value, guess)| value != guess).map(|(flag, ..)| flag).sum::<u64>();
        self.put(flags);
        self.put(zigzag(event.time_nanos, guess.time_nanos));
        self.put(slot.map_or_else(|| zigzag(event.addr, self.state.last_addr), u64::from));
        for (_, value, _) in differing.iter().filter(|(flag, ..)| flags & flag != 0) {
            self.put(*value);
        }
        self.state.settle(event, slot);
    }

    /// Bytes of the events pushed since the last [`Encoder::clear`].
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets the bytes, not the state.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    fn put(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

/// Turns bytes back into events.
#[derive(Default)]
pub(crate) struct Decoder {
    state: State,
}

impl Decoder {
    /// Decodes every event of one chunk, or says what is wrong with it.
    pub(crate) fn decode(&mut self, mut bytes: &[u8], mut each: impl FnMut(Event)) -> Result<(), &'static str> {
        while !bytes.is_empty() {
            each(self.next(&mut bytes)?);
        }
        Ok(())
    }

    fn next(&mut self, bytes: &mut &[u8]) -> Result<Event, &'static str> {
        let flags = take(bytes)?;
        let action = Action::from_u8((flags & 15) as u8).ok_or("an unknown action")?;
        let (time, place) = (take(bytes)?, take(bytes)?);
        let slot = if flags & KNOWN != 0 { Some(self.known(place, action)?) } else { None };
        let guess = self.state.guess(slot);
        let addr = if slot.is_some() { guess.addr } else { unzigzag(place, self.state.last_addr) };
        if slot.is_none() && action.is_buffer() && self.state.slot_of.contains_key(&addr) {
            return Err("a known address spelled out");
        }
        let time_nanos = unzigzag(time, guess.time_nanos);
        let mut event = Event { time_nanos, addr, action, ..guess };
        fill(&mut event, flags, bytes)?;
        self.state.settle(&event, slot);
        Ok(event)
    }

    fn known(&self, place: u64, action: Action) -> Result<u32, &'static str> {
        let slot = u32::try_from(place).map_err(|_| "a slot beyond 32 bits")?;
        let addr = self.state.slots.get(slot as usize).ok_or("a slot that was never opened")?.addr;
        let is_open = self.state.slot_of.get(&addr) == Some(&slot);
        if is_open && action.is_buffer() { Ok(slot) } else { Err("a slot that is not open") }
    }
}

fn fill(event: &mut Event, flags: u64, bytes: &mut &[u8]) -> Result<(), &'static str> {
    if flags & SIZE != 0 {
        event.size = take(bytes)?;
    }
    let mut field = |flag, old: u32| if flags & flag != 0 { take_u32(bytes) } else { Ok(old) };
    event.slack = field(SLACK, event.slack)?;
    event.what = WhatId(field(WHAT, event.what.0)?);
    event.built = StackId(field(BUILT, event.built.0)?);
    event.triggered = StackId(field(TRIGGERED, event.triggered.0)?);
    let thread = field(THREAD, event.thread.0.into())?;
    event.thread = ThreadId(u16::try_from(thread).map_err(|_| "a thread beyond 16 bits")?);
    let stream = field(STREAM, stream_and_device(event) as u32)?;
    event.stream = u16::try_from(stream >> 8).map_err(|_| "a stream beyond 16 bits")? as i16;
    event.device = Device(stream as u8);
    let marks = field(FLAGS, event.flags.into())?;
    event.flags = u16::try_from(marks).map_err(|_| "flags beyond 16 bits")?;
    Ok(())
}

fn take_u32(bytes: &mut &[u8]) -> Result<u32, &'static str> {
    u32::try_from(take(bytes)?).map_err(|_| "a number beyond 32 bits")
}

fn take(bytes: &mut &[u8]) -> Result<u64, &'static str> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("the end of the chunk within an event")?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a number beyond 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_event() -> impl Strategy<Value = Event> {
        let wide = (any::<u64>(), prop_oneof![0..8u64, any::<u64>()], any::<u64>(), any::<u32>());
        let ids = (0..4u32, 0..4u32, any::<u32>(), any::<u16>(), any::<i16>(), any::<u8>(), any::<u16>());
        (wide, ids, 0..16u8).prop_map(|((time_nanos, addr, size, slack), ids, action)| Event {
            time_nanos,
            addr,
            size,
            slack,
            what: WhatId(ids.0),
            built: StackId(ids.1),
            triggered: StackId(ids.2),
            thread: ThreadId(ids.3),
            stream: ids.4,
            device: Device(ids.5),
            action: Action::ALL[action as usize],
            flags: ids.6,
        })
    }

    proptest! {
        #[test]
        fn any_events_come_back(events in proptest::collection::vec(any_event(), 0..60)) {
            let (mut encoder, mut decoder, mut back) = (Encoder::default(), Decoder::default(), Vec::new());
            for chunk in events.chunks(7) {
                chunk.iter().for_each(|event| encoder.push(event));
                decoder.decode(encoder.bytes(), |event| back.push(event)).unwrap();
                encoder.clear();
            }
            prop_assert_eq!(back, events);
        }

        #[test]
        fn any_bytes_are_refused_or_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Decoder::default().decode(&bytes, |_| {});
        }
    }
}
