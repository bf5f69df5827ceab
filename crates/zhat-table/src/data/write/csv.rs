//! A table as text: a header, then the shortest decimals that read back as the same floats.

use std::io::{self, Write};

use crate::data::table::Table;

pub(super) fn write(file: &mut impl Write, table: &Table, delimiter: u8) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(file);
    writer.write_record(table.columns())?;
    let mut text = String::new();
    for row in table.iter_rows() {
        for value in row {
            text.clear();
            if !value.is_nan() {
                use std::fmt::Write as _;
                // Plain decimals for everyday sizes, exponents outside.
                let everyday = *value == 0.0 || (1e-4..1e7).contains(&value.abs());
                let written =
                    if everyday { write!(text, "{value}") } else { write!(text, "{value:e}") };
                written.map_err(io::Error::other)?;
            }
            writer.write_field(&text)?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.flush()
}
