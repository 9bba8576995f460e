//! Writes trace files.

use std::io::Write;

use memviz_trace::{Ending, Header, Trace};

use super::encode::PartEncoder;
use super::frame::{self, Packer, kind};
use super::header::{Beginning, End};
use super::part::{Part, Start};
use crate::FormatError;

/// A trace file under construction: what is appended is in `out` when `append` returns, as whole chunks.
///
/// Memory: some MiB, and what the largest part needs. After a write that failed nothing more is written, because a reader
/// stops at the torn chunk.
pub struct Writer<W> {
    out: W,
    packer: Packer,
    encoder: PartEncoder,
    section: u32,
    is_broken: bool,
}

impl<W: Write> Writer<W> {
    /// Begins a file: magic, version, `header` and the state at the start. `header.ending` is not written: see
    /// [`Writer::finish`].
    ///
    /// # Errors
    /// `out` refuses bytes.
    pub fn create(mut out: W, header: &Header, start: &Start) -> Result<Writer<W>, FormatError> {
        out.write_all(&frame::file_header()).map_err(FormatError::Write)?;
        let encoder = PartEncoder::new(start.first_index);
        let mut writer = Writer { out, packer: Packer::new()?, encoder, section: 0, is_broken: false };
        writer.begin(header, start)?;
        Ok(writer)
    }

    /// Appends what came since the last call. All of it is in the file when this returns.
    ///
    /// # Errors
    /// `out` refuses bytes, now or at an earlier call.
    pub fn append(&mut self, part: &Part<'_>) -> Result<(), FormatError> {
        let mut sink = Sink { out: &mut self.out, packer: &mut self.packer, is_broken: &mut self.is_broken };
        let section = self.section;
        self.encoder.part(part, &mut |raw| sink.chunk(kind::PART, section, raw))?;
        self.flush()
    }

    /// Ends the recording and gives `out` back. `notes` are added to those of the header.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn finish(mut self, ending: &Ending, notes: &[String]) -> Result<W, FormatError> {
        self.end(ending, notes)?;
        Ok(self.out)
    }

    /// What is written to, for `fsync`. Bytes written by other ways than this writer tear the file.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    fn begin(&mut self, header: &Header, start: &Start) -> Result<(), FormatError> {
        self.json(kind::HEADER, &Beginning::new(header, start))?;
        let mut sink = Sink { out: &mut self.out, packer: &mut self.packer, is_broken: &mut self.is_broken };
        let section = self.section;
        self.encoder.buffers(&start.buffers, &mut |raw| sink.chunk(kind::PART, section, raw))?;
        self.flush()
    }

    fn end(&mut self, ending: &Ending, notes: &[String]) -> Result<(), FormatError> {
        self.json(kind::END, &End::new(ending, notes))?;
        self.flush()
    }

    fn json(&mut self, kind: u16, value: &impl serde::Serialize) -> Result<(), FormatError> {
        let raw = serde_json::to_vec(value).map_err(FormatError::Json)?;
        let mut sink = Sink { out: &mut self.out, packer: &mut self.packer, is_broken: &mut self.is_broken };
        sink.chunk(kind, self.section, &raw)
    }

    fn flush(&mut self) -> Result<(), FormatError> {
        self.out.flush().map_err(|error| {
            self.is_broken = true;
            FormatError::Write(error)
        })
    }

    /// The next trace of the file.
    fn next_section(&mut self, trace: &Trace) -> Result<(), FormatError> {
        self.section += 1;
        self.encoder = PartEncoder::new(trace.first_index);
        self.begin(&trace.header, &Start::of(trace))
    }

    fn whole(&mut self, trace: &Trace) -> Result<(), FormatError> {
        self.append(&Part::of(trace))?;
        self.end(&trace.header.ending, &[])
    }
}

/// Packs chunks and writes each with one call.
struct Sink<'a, W> {
    out: &'a mut W,
    packer: &'a mut Packer,
    is_broken: &'a mut bool,
}

impl<W: Write> Sink<'_, W> {
    fn chunk(&mut self, kind: u16, section: u32, raw: &[u8]) -> Result<(), FormatError> {
        if *self.is_broken {
            return Err(FormatError::Broken);
        }
        *self.is_broken = true;
        let chunk = self.packer.chunk(kind, section, raw)?;
        self.out.write_all(chunk).map_err(FormatError::Write)?;
        *self.is_broken = false;
        Ok(())
    }
}

/// Writes finished traces, one section each; a reader gives them back in that order.
///
/// # Errors
/// `out` refuses bytes.
pub fn write_all<W: Write>(traces: &[&Trace], out: W) -> Result<W, FormatError> {
    let Some((first, others)) = traces.split_first() else {
        return Err(FormatError::Content { place: "traces", found: "none".into(), expected: "at least one" });
    };
    let mut writer = Writer::create(out, &first.header, &Start::of(first))?;
    writer.whole(first)?;
    for trace in others {
        writer.next_section(trace)?;
        writer.whole(trace)?;
    }
    Ok(writer.out)
}
