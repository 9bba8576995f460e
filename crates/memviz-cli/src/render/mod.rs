//! What a terminal shows at the end of `memviz run`, and the same as JSON.
//!
//! A [`Summary`] in, text out, for any width from 60 columns. The blocks of text are here; tables are in `table`, colours and
//! widths in `paint`, short paths in `paths`.

mod numbers;
mod paint;
mod paths;
mod table;

use std::path::{Path, PathBuf};

use memviz_analyze::{Checked, Moment, Summary};

pub(crate) use numbers::thousands;

use crate::size::text_from_bytes;
use numbers::{duration, percent};
use paint::{Paint, Style, clean, columns_of, cut_end, glued, wrap};

/// Narrowest layout; narrower terminals wrap.
const MIN_WIDTH: usize = 60;
/// Columns of "Peak reserved" and the gap after it.
const LABEL_WIDTH: usize = 15;

/// The summary for a terminal of `width` columns. Paths below the current folder are shown relative to it.
pub fn summary_text(summary: &Summary, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    self::summary(&mut page, summary);
    page.finish()
}

/// The summary as JSON, sizes in bytes and times in nanoseconds.
pub fn summary_json(summary: &Summary) -> String {
    // Strings, numbers and lists only: nothing that serde_json could refuse.
    serde_json::to_string_pretty(summary).unwrap_or_default()
}

#[cfg(test)]
fn summary_text_in(summary: &Summary, width: usize, color: bool, cwd: &Path) -> String {
    let mut page = Page { cwd: cwd.to_owned(), ..Page::new(width, color) };
    self::summary(&mut page, summary);
    page.finish()
}

