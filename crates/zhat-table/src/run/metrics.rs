//! `metrics.jsonl`: one JSON object a line, which a resumed run cuts back to where its checkpoint was.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Result, TableError};

/// The open metrics file, or none for who only counts.
#[derive(Debug, Default)]
pub struct Metrics {
    file: Option<File>,
    path: PathBuf,
    bytes: u64,
}

impl Metrics {
    /// Opens the file and cuts off what was written after `bytes`.
    pub fn open(path: &Path, bytes: u64) -> Result<Self> {
        let io = |source| TableError::io(path, source);
        let mut file =
            OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(io)?;
        let bytes = bytes.min(file.metadata().map_err(io)?.len());
        file.set_len(bytes).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        Ok(Self { file: Some(file), path: path.to_owned(), bytes })
    }

    /// Appends a line.
    pub fn append(&mut self, record: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(record).expect("a record is plain data");
        line.push(b'\n');
        if let Some(file) = &mut self.file {
            file.write_all(&line).map_err(|source| TableError::io(&self.path, source))?;
        }
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Length of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
