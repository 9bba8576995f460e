//! A table as CSV (RFC 4180, with plain line ends): a header, then one line per row. Null is an empty field.

use std::io::Write;

use super::{Cell, Lined, Sink, Table};
use crate::FormatError;

/// Writes one table of the recordings.
///
/// # Errors
/// `out` fails.
pub fn write(recordings: &[Lined<'_>], table: Table, out: &mut dyn Write) -> Result<(), FormatError> {
    let names: Vec<&str> = table.columns().iter().map(|(name, _)| *name).collect();
    writeln!(out, "{}", names.join(",")).map_err(FormatError::Write)?;
    table.rows(recordings, &mut Lines { out: &mut *out, line: Vec::new() })?;
    out.flush().map_err(FormatError::Write)
}

struct Lines<'w> {
    out: &'w mut dyn Write,
    line: Vec<u8>,
}

impl Sink for Lines<'_> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), FormatError> {
        self.line.clear();
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                self.line.push(b',');
            }
            field(&mut self.line, cell).map_err(FormatError::Write)?;
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line).map_err(FormatError::Write)
    }
}

fn field(line: &mut Vec<u8>, cell: &Cell<'_>) -> std::io::Result<()> {
    match cell {
        Cell::Null => Ok(()),
        Cell::Int(number) => write!(line, "{number}"),
        Cell::Unsigned(number) => write!(line, "{number}"),
        Cell::Float(number) => write!(line, "{number}"),
        Cell::Bool(value) => write!(line, "{value}"),
        Cell::Text(text) if text.contains(['"', ',', '\n', '\r']) => write!(line, "\"{}\"", text.replace('"', "\"\"")),
        Cell::Text(text) => line.write_all(text.as_bytes()),
    }
}
