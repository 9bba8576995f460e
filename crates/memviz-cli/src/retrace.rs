//! `memviz retrace FILE`: compiled functions that are traced again and again, and what each trace keeps.

use memviz_analyze::{Cause, Instant, Retrace, TracedFunction};

use crate::answer::{Question, Report, to_json};
use crate::input::{Asked, Input, Source};
use crate::pinned::{place, short};
use crate::render::{Page, Style, Table, clean, moment, size, thousands};
use crate::size::text_from_bytes;

const EXAMPLES: &str = "\
Needs a recording of level arrays: memviz run --level arrays -o run.memviz train.py

Examples:
  memviz retrace run.memviz             every compiled function, most traces first
  memviz retrace run.memviz --at peak   what they kept when most bytes were active
  memviz retrace run.memviz --json      the same for a script";
const ROWS: usize = 10;

/// Flags of `retrace`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RetraceArgs {
    #[command(flatten)]
    input: Input,
    /// The moment: last, peak, start, a step (12), or a time (1.5s, 200ms)
    #[arg(long, value_name = "MOMENT", default_value = "last")]
    at: Instant,
}

impl Question for RetraceArgs {
    fn asked(&self) -> Asked {
        self.input.asked()
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        let trace = &self.input.choose(sources)?.trace;
        let at = self.at.resolve(trace).map_err(anyhow::Error::msg)?;
        Ok(Box::new(Retrace::new(trace, at)?))
    }
}

impl Report for Retrace {
    fn json(&self) -> String {
        to_json(self)
    }

    fn draw(&self, page: &mut Page) {
        page.title("memviz retrace", &self.about);
        page.blank();
        if self.functions.is_empty() {
            return page.plain("No trace of a compiled function was seen.");
        }
        let meaning = format!("{} still kept {}", thousands(self.alive), moment(&self.moment));
        page.number("Traces", &thousands(self.traces), &meaning);
        table(page, self);
        reasons(page, self);
    }
}

fn table(page: &mut Page, retrace: &Retrace) {
    let title = "Compiled functions, by the first line of the body that builds an array";
    let table = Table::new(title, "body").number("traces").number("kept").number("shapes");
    let mut table = table.number("buffers made").bytes("made").number("arrays kept");
    for row in retrace.functions.iter().take(ROWS) {
        let cells = vec![
            thousands(row.traces),
            thousands(row.alive),
            thousands(row.signatures),
            thousands(row.made.count),
            text_from_bytes(row.made.bytes),
            thousands(row.kept_arrays),
        ];
        let calls = row.calls.iter().map(|(line, _)| format!("called at {}", short(page, line))).collect();
        table.row(cells, place(page, &row.body), calls);
    }
    table.rest(Vec::new(), retrace.functions.len().saturating_sub(ROWS) as u64, "function");
    page.table(&table);
}

fn reasons(page: &mut Page, retrace: &Retrace) {
    let again: Vec<&TracedFunction> = retrace.functions.iter().filter(|row| row.traces > 1).take(ROWS).collect();
    if !again.is_empty() {
        page.section("Why they were traced again");
    }
    for row in again {
        page.plain(&format!("{}: {}", short(page, &row.body), reason(row)));
        if row.captured.count > 0 {
            let captured = row.captured;
            let text = format!(
                "its traces use {} in {} buffers built elsewhere",
                size(captured.bytes),
                thousands(captured.count)
            );
            page.labelled("", Style::Dim, &text);
        }
    }
}

fn reason(row: &TracedFunction) -> String {
    let traces = thousands(row.traces);
    match row.cause {
        Cause::TracedOnce => "traced once".to_owned(),
        Cause::NewShapes => format!("{traces} traces for {traces} shapes; {}", axes(row)),
        Cause::NewFunction => format!(
            "{traces} traces for the same shapes ({}): mx.compile was called anew, or an argument that is no array changed",
            clean(&row.first_signatures.join("; "))
        ),
        Cause::Both => format!("{traces} traces for {} shapes; {}", thousands(row.signatures), axes(row)),
    }
}

/// "axis 0 of input 0 has 50 lengths from 256 to 12800".
fn axes(row: &TracedFunction) -> String {
    let Some(axis) = row.varying.first() else { return clean(&row.first_signatures.join("; ")) };
    format!(
        "axis {} of input {} has {} lengths from {} to {}",
        axis.axis,
        axis.input,
        thousands(axis.lengths),
        axis.smallest,
        axis.largest
    )
}
