//! The file's frame: a header of 16 bytes, then chunks with length and checksum.
//!
//! A chunk is whole or not there: [`Frames::next`] ends at the first that is not. Needs bytes; does not know what chunks
//! hold. Numbers are little-endian.
//!
//! ```text
//!  file    0         8         10        12      16
//!          | magic   | version | 0       | crc32 | chunks …
//!
//!  chunk   0        4      6       8         12              16           20      24
//!          | "CHNK" | kind | flags | section | stored length | raw length | crc32 | stored bytes …
//!
//!  flags   bit 0: the stored bytes are one zstd frame of `raw length` bytes
//!  crc32   of all bytes of the header before it; of a chunk also of the stored bytes
//! ```

use std::io::Read;

use crate::FormatError;

/// First bytes of a trace file. The first is in no text, the last finds files that were sent as text.
pub const MAGIC: [u8; 8] = *b"\x93MEMVIZ\n";
/// The layout written, and the newest that is read.
pub(super) const VERSION: u16 = 1;
/// Most bytes of a chunk, before and after compression: what a reader must be ready to hold.
pub(super) const MAX_CHUNK_BYTES: usize = 64 << 20;
pub(super) const FILE_HEADER_BYTES: usize = 16;
pub(super) const CHUNK_HEADER_BYTES: usize = 24;
const CHUNK_MAGIC: [u8; 4] = *b"CHNK";
/// Level 3 packs events at several million a second and 20 % smaller than level 1.
const LEVEL: i32 = 3;
const COMPRESSED: u16 = 1;

/// Kinds of chunks. Readers skip those they do not know.
pub(super) mod kind {
    /// JSON: where, with what and how; the sums at the start. The first chunk of a section.
    pub const HEADER: u16 = 1;
    /// Tables: what came since the part before.
    pub const PART: u16 = 2;
    /// JSON: how the recording ended.
    pub const END: u16 = 3;
    /// Written while the process goes down, without compression or tables: see [`super::super::last_words`].
    pub const LAST_WORDS: u16 = 4;
}

/// The first 16 bytes of a file.
pub(super) fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut bytes = [0; FILE_HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    let sum = crc32fast::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Fills in the header of a chunk: `chunk` is room for it and the stored bytes. Allocates nothing.
pub(super) fn seal(chunk: &mut [u8], kind: u16, section: u32, raw_length: Option<u32>) {
    let length = (chunk.len() - CHUNK_HEADER_BYTES) as u32;
    let flags = if raw_length.is_some() { COMPRESSED } else { 0 };
    chunk[..4].copy_from_slice(&CHUNK_MAGIC);
    chunk[4..6].copy_from_slice(&kind.to_le_bytes());
    chunk[6..8].copy_from_slice(&flags.to_le_bytes());
    for (at, number) in [(8, section), (12, length), (16, raw_length.unwrap_or(length))] {
        chunk[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    let sum = checksum(chunk);
    chunk[20..24].copy_from_slice(&sum.to_le_bytes());
}

fn checksum(chunk: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&chunk[..20]);
    hasher.update(&chunk[CHUNK_HEADER_BYTES..]);
    hasher.finalize()
}

/// Packs the bytes of chunks; keeps its memory from chunk to chunk.
pub(super) struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
    chunk: Vec<u8>,
}

impl Packer {
    pub(super) fn new() -> Result<Packer, FormatError> {
        let zstd = zstd::bulk::Compressor::new(LEVEL).map_err(FormatError::Write)?;
        Ok(Packer { zstd, chunk: Vec::new() })
    }

    /// The whole chunk around `raw`.
    pub(super) fn chunk(&mut self, kind: u16, section: u32, raw: &[u8]) -> Result<&[u8], FormatError> {
        let too_long = |length| FormatError::ChunkTooLong { length, limit: MAX_CHUNK_BYTES };
        if raw.len() > MAX_CHUNK_BYTES {
            return Err(too_long(raw.len()));
        }
        let room = CHUNK_HEADER_BYTES + zstd::zstd_safe::compress_bound(raw.len());
        self.chunk.resize(room, 0);
        let stored = self.zstd.compress_to_buffer(raw, &mut self.chunk[CHUNK_HEADER_BYTES..]);
        let stored = stored.map_err(FormatError::Write)?;
        if stored > MAX_CHUNK_BYTES {
            return Err(too_long(stored));
        }
        self.chunk.truncate(CHUNK_HEADER_BYTES + stored);
        seal(&mut self.chunk, kind, section, Some(raw.len() as u32));
        Ok(&self.chunk)
    }
}

/// A whole chunk.
pub(super) struct Chunk<'a> {
    pub(super) kind: u16,
    pub(super) section: u32,
    /// Where it begins.
    pub(super) offset: u64,
    /// What it holds, unpacked.
    pub(super) raw: &'a [u8],
}

