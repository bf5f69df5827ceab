//! A table as text: a header, then a line for each row; a missing cell is empty.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::{Precision, RowFormat};

pub(super) struct Rows<W: Write> {
    writer: csv::Writer<W>,
    columns: usize,
    precision: Precision,
    text: String,
}

impl<W: Write> Rows<W> {
    pub(super) fn new(
        file: W,
        columns: &[String],
        delimiter: u8,
        precision: Precision,
    ) -> io::Result<Self> {
        let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(file);
        writer.write_record(columns).map_err(plain)?;
        Ok(Self { writer, columns: columns.len(), precision, text: String::new() })
    }
}

impl<W: Write> RowFormat for Rows<W> {
    fn rows(&mut self, values: &[f64]) -> io::Result<()> {
        self.labelled(&[], values)
    }

    fn labelled(&mut self, labels: &[String], values: &[f64]) -> io::Result<()> {
        let rows = (labels.len() + values.len()) / self.columns;
        let (texts, numbers) = (labels.len() / rows.max(1), values.len() / rows.max(1));
        for row in 0..rows {
            for label in &labels[row * texts..][..texts] {
                self.writer.write_field(label).map_err(plain)?;
            }
            for &value in &values[row * numbers..][..numbers] {
                self.text.clear();
                if !value.is_nan() {
                    print(&mut self.text, value, self.precision).map_err(io::Error::other)?;
                }
                self.writer.write_field(&self.text).map_err(plain)?;
            }
            self.writer.write_record(None::<&[u8]>).map_err(plain)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The error of the output itself, which the CSV writer's own conversion hides: a pipe that nobody reads is told by it.
fn plain(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Plain decimals for everyday sizes, exponents outside.
fn print(text: &mut String, value: f64, precision: Precision) -> std::fmt::Result {
    let everyday = value == 0.0 || (1e-4..1e7).contains(&value.abs());
    match precision {
        Precision::Single if everyday => write!(text, "{}", value as f32),
        Precision::Single => write!(text, "{:e}", value as f32),
        // A rank, and hardly ever anything else.
        Precision::Double if value.fract() == 0.0 => write!(text, "{value}"),
        Precision::Double if value.is_finite() => write!(text, "{value:.6}"),
        Precision::Double => write!(text, "{value}"),
    }
}