/// Draws the summary.
pub(crate) fn summary(page: &mut Page, summary: &Summary) {
    let cwd = &page.cwd.clone();
    title(page, summary);
    if summary.events.seen == 0 && summary.peak_active.active_bytes == 0 {
        page.blank();
        page.plain("No MLX buffer was allocated or freed while recording.");
    } else {
        numbers_block(page, summary);
        table::by_bytes(page, summary, cwd);
        table::by_count(page, summary, cwd);
    }
    ends(page, summary, cwd);
}

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

    fn blank(&mut self) {
        self.lines.push(String::new());
    }

    fn plain(&mut self, text: &str) {
        self.lines.extend(wrap(text, self.width));
    }

    /// A label, and text that wraps in a column of its own.
    fn labelled(&mut self, label: &str, style: Style, text: &str) {
        let wrapped = wrap(text, self.width.saturating_sub(LABEL_WIDTH));
        for (at, line) in wrapped.iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let padded = format!("{label:<LABEL_WIDTH$}");
            self.lines.push(format!("{}{}", self.paint.apply(Style::Dim, &padded), self.paint.apply(style, line)));
        }
    }

    /// A label, a number in bold, and what it means.
    fn number(&mut self, label: &str, number: &str, meaning: &str) {
        const NUMBER_WIDTH: usize = 10;
        let room = self.width.saturating_sub(LABEL_WIDTH + NUMBER_WIDTH + 3);
        for (at, line) in wrap(meaning, room).iter().enumerate() {
            let (label, number) = if at == 0 { (label, number) } else { ("", "") };
            let label = self.paint.apply(Style::Dim, &format!("{label:<LABEL_WIDTH$}"));
            let number = self.paint.apply(Style::Bold, &format!("{number:>NUMBER_WIDTH$}"));
            self.lines.push(format!("{label}{number}   {line}"));
        }
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

fn title(page: &mut Page, summary: &Summary) {
    let words: Vec<String> = summary.command.iter().map(|word| quoted(word)).collect();
    let name = "memviz";
    let command = cut_end(&words.join(" "), page.width.saturating_sub(columns_of(name) + 2));
    page.lines.push(format!("{}  {}", page.paint.apply(Style::Accent, name), page.paint.apply(Style::Bold, &command)));
    let mut facts = vec![duration(summary.duration_nanos)];
    facts.extend(named("mlx", &summary.mlx_version));
    facts.extend((!summary.backend.is_empty()).then(|| clean(&summary.backend)));
    facts.extend(named("python", &summary.python_version));
    let facts = cut_end(&facts.join(" · "), page.width.saturating_sub(8));
    page.lines.push(format!("{:8}{}", "", page.paint.apply(Style::Dim, &facts)));
}

fn named(name: &str, version: &str) -> Option<String> {
    (!version.is_empty()).then(|| format!("{name} {}", clean(version)))
}

/// A word of a command line, in quotes when a space in it would mislead.
fn quoted(word: &str) -> String {
    let word = clean(word);
    if word.is_empty() || word.contains(' ') { format!("'{word}'") } else { word }
}

fn numbers_block(page: &mut Page, summary: &Summary) {
    page.blank();
    let active = &summary.peak_active;
    page.number(
        "Peak active",
        &text_from_bytes(active.active_bytes),
        &format!("{}{}", moment(active), window(summary)),
    );
    let reserved = &summary.peak_reserved;
    let parts = format!(
        "{} ({} active, {} cached)",
        moment(reserved),
        size(reserved.active_bytes),
        size(reserved.cached_bytes)
    );
    page.number("Peak reserved", &text_from_bytes(reserved.reserved_bytes()), &parts);
    let end = &summary.end;
    let cached = format!("active, and {} cached", size(end.cached_bytes));
    page.number("At the end", &text_from_bytes(end.active_bytes), &cached);
    hit_rate(page, summary);
    events(page, summary);
}

fn size(bytes: u64) -> String {
    glued(&text_from_bytes(bytes))
}

/// Of which part of the run a peak is the peak, when it is not all of it.
fn window(summary: &Summary) -> String {
    if !summary.is_window {
        return String::new();
    }
    format!(" (of the last {} events: older ones were dropped)", thousands(summary.events.recorded))
}

fn moment(moment: &Moment) -> String {
    let step = moment.step.map_or_else(String::new, |step| format!(", step {}", thousands(step)));
    match moment.index {
        0 => format!("before the first event{step}"),
        index => format!("at {}{step}, event {}", glued(&duration(moment.time_nanos)), thousands(index)),
    }
}

fn hit_rate(page: &mut Page, summary: &Summary) {
    use memviz_trace::Action;
    let Some(rate) = summary.hit_rate else { return };
    let (hits, new) = (summary.action(Action::AllocReuse), summary.action(Action::AllocNew));
    let meaning = format!(
        "{} of {} allocations reused a cached buffer; {} came new",
        thousands(hits.events),
        thousands(hits.events + new.events),
        size(new.bytes),
    );
    page.number("Cache hits", &percent(rate), &meaning);
}

fn events(page: &mut Page, summary: &Summary) {
    let events = &summary.events;
    let noun = if events.seen == 1 { "event" } else { "events" };
    let mut parts = vec![format!("{noun} seen, {} dropped", thousands(events.dropped))];
    if events.filtered > 0 {
        parts.push(format!("{} below the minimum size", thousands(events.filtered)));
    }
    if events.lost > 0 {
        parts.push(format!("{} lost", thousands(events.lost)));
    }
    page.number("Events", &thousands(events.seen), &parts.join(", "));
}

/// Whether it adds up, what is missing, what was written.
fn ends(page: &mut Page, summary: &Summary, cwd: &Path) {
    page.blank();
    match &summary.checked {
        Checked::Violated { violation } => page.labelled("Not exact", Style::Bad, &clean(violation)),
        Checked::Ok { checkpoints: 0 } => {
            page.labelled("Checked", Style::Plain, "every event agrees with those before it")
        }
        Checked::Ok { checkpoints } => page.labelled("Checked", Style::Good, &agreement(*checkpoints)),
    }
    for note in &summary.notes {
        page.labelled("Note", Style::Warn, &clean(note));
    }
    for file in &summary.written {
        let path = paths::relative(&file.path, cwd);
        page.labelled("Wrote", Style::Plain, &format!("{} ({})", glued(&clean(&path)), size(file.size_bytes)));
    }
    if summary.written.iter().any(|file| file.path.ends_with(".pickle")) {
        page.labelled("", Style::Dim, "opens at https://pytorch.org/memory_viz");
    }
}

fn agreement(checkpoints: usize) -> String {
    let count = thousands(checkpoints as u64);
    let noun = if checkpoints == 1 { "checkpoint" } else { "checkpoints" };
    format!("sums agree with MLX's own counters at {count} {noun}")
}

#[cfg(test)]
mod tests;
