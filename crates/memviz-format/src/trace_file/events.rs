//! Events as three tables: `addresses` and `owners`, each distinct value of a part once, and `events`, which point there.
//!
//! A part stands alone: nothing but the ids of the grown tables (stacks, whats, threads) points out of it. So memory is
//! bounded by a part on both sides, and any part can be read by itself. Does not judge: any events come back as they were.
//!
//! ```text
//!  addresses | addr
//!  owners    | size | slack | what | built | stream | device | flags
//!  events    | after_nanos | action | address | owner | triggered | thread | array
//! ```
//!
//! `after_nanos` is the difference to the event before. `array` is, for events about arrays, the difference of the array's
//! id to the one of the last such event; those have no slack, and for other events it is 0.

use memviz_trace::{Action, Device, Event, StackId, ThreadId, WhatId};
use rustc_hash::FxHashMap;

use super::columns::{Builder, Table};
use super::sums::Sums;

/// What many events share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Owner {
    size: u64,
    slack: u32,
    what: u32,
    built: u32,
    stream: i16,
    device: u8,
    flags: u16,
}

impl Owner {
    fn of(event: &Event) -> Owner {
        Owner {
            size: event.size,
            slack: if event.action.is_array() { 0 } else { event.slack },
            what: event.what.0,
            built: event.built.0,
            stream: event.stream,
            device: event.device.0,
            flags: event.flags,
        }
    }
}

/// Distinct values in order of first sight.
struct Distinct<T> {
    positions: FxHashMap<T, u32>,
    values: Vec<T>,
}

impl<T: Copy + Eq + std::hash::Hash> Distinct<T> {
    fn new() -> Distinct<T> {
        Distinct { positions: FxHashMap::default(), values: Vec::new() }
    }

    fn position(&mut self, value: T) -> u32 {
        let next = self.values.len() as u32;
        let position = *self.positions.entry(value).or_insert(next);
        if position == next {
            self.values.push(value);
        }
        position
    }

    fn clear(&mut self) {
        self.positions.clear();
        self.values.clear();
    }
}

/// Turns the events of a part into tables; keeps its memory from part to part.
pub(super) struct Encoder {
    addresses: Distinct<u64>,
    owners: Distinct<Owner>,
    places: Vec<(u32, u32)>,
    arrays: Vec<i64>,
}

/// The three tables.
pub(super) struct EventTables {
    pub(super) addresses: Builder,
    pub(super) owners: Builder,
    pub(super) events: Builder,
}

impl Encoder {
    pub(super) fn new() -> Encoder {
        Encoder { addresses: Distinct::new(), owners: Distinct::new(), places: Vec::new(), arrays: Vec::new() }
    }

    /// The tables of `events`, and in `sums` where their differences begin.
    pub(super) fn tables(&mut self, events: &[Event], sums: &mut Sums) -> EventTables {
        self.addresses.clear();
        self.owners.clear();
        self.places.clear();
        sums.first_nanos = events.first().map_or(0, |event| event.time_nanos);
        sums.first_array = events.iter().find(|event| event.action.is_array()).map_or(0, |event| event.slack);
        for event in events {
            self.places.push((self.addresses.position(event.addr), self.owners.position(Owner::of(event))));
        }
        self.note_arrays(events, sums.first_array);
        EventTables {
            addresses: self.addresses(),
            owners: self.owners(),
            events: self.events(events, sums.first_nanos),
        }
    }

    fn note_arrays(&mut self, events: &[Event], mut last: u32) {
        self.arrays.clear();
        self.arrays.extend(events.iter().map(|event| {
            let id = if event.action.is_array() { event.slack } else { last };
            i64::from(id) - i64::from(std::mem::replace(&mut last, id))
        }));
    }

    fn addresses(&self) -> Builder {
        let mut table = Builder::default();
        table.unsigned("addr", self.addresses.values.iter().copied());
        table
    }

    fn owners(&self) -> Builder {
        let owners = self.owners.values.iter();
        let mut table = Builder::default();
        table.unsigned("size", owners.clone().map(|owner| owner.size));
        table.unsigned("slack", owners.clone().map(|owner| owner.slack.into()));
        table.unsigned("what", owners.clone().map(|owner| owner.what.into()));
        table.unsigned("built", owners.clone().map(|owner| owner.built.into()));
        table.signed("stream", owners.clone().map(|owner| owner.stream.into()));
        table.unsigned("device", owners.clone().map(|owner| owner.device.into()));
        table.unsigned("flags", owners.map(|owner| owner.flags.into()));
        table
    }

    fn events(&self, events: &[Event], first_nanos: u64) -> Builder {
        let before = std::iter::once(first_nanos).chain(events.iter().map(|event| event.time_nanos));
        let mut table = Builder::default();
        table.unsigned(
            "after_nanos",
            events.iter().zip(before).map(|(event, last)| event.time_nanos.wrapping_sub(last)),
        );
        table.unsigned("action", events.iter().map(|event| event.action as u64));
        table.unsigned("address", self.places.iter().map(|(address, _)| u64::from(*address)));
        table.unsigned("owner", self.places.iter().map(|(_, owner)| u64::from(*owner)));
        table.unsigned("triggered", events.iter().map(|event| event.triggered.0.into()));
        table.unsigned("thread", events.iter().map(|event| event.thread.0.into()));
        table.signed("array", self.arrays.iter().copied());
        table
    }
}

