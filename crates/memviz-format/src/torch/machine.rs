//! Reads a pickle of plain data, protocols 2 to 5. Imports, calls and builds nothing: such opcodes are refused.
//!
//! Needs the whole file as bytes. Does not know snapshots, but for one thing: once the top-level key "mlx_memviz" is read,
//! only the opcodes of the rest are looked at, up to the end of the pickle.

use super::document::{Document, Limits, Value};
use super::{OWN_KEY, opcodes as op};
use crate::FormatError;

const PLAIN: &str = "plain data (dict, list, tuple, str, int, float, bool or None)";

/// Parses `bytes` to the end of the pickle; what follows is ignored, as Python does.
pub(super) fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Document<'a>, FormatError> {
    parse_keeping(bytes, limits, false)
}

/// As [`parse`]; `everything` keeps what our own reader has no use for.
pub(super) fn parse_keeping<'a>(
    bytes: &'a [u8],
    limits: &Limits,
    everything: bool,
) -> Result<Document<'a>, FormatError> {
    let document = Document::new(limits);
    let (stack, marks, memo) = Default::default();
    let mut machine = Machine { bytes, at: 0, start: 0, stack, marks, memo, document, is_settled: false, everything };
    if bytes.first() != Some(&op::PROTO) {
        return Err(
            machine.wrong(bytes.first().map_or("nothing".into(), |byte| format!("{byte:#04x}")), "PROTO (0x80)")
        );
    }
    while machine.step()? {
        if machine.is_settled {
            machine.skim()?;
            break;
        }
    }
    Ok(machine.document)
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of the opcode under way.
    start: usize,
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: Vec<Value>,
    document: Document<'a>,
    /// The root has all that is needed.
    is_settled: bool,
    everything: bool,
}

impl<'a> Machine<'a> {
    /// Runs one opcode; false at the end.
    fn step(&mut self) -> Result<bool, FormatError> {
        self.start = self.at;
        let opcode = self.take(1, "an opcode")?[0];
        match opcode {
            op::STOP => return self.stop(),
            op::PROTO => self.proto()?,
            op::FRAME => self.frame()?,
            op::NONE => self.push(Value::None)?,
            op::NEWTRUE | op::NEWFALSE => self.push(Value::Bool(opcode == op::NEWTRUE))?,
            op::BININT | op::BININT1 | op::BININT2 | op::LONG1 | op::LONG4 | op::BINFLOAT => self.number(opcode)?,
            op::SHORT_BINUNICODE | op::BINUNICODE | op::BINUNICODE8 => self.string(opcode)?,
            op::EMPTY_DICT | op::EMPTY_LIST | op::EMPTY_TUPLE => self.empty(opcode)?,
            op::APPEND | op::APPENDS | op::SETITEM | op::SETITEMS => self.fill(opcode)?,
            op::LIST | op::TUPLE | op::TUPLE1 | op::TUPLE2 | op::TUPLE3 => self.collect_list(opcode)?,
            op::DICT => self.collect_dict()?,
            op::MEMOIZE | op::BINPUT | op::LONG_BINPUT => self.put(opcode)?,
            op::BINGET | op::LONG_BINGET => self.get(opcode)?,
            op::MARK => self.mark()?,
            op::POP | op::POP_MARK | op::DUP => self.shuffle(opcode)?,
            _ => return Err(self.refuse(opcode)),
        }
        Ok(true)
    }

    fn refuse(&self, opcode: u8) -> FormatError {
        match op::code_name(opcode) {
            Some(name) => FormatError::RunsCode { offset: self.start, opcode: name },
            None => self.wrong(format!("opcode {opcode:#04x}"), PLAIN),
        }
    }

    fn wrong(&self, found: impl Into<String>, expected: &'static str) -> FormatError {
        FormatError::Syntax { offset: self.start, found: found.into(), expected }
    }

    fn wrong_opcode(&self, opcode: u8, expected: &'static str) -> FormatError {
        self.wrong(format!("opcode {}", op::name(opcode)), expected)
    }

