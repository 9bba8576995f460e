//! The whole recording as one JSON document: the header, checkpoints and marks of each process, then the tables, a list of
//! objects each. A null is left out.

use std::io::Write;

use memviz_trace::{MarkKind, Trace};
use serde_json::{Value, json};

use super::{Cell, Kind, Lined, Sink, Table};
use crate::FormatError;

/// Version of the document.
const SCHEMA: u32 = 1;

/// Writes all tables of the recordings.
///
/// # Errors
/// `out` fails.
pub fn write(recordings: &[Lined<'_>], out: &mut dyn Write) -> Result<(), FormatError> {
    let recorded: Vec<Value> = recordings.iter().map(|recording| about(recording.trace)).collect();
    write!(out, "{{\"schema\":{SCHEMA},\n\"recordings\":{}", Value::Array(recorded)).map_err(FormatError::Write)?;
    for table in Table::ALL {
        write!(out, ",\n\"{}\":[", table.name()).map_err(FormatError::Write)?;
        table.rows(
            recordings,
            &mut Objects { out: &mut *out, columns: table.columns(), line: Vec::new(), has_row: false },
        )?;
        write!(out, "]").map_err(FormatError::Write)?;
    }
    writeln!(out, "}}").and_then(|()| out.flush()).map_err(FormatError::Write)
}

fn about(trace: &Trace) -> Value {
    let header = &trace.header;
    json!({
        "rank": header.rank,
        "command": header.command,
        "pid": header.pid,
        "mlx_version": header.mlx_version,
        "backend": header.backend,
        "python_version": header.python_version,
        "memviz_version": header.memviz_version,
        "start_unix_micros": header.start_unix_micros,
        "level": header.level,
        "min_size": header.min_size,
        "notes": header.notes,
        "ending": { "kind": header.ending.kind.name(), "detail": header.ending.detail },
        "events_seen": trace.counts.seen.events,
        "events_dropped": trace.counts.dropped.events,
        "events_filtered": trace.counts.filtered.events,
        "events_lost": trace.counts.lost,
        "base": { "active": trace.base.active, "cached": trace.base.cached },
        "checkpoints": trace.checkpoints.iter().map(checkpoint).collect::<Vec<_>>(),
        "marks": trace.marks.iter().map(|mark| self::mark(trace, mark)).collect::<Vec<_>>(),
    })
}

fn checkpoint(point: &memviz_trace::Checkpoint) -> Value {
    json!({
        "index": point.index,
        "time_nanos": point.time_nanos,
        "kind": point.kind.name(),
        "active": point.active,
        "cached": point.cached,
        "mlx_active": point.mlx_active,
        "mlx_cached": point.mlx_cached,
    })
}

fn mark(trace: &Trace, mark: &memviz_trace::Mark) -> Value {
    let (kind, value) = match mark.kind {
        MarkKind::Step(number) => ("step", json!(number)),
        MarkKind::AnnotationBegin(name) => ("begin", json!(trace.strings.get(name))),
        MarkKind::AnnotationEnd => ("end", Value::Null),
        MarkKind::CacheLimit(bytes) => ("cache_limit", json!(bytes)),
    };
    json!({ "index": mark.index, "time_nanos": mark.time_nanos, "kind": kind, "value": value })
}

struct Objects<'w> {
    out: &'w mut dyn Write,
    columns: &'static [(&'static str, Kind)],
    line: Vec<u8>,
    has_row: bool,
}

impl Sink for Objects<'_> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), FormatError> {
        self.line.clear();
        self.line.extend_from_slice(if self.has_row { b",\n{" } else { b"\n{" });
        self.has_row = true;
        let start = self.line.len();
        for ((name, _), cell) in self.columns.iter().zip(cells).filter(|(_, cell)| **cell != Cell::Null) {
            if self.line.len() > start {
                self.line.push(b',');
            }
            write!(self.line, "\"{name}\":").and_then(|()| value(&mut self.line, cell)).map_err(FormatError::Write)?;
        }
        self.line.push(b'}');
        self.out.write_all(&self.line).map_err(FormatError::Write)
    }
}

fn value(line: &mut Vec<u8>, cell: &Cell<'_>) -> std::io::Result<()> {
    match cell {
        Cell::Null => write!(line, "null"),
        Cell::Int(number) => write!(line, "{number}"),
        Cell::Unsigned(number) => write!(line, "{number}"),
        Cell::Float(number) => Ok(serde_json::to_writer(line, number)?),
        Cell::Bool(value) => write!(line, "{value}"),
        Cell::Text(text) => Ok(serde_json::to_writer(line, text)?),
    }
}
