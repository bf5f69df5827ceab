//! Checkpoints: everything that a run needs to go on as if it had never stopped, with a checksum.
//!
//! A file is the line `zhat-checkpoint 1`, then the state as JSON and the parts as bytes, each after its length (8 bytes,
//! little endian), then the SHA-256 of all before it. The two newest are kept; one that is damaged is passed over.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::directory::write_atomically;
use crate::error::{Result, TableError};

const MAGIC: &[u8] = b"zhat-checkpoint 1\n";
const KEPT: usize = 2;

/// A state that can be told in JSON, and parts that are bytes (parameters, moments).
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint<S> {
    /// The state.
    pub state: S,
    /// The parts, in an order that the writer and the reader agree on.
    pub parts: Vec<Vec<u8>>,
}

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

    /// Writes the checkpoint of a step and removes all but the newest two.
    pub fn save<S: Serialize>(&self, step: u64, checkpoint: &Checkpoint<S>) -> Result<()> {
        let path = self.directory.join(format!("step-{step:012}.checkpoint"));
        write_atomically(&path, &encode(checkpoint))?;
        for (_, old) in self.list()?.iter().rev().skip(KEPT) {
            let _ = fs::remove_file(old);
        }
        Ok(())
    }

    /// The newest checkpoint that is whole, and a warning for each that is not; `None` where there is none.
    pub fn load<S: DeserializeOwned>(&self) -> Result<(Option<Checkpoint<S>>, Vec<String>)> {
        let mut warnings = Vec::new();
        for (_, path) in self.list()?.into_iter().rev() {
            let bytes = fs::read(&path).map_err(|source| TableError::io(&path, source))?;
            match decode(&bytes) {
                Ok(checkpoint) => return Ok((Some(checkpoint), warnings)),
                Err(reason) => warnings.push(format!(
                    "{} is damaged ({reason}); going on from the checkpoint before it",
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

fn encode<S: Serialize>(checkpoint: &Checkpoint<S>) -> Vec<u8> {
    let state = serde_json::to_vec(&checkpoint.state).expect("a state is plain data");
    let mut bytes = MAGIC.to_vec();
    for part in std::iter::once(&state).chain(&checkpoint.parts) {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    }
    let checksum = Sha256::digest(&bytes);
    bytes.extend(checksum);
    bytes
}

fn decode<S: DeserializeOwned>(bytes: &[u8]) -> std::result::Result<Checkpoint<S>, String> {
    let body = bytes.len().checked_sub(32).ok_or("it is too short")?;
    let (body, checksum) = bytes.split_at(body);
    if Sha256::digest(body).as_slice() != checksum {
        return Err("its checksum does not match".into());
    }
    let mut rest = body.strip_prefix(MAGIC).ok_or("it is of another version")?;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_at_checked(8).ok_or("a length is cut off")?;
        let length = u64::from_le_bytes(length.try_into().expect("eight bytes")) as usize;
        let (part, after) = after.split_at_checked(length).ok_or("a part is cut off")?;
        parts.push(part.to_vec());
        rest = after;
    }
    if parts.is_empty() {
        return Err("it has no state".into());
    }
    let state = serde_json::from_slice(&parts.remove(0)).map_err(|error| error.to_string())?;
    Ok(Checkpoint { state, parts })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> Checkpoint<String> {
        Checkpoint { state: "here".into(), parts: vec![vec![1, 2, 3], Vec::new(), vec![9; 100]] }
    }

    #[test]
    fn what_is_written_is_read_back() {
        assert_eq!(decode::<String>(&encode(&checkpoint())), Ok(checkpoint()));
    }

    #[test]
    fn any_flipped_byte_and_any_truncation_is_noticed() {
        let bytes = encode(&checkpoint());
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            assert!(decode::<String>(&flipped).is_err(), "byte {at}");
            assert!(decode::<String>(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
