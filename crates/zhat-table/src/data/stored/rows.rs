//! Rows of 32-bit floats in a file, any of which can be read without the others.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::changed;
use crate::data::error::{Error, Result};

/// A file of rows. They are read one by one, and not mapped into memory: what a process has mapped and touched counts as its own, and
/// a shuffled epoch touches everything. The system keeps what it has room for, once for all processes.
#[derive(Debug, Clone)]
pub struct RowFile {
    path: PathBuf,
    file: Arc<File>,
    columns: usize,
    rows: usize,
}

impl PartialEq for RowFile {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.columns, self.rows) == (&other.path, other.columns, other.rows)
    }
}

impl RowFile {
    /// Opens a file of so many rows.
    pub fn open(path: &Path, columns: usize, rows: usize) -> Result<Self> {
        let unreadable = |source| Error::Unreadable { file: path.into(), source };
        let file = File::open(path).map_err(unreadable)?;
        let found = file.metadata().map_err(unreadable)?.len();
        let expected = 4 * columns as u128 * rows as u128;
        if u128::from(found) != expected {
            let detail = format!("it has {found} bytes, and not {expected}");
            return Err(changed(path, detail));
        }
        Ok(Self { path: path.into(), file: Arc::new(file), columns, rows })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Some rows, one after the other.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn read(&self, rows: &[usize]) -> Result<Vec<f32>> {
        let mut values = Vec::with_capacity(rows.len() * self.columns);
        let mut bytes = vec![0; 4 * self.columns];
        for &row in rows {
            assert!(row < self.rows, "row {row} of {}", self.rows);
            self.read_at(row as u64 * bytes.len() as u64, &mut bytes)?;
            let (numbers, _) = bytes.as_chunks::<4>();
            values.extend(numbers.iter().map(|number| f32::from_le_bytes(*number)));
        }
        Ok(values)
    }

    /// All rows.
    pub fn all(&self) -> Result<Vec<f32>> {
        let mut bytes = vec![0; 4 * self.columns * self.rows];
        self.read_at(0, &mut bytes)?;
        let (numbers, _) = bytes.as_chunks::<4>();
        Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
    }

    fn read_at(&self, at: u64, bytes: &mut [u8]) -> Result<()> {
        read_exact_at(&self.file, bytes, at)
            .map_err(|source| Error::Unreadable { file: self.path.clone(), source })
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                bytes = &mut bytes[read..];
                at += read as u64;
            }
        }
    }
    Ok(())
}
