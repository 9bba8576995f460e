//! `memviz replay FILE`: the same run under another policy, with other limits, or on another machine.

use std::path::PathBuf;
use std::str::FromStr;

use memviz_analyze::{AtPeak, Counted, Replay, ReplayOptions, ScenarioOptions, SweepPoint, When, device_from_text};
use memviz_format::chart::{self, Chart};
use serde::Serialize;

use crate::answer::{Question, Report, to_json};
use crate::input::{Asked, Input, Source};
use crate::output::{WrittenFile, default_name, write_file};
use crate::render::{Page, Place, Style, Table, bar, duration, glued, moment, percent, primitives, size, thousands};
use crate::size::{bytes_from_text, text_from_bytes};

const EXAMPLES: &str = "\
Policies: cpu (that of the recorded MLX), cpu-0.32, cpu-0.28 (no cache), metal and cuda. To compare: pytorch, expandable
(PyTorch with expandable_segments:True) and ideal (what no allocator can better). Without --policy and --device the
recording's own. A machine is one of the table (m3-16gb) or MEMORY:WORKING-SET, such as 16GiB:11GiB.

Exit code: 0 the run fits, 1 it runs out of memory, 2 error

Examples:
  memviz replay run.memviz --cache-limit 1GiB              hit rate and peak with another mx.set_cache_limit
  memviz replay run.memviz --policy metal --device m3-16gb peak, buffers and memory on that machine
  memviz replay run.memviz --policy pytorch                what PyTorch's allocator would have reserved
  memviz replay run.memviz --sweep cache-limit=0..4GiB     a table of limits, and a plot with -o sweep.svg";
/// Points of a sweep that names no number.
const POINTS: usize = 17;

/// Flags of `replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    input: Input,
    /// How the allocator decides
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Machine, for its memory and limits; alone it stands for --policy metal as well
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// As mx.set_cache_limit at the start; limits that the program sets are left out then
    #[arg(long, value_name = "SIZE", value_parser = bytes_from_text)]
    cache_limit: Option<u64>,
    /// As mx.set_memory_limit at the start
    #[arg(long, value_name = "SIZE", value_parser = bytes_from_text)]
    memory_limit: Option<u64>,
    /// Call mx.clear_cache at the end of every step that mlx_memviz.step() marked
    #[arg(long, value_name = "WHAT", value_parser = ["step"])]
    clear_every: Option<String>,
    /// Try limits: cache-limit=FROM..TO, or FROM..TO/NUMBER
    #[arg(long, value_name = "RANGE")]
    sweep: Option<Sweep>,
    /// Draw the sweep as SVG
    #[arg(short, long, value_name = "OUT", requires = "sweep")]
    output: Option<PathBuf>,
}

/// `cache-limit=0..4GiB/33`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sweep {
    from: u64,
    to: u64,
    points: usize,
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Sweep, String> {
        let wrong = || format!("found {text:?}, expected cache-limit=FROM..TO, such as cache-limit=0..4GiB");
        let (range, points) = match text.rsplit_once('/') {
            Some((range, points)) => (range, points.parse().map_err(|_| wrong())?),
            None => (text, POINTS),
        };
        let (from, to) =
            range.strip_prefix("cache-limit=").and_then(|range| range.split_once("..")).ok_or_else(wrong)?;
        Ok(Sweep { from: bytes_from_text(from)?, to: bytes_from_text(to)?, points })
    }
}

impl Question for ReplayArgs {
    fn asked(&self) -> Asked {
        self.input.asked()
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        let device = self.device.as_deref().map(device_from_text).transpose().map_err(anyhow::Error::msg)?;
        let scenario = ScenarioOptions {
            policy: self.policy.clone(),
            cache_limit: self.cache_limit,
            memory_limit: self.memory_limit,
            device: self.device.clone().zip(device),
            clears_every_step: self.clear_every.is_some(),
        };
        let sweep = self.sweep.map(|sweep| (sweep.from, sweep.to, sweep.points));
        let trace = &self.input.choose(sources)?.trace;
        let replay = Replay::new(trace, &ReplayOptions { scenario, sweep }).map_err(anyhow::Error::msg)?;
        let written = self.plot(&replay)?;
        Ok(Box::new(Answer { replay, written }))
    }
}

