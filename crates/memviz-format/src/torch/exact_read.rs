//! The key "mlx_memviz" back to a trace. Every id is checked against its table, so that the trace can be used as is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memviz_trace::{
    Action, Base, Buffer, Checkpoint, CheckpointKind, Counts, DeviceMemory, Ending, EndingKind, Event, Frame, FrameId,
    Header, Mark, MarkKind, StackId, StringId, Tally, Thread, ThreadId, Trace, What,
};

use super::document::{Document, Value, content};
use super::exact::{FORMAT, FORMAT_RANKS};
use crate::FormatError;
use crate::error::first_index;
use crate::packed::Decoder;

/// Numbers of one entry of `whats`. Lists can be shared within a file, so each needs a bound of its own.
const MAX_WHAT: usize = 256;
/// Bytes of `command` and of `notes`, for the same reason.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// Processes of one file.
const MAX_RANKS: usize = 65_536;

/// Reads the value of the key: one trace, or those of several processes.
pub(super) fn read_all(document: &Document<'_>, own: Value) -> Result<Vec<Trace>, FormatError> {
    let format = document.bits("format", document.need(own, "format")?)?;
    match format {
        FORMAT => Ok(vec![read(document, own, document.limits().max_events)?]),
        FORMAT_RANKS => ranks(document, document.need(own, "ranks")?),
        _ => {
            let found = format!("format {format}");
            Err(content("mlx_memviz.format", found, "format 1 or 2; a newer mlx-memviz may read it"))
        }
    }
}

/// Traces may share parts of the file, so one bound holds for all of them together.
fn ranks(document: &Document<'_>, list: Value) -> Result<Vec<Trace>, FormatError> {
    let items = document.items("ranks", list)?;
    if items.is_empty() || items.len() > MAX_RANKS {
        return Err(content("mlx_memviz.ranks", format!("{} processes", items.len()), "1 to 65536"));
    }
    let mut events_left = document.limits().max_events;
    let mut traces = Vec::new();
    for own in items {
        let format = document.bits("format", document.need(*own, "format")?)?;
        if format != FORMAT {
            return Err(content("mlx_memviz.ranks.format", format!("format {format}"), "format 1"));
        }
        let trace = read(document, *own, events_left)?;
        let limit = document.limits().max_events;
        let error = FormatError::Limit { offset: 0, what: "events and table entries", limit };
        events_left = events_left.checked_sub(entries(&trace)).ok_or(error)?;
        traces.push(trace);
    }
    Ok(traces)
}

/// Size of a trace in entries of about the size of an event.
fn entries(trace: &Trace) -> usize {
    let text: usize = (0..trace.strings.len()).map(|id| trace.strings.get(StringId(id as u32)).len()).sum();
    let axes: usize = trace.whats.iter().filter_map(|what| what.shape.as_ref()).map(|shape| shape.len()).sum();
    let tables = trace.strings.len() + trace.stacks.frame_count() + trace.stacks.stack_count() + trace.whats.len();
    let lists = trace.events.len() + trace.start.len() + trace.marks.len() + trace.checkpoints.len();
    lists + tables + trace.threads.len() + (text + 4 * axes) / size_of::<Event>()
}

fn read(document: &Document<'_>, own: Value, max_events: usize) -> Result<Trace, FormatError> {
    let reader = Reader { document, own, max_events };
    let mut trace = Trace { header: reader.header()?, ..Trace::default() };
    reader.sums(&mut trace)?;
    reader.tables(&mut trace)?;
    reader.marks(&mut trace)?;
    reader.whats_and_threads(&mut trace)?;
    below("ending_stack", trace.header.ending.stack.0.into(), trace.stacks.stack_count())?;
    let mut start = Vec::new();
    reader.events("start", &trace, |event| start.push(buffer_from_event(&event)))?;
    let mut events = Vec::new();
    reader.events("events", &trace, |event| events.push(event))?;
    (trace.start, trace.events) = (start, events);
    Ok(trace)
}

struct Reader<'d, 'a> {
    document: &'d Document<'a>,
    own: Value,
    max_events: usize,
}

impl Reader<'_, '_> {
    fn header(&self) -> Result<Header, FormatError> {
        let document = self.document;
        let header = document.need(self.own, "header")?;
        let text = |key| document.text(key, document.need(header, key)?).map(str::to_owned);
        let number = |key| document.bits(key, document.need(header, key)?);
        let texts = |key| {
            let mut texts = Vec::new();
            let mut left = MAX_TEXT_BYTES;
            for item in document.items(key, document.need(header, key)?)? {
                let text = document.text(key, *item)?;
                left = left.checked_sub(text.len() + 1).ok_or_else(|| content(key, "16 MiB of text", "less"))?;
                texts.push(text.to_owned());
            }
            Ok::<_, FormatError>(texts)
        };
        Ok(Header {
            mlx_version: text("mlx_version")?,
            backend: text("backend")?,
            python_version: text("python_version")?,
            memviz_version: text("memviz_version")?,
            command: texts("command")?,
            pid: narrow("pid", number("pid")?)?,
            start_unix_micros: number("start_unix_micros")?,
            walker: text("walker")?,
            level: text("level")?,
            max_entries: number("max_entries")?,
            min_size: number("min_size")?,
            depth: narrow("depth", number("depth")?)?,
            notes: texts("notes")?,
            rank: document.get(header, "rank").map(|rank| narrow("rank", document.bits("rank", rank)?)).transpose()?,
            ending: self.ending(header)?,
        })
    }

