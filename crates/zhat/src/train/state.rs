//! Everything that a run needs to go on as if it had never stopped, as bytes with a checksum.

use std::collections::VecDeque;

use burn::module::Module;
use burn::optim::ModuleOptimizer;
use burn::store::ModuleRecord;
use burn::tensor::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::guard::Guard;
use super::optimiser::OptimiserConfig;
use super::validation::Answer;
use crate::error::{Error, Result};

const MAGIC: &[u8] = b"zhat-state 3\n";

/// Bytes that are put in by `save` and taken out by `load` in the same order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parts(VecDeque<Vec<u8>>);

/// What a trainer knows beside parameters and moments.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Steps taken.
    pub step: u64,
    /// The learning rate is multiplied by this, which the guard lowers.
    pub rate_factor: f64,
    /// How often the guard has gone back.
    pub rollbacks: u32,
    /// The running mean of the loss.
    pub guard: Guard,
    /// Whether only the proposal has been trained so far.
    pub warming_up: bool,
    /// The best validation so far.
    pub best: Option<Best>,
    /// Validations since then.
    pub validations_since_best: u32,
}

/// A validation that no later one has beaten.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Steps taken by then.
    pub step: u64,
    /// The log-likelihood of the answer.
    pub log_likelihood: f64,
    /// Its standard error over the rows.
    pub standard_error: f64,
    /// Whether that is the model or its proposal.
    pub answer: Answer,
}

/// The state of a [`Trainer`](super::Trainer).
#[derive(Debug, Clone, PartialEq)]
pub struct TrainerState {
    /// What can be told in words.
    pub progress: Progress,
    /// Whatever the caller wants to find again beside it.
    pub note: String,
    /// Parameters, moments, the best model, and what the step keeps.
    pub(super) parts: Parts,
}

impl TrainerState {
    /// As bytes: a line that names the format, then each part after its length (8 bytes, little endian), then the SHA-256 of
    /// all before it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let progress = serde_json::to_vec(&self.progress).expect("progress is plain data");
        let mut bytes = MAGIC.to_vec();
        let words = [progress, self.note.clone().into_bytes()];
        for part in words.iter().chain(&self.parts.0) {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        }
        let checksum = Sha256::digest(&bytes);
        bytes.extend(checksum);
        bytes
    }

    /// From bytes; any that were damaged are refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let body = bytes.len().checked_sub(32).ok_or_else(|| broken("it is too short"))?;
        let (body, checksum) = bytes.split_at(body);
        if Sha256::digest(body).as_slice() != checksum {
            return Err(broken("its checksum does not match"));
        }
        let mut rest =
            body.strip_prefix(MAGIC).ok_or_else(|| broken("it is of another version"))?;
        let mut parts = Parts::default();
        while !rest.is_empty() {
            let (length, after) =
                rest.split_at_checked(8).ok_or_else(|| broken("a length is cut off"))?;
            let length = u64::from_le_bytes(length.try_into().expect("eight bytes")) as usize;
            let (part, after) =
                after.split_at_checked(length).ok_or_else(|| broken("a part is cut off"))?;
            parts.push(part.to_vec());
            rest = after;
        }
        let progress = serde_json::from_slice(&parts.take()?)
            .map_err(|error| broken(format!("its progress cannot be read: {error}")))?;
        let note = String::from_utf8(parts.take()?).map_err(|_| broken("its note is no text"))?;
        Ok(Self { progress, note, parts })
    }
}

impl Parts {
    /// Puts a part in.
    pub fn push(&mut self, part: Vec<u8>) {
        self.0.push_back(part);
    }

    /// Takes the next part out.
    pub fn take(&mut self) -> Result<Vec<u8>> {
        self.0.pop_front().ok_or_else(|| broken("a part is missing"))
    }

    /// Puts numbers in.
    pub fn push_numbers(&mut self, numbers: &[f64]) {
        self.push(numbers.iter().flat_map(|number| number.to_le_bytes()).collect());
    }

    /// The numbers that were put in.
    pub fn take_numbers(&mut self) -> Result<Vec<f64>> {
        let bytes = self.take()?;
        let (numbers, rest) = bytes.as_chunks::<8>();
        match rest {
            [] => Ok(numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()),
            _ => Err(broken("a number is cut off")),
        }
    }

    /// Puts the parameters of a module in.
    pub fn push_module<M: Module>(&mut self, module: &M) -> Result<()> {
        let bytes = module.clone().into_record().into_bytes().map_err(broken)?;
        self.push(bytes.to_vec());
        Ok(())
    }

    /// The module with the parameters that were put in.
    pub fn take_module<M: Module>(&mut self, module: &M) -> Result<M> {
        let bytes = Bytes::from_bytes_vec(self.take()?);
        let record = ModuleRecord::from_bytes(bytes).map_err(broken)?;
        module.clone().try_load_record(record).map_err(broken)
    }

    /// Puts the moments of an optimiser in.
    pub fn push_optimiser(&mut self, optimiser: &ModuleOptimizer) -> Result<()> {
        self.push(optimiser.into_bytes().map_err(broken)?.to_vec());
        Ok(())
    }

    /// The optimiser with the moments that were put in.
    pub fn take_optimiser(&mut self, config: &OptimiserConfig) -> Result<ModuleOptimizer> {
        config.init().from_bytes(Bytes::from_bytes_vec(self.take()?)).map_err(broken)
    }
}

/// A part of the state that cannot be read.
pub(crate) fn broken(error: impl ToString) -> Error {
    Error::BrokenState { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> TrainerState {
        let progress = Progress {
            step: 7,
            rate_factor: 0.5,
            rollbacks: 1,
            guard: Guard::default(),
            warming_up: false,
            best: Some(Best {
                step: 5,
                log_likelihood: -1.0 / 3.0,
                standard_error: 0.1,
                answer: Answer::Model,
            }),
            validations_since_best: 2,
        };
        let parts = Parts(VecDeque::from([vec![1, 2, 3], Vec::new(), vec![9; 100]]));
        TrainerState { progress, note: "here".into(), parts }
    }

    #[test]
    fn what_is_written_is_read_back() {
        assert_eq!(TrainerState::from_bytes(&state().to_bytes()), Ok(state()));
    }

    #[test]
    fn any_flipped_byte_and_any_truncation_is_noticed() {
        let bytes = state().to_bytes();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            assert!(TrainerState::from_bytes(&flipped).is_err(), "byte {at}");
            assert!(TrainerState::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
