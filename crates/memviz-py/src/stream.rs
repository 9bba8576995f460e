//! A recording that goes into a file while it runs: two threads, neither of them Python's.
//!
//! The *writer* takes what came every [`INTERVAL`], and sooner when a chunk is full, turns it into parts of the file and
//! compresses them. It never takes the GIL: a thread that crashes may hold it, and the last chunk must be written then. Text
//! of call sites comes from the second thread, *names*, which takes the GIL for that and does nothing else. What the file
//! does not take in time waits in the recorder, up to its limit, and is left out beyond it: a hook never waits.
//!
//! Both are ended by [`finish`], which runs while the interpreter is whole (`stop()`, or `atexit`). A forked child has
//! neither, and touches nothing here. Signals of the program are blocked on both.
//!
//! Not here: what to hand out (`memviz_agent::stream`), signals (`memviz_agent::crash`), the format (`memviz_format`).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use memviz_agent::recorder::Recorder;
use memviz_agent::stream::{self, Batch, Translator};
use memviz_agent::{crash, linux, session, wake};
use memviz_format::FormatError;
use memviz_format::trace_file::{Amendment, Part, Start, StartSums, Writer};
use memviz_trace::{Counts, Ending, EndingKind, Event, Header, Tally};
use pyo3::prelude::*;

use crate::outlet::{Outbox, Outlet};

/// What SIGKILL may cost.
const INTERVAL: Duration = Duration::from_millis(100);
/// Events of one part: a part stands alone, so larger ones compress better, and memory is bounded by it.
const PART: usize = 64 * 1024;
/// How long a crash waits for text; the crashed thread may hold the GIL for ever.
const CRASH_PATIENCE: Duration = Duration::from_millis(300);
/// How long a reader of a running recording waits for the file.
const FLUSH_PATIENCE: Duration = Duration::from_secs(30);

/// Text of call sites, in both directions.
type Keys = Vec<(memviz_pyframes::CodeId, i32)>;
type Sites = Vec<((memviz_pyframes::CodeId, i32), memviz_pyframes::Site)>;

/// What the program's threads and the writer tell each other.
#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    flushes_wanted: AtomicU64,
    flushes_done: AtomicU64,
}

struct Running {
    path: PathBuf,
    shared: Arc<Shared>,
    writer: JoinHandle<Job>,
    names: JoinHandle<()>,
}

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

fn running() -> std::sync::MutexGuard<'static, Option<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to write the recording that runs, and was started for it, to `path`. What was there is replaced once the beginning
/// of the new file is on the disk.
pub fn begin(path: &Path, header: &Header, own_folder: &str) -> Result<(), FormatError> {
    let start = session::with_recorder(|recorder| stream::start_of(recorder)).unwrap_or_default();
    let start = Start { buffers: start.0, sums: StartSums::Totals(start.1), first_index: 0 };
    let outbox = Outbox::default();
    let writer = Writer::create(outbox.clone(), header, &start)?;
    let outlet = Outlet::create(path, outbox).map_err(FormatError::Write)?;
    let (keys_to, keys_from) = channel();
    let (sites_to, sites_from) = channel();
    let shared = Arc::new(Shared::default());
    let job = Job {
        translator: Translator::new(own_folder, header.depth),
        writer: Some(writer),
        outlet,
        keys: Some(keys_to),
        sites: sites_from,
        events: Vec::new(),
        written: Tally::default(),
        counts: Counts::default(),
        failure: None,
    };
    let for_writer = Arc::clone(&shared);
    let blocked = linux::block_signals();
    let names = spawn("memviz-names", move || answer(&keys_from, &sites_to));
    let writer = spawn("memviz-writer", move || run(job, &for_writer));
    linux::unblock_signals(&blocked);
    let (names, writer) = (names?, writer?);
    *running() = Some(Running { path: path.to_owned(), shared, writer, names });
    crash::install();
    Ok(())
}

fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, FormatError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map_err(FormatError::Write)
}

