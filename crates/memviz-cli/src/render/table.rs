//! The two tables of lines: by bytes with a bar, by number of buffers.
//!
//! Numbers take what they need; the line gets the rest, and its primitives a quarter of that when there is room. A line that
//! is too long loses the function first, then the start of its path.

use std::path::Path;

use memviz_analyze::{LineKind, LineTotal, PrimitiveCount, Rest, Summary};

use super::numbers::{percent, thousands};
use super::paint::{Style, clean, columns_of, cut_end, cut_start, padded};
use super::{Page, paths};
use crate::size::text_from_bytes;

const GAP: usize = 2;
const BYTES_WIDTH: usize = 10;
const SHARE_WIDTH: usize = 6;
const BAR_WIDTH: usize = 12;
/// From this width on there is a bar.
const WIDTH_FOR_BAR: usize = 110;
/// From this room for line and primitives on, primitives are shown.
const ROOM_FOR_PRIMITIVES: usize = 64;

/// Lines with most bytes at the active peak.
pub(super) fn by_bytes(page: &mut Page, summary: &Summary, cwd: &Path) {
    let total = summary.peak_active.active_bytes;
    let has_bar = page.width >= WIDTH_FOR_BAR;
    let numbers = |bytes: u64, count: u64| {
        let share = if total == 0 { 0.0 } else { bytes as f64 / total as f64 };
        let count = if count == 0 { String::new() } else { thousands(count) };
        let mut cells = vec![text_from_bytes(bytes), percent(share)];
        cells.extend(has_bar.then(|| bar(share)));
        cells.push(count);
        cells
    };
    let mut table = Table::new(page, summary, "Active at the peak, by the line that built it");
    table.heads = vec![("bytes", BYTES_WIDTH), ("share", SHARE_WIDTH), ("buffers", table.count_width(summary))];
    if has_bar {
        table.heads.insert(2, ("", BAR_WIDTH));
    }
    table.add(&summary.top_by_bytes, summary.rest_by_bytes, cwd, numbers);
    table.draw(page);
}

/// Lines with most buffers at the active peak.
pub(super) fn by_count(page: &mut Page, summary: &Summary, cwd: &Path) {
    if summary.top_by_count.is_empty() {
        return;
    }
    let mut table = Table::new(page, summary, "The same, by number of buffers");
    table.heads = vec![("buffers", table.count_width(summary)), ("bytes", BYTES_WIDTH)];
    let numbers = |bytes: u64, count: u64| vec![thousands(count), text_from_bytes(bytes)];
    table.add(&summary.top_by_count, summary.rest_by_count, cwd, numbers);
    table.draw(page);
}

/// A bar of eighths of a column.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (BAR_WIDTH * 8) as f64).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

struct Table {
    title: &'static str,
    width: usize,
    /// Older events fell out of the ring.
    is_window: bool,
    /// Columns of numbers: head and width.
    heads: Vec<(&'static str, usize)>,
    rows: Vec<Row>,
}

struct Row {
    numbers: Vec<String>,
    place: Place,
    primitives: Vec<String>,
}

/// Where the buffers of a row were built.
enum Place {
    /// `path:line`, function.
    Line(String, String),
    /// What stands in its stead.
    Words(String),
}

impl Place {
    fn of(row: &LineTotal, is_window: bool, cwd: &Path) -> Place {
        match row.kind {
            LineKind::Line => {}
            LineKind::BeforeRecording if is_window => return Place::Words("before the events kept".to_owned()),
            kind => return Place::Words(kind.label().to_owned()),
        }
        let path = clean(&paths::short(&row.file, cwd));
        let place = if row.line == 0 { path } else { format!("{path}:{}", row.line) };
        Place::Line(place, clean(&row.function))
    }

    fn columns(&self) -> usize {
        match self {
            Place::Line(place, function) => columns_of(place) + 1 + columns_of(function),
            Place::Words(words) => columns_of(words),
        }
    }

    /// Text in at most `columns`: what stays plain, and what is dimmed after it.
    fn fit(&self, columns: usize) -> (String, String) {
        match self {
            Place::Words(words) => (String::new(), cut_end(words, columns)),
            Place::Line(place, function) => {
                let place = cut_start(place, columns);
                let room = columns.saturating_sub(columns_of(&place) + 1);
                // A function of which less than this shows says nothing.
                let shows = room >= columns_of(function).min(6) && !function.is_empty();
                let function = if shows { format!(" {}", cut_end(function, room)) } else { String::new() };
                (place, function)
            }
        }
    }
}

/// "Matmul 64", "Add 32"; a lone primitive that made every buffer needs no number.
fn primitives(row: &LineTotal) -> Vec<String> {
    let name = |primitive: &PrimitiveCount| match primitive.primitive.as_str() {
        "" => "no primitive".to_owned(),
        name => clean(name),
    };
    match row.primitives.as_slice() {
        _ if row.kind != LineKind::Line => Vec::new(),
        [only] => vec![name(only)],
        many => many.iter().map(|one| format!("{} {}", name(one), thousands(one.count))).collect(),
    }
}

/// As many as fit, and a sign that there are more.
fn fit_primitives(all: &[String], columns: usize) -> String {
    let joined = |shown: usize| {
        let more = if shown < all.len() { ", …" } else { "" };
        format!("{}{more}", all[..shown].join(", "))
    };
    let shown = (1..=all.len()).rev().find(|shown| columns_of(&joined(*shown)) <= columns).unwrap_or(all.len().min(1));
    cut_end(&joined(shown), columns)
}

impl Table {
    fn new(page: &Page, summary: &Summary, title: &'static str) -> Table {
        Table { title, width: page.width, is_window: summary.is_window, heads: Vec::new(), rows: Vec::new() }
    }

