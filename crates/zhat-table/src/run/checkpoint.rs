//! Checkpoints: the states of a trainer, of which the two newest are kept; one that is damaged is passed over.

use std::fs;
use std::path::{Path, PathBuf};

use zhat::train::TrainerState;

use super::directory::write_atomically;
use crate::error::{Result, TableError};

const KEPT: usize = 2;

/// The checkpoints of a run.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    directory: PathBuf,
}

impl Checkpoints {
    /// The checkpoints in a directory.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Writes a state and removes all but the newest two.
    pub fn save(&self, state: &TrainerState) -> Result<()> {
        let name = format!("step-{:012}.checkpoint", state.progress.step);
        write_atomically(&self.directory.join(name), &state.to_bytes())?;
        for (_, old) in self.list()?.iter().rev().skip(KEPT) {
            let _ = fs::remove_file(old);
        }
        Ok(())
    }

    /// The newest state that is whole, and a warning for each that is not; `None` where there is none.
    pub fn load(&self) -> Result<(Option<TrainerState>, Vec<String>)> {
        let mut warnings = Vec::new();
        for (_, path) in self.list()?.into_iter().rev() {
            let bytes = fs::read(&path).map_err(|source| TableError::io(&path, source))?;
            match TrainerState::from_bytes(&bytes) {
                Ok(state) => return Ok((Some(state), warnings)),
                Err(error) => warnings.push(format!(
                    "{} is damaged ({error}); going on from the checkpoint before it",
                    path.display()
                )),
            }
        }
        Ok((None, warnings))
    }

    /// Removes the checkpoints after a step, which a run that was rolled back no longer goes through.
    pub fn forget_after(&self, step: u64) -> Result<()> {
        for (at, path) in self.list()? {
            if at > step {
                fs::remove_file(&path).map_err(|source| TableError::io(&path, source))?;
            }
        }
        Ok(())
    }

    /// Step and path of every checkpoint, oldest first.
    fn list(&self) -> Result<Vec<(u64, PathBuf)>> {
        let entries =
            fs::read_dir(&self.directory).map_err(|e| TableError::io(&self.directory, e))?;
        let mut found: Vec<(u64, PathBuf)> = entries
            .filter_map(|entry| entry.ok())
            .filter_map(|entry| step_of(&entry.path()))
            .collect();
        found.sort();
        Ok(found)
    }
}

fn step_of(path: &Path) -> Option<(u64, PathBuf)> {
    let name = path.file_name()?.to_str()?;
    let step = name.strip_prefix("step-")?.strip_suffix(".checkpoint")?.parse().ok()?;
    Some((step, path.to_owned()))
}
