//! Writes pickle protocol 4 with the few opcodes that every reader of snapshots knows.
//!
//! Needs containers opened and closed in pairs. Memoises only what the caller names: strings, frame dicts and frame lists,
//! never event dicts (readers change those). Buffers bytes; holds no values.

use std::io::Write;

use rustc_hash::FxHashMap;

use super::opcodes as op;
use crate::FormatError;

/// Items of one APPENDS: readers push them with one call, which overflows their stack from about 120,000 on.
const BATCH: usize = 1000;
const FLUSH_BYTES: usize = 1 << 16;

/// Number of a memoised value, in order of MEMOIZE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memo(pub(super) u32);

/// A list under construction: counts items since the last APPENDS.
#[derive(Default)]
pub(super) struct ListBatch(usize);

pub(super) struct Pickler<'w> {
    out: &'w mut dyn Write,
    buffer: Vec<u8>,
    flushed: u64,
    next_memo: u32,
    strings: FxHashMap<Box<str>, Memo>,
}

impl<'w> Pickler<'w> {
    pub(super) fn new(out: &'w mut dyn Write) -> Pickler<'w> {
        let buffer = vec![op::PROTO, 4];
        Pickler { out, buffer, flushed: 0, next_memo: 0, strings: FxHashMap::default() }
    }

    /// Ends the pickle and returns its length in bytes.
    pub(super) fn finish(mut self) -> Result<u64, FormatError> {
        self.byte(op::STOP);
        self.flush()?;
        self.out.flush().map_err(FormatError::Write)?;
        Ok(self.flushed)
    }

    pub(super) fn flush_when_full(&mut self) -> Result<(), FormatError> {
        if self.buffer.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), FormatError> {
        self.out.write_all(&self.buffer).map_err(FormatError::Write)?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// An opcode without argument.
    pub(super) fn byte(&mut self, opcode: u8) {
        self.buffer.push(opcode);
    }

    pub(super) fn memoize(&mut self) -> Memo {
        self.byte(op::MEMOIZE);
        self.next_memo += 1;
        Memo(self.next_memo - 1)
    }

    pub(super) fn get(&mut self, memo: Memo) {
        match u8::try_from(memo.0) {
            Ok(short) => self.buffer.extend_from_slice(&[op::BINGET, short]),
            Err(_) => {
                self.byte(op::LONG_BINGET);
                self.buffer.extend_from_slice(&memo.0.to_le_bytes());
            }
        }
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.byte(if value { op::NEWTRUE } else { op::NEWFALSE });
    }

    pub(super) fn int(&mut self, value: i64) {
        if let Ok(small) = u8::try_from(value) {
            self.buffer.extend_from_slice(&[op::BININT1, small]);
        } else if let Ok(short) = u16::try_from(value) {
            self.byte(op::BININT2);
            self.buffer.extend_from_slice(&short.to_le_bytes());
        } else if let Ok(word) = i32::try_from(value) {
            self.byte(op::BININT);
            self.buffer.extend_from_slice(&word.to_le_bytes());
        } else {
            let magnitude = if value < 0 { !value } else { value };
            let length = (65 - magnitude.leading_zeros() as usize).div_ceil(8);
            self.buffer.extend_from_slice(&[op::LONG1, length as u8]);
            self.buffer.extend_from_slice(&value.to_le_bytes()[..length]);
        }
    }

    /// A number of 64 bits for our own reader: two's complement, because no reader wants integers of nine bytes.
    pub(super) fn bits(&mut self, value: u64) {
        self.int(value as i64);
    }

    /// A string that is not shared.
    pub(super) fn text(&mut self, text: &str) {
        if let Ok(length) = u8::try_from(text.len()) {
            self.buffer.extend_from_slice(&[op::SHORT_BINUNICODE, length]);
        } else if let Ok(length) = u32::try_from(text.len()) {
            self.byte(op::BINUNICODE);
            self.buffer.extend_from_slice(&length.to_le_bytes());
        } else {
            return self.text("<a string of more than 4 GiB>");
        }
        self.buffer.extend_from_slice(text.as_bytes());
    }

    /// A string that occurs again: written once, then referred to.
    pub(super) fn shared(&mut self, text: &str) -> Memo {
        if let Some(&memo) = self.strings.get(text) {
            self.get(memo);
            return memo;
        }
        self.text(text);
        let memo = self.memoize();
        self.strings.insert(text.into(), memo);
        memo
    }

    /// Opens a dict; keys and values follow, then [`Pickler::end_dict`].
    pub(super) fn begin_dict(&mut self) {
        self.buffer.extend_from_slice(&[op::EMPTY_DICT, op::MARK]);
    }

    pub(super) fn end_dict(&mut self) {
        self.byte(op::SETITEMS);
    }

    /// Opens a list; call [`Pickler::item`] before each item, then [`Pickler::end_list`].
    pub(super) fn begin_list(&mut self) -> ListBatch {
        self.byte(op::EMPTY_LIST);
        ListBatch::default()
    }

    pub(super) fn item(&mut self, batch: &mut ListBatch) {
        if batch.0 == BATCH {
            self.byte(op::APPENDS);
            batch.0 = 0;
        }
        if batch.0 == 0 {
            self.byte(op::MARK);
        }
        batch.0 += 1;
    }

    pub(super) fn end_list(&mut self, batch: ListBatch) {
        if batch.0 > 0 {
            self.byte(op::APPENDS);
        }
    }

    pub(super) fn list<T>(&mut self, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        let mut batch = self.begin_list();
        for value in items {
            self.item(&mut batch);
            write(self, value);
        }
        self.end_list(batch);
    }
}
