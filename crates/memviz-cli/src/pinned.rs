//! `memviz pinned FILE`: what keeps memory alive although nobody seems to use it.

use memviz_analyze::{Amount, Instant, Pinned, StackLine, Waiting, WithoutArrayKind};

use crate::answer::{Question, Report, to_json};
use crate::input::{Asked, Input, Source};
use crate::render::{Page, Place, Style, Table, clean, moment, size, thousands};
use crate::size::text_from_bytes;

const EXAMPLES: &str = "\
Needs a recording of level arrays: memviz run --level arrays -o run.memviz train.py

Examples:
  memviz pinned run.memviz             at the end of the run
  memviz pinned run.memviz --at peak   when most bytes were active
  memviz pinned run.memviz --at 12     at the end of step 12";
/// Rows of a table on a terminal.
const ROWS: usize = 10;

/// Flags of `pinned`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PinnedArgs {
    #[command(flatten)]
    input: Input,
    /// The moment: last, peak, start, a step (12), or a time (1.5s, 200ms)
    #[arg(long, value_name = "MOMENT", default_value = "last")]
    at: Instant,
}

impl Question for PinnedArgs {
    fn asked(&self) -> Asked {
        self.input.asked()
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        let trace = &self.input.choose(sources)?.trace;
        let at = self.at.resolve(trace).map_err(anyhow::Error::msg)?;
        Ok(Box::new(Pinned::new(trace, at)?))
    }
}

impl Report for Pinned {
    fn json(&self) -> String {
        to_json(self)
    }

    fn draw(&self, page: &mut Page) {
        page.title("memviz pinned", &self.about);
        page.blank();
        let active = text_from_bytes(self.moment.active_bytes);
        page.number("Active", &active, &moment(&self.moment));
        numbers(page, self);
        views(page, self);
        waiting(page, self);
        without_arrays(page, self);
        notes(page, self);
    }
}

fn numbers(page: &mut Page, pinned: &Pinned) {
    let views: u64 = pinned.views.iter().map(|row| row.pinned_bytes).fold(0, u64::saturating_add);
    page.number("By views", &text_from_bytes(views), "that no array reaches, in buffers kept by small views");
    let holds = pinned.waiting_holds;
    let arrays = format!(
        "in {}, held by {}",
        buffers(holds.count),
        counted(pinned.waiting_count, "array that waits", "arrays that wait")
    );
    page.number("By waiting", &text_from_bytes(holds.bytes), &format!("{arrays} for an evaluation"));
    let orphans: u64 = pinned.without_arrays.iter().map(|row| row.bytes).fold(0, u64::saturating_add);
    page.number("No array", &text_from_bytes(orphans), "in buffers that no array alive uses");
    let compiled =
        format!("in {} made while tracing compiled functions; see memviz retrace", buffers(pinned.compiled.count));
    page.number("By compile", &text_from_bytes(pinned.compiled.bytes), &compiled);
}

fn buffers(count: u64) -> String {
    counted(count, "buffer", "buffers")
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(count), if count == 1 { one } else { many })
}

/// A line, or that there is none.
pub(crate) fn place(page: &Page, line: &StackLine) -> Place {
    if *line == StackLine::default() {
        return Place::Words("no Python line".to_owned());
    }
    Place::line(page, &line.file, line.line, &line.function)
}

/// "train.py:12" within a text.
pub(crate) fn short(page: &Page, line: &StackLine) -> String {
    if *line == StackLine::default() { "no Python line".to_owned() } else { page.short(&line.file, line.line) }
}

fn views(page: &mut Page, pinned: &Pinned) {
    let title = "Small views that keep big buffers alive, by the line that built the buffer";
    let mut table =
        Table::new(title, "buffer built at").bytes("pinned").bytes("buffers").bytes("in use").number("count");
    for row in pinned.views.iter().take(ROWS) {
        let cells = vec![
            text_from_bytes(row.pinned_bytes),
            text_from_bytes(row.bytes),
            text_from_bytes(row.reached_bytes),
            thousands(row.count),
        ];
        let view = format!("kept by {} at {}", primitive(&row.primitive), short(page, &row.view));
        table.row(cells, place(page, &row.buffer), vec![view]);
    }
    rest(&mut table, pinned.views.len());
    page.table(&table);
    if let Some(row) = pinned.views.first() {
        let text = format!(
            "{} at {}: {} of views made at {}. A copy of the view (mx.contiguous, or + 0) lets the buffer go.",
            of_buffers(Amount { count: row.count, bytes: row.bytes }),
            short(page, &row.buffer),
            size(row.reached_bytes),
            short(page, &row.view),
        );
        page.plain(&text);
    }
}

fn of_buffers(sum: Amount) -> String {
    format!("{} in {}", size(sum.bytes), buffers(sum.count))
}

fn primitive(name: &str) -> String {
    if name.is_empty() { "an array".to_owned() } else { clean(name) }
}

fn rest(table: &mut Table, rows: usize) {
    table.rest(Vec::new(), rows.saturating_sub(ROWS) as u64, "line");
}

fn waiting(page: &mut Page, pinned: &Pinned) {
    let title = "Arrays that wait for an evaluation, by the line that built them";
    let mut table = Table::new(title, "line").number("arrays").bytes("hold").number("buffers").bytes("will need");
    for row in pinned.waiting.iter().take(ROWS) {
        let cells = vec![
            thousands(row.count),
            text_from_bytes(row.holds.bytes),
            thousands(row.holds.count),
            text_from_bytes(row.needs_bytes),
        ];
        table.row(cells, place(page, &row.line), held(page, row));
    }
    rest(&mut table, pinned.waiting.len());
    page.table(&table);
}

/// "hold 16 of train.py:31".
fn held(page: &Page, row: &Waiting) -> Vec<String> {
    row.held_lines.iter().map(|held| format!("hold {} of {}", thousands(held.count), short(page, &held.line))).collect()
}

fn without_arrays(page: &mut Page, pinned: &Pinned) {
    let title = "Buffers that no array alive uses, by the line that built them";
    let mut table = Table::new(title, "line").bytes("bytes").number("buffers").words("why");
    for row in pinned.without_arrays.iter().take(ROWS) {
        let why = match row.kind {
            WithoutArrayKind::ArraysDied => "arrays died",
            WithoutArrayKind::Scratch => "scratch",
        };
        let cells = vec![text_from_bytes(row.bytes), thousands(row.count), why.to_owned()];
        table.row(cells, place(page, &row.line), vec![primitive(&row.primitive)]);
    }
    rest(&mut table, pinned.without_arrays.len());
    page.table(&table);
}

fn notes(page: &mut Page, pinned: &Pinned) {
    page.blank();
    if pinned.unknown.count > 0 {
        let text = format!(
            "{} used by arrays from before the recording: what keeps these is not known",
            of_buffers(pinned.unknown)
        );
        page.labelled("Note", Style::Warn, &text);
    }
    let text = "references from Python are not recorded: an array that is alive is held by a variable, a list, a NumPy view or a cycle";
    page.labelled("Note", Style::Dim, text);
}