impl ReplayArgs {
    fn plot(&self, replay: &Replay) -> anyhow::Result<Vec<WrittenFile>> {
        let Some(output) = &self.output else { return Ok(Vec::new()) };
        let output = if output.is_dir() { output.join(default_name(&self.input.file, "svg")) } else { output.clone() };
        let point =
            |point: &SweepPoint| (point.cache_limit_bytes, point.hit_rate.unwrap_or(0.0), point.peak_reserved_bytes);
        let points: Vec<chart::Point> = replay.sweep.iter().map(point).collect();
        let title = format!("{} under {}", self.input.file.display(), replay.under.policy);
        let chart = Chart {
            title: &title,
            x_label: "cache limit",
            share_label: "hits",
            bytes_label: "peak of active and cached",
            points: &points,
            text_from_bytes,
        };
        Ok(vec![write_file(&output, &self.asked().files, |out| chart::write(&chart, out))?])
    }
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    replay: Replay,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    written: Vec<WrittenFile>,
}

impl Report for Answer {
    fn json(&self) -> String {
        to_json(self)
    }

    fn draw(&self, page: &mut Page) {
        let replay = &self.replay;
        page.title("memviz replay", &replay.about);
        page.blank();
        under(page, replay);
        compared(page, replay);
        verdicts(page, replay);
        let is_one = replay.at_peak_reserved.is_none();
        at_peak(
            page,
            if is_one { "At the peak" } else { "At the peak of active bytes" },
            replay,
            &replay.at_peak_active,
        );
        if let Some(reserved) = &replay.at_peak_reserved {
            at_peak(page, "At the peak of reserved bytes", replay, reserved);
        }
        sweep(page, &replay.sweep);
        for file in &self.written {
            page.verbatim(&format!("wrote {} ({})", file.path, text_from_bytes(file.size_bytes)));
        }
    }

    fn is_finding(&self) -> bool {
        self.replay.is_out_of_memory == Some(true)
    }
}

fn under(page: &mut Page, replay: &Replay) {
    let under = &replay.under;
    let mut text = format!("policy {} ({})", under.policy, under.mirrors);
    if let Some(device) = &under.device {
        text.push_str(&format!(" on {device}"));
    }
    if let Some(limit) = under.cache_limit_bytes {
        text.push_str(&format!(", cache limit {}", size(limit)));
    }
    if under.clears_every_step {
        text.push_str(", cache cleared at every step");
    }
    page.labelled("Under", Style::Plain, &text);
}

fn compared(page: &mut Page, replay: &Replay) {
    let mut table = Table::new("Recorded and replayed", "").words("recorded").words("replayed");
    let mut row = |name: &str, of: &dyn Fn(&Counted) -> String| {
        let cells = vec![of(&replay.recorded), of(&replay.replayed)];
        table.row(cells, Place::Words(name.to_owned()), Vec::new());
    };
    row("allocations that hit the cache", &|counted| counted.hit_rate.map_or_else(|| "-".to_owned(), percent));
    row("buffers made by the system", &|counted| amount(counted.made));
    row("buffers given back to it", &|counted| amount(counted.given_back));
    row("of them, evicted from the cache", &|counted| amount(counted.evicted));
    row("peak active", &|counted| text_from_bytes(counted.peak_active.active_bytes));
    row("peak reserved: active and cached", &|counted| text_from_bytes(counted.peak_reserved.reserved_bytes()));
    row("cached at the end", &|counted| text_from_bytes(counted.end.cached_bytes));
    page.table(&table);
}

fn amount(amount: memviz_analyze::Amount) -> String {
    format!("{} in {}", text_from_bytes(amount.bytes), thousands(amount.count))
}

