//! Tables and other results to disk, whole or not at all.

mod csv;
mod npy;
mod parquet;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use zhat_report::export::replace_file;

use super::error::{Error, Result};
use super::options::Format;
use super::table::Table;

/// Writes a table in the format of the file's name (`.csv`, `.tsv`, `.npy`, `.parquet`).
pub fn write(path: &Path, table: &Table) -> Result<()> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    match Format::of_name(path) {
        _ if matches!(ending, "gz" | "xz" | "zst" | "bz2") => {
            Err(unknown(path, "a compressed file is read, but not written"))
        }
        Some(Format::Csv) => {
            let delimiter = if ending == "tsv" || ending == "tab" { b'\t' } else { b',' };
            write_atomically(path, |file| csv::write(file, table, delimiter))
        }
        Some(Format::Npy) => write_atomically(path, |file| npy::write(file, table)),
        Some(Format::Parquet) => write_atomically(path, |file| parquet::write(file, table)),
        None => Err(unknown(path, "its name does not say the format")),
    }
}

/// Writes a file whole or not at all (see [`replace_file`]).
pub fn write_atomically(
    path: &Path,
    contents: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    replace_file(path, contents).map_err(|source| Error::Unwritable { file: path.into(), source })
}

fn unknown(path: &Path, detail: &str) -> Error {
    Error::Unsupported {
        file: path.into(),
        detail: detail.into(),
        advice: "Name the output .csv, .tsv, .npy or .parquet.",
    }
}
