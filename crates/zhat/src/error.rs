//! What can go wrong in estimation, in words that say where and what to do next.

use thiserror::Error;

/// A result with zhat's [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that is the user's or the data's doing; a shape bug in the calling code panics instead.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Error {
    /// A log-density was NaN or infinite where a finite number is needed.
    #[error(
        "{what} is {value} at row {row}, candidate {candidate} (candidate 0 is where the chain starts). \
         Check the data there for NaN or extreme values, bound the model's output, or lower the learning rate."
    )]
    NotFinite {
        /// The function that produced the value, for example `log_p_tilde of the model`.
        what: String,
        /// The offending value.
        value: f64,
        /// Row of the batch.
        row: usize,
        /// Column among the candidates.
        candidate: usize,
    },

    /// A gradient was NaN or infinite, so the step was not taken.
    #[error(
        "the gradient of the {part} is not finite at step {step}. \
         The parameters were left as they were; lower the learning rate or clip the gradient."
    )]
    GradientNotFinite {
        /// `model` or `proposal`.
        part: &'static str,
        /// Training step, counted from 0.
        step: usize,
    },

    /// A loss was far above those before it, so the step was not taken.
    #[error("{reason} at step {step}. The parameters were left as they were.")]
    LossExploded {
        /// Training step, counted from 0.
        step: u64,
        /// What was seen.
        reason: String,
    },

    /// Training diverged again and again.
    #[error(
        "training diverged at step {step} ({reason}) and was given up after going back {tries} times. The last good \
         parameters are kept. Try a lower learning-rate, a smaller max-gradient-norm, or smc-rnce where the model allows it."
    )]
    Diverged {
        /// How often it went back.
        tries: u32,
        /// At which step it diverged the last time.
        step: u64,
        /// What was seen.
        reason: String,
    },

    /// The stored state of a run cannot be taken up.
    #[error("the stored state cannot be taken up: {reason}")]
    BrokenState {
        /// What is wrong with it.
        reason: String,
    },

    /// A setting is outside its range.
    #[error("{name} is {value}, but must be {expected}.")]
    InvalidSetting {
        /// Name of the setting, as the user writes it.
        name: &'static str,
        /// What was given.
        value: String,
        /// The range or list of what is allowed.
        expected: String,
    },

    /// A covariance matrix has no Cholesky factor.
    #[error(
        "the covariance matrix of {what} is not positive definite (pivot {pivot} is {value:e}). \
         Remove constant or duplicated columns, or add a small number to the diagonal."
    )]
    NotPositiveDefinite {
        /// Whose covariance.
        what: &'static str,
        /// Index of the first bad pivot.
        pivot: usize,
        /// Its value.
        value: f64,
    },

    /// Whoever watches the work asked it to stop.
    #[error("stopped before the end")]
    Stopped,
}

impl Error {
    /// Whether the same run may go on after a smaller step or a new draw: a bad draw is not a broken run.
    pub fn is_recoverable(&self) -> bool {
        matches!(
            self,
            Error::NotFinite { .. } | Error::GradientNotFinite { .. } | Error::LossExploded { .. }
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