/// The thread `names`. Ends when the writer does.
fn answer(keys: &Receiver<Keys>, sites: &Sender<Sites>) {
    while let Ok(keys) = keys.recv() {
        #[expect(unsafe_code, reason = "the contract of memviz-agent")]
        // SAFETY: attached means that this thread holds the GIL of the main interpreter.
        let found = Python::try_attach(|_py| unsafe { stream::resolve(&keys) });
        if sites.send(found.unwrap_or_default()).is_err() {
            return;
        }
    }
}

/// The thread `writer`.
fn run(mut job: Job, shared: &Shared) -> Job {
    crash::set_writer();
    let _watch = Watch;
    loop {
        wake::sleep(INTERVAL);
        if let Some(ended) = crash::ended() {
            job.last_words(&ended);
            crash::written(&ended);
            return job;
        }
        if shared.is_over.load(Ordering::Acquire) {
            return job;
        }
        let wanted = shared.flushes_wanted.load(Ordering::Acquire);
        job.turn();
        shared.flushes_done.store(wanted, Ordering::Release);
    }
}

/// Without a writer, signals must end the program as ever.
struct Watch;

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            crash::uninstall();
        }
    }
}

/// The file under construction.
struct Job {
    translator: Translator,
    /// `None` once the file is ended.
    writer: Option<Writer<Outbox>>,
    outlet: Outlet,
    /// `None` once the thread `names` is to end.
    keys: Option<Sender<Keys>>,
    sites: Receiver<Sites>,
    events: Vec<Event>,
    /// Buffer events written.
    written: Tally,
    counts: Counts,
    /// What could not be packed: the file ends there.
    failure: Option<FormatError>,
}

impl Job {
    /// Writes what came. While the file refuses bytes nothing is taken: it waits in the recorder.
    fn turn(&mut self) {
        if !self.outlet.flush() {
            return;
        }
        if let Some(mut batch) = stream::take(&mut self.translator) {
            self.ask(&mut batch);
            let chunks = self.write(batch);
            stream::give_back(chunks);
            self.outlet.flush();
        }
    }

    /// The text of call sites that are new in the batch. Without it when the program is ending and cannot answer.
    fn ask(&mut self, batch: &mut Batch) {
        let keys = std::mem::take(&mut batch.unknown);
        if keys.is_empty() || self.keys.as_ref().is_none_or(|to| to.send(keys).is_err()) {
            return;
        }
        let mut patience = CRASH_PATIENCE;
        let step = Duration::from_millis(20);
        loop {
            match self.sites.recv_timeout(step) {
                Ok(sites) => return self.translator.learn(sites),
                Err(RecvTimeoutError::Timeout) if crash::ended().is_none() => {}
                Err(RecvTimeoutError::Timeout) if !patience.is_zero() => patience = patience.saturating_sub(step),
                Err(_) => return,
            }
        }
    }

    /// Packs a batch; returns its chunks for reuse.
    fn write(&mut self, mut batch: Batch) -> Vec<Vec<Event>> {
        let mut used = Vec::new();
        if batch.is_empty() {
            return used;
        }
        self.counts = batch.counts;
        while let Some(chunk) = batch.chunks.pop_front() {
            self.events.extend_from_slice(&chunk);
            used.push(chunk);
            if self.events.len() >= PART && !batch.chunks.is_empty() {
                self.part(&Batch::default());
            }
        }
        self.part(&batch);
        used
    }

