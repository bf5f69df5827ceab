//! What can go wrong in estimation, in words that say where and what to do next.

use thiserror::Error;

/// A result with zhat's [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that is the user's or the data's doing; a shape bug in the calling code panics instead.
#[derive(Debug, Clone, PartialEq, Error)]
#[allow(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum Error {
    /// A log-density was NaN or infinite where a finite number is needed.
    #[error(
        "{what} is {value} at row {row}, candidate {candidate} (candidate 0 is where the chain starts). \
         Check the data there for NaN or extreme values, bound the model's output, or lower the learning rate."
    )]
    NotFinite { what: String, value: f64, row: usize, candidate: usize },

    /// A gradient was NaN or infinite, so the step was not taken.
    #[error(
        "the gradient of the model is not finite at step {step}. \
         The parameters were left as they were; lower the learning rate or clip the gradient."
    )]
    GradientNotFinite { step: u64 },

    /// A loss was far above those before it, so the step was not taken.
    #[error("{reason} at step {step}. The parameters were left as they were.")]
    LossExploded { step: u64, reason: String },

    /// Training diverged again and again.
    #[error(
        "training diverged at step {step} ({reason}) and was given up after going back {tries} times. The last good \
         parameters are kept. Try a lower learning-rate, a smaller max-gradient-norm, or smc-rnce where the model allows it."
    )]
    Diverged { tries: u32, step: u64, reason: String },

    /// The stored state of a run cannot be taken up.
    #[error("the stored state cannot be taken up: {reason}")]
    BrokenState { reason: String },

    /// A setting is outside its range.
    #[error("{name} is {value}, but must be {expected}.")]
    InvalidSetting { name: &'static str, value: String, expected: String },

    /// A covariance matrix has no Cholesky factor.
    #[error(
        "the covariance matrix of {what} is not positive definite (pivot {pivot} is {value:e}). \
         Remove constant or duplicated columns, or add a small number to the diagonal."
    )]
    NotPositiveDefinite { what: &'static str, pivot: usize, value: f64 },

    /// Something went wrong in one of several processes, and so in all of them.
    #[error("on rank {rank}: {reason}")]
    OnRank { rank: usize, reason: String, recoverable: bool },

    /// A device computes something else than the CPU.
    #[error(
        "the device finds a loss of {loss} where the CPU has {expected}, and its gradient is {away} of its norm away from the \
         CPU's, where {most} is allowed: its results would be wrong. Use another device, or the CPU."
    )]
    WrongDevice { loss: f64, expected: f64, away: f64, most: f64 },

    /// Whoever watches the work asked it to stop.
    #[error("stopped before the end")]
    Stopped,
}

impl Error {
    /// Whether the same run may go on after a smaller step or a new draw: a bad draw is not a broken run.
    pub fn is_recoverable(&self) -> bool {
        matches!(
            self,
            Error::NotFinite { .. }
                | Error::GradientNotFinite { .. }
                | Error::LossExploded { .. }
                | Error::OnRank { recoverable: true, .. }
        )
    }

    /// Shorthand for a setting outside its range.
    pub(crate) fn setting(
        name: &'static str,
        value: impl ToString,
        expected: impl Into<String>,
    ) -> Self {
        Error::InvalidSetting { name, value: value.to_string(), expected: expected.into() }
    }
}

/// The value of a setting that must not be smaller than this.
pub(crate) fn at_least(smallest: usize, name: &'static str, value: usize) -> Result<usize> {
    if value < smallest {
        return Err(Error::setting(name, value, format!("at least {smallest}")));
    }
    Ok(value)
}

/// The value of a setting such as a rate or a scale.
pub(crate) fn positive(name: &'static str, value: f64) -> Result<f64> {
    if !(value.is_finite() && value > 0.0) {
        return Err(Error::setting(name, value, "finite and larger than zero"));
    }
    Ok(value)
}