/// Whole chunks of a file, one after the other.
pub(super) struct Frames<'r> {
    source: &'r mut dyn Read,
    zstd: zstd::bulk::Decompressor<'static>,
    stored: Vec<u8>,
    raw: Vec<u8>,
    offset: u64,
    /// Bytes after the last whole chunk, once the end is reached.
    pub(super) rest: u64,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl<'r> Frames<'r> {
    /// Reads the file header.
    pub(super) fn new(source: &'r mut dyn Read) -> Result<Frames<'r>, FormatError> {
        let zstd = zstd::bulk::Decompressor::new().map_err(FormatError::Read)?;
        let offset = FILE_HEADER_BYTES as u64;
        let mut frames = Frames { source, zstd, stored: Vec::new(), raw: Vec::new(), offset, rest: 0 };
        frames.fill(FILE_HEADER_BYTES)?;
        let head = &frames.stored;
        if head.len() < FILE_HEADER_BYTES {
            return Err(FormatError::Truncated {
                offset: head.len(),
                expected: "the header of a trace file, 16 bytes",
            });
        }
        if head[..8] != MAGIC {
            return Err(wrong(0, format!("{:02x?}", &head[..8]), "the first bytes of a trace file"));
        }
        if u32_at(head, 12) != crc32fast::hash(&head[..12]) {
            return Err(wrong(12, "another checksum", "the checksum of the header; the file is damaged"));
        }
        match u16_at(head, 8) {
            VERSION => Ok(frames),
            found => Err(FormatError::Newer { found, known: VERSION }),
        }
    }

    /// Fills `stored` with that many bytes, or as many as there are.
    fn fill(&mut self, count: usize) -> Result<bool, FormatError> {
        self.stored.clear();
        self.more(count)
    }

    fn more(&mut self, count: usize) -> Result<bool, FormatError> {
        let before = self.stored.len();
        self.source.take(count as u64).read_to_end(&mut self.stored).map_err(FormatError::Read)?;
        Ok(self.stored.len() - before == count)
    }

    /// The next chunk, or `None` at the end or at the first chunk that is not whole.
    pub(super) fn next(&mut self) -> Result<Option<Chunk<'_>>, FormatError> {
        if !self.fill(CHUNK_HEADER_BYTES)? || self.stored[..4] != CHUNK_MAGIC {
            return self.end();
        }
        let [kind, flags] = [4, 6].map(|at| u16_at(&self.stored, at));
        let [section, stored_length, raw_length, sum] = [8, 12, 16, 20].map(|at| u32_at(&self.stored, at));
        let is_sane = [stored_length, raw_length].iter().all(|length| *length as usize <= MAX_CHUNK_BYTES);
        if !is_sane || !self.more(stored_length as usize)? || checksum(&self.stored) != sum {
            return self.end();
        }
        let offset = self.offset;
        self.offset += self.stored.len() as u64;
        let stored = &self.stored[CHUNK_HEADER_BYTES..];
        if flags & COMPRESSED == 0 {
            return Ok(Some(Chunk { kind, section, offset, raw: stored }));
        }
        unpack(&mut self.zstd, stored, raw_length as usize, &mut self.raw)
            .map_err(|found| wrong(offset, found, "a zstd frame of the length that its chunk says"))?;
        Ok(Some(Chunk { kind, section, offset, raw: &self.raw }))
    }

    fn end(&mut self) -> Result<Option<Chunk<'_>>, FormatError> {
        let rest = std::io::copy(&mut self.source, &mut std::io::sink()).map_err(FormatError::Read)?;
        self.rest = self.stored.len() as u64 + rest;
        Ok(None)
    }
}

fn unpack(
    zstd: &mut zstd::bulk::Decompressor<'_>,
    stored: &[u8],
    raw_length: usize,
    raw: &mut Vec<u8>,
) -> Result<(), String> {
    raw.clear();
    raw.reserve_exact(raw_length);
    let written = zstd.decompress_to_buffer(stored, raw).map_err(|error| error.to_string())?;
    if written == raw_length { Ok(()) } else { Err(format!("{written} bytes instead of {raw_length}")) }
}

pub(super) fn wrong(offset: u64, found: impl Into<String>, expected: &'static str) -> FormatError {
    FormatError::Syntax { offset: offset as usize, found: found.into(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_that_no_reader_would_take_is_refused() {
        let mut packer = Packer::new().unwrap();
        let found = packer.chunk(kind::PART, 0, &vec![0; MAX_CHUNK_BYTES + 1]).err().unwrap().to_string();
        assert_eq!(found, "a chunk of 67108865 bytes; a trace file holds chunks of up to 67108864");
        assert!(packer.chunk(kind::PART, 0, b"").unwrap().len() > CHUNK_HEADER_BYTES);
    }
}
