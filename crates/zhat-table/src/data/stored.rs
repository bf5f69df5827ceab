//! A table of any length, prepared for training: its rows in files that are read where they are needed, and never all at once.

mod rows;
mod write;

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use zhat::rng::Streams;
use zhat::train::Scatter;

pub use rows::RowFile;
pub use write::{StoreOptions, store};

use super::error::{Error, Result};
use super::kinds::ColumnKind;
use super::table::Table;

/// Version of the directory's format.
const FORMAT: u32 = 1;

const META: &str = "table.json";
const PARTS: [&str; 3] = ["train.f32", "validation.f32", "test.f32"];

/// Training rows that are looked at before training, at most: for means, maps and the Gaussian mixtures of the start.
const SAMPLE: usize = 100_000;
/// Bytes of them, at most.
const SAMPLE_BYTES: usize = 1 << 27;

/// What `table.json` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredMeta {
    /// Version of the format.
    pub format: u32,
    /// Version of zhat that prepared it.
    pub version: String,
    /// Name of the file it was made from.
    pub source: String,
    /// Which rows are for validation and test.
    pub seed: u64,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// What the columns are, those that are no part of the table included.
    pub kinds: Vec<ColumnKind>,
    /// Rows for training, validation and test.
    pub rows: [usize; 3],
    /// Hash of the three parts.
    pub hash: String,
    /// What its user should know.
    pub notes: Vec<String>,
}

/// A prepared table: `train.f32`, `validation.f32`, `test.f32` (rows of 32-bit floats, little endian, in the units of the data) and
/// `table.json` in a directory of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTable {
    /// What it is.
    pub meta: StoredMeta,
    /// Some of the training rows, drawn at random; all of them where there are few.
    pub sample: Table,
    /// All training rows, where they are more than that.
    pub train: Option<RowFile>,
    /// Validation part.
    pub validation: Table,
    /// Test part.
    pub test: Table,
}

impl StoredTable {
    /// Whether a directory looks like a prepared table.
    pub fn is_at(directory: &Path) -> bool {
        directory.join(META).is_file()
    }

    /// Opens a directory.
    pub fn open(directory: &Path, streams: &Streams) -> Result<Self> {
        let path = directory.join(META);
        let bytes =
            fs::read(&path).map_err(|source| Error::Unreadable { file: path.clone(), source })?;
        let meta: StoredMeta =
            serde_json::from_slice(&bytes).map_err(|error| changed(&path, error.to_string()))?;
        if meta.format > FORMAT {
            let detail = format!("it is of format {}, of a later zhat", meta.format);
            return Err(changed(&path, detail));
        }
        if meta.columns.is_empty() || meta.rows[0] == 0 {
            return Err(changed(&path, "it has no columns or no rows".into()));
        }
        let columns = meta.columns.len();
        let file =
            |part: usize| RowFile::open(&directory.join(PARTS[part]), columns, meta.rows[part]);
        let (train, validation, test) = (file(0)?, file(1)?, file(2)?);
        let table = |values: Vec<f32>| Table::new(meta.columns.clone(), values);
        let most = SAMPLE.min((SAMPLE_BYTES / (4 * columns)).max(1));
        let (sample, train) = match train.rows() <= most {
            true => (train.all()?, None),
            false => {
                let scatter = Scatter::new(train.rows(), &mut streams.stream("sample", 0, 0));
                let rows: Vec<usize> = (0..most).map(|place| scatter.at(place)).collect();
                (train.read(&rows)?, Some(train))
            }
        };
        let (sample, validation, test) =
            (table(sample), table(validation.all()?), table(test.all()?));
        Ok(Self { meta, sample, train, validation, test })
    }
}

fn changed(path: &Path, detail: String) -> Error {
    Error::refused(path, detail, "Make it again with `zhat data prepare`.")
}
