//! The two chunks of JSON: how a recording began and how it ended. Unknown keys are ignored and missing ones are empty, so
//! that both can grow without a new version of the format.

use memviz_trace::{Base, Ending, EndingKind, Header, StackId, Totals};
use serde::{Deserialize, Serialize};

use super::part::{Start, StartSums};

/// Beginning of a section.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Beginning {
    mlx_version: String,
    backend: String,
    python_version: String,
    memviz_version: String,
    command: Vec<String>,
    pid: u32,
    start_unix_micros: u64,
    walker: String,
    level: String,
    max_entries: u64,
    min_size: u64,
    depth: u32,
    notes: Vec<String>,
    rank: Option<u32>,
    first_index: u64,
    start_active: u64,
    start_cached: u64,
    /// The two sums above leave out the buffers of the table `buffers`, which is complete.
    start_is_base: bool,
}

impl Beginning {
    pub(super) fn new(header: &Header, start: &Start) -> Beginning {
        let header = header.clone();
        let (start_active, start_cached, start_is_base) = match start.sums {
            StartSums::Totals(totals) => (totals.active, totals.cached, false),
            StartSums::Base(base) => (base.active, base.cached, true),
        };
        Beginning {
            mlx_version: header.mlx_version,
            backend: header.backend,
            python_version: header.python_version,
            memviz_version: header.memviz_version,
            command: header.command,
            pid: header.pid,
            start_unix_micros: header.start_unix_micros,
            walker: header.walker,
            level: header.level,
            max_entries: header.max_entries,
            min_size: header.min_size,
            depth: header.depth,
            notes: header.notes,
            rank: header.rank,
            first_index: start.first_index,
            start_active,
            start_cached,
            start_is_base,
        }
    }

    /// The header, its ending not known yet, and the start without buffers.
    pub(super) fn into_parts(self) -> (Header, Start) {
        let (active, cached) = (self.start_active, self.start_cached);
        let sums = match self.start_is_base {
            true => StartSums::Base(Base { active, cached }),
            false => StartSums::Totals(Totals { active, cached }),
        };
        let header = Header {
            mlx_version: self.mlx_version,
            backend: self.backend,
            python_version: self.python_version,
            memviz_version: self.memviz_version,
            command: self.command,
            pid: self.pid,
            start_unix_micros: self.start_unix_micros,
            walker: self.walker,
            level: self.level,
            max_entries: self.max_entries,
            min_size: self.min_size,
            depth: self.depth,
            notes: self.notes,
            rank: self.rank,
            ending: Ending::default(),
        };
        (header, Start { buffers: Vec::new(), sums, first_index: self.first_index })
    }
}

/// End of a section.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct End {
    kind: String,
    detail: String,
    stack: u32,
    /// Beside those of the beginning.
    pub(super) notes: Vec<String>,
}

impl End {
    pub(super) fn new(ending: &Ending, notes: &[String]) -> End {
        let kind = ending.kind.name().to_owned();
        End { kind, detail: ending.detail.clone(), stack: ending.stack.0, notes: notes.to_vec() }
    }

    pub(super) fn ending(&self) -> Ending {
        let kind = EndingKind::from_name(&self.kind);
        Ending { kind, detail: self.detail.clone(), stack: StackId(self.stack) }
    }
}
