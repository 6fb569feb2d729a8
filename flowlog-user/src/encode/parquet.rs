//! Parquet: a typed column for each of the record's, all optional, compressed with zstd inside.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel,
};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::sheet::{Kept, Rows, column};
use crate::record::columns::ColumnKind;

/// zstd's level inside the file: read often, written once.
const LEVEL: i32 = 9;

/// A file in the making. Its bytes are handed on after each group of rows.
pub(super) struct Parquet {
    writer: SerializedFileWriter<Vec<u8>>,
}

impl Parquet {
    pub(super) fn new(columns: &[usize]) -> io::Result<Self> {
        let fields = columns.iter().map(|at| field(*at)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let schema = Type::group_type_builder("flowlog").with_fields(fields).build().map_err(failed)?;
        let writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties(columns)?));
        Ok(Self { writer: writer.map_err(failed)? })
    }

    pub(super) fn group(
        &mut self,
        rows: &Rows,
        columns: &[usize],
        order: &[u32],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if order.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(failed)?;
        for at in columns {
            let Some(mut writer) = group.next_column().map_err(failed)? else { break };
            let cells = rows.dense(*at, order);
            write_column(&mut writer, column(*at).1, &cells, rows).map_err(failed)?;
            writer.close().map_err(failed)?;
        }
        group.close().map_err(failed)?;
        self.hand_on(out)
    }

    pub(super) fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.writer.finish().map_err(failed)?;
        self.hand_on(out)
    }

    fn hand_on(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.writer.flush()?;
        out.write_all(&std::mem::take(self.writer.inner_mut()))
    }
}

fn failed(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

fn field(at: usize) -> Result<TypePtr, ParquetError> {
    let (name, kind) = column(at);
    let optional =
        |physical| Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    let text = LogicalType::String;
    let whole = |is_signed| LogicalType::integer(64, is_signed);
    let built = match kind {
        ColumnKind::Text | ColumnKind::Name | ColumnKind::Json => {
            optional(Physical::BYTE_ARRAY).with_logical_type(Some(text)).build()
        }
        ColumnKind::Unsigned => optional(Physical::INT64).with_logical_type(Some(whole(false))).build(),
        ColumnKind::Signed => optional(Physical::INT64).with_logical_type(Some(whole(true))).build(),
        ColumnKind::Bool => optional(Physical::BOOLEAN).build(),
        ColumnKind::Time => {
            let unit = LogicalType::timestamp(true, TimeUnit::NANOS);
            optional(Physical::INT64).with_logical_type(Some(unit)).build()
        }
        ColumnKind::Texts => {
            let element = Type::primitive_type_builder("element", Physical::BYTE_ARRAY)
                .with_repetition(Repetition::REQUIRED)
                .with_logical_type(Some(text))
                .build()?;
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![Arc::new(element)])
                .build()?;
            Type::group_type_builder(name)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(Some(LogicalType::List))
                .with_converted_type(ConvertedType::LIST)
                .with_fields(vec![Arc::new(list)])
                .build()
        }
    };
    built.map(Arc::new)
}

fn properties(columns: &[usize]) -> io::Result<WriterProperties> {
    let level = ZstdLevel::try_new(LEVEL).map_err(failed)?;
    let about = |key: &str, value: &str| KeyValue { key: key.into(), value: Some(value.into()) };
    let place = columns.iter().position(|at| column(*at).0 == "time").and_then(|at| i32::try_from(at).ok());
    let sorted =
        place.map(|column_idx| vec![SortingColumn { column_idx, descending: false, nulls_first: true }]);
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("flowlog version ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(vec![about(
            "flowlog",
            "columns: config/columns.md; bytes: layer 2 without FCS",
        )]))
        .set_sorting_columns(sorted);
    for at in columns {
        builder = encoding(builder, *at);
    }
    Ok(builder.build())
}

/// Dictionaries suit what repeats; what seldom does is better told by its differences.
fn encoding(builder: WriterPropertiesBuilder, at: usize) -> WriterPropertiesBuilder {
    let (name, kind) = column(at);
    let path = ColumnPath::from(name);
    let by_difference = match (name, kind) {
        ("uuid", _) => Encoding::DELTA_BYTE_ARRAY,
        ("time" | "connection", _) | (_, ColumnKind::Time) => Encoding::DELTA_BINARY_PACKED,
        _ => return builder,
    };
    builder.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, by_difference)
}

fn write_column(
    writer: &mut SerializedColumnWriter<'_>,
    kind: ColumnKind,
    cells: &[Option<Kept>],
    rows: &Rows,
) -> Result<(), ParquetError> {
    let present: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let numbers =
        || cells.iter().flatten().map(|kept| if let Kept::Number(value) = kept { *value } else { 0 });
    match kind {
        ColumnKind::Unsigned | ColumnKind::Signed | ColumnKind::Time => {
            let values: Vec<i64> = numbers().collect();
            writer.typed::<Int64Type>().write_batch(&values, Some(&present), None)?;
        }
        ColumnKind::Bool => {
            let values: Vec<bool> = numbers().map(|value| value != 0).collect();
            writer.typed::<BoolType>().write_batch(&values, Some(&present), None)?;
        }
        ColumnKind::Text | ColumnKind::Name | ColumnKind::Json => {
            let text = |kept: &Kept| if let Kept::Text(number) = kept { rows.text_of(*number) } else { "" };
            let values: Vec<ByteArray> =
                cells.iter().flatten().map(|kept| ByteArray::from(text(kept))).collect();
            writer.typed::<ByteArrayType>().write_batch(&values, Some(&present), None)?;
        }
        ColumnKind::Texts => {
            let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
            for cell in cells {
                let before = values.len();
                values.extend(cell.iter().flat_map(|kept| rows.texts_of(*kept)).map(ByteArray::from));
                let count = values.len() - before;
                // An element is defined by all three, an empty list by itself alone.
                definitions.extend(std::iter::repeat_n(2, count));
                repetitions.extend((0..count).map(|at| i16::from(at > 0)));
                if count == 0 {
                    definitions.push(i16::from(cell.is_some()));
                    repetitions.push(0);
                }
            }
            writer.typed::<ByteArrayType>().write_batch(&values, Some(&definitions), Some(&repetitions))?;
        }
    }
    Ok(())
}
