//! Why an image cannot be used.

use crate::memory::Unreadable;

/// Why an image cannot be used. Nothing is half read: a call gives all its answers or one of these.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The image points to memory that cannot be read.
    #[error("cannot read {what}")]
    Unreadable {
        /// What was looked for there.
        what: &'static str,
        /// Where, and how much.
        source: Unreadable,
    },
    /// A file's headers or section tables are damaged, or it is not a 64-bit little endian ELF file.
    #[error("{what} of the file cannot be parsed; expected 64-bit little endian ELF")]
    Parse {
        /// The part that is damaged.
        what: &'static str,
        /// The parser's reason.
        source: object::read::Error,
    },
    /// A processor without table of relocation kinds.
    #[error("processor number {found} (e_machine) is not supported (have 62 x86_64, 183 aarch64)")]
    UnknownMachine {
        /// The file's `e_machine`.
        found: u16,
    },
    /// A dynamic section without end.
    #[error("no DT_NULL in the first {limit} entries of the dynamic section")]
    NoDynamicEnd {
        /// Entries looked at.
        limit: usize,
    },
    /// A table without the entry that makes it readable.
    #[error("{present} without {missing} in the dynamic section")]
    MissingEntry {
        /// The entry that is there.
        present: &'static str,
        /// The entry that should be.
        missing: &'static str,
    },
    /// An entry of the dynamic section with a value of another format.
    #[error("{entry} is {found}; expected {expected}")]
    WrongEntry {
        /// Name of the entry.
        entry: &'static str,
        /// Its value.
        found: u64,
        /// The one value that this crate reads.
        expected: u64,
    },
    /// A table whose size is not a whole number of entries.
    #[error("{table} has {size_bytes} bytes; expected a multiple of {entry_bytes}")]
    RaggedTable {
        /// Name of the entry with the size.
        table: &'static str,
        /// The size.
        size_bytes: u64,
        /// Size of one entry.
        entry_bytes: u64,
    },
    /// A size or count beyond what any real image has.
    #[error("{what}: {found}, more than the {limit} that are read")]
    TooBig {
        /// What is counted, with its unit.
        what: &'static str,
        /// The image's number.
        found: u64,
        /// The largest number that is accepted.
        limit: u64,
    },
    /// A name starts outside of its string table.
    #[error("a symbol's name starts at {offset} in a string table of {size_bytes} bytes")]
    NameOutOfRange {
        /// Start of the name.
        offset: u32,
        /// Size of the string table.
        size_bytes: usize,
    },
    /// A name that the string table's end cuts off.
    #[error("the symbol name at {offset} in the string table has no end")]
    NameWithoutEnd {
        /// Start of the name.
        offset: u32,
    },
    /// An address that must be a multiple of 8 and is not.
    #[error("{what} at {addr:#x} is not 8-byte aligned")]
    Unaligned {
        /// What is there.
        what: &'static str,
        /// The address.
        addr: u64,
    },
    /// An address or range that leaves 64 bits.
    #[error("{what} at {base:#x} + {offset:#x} leaves the address space")]
    OutOfAddressSpace {
        /// What is there.
        what: &'static str,
        /// Where it is counted from.
        base: u64,
        /// How far it is from there.
        offset: u64,
    },
    /// Two segments of a file want the same addresses.
    #[error("the segments at {first_addr:#x} and {second_addr:#x} overlap")]
    OverlappingSegments {
        /// Start of the lower one.
        first_addr: u64,
        /// Start of the other.
        second_addr: u64,
    },
}
