//! `memviz merge FILE… -o OUT`: the processes of an `mlx.launch` run in one file.
//!
//! Times stay as recorded: each recording knows when it started, in microseconds since 1970 by its machine's clock, and
//! readers add that. So processes of one machine agree to a microsecond, those of several as well as their clocks do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use memviz_format::{torch, trace_file};
use memviz_trace::Trace;

use crate::answer::{Question, Report};
use crate::input::{Asked, Source};
use crate::output::{WrittenFiles, write_file};

const EXAMPLES: &str = "\
A recording belongs to the rank that it was recorded on, else to the one that its name ends with (run.rank3.pickle), else to
its place on the command line.

Examples:
  memviz merge run.rank*.memviz -o run.memviz   all processes of a run in one recording
  memviz merge run.rank*.memviz -o run.pickle   for PyTorch's page, one device for each process
  memviz report run.memviz --rank 2             what one of them used";

/// Flags of `merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MergeArgs {
    /// Recordings, one for each process
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Where to write: .memviz, or .pickle for PyTorch's page
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Question for MergeArgs {
    fn asked(&self) -> Asked {
        Asked { files: self.files.clone(), json: self.json }
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        let ranks = by_rank(sources)?;
        let traces: Vec<&Trace> = ranks.iter().map(Arc::as_ref).collect();
        let suffix = self.output.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
        let format = match suffix {
            "memviz" => "memviz",
            "pickle" | "pkl" => "torch",
            _ => bail!("no recording has the suffix {suffix:?}; name the output .memviz or .pickle"),
        };
        let written = write_file(&self.output, &self.files, |out| match format {
            "memviz" => trace_file::write_all(&traces, out).map(drop),
            _ => torch::write_all(&traces, out).map(drop),
        })?;
        let content = match traces.len() {
            1 => format!("1 process, rank {}", numbers(&ranks)),
            many => format!("{many} processes, ranks {}", numbers(&ranks)),
        };
        Ok(Box::new(WrittenFiles::new(format, content, vec![written])))
    }
}

/// The recordings in order of rank, each with its rank in its header.
fn by_rank(sources: &[Source]) -> anyhow::Result<Vec<Arc<Trace>>> {
    let mut ranks: BTreeMap<u32, (&str, Arc<Trace>)> = BTreeMap::new();
    for (place, source) in (0..).zip(sources) {
        let rank = source.trace.header.rank.or_else(|| rank_of_name(&source.label)).unwrap_or(place);
        let mut trace = Arc::clone(&source.trace);
        if trace.header.rank.is_none() {
            Arc::make_mut(&mut trace).header.rank = Some(rank);
        }
        if let Some((other, _)) = ranks.insert(rank, (&source.label, trace)) {
            bail!("{other} and {} are both rank {rank}; expected one recording for each process", source.label);
        }
    }
    Ok(ranks.into_values().map(|(_, trace)| trace).collect())
}

/// 3 of "out/run.rank3.pickle" and of "rank-03.memviz".
fn rank_of_name(label: &str) -> Option<u32> {
    let name = label.rsplit('/').next().unwrap_or(label);
    let after = &name[name.rfind("rank")? + "rank".len()..];
    let after = after.trim_start_matches(['-', '_', ' ']);
    let end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
    after[..end].parse().ok()
}

/// "0 to 3" or "0, 2, 5".
fn numbers(traces: &[Arc<Trace>]) -> String {
    let ranks: Vec<u32> = traces.iter().filter_map(|trace| trace.header.rank).collect();
    match (ranks.first(), ranks.last()) {
        (Some(first), Some(last)) if ranks.len() > 1 && (last - first) as usize + 1 == ranks.len() => {
            format!("{first} to {last}")
        }
        _ => ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(label: &str, rank: Option<u32>) -> Source {
        let mut trace = Trace::default();
        trace.header.rank = rank;
        Source { label: label.to_owned(), trace: Arc::new(trace) }
    }

    #[test]
    fn ranks_are_those_of_headers_names_or_places() {
        let ranks =
            |sources: &[Source]| by_rank(sources).map(|traces| numbers(&traces)).map_err(|error| error.to_string());
        assert_eq!(ranks(&[source("b", Some(1)), source("a", Some(0))]), Ok("0 to 1".into()));
        assert_eq!(ranks(&[source("x/run.rank7.pickle", None), source("rank_02.memviz", None)]), Ok("2, 7".into()));
        assert_eq!(ranks(&[source("a", None), source("b", None), source("c", None)]), Ok("0 to 2".into()));
        assert_eq!(ranks(&[source("franky.pickle", None)]), Ok("0".into()));
        let error = ranks(&[source("a", Some(1)), source("b", None)]).unwrap_err();
        assert_eq!(error, "a and b are both rank 1; expected one recording for each process");
    }
}