    fn count_width(&self, summary: &Summary) -> usize {
        let rows = summary.top_by_count.iter().chain(&summary.top_by_bytes).map(|row| row.count);
        let most = rows.chain([summary.rest_by_bytes.count, summary.rest_by_count.count]).max().unwrap_or(0);
        thousands(most).len().max("buffers".len())
    }

    fn add(&mut self, lines: &[LineTotal], rest: Rest, cwd: &Path, numbers: impl Fn(u64, u64) -> Vec<String>) {
        for line in lines {
            let (place, primitives) = (Place::of(line, self.is_window, cwd), primitives(line));
            self.rows.push(Row { numbers: numbers(line.bytes, line.count), place, primitives });
        }
        if rest.lines > 0 {
            let noun = if rest.lines == 1 { "more line" } else { "more lines" };
            let place = Place::Words(format!("{} {noun}", thousands(rest.lines)));
            self.rows.push(Row { numbers: numbers(rest.bytes, rest.count), place, primitives: Vec::new() });
        }
    }

    /// Columns for the line and, when there is room, for its primitives.
    fn columns(&self) -> (usize, usize) {
        let numbers: usize = self.heads.iter().map(|(_, width)| width + GAP).sum();
        let room = self.width.saturating_sub(numbers);
        let longest = |columns: fn(&Row) -> usize| self.rows.iter().map(columns).max().unwrap_or(0);
        let line = longest(|row| row.place.columns());
        let primitives = longest(|row| columns_of(&row.primitives.join(", ")));
        if room < ROOM_FOR_PRIMITIVES {
            return (room, 0);
        }
        let for_line = line.min(room - GAP - primitives.min(room / 4));
        (for_line, primitives.min(room - GAP - for_line))
    }

    fn draw(&self, page: &mut Page) {
        let paint = page.paint;
        let (line_width, primitives_width) = self.columns();
        page.blank();
        page.lines.push(paint.apply(Style::Bold, self.title));
        let mut heads: String = self.heads.iter().map(|(head, width)| format!("{head:>width$}{:GAP$}", "")).collect();
        heads.push_str("line");
        page.lines.push(paint.apply(Style::Dim, &heads));
        for row in &self.rows {
            let mut text = self.numbers(page, row);
            let (place, after) = row.place.fit(line_width);
            let columns = columns_of(&place) + columns_of(&after);
            let blanks = if row.primitives.is_empty() { 0 } else { line_width.saturating_sub(columns) + GAP };
            text.push_str(&place);
            text.push_str(&paint.apply(Style::Dim, &after));
            if primitives_width > 0 {
                text.push_str(&format!("{:blanks$}", ""));
                text.push_str(&paint.apply(Style::Dim, &fit_primitives(&row.primitives, primitives_width)));
            }
            page.lines.push(text);
        }
    }

    fn numbers(&self, page: &Page, row: &Row) -> String {
        let mut text = String::new();
        for (at, ((head, width), number)) in self.heads.iter().zip(&row.numbers).enumerate() {
            let cell = if head.is_empty() { padded(number, *width) } else { format!("{number:>width$}") };
            let style = match at {
                0 => Style::Bold,
                _ if head.is_empty() => Style::Accent,
                _ => Style::Plain,
            };
            text.push_str(&page.paint.apply(style, &cell));
            text.push_str(&format!("{:GAP$}", ""));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primitives_are_left_out_whole() {
        let all = ["Matmul 64", "Add 32", "Exp 1"].map(str::to_owned);
        assert_eq!(fit_primitives(&all, 24), "Matmul 64, Add 32, Exp 1");
        assert_eq!(fit_primitives(&all, 23), "Matmul 64, Add 32, …");
        assert_eq!(fit_primitives(&all, 19), "Matmul 64, …");
        assert_eq!(fit_primitives(&all, 8), "Matmul …");
        assert_eq!(fit_primitives(&[], 8), "");
    }

    #[test]
    fn bars_grow_by_eighths() {
        assert_eq!([0.0, 0.0001, 0.01, 0.5, 1.0].map(bar), ["", "", "▏", "██████", "████████████"]);
    }
}
