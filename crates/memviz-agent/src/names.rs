//! Stacks of the process become stacks of a trace: nodes of the frame walker and of the C++ unwinder, turned into frames.
//!
//! Only the text of call sites needs the GIL. So it is asked for in three steps: which sites are not known yet
//! ([`Stacks::unknown_sites`], no GIL), what they are ([`resolve`], with it), and building ([`Stacks::learn`],
//! [`Stacks::resolve`], without). The state lives on between the parts of a streamed recording.
#![expect(unsafe_code, reason = "resolves Python code objects under the GIL")]

use memviz_pyframes::{CodeId, Resolver, Site};
use memviz_trace::{Frame, FrameId, StackId, StackTable, Strings};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::native::{self, Symboliser};

/// A place in a code object.
pub type SiteKey = (CodeId, i32);

/// Asks Python for the text of call sites.
///
/// # Safety
/// This thread holds the GIL of the main interpreter.
pub unsafe fn resolve(keys: &[SiteKey]) -> Vec<(SiteKey, Site)> {
    // SAFETY: by contract, and the resolver does not outlive this call.
    let mut resolver = unsafe { Resolver::new() };
    keys.iter().map(|&(code, lasti)| ((code, lasti), resolver.site(code, lasti))).collect()
}

/// Not resolved yet.
const UNKNOWN: StackId = StackId(u32::MAX);

/// The trace's stacks so far, and which node became which.
pub struct Stacks {
    table: StackTable,
    /// By node.
    known: Vec<StackId>,
    sites: FxHashMap<SiteKey, Shown>,
    /// Nodes whose sites were looked at already.
    seen: Vec<bool>,
    /// Stacks that end in C++ frames, by the recorder's id.
    native: FxHashMap<u32, StackId>,
    /// Reads symbol tables on first use.
    symboliser: Option<Symboliser>,
    /// Frames of files below that folder are our own and not shown.
    own_folder: String,
    depth: u32,
}

impl Stacks {
    /// No stacks. Frames of files in `own_folder`, the Python package's, are left out; with a `depth`, outer frames too.
    pub fn new(own_folder: &str, depth: u32) -> Stacks {
        Stacks {
            table: StackTable::default(),
            known: Vec::new(),
            sites: FxHashMap::default(),
            seen: Vec::new(),
            native: FxHashMap::default(),
            symboliser: None,
            own_folder: own_folder.to_owned(),
            depth,
        }
    }

    /// The table.
    pub fn table(&self) -> &StackTable {
        &self.table
    }

    /// The table.
    pub fn table_mut(&mut self) -> &mut StackTable {
        &mut self.table
    }

    /// The table, when all is resolved.
    pub fn into_table(self) -> StackTable {
        self.table
    }

    /// Call sites of these stacks that were never asked for. Each is returned once: [`Stacks::learn`] what they are.
    pub fn unknown_sites(&mut self, stacks: impl Iterator<Item = StackId>) -> Vec<SiteKey> {
        let count = memviz_pyframes::node_count() as usize;
        self.seen.resize(count, false);
        self.known.resize(count, UNKNOWN);
        let mut unknown = FxHashSet::default();
        for stack in stacks {
            let mut at = stack.0;
            while let Some((caller, _)) = native::node(at) {
                at = caller;
            }
            while at != 0 && self.seen.get(at as usize) == Some(&false) {
                self.seen[at as usize] = true;
                let Some(node) = memviz_pyframes::node(at) else { break };
                if node.code != CodeId::NONE && !self.sites.contains_key(&(node.code, node.lasti)) {
                    unknown.insert((node.code, node.lasti));
                }
                at = node.caller;
            }
        }
        let mut unknown: Vec<SiteKey> = unknown.into_iter().collect();
        unknown.sort_unstable();
        unknown
    }

    /// Takes in the text of call sites.
    pub fn learn(&mut self, sites: Vec<(SiteKey, Site)>, strings: &mut Strings) {
        for (key, site) in sites {
            let shown = match site.file.strip_prefix(&self.own_folder) {
                Some(LAUNCHER) => Shown::Launcher,
                Some(_) if !self.own_folder.is_empty() => Shown::Nothing,
                _ => Shown::Frame(self.table.intern_frame(Frame {
                    file: strings.intern(&site.file),
                    function: strings.intern(&site.function),
                    line: site.line,
                    column: site.column,
                    is_native: false,
                })),
            };
            self.sites.insert(key, shown);
        }
    }

    /// The trace's stack of a stack of the recorder.
    #[inline]
    pub fn resolve(&mut self, node: StackId, strings: &mut Strings) -> StackId {
        match self.known.get(node.index()) {
            Some(&UNKNOWN) => self.resolve_new(node, strings),
            Some(&known) => known,
            None => self.resolve_native(node.0, strings),
        }
    }

    /// The innermost C++ frame on top of what called it.
    #[cold]
    fn resolve_native(&mut self, node: u32, strings: &mut Strings) -> StackId {
        if let Some(&known) = self.native.get(&node) {
            return known;
        }
        // A node that is younger than the last look at the tables cannot be on an event taken before.
        let Some((caller, addr)) = native::node(node) else { return StackId(0) };
        let caller = self.resolve(StackId(caller), strings);
        let (file, function) = self.symboliser.get_or_insert_with(Symboliser::new).name(addr);
        let (file, function) = (strings.intern(&file), strings.intern(&function));
        let frame = self.table.intern_frame(Frame { file, function, is_native: true, ..Frame::default() });
        let stack = self.table.push(caller, frame);
        self.native.insert(node, stack);
        stack
    }

    /// Walks to the root and builds back. With a depth, the innermost frames only: outer ones are not shared then.
    #[cold]
    fn resolve_new(&mut self, node: StackId, strings: &mut Strings) -> StackId {
        let mut path = Vec::new();
        let mut at = node.0;
        let mut stack = StackId(0);
        while at != 0 && (self.depth == 0 || path.len() < self.depth as usize) {
            if self.depth == 0 && self.known[at as usize] != UNKNOWN {
                stack = self.known[at as usize];
                break;
            }
            let Some(entry) = memviz_pyframes::node(at) else { break };
            let shown = self.shown((entry.code, entry.lasti), strings);
            if self.depth == 0 || matches!(shown, Shown::Frame(_)) {
                path.push((at, shown));
            }
            if shown == Shown::Launcher {
                break;
            }
            at = entry.caller;
        }
        for (at, shown) in path.into_iter().rev() {
            if let Shown::Frame(frame) = shown {
                stack = self.table.push(stack, frame);
            }
            if self.depth == 0 {
                self.known[at as usize] = stack;
            }
        }
        self.known[node.index()] = stack;
        stack
    }

    /// What a site looks like in the trace. One whose text could not be asked for any more, because the program is ending,
    /// is a frame all the same: the stack keeps its depth.
    fn shown(&mut self, key: SiteKey, strings: &mut Strings) -> Shown {
        if key.0 == CodeId::NONE {
            return Shown::Nothing;
        }
        match self.sites.get(&key) {
            Some(&shown) => shown,
            None => {
                let function = strings.intern("<not resolved>");
                Shown::Frame(self.table.intern_frame(Frame { function, ..Frame::default() }))
            }
        }
    }
}

/// The module of our package that runs a program under `memviz run`: its callers are not the program's.
const LAUNCHER: &str = "_run.py";

/// A site of a stack, as the trace shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// A frame of the program.
    Frame(FrameId),
    /// A frame of the interpreter or of our package.
    Nothing,
    /// The stack of the program begins after this one.
    Launcher,
}
