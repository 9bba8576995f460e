//! [`Groups`]: which colour group each block belongs to, its name and a key that stays the same.
//!
//! Two bytes a block. Groups are numbered in order of first sight; from number [`OTHER`] on all are one.

use memviz_analyze::{LineNames, UserLines, module_name};
use memviz_trace::{Buffer, FrameId, MarkCursor, StackId, StringId, Trace};
use rustc_hash::FxHashMap;

use crate::layout::Layout;
use crate::types::{BlockId, By};

/// The group of all that come after so many others.
const OTHER: u16 = u16::MAX;
/// Longer names are cut.
const MOST_CHARS: usize = 500;
/// Annotations nested deeper are not told apart.
const MOST_NESTED: usize = 32;

/// Groups of all blocks of one layout.
#[derive(Clone, Debug)]
pub struct Groups {
    by: By,
    of: Vec<u16>,
    names: Vec<Name>,
}

#[derive(Clone, Debug)]
struct Name {
    text: String,
    /// Hash of what the group is, uncut.
    key: u64,
}

/// Groups under construction.
struct Namer<'a> {
    trace: &'a Trace,
    by: By,
    lines: UserLines,
    line_names: LineNames,
    /// Groups by what makes them, in numbers.
    known: FxHashMap<u64, u16>,
    /// Groups by the annotations that are open.
    annotations: FxHashMap<Vec<StringId>, u16>,
    /// Groups by what they are.
    ids: FxHashMap<String, u16>,
    names: Vec<Name>,
}

impl Groups {
    /// The group of every block of `layout`, which is of `trace`.
    pub fn new(trace: &Trace, layout: &Layout, by: By) -> Groups {
        let mut namer = Namer::new(trace, by);
        let mut cursor = trace.mark_cursor();
        let mut of = Vec::with_capacity(layout.blocks() as usize);
        for id in 0..layout.blocks() {
            let position = layout.block(id).and_then(|block| block.alloc_event);
            if let Some(position) = position {
                cursor.advance_to(trace.first_index.saturating_add(position as u64));
            }
            let buffer = layout.buffer(trace, id).unwrap_or_default();
            of.push(namer.group(&buffer, position.map(|_| &cursor)));
        }
        Groups { by, of, names: namer.names }
    }

    /// What the groups are.
    pub fn by(&self) -> By {
        self.by
    }

    /// Group of a block.
    pub fn of(&self, block: BlockId) -> u32 {
        self.of.get(block as usize).copied().unwrap_or(OTHER).into()
    }

    /// Number of groups: every group is below it.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no blocks, so no groups.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// For people, cut after 500 characters; "other" for what is no group.
    pub fn name(&self, group: u32) -> &str {
        self.names.get(group as usize).map_or("other", |name| &name.text)
    }

    /// 16 hexadecimal digits, the same for the same group in every layout of the same run.
    pub fn key(&self, group: u32) -> String {
        format!("{:016x}", self.names.get(group as usize).map_or_else(|| hash("other"), |name| name.key))
    }

    /// Bytes of the groups themselves.
    pub fn memory_bytes(&self) -> usize {
        let names: usize = self.names.iter().map(|name| size_of::<Name>() + name.text.len()).sum();
        names + size_of_val(&self.of[..])
    }
}

