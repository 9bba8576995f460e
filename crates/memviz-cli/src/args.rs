//! The subcommands, and the flags of those that are no reports. A report's flags are in the file of its name.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::advise::AdviseArgs;
use crate::cache::CacheArgs;
use crate::diff::DiffArgs;
use crate::export::ExportArgs;
use crate::flamegraph::FlamegraphArgs;
use crate::growth::GrowthArgs;
use crate::leaks::LeaksArgs;
use crate::merge::MergeArgs;
use crate::peak::PeakArgs;
use crate::pinned::PinnedArgs;
use crate::plan::DoctorPlan;
use crate::replay::ReplayArgs;
use crate::report::ReportArgs;
use crate::retrace::RetraceArgs;
use crate::run_args::RunArgs;
use crate::view::ViewArgs;

/// Memory profiler for MLX: what uses the memory, and which line made it.
#[derive(Debug, Parser)]
#[command(name = "memviz", version, max_term_width = 100, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  memviz run train.py --epochs 1  record a script, print what held the memory at its peak
  memviz doctor                   would attaching work with this Python and this MLX?
  memviz check run.pickle         prove that a recording agrees with MLX's own counters";

/// One variant per subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record a Python program and print a summary at its end
    Run(RunArgs),
    /// Say what is installed and whether attaching would work
    Doctor(DoctorArgs),
    /// Prove the equations of a recording, or print the first one that does not hold
    Check(CheckArgs),
    /// Open recordings in the browser, or pack them into one HTML file
    View(ViewArgs),
    /// Say what used the memory at its peak, and which lines built it
    Report(ReportArgs),
    /// Say what was held when memory was highest, or at another moment
    Peak(PeakArgs),
    /// Say whether memory grows from step to step, which lines do it, and when it would end
    Growth(GrowthArgs),
    /// Say what is alive at the end and was not at the start
    Leaks(LeaksArgs),
    /// Draw memory by call stack: SVG, collapsed stacks, speedscope
    Flamegraph(FlamegraphArgs),
    /// Write a recording for another tool: PyTorch's page, Parquet, Perfetto, pprof, speedscope, CSV, JSON
    Export(ExportArgs),
    /// Put the processes of an mlx.launch run into one recording
    Merge(MergeArgs),
    /// Say what keeps memory alive: small views, arrays that wait for an evaluation, buffers without arrays
    Pinned(PinnedArgs),
    /// Say which compiled functions are traced again and again, and what each trace keeps
    Retrace(RetraceArgs),
    /// Say how well MLX's buffer cache works, and what clearing it would give back
    Cache(CacheArgs),
    /// Replay a recording under another policy, with other limits, or on another machine
    Replay(ReplayArgs),
    /// Say what to do about the cache: the limit to set, what defeats it, whether the run fits a machine
    Advise(AdviseArgs),
    /// Compare two recordings, or two moments of one
    Diff(DiffArgs),
}

const DOCTOR_EXAMPLES: &str = "\
Exit code: 0 attaching works, 1 it would be refused, 2 error

Examples:
  memviz doctor                     Python, MLX, back end, and what was probed
  memviz doctor --json              the same for a bug report or a script
  memviz doctor && memviz run a.py  record only where attaching works";

/// Flags of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl DoctorArgs {
    pub(crate) fn plan(self) -> DoctorPlan {
        DoctorPlan { json: self.json }
    }
}

const CHECK_EXAMPLES: &str = "\
Exit code: 0 all equations hold, 1 one does not, 2 the file cannot be read

Examples:
  memviz check run.pickle             every event, and every checkpoint against MLX's counters
  memviz check run.pickle --json      the same for a script
  memviz check run.pickle || exit 1   fail a build on a recording that does not add up";

/// Flags of `check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckArgs {
    /// A recording
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