    fn take(&mut self, count: usize, expected: &'static str) -> Result<&'a [u8], FormatError> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..count).ok_or(FormatError::Truncated { offset: self.bytes.len(), expected })?;
        self.at += count;
        Ok(taken)
    }

    /// An unsigned number of up to eight bytes.
    fn argument(&mut self, count: usize) -> Result<u64, FormatError> {
        let taken = self.take(count, "the argument of an opcode")?;
        Ok(taken.iter().rev().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
    }

    fn length(&mut self, count: usize) -> Result<usize, FormatError> {
        let length = self.argument(count)?;
        usize::try_from(length).map_err(|_| self.wrong(format!("a length of {length} bytes"), "one that fits memory"))
    }

    fn proto(&mut self) -> Result<(), FormatError> {
        match self.argument(1)? {
            2..=5 => Ok(()),
            version => Err(self.wrong(format!("protocol {version}"), "2 to 5")),
        }
    }

    fn frame(&mut self) -> Result<(), FormatError> {
        let length = self.length(8)?;
        if length > self.bytes.len() - self.at {
            return Err(FormatError::Truncated { offset: self.bytes.len(), expected: "the rest of a frame" });
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<bool, FormatError> {
        match (&self.stack[..], self.marks.is_empty()) {
            (&[root], true) => self.document.root = root,
            (stack, _) => {
                return Err(self.wrong(format!("STOP with {} values", stack.len()), "one value and no open mark"));
            }
        }
        Ok(false)
    }

    fn push(&mut self, value: Value) -> Result<(), FormatError> {
        if (self.stack.len() + 1) * size_of::<Value>() > self.document.memory_left() {
            self.document.charge(self.start, usize::MAX)?;
        }
        self.stack.push(value);
        Ok(())
    }

    /// The topmost value above the last mark.
    fn pop(&mut self) -> Result<Value, FormatError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err(self.wrong_opcode(self.bytes[self.start], "a value on the stack before it"));
        }
        self.stack.pop().ok_or_else(|| self.wrong("an empty stack", "a value"))
    }

    fn top(&mut self) -> Result<Value, FormatError> {
        let value = self.pop()?;
        self.stack.push(value);
        Ok(value)
    }

    fn mark(&mut self) -> Result<(), FormatError> {
        let limit = self.document.limits().max_depth;
        if self.marks.len() >= limit {
            return Err(FormatError::Limit { offset: self.start, what: "open containers", limit });
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// Position of the first value above the last mark, which is taken away.
    fn unmark(&mut self) -> Result<usize, FormatError> {
        let opcode = self.bytes[self.start];
        self.marks.pop().ok_or_else(|| self.wrong_opcode(opcode, "MARK before it"))
    }

    fn number(&mut self, opcode: u8) -> Result<(), FormatError> {
        let value = match opcode {
            op::BININT => Value::Int((self.argument(4)? as u32 as i32).into()),
            op::BININT1 => Value::Int(self.argument(1)? as i64),
            op::BININT2 => Value::Int(self.argument(2)? as i64),
            op::BINFLOAT => Value::Float(f64::from_bits(self.argument(8)?.swap_bytes())),
            op::LONG1 => self.long(1)?,
            _ => self.long(4)?,
        };
        self.push(value)
    }

    /// A little-endian signed number of any length, as long as it fits 64 bits.
    fn long(&mut self, length_bytes: usize) -> Result<Value, FormatError> {
        let length = self.length(length_bytes)?;
        let taken = self.take(length, "the digits of an integer")?;
        let is_negative = taken.last().is_some_and(|byte| *byte >= 0x80);
        let filler = if is_negative { 0xff } else { 0 };
        let mut digits = [filler; 9];
        let kept = length.min(9);
        digits[..kept].copy_from_slice(&taken[..kept]);
        let low = u64::from_le_bytes(std::array::from_fn(|at| digits[at]));
        let fits = taken[kept..].iter().all(|byte| *byte == filler) && digits[8] == filler;
        match (fits, is_negative, low >> 63) {
            (true, false, 0) | (true, true, 1) => Ok(Value::Int(low as i64)),
            (true, false, _) => Ok(Value::Unsigned(low)),
            _ => Err(self.wrong(format!("an integer of {length} bytes"), "one of at most 64 bits")),
        }
    }

    fn string(&mut self, opcode: u8) -> Result<(), FormatError> {
        let length = match opcode {
            op::SHORT_BINUNICODE => self.length(1)?,
            op::BINUNICODE => self.length(4)?,
            _ => self.length(8)?,
        };
        let taken = self.take(length, "the rest of a string")?;
        // Python writes lone surrogates, which are not UTF-8; other readers replace them as well.
        let value = self.document.new_str(self.start, String::from_utf8_lossy(taken))?;
        self.push(value)
    }

    fn empty(&mut self, opcode: u8) -> Result<(), FormatError> {
        let value = match opcode {
            op::EMPTY_DICT => self.document.new_dict(self.start)?,
            _ => self.document.new_list(self.start)?,
        };
        self.push(value)
    }

    fn fill(&mut self, opcode: u8) -> Result<(), FormatError> {
        let is_dict = matches!(opcode, op::SETITEM | op::SETITEMS);
        let floor = match opcode {
            op::APPENDS | op::SETITEMS => self.unmark()?,
            op::APPEND => self.below(1)?,
            _ => self.below(2)?,
        };
        let lowest = self.marks.last().copied().unwrap_or(0);
        let Some(&target) = floor.checked_sub(1).filter(|at| *at >= lowest).and_then(|at| self.stack.get(at)) else {
            return Err(self.wrong_opcode(opcode, "a container on the stack before it"));
        };
        if !self.store(target, floor, is_dict)? {
            let expected = if is_dict { "a dict below the pairs" } else { "a list below the items" };
            return Err(self.wrong(format!("opcode {} on {}", op::name(opcode), target.kind()), expected));
        }
        if is_dict && floor == 1 && self.marks.is_empty() && !self.everything {
            self.is_settled = self.document.get(target, OWN_KEY).is_some_and(|own| self.document.dict(own).is_some());
            self.document.root = target;
        }
        Ok(())
    }

    /// Walks over opcodes of plain data up to STOP: some thirty of them an event, so by a table.
    fn skim(&mut self) -> Result<(), FormatError> {
        loop {
            self.start = self.at;
            let Some(&opcode) = self.bytes.get(self.at) else {
                return Err(FormatError::Truncated { offset: self.bytes.len(), expected: "an opcode" });
            };
            self.at += 1;
            match op::ARGUMENTS[usize::from(opcode)] {
                op::Argument::Bytes(count) => self.at += usize::from(count),
                op::Argument::Length(count) => {
                    let length = self.length(usize::from(count))?;
                    self.take(length, "the argument of an opcode")?;
                }
                op::Argument::Refused if opcode == op::STOP => return Ok(()),
                op::Argument::Refused => return Err(self.refuse(opcode)),
            }
        }
    }

    /// Position of the last `count` values, which must lie above the last mark.
    fn below(&mut self, count: usize) -> Result<usize, FormatError> {
        let floor = self.stack.len().checked_sub(count).filter(|at| *at >= self.marks.last().copied().unwrap_or(0));
        floor.ok_or_else(|| self.wrong_opcode(self.bytes[self.start], "more values on the stack before it"))
    }

    /// Moves the values from `floor` on into a container; false when it is of another kind.
    fn store(&mut self, target: Value, floor: usize, is_dict: bool) -> Result<bool, FormatError> {
        let items = &self.stack[floor..];
        if is_dict && !items.len().is_multiple_of(2) {
            return Err(self.wrong(format!("{} values for a dict", items.len()), "pairs of key and value"));
        }
        self.document.charge(self.start, size_of_val(items))?;
        let fits = if is_dict {
            self.document.set(target, items.chunks_exact(2).map(|pair| (pair[0], pair[1])))
        } else {
            self.document.append(target, items.iter().copied())
        };
        self.stack.truncate(floor);
        Ok(fits)
    }

    fn collect_list(&mut self, opcode: u8) -> Result<(), FormatError> {
        let floor = match opcode {
            op::TUPLE1 => self.below(1)?,
            op::TUPLE2 => self.below(2)?,
            op::TUPLE3 => self.below(3)?,
            _ => self.unmark()?,
        };
        let list = self.document.new_list(self.start)?;
        self.store(list, floor, false)?;
        self.push(list)
    }

    fn collect_dict(&mut self) -> Result<(), FormatError> {
        let floor = self.unmark()?;
        let dict = self.document.new_dict(self.start)?;
        self.store(dict, floor, true)?;
        self.push(dict)
    }

    fn put(&mut self, opcode: u8) -> Result<(), FormatError> {
        let slot = match opcode {
            op::MEMOIZE => self.memo.len(),
            op::BINPUT => self.length(1)?,
            _ => self.length(4)?,
        };
        let value = self.top()?;
        // Picklers count from 0 or 1: a slot far ahead is an attempt to make a large table.
        if slot > self.memo.len() + 256 {
            return Err(
                self.wrong(format!("memo slot {slot} after {} of them", self.memo.len()), "the next slots in order")
            );
        }
        if slot >= self.memo.len() {
            self.document.charge(self.start, (slot + 1 - self.memo.len()) * size_of::<Value>())?;
            self.memo.resize(slot + 1, Value::None);
        }
        self.memo[slot] = value;
        Ok(())
    }

    fn get(&mut self, opcode: u8) -> Result<(), FormatError> {
        let slot = self.length(if opcode == op::BINGET { 1 } else { 4 })?;
        match self.memo.get(slot).copied() {
            Some(value) => self.push(value),
            None => Err(self.wrong(format!("memo slot {slot}"), "one that was filled before")),
        }
    }

    fn shuffle(&mut self, opcode: u8) -> Result<(), FormatError> {
        match opcode {
            op::DUP => {
                let value = self.top()?;
                self.push(value)
            }
            op::POP_MARK => {
                let floor = self.unmark()?;
                self.stack.truncate(floor);
                Ok(())
            }
            _ if self.marks.last() == Some(&self.stack.len()) => self.unmark().map(drop),
            _ => self.pop().map(drop),
        }
    }
}