fn verdicts(page: &mut Page, replay: &Replay) {
    page.blank();
    let peak = &replay.replayed.peak_reserved;
    page.number("Peak", &text_from_bytes(peak.reserved_bytes()), &format!("active and cached, {}", moment(peak)));
    let blocks = &replay.most_blocks;
    let limit =
        blocks.limit.map_or_else(|| "no limit".to_owned(), |limit| format!("the limit is {}", thousands(limit)));
    page.number("Buffers", &thousands(blocks.count), &format!("at most, {}; {limit}", when(&blocks.at)));
    if let Some(refusal) = &replay.refused {
        let text = format!("{}: {} ({} in all)", when(&refusal.at), refusal.reason, thousands(replay.refusals));
        page.labelled("Refused", Style::Bad, &text);
    }
    if let Some(memory) = replay.memory_bytes {
        let text = match &replay.over_memory {
            Some(at) => format!("does not fit: more than {} from {} on", size(memory), when(at)),
            None => format!("fits in {}", size(memory)),
        };
        page.labelled("Memory", if replay.over_memory.is_some() { Style::Bad } else { Style::Good }, &text);
    }
    agreement(page, replay);
    if replay.min_size_bytes > 0 {
        let text = format!("buffers below {} were not recorded: no number has them", size(replay.min_size_bytes));
        page.labelled("Note", Style::Warn, &text);
    }
}

/// What was alive then, in bytes that were asked for; what the policy adds to them; what it keeps beside.
fn at_peak(page: &mut Page, title: &str, replay: &Replay, peak: &AtPeak) {
    let reserved = peak.moment.reserved_bytes();
    let title = format!("{title}, event {}, of {}", thousands(peak.moment.index), text_from_bytes(reserved));
    let mut table = Table::new(&title, "line that built it").bytes("bytes").share("share").bars().number("buffers");
    let cells = |bytes: u64, count: u64| {
        let share = if reserved == 0 { 0.0 } else { bytes as f64 / reserved as f64 };
        let count = if count == 0 { String::new() } else { thousands(count) };
        vec![text_from_bytes(bytes), percent(share), bar(share), count]
    };
    for group in &peak.groups {
        let place = Place::of(page, &group.line, replay.is_window);
        table.row(cells(group.line.bytes, group.line.count), place, primitives(&group.line));
    }
    table.rest(cells(peak.rest.bytes, peak.rest.count), peak.rest.lines, "line");
    let added = "added by the policy: rounding, larger blocks";
    for (bytes, words) in [(peak.added_bytes, added), (peak.moment.cached_bytes, "cached")] {
        if bytes > 0 {
            table.row(cells(bytes, 0), Place::Words(words.to_owned()), Vec::new());
        }
    }
    page.table(&table);
}

fn agreement(page: &mut Page, replay: &Replay) {
    let Some(agreement) = &replay.agreement else { return };
    let events = thousands(agreement.events);
    match &agreement.difference {
        None => page.labelled("Model", Style::Good, &format!("decides as MLX did at each of {events} events")),
        Some(difference) => {
            let text = format!(
                "differs from MLX at event {}: recorded {}, model {}; {events} events before agree",
                thousands(difference.index),
                difference.recorded,
                difference.model
            );
            page.labelled("Model", Style::Warn, &text);
        }
    }
}

fn when(at: &When) -> String {
    format!("at {}, event {}", glued(&duration(at.time_nanos)), thousands(at.index))
}

fn sweep(page: &mut Page, points: &[SweepPoint]) {
    let table = Table::new("By cache limit", "cache limit").share("hits").bytes("made").number("made");
    let mut table = table.bytes("peak");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_are_read() {
        let sweep = |from, to, points| Ok(Sweep { from, to, points });
        assert_eq!("cache-limit=0..4GiB".parse(), sweep(0, 4 << 30, POINTS));
        assert_eq!("cache-limit=1M..2M/3".parse(), sweep(1 << 20, 2 << 20, 3));
        for wrong in ["", "0..1", "cache-limit=0", "cache-limit=x..1", "cache-limit=0..1/x", "memory=0..1"] {
            assert!(wrong.parse::<Sweep>().is_err(), "{wrong}");
        }
    }
}
