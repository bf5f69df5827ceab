//! The run directory: one place for everything that a fit leaves behind.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use zhat_report::export::replace_file;

use crate::error::{Result, TableError};

/// A directory with `config.toml`, `metrics.jsonl`, `checkpoint/`, `model.safetensors`, `model.json`, `results.json` and
/// `report.html`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDirectory {
    root: PathBuf,
}

impl RunDirectory {
    /// Makes the directory, and fails at once if it holds a run already or cannot be written.
    pub fn create(root: &Path) -> Result<Self> {
        let run = Self { root: root.to_owned() };
        if run.config().exists() {
            return Err(TableError::RunExists { path: root.to_owned() });
        }
        let checkpoints = run.checkpoints();
        fs::create_dir_all(&checkpoints).map_err(|source| TableError::io(&checkpoints, source))?;
        run.check_writable()?;
        Ok(run)
    }

    /// Opens the directory of an earlier run.
    pub fn open(root: &Path) -> Result<Self> {
        let run = Self { root: root.to_owned() };
        match fs::metadata(run.config()) {
            Ok(found) if found.is_file() => Ok(run),
            // What may not be looked into is not known to be no run.
            Err(source) if source.kind() != io::ErrorKind::NotFound && !root.is_file() => {
                let reason = format!("the run cannot be read: {source}; check its permissions");
                Err(TableError::model(&run.config(), reason))
            }
            _ => Err(TableError::NotARun { path: root.to_owned() }),
        }
    }

    /// A megabyte can be written and read back: a full disk is found out now, not after hours.
    pub fn check_writable(&self) -> Result<()> {
        let probe = self.root.join(".writable");
        let written = write_atomically(&probe, &vec![0x5a; 1 << 20]);
        let _ = fs::remove_file(&probe);
        written
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The resolved configuration.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// One JSON object for each logged step.
    pub fn metrics(&self) -> PathBuf {
        self.root.join("metrics.jsonl")
    }

    /// Where checkpoints are.
    pub fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoint")
    }

    /// The parameters of the fitted model.
    pub fn model(&self) -> PathBuf {
        self.root.join("model.safetensors")
    }

    /// What the model is: architecture, columns, standardiser, versions, data hash.
    pub fn model_card(&self) -> PathBuf {
        self.root.join("model.json")
    }

    /// How the number of steps was chosen, where rows were few.
    pub fn cross_validation(&self) -> PathBuf {
        self.root.join("cross-validation.json")
    }

    /// The numbers at the end.
    pub fn results(&self) -> PathBuf {
        self.root.join("results.json")
    }

    /// The page.
    pub fn report(&self) -> PathBuf {
        self.root.join("report.html")
    }
}

/// Reads a file of JSON.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = fs::read(path).map_err(|source| TableError::io(path, source))?;
    serde_json::from_slice(&bytes).map_err(|error| TableError::model(path, error.to_string()))
}

/// Writes a file whole or not at all (see [`replace_file`]).
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_file(path, |file| file.write_all(bytes)).map_err(|source| TableError::io(path, source))
}
