//! `memviz export FILE -o OUT`: a recording in the format of another tool.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::ValueEnum;
use memviz_analyze::{Instant, UserLines, find_peaks};
use memviz_format::{
    FormatError, Lined, Measure, Profile, Table, collapsed, perfetto, pprof, speedscope, table, torch,
};
use memviz_trace::{StackId, Trace};

use crate::answer::{Question, Report};
use crate::flamegraph::{Frames, Of, command, profile};
use crate::input::{Asked, Input, Source};
use crate::output::{WrittenFile, WrittenFiles, default_name, write_file};
use crate::render::thousands;

const EXAMPLES: &str = "\
Parquet and CSV are three files: the events in OUT, and beside it OUT with .buffers and .stacks before its suffix.
collapsed has what is active at the peak; pprof and speedscope have that and every allocation.
An existing OUT is replaced.

Examples:
  memviz export run.memviz -o run.pickle       for pytorch.org/memory_viz
  memviz export run.memviz -o run.parquet      for DuckDB, Polars, pandas
  memviz export run.memviz -o run.pftrace      for ui.perfetto.dev
  memviz export run.memviz --format pprof      run.pb.gz, for pprof
  memviz export run.memviz -o all.json --format speedscope";

/// Flags of `export`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    input: Input,
    /// Where to write; the suffix says the format
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Format, when the name does not say it
    #[arg(long, value_enum, required_unless_present = "output")]
    format: Option<ExportFormat>,
}

/// Formats of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// PyTorch's memory snapshot
    Torch,
    /// DuckDB, Polars, pandas
    Parquet,
    /// ui.perfetto.dev
    Perfetto,
    /// profile.proto, gzipped
    Pprof,
    /// speedscope.app
    Speedscope,
    /// Stacks for flamegraph.pl and inferno
    Collapsed,
    /// Spreadsheets
    Csv,
    /// Scripts
    Json,
}

/// Name, suffix by default, and the suffixes that mean it.
const FORMATS: [(ExportFormat, &str, &str, &[&str]); 8] = [
    (ExportFormat::Torch, "torch", "pickle", &[".pickle", ".pkl"]),
    (ExportFormat::Parquet, "parquet", "parquet", &[".parquet"]),
    (ExportFormat::Perfetto, "perfetto", "pftrace", &[".pftrace", ".perfetto-trace", ".perfetto"]),
    (ExportFormat::Pprof, "pprof", "pb.gz", &[".pb.gz", ".pprof"]),
    (ExportFormat::Speedscope, "speedscope", "speedscope.json", &[".speedscope.json", ".speedscope"]),
    (ExportFormat::Collapsed, "collapsed", "txt", &[".txt", ".folded", ".collapsed"]),
    (ExportFormat::Csv, "csv", "csv", &[".csv"]),
    (ExportFormat::Json, "json", "json", &[".json"]),
];

impl ExportFormat {
    /// `.speedscope.json` is looked for before `.json`.
    fn of_name(path: &Path) -> Option<ExportFormat> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| name.ends_with(suffix));
        FORMATS.iter().find(|(_, _, _, suffixes)| ends(suffixes)).map(|(format, ..)| *format)
    }

    fn names(self) -> (&'static str, &'static str) {
        let found = FORMATS.iter().find(|(format, ..)| *format == self);
        found.map_or(("", ""), |(_, name, suffix, _)| (*name, *suffix))
    }

    /// Holds one process only.
    fn is_profile(self) -> bool {
        matches!(self, ExportFormat::Pprof | ExportFormat::Speedscope | ExportFormat::Collapsed)
    }
}

impl Question for ExportArgs {
    fn asked(&self) -> Asked {
        self.input.asked()
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        let (format, output) = self.destination()?;
        let traces: Vec<&Trace> = match self.input.rank.is_some() || format.is_profile() {
            true => vec![&*self.input.choose(sources)?.trace],
            false => sources.iter().map(|source| &*source.trace).collect(),
        };
        let written = self.write(format, &output, &traces)?;
        Ok(Box::new(WrittenFiles::new(format.names().0, content(&traces), written)))
    }
}

impl ExportArgs {
    fn destination(&self) -> anyhow::Result<(ExportFormat, PathBuf)> {
        let Some(output) = &self.output else {
            let Some(format) = self.format else { bail!("neither -o nor --format is given") };
            return Ok((format, default_name(&self.input.file, format.names().1)));
        };
        let Some(format) = self.format.or_else(|| ExportFormat::of_name(output)) else {
            let suffixes: Vec<&str> = FORMATS.iter().map(|(_, _, _, suffixes)| suffixes[0]).collect();
            bail!("the name {} says no format: expected {}; or give --format", output.display(), suffixes.join(", "));
        };
        Ok((format, output.clone()))
    }

