//! The recordings that are looked at: read in the background, then laid out once and kept.
//!
//! Recordings are numbered in the order of their files; a file of several processes has several. A file that is still being
//! read, or cannot be, has one number as well, so that the page can say so.

mod facts;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use memviz_analyze::{FrameClass, Replayer, UserLines, WhatIf};
use memviz_format::FormatError;
use memviz_format::torch::Limits;
use memviz_layout::{By, Groups, Layout};
use memviz_trace::{FrameId, Trace};

pub(crate) use facts::Facts;

/// A recording to look at.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file of any format that is known.
    File(PathBuf),
    /// A recording in memory and what to call it.
    Trace(String, Arc<Trace>),
}

/// What became of an input.
#[derive(Clone, Debug)]
pub enum State {
    /// Its file is being read: the part of it that was, 0 to 1.
    Reading(f64),
    /// Its recordings, in order of rank.
    Ready(Vec<Arc<Loaded>>),
    /// What a person can do about it.
    Failed(String),
}

/// A recording that can be asked, and what was made of it so far.
#[derive(Debug)]
pub struct Loaded {
    name: String,
    path: String,
    trace: Arc<Trace>,
    layout: Layout,
    facts: Facts,
    groups: [OnceLock<Groups>; By::ALL.len()],
    lines: OnceLock<UserLines>,
    classes: OnceLock<Vec<FrameClass>>,
    replayer: OnceLock<Replayer<Arc<Trace>>>,
    as_recorded: OnceLock<WhatIf>,
}

impl Loaded {
    /// Lays a recording out, which passes over its events a few times.
    pub fn new(name: String, path: String, trace: Arc<Trace>) -> Loaded {
        let layout = Layout::new(&trace);
        let facts = Facts::new(&trace, &layout);
        Loaded {
            name,
            path,
            layout,
            facts,
            trace,
            groups: Default::default(),
            lines: OnceLock::new(),
            classes: OnceLock::new(),
            replayer: OnceLock::new(),
            as_recorded: OnceLock::new(),
        }
    }

    /// Short name for tabs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// File as the user named it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The recording.
    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Colour groups, made on first use.
    pub(crate) fn groups(&self, by: By) -> &Groups {
        let at = By::ALL.iter().position(|other| *other == by).unwrap_or(0);
        self.groups[at].get_or_init(|| Groups::new(&self.trace, &self.layout, by))
    }

    pub(crate) fn lines(&self) -> &UserLines {
        self.lines.get_or_init(|| UserLines::new(&self.trace))
    }

    /// Whose code a frame is.
    pub(crate) fn class(&self, frame: FrameId) -> FrameClass {
        let classes = self.classes.get_or_init(|| FrameClass::of_all(&self.trace));
        classes.get(frame.index()).copied().unwrap_or(FrameClass::Library)
    }

    /// The calls behind the events, read off on first use.
    pub(crate) fn replayer(&self) -> &Replayer<Arc<Trace>> {
        self.replayer.get_or_init(|| Replayer::new(Arc::clone(&self.trace)))
    }

    pub(crate) fn as_recorded(&self) -> &WhatIf {
        self.as_recorded.get_or_init(|| self.replayer().as_recorded())
    }
}

/// All inputs. Cheap to clone; reading goes on as long as a clone lives.
#[derive(Clone, Debug)]
pub struct Store {
    slots: Arc<[Slot]>,
}

#[derive(Debug)]
struct Slot {
    name: String,
    path: String,
    /// Bits of an f64: a plain number that the reading thread writes and requests read.
    read: AtomicU64,
    /// `None` while it is being read.
    outcome: Mutex<Option<Result<Vec<Arc<Loaded>>, String>>>,
}

/// One number of the list: a recording, or an input that is none yet.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) state: EntryState,
}

/// What is known of it.
#[derive(Clone, Debug)]
pub(crate) enum EntryState {
    Reading(f64),
    Ready(Arc<Loaded>),
    Failed(String),
}

