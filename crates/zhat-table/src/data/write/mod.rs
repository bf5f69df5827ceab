//! Tables and other results to disk, whole or not at all.

mod csv;
mod npy;
mod parquet;

use std::fs::File;
use std::io::{self, BufWriter, Seek};
use std::path::{Path, PathBuf};

use zhat_report::export::{PendingFile, is_stream, remove_leftovers_of};

use super::error::{Error, Result};
use super::options::Format;
use super::read::temporary_file;
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

/// What is given for a file where standard output is meant.
const STANDARD_OUTPUT: &str = "-";

/// A table that is written as its rows come. The file has its name only once it is finished; one that is not finished
/// leaves nothing behind. A pipe or a device is written to as it is, and nothing goes there before the first row is known.
pub struct TableWriter {
    columns: usize,
    path: PathBuf,
    format: Begun,
    /// The name until then; none where rows go to standard output.
    pending: Option<PendingFile>,
    /// A temporary file, and the pipe that gets all of it at the end: for a format whose beginning is written last.
    kept: Option<[File; 2]>,
}

/// What begins an output: a header, or the first bytes of a format.
type Beginning = Box<dyn FnOnce() -> io::Result<Box<dyn RowFormat>>>;

/// An output before its first row, and after it.
enum Begun {
    NotYet(Option<Beginning>),
    Yes(Box<dyn RowFormat>),
}

impl Begun {
    fn format(mut self) -> io::Result<Box<dyn RowFormat>> {
        self.begin()?;
        match self {
            Begun::Yes(format) => Ok(format),
            Begun::NotYet(_) => Err(io::Error::other("it could not be begun")),
        }
    }

    /// Writes what comes before the first row, unless that is done.
    fn begin(&mut self) -> io::Result<()> {
        if let Begun::NotYet(beginning) = self
            && let Some(beginning) = beginning.take()
        {
            *self = Begun::Yes(beginning()?);
        }
        Ok(())
    }

    /// The output after what comes before its first row.
    fn begun(&mut self) -> io::Result<&mut dyn RowFormat> {
        self.begin()?;
        match self {
            Begun::Yes(format) => Ok(&mut **format),
            Begun::NotYet(_) => Err(io::Error::other("it could not be begun")),
        }
    }
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
    /// Begins a file in the format of its name; a pipe or a device whose name does not say it gets CSV, and `-` is standard
    /// output.
    pub fn create(path: &Path, columns: &[String], precision: Precision) -> Result<Self> {
        if path == Path::new(STANDARD_OUTPUT) {
            return Self::stdout(columns, precision);
        }
        let format = Self::format_of(path)?;
        let ending = ending(path);
        let unwritable = |source| Error::Unwritable { file: path.into(), source };
        remove_leftovers_of(path);
        let (pending, mut file) = PendingFile::create(path).map_err(unwritable)?;
        let mut kept = None;
        if pending.is_stream() && format == Format::Npy {
            let temporary = temporary_file().map_err(unwritable)?;
            let stream = std::mem::replace(&mut file, temporary.try_clone().map_err(unwritable)?);
            kept = Some([temporary, stream]);
        }
        let writer = BufWriter::with_capacity(1 << 16, file);
        let delimiter = if ending == "tsv" || ending == "tab" { b'\t' } else { b',' };
        let names = columns.to_vec();
        let begin = move || -> io::Result<Box<dyn RowFormat>> {
            Ok(match format {
                Format::Csv => Box::new(csv::Rows::new(writer, &names, delimiter, precision)?),
                Format::Npy => Box::new(npy::Rows::new(writer, names.len(), precision)?),
                Format::Parquet => Box::new(parquet::Rows::new(writer, &names, precision)?),
            })
        };
        let format = Begun::NotYet(Some(Box::new(begin)));
        let (columns, path) = (columns.len(), path.into());
        Ok(Self { columns, path, format, pending: Some(pending), kept })
    }

    /// The format that a name asks for: what cannot be written is found out before there is anything to write.
    pub fn format_of(path: &Path) -> Result<Format> {
        match Format::of_name(path) {
            _ if matches!(ending(path), "gz" | "xz" | "zst" | "bz2") => {
                Err(unknown(path, "a compressed file is read, but not written"))
            }
            Some(format) => Ok(format),
            None if path == Path::new(STANDARD_OUTPUT) || is_stream(path) => Ok(Format::Csv),
            None => Err(unknown(path, "its name does not say the format")),
        }
    }

    /// Begins a table in CSV on standard output.
    pub fn stdout(columns: &[String], precision: Precision) -> Result<Self> {
        let (path, names) = (PathBuf::from("standard output"), columns.to_vec());
        let begin = move || -> io::Result<Box<dyn RowFormat>> {
            let out = BufWriter::new(io::stdout());
            Ok(Box::new(csv::Rows::new(out, &names, b',', precision)?))
        };
        let format = Begun::NotYet(Some(Box::new(begin)));
        Ok(Self { columns: columns.len(), path, format, pending: None, kept: None })
    }

    /// Rows that are written by another process, and so not by this one.
    pub fn nowhere(columns: &[String]) -> Result<Self> {
        let (path, names) = (PathBuf::from("nowhere"), columns.to_vec());
        let begin = move || -> io::Result<Box<dyn RowFormat>> {
            Ok(Box::new(csv::Rows::new(io::sink(), &names, b',', Precision::Single)?))
        };
        let format = Begun::NotYet(Some(Box::new(begin)));
        Ok(Self { columns: columns.len(), path, format, pending: None, kept: None })
    }

    /// Writes whole rows, one after the other.
    ///
    /// # Panics
    /// If the values do not fill whole rows.
    pub fn rows(&mut self, values: &[f64]) -> Result<()> {
        assert!(values.len().is_multiple_of(self.columns), "the values fill whole rows");
        let file = &self.path;
        let unwritable = |source| Error::Unwritable { file: file.clone(), source };
        self.format.begun().and_then(|format| format.rows(values)).map_err(unwritable)
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
        let format = self.format.begun();
        format.and_then(|format| format.labelled(labels, values)).map_err(unwritable)
    }

    /// Ends the table and gives the file its name.
    pub fn finish(self) -> Result<()> {
        let Self { path, format, pending, kept, .. } = self;
        let finish = || {
            format.format()?.finish()?;
            if let Some([mut temporary, mut stream]) = kept {
                temporary.rewind()?;
                io::copy(&mut temporary, &mut stream)?;
            }
            match pending {
                Some(pending) => pending.commit(),
                None => Ok(()),
            }
        };
        finish().map_err(|source| Error::Unwritable { file: path, source })
    }
}

fn ending(path: &Path) -> &str {
    path.extension().and_then(|ending| ending.to_str()).unwrap_or("")
}

fn unknown(path: &Path, detail: &str) -> Error {
    Error::refused(path, detail, "Name the output .csv, .tsv, .npy or .parquet.")
}