    /// The events collected, and what the batch has beside events.
    fn part(&mut self, batch: &Batch) {
        for event in &mut self.events {
            if event.action.is_buffer() {
                self.written.add(event.size);
            }
            self.translator.translate(event);
        }
        let amendments: Vec<Amendment> =
            batch.amended.iter().map(|&(index, event)| amendment(&mut self.translator, index, event)).collect();
        // A long batch is several parts; the equation of the counts holds after each.
        let mut counts = self.counts;
        counts.seen.events = self.written.events + counts.dropped.events + counts.filtered.events;
        let bytes = self.written.bytes.wrapping_add(counts.dropped.bytes);
        counts.seen.bytes = bytes.wrapping_add(counts.filtered.bytes);
        let (strings, stacks, whats, threads) = self.translator.tables();
        let part = Part {
            strings,
            stacks,
            whats,
            threads,
            events: &self.events,
            amendments: &amendments,
            checkpoints: &batch.checkpoints,
            marks: &batch.marks,
            counts,
        };
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.append(&part)) {
            self.failure.get_or_insert(error);
        }
        self.outlet.add_events(self.events.len() as u64);
        self.events.clear();
    }

    fn end(&mut self, ending: &Ending, notes: &[String]) {
        // The stack of the ending may be new.
        self.part(&Batch::default());
        if let Some(Err(error)) = self.writer.take().map(|writer| writer.finish(ending, notes)) {
            self.failure.get_or_insert(error);
        }
        self.outlet.try_now();
    }

    /// A signal ends the program.
    fn last_words(&mut self, ended: &crash::Ended) {
        let mut batch = stream::take_at_the_end(&mut self.translator, ended);
        self.ask(&mut batch);
        self.write(batch);
        let stack = self.translator.stack(ended.triggered);
        self.end(&Ending { kind: EndingKind::Signal, detail: ended.detail.clone(), stack }, &session::notes());
    }
}

fn amendment(translator: &mut Translator, index: u64, mut event: Event) -> Amendment {
    translator.translate(&mut event);
    let Event { what, built, stream, device, slack, .. } = event;
    Amendment { index, what, built, stream, device, slack }
}

/// How a recording ended, as Python knows it: innermost frame last.
pub struct Last {
    pub kind: EndingKind,
    pub detail: String,
    pub frames: Vec<(String, String, u32)>,
}

/// What became of the file.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why the file refused bytes, if it ever did.
    pub trouble: Option<String>,
    /// Events that were taken for the file and are not in it.
    pub missing_events: u64,
}

/// Ends the file of a recording that has stopped, and both threads.
pub fn finish(py: Python<'_>, recorder: &mut Recorder, last: Last) -> Option<Outcome> {
    let Running { shared, writer, names, .. } = running().take()?;
    shared.is_over.store(true, Ordering::Release);
    wake::wake();
    // Without the GIL, for which the other thread may be waiting.
    let mut job = py.detach(|| {
        let mut job = writer.join().ok()?;
        job.keys = None;
        let _ended = names.join();
        Some(job)
    })?;
    crash::uninstall();
    let mut batch = stream::take_last(&mut job.translator, recorder);
    let keys = std::mem::take(&mut batch.unknown);
    #[expect(unsafe_code, reason = "the contract of memviz-agent")]
    // SAFETY: `py` proves that the GIL is held.
    job.translator.learn(unsafe { stream::resolve(&keys) });
    py.detach(move || {
        if job.writer.is_some() {
            job.write(batch);
            let stack = job.translator.intern_stack(&last.frames);
            job.end(&Ending { kind: last.kind, detail: last.detail, stack }, &session::notes());
        }
        let trouble = job.failure.map(|error| error.to_string());
        let trouble = trouble.or_else(|| job.outlet.trouble().map(str::to_owned));
        Some(Outcome { trouble, missing_events: job.outlet.waiting_events() })
    })
}

/// Waits until all that happened so far is in the file; returns its path, `None` when no recording is streamed.
pub fn flush(py: Python<'_>) -> Option<PathBuf> {
    let (path, shared) = {
        let running = running();
        let running = running.as_ref()?;
        (running.path.clone(), Arc::clone(&running.shared))
    };
    let wanted = shared.flushes_wanted.fetch_add(1, Ordering::AcqRel) + 1;
    py.detach(|| {
        let since = Instant::now();
        while shared.flushes_done.load(Ordering::Acquire) < wanted && since.elapsed() < FLUSH_PATIENCE {
            wake::wake();
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    Some(path)
}
