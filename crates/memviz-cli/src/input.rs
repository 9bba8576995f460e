//! The recordings that a report is about: files of a command line, or traces that Python holds.
//!
//! Reading shows a progress bar on a terminal once it takes more than a second. Formats are told apart by `memviz-format`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use memviz_analyze::find_peaks;
use memviz_format::torch::Limits;
use memviz_trace::Trace;

/// A recording and what to call it.
#[derive(Clone, Debug)]
pub struct Source {
    /// File name as typed, with the rank when the file holds several; "recording" for a trace of Python.
    pub label: String,
    /// The recording.
    pub trace: Arc<Trace>,
}

/// What a report reads and how it is printed.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Files, in order.
    pub(crate) files: Vec<PathBuf>,
    /// Print JSON.
    pub(crate) json: bool,
}

/// Flags of every report about one recording.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Input {
    /// A recording: .memviz, a PyTorch memory snapshot (.pickle), or its JSON form
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Of a run of several processes, the one to report on (default: the one with the highest peak)
    #[arg(long, value_name = "N")]
    pub(crate) rank: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Input {
    pub(crate) fn asked(&self) -> Asked {
        Asked { files: vec![self.file.clone()], json: self.json }
    }

    /// The recording that the report is about: the only one, that of `--rank`, or the one with the highest peak.
    pub(crate) fn choose<'a>(&self, sources: &'a [Source]) -> anyhow::Result<&'a Source> {
        choose(sources, self.rank)
    }
}

/// Of the processes of a run, that of the rank, or the one with the highest peak.
pub(crate) fn choose(sources: &[Source], rank: Option<u32>) -> anyhow::Result<&Source> {
    let Some(rank) = rank else {
        let peak = |source: &&Source| find_peaks(&source.trace).active.active_bytes;
        return match sources {
            [only] => Ok(only),
            many => many.iter().rev().max_by_key(peak).context("no recording was given"),
        };
    };
    let found = sources.iter().find(|source| source.trace.header.rank == Some(rank));
    found.with_context(|| {
        let ranks: Vec<String> =
            sources.iter().filter_map(|source| source.trace.header.rank).map(|rank| rank.to_string()).collect();
        let have = if ranks.is_empty() { "no ranks".to_owned() } else { format!("ranks {}", ranks.join(", ")) };
        format!("no rank {rank} in the recording: it has {have}")
    })
}

/// Reads files, in order; a file of several processes gives several recordings.
pub(crate) fn read(paths: &[PathBuf], shows_progress: bool) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths {
        let traces = read_file(path, shows_progress).with_context(|| format!("cannot read {}", path.display()))?;
        let has_many = traces.len() > 1;
        for trace in traces {
            let rank = trace.header.rank.filter(|_| has_many).map_or_else(String::new, |rank| format!(" rank {rank}"));
            sources.push(Source { label: format!("{}{rank}", path.display()), trace: Arc::new(trace) });
        }
    }
    Ok(sources)
}

fn read_file(path: &Path, shows_progress: bool) -> anyhow::Result<Vec<Trace>> {
    let bar = shows_progress.then(|| bar(path));
    let begin = Instant::now();
    let traces = memviz_format::read_path(path, &Limits::default(), &mut |done, total| {
        if let Some(bar) = bar.as_ref().filter(|_| begin.elapsed() > Duration::from_secs(1)) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.set_length(total);
            bar.set_position(done);
        }
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(traces?)
}

fn bar(path: &Path) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template("reading {msg}  {bytes} of {total_bytes}  {wide_bar}  {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(path.display().to_string());
    bar
}
