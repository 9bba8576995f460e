//! `memviz diff A B`: two runs compared, or two moments of one.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use memviz_analyze::{ChangedLine, Comparison, Diff, Instant, LineKind, Side};

use crate::answer::{Question, Report, to_json};
use crate::input::{Asked, Source, choose};
use crate::render::{Page, Place, Style, Table, clean, moment, size, thousands};
use crate::size::{bytes_from_text, text_from_bytes};

const EXAMPLES: &str = "\
Exit code: 0, 1 where memory grew by more than --fail-over, 2 error

Examples:
  memviz diff old.memviz new.memviz                    peak against peak, end against end
  memviz diff run.memviz --at 5:50                     the end of step 5 against that of step 50
  memviz diff old.memviz new.memviz --fail-over 10MiB  fail a build on a regression";
const ROWS: usize = 15;

/// Flags of `diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    /// A recording
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// A second recording; without it, two moments of the first are compared
    #[arg(value_name = "AFTER")]
    after: Option<PathBuf>,
    /// Two moments: each last, peak, start, a step (12), or a time (1.5s, 200ms)
    #[arg(long, value_name = "A:B")]
    at: Option<Moments>,
    /// Exit with 1 if active memory grew by more than this
    #[arg(long, value_name = "SIZE", value_parser = bytes_from_text)]
    fail_over: Option<u64>,
    /// Of runs of several processes, the one to compare (default: the one with the highest peak)
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `A:B`.
#[derive(Clone, Copy, Debug)]
struct Moments(Instant, Instant);

impl std::str::FromStr for Moments {
    type Err = String;

    fn from_str(text: &str) -> Result<Moments, String> {
        let (before, after) =
            text.split_once(':').ok_or("expected two moments with a colon between them, such as 5:50")?;
        Ok(Moments(before.parse()?, after.parse()?))
    }
}

impl DiffArgs {
    /// The recordings of the first file, then those of the second; of one file, itself twice.
    fn sides<'a>(&self, sources: &'a [Source]) -> anyhow::Result<(&'a Source, &'a Source)> {
        let Some(after) = &self.after else {
            anyhow::ensure!(
                self.at.is_some(),
                "compare with what? Give a second recording, or two moments by --at 5:50"
            );
            let only = choose(sources, self.rank)?;
            return Ok((only, only));
        };
        let first = match sources.len() {
            2 => 1,
            many if *after == self.before => many / 2,
            _ => sources.iter().take_while(|source| source.is_of(&self.before)).count(),
        };
        let (before, after) = sources.split_at_checked(first).context("no recording was given")?;
        Ok((choose(before, self.rank)?, choose(after, self.rank)?))
    }
}

impl Source {
    fn is_of(&self, path: &Path) -> bool {
        let path = path.display().to_string();
        self.label == path || self.label.strip_prefix(&path).is_some_and(|rest| rest.starts_with(" rank "))
    }
}

impl Question for DiffArgs {
    fn asked(&self) -> Asked {
        let files = std::iter::once(&self.before).chain(&self.after).cloned().collect();
        Asked { files, json: self.json }
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        let (before, after) = self.sides(sources)?;
        let side = |source: &'_ Source, at: Instant| at.resolve(&source.trace).map_err(anyhow::Error::msg);
        let diff = match self.at {
            None => Diff::of_runs(&before.trace, &after.trace),
            Some(Moments(old, new)) => Diff::of_moments(
                Side { trace: &before.trace, after_events: side(before, old)? },
                Side { trace: &after.trace, after_events: side(after, new)? },
            ),
        };
        Ok(Box::new(match self.fail_over {
            Some(bytes) => diff.fail_over(bytes),
            None => diff,
        }))
    }
}

impl Report for Diff {
    fn json(&self) -> String {
        to_json(self)
    }

    fn draw(&self, page: &mut Page) {
        page.title("memviz diff", &self.before);
        if self.after != self.before {
            page.title("     against", &self.after);
        }
        for comparison in &self.comparisons {
            draw(page, comparison);
        }
        if let Some(limit) = self.fail_over_bytes {
            page.blank();
            let (label, style, text) = match self.is_over {
                true => ("Over", Style::Bad, "active memory grew by more than"),
                false => ("Within", Style::Good, "active memory did not grow by more than"),
            };
            page.labelled(label, style, &format!("{text} {}", size(limit)));
        }
    }

    fn is_finding(&self) -> bool {
        self.is_over
    }
}

fn draw(page: &mut Page, one: &Comparison) {
    page.section(match one.what {
        "peak" => "Peak against peak",
        "end" => "End against end",
        _ => "Moment against moment",
    });
    let row = |bytes: u64, count: u64, at: String| {
        (text_from_bytes(bytes), format!("{} {}, {at}", thousands(count), noun(count)))
    };
    for (label, (number, meaning)) in [
        ("Before", row(one.before.active_bytes, one.before_count, moment(&one.before))),
        ("After", row(one.after.active_bytes, one.after_count, moment(&one.after))),
        (
            "Change",
            (
                signed_bytes(one.change_bytes),
                format!("{} {}", signed(one.change_count), noun(one.change_count.unsigned_abs())),
            ),
        ),
    ] {
        page.number(label, &number, &meaning);
    }
    lines(page, one);
    primitives(page, one);
}

fn lines(page: &mut Page, one: &Comparison) {
    let table = Table::new("By line", "line").bytes("change").number("buffers").bytes("before");
    let mut table = table.bytes("after");
    for row in one.lines.iter().take(ROWS) {
        let cells = vec![
            signed_bytes(row.change_bytes),
            signed(row.change_count),
            text_from_bytes(row.before.bytes),
            text_from_bytes(row.after.bytes),
        ];
        let moved = row.moved_from.map(|line| format!("was line {line}"));
        table.row(cells, place(page, row), moved.into_iter().collect());
    }
    table.rest(Vec::new(), one.lines.len().saturating_sub(ROWS) as u64, "line");
    page.table(&table);
}

fn place(page: &Page, row: &ChangedLine) -> Place {
    match row.kind {
        LineKind::Line => Place::line(page, &row.file, row.line, &row.function),
        kind => Place::Words(kind.label().to_owned()),
    }
}

fn primitives(page: &mut Page, one: &Comparison) {
    let table = Table::new("By primitive", "primitive").bytes("change").number("buffers").bytes("before");
    let mut table = table.bytes("after");
    for row in one.primitives.iter().take(ROWS) {
        let cells = vec![
            signed_bytes(row.change_bytes),
            signed(row.change_count),
            text_from_bytes(row.before.bytes),
            text_from_bytes(row.after.bytes),
        ];
        let name = if row.primitive.is_empty() { "no primitive".to_owned() } else { clean(&row.primitive) };
        table.row(cells, Place::Words(name), Vec::new());
    }
    table.rest(Vec::new(), one.primitives.len().saturating_sub(ROWS) as u64, "primitive");
    page.table(&table);
}

/// "+1.0 MiB", "-512 B", "0 B".
fn signed_bytes(change: i64) -> String {
    format!("{}{}", sign(change), text_from_bytes(change.unsigned_abs()))
}

fn noun(count: u64) -> &'static str {
    if count == 1 { "buffer" } else { "buffers" }
}

fn signed(change: i64) -> String {
    format!("{}{}", sign(change), thousands(change.unsigned_abs()))
}

fn sign(change: i64) -> &'static str {
    match change {
        1.. => "+",
        0 => "",
        _ => "-",
    }
}
