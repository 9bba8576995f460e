//! Any file that holds recordings, told apart by its first bytes.
//!
//! The one place that knows which formats there are. Commands and the Python package open files through it.

use std::io::Read;
use std::path::Path;

use memviz_trace::Trace;

use crate::FormatError;
use crate::torch::{self, Limits};

/// Reads a file: one trace per process, in order of rank. `progress` hears how many bytes of how many were read.
///
/// # Errors
/// The file cannot be read, is of no format that is known, is damaged, or needs more than `limits`.
pub fn read_path(path: &Path, limits: &Limits, progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<Trace>, FormatError> {
    let file = std::fs::File::open(path).map_err(FormatError::Read)?;
    let total = file.metadata().map_err(FormatError::Read)?.len();
    let mut source = Counted { inner: file, done: 0, total, progress };
    Ok(vec![torch::read_from(&mut source, limits)?])
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
