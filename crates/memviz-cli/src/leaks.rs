//! `memviz leaks FILE`: what is alive at the end and was not at the start, by line, with number and age.

use std::str::FromStr;

use memviz_analyze::{Amount, Instant, LeakLine, Leaks};

use crate::answer::{Question, Report, to_json};
use crate::input::{Asked, Input, Source};
use crate::render::{Page, Place, Style, Table, duration, moment, primitives, size, thousands};
use crate::size::{bytes_from_text, text_from_bytes};

const EXAMPLES: &str = "\
Exit code: 0, with --fail-over 1 if more bytes are left, 2 error

Examples:
  memviz leaks run.memviz                   what the program left, by the line that built it
  memviz leaks run.memviz --idle 10:50      between the ends of steps 10 and 50
  memviz leaks run.memviz --fail-over 1MB   fail a build on a leak";

/// Flags of `leaks`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LeaksArgs {
    #[command(flatten)]
    input: Input,
    /// Two moments at rest, each start, last, a time (1.5s) or a step (12: its end)
    #[arg(long, value_name = "A:B", default_value = "start:last")]
    idle: Pair,
    /// Exit with 1 if more bytes than that are left
    #[arg(long, value_name = "SIZE", value_parser = bytes_from_text)]
    fail_over: Option<u64>,
    /// Number of lines
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
}

#[derive(Clone, Copy, Debug)]
struct Pair(Instant, Instant);

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Pair, String> {
        let (begin, end) = text.split_once(':').ok_or("expected two moments, such as 10:50 or 1.5s:last")?;
        Ok(Pair(begin.parse()?, end.parse()?))
    }
}

impl Question for LeaksArgs {
    fn asked(&self) -> Asked {
        self.input.asked()
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        let Pair(begin, end) = self.idle;
        let leaks = Leaks::new(&self.input.choose(sources)?.trace, (begin, end), self.fail_over, self.top);
        Ok(Box::new(leaks.map_err(anyhow::Error::msg)?))
    }
}

impl Report for Leaks {
    fn json(&self) -> String {
        to_json(self)
    }

    fn draw(&self, page: &mut Page) {
        page.title("memviz leaks", &self.about);
        page.blank();
        let amount = |of: Amount| format!("{} buffer{}", thousands(of.count), if of.count == 1 { "" } else { "s" });
        page.labelled(
            "From",
            Style::Plain,
            &format!("{}: {} active", moment(&self.begin), size(self.begin.active_bytes)),
        );
        page.labelled("To", Style::Plain, &format!("{}: {} active", moment(&self.end), size(self.end.active_bytes)));
        page.number(
            "Left",
            &text_from_bytes(self.leaked.bytes),
            &format!("in {} that did not exist before", amount(self.leaked)),
        );
        page.number(
            "Kept",
            &text_from_bytes(self.kept.bytes),
            &format!("in {} alive at both moments", amount(self.kept)),
        );
        page.number(
            "Freed",
            &text_from_bytes(self.freed.bytes),
            &format!("in {} of the first moment", amount(self.freed)),
        );
        if let Some(limit) = self.fail_over_bytes {
            let (style, text) = if self.is_over { (Style::Bad, "more than") } else { (Style::Good, "within") };
            page.labelled("Limit", style, &format!("{text} {}", size(limit)));
        }
        rows(page, self);
    }

    fn is_finding(&self) -> bool {
        self.is_over
    }
}

fn rows(page: &mut Page, leaks: &Leaks) {
    let mut table = Table::new("Left, by the line that built it", "line");
    table = table.bytes("bytes").number("buffers").number("oldest").number("newest");
    for LeakLine { line, oldest_nanos, newest_nanos } in &leaks.lines {
        let cells =
            vec![text_from_bytes(line.bytes), thousands(line.count), duration(*oldest_nanos), duration(*newest_nanos)];
        table.row(cells, Place::of(page, line, false), primitives(line));
    }
    let rest = leaks.rest;
    table.rest(vec![text_from_bytes(rest.bytes), thousands(rest.count)], rest.lines, "line");
    page.table(&table);
}
