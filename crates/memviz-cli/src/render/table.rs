//! The one table that every report draws: columns of numbers, then a line of the program, then what more there is to say.
//!
//! Numbers take what they need, the line gets the rest, and the text after it a quarter of that when there is room. Where the
//! page is too narrow, columns go from the right; a line that is too long loses the function first, then the start of its
//! path. Whatever is left out stands in the JSON form. Not here: what the numbers mean.

use memviz_analyze::{LineKind, LineTotal, PrimitiveCount};

use super::Page;
use super::numbers::thousands;
use super::paint::{Style, clean, columns_of, cut_end, cut_start, padded};

const GAP: usize = 2;
/// "1023.9 MiB".
const BYTES_WIDTH: usize = 10;
/// "100.0%".
const SHARE_WIDTH: usize = 6;
const BAR_WIDTH: usize = 12;
/// From this page width on there are bars and columns made [`Table::wide`].
const WIDE_PAGE: usize = 110;
/// Columns of numbers go until the line has this room.
const LEAST_ROOM: usize = 24;
/// From this room for line and text after it on, that text is shown.
const ROOM_FOR_TRAILING: usize = 64;

/// A table under construction.
pub(crate) struct Table {
    title: String,
    place_head: String,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Align {
    Right,
    Left,
    Bar,
}

struct Column {
    head: String,
    align: Align,
    least_width: usize,
    is_wide: bool,
}

struct Row {
    cells: Vec<String>,
    place: Place,
    trailing: Vec<String>,
}

/// What a row is about.
pub(crate) enum Place {
    /// `path:line`, function.
    Line(String, String),
    /// What stands in its stead.
    Words(String),
}

impl Table {
    /// An empty table. `place_head` stands above what the rows are about: "line", "module".
    pub(crate) fn new(title: &str, place_head: &str) -> Table {
        Table { title: title.to_owned(), place_head: place_head.to_owned(), columns: Vec::new(), rows: Vec::new() }
    }

    fn column(mut self, head: &str, align: Align, least_width: usize) -> Table {
        let is_wide = align == Align::Bar;
        self.columns.push(Column { head: head.to_owned(), align, least_width, is_wide });
        self
    }

    /// A column of sizes.
    pub(crate) fn bytes(self, head: &str) -> Table {
        self.column(head, Align::Right, BYTES_WIDTH)
    }

    /// A column of percentages.
    pub(crate) fn share(self, head: &str) -> Table {
        self.column(head, Align::Right, SHARE_WIDTH)
    }

    /// A column of other numbers.
    pub(crate) fn number(self, head: &str) -> Table {
        self.column(head, Align::Right, 0)
    }

    /// A column of words.
    pub(crate) fn words(self, head: &str) -> Table {
        self.column(head, Align::Left, 0)
    }

    /// A column of [`bar`]s, on wide pages only.
    pub(crate) fn bars(self) -> Table {
        self.column("", Align::Bar, BAR_WIDTH)
    }

    /// Shows the last column on wide pages only.
    pub(crate) fn wide(mut self) -> Table {
        if let Some(column) = self.columns.last_mut() {
            column.is_wide = true;
        }
        self
    }

    /// A row: a cell for each column, and parts of a text after the line, which are left out whole from the last on.
    pub(crate) fn row(&mut self, cells: Vec<String>, place: Place, trailing: Vec<String>) {
        self.rows.push(Row { cells, place, trailing });
    }

    /// A last row for those that the table leaves out: "12 more lines".
    pub(crate) fn rest(&mut self, cells: Vec<String>, rows: u64, noun: &str) {
        if rows > 0 {
            let plural = if rows == 1 { "" } else { "s" };
            self.row(cells, Place::Words(format!("{} more {noun}{plural}", thousands(rows))), Vec::new());
        }
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Columns that fit a page: their positions and widths.
    fn shown(&self, page_width: usize) -> Vec<(usize, usize)> {
        let cell_width = |row: &Row, at: usize| row.cells.get(at).map_or(0, |cell| columns_of(cell));
        let width = |at: usize, column: &Column| {
            let cells = self.rows.iter().map(|row| cell_width(row, at)).max().unwrap_or(0);
            cells.max(columns_of(&column.head)).max(column.least_width)
        };
        let fits = |column: &Column| !column.is_wide || page_width >= WIDE_PAGE;
        let columns = self.columns.iter().enumerate().filter(|(_, column)| fits(column));
        let mut shown: Vec<(usize, usize)> = columns.map(|(at, column)| (at, width(at, column))).collect();
        let needed = self.rows.iter().map(|row| row.place.columns()).max().unwrap_or(0).min(LEAST_ROOM);
        while shown.len() > 1 && taken_by(&shown) + needed > page_width {
            shown.pop();
        }
        shown
    }

    /// Columns for the line and for the text after it.
    fn place_widths(&self, room: usize) -> (usize, usize) {
        let longest = |columns: fn(&Row) -> usize| self.rows.iter().map(columns).max().unwrap_or(0);
        let line = longest(|row| row.place.columns());
        let trailing = longest(|row| columns_of(&row.trailing.join(", ")));
        if room < ROOM_FOR_TRAILING {
            return (room, 0);
        }
        let for_line = line.min(room - GAP - trailing.min(room / 4));
        (for_line, trailing.min(room - GAP - for_line))
    }
}

fn taken_by(shown: &[(usize, usize)]) -> usize {
    shown.iter().map(|(_, width)| width + GAP).sum()
}

impl Page {
    /// Draws a table below a blank line; one without rows is left out.
    pub(crate) fn table(&mut self, table: &Table) {
        if table.is_empty() {
            return;
        }
        let shown = table.shown(self.width);
        let (line_width, trailing_width) = table.place_widths(self.width.saturating_sub(taken_by(&shown)));
        self.section(&table.title);
        let mut heads = String::new();
        for &(at, width) in &shown {
            heads.push_str(&table.columns[at].fit(&table.columns[at].head, width));
            heads.push_str(&format!("{:GAP$}", ""));
        }
        heads.push_str(&table.place_head);
        let heads = self.paint.apply(Style::Dim, &heads);
        self.lines.push(heads);
        for row in &table.rows {
            let cells = self.cells(table, row, &shown);
            let place = self.place(row, line_width, trailing_width);
            self.lines.push(cells + &place);
        }
    }

