//! Plain data as a file holds it: values in flat tables, so that no input can nest too deep or point outside.
//!
//! References between values are positions; a container that contains itself is only a position that repeats. Everything is
//! charged against [`Limits::max_memory_bytes`] before it is stored.

use std::borrow::Cow;

use crate::FormatError;

/// What [`super::read()`] may use. A file beyond is refused, not truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file.
    pub max_file_bytes: usize,
    /// Bytes of memory for its values, estimated.
    pub max_memory_bytes: usize,
    /// Containers that may be open at the same time.
    pub max_depth: usize,
    /// Events of the trace.
    pub max_events: usize,
}

impl Default for Limits {
    /// 4 GiB of file, 8 GiB of values, 1000 levels, 100 million events.
    fn default() -> Limits {
        Limits { max_file_bytes: 4 << 30, max_memory_bytes: 8 << 30, max_depth: 1000, max_events: 100_000_000 }
    }
}

/// One value. Strings, lists (also tuples) and dicts are positions in a [`Document`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// An integer of 2^63 or more.
    Unsigned(u64),
    Float(f64),
    Str(u32),
    List(u32),
    Dict(u32),
}

impl Value {
    /// For messages.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool(_) => "a bool",
            Value::Int(_) | Value::Unsigned(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Str(_) => "a string",
            Value::List(_) => "a list",
            Value::Dict(_) => "a dict",
        }
    }
}

/// Every value of a file.
#[derive(Debug)]
pub(super) struct Document<'a> {
    pub(super) root: Value,
    strings: Vec<Cow<'a, str>>,
    lists: Vec<Vec<Value>>,
    dicts: Vec<Vec<(Value, Value)>>,
    memory_left: usize,
    limits: Limits,
}

impl<'a> Document<'a> {
    pub(super) fn new(limits: &Limits) -> Document<'a> {
        let (strings, lists, dicts) = Default::default();
        let memory_left = limits.max_memory_bytes;
        Document { root: Value::None, strings, lists, dicts, memory_left, limits: *limits }
    }

    /// Takes `bytes` off the allowance.
    pub(super) fn charge(&mut self, offset: usize, bytes: usize) -> Result<(), FormatError> {
        let limit = self.limits.max_memory_bytes;
        let error = FormatError::Limit { offset, what: "bytes of memory", limit };
        self.memory_left = self.memory_left.checked_sub(bytes).ok_or(error)?;
        Ok(())
    }

    pub(super) fn memory_left(&self) -> usize {
        self.memory_left
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn new_str(&mut self, offset: usize, text: Cow<'a, str>) -> Result<Value, FormatError> {
        self.charge(offset, size_of::<Cow<'a, str>>() + if let Cow::Owned(owned) = &text { owned.len() } else { 0 })?;
        self.strings.push(text);
        Ok(Value::Str((self.strings.len() - 1) as u32))
    }

    pub(super) fn new_list(&mut self, offset: usize) -> Result<Value, FormatError> {
        self.charge(offset, 32)?;
        self.lists.push(Vec::new());
        Ok(Value::List((self.lists.len() - 1) as u32))
    }

    pub(super) fn new_dict(&mut self, offset: usize) -> Result<Value, FormatError> {
        self.charge(offset, 32)?;
        self.dicts.push(Vec::new());
        Ok(Value::Dict((self.dicts.len() - 1) as u32))
    }

    /// Appends to a list; false when `list` is none. The caller charges.
    pub(super) fn append(&mut self, list: Value, items: impl IntoIterator<Item = Value>) -> bool {
        let Value::List(at) = list else { return false };
        self.lists[at as usize].extend(items);
        true
    }

    /// Sets keys of a dict; false when `dict` is none. The caller charges.
    pub(super) fn set(&mut self, dict: Value, items: impl IntoIterator<Item = (Value, Value)>) -> bool {
        let Value::Dict(at) = dict else { return false };
        self.dicts[at as usize].extend(items);
        true
    }

    pub(super) fn str(&self, value: Value) -> Option<&str> {
        let Value::Str(at) = value else { return None };
        self.strings.get(at as usize).map(|text| &**text)
    }

    pub(super) fn list(&self, value: Value) -> Option<&[Value]> {
        let Value::List(at) = value else { return None };
        self.lists.get(at as usize).map(|items| &**items)
    }

    /// Pairs of a dict in order; a key set twice is there twice.
    pub(super) fn dict(&self, value: Value) -> Option<&[(Value, Value)]> {
        let Value::Dict(at) = value else { return None };
        self.dicts.get(at as usize).map(|pairs| &**pairs)
    }

    /// The value of a key, the one set last.
    pub(super) fn get(&self, dict: Value, key: &str) -> Option<Value> {
        let pairs = self.dict(dict)?;
        pairs.iter().rev().find(|(name, _)| self.str(*name) == Some(key)).map(|(_, value)| *value)
    }
}

/// Typed access for readers of content; `place` names the key in errors.
impl Document<'_> {
    pub(super) fn need(&self, dict: Value, key: &'static str) -> Result<Value, FormatError> {
        self.get(dict, key).ok_or_else(|| content(key, "no such key", "the key"))
    }

    pub(super) fn text(&self, place: &'static str, value: Value) -> Result<&str, FormatError> {
        self.str(value).ok_or_else(|| content(place, value.kind(), "a string"))
    }

    pub(super) fn items(&self, place: &'static str, value: Value) -> Result<&[Value], FormatError> {
        self.list(value).ok_or_else(|| content(place, value.kind(), "a list"))
    }

    /// An integer of 64 bits, two's complement.
    pub(super) fn bits(&self, place: &'static str, value: Value) -> Result<u64, FormatError> {
        match value {
            Value::Int(number) => Ok(number as u64),
            Value::Unsigned(number) => Ok(number),
            other => Err(content(place, other.kind(), "an integer")),
        }
    }

    pub(super) fn all_bits(&self, place: &'static str, value: Value) -> Result<Vec<u64>, FormatError> {
        self.items(place, value)?.iter().map(|item| self.bits(place, *item)).collect()
    }
}

pub(super) fn content(place: &'static str, found: impl Into<String>, expected: &'static str) -> FormatError {
    FormatError::Content { place, found: found.into(), expected }
}
