//! One table of integers and text as an Arrow IPC stream, which every Arrow library reads: schema, one batch, end.
//!
//! Written by `arrow-ipc`. Read here, from the verified flatbuffers and with every length checked: the reader of `arrow-ipc`
//! asserts on lengths in hostile files, and integers of any width come out faster without arrays between.
//! Does not know what a table means.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch, StringArray};
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_ipc::{MessageHeader, MetadataVersion, Type};
use arrow_schema::{ArrowError, Field, Schema};

use crate::FormatError;

/// A table under construction: equally long columns.
#[derive(Default)]
pub(super) struct Builder {
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
}

impl Builder {
    /// A column of the narrowest unsigned type that holds `values`.
    pub(super) fn unsigned(&mut self, name: &str, values: impl Iterator<Item = u64> + Clone) {
        match values.clone().fold(0, |all, value| all | value) {
            0..0x100 => self.integers::<UInt8Type>(name, values.map(|value| value as u8)),
            0x100..0x1_0000 => self.integers::<UInt16Type>(name, values.map(|value| value as u16)),
            0x1_0000..0x1_0000_0000 => self.integers::<UInt32Type>(name, values.map(|value| value as u32)),
            _ => self.integers::<UInt64Type>(name, values),
        }
    }

    /// A column of the narrowest signed type that holds `values`.
    pub(super) fn signed(&mut self, name: &str, values: impl Iterator<Item = i64> + Clone) {
        // Of a number and its complement the one that is not negative needs as many bits beside the sign.
        match values.clone().fold(0, |all, value| all | (value ^ (value >> 63))) {
            0..0x80 => self.integers::<Int8Type>(name, values.map(|value| value as i8)),
            0x80..0x8000 => self.integers::<Int16Type>(name, values.map(|value| value as i16)),
            0x8000..0x8000_0000 => self.integers::<Int32Type>(name, values.map(|value| value as i32)),
            _ => self.integers::<Int64Type>(name, values),
        }
    }

    fn integers<T: ArrowPrimitiveType>(&mut self, name: &str, values: impl Iterator<Item = T::Native>) {
        let values: Vec<T::Native> = values.collect();
        self.fields.push(Field::new(name, T::DATA_TYPE, false));
        self.columns.push(Arc::new(PrimitiveArray::<T>::new(values.into(), None)));
    }

    /// A column of text.
    pub(super) fn text<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a str>) {
        self.fields.push(Field::new(name, arrow_schema::DataType::Utf8, false));
        self.columns.push(Arc::new(StringArray::from_iter_values(values)));
    }

    /// Appends the stream to `out`. Its length is a multiple of 8 bytes.
    pub(super) fn finish(self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        self.stream(out).map_err(|error| FormatError::Write(std::io::Error::other(error)))
    }

    fn stream(self, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        let schema = Arc::new(Schema::new(self.fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), self.columns)?;
        let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5)?;
        let mut stream = StreamWriter::try_new_with_options(out, &schema, options)?;
        stream.write(&batch)?;
        stream.finish()
    }
}

/// A table read: its columns lie in the bytes it was parsed from.
#[derive(Debug)]
pub(super) struct Table<'a> {
    rows: usize,
    columns: Vec<(String, Column<'a>)>,
}

#[derive(Clone, Copy, Debug)]
enum Column<'a> {
    /// `rows` integers of that many bytes each.
    Integers { bytes: &'a [u8], width: usize, signed: bool },
    /// Row `i` is `bytes[offsets[i]..offsets[i + 1]]`.
    Text { offsets: &'a [u8], bytes: &'a [u8] },
}

#[derive(Clone, Copy)]
enum Kind {
    Integers { width: usize, signed: bool },
    Text,
}

/// What is wrong with a table, for [`FormatError::Content`].
type Wrong = &'static str;

