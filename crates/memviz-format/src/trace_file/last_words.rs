//! The chunk written while the process goes down: no allocation, no lock, no table, so that a signal handler can make it.
//!
//! Needs room for it. Ids that the tables of the file do not have yet read as "not known". Numbers are little-endian.
//!
//! ```text
//!  0             8        72       76              80
//!  | first_index | counts | ending | detail length | detail … | events, 48 bytes each, as `Event` lies in memory …
//!
//!  counts  8 numbers of 64 bits: events and bytes seen, dropped, filtered; lost; other records dropped
//!  ending  number of the `EndingKind`
//! ```
//!
//! Events with numbers that the file has already are left out by the reader, so the caller may write too many.

use memviz_trace::{Action, Counts, Device, EndingKind, Event, StackId, Tally, ThreadId, WhatId};

use super::frame::{self, CHUNK_HEADER_BYTES, kind};

const FIXED_BYTES: usize = 80;
const EVENT_BYTES: usize = size_of::<Event>();

/// Makes the chunk in `into` and returns its length; the caller appends those bytes to the file, with one write. `None` when
/// there is no room: 104 bytes, the detail and 48 for each event.
///
/// `first_index` is the number of the first of `events`, and `counts` those up to the last of them.
pub fn last_words<'e>(
    first_index: u64,
    events: impl Iterator<Item = &'e Event>,
    counts: &Counts,
    (ending, detail): (EndingKind, &str),
    into: &mut [u8],
) -> Option<usize> {
    let tally = |tally: Tally| [tally.events, tally.bytes];
    let ([seen, dropped, filtered], others) =
        ([tally(counts.seen), tally(counts.dropped), tally(counts.filtered)], [counts.lost, counts.dropped_others]);
    let mut room = Room { bytes: into, used: CHUNK_HEADER_BYTES };
    room.put(&first_index.to_le_bytes())?;
    for number in seen.iter().chain(&dropped).chain(&filtered).chain(&others) {
        room.put(&number.to_le_bytes())?;
    }
    room.put(&(ending as u32).to_le_bytes())?;
    room.put(&(detail.len() as u32).to_le_bytes())?;
    room.put(detail.as_bytes())?;
    for event in events {
        room.put(&bytes_from_event(event))?;
    }
    let chunk = room.bytes.get_mut(..room.used)?;
    if chunk.len() > frame::MAX_CHUNK_BYTES {
        return None;
    }
    frame::seal(chunk, kind::LAST_WORDS, 0, None);
    Some(chunk.len())
}

struct Room<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl Room<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.used.checked_add(bytes.len())?;
        self.bytes.get_mut(self.used..end)?.copy_from_slice(bytes);
        self.used = end;
        Some(())
    }
}

fn bytes_from_event(event: &Event) -> [u8; EVENT_BYTES] {
    let mut bytes = [0; EVENT_BYTES];
    for (at, number) in [(0, event.time_nanos), (8, event.addr), (16, event.size)] {
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    for (at, number) in [(24, event.slack), (28, event.what.0), (32, event.built.0), (36, event.triggered.0)] {
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    bytes[40..42].copy_from_slice(&event.thread.0.to_le_bytes());
    bytes[42..44].copy_from_slice(&event.stream.to_le_bytes());
    bytes[44] = event.device.0;
    bytes[45] = event.action as u8;
    bytes[46..48].copy_from_slice(&event.flags.to_le_bytes());
    bytes
}

fn event_from_bytes(bytes: &[u8; EVENT_BYTES]) -> Option<Event> {
    let long = |at| number_at(bytes, at);
    let short = |at: usize| (long(at) & 0xffff_ffff) as u32;
    Some(Event {
        time_nanos: long(0),
        addr: long(8),
        size: long(16),
        slack: short(24),
        what: WhatId(short(28)),
        built: StackId(short(32)),
        triggered: StackId((long(32) >> 32) as u32),
        thread: ThreadId(long(40) as u16),
        stream: (long(40) >> 16) as i16,
        device: Device(bytes[44]),
        action: Action::from_u8(bytes[45])?,
        flags: (long(40) >> 48) as u16,
    })
}

/// A number of 64 bits; the bytes must be there.
fn number_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

/// What such a chunk says.
pub(super) struct LastWords {
    pub(super) first_index: u64,
    pub(super) counts: Counts,
    pub(super) ending: EndingKind,
    pub(super) detail: String,
    pub(super) events: Vec<Event>,
}

/// Reads the raw bytes of such a chunk.
pub(super) fn read(raw: &[u8]) -> Result<LastWords, &'static str> {
    const SHORT: &str = "last words that end early";
    let (fixed, rest) = raw.split_at_checked(FIXED_BYTES).ok_or(SHORT)?;
    let number = |at: usize| number_at(fixed, 8 * at);
    let tally = |at| Tally { events: number(at), bytes: number(at + 1) };
    let (lost, dropped_others) = (number(7), number(8));
    let (ending, detail) = (number(9) as u32, (number(9) >> 32) as usize);
    let (detail, rest) = rest.split_at_checked(detail).ok_or(SHORT)?;
    let (rows, torn) = rest.as_chunks::<EVENT_BYTES>();
    if !torn.is_empty() {
        return Err("half an event");
    }
    let events: Option<Vec<Event>> = rows.iter().map(event_from_bytes).collect();
    Ok(LastWords {
        first_index: number(0),
        counts: Counts { seen: tally(1), dropped: tally(3), filtered: tally(5), lost, dropped_others },
        ending: EndingKind::ALL.get(ending as usize).copied().unwrap_or_default(),
        detail: String::from_utf8_lossy(detail).into_owned(),
        events: events.ok_or("an event with an unknown action")?,
    })
}
