//! `memviz cache FILE`: how well MLX's buffer cache works, and what clearing it would give back.

use memviz_analyze::{Amount, Cache, Moment, NearMissKind};

use crate::answer::{Question, Report, to_json};
use crate::input::{Asked, Input, Source};
use crate::pinned::place;
use crate::render::{Page, Style, Table, moment, percent, size, thousands};
use crate::size::text_from_bytes;

const EXAMPLES: &str = "\
Examples:
  memviz cache run.memviz          who hits the cache, who misses, what lies in it for nothing
  memviz cache run.memviz --json   the same for a script
  memviz cache run.memviz --rank 2 of one process of a distributed run";
const ROWS: usize = 10;

/// Flags of `cache`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CacheArgs {
    #[command(flatten)]
    input: Input,
}

impl Question for CacheArgs {
    fn asked(&self) -> Asked {
        self.input.asked()
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        Ok(Box::new(Cache::new(&self.input.choose(sources)?.trace)))
    }
}

impl Report for Cache {
    fn json(&self) -> String {
        to_json(self)
    }

    fn draw(&self, page: &mut Page) {
        page.title("memviz cache", &self.about);
        page.blank();
        rates(page, self);
        clearing(page, self);
        lines(page, self);
        sizes(page, self);
        near_misses(page, self);
        not_reused(page, self);
        if self.entered.count == 0 && self.hits.count == 0 {
            page.blank();
            let text = "nothing ever entered the cache: its limit is 0, or this MLX has none (CPU before 0.32)";
            page.labelled("Note", Style::Warn, text);
        }
    }
}

fn rates(page: &mut Page, cache: &Cache) {
    if let Some(rate) = cache.hit_rate {
        let all = thousands(cache.hits.count.saturating_add(cache.misses.count));
        let slack = if cache.slack_bytes > 0 {
            format!(", {} larger than asked for in sum", size(cache.slack_bytes))
        } else {
            String::new()
        };
        let text = format!("{} of {all} allocations reused a cached buffer{slack}", thousands(cache.hits.count));
        page.number("Hits", &percent(rate), &text);
        page.number("New", &text_from_bytes(cache.misses.bytes), &format!("in {}", buffers(cache.misses)));
    }
    let passed = format!("{} in {} went past it, to the system", size(cache.passed_by.bytes), buffers(cache.passed_by));
    page.number("Entered", &text_from_bytes(cache.entered.bytes), &format!("in {}; {passed}", buffers(cache.entered)));
    let largest = format!("at most {} in a row", size(cache.largest_eviction.bytes));
    page.number("Evicted", &text_from_bytes(cache.evicted.bytes), &format!("in {}, {largest}", buffers(cache.evicted)));
}

fn buffers(sum: Amount) -> String {
    format!("{} {}", thousands(sum.count), if sum.count == 1 { "buffer" } else { "buffers" })
}

/// What `clear_cache` would give back.
fn clearing(page: &mut Page, cache: &Cache) {
    page.section("What mx.clear_cache() gives back");
    let mut row = |label: &str, at: &Moment, what: &str| {
        page.number(label, &text_from_bytes(at.cached_bytes), &format!("{what}, {}", moment(at)));
    };
    row("Now", &cache.end, "at the end");
    row("Peak active", &cache.peak_active, "when most bytes were active");
    row("Peak reserved", &cache.peak_reserved, "when MLX held most");
    row("Most", &cache.most_cached, "when most bytes were cached");
}

fn lines(page: &mut Page, cache: &Cache) {
    let table = Table::new("By line, most new bytes first", "line").share("hits").bytes("new").number("new");
    let mut table = table.number("reused").bytes("reused").wide();
    for row in cache.lines.iter().take(ROWS) {
        let cells = vec![
            percent(row.hit_rate),
            text_from_bytes(row.misses.bytes),
            thousands(row.misses.count),
            thousands(row.hits.count),
            text_from_bytes(row.hits.bytes),
        ];
        table.row(cells, place(page, &row.line), Vec::new());
    }
    table.rest(Vec::new(), cache.lines.len().saturating_sub(ROWS) as u64, "line");
    page.table(&table);
}

fn sizes(page: &mut Page, cache: &Cache) {
    let table = Table::new("By bytes asked for", "from").share("hits").bytes("new").number("new").number("reused");
    let mut table = table.bytes("reused").wide();
    for row in &cache.sizes {
        let cells = vec![
            percent(row.hit_rate),
            text_from_bytes(row.misses.bytes),
            thousands(row.misses.count),
            thousands(row.hits.count),
            text_from_bytes(row.hits.bytes),
        ];
        table.row(cells, crate::render::Place::Words(text_from_bytes(row.from_bytes)), Vec::new());
    }
    page.table(&table);
}

fn near_misses(page: &mut Page, cache: &Cache) {
    let title = "New buffers although the cache held one of nearly that size";
    let mut table =
        Table::new(title, "line").bytes("new").number("new").words("cached was").bytes("asked").bytes("cached");
    for row in cache.near_misses.iter().take(ROWS) {
        let kind = match row.kind {
            NearMissKind::TooLarge => "too large",
            NearMissKind::TooSmall => "too small",
        };
        let cells = vec![
            text_from_bytes(row.bytes),
            thousands(row.count),
            kind.to_owned(),
            text_from_bytes(row.first_asked_bytes),
            text_from_bytes(row.first_cached_bytes),
        ];
        table.row(cells, place(page, &row.line), Vec::new());
    }
    table.rest(Vec::new(), cache.near_misses.len().saturating_sub(ROWS) as u64, "line");
    page.table(&table);
    if !table.is_empty() {
        let window = size(2 * cache.page_bytes);
        page.plain(&format!(
            "A request of n takes a cached buffer from n up to below 2 n or n + {window}, the smaller of these."
        ));
    }
}

fn not_reused(page: &mut Page, cache: &Cache) {
    let title = "Cached for nothing: evicted, or left at the end, by the line that used it last";
    let table = Table::new(title, "line").bytes("evicted").number("evicted").bytes("left");
    let mut table = table.number("left");
    for row in cache.not_reused.iter().take(ROWS) {
        let cells = vec![
            text_from_bytes(row.evicted.bytes),
            thousands(row.evicted.count),
            text_from_bytes(row.left.bytes),
            thousands(row.left.count),
        ];
        table.row(cells, place(page, &row.line), Vec::new());
    }
    table.rest(Vec::new(), cache.not_reused.len().saturating_sub(ROWS) as u64, "line");
    page.table(&table);
}
