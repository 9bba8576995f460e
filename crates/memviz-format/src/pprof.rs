//! pprof's `profile.proto`, gzipped: what `go tool pprof`, Pyroscope, Speedscope and others read.
//!
//! Four values per stack, named as Go's heap profiles name them: `alloc_objects`, `alloc_space` (the whole recording),
//! `inuse_objects`, `inuse_space` (one moment). A sample has the label `primitive`. Message fields are those of
//! github.com/google/pprof/proto/profile.proto.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use memviz_trace::FrameId;
use prost::Message;
use rustc_hash::FxHashMap;

use crate::FormatError;
use crate::profile::{Profile, StackSum};

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

const SAMPLE_TYPES: [(&str, &str); 4] =
    [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")];

/// Writes what was allocated in the whole recording beside what was in use at one moment, both of one trace.
///
/// # Errors
/// `out` fails.
pub fn write(allocated: &Profile<'_>, in_use: &Profile<'_>, out: &mut dyn Write) -> Result<(), FormatError> {
    let mut tables = Tables::default();
    tables.text("");
    let mut file = File::default();
    for (kind, unit) in SAMPLE_TYPES {
        file.sample_type.push(ValueType { kind: tables.text(kind), unit: tables.text(unit) });
    }
    file.default_sample_type = tables.text("inuse_space");
    file.comment = vec![tables.text(&in_use.title)];
    file.sample = samples(allocated, in_use, &mut tables);
    let header = &allocated.trace.header;
    file.time_nanos = integer(header.start_unix_micros.saturating_mul(1000));
    file.duration_nanos = integer(allocated.trace.events.last().map_or(0, |event| event.time_nanos));
    (file.location, file.function, file.string_table) = (tables.locations, tables.functions, tables.texts);
    let mut gzip = GzEncoder::new(&mut *out, Compression::default());
    gzip.write_all(&file.encode_to_vec()).and_then(|()| gzip.try_finish()).map_err(FormatError::Write)?;
    drop(gzip);
    out.flush().map_err(FormatError::Write)
}

/// Readers have signed numbers.
fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

type Key<'p> = (&'p [FrameId], &'p str, &'p str);

fn samples(allocated: &Profile<'_>, in_use: &Profile<'_>, tables: &mut Tables) -> Vec<Sample> {
    fn key(sum: &StackSum) -> Key<'_> {
        (&sum.frames, sum.label, &sum.primitive)
    }
    let mut values: std::collections::BTreeMap<Key<'_>, [u64; 4]> = std::collections::BTreeMap::new();
    for (profile, at) in [(allocated, 0), (in_use, 2)] {
        for sum in &profile.sums {
            let value = values.entry(key(sum)).or_default();
            value[at] += sum.count;
            value[at + 1] = value[at + 1].saturating_add(sum.bytes);
        }
    }
    let sample = |((frames, label, primitive), value): (Key<'_>, [u64; 4])| Sample {
        location_id: tables.stack(allocated, frames, label),
        value: value.map(integer).to_vec(),
        label: tables.primitive(primitive),
    };
    values.into_iter().map(sample).collect()
}

#[derive(Default)]
struct Tables {
    texts: Vec<String>,
    text_ids: FxHashMap<String, i64>,
    functions: Vec<Function>,
    function_ids: FxHashMap<(i64, i64), u64>,
    locations: Vec<Location>,
    location_ids: FxHashMap<(u64, i64), u64>,
}

impl Tables {
    fn text(&mut self, text: &str) -> i64 {
        if let Some(id) = self.text_ids.get(text) {
            return *id;
        }
        let id = self.texts.len() as i64;
        self.texts.push(text.to_owned());
        self.text_ids.insert(text.to_owned(), id);
        id
    }

    /// pprof lists the innermost frame first.
    fn stack(&mut self, profile: &Profile<'_>, frames: &[FrameId], label: &str) -> Vec<u64> {
        if frames.is_empty() {
            return vec![self.location(label, "", 0)];
        }
        let strings = &profile.trace.strings;
        let frames = frames.iter().rev().map(|id| profile.trace.stacks.frame(*id));
        frames
            .map(|frame| self.location(strings.get(frame.function), strings.get(frame.file), frame.line.into()))
            .collect()
    }

    fn location(&mut self, function: &str, file: &str, line: i64) -> u64 {
        let (name, filename) = (self.text(function), self.text(file));
        let next = self.functions.len() as u64 + 1;
        let function_id = *self.function_ids.entry((name, filename)).or_insert(next);
        if function_id == next {
            self.functions.push(Function { id: next, name, system_name: name, filename });
        }
        let next = self.locations.len() as u64 + 1;
        let id = *self.location_ids.entry((function_id, line)).or_insert(next);
        if id == next {
            self.locations.push(Location { id, line: vec![Line { function_id, line }] });
        }
        id
    }

    fn primitive(&mut self, primitive: &str) -> Vec<Label> {
        if primitive.is_empty() {
            return Vec::new();
        }
        vec![Label { key: self.text("primitive"), str: self.text(primitive) }]
    }
}
