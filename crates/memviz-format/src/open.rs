//! Any file that holds recordings: told apart by its first bytes when read, by its name when written.
//!
//! The one place that knows which formats there are. Commands and the Python package open files through it.

use std::io::{BufWriter, Read, Write};
use std::path::Path;

use memviz_trace::Trace;

use crate::torch::{self, Limits};
use crate::{FormatError, trace_file};

/// Reads a file: one trace per process, in order of rank. `progress` hears how many bytes of how many were read.
///
/// # Errors
/// The file cannot be read, is of no format that is known, is damaged, or needs more than `limits`.
pub fn read_path(path: &Path, limits: &Limits, progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<Trace>, FormatError> {
    let file = std::fs::File::open(path).map_err(FormatError::Read)?;
    let total = file.metadata().map_err(FormatError::Read)?.len();
    let mut source = Counted { inner: file, done: 0, total, progress };
    let mut first = Vec::new();
    source.by_ref().take(trace_file::MAGIC.len() as u64).read_to_end(&mut first).map_err(FormatError::Read)?;
    let is_ours = first == trace_file::MAGIC;
    let mut whole = first.as_slice().chain(source);
    if !is_ours {
        return torch::read_from(&mut whole, limits);
    }
    let mut traces = trace_file::read_from(&mut whole, limits)?;
    traces.sort_by_key(|trace| trace.header.rank);
    Ok(traces)
}

/// Writes a trace: as a trace file when the name ends in `.memviz`, else as a snapshot for PyTorch's page.
///
/// # Errors
/// The destination refuses bytes, or the snapshot cannot hold a number of the trace.
pub fn write_path(trace: &Trace, path: &Path) -> Result<(), FormatError> {
    let is_ours = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("memviz"));
    write_whole(path, |out| match is_ours {
        true => trace_file::write_all(&[trace], out).map(drop),
        false => torch::write(trace, out).map(drop),
    })
}

/// Writes a file as a whole or not at all: into a temporary file beside `path`, then renamed. What was there stays when the
/// disk is full.
///
/// # Errors
/// Those of `write`, and when the folder refuses the file.
pub fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let result = write_part(&part, path, write);
    if result.is_err() {
        let _nothing_to_remove = std::fs::remove_file(&part);
    }
    result
}

fn write_part(
    part: &Path,
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    let file = std::fs::File::create(part).map_err(FormatError::Write)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    write(&mut out)?;
    out.flush().map_err(FormatError::Write)?;
    std::fs::rename(part, path).map_err(FormatError::Write)
}

/// Tells how far reading has come.
struct Counted<'a, R> {
    inner: R,
    done: u64,
    total: u64,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.done += count as u64;
        (self.progress)(self.done, self.total);
        Ok(count)
    }
}