impl<'a> Table<'a> {
    /// Parses a stream as [`Builder::finish`] and other Arrow libraries write it: integers and text, no nulls, no compression
    /// of its own.
    pub(super) fn parse(mut stream: &'a [u8]) -> Result<Table<'a>, Wrong> {
        let (message, _) = message(&mut stream)?;
        let schema = message.header_as_schema().ok_or("a table without a schema")?;
        let mut kinds = Vec::new();
        for field in schema.fields().iter().flatten() {
            kinds.push((field.name().unwrap_or_default().to_owned(), kind(&field)?));
        }
        let (message, body) = self::message(&mut stream)?;
        let batch = message.header_as_record_batch().ok_or("a table without a batch")?;
        if batch.compression().is_some() {
            return Err("a table with a compression of its own");
        }
        let rows = usize::try_from(batch.length()).map_err(|_| "a negative number of rows")?;
        let buffers: Vec<(i64, i64)> = batch.buffers().iter().flatten().map(|at| (at.offset(), at.length())).collect();
        let mut buffers = buffers.into_iter().map(|(offset, length)| slice(body, offset, length));
        let mut next = || buffers.next().unwrap_or(Err("fewer buffers than columns need"));
        let mut columns = Vec::with_capacity(kinds.len());
        for (name, kind) in kinds {
            if !next()?.is_empty() && batch.nodes().iter().flatten().any(|node| node.null_count() != 0) {
                return Err("nulls in a table");
            }
            columns.push((name, column(kind, rows, &mut next)?));
        }
        Ok(Table { rows, columns })
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    fn column(&self, name: &str) -> Result<Column<'a>, Wrong> {
        let found = self.columns.iter().find(|(column, _)| column == name);
        found.map(|(_, column)| *column).ok_or("a table without one of its columns")
    }

    /// A column of integers, sign-extended: appended to `out`, which is emptied first.
    pub(super) fn read_u64(&self, name: &str, out: &mut Vec<u64>) -> Result<(), Wrong> {
        out.clear();
        match self.column(name)? {
            Column::Integers { bytes, width: 1, signed: false } => {
                out.extend(bytes.iter().map(|byte| u64::from(*byte)))
            }
            Column::Integers { bytes, width: 1, signed: true } => {
                out.extend(bytes.iter().map(|byte| *byte as i8 as u64))
            }
            Column::Integers { bytes, width: 2, signed: false } => {
                widen(bytes, out, |at| u16::from_le_bytes(at).into())
            }
            Column::Integers { bytes, width: 2, signed: true } => widen(bytes, out, |at| i16::from_le_bytes(at) as u64),
            Column::Integers { bytes, width: 4, signed: false } => {
                widen(bytes, out, |at| u32::from_le_bytes(at).into())
            }
            Column::Integers { bytes, width: 4, signed: true } => widen(bytes, out, |at| i32::from_le_bytes(at) as u64),
            Column::Integers { bytes, .. } => widen(bytes, out, u64::from_le_bytes),
            Column::Text { .. } => return Err("text where numbers belong"),
        }
        Ok(())
    }

    /// As [`Table::read_u64`], of a column whose numbers fit 32 bits.
    pub(super) fn read_u32(&self, name: &str, out: &mut Vec<u32>) -> Result<(), Wrong> {
        out.clear();
        match self.column(name)? {
            Column::Integers { bytes, width: 1, signed: false } => {
                out.extend(bytes.iter().map(|byte| u32::from(*byte)))
            }
            Column::Integers { bytes, width: 2, signed: false } => {
                widen(bytes, out, |at| u16::from_le_bytes(at).into())
            }
            Column::Integers { bytes, width: 4, signed: false } => widen(bytes, out, u32::from_le_bytes),
            _ => {
                let mut wide = Vec::new();
                self.read_u64(name, &mut wide)?;
                for value in wide {
                    out.push(u32::try_from(value).map_err(|_| "a number beyond 32 bits")?);
                }
            }
        }
        Ok(())
    }

    /// The numbers of a column.
    pub(super) fn u64s(&self, name: &str) -> Result<Vec<u64>, Wrong> {
        let mut out = Vec::new();
        self.read_u64(name, &mut out)?;
        Ok(out)
    }

    /// The numbers of a column, which must fit the type.
    pub(super) fn numbers<T: TryFrom<i64>>(&self, name: &str) -> Result<Vec<T>, Wrong> {
        let narrow = |value: u64| T::try_from(value as i64).map_err(|_| "a number beyond its type");
        self.u64s(name)?.into_iter().map(narrow).collect()
    }

    /// The numbers of a column that older files of this version lack: zeros then.
    pub(super) fn later_u64s(&self, name: &str) -> Result<Vec<u64>, Wrong> {
        let is_there = self.columns.iter().any(|(column, _)| column == name);
        if is_there { self.u64s(name) } else { Ok(vec![0; self.rows]) }
    }

    /// The texts of a column.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<&'a str>, Wrong> {
        let Column::Text { offsets, bytes } = self.column(name)? else { return Err("numbers where text belongs") };
        let (ends, _) = offsets.as_chunks::<4>();
        let mut texts = Vec::with_capacity(self.rows);
        for pair in ends.windows(2) {
            let [from, to] = [pair[0], pair[1]].map(|end| i64::from(i32::from_le_bytes(end)));
            let text = slice(bytes, from, to - from)?;
            texts.push(std::str::from_utf8(text).map_err(|_| "text that is not UTF-8")?);
        }
        Ok(texts)
    }
}

fn widen<const N: usize, T>(bytes: &[u8], out: &mut Vec<T>, each: impl Fn([u8; N]) -> T) {
    let (values, _) = bytes.as_chunks::<N>();
    out.extend(values.iter().map(|value| each(*value)));
}

