//! A table as Parquet: one required column of floats per column, Zstandard, a quarter of a million rows per group.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{DoubleType, FloatType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::{Precision, RowFormat};

const ROWS_PER_GROUP: usize = 1 << 18;

pub(super) struct Rows<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    precision: Precision,
    /// The values of the next group, column by column.
    group: Vec<Vec<f64>>,
}

impl<W: Write + Send> Rows<W> {
    pub(super) fn new(file: W, columns: &[String], precision: Precision) -> io::Result<Self> {
        let writer = begin(file, columns, precision).map_err(io::Error::other)?;
        Ok(Self { writer, precision, group: vec![Vec::new(); columns.len()] })
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for values in &mut self.group {
            if let Some(mut writer) = group.next_column()? {
                match self.precision {
                    Precision::Single => {
                        let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
                        writer.typed::<FloatType>().write_batch(&values, None, None)?
                    }
                    Precision::Double => {
                        writer.typed::<DoubleType>().write_batch(values, None, None)?
                    }
                };
                writer.close()?;
            }
            values.clear();
        }
        group.close()?;
        Ok(())
    }
}

fn begin<W: Write + Send>(
    file: W,
    columns: &[String],
    precision: Precision,
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let physical = match precision {
        Precision::Single => Physical::FLOAT,
        Precision::Double => Physical::DOUBLE,
    };
    let fields = columns
        .iter()
        .map(|name| {
            Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::REQUIRED)
                .build()
                .map(Arc::new)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("table").with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
}

impl<W: Write + Send> RowFormat for Rows<W> {
    fn rows(&mut self, values: &[f64]) -> io::Result<()> {
        for row in values.chunks_exact(self.group.len()) {
            for (column, &value) in self.group.iter_mut().zip(row) {
                column.push(value);
            }
            if self.group[0].len() == ROWS_PER_GROUP {
                self.write_group().map_err(io::Error::other)?;
            }
        }
        Ok(())
    }

    fn labelled(&mut self, _: &[String], _: &[f64]) -> io::Result<()> {
        Err(io::Error::other("columns are carried along into .csv and .tsv only"))
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if !self.group[0].is_empty() {
            self.write_group().map_err(io::Error::other)?;
        }
        let mut file = self.writer.into_inner().map_err(io::Error::other)?;
        file.flush()
    }
}
