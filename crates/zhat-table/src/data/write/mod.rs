//! Tables and other results to disk, whole or not at all.

mod csv;
mod npy;
mod parquet;

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use zhat_report::export::PendingFile;

use super::error::{Error, Result};
use super::options::Format;
use super::table::Table;

/// Rows that are turned into 64-bit floats at once.
const ROWS_AT_ONCE: usize = 4096;

/// Writes a table in the format of the file's name (`.csv`, `.tsv`, `.npy`, `.parquet`).
pub fn write(path: &Path, table: &Table) -> Result<()> {
    let mut writer = TableWriter::create(path, table.columns(), Precision::Single)?;
    for rows in table.values().chunks(ROWS_AT_ONCE * table.dimension()) {
        let rows: Vec<f64> = rows.iter().map(|&value| f64::from(value)).collect();
        writer.rows(&rows)?;
    }
    writer.finish()
}

/// What a column of an output holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// 32-bit floats, like the data; as text, the shortest decimals that read back as the same floats.
    Single,
    /// 64-bit floats; as text, six decimals.
    Double,
}

/// A table that is written as its rows come. The file has its name only once it is finished; one that is not finished
/// leaves nothing behind.
pub struct TableWriter {
    columns: usize,
    path: PathBuf,
    format: Box<dyn RowFormat>,
    /// The name until then; none where rows go to standard output.
    pending: Option<PendingFile>,
}

/// How rows become bytes.
trait RowFormat {
    /// Whole rows, one after the other.
    fn rows(&mut self, values: &[f64]) -> io::Result<()>;

    /// The same rows with cells of text before the numbers of each.
    fn labelled(&mut self, labels: &[String], values: &[f64]) -> io::Result<()>;

    /// What comes after the last row; everything is in the file afterwards.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

impl TableWriter {
    /// Begins a file in the format of its name.
    pub fn create(path: &Path, columns: &[String], precision: Precision) -> Result<Self> {
        let format = Self::format_of(path)?;
        let ending = ending(path);
        let unwritable = |source| Error::Unwritable { file: path.into(), source };
        let (pending, file) = PendingFile::create(path).map_err(unwritable)?;
        let writer = BufWriter::with_capacity(1 << 16, file);
        let begin = || -> io::Result<Box<dyn RowFormat>> {
            let delimiter = if ending == "tsv" || ending == "tab" { b'\t' } else { b',' };
            Ok(match format {
                Format::Csv => Box::new(csv::Rows::new(writer, columns, delimiter, precision)?),
                Format::Npy => Box::new(npy::Rows::new(writer, columns.len(), precision)?),
                Format::Parquet => Box::new(parquet::Rows::new(writer, columns, precision)?),
            })
        };
        let format = begin().map_err(unwritable)?;
        Ok(Self { columns: columns.len(), path: path.into(), format, pending: Some(pending) })
    }

    /// The format that a name asks for: what cannot be written is found out before there is anything to write.
    pub fn format_of(path: &Path) -> Result<Format> {
        match Format::of_name(path) {
            _ if matches!(ending(path), "gz" | "xz" | "zst" | "bz2") => {
                Err(unknown(path, "a compressed file is read, but not written"))
            }
            Some(format) => Ok(format),
            None => Err(unknown(path, "its name does not say the format")),
        }
    }

    /// Begins a table in CSV on standard output.
    pub fn stdout(columns: &[String], precision: Precision) -> Result<Self> {
        let path = PathBuf::from("standard output");
        let format = csv::Rows::new(BufWriter::new(io::stdout()), columns, b',', precision)
            .map_err(|source| Error::Unwritable { file: path.clone(), source })?;
        Ok(Self { columns: columns.len(), path, format: Box::new(format), pending: None })
    }

    /// Writes whole rows, one after the other.
    ///
    /// # Panics
    /// If the values do not fill whole rows.
    pub fn rows(&mut self, values: &[f64]) -> Result<()> {
        assert!(values.len().is_multiple_of(self.columns), "the values fill whole rows");
        let file = &self.path;
        self.format.rows(values).map_err(|source| Error::Unwritable { file: file.clone(), source })
    }

    /// Writes whole rows with cells of text, which only text holds, before the numbers of each.
    ///
    /// # Panics
    /// If there are not as many cells of text in every row.
    pub fn labelled(&mut self, labels: &[String], values: &[f64], rows: usize) -> Result<()> {
        if labels.is_empty() {
            return self.rows(values);
        }
        let cells = labels.len() + values.len();
        assert!(rows > 0 && cells == rows * self.columns, "the cells fill whole rows");
        let file = &self.path;
        let unwritable = |source| Error::Unwritable { file: file.clone(), source };
        self.format.labelled(labels, values).map_err(unwritable)
    }

    /// Ends the table and gives the file its name.
    pub fn finish(self) -> Result<()> {
        let Self { path, format, pending, .. } = self;
        let written = format.finish().and_then(|()| match pending {
            Some(pending) => pending.commit(),
            None => Ok(()),
        });
        written.map_err(|source| Error::Unwritable { file: path, source })
    }
}

fn ending(path: &Path) -> &str {
    path.extension().and_then(|ending| ending.to_str()).unwrap_or("")
}

fn unknown(path: &Path, detail: &str) -> Error {
    Error::refused(path, detail, "Name the output .csv, .tsv, .npy or .parquet.")
}