/// Turns tables back into events; keeps its memory from part to part.
#[derive(Default)]
pub(super) struct Decoder {
    addresses: Vec<u64>,
    owners: Vec<Event>,
    after: Vec<u64>,
    arrays: Vec<u64>,
    actions: Vec<u32>,
    address: Vec<u32>,
    owner: Vec<u32>,
    triggered: Vec<u32>,
    thread: Vec<u32>,
}

/// How many entries the tables have that events point into.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) stacks: usize,
    pub(super) whats: usize,
    pub(super) threads: usize,
}

type Wrong = &'static str;

impl Decoder {
    pub(super) fn read_addresses(&mut self, table: &Table<'_>) -> Result<(), Wrong> {
        table.read_u64("addr", &mut self.addresses)
    }

    pub(super) fn read_owners(&mut self, table: &Table<'_>, known: Known) -> Result<(), Wrong> {
        let (size, slack) = (table.u64s("size")?, table.numbers::<u32>("slack")?);
        let (what, built) = (table.numbers::<u32>("what")?, table.numbers::<u32>("built")?);
        let (stream, device) = (table.numbers::<i16>("stream")?, table.numbers::<u8>("device")?);
        let flags = table.later_u64s("flags")?;
        if below(&what, known.whats) && below(&built, known.stacks) {
            let owner = |at: usize| Event {
                size: size[at],
                slack: slack[at],
                what: WhatId(what[at]),
                built: StackId(built[at]),
                stream: stream[at],
                device: Device(device[at]),
                flags: flags[at] as u16,
                ..Event::default()
            };
            self.owners.clear();
            self.owners.extend((0..table.rows()).map(owner));
            return Ok(());
        }
        Err("an owner with an id beyond its table")
    }

    /// Appends the events of a part, whose other two tables were read before, to `events`.
    pub(super) fn read_events(
        &mut self,
        table: &Table<'_>,
        sums: &Sums,
        known: Known,
        events: &mut Vec<Event>,
    ) -> Result<(), Wrong> {
        table.read_u64("after_nanos", &mut self.after)?;
        table.read_u64("array", &mut self.arrays)?;
        table.read_u32("action", &mut self.actions)?;
        table.read_u32("address", &mut self.address)?;
        table.read_u32("owner", &mut self.owner)?;
        table.read_u32("triggered", &mut self.triggered)?;
        table.read_u32("thread", &mut self.thread)?;
        let is_inside = below(&self.actions, Action::ALL.len())
            && below(&self.address, self.addresses.len())
            && below(&self.owner, self.owners.len())
            && below(&self.triggered, known.stacks)
            && below(&self.thread, known.threads.min(1 << 16));
        if !is_inside {
            return Err("an event with an action or id beyond its table");
        }
        let (mut time_nanos, mut array) = (sums.first_nanos, sums.first_array);
        events.extend((0..table.rows()).map(|at| {
            time_nanos = time_nanos.wrapping_add(self.after[at]);
            array = array.wrapping_add(self.arrays[at] as u32);
            let action = Action::ALL[self.actions[at] as usize];
            let owner = self.owners[self.owner[at] as usize];
            Event {
                time_nanos,
                addr: self.addresses[self.address[at] as usize],
                action,
                triggered: StackId(self.triggered[at]),
                thread: ThreadId(self.thread[at] as u16),
                slack: if action.is_array() { array } else { owner.slack },
                ..owner
            }
        }));
        Ok(())
    }
}

/// Every id is below `count`.
fn below(ids: &[u32], count: usize) -> bool {
    ids.iter().fold(0, |most, id| most.max(*id as usize + 1)) <= count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_event() -> impl Strategy<Value = Event> {
        let wide = (any::<u64>(), prop_oneof![0..8u64, any::<u64>()], any::<u64>(), any::<u32>());
        let ids = (0..4u32, 0..5u32, 0..5u32, 0..6u16, any::<i16>(), any::<u8>());
        (wide, ids, 0..15usize).prop_map(|((time_nanos, addr, size, slack), ids, action)| Event {
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
            action: Action::ALL[action],
            spare: 0,
        })
    }

    fn stream(table: Builder) -> Vec<u8> {
        let mut out = Vec::new();
        table.finish(&mut out).unwrap();
        out
    }

    proptest! {
        #[test]
        fn any_events_come_back(events in proptest::collection::vec(any_event(), 1..60)) {
            let (mut encoder, mut decoder, mut back) = (Encoder::new(), Decoder::default(), Vec::new());
            let known = Known { stacks: 5, whats: 4, threads: 6 };
            for part in events.chunks(7) {
                let mut sums = Sums::default();
                let tables = encoder.tables(part, &mut sums);
                let [addresses, owners, events] = [tables.addresses, tables.owners, tables.events].map(stream);
                decoder.read_addresses(&Table::parse(&addresses).unwrap()).unwrap();
                decoder.read_owners(&Table::parse(&owners).unwrap(), known).unwrap();
                decoder.read_events(&Table::parse(&events).unwrap(), &sums, known, &mut back).unwrap();
            }
            prop_assert_eq!(back, events);
        }
    }
}