impl<'a> Namer<'a> {
    fn new(trace: &'a Trace, by: By) -> Namer<'a> {
        let (lines, line_names) = (UserLines::new(trace), LineNames::new(trace));
        let (known, annotations, ids) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        Namer { trace, by, lines, line_names, known, annotations, ids, names: Vec::new() }
    }

    /// `cursor` stands at the block's allocation; `None` for blocks of before the first event.
    fn group(&mut self, buffer: &Buffer, cursor: Option<&MarkCursor<'_>>) -> u16 {
        let pair = |a: u32, b: u32| u64::from(a) << 32 | u64::from(b);
        let is_before = u64::from(cursor.is_none());
        let source = match self.by {
            By::Line if buffer.built == StackId(0) && buffer.triggered == StackId(0) => u64::MAX - is_before,
            By::Line => pair(buffer.built.0, buffer.triggered.0),
            By::Module => buffer.built.0.into(),
            By::Primitive | By::Dtype => buffer.what.0.into(),
            By::Device => buffer.device.0.into(),
            By::Thread => buffer.thread.0.into(),
            By::Step => cursor.and_then(MarkCursor::step).unwrap_or(u64::MAX - is_before),
            By::Annotation => return self.annotated(buffer, cursor),
        };
        if let Some(group) = self.known.get(&source) {
            return *group;
        }
        let (what, text) = self.name(buffer, cursor);
        let group = self.id(what, text);
        self.known.insert(source, group);
        group
    }

    /// Names that are open together have no number of their own, so they are looked up as a list.
    fn annotated(&mut self, buffer: &Buffer, cursor: Option<&MarkCursor<'_>>) -> u16 {
        let open = cursor.map_or(&[][..], |cursor| cursor.annotations(buffer.thread));
        let shown = &open[..open.len().min(MOST_NESTED + 1)];
        if let Some(group) = self.annotations.get(shown) {
            return *group;
        }
        let group = self.id(annotation_name(self.trace, shown), None);
        self.annotations.insert(shown.to_vec(), group);
        group
    }

    /// `what` tells the group from others; `text` is shown in its place.
    fn id(&mut self, what: String, text: Option<String>) -> u16 {
        if let Some(id) = self.ids.get(&what) {
            return *id;
        }
        let next = u16::try_from(self.names.len()).unwrap_or(OTHER);
        if next == OTHER {
            if self.names.len() == OTHER as usize {
                self.names.push(Name { text: "other".to_owned(), key: hash("other") });
            }
            return OTHER;
        }
        let (key, text) = (hash(&what), cut(text.as_deref().unwrap_or(&what)));
        self.names.push(Name { text, key });
        self.ids.insert(what, next);
        next
    }

    fn name(&self, buffer: &Buffer, cursor: Option<&MarkCursor<'_>>) -> (String, Option<String>) {
        let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
        let what = self.trace.what(buffer.what);
        let name = match self.by {
            By::Line => return self.line(buffer, cursor.is_none()),
            By::Module => module_name(self.trace, buffer.built),
            By::Primitive => or(self.trace.strings.get(what.primitive), "no primitive"),
            By::Dtype => or(self.trace.strings.get(what.dtype), "dtype not known"),
            By::Device => buffer.device.to_string(),
            By::Thread => thread_name(self.trace, buffer.thread.index()),
            // Annotations are named by `annotated`.
            By::Step | By::Annotation => match cursor.map(MarkCursor::step) {
                Some(Some(step)) => format!("step {step}"),
                Some(None) => "no step".to_owned(),
                None => "before the recording".to_owned(),
            },
        };
        (name, None)
    }

    fn line(&self, buffer: &Buffer, is_before: bool) -> (String, Option<String>) {
        let line = self.lines.line_of(buffer.built).or_else(|| self.lines.line_of(buffer.triggered));
        match line {
            Some(frame) => (identity(self.trace, frame), Some(self.line_names.name(self.trace, frame))),
            None if is_before => ("before the recording".to_owned(), None),
            None => ("no Python line".to_owned(), None),
        }
    }
}

/// "forward/attention", outermost first.
fn annotation_name(trace: &Trace, open: &[StringId]) -> String {
    let shown = open.iter().take(MOST_NESTED).map(|name| trace.strings.get(*name));
    let names: Vec<&str> = shown.chain((open.len() > MOST_NESTED).then_some("…")).collect();
    if names.is_empty() { "no annotation".to_owned() } else { names.join("/") }
}

/// Tells lines apart whose short names are equal.
fn identity(trace: &Trace, id: FrameId) -> String {
    let frame = trace.stacks.frame(id);
    format!("{}:{} {}", trace.strings.get(frame.file), frame.line, trace.strings.get(frame.function))
}

/// "MainThread", "thread 4711" or "thread not known".
pub(crate) fn thread_name(trace: &Trace, index: usize) -> String {
    let Some(thread) = trace.threads.get(index).filter(|_| index > 0) else { return "thread not known".to_owned() };
    match trace.strings.get(thread.name) {
        "" => format!("thread {}", thread.native_id),
        name => cut(name),
    }
}

/// At most 500 characters, the last "…" where some are missing.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARS) {
        None => text.to_owned(),
        Some(_) => text.chars().take(MOST_CHARS - 1).chain(['…']).collect(),
    }
}

/// FNV-1a: the same on every machine and in every version.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