fn kind(field: &arrow_ipc::Field<'_>) -> Result<Kind, Wrong> {
    let is_plain = field.dictionary().is_none();
    match field.type_type() {
        Type::Utf8 if is_plain => Ok(Kind::Text),
        Type::Int if is_plain => {
            let int = field.type_as_int().ok_or("a column without a type")?;
            match int.bitWidth() {
                8 | 16 | 32 | 64 => Ok(Kind::Integers { width: int.bitWidth() as usize / 8, signed: int.is_signed() }),
                _ => Err("integers of a width that there is none of"),
            }
        }
        _ => Err("a column of neither integers nor text"),
    }
}

fn column<'a>(
    kind: Kind,
    rows: usize,
    next: &mut impl FnMut() -> Result<&'a [u8], Wrong>,
) -> Result<Column<'a>, Wrong> {
    let exactly = |bytes: &'a [u8], count: usize, width: usize| {
        let length = count.checked_mul(width).ok_or("more rows than memory")?;
        bytes.get(..length).ok_or("fewer bytes than rows need")
    };
    match kind {
        Kind::Integers { width, signed } => {
            Ok(Column::Integers { bytes: exactly(next()?, rows, width)?, width, signed })
        }
        Kind::Text => {
            let ends = rows.checked_add(1).ok_or("more rows than memory")?;
            let offsets = next()?;
            // Arrow allows a column of no rows to have no offsets.
            let offsets = if rows == 0 { &[] } else { exactly(offsets, ends, 4)? };
            Ok(Column::Text { offsets, bytes: next()? })
        }
    }
}

/// The next message of a stream and its body.
fn message<'a>(stream: &mut &'a [u8]) -> Result<(arrow_ipc::Message<'a>, &'a [u8]), Wrong> {
    const SHORT: Wrong = "a table that ends early";
    let (head, rest) = stream.split_first_chunk::<8>().ok_or(SHORT)?;
    if head[..4] != [0xff; 4] {
        return Err("no Arrow message where one belongs");
    }
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
    let (metadata, rest) = rest.split_at_checked(length).ok_or(SHORT)?;
    let message = arrow_ipc::root_as_message(metadata).map_err(|_| "a damaged Arrow message")?;
    if message.version() < MetadataVersion::V4 || message.header_type() == MessageHeader::NONE {
        return Err("an Arrow message of before 2017");
    }
    let body = slice(rest, 0, message.bodyLength())?;
    *stream = &rest[body.len()..];
    Ok((message, body))
}

fn slice(bytes: &[u8], offset: i64, length: i64) -> Result<&[u8], Wrong> {
    let range = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
    let range = range.and_then(|(from, length)| Some(from..from.checked_add(length)?));
    range.and_then(|range| bytes.get(range)).ok_or("a place outside the table")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tables(numbers: &[u64], texts: &[String]) -> Vec<u8> {
        let mut builder = Builder::default();
        builder.unsigned("unsigned", numbers.iter().copied());
        builder.signed("signed", numbers.iter().map(|value| *value as i64));
        builder.text("text", texts.iter().map(String::as_str));
        let mut out = Vec::new();
        builder.finish(&mut out).unwrap();
        assert!(out.len().is_multiple_of(8));
        out
    }

    proptest! {
        #[test]
        fn columns_come_back(
            rows in proptest::collection::vec((any::<u64>(), 0..64u32, any::<bool>(), ".{0,3}"), 0..20),
        ) {
            let wide = |(value, shift, negative, _): &(u64, u32, bool, String)| {
                if *negative { !(value >> shift) } else { value >> shift }
            };
            let (numbers, texts): (Vec<u64>, Vec<String>) = rows.iter().map(|row| (wide(row), row.3.clone())).unzip();
            let bytes = tables(&numbers, &texts);
            let table = Table::parse(&bytes).unwrap();
            prop_assert_eq!(&table.u64s("unsigned").unwrap(), &numbers);
            prop_assert_eq!(&table.u64s("signed").unwrap(), &numbers);
            prop_assert_eq!(table.texts("text").unwrap(), texts);
            let narrow = numbers.iter().map(|value| u32::try_from(*value).ok()).collect::<Option<Vec<u32>>>();
            let mut found = Vec::new();
            let read = table.read_u32("unsigned", &mut found).ok().map(|()| found);
            prop_assert_eq!(read, narrow);
        }

        #[test]
        fn damaged_tables_do_not_panic(at in 0usize..2000, byte in any::<u8>(), cut in 0usize..2000) {
            let mut bytes = tables(&[1, 300, 70_000], &["a".into(), "b".into(), String::new()]);
            let length = bytes.len();
            bytes[at % length] = byte;
            bytes.truncate(length - cut % 8 * (cut % 3 / 2));
            if let Ok(table) = Table::parse(&bytes) {
                for name in ["unsigned", "signed", "text"] {
                    let (_, _) = (table.u64s(name).is_ok(), table.texts(name).is_ok());
                }
            }
        }
    }
}
