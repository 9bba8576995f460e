//! The command `memviz`: flags, plans and terminal output.
//!
//! [`main_from`] takes a command line. What needs no Python is carried out at once; `run` and `doctor` need MLX in their
//! process, so they come back as plans that the Python package carries out, with [`summary_text`] or [`summary_json`] for its
//! end. Exit codes: 0 ok, 1 a finding, 2 an error; a broken pipe is 0.
//!
//! One file per subcommand. Not here: recording (`memviz-agent`), file formats (`memviz-format`), answers
//! (`memviz-analyze`).
//!
//! ```
//! use memviz_cli::{Outcome, Program, main_from};
//!
//! let line = ["memviz", "run", "--min-size", "4KiB", "train.py", "--json"];
//! let Outcome::Run(plan) = main_from(line.map(Into::into).to_vec()) else { panic!() };
//! assert_eq!(plan.what, Program::Script { path: "train.py".into() });
//! assert_eq!((plan.min_size, plan.args), (4096, vec!["--json".into()]));
//! ```

mod advise;
mod answer;
mod args;
mod cache;
mod check;
mod diff;
mod export;
mod flamegraph;
mod growth;
mod input;
mod leaks;
mod merge;
mod output;
mod peak;
mod pinned;
#[cfg(test)]
mod pins_golden;
mod plan;
mod render;
mod replay;
mod report;
mod retrace;
mod run_args;
mod view;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

use clap::{CommandFactory, Parser};

use crate::args::{Cli, Command};

pub use answer::ask;
pub use input::Source;
pub(crate) use memviz_analyze::size;
pub use memviz_analyze::size::{bytes_from_text, text_from_bytes};
pub use memviz_analyze::{Summary, Written};
pub use plan::{DoctorPlan, Outcome, Program, RunPlan};
pub use render::{summary_json, summary_text};
pub use view::view_api;

/// Exit code of a success.
const OK: i32 = 0;
/// Exit code of a finding.
const FINDING: i32 = 1;
/// Exit code of an error.
const ERROR: i32 = 2;

/// Where a command prints.
pub struct Streams<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Errors.
    pub err: &'a mut dyn Write,
    /// `out` takes ANSI colours.
    pub out_color: bool,
    /// `err` takes ANSI colours.
    pub err_color: bool,
    /// Columns of `out`.
    pub out_width: usize,
    /// `err` is a terminal on which a progress bar may be drawn.
    pub shows_progress: bool,
}

/// Columns of a text that goes to no terminal.
const PLAIN_WIDTH: usize = 100;

/// Carries out a command line as far as that needs no Python. The first argument is the program's own name.
pub fn main_from(args: Vec<OsString>) -> Outcome {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let wants_color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let out_color = wants_color && stdout.is_terminal();
    let err_color = wants_color && stderr.is_terminal();
    let is_terminal = stdout.is_terminal();
    let columns = terminal_size::terminal_size().filter(|_| is_terminal).map(|(width, _)| usize::from(width.0));
    let mut streams = Streams {
        out: &mut stdout.lock(),
        err: &mut io::stderr(),
        out_color,
        err_color,
        out_width: columns.unwrap_or(PLAIN_WIDTH),
        shows_progress: stderr.is_terminal(),
    };
    main_with(args, &mut streams)
}

/// [`main_from`] with other streams.
pub fn main_with(args: Vec<OsString>, streams: &mut Streams<'_>) -> Outcome {
    match parse(args) {
        Ok(Parsed::Plan(outcome)) => outcome,
        Ok(Parsed::Check(args)) => Outcome::Exit(exit_code(check::run(&args, streams), streams)),
        Ok(Parsed::View(args)) => Outcome::Exit(exit_code(view::run(&args, streams), streams)),
        Ok(Parsed::Question(question)) => Outcome::Exit(exit_code(answer::run(&*question, streams), streams)),
        Err(error) => Outcome::Exit(usage(&error, streams)),
    }
}

/// A command line that clap accepts.
enum Parsed {
    Plan(Outcome),
    Check(args::CheckArgs),
    View(view::ViewArgs),
    Question(Box<dyn answer::Question>),
}

const UNKNOWN: clap::error::ErrorKind = clap::error::ErrorKind::InvalidSubcommand;

fn parse(mut args: Vec<OsString>) -> Result<Parsed, clap::Error> {
    let mut program = None;
    if args.get(1).is_some_and(|word| word == "run") {
        let split = run_args::split(&args[2..]).map_err(|text| run_error(clap::error::ErrorKind::InvalidUtf8, text))?;
        args.truncate(2);
        args.extend(split.flags);
        program = split.program;
    }
    Ok(match Cli::try_parse_from(args)?.command {
        Command::Run(args) => {
            let missing = || run_error(clap::error::ErrorKind::MissingRequiredArgument, "no program to run");
            Parsed::Plan(Outcome::Run(args.plan(program.ok_or_else(missing)?)))
        }
        Command::Doctor(args) => Parsed::Plan(Outcome::Doctor(args.plan())),
        Command::Check(args) => Parsed::Check(args),
        Command::View(args) => Parsed::View(args),
        report => Parsed::Question(report.into_question().ok_or_else(|| run_error(UNKNOWN, "not a report"))?),
    })
}

/// An error with the usage of `run` below it.
fn run_error(kind: clap::error::ErrorKind, text: impl std::fmt::Display) -> clap::Error {
    let mut cli = Cli::command();
    cli.build();
    match cli.find_subcommand_mut("run") {
        Some(run) => run.error(kind, text),
        None => cli.error(kind, text),
    }
}

/// Prints help, the version or a usage error.
fn usage(error: &clap::Error, streams: &mut Streams<'_>) -> i32 {
    let (to, color) = match error.use_stderr() {
        true => (&mut *streams.err, streams.err_color),
        false => (&mut *streams.out, streams.out_color),
    };
    let text = error.render();
    let printed = if color { write!(to, "{}", text.ansi()) } else { write!(to, "{text}") };
    match printed.and_then(|()| to.flush()) {
        Err(failure) if failure.kind() != io::ErrorKind::BrokenPipe => ERROR,
        _ => error.exit_code(),
    }
}

/// Reports an error and turns it into the exit code; a reader that closed our pipe has what it wanted.
fn exit_code(result: anyhow::Result<i32>, streams: &mut Streams<'_>) -> i32 {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    let is_broken_pipe = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    if error.downcast_ref::<io::Error>().is_some_and(is_broken_pipe) {
        return OK;
    }
    // Nowhere is left to report that standard error is closed.
    let _ = writeln!(streams.err, "memviz: {error:#}");
    ERROR
}
