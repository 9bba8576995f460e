//! `memviz view FILE…`: a server for the browser of this machine, or one HTML file for a colleague.
//!
//! Needs no Python. Not here: what is answered and shown (`memviz-view`, `viewer/`).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use memviz_trace::Trace;
use memviz_view::{Api, Input, PageOptions, Server, State, Store, write_page};

use crate::input::Source;
use crate::output::same_file;
use crate::size::{bytes_from_text, text_from_bytes};
use crate::{OK, Streams};

const EXAMPLES: &str = "\
The server listens on 127.0.0.1 only and answers the browser that opens its address; Ctrl-C ends it. It opens before the
files are read.

Exit code: 0 ended by Ctrl-C or page written, 2 error

Examples:
  memviz view run.memviz                     the timeline, and what was live wherever you click
  memviz view before.memviz after.pickle     two recordings side by side, PyTorch's snapshots too
  memviz view run.memviz --html run.html     one file that needs neither memviz nor a network";
/// What takes longer gets a progress bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Flags of `view`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ViewArgs {
    /// Recordings: .memviz, PyTorch memory snapshots (.pickle), or their JSON form
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Port to listen on (default: any that is free)
    #[arg(long, value_name = "N", conflicts_with = "html")]
    port: Option<u16>,
    /// Print the address and leave the browser alone
    #[arg(long, conflicts_with = "html")]
    no_open: bool,
    /// Write a self-contained page instead
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// Most bytes of recorded data in the page, compressed
    #[arg(long, value_name = "SIZE", value_parser = bytes_from_text, requires = "html", default_value = "8MiB")]
    html_size: u64,
}

/// What a viewer of `inputs` answers, reports included. Reading begins at once, in the background.
pub fn view_api(inputs: Vec<Input>) -> Arc<Api> {
    Arc::new(Api::new(Store::open(inputs), report))
}

/// The JSON of a report about recordings in memory.
fn report(command: &str, options: &[String], about: &[(String, Arc<Trace>)]) -> Result<String, String> {
    let source = |(label, trace): &(String, Arc<Trace>)| Source { label: label.clone(), trace: Arc::clone(trace) };
    crate::ask(command, options, &about.iter().map(source).collect::<Vec<_>>())
}

pub(crate) fn run(args: &ViewArgs, streams: &mut Streams<'_>) -> anyhow::Result<i32> {
    args.files.iter().try_for_each(|path| is_readable(path))?;
    if let Some(path) = args.html.as_ref().filter(|path| args.files.iter().any(|input| same_file(input, path))) {
        bail!("cannot write {}: it is the recording that is read; give another name with --html", path.display());
    }
    let api = view_api(args.files.iter().cloned().map(Input::File).collect());
    match &args.html {
        Some(path) => pack(&api, path, args.html_size, streams),
        None => serve(api, args, streams),
    }
}

/// A file that isn't there is an error of the command line, not of the page.
fn is_readable(path: &Path) -> anyhow::Result<()> {
    let metadata = std::fs::File::open(path).and_then(|file| file.metadata());
    let metadata = metadata.with_context(|| format!("cannot read {}", path.display()))?;
    if metadata.is_dir() {
        bail!("cannot read {}: a folder, expected a recording", path.display());
    }
    Ok(())
}

fn serve(api: Arc<Api>, args: &ViewArgs, streams: &mut Streams<'_>) -> anyhow::Result<i32> {
    let server = Server::bind(Arc::clone(&api), args.port).map_err(|error| refused(error, args.port))?;
    writeln!(streams.out, "memviz: open {}", server.url())?;
    streams.out.flush()?;
    if !args.no_open && has_display() {
        // The browser's own messages are no part of ours; without one the address is there to be copied.
        let _no_browser = open::that_detached(server.url_once());
    }
    report_failures(api);
    server.run().context("the server ended")?;
    Ok(OK)
}

/// Files that turn out to be unreadable are named in the terminal too.
fn report_failures(api: Arc<Api>) {
    let watch = move || {
        api.store().wait(|_| ());
        for state in api.store().states() {
            if let State::Failed(error) = state {
                eprintln!("memviz: cannot read a recording: {error}");
            }
        }
    };
    // Without a thread the page says it alone.
    let _no_thread = std::thread::Builder::new().name("memviz-watch".to_owned()).spawn(watch);
}

fn refused(error: io::Error, port: Option<u16>) -> anyhow::Error {
    match (error.kind(), port) {
        (io::ErrorKind::AddrInUse, Some(port)) => anyhow::anyhow!(
            "port {port} of 127.0.0.1 is taken by another program; give another --port, or none for any that is free"
        ),
        (io::ErrorKind::PermissionDenied, Some(port)) => {
            anyhow::anyhow!("port {port} is reserved for the system; give a --port of 1024 or more")
        }
        _ => anyhow::Error::new(error).context("cannot listen on 127.0.0.1"),
    }
}

/// Whether a browser window can appear.
fn has_display() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(target_os = "linux") || ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"].into_iter().any(is_set)
}

fn pack(api: &Api, path: &Path, budget: u64, streams: &mut Streams<'_>) -> anyhow::Result<i32> {
    let bar = streams.shows_progress.then(bar);
    let begin = Instant::now();
    let options = PageOptions { budget_bytes: usize::try_from(budget).unwrap_or(usize::MAX) };
    let written = write_page(api, path, options, &mut |what, part| {
        if let Some(bar) = bar.as_ref().filter(|_| begin.elapsed() > PATIENCE) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.set_message(what.to_owned());
            bar.set_position((part * 1000.0) as u64);
        }
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let written = written.with_context(|| format!("cannot write {}", path.display()))?;
    writeln!(streams.out, "wrote {} ({})", path.display(), text_from_bytes(written.size_bytes))?;
    for sentence in &written.left_out {
        writeln!(streams.out, "left out: {sentence}")?;
    }
    streams.out.flush()?;
    Ok(OK)
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template("{msg}  {wide_bar}  {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