    fn write(&self, format: ExportFormat, output: &Path, traces: &[&Trace]) -> anyhow::Result<Vec<WrittenFile>> {
        let inputs = self.asked().files;
        if format == ExportFormat::Parquet || format == ExportFormat::Csv {
            let lined = lined(traces);
            let file = |table: &Table| {
                write_file(&beside(output, *table), &inputs, |out| match format {
                    ExportFormat::Parquet => table::parquet::write(&lined, *table, out),
                    _ => table::csv::write(&lined, *table, out),
                })
            };
            return Table::ALL.iter().map(file).collect();
        }
        if let [trace] = traces
            && format.is_profile()
        {
            let profiles = Profiles::of(format, trace)?;
            return Ok(vec![write_file(output, &inputs, |out| profiles.write(format, out))?]);
        }
        let file = write_file(output, &inputs, |out| match format {
            ExportFormat::Torch => torch::write_all(traces, out).map(drop),
            ExportFormat::Perfetto => perfetto::write(&lined(traces), out),
            _ => table::json::write(&lined(traces), out),
        })?;
        Ok(vec![file])
    }
}

/// What formats of profilers show of a recording.
struct Profiles<'t> {
    live: Profile<'t>,
    allocated: Profile<'t>,
}

impl<'t> Profiles<'t> {
    fn of(format: ExportFormat, trace: &'t Trace) -> anyhow::Result<Profiles<'t>> {
        // Collapsed stacks are read as they are; the others have a page that folds frames.
        let frames = if format == ExportFormat::Collapsed { Frames::User } else { Frames::All };
        let of = |of| profile(trace, of, Instant::Peak, frames);
        Ok(Profiles { live: of(Of::Live)?, allocated: of(Of::Allocated)? })
    }

    fn write(&self, format: ExportFormat, out: &mut dyn Write) -> Result<(), FormatError> {
        let Profiles { live, allocated } = self;
        match format {
            ExportFormat::Pprof => pprof::write(allocated, live, out),
            ExportFormat::Speedscope => {
                let parts = [(live, Measure::Bytes), (live, Measure::Count), (allocated, Measure::Bytes)];
                speedscope::write(&command(live.trace), &parts, false, out)
            }
            _ => collapsed::write(live, Measure::Bytes, false, out),
        }
    }
}

/// What the analysis says about each trace: users' lines and the peak.
fn lined<'t>(traces: &[&'t Trace]) -> Vec<Lined<'t>> {
    let one = |trace: &&'t Trace| {
        let lines = UserLines::new(trace);
        let stacks = (0..trace.stacks.stack_count() as u32).map(StackId);
        Lined {
            trace,
            lines: stacks.map(|stack| lines.line_of(stack)).collect(),
            peak_after_events: find_peaks(trace).active.after_events,
        }
    };
    traces.iter().map(one).collect()
}

/// `run.parquet` for events, `run.buffers.parquet` for buffers.
fn beside(output: &Path, table: Table) -> PathBuf {
    if table == Table::Events {
        return output.to_owned();
    }
    let mut suffix = std::ffi::OsString::from(table.name());
    if let Some(own) = output.extension() {
        suffix.push(".");
        suffix.push(own);
    }
    output.with_extension(suffix)
}

fn content(traces: &[&Trace]) -> String {
    let events = thousands(traces.iter().map(|trace| trace.events.len() as u64).sum());
    match traces {
        [only] => format!("{}: {events} events", command(only)),
        many => format!("{} processes: {events} events", many.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_formats() {
        let format = |name: &str| ExportFormat::of_name(Path::new(name)).map(|format| format.names().0);
        assert_eq!(format("a.speedscope.json"), Some("speedscope"));
        assert_eq!(format("a.JSON"), Some("json"));
        assert_eq!(format("dir.csv/a.pb.gz"), Some("pprof"));
        assert_eq!(format("a.gz"), None);
        for (format, _, suffix, suffixes) in FORMATS {
            assert_eq!(ExportFormat::of_name(Path::new(&format!("a.{suffix}"))), Some(format));
            assert!(suffixes.contains(&format!(".{suffix}").as_str()));
        }
    }

    #[test]
    fn tables_stand_beside_each_other() {
        let name = |output: &str, table| beside(Path::new(output), table).display().to_string();
        assert_eq!(name("out/run.2.parquet", Table::Events), "out/run.2.parquet");
        assert_eq!(name("out/run.2.parquet", Table::Buffers), "out/run.2.buffers.parquet");
        assert_eq!(name("run", Table::Stacks), "run.stacks");
    }
}
