//! Why a file could not be written or read.

/// Errors of this crate. Offsets count bytes from the start of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The destination refused bytes.
    #[error("the file could not be written")]
    Write(#[source] std::io::Error),
    /// The source refused to give bytes.
    #[error("the file could not be read")]
    Read(#[source] std::io::Error),
    /// A number that readers of the format cannot hold.
    #[error("event {index}: {what} is {value:#x}; a snapshot holds less than 2^63")]
    TooLarge {
        /// Number of the event within the trace.
        index: usize,
        /// "address" or "size".
        what: &'static str,
        /// The number.
        value: u64,
    },
    /// The file ends within a value.
    #[error("byte {offset}: the file ends; expected {expected}")]
    Truncated {
        /// Where it ends.
        offset: usize,
        /// What should have followed.
        expected: &'static str,
    },
    /// Not a pickle, or one that contradicts itself.
    #[error("byte {offset}: found {found}; expected {expected}")]
    Syntax {
        /// Where.
        offset: usize,
        /// What is there.
        found: String,
        /// What should be there.
        expected: &'static str,
    },
    /// The pickle holds more than plain data.
    #[error(
        "byte {offset}: opcode {opcode}: this pickle wants to run code; snapshots hold plain data, so nothing was read"
    )]
    RunsCode {
        /// Where.
        offset: usize,
        /// Name of the opcode.
        opcode: &'static str,
    },
    /// The file asks for more memory than allowed.
    #[error("byte {offset}: more than {limit} {what}; the file is damaged or hostile, or needs a higher limit")]
    Limit {
        /// Where.
        offset: usize,
        /// What there is too much of.
        what: &'static str,
        /// How much is allowed.
        limit: usize,
    },
    /// A trace file of a later version.
    #[error("a trace file of version {found}; this mlx-memviz reads up to {known}; update mlx-memviz")]
    Newer {
        /// Version of the file.
        found: u16,
        /// Newest version that is read.
        known: u16,
    },
    /// More at once than a chunk of a trace file holds.
    #[error("a chunk of {length} bytes; a trace file holds chunks of up to {limit}")]
    ChunkTooLong {
        /// Bytes of the chunk.
        length: usize,
        /// Most that are allowed.
        limit: usize,
    },
    /// An earlier write failed, and what would follow could not be read.
    #[error("an earlier write to the trace file failed; nothing more is written")]
    Broken,
    /// Not JSON.
    #[error("the JSON form could not be parsed")]
    Json(#[source] serde_json::Error),
    /// A well-formed file that is not a memory snapshot.
    #[error("{place}: found {found}; expected {expected}")]
    Content {
        /// Key or list within the file.
        place: &'static str,
        /// What is there.
        found: String,
        /// What should be there.
        expected: &'static str,
    },
}

/// The number of a recording's first event, from a file. No recording has 2^63 events, so positions added to it are numbers.
pub(crate) fn first_index(number: u64, place: &'static str) -> Result<u64, FormatError> {
    let found = || format!("a first event with the number {number}");
    let error = || FormatError::Content { place, found: found(), expected: "less than 2^63" };
    i64::try_from(number).map(|_| number).map_err(|_| error())
}
