//! `memviz flamegraph FILE`: memory by call stack, as SVG, collapsed stacks or speedscope's JSON.

use std::path::PathBuf;

use clap::ValueEnum;
use memviz_analyze::{FlameOf, Instant, find_peaks, find_peaks_in, stack_totals, step_range};
use memviz_format::{FormatError, Measure, Profile, StackSum, collapsed, flamegraph, speedscope};
use memviz_trace::Trace;

use crate::answer::{Question, Report};
use crate::input::{Asked, Input, Source};
use crate::output::{WrittenFiles, default_name, write_file};
use crate::render::{duration, thousands};
use crate::size::text_from_bytes;

const EXAMPLES: &str = "\
Without -o the file is named after the recording: run.memviz gives run.svg. -o - prints.

Examples:
  memviz flamegraph run.memviz                            what held the memory at the peak
  memviz flamegraph run.memviz --of leaked --inverted     what is left at the end, by innermost line
  memviz flamegraph run.memviz --of allocated -o all.json every allocation, for speedscope.app";

/// Flags of `flamegraph`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FlamegraphArgs {
    #[command(flatten)]
    input: Input,
    /// Where to write, - to print; .svg, .txt (collapsed stacks) or .json (speedscope)
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Format, when the name does not say it
    #[arg(long, value_enum)]
    format: Option<FlameFormat>,
    /// Moment: peak, start, last, a step such as 12 (its highest moment), or a time such as 1.5s
    #[arg(long, value_name = "MOMENT", default_value = "peak")]
    at: Instant,
    /// What to add up: what is live at the moment, every allocation, or what is left at the end
    #[arg(long, value_enum, default_value_t)]
    of: Of,
    /// Show numbers of buffers instead of bytes
    #[arg(long)]
    count: bool,
    /// Start from the innermost frames
    #[arg(long)]
    inverted: bool,
    /// Frames shown: up to the user's line, or all
    #[arg(long, value_enum, default_value_t)]
    frames: Frames,
}

/// Forms of a flame graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FlameFormat {
    Svg,
    Collapsed,
    Speedscope,
}

impl FlameFormat {
    fn name(self) -> &'static str {
        match self {
            FlameFormat::Svg => "svg",
            FlameFormat::Collapsed => "collapsed",
            FlameFormat::Speedscope => "speedscope",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            FlameFormat::Svg => "svg",
            FlameFormat::Collapsed => "txt",
            FlameFormat::Speedscope => "json",
        }
    }

    fn of_suffix(suffix: &str) -> Option<FlameFormat> {
        match suffix {
            "svg" => Some(FlameFormat::Svg),
            "txt" | "folded" | "collapsed" => Some(FlameFormat::Collapsed),
            "json" => Some(FlameFormat::Speedscope),
            _ => None,
        }
    }
}

/// What a flame graph adds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Of {
    /// What is live at the moment
    #[default]
    Live,
    /// Every allocation of the recording
    Allocated,
    /// What is left at the end and was allocated while recording
    Leaked,
}

/// Frames of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Frames {
    /// Up to the user's line, without libraries
    #[default]
    User,
    /// All frames
    All,
}

impl Question for FlamegraphArgs {
    fn asked(&self) -> Asked {
        self.input.asked()
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        let trace = &self.input.choose(sources)?.trace;
        let profile = profile(trace, self.of, self.at, self.frames)?;
        let format = self.format()?;
        let output = self.output.clone().unwrap_or_else(|| default_name(&self.input.file, format.suffix()));
        let content = profile.title.clone();
        if output.as_os_str() == "-" {
            let mut text = Vec::new();
            self.fill(&profile, format, &mut text)?;
            let text = String::from_utf8(text)?;
            return Ok(Box::new(WrittenFiles::of_text(format.name(), content, text)));
        }
        let written = write_file(&output, &self.asked().files, |out| self.fill(&profile, format, out))?;
        Ok(Box::new(WrittenFiles::new(format.name(), content, vec![written])))
    }
}

impl FlamegraphArgs {
    fn format(&self) -> anyhow::Result<FlameFormat> {
        let Some(output) = self.output.as_ref().filter(|output| output.as_os_str() != "-") else {
            return Ok(self.format.unwrap_or(FlameFormat::Svg));
        };
        let suffix = output.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
        self.format.or_else(|| FlameFormat::of_suffix(suffix)).ok_or_else(|| {
            anyhow::anyhow!("no format has the suffix {suffix:?}; name it .svg, .txt or .json, or give --format")
        })
    }

    fn fill(
        &self,
        profile: &Profile<'_>,
        format: FlameFormat,
        out: &mut dyn std::io::Write,
    ) -> Result<(), FormatError> {
        let measure = if self.count { Measure::Count } else { Measure::Bytes };
        match format {
            FlameFormat::Svg => flamegraph::write(profile, measure, self.inverted, out),
            FlameFormat::Collapsed => collapsed::write(profile, measure, self.inverted, out),
            FlameFormat::Speedscope => {
                speedscope::write(&command(profile.trace), &[(profile, measure)], self.inverted, out)
            }
        }
    }
}

/// Memory by stack, with a title that says what and when.
pub(crate) fn profile(trace: &Trace, of: Of, at: Instant, frames: Frames) -> anyhow::Result<Profile<'_>> {
    let (of, when) = match of {
        Of::Live => {
            let after_events = position(trace, at).map_err(anyhow::Error::msg)?;
            (FlameOf::Live(after_events), format!("active {}", moment(trace, at, after_events)))
        }
        Of::Allocated => (FlameOf::Allocated, "allocated in the whole recording".to_owned()),
        Of::Leaked => (FlameOf::Leaked, "active at the end, allocated while recording".to_owned()),
    };
    let totals = stack_totals(trace, of, frames == Frames::All).into_iter();
    let sums = totals.map(|total| StackSum {
        label: total.kind.label(),
        primitive: trace.strings.get(total.primitive).to_owned(),
        frames: total.frames,
        bytes: total.bytes,
        count: total.count,
    });
    let mut profile = Profile { trace, title: String::new(), sums: sums.collect() };
    let bytes = text_from_bytes(profile.total(Measure::Bytes));
    let count = thousands(profile.total(Measure::Count));
    profile.title = format!("{}: {when}: {bytes} in {count} buffers", command(trace));
    Ok(profile)
}

/// Events up to the moment; a step is its highest moment.
fn position(trace: &Trace, at: Instant) -> Result<usize, String> {
    match at {
        Instant::Step(step) => Ok(find_peaks_in(trace, step_range(trace, step)?).active.after_events),
        _ => at.resolve(trace),
    }
}

/// "at the peak, 1.2 s after the start, in step 3".
fn moment(trace: &Trace, at: Instant, after_events: usize) -> String {
    let event = after_events.checked_sub(1).and_then(|last| trace.events.get(last));
    let time = duration(event.map_or(0, |event| event.time_nanos));
    match at {
        Instant::Peak => match find_peaks(trace).active.step {
            Some(step) => format!("at the peak, {time} after the start, in step {step}"),
            None => format!("at the peak, {time} after the start"),
        },
        Instant::Start => "before the first event".to_owned(),
        Instant::Last => format!("at the end, {time} after the start"),
        Instant::Step(step) => format!("at the peak of step {step}, {time} after the start"),
        Instant::Nanos(nanos) => format!("{} after the start", duration(nanos)),
    }
}

/// The recorded program in short: its file name, or "recording".
pub(crate) fn command(trace: &Trace) -> String {
    let word = trace.header.command.first().map_or("recording", String::as_str);
    word.rsplit('/').next().unwrap_or(word).to_owned()
}
