//! Which run a report is about: the facts that every report begins with.

use memviz_trace::Trace;
use serde::Serialize;

/// A recorded run. Texts are "" when not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct About {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Process id.
    pub pid: u32,
    /// Version of MLX.
    pub mlx_version: String,
    /// "cpu", "cuda" or "metal".
    pub backend: String,
    /// Version of Python.
    pub python_version: String,
    /// Version of mlx-memviz that recorded.
    pub memviz_version: String,
    /// From the start of the recording to its last event, mark or checkpoint.
    pub duration_nanos: u64,
}

impl About {
    /// The facts about `trace`.
    pub fn new(trace: &Trace) -> About {
        let header = &trace.header;
        About {
            command: header.command.clone(),
            pid: header.pid,
            mlx_version: header.mlx_version.clone(),
            backend: header.backend.clone(),
            python_version: header.python_version.clone(),
            memviz_version: header.memviz_version.clone(),
            duration_nanos: duration_nanos(trace),
        }
    }
}

pub(crate) fn duration_nanos(trace: &Trace) -> u64 {
    let ends = [
        trace.events.last().map(|event| event.time_nanos),
        trace.checkpoints.last().map(|point| point.time_nanos),
        trace.marks.last().map(|mark| mark.time_nanos),
    ];
    ends.into_iter().flatten().max().unwrap_or(0)
}
