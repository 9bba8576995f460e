//! What every report has in common: flags that name recordings, an answer, and its two forms.
//!
//! A subcommand is one file with its flags (`clap::Args`), which implement [`Question`], and its answer, which implements
//! [`Report`]. The command line reads the files and prints; [`ask`] answers the same question for Python, as JSON.

use clap::Parser;

use crate::args::{Cli, Command};
use crate::input::{self, Asked, Source};
use crate::render::Page;
use crate::{FINDING, OK, Streams};

/// Flags of a report.
pub(crate) trait Question {
    /// What to read, and how to print.
    fn asked(&self) -> Asked;

    /// Answers about the recordings, in the order of the files.
    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>>;
}

/// An answer.
pub(crate) trait Report {
    /// With a number `schema` first, sizes in bytes and times in nanoseconds.
    fn json(&self) -> String;

    /// For a terminal.
    fn draw(&self, page: &mut Page);

    /// Exit code 1: something that the user asked to be told of.
    fn is_finding(&self) -> bool {
        false
    }
}

/// The JSON form of a report's data.
pub(crate) fn to_json(data: &impl serde::Serialize) -> String {
    // Strings, numbers, lists and structs only: nothing that serde_json could refuse.
    serde_json::to_string_pretty(data).unwrap_or_default()
}

/// Reads, answers, prints; returns the exit code.
pub(crate) fn run(question: &dyn Question, streams: &mut Streams<'_>) -> anyhow::Result<i32> {
    let Asked { files, json } = question.asked();
    let sources = input::read(&files, streams.shows_progress)?;
    let report = question.answer(&sources)?;
    if json {
        writeln!(streams.out, "{}", report.json())?;
    } else {
        let mut page = Page::new(streams.out_width, streams.out_color);
        report.draw(&mut page);
        write!(streams.out, "{}", page.finish())?;
    }
    streams.out.flush()?;
    Ok(if report.is_finding() { FINDING } else { OK })
}

/// Answers the question that `memviz COMMAND FILE… OPTIONS… --json` asks, about recordings in memory. Returns JSON.
///
/// # Errors
/// A sentence for the user: an unknown option, a value out of range, a question that these recordings cannot answer.
pub fn ask(command: &str, options: &[String], sources: &[Source]) -> Result<String, String> {
    let files = sources.iter().map(|_| "-".to_owned());
    let words = ["memviz".to_owned(), command.to_owned()].into_iter().chain(options.iter().cloned()).chain(files);
    let parsed = Cli::try_parse_from(words).map_err(|error| first_line(&error.to_string()))?;
    let question = parsed.command.into_question().ok_or_else(|| format!("{command} is not a report"))?;
    let report = question.answer(sources).map_err(|error| format!("{error:#}"))?;
    Ok(report.json())
}

/// clap's message without the usage below it.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

impl Command {
    /// The flags of a report; `None` for commands that are none.
    pub(crate) fn into_question(self) -> Option<Box<dyn Question>> {
        match self {
            Command::Report(args) => Some(Box::new(args)),
            Command::Peak(args) => Some(Box::new(args)),
            Command::Growth(args) => Some(Box::new(args)),
            Command::Leaks(args) => Some(Box::new(args)),
            Command::Flamegraph(args) => Some(Box::new(args)),
            Command::Export(args) => Some(Box::new(args)),
            Command::Merge(args) => Some(Box::new(args)),
            Command::Pinned(args) => Some(Box::new(args)),
            Command::Retrace(args) => Some(Box::new(args)),
            Command::Cache(args) => Some(Box::new(args)),
            Command::Replay(args) => Some(Box::new(args)),
            Command::Advise(args) => Some(Box::new(args)),
            Command::Diff(args) => Some(Box::new(args)),
            Command::Run(_) | Command::Doctor(_) | Command::Check(_) | Command::View(_) => None,
        }
    }
}
