//! A table as Parquet, zstd-compressed: what DuckDB, Polars, pandas and Spark read without help.

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::{Cell, Kind, Lined, Sink, Table};
use crate::FormatError;

/// Rows that are held as arrays at a time.
const BATCH_ROWS: usize = 8192;

/// Writes one table of the recordings.
///
/// # Errors
/// `out` fails.
pub fn write(recordings: &[Lined<'_>], table: Table, out: &mut (dyn Write + Send)) -> Result<(), FormatError> {
    let schema = Arc::new(Schema::new(table.columns().iter().map(field).collect::<Vec<_>>()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("mlx-memviz ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties)).map_err(wrong)?;
    let columns = table.columns().iter().map(|(_, kind)| Column::new(*kind)).collect();
    let mut batches = Batches { writer, schema, columns, rows: 0 };
    table.rows(recordings, &mut batches)?;
    batches.flush()?;
    let out = batches.writer.into_inner().map_err(wrong)?;
    out.flush().map_err(FormatError::Write)
}

/// The rows are ours, so what fails is the destination.
fn wrong(error: impl std::error::Error + Send + Sync + 'static) -> FormatError {
    FormatError::Write(std::io::Error::other(error))
}

fn field((name, kind): &(&'static str, Kind)) -> Field {
    let data_type = match kind {
        Kind::Int => DataType::Int64,
        Kind::Unsigned => DataType::UInt64,
        Kind::Float => DataType::Float64,
        Kind::Bool => DataType::Boolean,
        Kind::Text => DataType::Utf8,
    };
    Field::new(*name, data_type, true)
}

struct Batches<'w> {
    writer: ArrowWriter<&'w mut (dyn Write + Send)>,
    schema: Arc<Schema>,
    columns: Vec<Column>,
    rows: usize,
}

impl Batches<'_> {
    fn flush(&mut self) -> Result<(), FormatError> {
        self.rows = 0;
        let arrays = self.columns.iter_mut().map(Column::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays).map_err(wrong)?;
        self.writer.write(&batch).map_err(wrong)
    }
}

impl Sink for Batches<'_> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), FormatError> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell);
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS { self.flush() } else { Ok(()) }
    }
}

enum Column {
    Int(Int64Builder),
    Unsigned(UInt64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
}

impl Column {
    fn new(kind: Kind) -> Column {
        match kind {
            Kind::Int => Column::Int(Int64Builder::new()),
            Kind::Unsigned => Column::Unsigned(UInt64Builder::new()),
            Kind::Float => Column::Float(Float64Builder::new()),
            Kind::Bool => Column::Bool(BooleanBuilder::new()),
            Kind::Text => Column::Text(StringBuilder::new()),
        }
    }

    /// A cell of another kind than the column's is null; the tests of the tables rule that out.
    fn push(&mut self, cell: &Cell<'_>) {
        match (self, cell) {
            (Column::Int(builder), Cell::Int(number)) => builder.append_value(*number),
            (Column::Unsigned(builder), Cell::Unsigned(number)) => builder.append_value(*number),
            (Column::Float(builder), Cell::Float(number)) => builder.append_value(*number),
            (Column::Bool(builder), Cell::Bool(value)) => builder.append_value(*value),
            (Column::Text(builder), Cell::Text(text)) => builder.append_value(text),
            (Column::Int(builder), _) => builder.append_null(),
            (Column::Unsigned(builder), _) => builder.append_null(),
            (Column::Float(builder), _) => builder.append_null(),
            (Column::Bool(builder), _) => builder.append_null(),
            (Column::Text(builder), _) => builder.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Column::Int(builder) => Arc::new(builder.finish()),
            Column::Unsigned(builder) => Arc::new(builder.finish()),
            Column::Float(builder) => Arc::new(builder.finish()),
            Column::Bool(builder) => Arc::new(builder.finish()),
            Column::Text(builder) => Arc::new(builder.finish()),
        }
    }
}
