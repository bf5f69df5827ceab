//! A prepared set on disk: `train.npy`, `validation.npy`, `test.npy` and `meta.json` in a directory of their own.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zhat_report::export::replace_file;

use super::Benchmark;
use crate::data::error::{Error, Result};
use crate::data::options::ReadOptions;
use crate::data::read::read;
use crate::data::split::Split;
use crate::data::standardise::Standardiser;
use crate::data::stored::StoredTable;
use crate::data::table::Table;
use crate::data::write::write;

/// Version of the directory's format.
pub(super) const FORMAT: u32 = 1;

const META: &str = "meta.json";
const PARTS: [&str; 3] = ["train.npy", "validation.npy", "test.npy"];

/// What `meta.json` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Version of the format.
    pub format: u32,
    /// Version of zhat that prepared the set.
    pub version: String,
    /// Which set it is.
    pub set: Benchmark,
    /// Name of the file it was made from.
    pub source: String,
    /// Seed of the noise and of the order.
    pub seed: u64,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows for training, validation and test.
    pub rows: [usize; 3],
    /// What was done, step by step.
    pub steps: Vec<String>,
    /// How the columns were standardised, if they were. The parts hold standardised values.
    pub standardiser: Option<Standardiser>,
    /// Where N, D and the split are not the paper's.
    pub differences: Vec<String>,
    /// Hash of the three parts.
    pub hash: String,
}

/// A prepared set in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedSet {
    /// What it is.
    pub meta: Meta,
    /// Its rows, standardised where the paper standardises.
    pub split: Split<Table>,
}

impl PreparedSet {
    /// Whether a directory looks like a prepared set.
    pub fn is_at(directory: &Path) -> bool {
        directory.join(META).is_file()
    }

    /// Reads what a directory says of itself, without its rows.
    pub fn read_meta(directory: &Path) -> Result<Meta> {
        let path = directory.join(META);
        let bytes =
            fs::read(&path).map_err(|source| Error::Unreadable { file: path.clone(), source })?;
        let meta: Meta =
            serde_json::from_slice(&bytes).map_err(|error| changed(&path, error.to_string()))?;
        if meta.format > FORMAT {
            let detail = format!("it is of format {}, of a later zhat", meta.format);
            return Err(changed(&path, detail));
        }
        Ok(meta)
    }

    /// Reads a directory and checks that its rows are those it was written with.
    pub fn read(directory: &Path) -> Result<Self> {
        let meta = Self::read_meta(directory)?;
        let part = |index: usize| -> Result<Table> {
            let table = read(&directory.join(PARTS[index]), &ReadOptions::default())?.table;
            let found = [table.rows(), table.dimension()];
            let expected = [meta.rows[index], meta.columns.len()];
            if found != expected {
                let [[rows, columns], [all, wide]] = [found, expected];
                let name = PARTS[index];
                let detail =
                    format!("{name} has {rows} rows and {columns} columns, not {all} and {wide}");
                return Err(changed(directory, detail));
            }
            Ok(Table::new(meta.columns.clone(), table.into_values()))
        };
        let split = Split { train: part(0)?, validation: part(1)?, test: part(2)? };
        if hash(&split) != meta.hash {
            let detail = "the rows are not those that meta.json is about";
            return Err(changed(directory, detail.into()));
        }
        Ok(Self { meta, split })
    }

    /// Writes the directory: under another name first, so that it is there whole or not at all.
    pub(super) fn write(&self, out: &Path) -> Result<()> {
        let unwritable = |source| Error::Unwritable { file: out.into(), source };
        let temporary = temporary(out).map_err(unwritable)?;
        let written = fs::create_dir_all(&temporary).map_err(unwritable).and_then(|()| {
            let parts = [&self.split.train, &self.split.validation, &self.split.test];
            for (name, part) in PARTS.iter().zip(parts) {
                write(&temporary.join(name), part)?;
            }
            let json = serde_json::to_vec_pretty(&self.meta).expect("meta.json is plain data");
            replace_file(&temporary.join(META), |file| file.write_all(&json))
                .map_err(unwritable)?;
            check_free(out)?;
            fs::rename(&temporary, out).map_err(unwritable)
        });
        if written.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_dir_all(&temporary);
        }
        written
    }
}

/// An error unless a directory can be made here: nothing that is there is ever written over.
pub(crate) fn check_free(out: &Path) -> Result<()> {
    let in_the_way = |detail| Err(Error::refused(out, detail, "Remove it, or give another `out`."));
    match fs::read_dir(out).map(|mut entries| entries.next()) {
        Ok(None) => Ok(()),
        Ok(_) if StoredTable::is_at(out) => in_the_way("a prepared table is there already"),
        Ok(_) if PreparedSet::is_at(out) => in_the_way("a prepared set is there already"),
        Ok(_) => in_the_way("the directory is there already and not empty"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => in_the_way("a file is there"),
        Err(source) => Err(Error::Unwritable { file: out.into(), source }),
    }
}

/// SHA-256 over the hashes of the three parts.
pub(super) fn hash(split: &Split<Table>) -> String {
    let mut all = Sha256::new();
    for part in [&split.train, &split.validation, &split.test] {
        all.update(part.hash());
    }
    all.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn temporary(out: &Path) -> io::Result<PathBuf> {
    let name = out.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let name = format!(".{}.{}.partial", name.to_string_lossy(), std::process::id());
    Ok(out.with_file_name(name))
}

fn changed(path: &Path, detail: String) -> Error {
    Error::refused(path, detail, "Make the set again with `zhat data prepare`.")
}
