//! Parquet files: columns of numbers and of text, read side by side in batches.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::basic::{Compression as Codec, ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use crate::data::columns::{Column, choose, ranges};
use crate::data::error::{Error, Result};
use crate::data::gather::{Flow, Gather, Target, TextCells, Words};
use crate::data::options::ReadOptions;

use super::open::{Compression, Opened};

/// Rows that are read from every column at once.
const BATCH: usize = 1 << 13;

/// Reads a Parquet file. The `parquet` crate has panics left for damaged files (version 60: a page that asks for a
/// dictionary that is not there), so a panic inside it is caught here and reported as damage.
pub(super) fn read<'a>(
    opened: Opened,
    options: &ReadOptions,
    target: Target<'a>,
) -> Result<Gather<'a>> {
    catch_unwind(AssertUnwindSafe(|| read_sound(&opened, options, target)))
        .unwrap_or_else(|_| Err(opened.damaged(0, "a page contradicts the file's own index")))
}

fn read_sound<'a>(
    opened: &Opened,
    options: &ReadOptions,
    target: Target<'a>,
) -> Result<Gather<'a>> {
    if opened.compression != Compression::None {
        return Err(Error::refused(
            &opened.path,
            "a Parquet file cannot be read through another compression",
            "Unpack it first; Parquet compresses its own columns.",
        ));
    }
    if !opened.head.starts_with(b"PAR1") {
        return Err(opened.wrong_magic("a Parquet file"));
    }
    let reader =
        SerializedFileReader::new(opened.seekable()?).map_err(|error| opened.damaged(0, error))?;
    let metadata = reader.metadata().file_metadata();
    let columns = metadata.schema_descr().columns();
    let names: Vec<String> = columns.iter().map(|column| column.path().string()).collect();
    options.check_columns(&opened.path, names.len())?;
    options.check_carry(&opened.path)?;
    let mut gather = Gather::new(choose(&opened.path, &names, options)?, options, target);
    let kinds: Vec<Option<Kind>> = columns.iter().map(|column| Kind::of(column)).collect();
    for (column, texts) in gather.columns.iter().zip(&mut gather.texts) {
        // The file itself says what is text.
        match (kinds[column.index], &texts) {
            (_, TextCells::Known(_)) => {}
            (Some(Kind::Text), TextCells::NumbersOrWords) => {
                *texts = TextCells::Words(Words::default());
            }
            (Some(Kind::Text), _) => {}
            _ => *texts = TextCells::Numbers,
        }
    }
    let is_read = |(column, texts): &(&Column, &TextCells)| match kinds[column.index] {
        Some(Kind::Text) => !matches!(texts, TextCells::Numbers),
        kind => kind.is_some(),
    };
    let mut refused = gather.columns.iter().zip(&gather.texts).filter(|found| !is_read(found));
    if let Some((column, _)) = refused.next() {
        let is_number = |kind: &Option<Kind>| kind.is_some_and(|kind| kind != Kind::Text);
        let numeric: Vec<usize> = (0..kinds.len()).filter(|&i| is_number(&kinds[i])).collect();
        return Err(Error::NotNumeric {
            place: gather.next_row(&opened.path, column),
            cell: described(&columns[column.index]),
            advice: if numeric.is_empty() {
                "No column of the file is numeric.".into()
            } else {
                format!("Choose the numeric columns, for example `columns` {}.", ranges(&numeric))
                    .into()
            },
        });
    }
    check_codecs(opened, &reader, &gather)?;
    gather.expect_rows(usize::try_from(metadata.num_rows()).unwrap_or(0));
    for group in 0..reader.num_row_groups() {
        let group =
            reader.get_row_group(group).map_err(|error| opened.damaged(gather.seen(), error))?;
        let mut readers = Vec::new();
        for column in &gather.columns {
            readers.push(Numbers {
                reader: group
                    .get_column_reader(column.index)
                    .map_err(|error| opened.damaged(gather.seen(), error))?,
                kind: kinds[column.index].unwrap_or(Kind::Plain),
                full_level: columns[column.index].max_def_level(),
                values: Vec::new(),
                texts: Vec::new(),
            });
        }
        if batches(opened, &mut readers, &mut gather)? == Flow::Full {
            break;
        }
    }
    Ok(gather)
}

/// An error for a column that is compressed in a way that this program cannot undo, which is no damage.
fn check_codecs(
    opened: &Opened,
    reader: &SerializedFileReader<File>,
    gather: &Gather<'_>,
) -> Result<()> {
    for group in reader.metadata().row_groups() {
        for column in &gather.columns {
            let codec = group.column(column.index).compression();
            if matches!(codec, Codec::BROTLI(_) | Codec::LZO) {
                let name = match codec {
                    Codec::LZO => "LZO",
                    _ => "Brotli",
                };
                let detail = format!(
                    "column {} is compressed with {name}, which cannot be read",
                    column.name
                );
                let advice =
                    "Write the file with zstd, snappy, gzip or lz4, or with no compression.";
                return Err(Error::refused(&opened.path, detail, advice));
            }
        }
    }
    Ok(())
}