    /// Its stack is checked once the table is there.
    fn ending(&self, header: Value) -> Result<Ending, FormatError> {
        let document = self.document;
        let text = |key| document.get(header, key).map_or(Ok(""), |value| document.text(key, value));
        let stack = document.get(header, "ending_stack").map_or(Ok(0), |value| document.bits("ending_stack", value))?;
        Ok(Ending {
            kind: EndingKind::from_name(text("ending")?),
            detail: text("ending_detail")?.to_owned(),
            stack: StackId(narrow("ending_stack", stack)?),
        })
    }

    fn numbers(&self, key: &'static str) -> Result<Vec<u64>, FormatError> {
        self.document.all_bits(key, self.document.need(self.own, key)?)
    }

    fn exactly<const N: usize>(&self, key: &'static str, value: Value) -> Result<[u64; N], FormatError> {
        let items: &[Value; N] = self
            .document
            .items(key, value)?
            .try_into()
            .map_err(|_| content(key, "a list of another length", "as many numbers as the format page says"))?;
        let mut numbers = [0; N];
        for (number, item) in numbers.iter_mut().zip(items) {
            *number = self.document.bits(key, *item)?;
        }
        Ok(numbers)
    }

    /// A flat list of records of `N` numbers each.
    fn records<const N: usize>(&self, key: &'static str) -> Result<Vec<[u64; N]>, FormatError> {
        let numbers = self.numbers(key)?;
        let (records, rest) = numbers.as_chunks::<N>();
        if rest.is_empty() { Ok(records.to_vec()) } else { Err(content(key, "half a record", "whole records")) }
    }

    fn sums(&self, trace: &mut Trace) -> Result<(), FormatError> {
        let need = |key| self.document.need(self.own, key);
        let counts: [u64; 8] = self.exactly("counts", need("counts")?)?;
        let tally = |at: usize| Tally { events: counts[at], bytes: counts[at + 1] };
        let (lost, dropped_others) = (counts[6], counts[7]);
        trace.counts = Counts { seen: tally(0), dropped: tally(2), filtered: tally(4), lost, dropped_others };
        let number = self.document.bits("first_index", need("first_index")?)?;
        trace.first_index = first_index(number, "first_index")?;
        let [active, cached] = self.exactly("base", need("base")?)?;
        trace.base = Base { active, cached };
        for point in self.document.items("checkpoints", need("checkpoints")?)? {
            trace.checkpoints.push(self.checkpoint(*point)?);
        }
        Ok(())
    }

    /// Seven numbers, and four more where a driver was asked.
    fn checkpoint(&self, point: Value) -> Result<Checkpoint, FormatError> {
        let (head, device) = match self.exactly::<11>("checkpoints", point) {
            Ok([head @ .., devices, free, total, pool]) => (head, Some(DeviceMemory { devices, free, total, pool })),
            Err(_) => (self.exactly::<7>("checkpoints", point)?, None),
        };
        let [index, time_nanos, kind, active, cached, mlx_active, mlx_cached] = head;
        let kind = checkpoint_kind(kind)?;
        Ok(Checkpoint { index, time_nanos, kind, active, cached, mlx_active, mlx_cached, device })
    }

    fn marks(&self, trace: &mut Trace) -> Result<(), FormatError> {
        for mark in self.document.items("marks", self.document.need(self.own, "marks")?)? {
            let [index, time_nanos, thread, kind, value] = self.exactly("marks", *mark)?;
            let kind = match kind {
                0 => MarkKind::Step(value),
                1 => MarkKind::AnnotationBegin(string("marks", trace, value)?),
                2 => MarkKind::AnnotationEnd,
                3 => MarkKind::CacheLimit(value),
                other => return Err(content("marks", format!("kind {other}"), "0 to 3")),
            };
            trace.marks.push(Mark { index, time_nanos, thread: ThreadId(narrow("marks", thread)?), kind });
        }
        Ok(())
    }

    fn tables(&self, trace: &mut Trace) -> Result<(), FormatError> {
        for (at, text) in self.document.items("strings", self.document.need(self.own, "strings")?)?.iter().enumerate() {
            let id = trace.strings.intern(self.document.text("strings", *text)?);
            in_order("strings", id.index(), at)?;
        }
        for (at, [file, function, line, column, native]) in self.records("frames")?.into_iter().enumerate() {
            let frame = Frame {
                file: string("frames", trace, file)?,
                function: string("frames", trace, function)?,
                line: narrow("frames", line)?,
                column: narrow("frames", column)?,
                is_native: native != 0,
            };
            in_order("frames", trace.stacks.intern_frame(frame).index(), at)?;
        }
        for (at, [caller, frame]) in self.records("stacks")?.into_iter().enumerate() {
            let caller = StackId(below("stacks", caller, at + 1)?);
            let frame = FrameId(below("stacks", frame, trace.stacks.frame_count())?);
            in_order("stacks", trace.stacks.push(caller, frame).index(), at + 1)?;
        }
        Ok(())
    }

