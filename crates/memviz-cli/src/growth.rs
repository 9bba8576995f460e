//! `memviz growth FILE`: whether memory grows from step to step, which lines do it, and when it would end.

use memviz_analyze::{
    Every, Growth, GrowthOptions, LineGrowth, LoopGrowth, StepAmount, Trend, Verdict, nanos_from_text,
};

use crate::answer::{Question, Report, to_json};
use crate::input::{Asked, Input, Source};
use crate::render::{Page, Place, Style, Table, duration, glued, size, thousands};
use crate::size::{bytes_from_text, text_from_bytes};

const EXAMPLES: &str = "\
Examples:
  memviz growth run.memviz                 each loop of the run: does it grow, and at which lines?
  memviz growth run.memviz --limit 16GB    how many steps until 16 GB are used
  memviz growth run.memviz --every 500ms   by time: a server, or a loop that is not marked";

/// Steps that the table shows.
const STEPS_SHOWN: usize = 8;

/// Flags of `growth`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GrowthArgs {
    #[command(flatten)]
    input: Input,
    /// What begins a step: step (marked by mlx_memviz.step()), eval (an evaluation from the same line and callers), or a
    /// time such as 500ms (default: step if there are enough, else eval)
    #[arg(long, value_name = "WHAT", value_parser = every_from_text)]
    every: Option<Every>,
    /// Bytes at which the run would end (default: the memory of this machine)
    #[arg(long, value_name = "SIZE", value_parser = bytes_from_text)]
    limit: Option<u64>,
    /// Number of lines
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
}

fn every_from_text(text: &str) -> Result<Every, String> {
    match text {
        "step" => Ok(Every::Step),
        "eval" => Ok(Every::Eval),
        _ => nanos_from_text(text)
            .map(Every::Nanos)
            .map_err(|_| "expected step, eval, or a time such as 500ms or 2s".to_owned()),
    }
}

/// Bytes of memory of this machine, where the kernel tells.
fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

impl Question for GrowthArgs {
    fn asked(&self) -> Asked {
        self.input.asked()
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        let limit = self.limit.or_else(machine_memory);
        let options = GrowthOptions { every: self.every.unwrap_or_default(), limit, top: self.top };
        let growth = Growth::new(&self.input.choose(sources)?.trace, options);
        Ok(Box::new(growth.map_err(anyhow::Error::msg)?))
    }
}

impl Report for Growth {
    fn json(&self) -> String {
        to_json(self)
    }

    fn draw(&self, page: &mut Page) {
        page.title("memviz growth", &self.about);
        let Some(main) = self.main_loop() else {
            page.blank();
            page.plain(
                "No loop was found: no line evaluated often enough, and no steps are marked. Mark them by mlx_memviz.step() \
                 at the end of each, or cut the run by time: --every 500ms.",
            );
            return;
        };
        page.section(&format!("{}, {} steps", name(page, main), thousands(main.steps)));
        verdict(page, main);
        forecast(page, self, main);
        lines(page, main);
        steps(page, main);
        if self.loops.len() > 1 {
            others(page, self);
        }
    }
}

fn name(page: &Page, one: &LoopGrowth) -> String {
    match (&one.evaluated_at, one.every) {
        (Some(line), _) => format!("Each evaluation at {}", page.short(&line.file, line.line)),
        (None, "time") => "Slices of time".to_owned(),
        _ => "Marked steps".to_owned(),
    }
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Grows => Style::Bad,
        Verdict::TooFewSteps => Style::Warn,
        _ => Style::Good,
    }
}

fn verdict(page: &mut Page, one: &LoopGrowth) {
    page.labelled("Verdict", style(one.verdict), one.verdict.words());
    page.labelled("Because", Style::Plain, &one.reason);
    let from_to = |trend: &Trend, text: fn(u64) -> String| format!("{} to {}", text(trend.first), text(trend.last));
    let bytes = format!("{} ({} a step)", from_to(&one.bytes, size), change(one.bytes.slope));
    page.labelled("Active", Style::Plain, &bytes);
    let buffers = format!("{} ({} a step)", from_to(&one.buffers, thousands), count_change(one.buffers.slope));
    page.labelled("Buffers", Style::Plain, &buffers);
}

/// "+1.0 MiB".
fn change(bytes: f64) -> String {
    let sign = if bytes < 0.0 { "-" } else { "+" };
    glued(&format!("{sign}{}", text_from_bytes(bytes.abs().round() as u64)))
}

fn count_change(count: f64) -> String {
    let text = format!("{count:+.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn forecast(page: &mut Page, growth: &Growth, one: &LoopGrowth) {
    let mut parts = Vec::new();
    if let (Some(steps), Some(limit)) = (one.steps_to_limit_bytes, growth.limit_bytes) {
        parts.push(format!("{} are reached in {} more steps", size(limit), thousands(steps)));
    }
    if let Some(steps) = one.steps_to_limit_buffers {
        parts.push(format!("MLX's {} buffers in {}", thousands(growth.limit_buffers), thousands(steps)));
    }
    if parts.is_empty() {
        return;
    }
    let time = one
        .nanos_to_limit
        .map_or_else(String::new, |nanos| format!("; the first of it after {} at this pace", glued(&duration(nanos))));
    page.labelled("Forecast", Style::Warn, &format!("{}{time}", parts.join(", ")));
}

fn lines(page: &mut Page, one: &LoopGrowth) {
    let table = Table::new("Lines that hold more at the end of it", "line");
    let mut table = table.bytes("a step").bytes("held").number("a step").number("buffers").words("verdict");
    for LineGrowth { line, bytes_trend, buffers_trend } in &one.lines {
        let grows = buffers_trend.verdict == Verdict::Grows && bytes_trend.verdict != Verdict::Grows;
        let verdict = if grows { "buffers grow" } else { bytes_trend.verdict.words() };
        let cells = vec![
            change(bytes_trend.slope).replace('\u{a0}', " "),
            text_from_bytes(line.bytes),
            count_change(buffers_trend.slope),
            thousands(line.count),
            verdict.to_owned(),
        ];
        table.row(cells, Place::of(page, line, false), Vec::new());
    }
    page.table(&table);
}

fn steps(page: &mut Page, one: &LoopGrowth) {
    let mut table = Table::new("Its steps: lowest and highest active bytes of each", "until");
    table = table.number("step").bytes("lowest").bytes("highest").number("buffers");
    let last = one.series.len().saturating_sub(1);
    let shown = STEPS_SHOWN.min(one.series.len());
    for nth in 0..shown {
        let at = if shown > 1 { nth * last / (shown - 1) } else { 0 };
        let StepAmount { lowest, highest_bytes, time_nanos, .. } = one.series[at];
        let cells = vec![
            thousands(at as u64 * one.stride),
            text_from_bytes(lowest.bytes),
            text_from_bytes(highest_bytes),
            thousands(lowest.count),
        ];
        table.row(cells, Place::Words(duration(time_nanos)), Vec::new());
    }
    page.table(&table);
}

fn others(page: &mut Page, growth: &Growth) {
    let mut table = Table::new("All loops, in order of time", "loop");
    table = table.number("steps").bytes("a step").number("buffers").words("verdict");
    for one in &growth.loops {
        let cells = vec![
            thousands(one.steps),
            change(one.bytes.slope).replace('\u{a0}', " "),
            count_change(one.buffers.slope),
            one.verdict.words().to_owned(),
        ];
        let place = match &one.evaluated_at {
            Some(line) => Place::line(page, &line.file, line.line, &line.function),
            None => Place::Words(name(page, one)),
        };
        table.row(cells, place, Vec::new());
    }
    page.table(&table);
}
