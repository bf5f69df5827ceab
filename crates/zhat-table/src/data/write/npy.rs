//! A table as a NumPy array of 32-bit floats in row order; the names of the columns are not kept.

use std::io::{self, Write};

use crate::data::table::Table;

pub(super) fn write(file: &mut impl Write, table: &Table) -> io::Result<()> {
    let mut header = format!(
        "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}",
        table.rows(),
        table.dimension()
    );
    // Magic, version and length are 10 bytes; the numbers begin at a multiple of 64.
    let padding = 63 - (10 + header.len()) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    file.write_all(b"\x93NUMPY\x01\x00")?;
    // Two numbers of at most 20 digits: far below 65,536 bytes.
    file.write_all(&(header.len() as u16).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    for value in table.values() {
        file.write_all(&value.to_le_bytes())?;
    }
    Ok(())
}
