//! Reads trace files, whole ones and ones that were cut.

use std::io::Read;

use memviz_trace::Trace;

use super::events::Decoder;
use super::frame::{Frames, kind, wrong};
use super::section::{Allowance, Section};
use crate::FormatError;
use crate::torch::Limits;

/// Memory that a section needs beside its rows.
const SECTION_BYTES: usize = 4096;
/// Memory for a byte of JSON: an empty string in a list takes 24 for 3.
const JSON_FACTOR: usize = 10;

/// Reads a trace file: one trace for each section, in order.
///
/// A file that ends within a chunk, or whose last chunks are damaged, is read up to the chunk before: the traces without an
/// end say so in `header.ending` and `header.notes`. Chunks of unknown kinds are skipped. Memory and events are bounded by
/// `limits`.
///
/// # Errors
/// Not a trace file, one of a later version, one without a whole chunk, one whose chunks contradict each other, or one that
/// needs more than `limits`. Traces are not checked: see [`Trace::check`].
pub fn read(bytes: &[u8], limits: &Limits) -> Result<Vec<Trace>, FormatError> {
    read_from(&mut &bytes[..], limits)
}

/// As [`read()`], from a file or pipe, of which one chunk at a time is held.
///
/// # Errors
/// As [`read()`], and when `source` fails.
pub fn read_from(source: &mut dyn Read, limits: &Limits) -> Result<Vec<Trace>, FormatError> {
    let mut frames = Frames::new(source)?;
    let (mut allowance, mut decoder) = (Allowance::new(limits), Decoder::default());
    let mut sections: Vec<Section> = Vec::new();
    while let Some(chunk) = frames.next()? {
        let count = sections.len();
        let section = sections.get_mut(chunk.section as usize);
        match (chunk.kind, section) {
            (kind::HEADER, None) if chunk.section as usize == count => {
                allowance.take_memory(chunk.offset, SECTION_BYTES + JSON_FACTOR * chunk.raw.len())?;
                sections.push(Section::begin(&chunk)?);
            }
            (kind::HEADER, _) => {
                let found = format!("a header of section {}", chunk.section);
                return Err(wrong(chunk.offset, found, "one header for each section, in order"));
            }
            (kind::PART, Some(section)) => section.part(&chunk, &mut decoder, &mut allowance)?,
            (kind::END, Some(section)) => {
                allowance.take_memory(chunk.offset, JSON_FACTOR * chunk.raw.len())?;
                section.end(&chunk)?;
            }
            (kind::LAST_WORDS, Some(section)) => section.last_words(&chunk, &mut allowance)?,
            (kind::PART | kind::END | kind::LAST_WORDS, None) => {
                let found = format!("a chunk of section {}", chunk.section);
                return Err(wrong(chunk.offset, found, "the header of the section before it"));
            }
            _ => {}
        }
    }
    if sections.is_empty() {
        let offset = frames.rest as usize + super::frame::FILE_HEADER_BYTES;
        return Err(FormatError::Truncated {
            offset,
            expected: "a whole first chunk; nothing is recorded in this file",
        });
    }
    let rest = frames.rest;
    Ok(sections.into_iter().map(|section| section.finish(rest)).collect())
}
