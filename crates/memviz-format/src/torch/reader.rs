//! A snapshot to a trace.

use std::io::Read;

use memviz_trace::Trace;

use super::document::{Document, Limits, content};
use super::{OWN_KEY, exact_read, foreign, json, machine};
use crate::FormatError;

/// Reads a snapshot: one of ours comes back as the trace that was written, one of PyTorch's as far as its events say.
///
/// Takes the pickle (protocols 2 to 5) and the JSON form. Runs no code: a pickle that asks for more than plain data is
/// refused. Memory, depth and events are bounded by `limits`.
///
/// # Errors
/// The file is not a snapshot, is damaged, wants to run code, holds several processes, or needs more than `limits`. The
/// trace is not checked: see [`Trace::check`].
pub fn read(bytes: &[u8], limits: &Limits) -> Result<Trace, FormatError> {
    let mut traces = read_all(bytes, limits)?;
    match (traces.pop(), traces.len()) {
        (Some(trace), 0) => Ok(trace),
        (_, others) => Err(content("mlx_memviz.ranks", format!("{} processes", others + 1), "one")),
    }
}

/// As [`read()`], of a run of several processes: one trace each, in order of the file, at least one.
///
/// # Errors
/// As [`read()`].
pub fn read_all(bytes: &[u8], limits: &Limits) -> Result<Vec<Trace>, FormatError> {
    if bytes.len() > limits.max_file_bytes {
        return Err(too_long(limits));
    }
    let document = parse(bytes, limits)?;
    match document.get(document.root, OWN_KEY) {
        Some(own) => exact_read::read_all(&document, own),
        None => Ok(vec![foreign::read(&document)?]),
    }
}

/// As [`read_all()`], from a file or pipe, which is held in memory as a whole.
///
/// # Errors
/// As [`read()`], and when `source` fails.
pub fn read_from(source: &mut dyn Read, limits: &Limits) -> Result<Vec<Trace>, FormatError> {
    let mut bytes = Vec::new();
    let most = (limits.max_file_bytes as u64).saturating_add(1);
    source.take(most).read_to_end(&mut bytes).map_err(FormatError::Read)?;
    read_all(&bytes, limits)
}

fn too_long(limits: &Limits) -> FormatError {
    FormatError::Limit { offset: limits.max_file_bytes, what: "bytes of file", limit: limits.max_file_bytes }
}

/// The plain data of a file.
pub(super) fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Document<'a>, FormatError> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') { json::parse(bytes, limits) } else { machine::parse(bytes, limits) }
}
