//! Bytes of a trace file on their way to the disk, which may be full for a while.
//!
//! The writer of the format writes into memory, so it never fails half way. What the disk refuses stays in memory; the file is
//! cut back to its last whole chunk, which readers can use, and the rest is tried again later. The caller bounds what waits.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two attempts.
const RETRY: Duration = Duration::from_millis(500);

/// Bytes that are not in the file yet.
#[derive(Clone, Default)]
pub struct Outbox(Arc<Mutex<Vec<u8>>>);

impl Outbox {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Outbox {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The file and what waits for it.
pub struct Outlet {
    file: File,
    outbox: Outbox,
    /// Length of the file up to its last whole chunk.
    len: u64,
    /// Events in the outbox.
    waiting_events: u64,
    trouble: Option<(io::Error, Instant)>,
    had_trouble: Option<String>,
}

impl Outlet {
    /// Makes the file with what is in the outbox. It is made beside its place and moved there once that is written, so a file
    /// that was there is lost only for one that can be read.
    pub fn create(path: &Path, outbox: Outbox) -> io::Result<Outlet> {
        let part = part_of(path);
        let created = File::create(&part).and_then(|mut file| {
            let bytes = std::mem::take(&mut *outbox.lock());
            file.write_all(&bytes)?;
            std::fs::rename(&part, path)?;
            Ok(Outlet { file, outbox, len: bytes.len() as u64, waiting_events: 0, trouble: None, had_trouble: None })
        });
        if created.is_err() {
            let _nothing_to_remove = std::fs::remove_file(&part);
        }
        created
    }

    /// Events were packed into the outbox.
    pub fn add_events(&mut self, count: u64) {
        self.waiting_events += count;
    }

    /// Writes what waits; is nothing left? After a refusal nothing is tried for a while.
    pub fn flush(&mut self) -> bool {
        let is_too_early = self.trouble.as_ref().is_some_and(|(_, since)| since.elapsed() < RETRY);
        !is_too_early && self.try_now()
    }

    /// Writes what waits, the last time.
    pub fn try_now(&mut self) -> bool {
        let mut bytes = self.outbox.lock();
        if bytes.is_empty() {
            return true;
        }
        match self.file.write_all(&bytes) {
            Ok(()) => {
                self.len += bytes.len() as u64;
                bytes.clear();
                bytes.shrink_to(1 << 20);
                self.waiting_events = 0;
                self.trouble = None;
                true
            }
            Err(error) => {
                // A file that cannot even be cut ends with a torn chunk, which readers leave out.
                let _torn = self.file.set_len(self.len).and_then(|()| self.file.seek(SeekFrom::Start(self.len)));
                self.had_trouble.get_or_insert_with(|| error.to_string());
                self.trouble = Some((error, Instant::now()));
                false
            }
        }
    }

    /// Events that are not in the file.
    pub fn waiting_events(&self) -> u64 {
        self.waiting_events
    }

    /// Why the file once refused bytes, if it did.
    pub fn trouble(&self) -> Option<&str> {
        self.had_trouble.as_deref()
    }
}

/// Where a file is made before it is moved to `path`.
fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}
