//! A table as Parquet: one required column of 32-bit floats per column, Zstandard, a million rows per group.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::FloatType;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::data::table::Table;

const ROWS_PER_GROUP: usize = 1 << 20;

pub(super) fn write(file: &mut (impl Write + Send), table: &Table) -> io::Result<()> {
    try_write(file, table).map_err(io::Error::other)
}

fn try_write(file: &mut (impl Write + Send), table: &Table) -> Result<(), ParquetError> {
    let fields = table
        .columns()
        .iter()
        .map(|name| {
            Type::primitive_type_builder(name, Physical::FLOAT)
                .with_repetition(Repetition::REQUIRED)
                .build()
                .map(Arc::new)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("table").with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
    for rows in table.values().chunks(ROWS_PER_GROUP * table.dimension()) {
        let mut group = writer.next_row_group()?;
        for column in 0..table.dimension() {
            let values: Vec<f32> =
                rows.chunks_exact(table.dimension()).map(|row| row[column]).collect();
            if let Some(mut writer) = group.next_column()? {
                writer.typed::<FloatType>().write_batch(&values, None, None)?;
                writer.close()?;
            }
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}
