//! Tables and other results to disk, whole or not at all.

mod csv;
mod npy;
mod parquet;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

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

/// Writes a file under a temporary name in the same directory, syncs it, and renames it: a reader, or a run
/// that is killed at any moment, finds the old file or the new one and nothing in between.
pub fn write_atomically(
    path: &Path,
    contents: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    let unwritable = |source| Error::Unwritable { file: path.into(), source };
    let name = path.file_name().ok_or_else(|| unwritable(io::ErrorKind::InvalidFilename.into()))?;
    let temporary =
        path.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    let written = File::create(&temporary).and_then(|file| {
        let mut writer = BufWriter::with_capacity(1 << 16, file);
        contents(&mut writer)?;
        writer.flush()?;
        writer.get_ref().sync_all()?;
        fs::rename(&temporary, path)
    });
    written.map_err(|source| {
        // The first error is the one to report; a leftover that cannot be removed is a smaller trouble.
        let _ = fs::remove_file(&temporary);
        unwritable(source)
    })
}

fn unknown(path: &Path, detail: &str) -> Error {
    Error::Unsupported {
        file: path.into(),
        detail: detail.into(),
        advice: "Name the output .csv, .tsv, .npy or .parquet.",
    }
}