    fn cells(&self, table: &Table, row: &Row, shown: &[(usize, usize)]) -> String {
        let mut text = String::new();
        for (nth, &(at, width)) in shown.iter().enumerate() {
            let cell = table.columns[at].fit(row.cells.get(at).map_or("", |cell| cell), width);
            let style = match table.columns[at].align {
                _ if nth == 0 => Style::Bold,
                Align::Bar => Style::Accent,
                _ => Style::Plain,
            };
            text.push_str(&self.paint.apply(style, &cell));
            text.push_str(&format!("{:GAP$}", ""));
        }
        text
    }

    fn place(&self, row: &Row, line_width: usize, trailing_width: usize) -> String {
        let (plain, dim) = row.place.fit(line_width);
        let columns = columns_of(&plain) + columns_of(&dim);
        let mut text = plain + &self.paint.apply(Style::Dim, &dim);
        if trailing_width > 0 && !row.trailing.is_empty() {
            text.push_str(&format!("{:1$}", "", line_width.saturating_sub(columns) + GAP));
            text.push_str(&self.paint.apply(Style::Dim, &fit_parts(&row.trailing, trailing_width)));
        }
        text
    }
}

impl Column {
    fn fit(&self, text: &str, width: usize) -> String {
        match self.align {
            Align::Right => format!("{:1$}{text}", "", width.saturating_sub(columns_of(text))),
            Align::Left | Align::Bar => padded(text, width),
        }
    }
}

impl Place {
    /// A line of a program; line 0 is a file of which no more is known.
    pub(crate) fn line(page: &Page, file: &str, line: u32, function: &str) -> Place {
        Place::Line(page.short(file, line), clean(function))
    }

    /// Where the buffers of a row were built. `is_window`: older events fell out of the ring.
    pub(crate) fn of(page: &Page, row: &LineTotal, is_window: bool) -> Place {
        match row.kind {
            LineKind::Line => Place::line(page, &row.file, row.line, &row.function),
            LineKind::BeforeRecording if is_window => Place::Words("before the events kept".to_owned()),
            kind => Place::Words(kind.label().to_owned()),
        }
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
pub(crate) fn primitives(row: &LineTotal) -> Vec<String> {
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

/// A bar of eighths of a column.
pub(crate) fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (BAR_WIDTH * 8) as f64).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// As many as fit, and a sign that there are more.
fn fit_parts(all: &[String], columns: usize) -> String {
    let joined = |shown: usize| {
        let more = if shown < all.len() { ", …" } else { "" };
        format!("{}{more}", all[..shown].join(", "))
    };
    let shown = (1..=all.len()).rev().find(|shown| columns_of(&joined(*shown)) <= columns).unwrap_or(all.len().min(1));
    cut_end(&joined(shown), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_left_out_whole() {
        let all = ["Matmul 64", "Add 32", "Exp 1"].map(str::to_owned);
        assert_eq!(fit_parts(&all, 24), "Matmul 64, Add 32, Exp 1");
        assert_eq!(fit_parts(&all, 23), "Matmul 64, Add 32, …");
        assert_eq!(fit_parts(&all, 19), "Matmul 64, …");
        assert_eq!(fit_parts(&all, 8), "Matmul …");
        assert_eq!(fit_parts(&[], 8), "");
    }

    #[test]
    fn bars_grow_by_eighths() {
        assert_eq!([0.0, 0.0001, 0.01, 0.5, 1.0].map(bar), ["", "", "▏", "██████", "████████████"]);
    }

    #[test]
    fn many_columns_leave_room_for_the_line() {
        let mut table = Table::new("Everything", "line").bytes("bytes").bars().number("buffers");
        for head in ["a step", "first", "last", "most", "freed"] {
            table = table.bytes(head);
        }
        let cells: Vec<String> = (0..8).map(|cell| format!("{cell} MiB")).collect();
        table.row(cells, Place::Line("a/very/long/path/to/some/train.py:12".into(), "loss".into()), Vec::new());
        for width in 60..200 {
            let mut page = Page::new(width, false);
            page.table(&table);
            let text = page.finish();
            assert!(text.contains("train.py:12"), "{width}: {text}");
            assert!(text.lines().all(|line| columns_of(line) <= width), "{width}: {text}");
        }
    }
}
