//! A table as a NumPy array in row order; the names of the columns are not kept.

use std::io::{self, Seek, SeekFrom, Write};

use super::{Precision, RowFormat};

/// Length of everything before the numbers; room for any number of rows, and a multiple of 64.
const HEADER: usize = 128;

pub(super) struct Rows<W: Write + Seek> {
    file: W,
    columns: usize,
    rows: usize,
    precision: Precision,
}

impl<W: Write + Seek> Rows<W> {
    pub(super) fn new(file: W, columns: usize, precision: Precision) -> io::Result<Self> {
        let mut rows = Self { file, columns, rows: 0, precision };
        rows.header()?;
        Ok(rows)
    }

    /// The header for the rows so far, at the place where the file stands.
    fn header(&mut self) -> io::Result<()> {
        let descr = match self.precision {
            Precision::Single => "<f4",
            Precision::Double => "<f8",
        };
        let mut header = format!(
            "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}, {}), }}",
            self.rows, self.columns
        );
        // Magic, version and length are 10 bytes, and a line end comes last.
        header.extend(std::iter::repeat_n(' ', HEADER - 11 - header.len()));
        header.push('\n');
        self.file.write_all(b"\x93NUMPY\x01\x00")?;
        self.file.write_all(&((HEADER - 10) as u16).to_le_bytes())?;
        self.file.write_all(header.as_bytes())
    }
}

impl<W: Write + Seek> RowFormat for Rows<W> {
    fn rows(&mut self, values: &[f64]) -> io::Result<()> {
        self.rows += values.len() / self.columns;
        for value in values {
            match self.precision {
                Precision::Single => self.file.write_all(&(*value as f32).to_le_bytes())?,
                Precision::Double => self.file.write_all(&value.to_le_bytes())?,
            }
        }
        Ok(())
    }

    fn labelled(&mut self, _: &[String], _: &[f64]) -> io::Result<()> {
        Err(io::Error::other("columns are carried along into .csv and .tsv only"))
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        // How many rows there are is known only now.
        self.file.seek(SeekFrom::Start(0))?;
        self.header()?;
        self.file.flush()
    }
}
