//! Text for a terminal: the page that reports draw on.
//!
//! [`Page`] knows its width (60 columns at least), colours and how to shorten paths; [`Table`] is the one table of all reports.
//! The summary's text is in `summary`; that of another report is in the file of its command.

mod numbers;
mod paint;
mod paths;
mod summary;
mod table;

use std::path::PathBuf;

use memviz_analyze::{About, Moment};

pub(crate) use numbers::{duration, percent, thousands};
pub(crate) use paint::{Style, clean, glued};
pub(crate) use summary::draw as summary;
pub use summary::{summary_json, summary_text};
pub(crate) use table::{Place, Table, bar, primitives};

use crate::size::text_from_bytes;
use paint::{Paint, columns_of, cut_end, wrap};

/// Narrowest layout; narrower terminals wrap.
const MIN_WIDTH: usize = 60;
/// Columns of "Peak reserved" and the gap after it.
const LABEL_WIDTH: usize = 15;

/// Lines of a text under construction.
pub(crate) struct Page {
    lines: Vec<String>,
    width: usize,
    paint: Paint,
    /// Paths below it are shown relative to it.
    cwd: PathBuf,
}

impl Page {
    /// An empty page of `width` columns, [`MIN_WIDTH`] at least.
    pub(crate) fn new(width: usize, color: bool) -> Page {
        let cwd = std::env::current_dir().unwrap_or_default();
        Page { lines: Vec::new(), width: width.max(MIN_WIDTH), paint: Paint { color }, cwd }
    }

    /// A page whose paths are shown relative to `cwd`.
    #[cfg(test)]
    pub(crate) fn below(cwd: &std::path::Path, width: usize, color: bool) -> Page {
        Page { cwd: cwd.to_owned(), ..Page::new(width, color) }
    }

    /// An empty line.
    pub(crate) fn blank(&mut self) {
        self.lines.push(String::new());
    }

    /// What the report is, the command line that was recorded, and facts about that run.
    pub(crate) fn title(&mut self, name: &str, about: &About) {
        let words: Vec<String> = about.command.iter().map(|word| quoted(word)).collect();
        let command = cut_end(&words.join(" "), self.width.saturating_sub(columns_of(name) + 2));
        let title = format!("{}  {}", self.paint.apply(Style::Accent, name), self.paint.apply(Style::Bold, &command));
        self.lines.push(title);
        let mut facts = vec![duration(about.duration_nanos)];
        facts.extend(named("mlx", &about.mlx_version));
        facts.extend((!about.backend.is_empty()).then(|| clean(&about.backend)));
        facts.extend(named("python", &about.python_version));
        let indent = columns_of(name) + 2;
        let facts = cut_end(&facts.join(" · "), self.width.saturating_sub(indent));
        self.lines.push(format!("{:indent$}{}", "", self.paint.apply(Style::Dim, &facts)));
    }

    /// A blank line and the title of what follows.
    pub(crate) fn section(&mut self, title: &str) {
        self.blank();
        for line in wrap(title, self.width) {
            self.lines.push(self.paint.apply(Style::Bold, &line));
        }
    }

    /// A line as it is, however long.
    pub(crate) fn verbatim(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }

    /// Text that wraps.
    pub(crate) fn plain(&mut self, text: &str) {
        self.lines.extend(wrap(text, self.width));
    }

    /// A label, and text that wraps in a column of its own.
    pub(crate) fn labelled(&mut self, label: &str, style: Style, text: &str) {
        let wrapped = wrap(text, self.width.saturating_sub(LABEL_WIDTH));
        for (at, line) in wrapped.iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let padded = format!("{label:<LABEL_WIDTH$}");
            self.lines.push(format!("{}{}", self.paint.apply(Style::Dim, &padded), self.paint.apply(style, line)));
        }
    }

    /// A label, a number in bold, and what it means.
    pub(crate) fn number(&mut self, label: &str, number: &str, meaning: &str) {
        const NUMBER_WIDTH: usize = 10;
        let room = self.width.saturating_sub(LABEL_WIDTH + NUMBER_WIDTH + 3);
        for (at, line) in wrap(meaning, room).iter().enumerate() {
            let (label, number) = if at == 0 { (label, number) } else { ("", "") };
            let label = self.paint.apply(Style::Dim, &format!("{label:<LABEL_WIDTH$}"));
            let number = self.paint.apply(Style::Bold, &format!("{number:>NUMBER_WIDTH$}"));
            self.lines.push(format!("{label}{number}   {line}"));
        }
    }

    /// "train.py:57", as short as it stays clear.
    pub(crate) fn short(&self, file: &str, line: u32) -> String {
        let path = clean(&paths::short(file, &self.cwd));
        if line == 0 { path } else { format!("{path}:{line}") }
    }

    /// The text.
    pub(crate) fn finish(self) -> String {
        let mut text = String::new();
        for line in self.lines {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn named(name: &str, version: &str) -> Option<String> {
    (!version.is_empty()).then(|| format!("{name} {}", clean(version)))
}

/// A word of a command line, in quotes when a space in it would mislead.
fn quoted(word: &str) -> String {
    let word = clean(word);
    if word.is_empty() || word.contains(' ') { format!("'{word}'") } else { word }
}

/// A size within a sentence: it does not break between number and unit.
pub(crate) fn size(bytes: u64) -> String {
    glued(&text_from_bytes(bytes))
}

/// "at 24 ms, step 1, event 24".
pub(crate) fn moment(moment: &Moment) -> String {
    let step = moment.step.map_or_else(String::new, |step| format!(", step {}", thousands(step)));
    match moment.index {
        0 => format!("before the first event{step}"),
        index => format!("at {}{step}, event {}", glued(&duration(moment.time_nanos)), thousands(index)),
    }
}

#[cfg(test)]
mod tests;