impl Store {
    /// Begins to read all inputs, each on a thread of its own.
    pub fn open(inputs: Vec<Input>) -> Store {
        let slots: Arc<[Slot]> = inputs.iter().map(Slot::new).collect();
        let store = Store { slots };
        for (at, input) in inputs.into_iter().enumerate() {
            let reader = store.clone();
            let work = move || reader.fill(at, input);
            if let Err(error) = thread::Builder::new().name("memviz-read".to_owned()).spawn(work) {
                store.settle(at, Err(format!("no thread to read it: {error}; close other programs and try again")));
            }
        }
        store
    }

    fn fill(&self, at: usize, input: Input) {
        let slot = &self.slots[at];
        let work = || match input {
            Input::File(path) => slot.read_file(&path),
            Input::Trace(name, trace) => Ok(vec![Arc::new(Loaded::new(name, String::new(), trace))]),
        };
        // A recording must never take the server down: what cannot be laid out is shown as failed.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        let broken = || Err("the recording could not be laid out; report this with the file".to_owned());
        self.settle(at, outcome.unwrap_or_else(|_| broken()));
    }

    fn settle(&self, at: usize, outcome: Result<Vec<Arc<Loaded>>, String>) {
        *self.slots[at].outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    /// The state of every input, in order.
    pub fn states(&self) -> Vec<State> {
        self.slots.iter().map(Slot::state).collect()
    }

    /// Waits until no input is being read; `progress` hears the part read of all, now and then.
    pub fn wait(&self, mut progress: impl FnMut(f64)) {
        loop {
            let states = self.states();
            let reading = |state: &State| if let State::Reading(part) = state { Some(*part) } else { None };
            if states.iter().all(|state| reading(state).is_none()) {
                return;
            }
            let sum: f64 = states.iter().map(|state| reading(state).unwrap_or(1.0)).sum();
            progress(sum / states.len() as f64);
            thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Every number of the list.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for slot in self.slots.iter() {
            let entry = |state| Entry { name: slot.name.clone(), path: slot.path.clone(), state };
            match slot.state() {
                State::Reading(part) => entries.push(entry(EntryState::Reading(part))),
                State::Failed(error) => entries.push(entry(EntryState::Failed(error))),
                State::Ready(all) => entries.extend(all.into_iter().map(|loaded| Entry {
                    name: loaded.name.clone(),
                    path: loaded.path.clone(),
                    state: EntryState::Ready(loaded),
                })),
            }
        }
        entries
    }
}

impl Slot {
    fn new(input: &Input) -> Slot {
        let (name, path) = match input {
            Input::File(path) => (short_name(path), path.display().to_string()),
            Input::Trace(name, _) => (name.clone(), String::new()),
        };
        Slot { name, path, read: AtomicU64::new(0), outcome: Mutex::new(None) }
    }

    fn state(&self) -> State {
        match &*self.outcome.lock().unwrap_or_else(PoisonError::into_inner) {
            None => State::Reading(f64::from_bits(self.read.load(Ordering::Relaxed))),
            Some(Ok(all)) => State::Ready(all.clone()),
            Some(Err(error)) => State::Failed(error.clone()),
        }
    }

    fn read_file(&self, path: &Path) -> Result<Vec<Arc<Loaded>>, String> {
        let traces = memviz_format::read_path(path, &Limits::default(), &mut |done, total| {
            let part = if total == 0 { 0.0 } else { (done as f64 / total as f64).min(1.0) };
            self.read.store(part.to_bits(), Ordering::Relaxed);
        });
        let traces = traces.map_err(|error| sentence(&error, path))?;
        if traces.is_empty() {
            return Err(format!("no recording in the file, expected one or more; record again: {}", path.display()));
        }
        let has_many = traces.len() > 1;
        let loaded = traces.into_iter().enumerate().map(|(nth, trace)| {
            let number = trace.header.rank.map_or(nth as u64, u64::from);
            let name = if has_many { format!("{} rank {number}", self.name) } else { self.name.clone() };
            Arc::new(Loaded::new(name, self.path.clone(), Arc::new(trace)))
        });
        Ok(loaded.collect())
    }
}

/// The last part of a path.
fn short_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// An error with its causes, and what to do.
fn sentence(error: &FormatError, path: &Path) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    let advice = "expected a .memviz recording or a PyTorch memory snapshot; `memviz check FILE` says more";
    format!("{text}; {advice}: {}", path.display())
}
