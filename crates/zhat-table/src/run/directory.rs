//! The run directory: one place for everything that a fit leaves behind.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use zhat_report::export::{remove_leftovers, replace_file};

use super::lock::RunLock;
use super::seal::{Seal, check};
use crate::error::{Result, TableError};

/// A directory with `config.toml`, `metrics.jsonl`, `checkpoint/`, `model.safetensors`, `model.json`, `results.json` and
/// `report.html`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDirectory {
    root: PathBuf,
}

impl RunDirectory {
    /// Makes the directory and locks it, and fails at once if it holds a run already, another process writes it, or it cannot be
    /// written. A run that was killed before its first checkpoint is none: nothing of it is lost.
    pub fn create(root: &Path) -> Result<(Self, RunLock)> {
        let run = Self { root: root.to_owned() };
        let checkpoints = run.checkpoints();
        fs::create_dir_all(&checkpoints).map_err(|source| TableError::io(&checkpoints, source))?;
        let lock = run.lock()?;
        run.check_free()?;
        run.check_writable()?;
        Ok((run, lock))
    }

    /// An error if a new run cannot go there, for whoever is about to begin something long before it.
    pub fn check_new(root: &Path) -> Result<()> {
        RunLock::check(root)?;
        Self { root: root.to_owned() }.check_free()
    }

    fn check_free(&self) -> Result<()> {
        match self.is_begun() {
            true => Err(TableError::RunExists { path: self.root.clone() }),
            false => Ok(()),
        }
    }

    /// Whether there is anything of a run that would be lost: a checkpoint, or a model.
    pub fn is_begun(&self) -> bool {
        let is_checkpoint =
            |entry: fs::DirEntry| entry.path().extension().is_some_and(|e| e == "checkpoint");
        let files = fs::read_dir(self.checkpoints());
        let has_checkpoint = files.is_ok_and(|mut files| files.any(|e| e.is_ok_and(is_checkpoint)));
        self.config().exists()
            && (has_checkpoint || self.model_card().exists() || self.results().exists())
    }

    /// Locks the directory, and removes what processes that were killed have left half written.
    pub fn lock(&self) -> Result<RunLock> {
        let lock = RunLock::take(&self.root)?;
        remove_leftovers(&self.root);
        remove_leftovers(&self.checkpoints());
        let _ = fs::remove_file(self.probe());
        Ok(lock)
    }

    fn probe(&self) -> PathBuf {
        self.root.join(".writable")
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

    /// A directory that another rank of the same run reads and writes.
    pub(crate) fn elsewhere(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// A megabyte can be written and read back: a full disk is found out now, not after hours.
    pub fn check_writable(&self) -> Result<()> {
        let probe = self.probe();
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

/// Reads a file of JSON that carries a digest of itself, whose change is an error; one of an earlier version has none.
pub(crate) fn read_sealed<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = fs::read(path).map_err(|source| TableError::io(path, source))?;
    if check(&bytes) == Seal::Broken {
        return Err(TableError::modified(path, "it is not as it was written"));
    }
    serde_json::from_slice(&bytes).map_err(|error| TableError::model(path, error.to_string()))
}

/// Writes a file whole or not at all (see [`replace_file`]).
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_file(path, |file| file.write_all(bytes)).map_err(|source| TableError::io(path, source))
}