    fn whats_and_threads(&self, trace: &mut Trace) -> Result<(), FormatError> {
        for what in self.document.items("whats", self.document.need(self.own, "whats")?)? {
            let axes = self.document.items("whats", *what)?.len();
            if axes > MAX_WHAT {
                return Err(content("whats", format!("{axes} numbers"), "fewer axes"));
            }
            let numbers = self.document.all_bits("whats", *what)?;
            let Some(([primitive, dtype, flags], shape)) = numbers.split_first_chunk::<3>() else {
                return Err(content("whats", format!("{} numbers", numbers.len()), "3 and the shape"));
            };
            let shape: Result<Box<[i32]>, FormatError> = shape.iter().map(|axis| axis_from_bits(*axis)).collect();
            trace.whats.push(What {
                primitive: string("whats", trace, *primitive)?,
                dtype: string("whats", trace, *dtype)?,
                is_temporary: flags & 1 != 0,
                shape: if flags & 2 != 0 { Some(shape?) } else { None },
            });
        }
        for [native_id, name] in self.records("threads")? {
            let name = string("threads", trace, name)?;
            trace.threads.push(Thread { native_id, name });
        }
        let is_empty = trace.whats.is_empty() || trace.threads.is_empty();
        if is_empty { Err(content("whats and threads", "an empty table", "entry 0, \"not known\"")) } else { Ok(()) }
    }

    fn events(&self, key: &'static str, trace: &Trace, mut each: impl FnMut(Event)) -> Result<(), FormatError> {
        let mut decoder = Decoder::default();
        let (mut count, limit) = (0, self.max_events);
        let mut problem = None;
        for chunk in self.document.items(key, self.document.need(self.own, key)?)? {
            let text = self.document.text(key, *chunk)?;
            let bytes = STANDARD.decode(text).map_err(|error| content(key, error.to_string(), "base64"))?;
            let decoded = decoder.decode(&bytes, |event| {
                count += 1;
                problem = problem.or_else(|| foreign_id(trace, &event));
                if count <= limit && problem.is_none() {
                    each(event);
                }
            });
            decoded.map_err(|found| content(key, found, "packed events"))?;
            if let Some(found) = problem {
                return Err(content(key, found, "an id within its table"));
            }
            if count > limit {
                return Err(FormatError::Limit { offset: 0, what: "events", limit });
            }
        }
        Ok(())
    }
}

fn foreign_id(trace: &Trace, event: &Event) -> Option<&'static str> {
    let stacks = trace.stacks.stack_count();
    if event.built.index() >= stacks || event.triggered.index() >= stacks {
        Some("a stack beyond the table")
    } else if event.what.index() >= trace.whats.len() {
        Some("a primitive beyond the table")
    } else if event.thread.index() >= trace.threads.len() {
        Some("a thread beyond the table")
    } else {
        None
    }
}

/// The way back of `exact::event_from_buffer`.
fn buffer_from_event(event: &Event) -> Buffer {
    Buffer {
        is_cached: matches!(event.action, Action::FreeActiveToCache | Action::AllocReuse),
        is_wrapper: matches!(event.action, Action::AllocMakeBuffer | Action::AllocReuse),
        ..Buffer::from_alloc(event)
    }
}

fn checkpoint_kind(number: u64) -> Result<CheckpointKind, FormatError> {
    use CheckpointKind::{Oom, Start, Step, Stop, User};
    let kinds = [Start, Step, User, Stop, Oom];
    kinds
        .into_iter()
        .find(|kind| *kind as u64 == number)
        .ok_or_else(|| content("checkpoints", format!("kind {number}"), "0 to 4"))
}

fn narrow<T: TryFrom<u64>>(place: &'static str, number: u64) -> Result<T, FormatError> {
    T::try_from(number).map_err(|_| content(place, number.to_string(), "a smaller number"))
}

fn axis_from_bits(bits: u64) -> Result<i32, FormatError> {
    i32::try_from(bits as i64).map_err(|_| content("whats", (bits as i64).to_string(), "an axis of 32 bits"))
}

fn below(place: &'static str, number: u64, count: usize) -> Result<u32, FormatError> {
    let id = u32::try_from(number).ok().filter(|id| (*id as usize) < count);
    id.ok_or_else(|| content(place, format!("id {number} of {count}"), "an id within its table"))
}

fn string(place: &'static str, trace: &Trace, number: u64) -> Result<StringId, FormatError> {
    below(place, number, trace.strings.len()).map(StringId)
}

fn in_order(place: &'static str, id: usize, at: usize) -> Result<(), FormatError> {
    if id == at { Ok(()) } else { Err(content(place, format!("entry {at} is entry {id} again"), "distinct entries")) }
}
