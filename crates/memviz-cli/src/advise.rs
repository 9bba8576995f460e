//! `memviz advise FILE`: what to do about MLX's cache, each with its number.

use memviz_analyze::{Advice, Advise, NearMissKind, ScenarioOptions, SweepPoint, device_from_text};

use crate::answer::{Question, Report, to_json};
use crate::input::{Asked, Input, Source};
use crate::render::{Page, Place, Style, Table, percent, size, thousands};
use crate::size::text_from_bytes;

const EXAMPLES: &str = "\
Every number is of a replay of the recording: see memviz replay. Nothing is printed where there is nothing to gain.

Examples:
  memviz advise run.memviz                    the cache limit to set, and what defeats the cache
  memviz advise run.memviz --device m3-16gb   and whether the run fits that machine
  memviz advise run.memviz --json             the same for a script";

/// Flags of `advise`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AdviseArgs {
    #[command(flatten)]
    input: Input,
    /// Machine: say whether the run fits it
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
}

impl Question for AdviseArgs {
    fn asked(&self) -> Asked {
        self.input.asked()
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        let device = self.device.as_deref().map(device_from_text).transpose().map_err(anyhow::Error::msg)?;
        let scenario = ScenarioOptions { device: self.device.clone().zip(device), ..ScenarioOptions::default() };
        let advise = Advise::new(&self.input.choose(sources)?.trace, &scenario);
        Ok(Box::new(advise.map_err(anyhow::Error::msg)?))
    }
}

impl Report for Advise {
    fn json(&self) -> String {
        to_json(self)
    }

    fn draw(&self, page: &mut Page) {
        page.title("memviz advise", &self.about);
        page.blank();
        if self.advice.is_empty() {
            page.plain("Nothing to change: no other cache limit gains 16 MiB, and no size defeats the cache.");
            return;
        }
        for advice in &self.advice {
            say(page, advice, &self.now);
        }
        halvings(page, &self.halvings);
    }
}

fn say(page: &mut Page, advice: &Advice, now: &SweepPoint) {
    match advice {
        Advice::RaiseLimit { to } => {
            page.labelled("Raise", Style::Bold, &call(to));
            page.labelled("", Style::Plain, &format!("{}; now {}", reuse(to), reuse(now)));
        }
        Advice::LowerLimit { to, saves_bytes } => {
            page.labelled("Lower", Style::Bold, &call(to));
            let text = format!("saves {} at the peak: {}; now {}", size(*saves_bytes), reuse(to), reuse(now));
            page.labelled("", Style::Plain, &text);
        }
        Advice::NeverReused { bytes, of_bytes, line } => {
            let (never, all) = (size(*bytes), size(*of_bytes));
            let line = page.short(&line.file, line.line);
            let text = format!("{never} of {all} that went into the cache were never reused, most of {line}");
            page.labelled("Unused", Style::Plain, &text);
        }
        Advice::DefeatsCache(near) => {
            let kind = if near.kind == NearMissKind::TooLarge { "too large" } else { "too small" };
            let text = format!(
                "{} new buffers ({}) at {}, although one was cached that is just {kind}: asked for {} bytes, cached {}",
                thousands(near.count),
                size(near.bytes),
                page.short(&near.line.file, near.line.line),
                thousands(near.first_asked_bytes),
                thousands(near.first_cached_bytes)
            );
            page.labelled("Sizes", Style::Plain, &text);
        }
        Advice::ClearEveryStep { saves_bytes, costs_bytes, steps } => {
            let (saves, costs) = (size(*saves_bytes), size(*costs_bytes));
            let text = format!("mx.clear_cache() at each of {} steps saves {saves} at the peak", thousands(*steps));
            page.labelled("Clear", Style::Plain, &format!("{text} and has the system make {costs} more"));
        }
        Advice::Fits { device, fits, peak_bytes, memory_bytes } => {
            let verb = if *fits { "fits" } else { "does not fit" };
            let text = format!("{verb} {device}: at most {} of {}", size(*peak_bytes), size(*memory_bytes));
            page.labelled("Machine", if *fits { Style::Good } else { Style::Bad }, &text);
        }
    }
}

/// `mx.set_cache_limit(96 << 20)`.
fn call(to: &SweepPoint) -> String {
    match to.cache_limit_bytes >> 20 {
        0 => "mx.set_cache_limit(0)".to_owned(),
        mib => format!("mx.set_cache_limit({mib} << 20)"),
    }
}

fn reuse(point: &SweepPoint) -> String {
    let hits = point.hit_rate.map_or_else(|| "no allocations".to_owned(), |rate| format!("{} hits", percent(rate)));
    format!("{hits}, {} made by the system, peak {}", size(point.made.bytes), size(point.peak_reserved_bytes))
}

fn halvings(page: &mut Page, points: &[SweepPoint]) {
    let table = Table::new("What each halving of that limit costs", "cache limit").share("hits").bytes("made");
    let mut table = table.number("made").bytes("peak");
    for point in points {
        let cells = vec![
            point.hit_rate.map_or_else(|| "-".to_owned(), percent),
            text_from_bytes(point.made.bytes),
            thousands(point.made.count),
            text_from_bytes(point.peak_reserved_bytes),
        ];
        table.row(cells, Place::Words(text_from_bytes(point.cache_limit_bytes)), Vec::new());
    }
    page.table(&table);
}