/// Reads a row group to its end.
fn batches(opened: &Opened, readers: &mut [Numbers], gather: &mut Gather<'_>) -> Result<Flow> {
    let mut cells = vec![0.0; readers.len()];
    loop {
        for numbers in readers.iter_mut() {
            numbers.next().map_err(|error| opened.damaged(gather.seen(), error))?;
        }
        let now = readers[0].len();
        if readers.iter().any(|numbers| numbers.len() != now) {
            return Err(opened.damaged(gather.seen() + now, "its columns have different lengths"));
        }
        if now == 0 {
            return Ok(Flow::More);
        }
        for row in 0..now {
            for (position, (cell, numbers)) in cells.iter_mut().zip(readers.iter()).enumerate() {
                *cell = match (numbers.kind, numbers.texts.get(row)) {
                    (Kind::Text, Some(Some(text))) => {
                        let code = gather.code(position, text.as_bytes());
                        code.ok_or_else(|| Error::NotNumeric {
                            place: gather.next_row(&opened.path, &gather.columns[position]),
                            cell: text.clone(),
                            advice: "Mend the cell, or say by its kind what the column is.".into(),
                        })?
                    }
                    (Kind::Text, _) => f64::NAN,
                    _ => numbers.values[row],
                };
            }
            if gather.push_row(&opened.path, &cells)? == Flow::Full {
                return Ok(Flow::Full);
            }
        }
    }
}

/// How the stored number becomes a float.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Unsigned,
    /// Divided by this power of ten.
    Decimal(f64),
    /// No number, but text.
    Text,
}

impl Kind {
    /// The kind of a column, or none if it is neither a number nor text.
    fn of(column: &ColumnDescriptor) -> Option<Kind> {
        use ConvertedType as C;
        let stored = matches!(
            column.physical_type(),
            Type::BOOLEAN | Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE
        );
        let time = matches!(
            column.logical_type_ref(),
            Some(LogicalType::Date | LogicalType::Time { .. } | LogicalType::Timestamp { .. })
        );
        let is_text = matches!(column.converted_type(), C::UTF8 | C::ENUM)
            || matches!(column.logical_type_ref(), Some(LogicalType::String | LogicalType::Enum));
        if is_text && column.physical_type() == Type::BYTE_ARRAY && column.max_rep_level() == 0 {
            return Some(Kind::Text);
        }
        if !stored || time || column.max_rep_level() > 0 {
            return None;
        }
        match column.converted_type() {
            C::NONE | C::INT_8 | C::INT_16 | C::INT_32 | C::INT_64 => Some(Kind::Plain),
            C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64 => Some(Kind::Unsigned),
            C::DECIMAL => Some(Kind::Decimal(10f64.powi(column.type_scale()))),
            _ => None,
        }
    }
}

fn described(column: &ColumnDescriptor) -> String {
    match (column.max_rep_level(), column.converted_type()) {
        (0, ConvertedType::NONE) => format!("a column of type {}", column.physical_type()),
        (0, converted) => format!("a column of type {converted}"),
        _ => "a column of lists".into(),
    }
}

/// One column of a row group, batch after batch; null becomes NaN.
struct Numbers {
    reader: ColumnReader,
    kind: Kind,
    /// The level that says that a value is there; 0 if it always is.
    full_level: i16,
    values: Vec<f64>,
    /// Of a column of text, in the place of numbers.
    texts: Vec<Option<String>>,
}

impl Numbers {
    /// Cells of the batch.
    fn len(&self) -> usize {
        if self.kind == Kind::Text { self.texts.len() } else { self.values.len() }
    }

    fn next(&mut self) -> std::result::Result<(), ParquetError> {
        let (level, kind) = (self.full_level, self.kind);
        if let (Kind::Text, ColumnReader::ByteArrayColumnReader(reader)) = (kind, &mut self.reader)
        {
            self.texts = texts(reader, level)?;
            return Ok(());
        }
        let unsigned = kind == Kind::Unsigned;
        let scaled = |number: f64| match kind {
            Kind::Decimal(scale) => number / scale,
            _ => number,
        };
        self.values = match &mut self.reader {
            ColumnReader::BoolColumnReader(r) => batch(r, level, |v| f64::from(u8::from(v))),
            ColumnReader::Int32ColumnReader(r) if unsigned => {
                batch(r, level, |v| f64::from(v as u32))
            }
            ColumnReader::Int32ColumnReader(r) => batch(r, level, |v| scaled(f64::from(v))),
            ColumnReader::Int64ColumnReader(r) if unsigned => batch(r, level, |v| v as u64 as f64),
            ColumnReader::Int64ColumnReader(r) => batch(r, level, |v| scaled(v as f64)),
            ColumnReader::FloatColumnReader(r) => batch(r, level, f64::from),
            ColumnReader::DoubleColumnReader(r) => batch(r, level, |v| v),
            _ => Err(ParquetError::General("the column is not numeric".into())),
        }?;
        Ok(())
    }
}

/// The next cells of a column of text.
fn texts(
    reader: &mut ColumnReaderImpl<ByteArrayType>,
    full_level: i16,
) -> std::result::Result<Vec<Option<String>>, ParquetError> {
    let (mut stored, mut levels) = (Vec::with_capacity(BATCH), Vec::new());
    reader.read_records(BATCH, Some(&mut levels), None, &mut stored)?;
    let text = |bytes: &ByteArray| bytes.as_utf8().map(str::to_owned);
    let mut stored = stored.iter();
    if full_level == 0 {
        return stored.map(|bytes| text(bytes).map(Some)).collect();
    }
    let mut next = |&level: &i16| match level == full_level {
        true => stored.next().map(&text).transpose(),
        false => Ok(None),
    };
    levels.iter().map(&mut next).collect()
}

/// The next values of a column.
fn batch<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    full_level: i16,
    number: impl Fn(T::T) -> f64,
) -> std::result::Result<Vec<f64>, ParquetError> {
    let (mut stored, mut levels) = (Vec::with_capacity(BATCH), Vec::new());
    reader.read_records(BATCH, Some(&mut levels), None, &mut stored)?;
    let mut stored = stored.into_iter().map(number);
    if full_level == 0 {
        return Ok(stored.collect());
    }
    let mut value = |&level: &i16| match level == full_level {
        true => stored.next().unwrap_or(f64::NAN),
        false => f64::NAN,
    };
    Ok(levels.iter().map(&mut value).collect())
}
