//! What a fit tells while it goes on and when it ends.

use serde::{Deserialize, Serialize};
use zhat::train::{Answer, StepReport};

use super::evaluation::Likelihood;
use super::folds::CrossValidation;
use crate::fitted::{Gap, Goodness, Verdict};

/// A line of `metrics.jsonl`, which has what was measured then.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MetricsRecord {
    /// Steps taken.
    pub step: u64,
    /// Loss of the step's batch, where it was a training line.
    pub loss: Option<f64>,
    /// `-log q` of the batch.
    pub proposal_nll: Option<f64>,
    /// Learning rate.
    pub learning_rate: Option<f64>,
    /// Norm of the gradient before clipping.
    pub gradient_norm: Option<f64>,
    /// Effective sample size of the candidates.
    pub effective_sample_size: Option<f64>,
    /// Validation log-likelihood, where it was a validation.
    pub validation: Option<f64>,
    /// Validation log-likelihood of the proposal.
    pub validation_proposal: Option<f64>,
}

/// What an observer is told.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the line above each variant says what its fields are")]
pub enum Event<'a> {
    /// A step of so many was taken.
    Step { step: u64, steps: u64, report: &'a StepReport },
    /// A validation was made, which may be the best so far.
    Validation { step: u64, log_likelihood: f64, best: bool },
    /// Cross-validation has come to so many steps of all folds, and so far the rows that were left out have this.
    CrossValidation { step: u64, steps: u64, log_likelihood: f64 },
    /// Something the user should know, but that stops nothing.
    Warning(&'a str),
    /// The evaluation at the end begins.
    Evaluating,
}

/// How a fit ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitReport {
    /// Version of zhat.
    pub version: String,
    /// Where the data came from.
    pub source: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// What was minimised.
    pub criterion: String,
    /// Rows for training, validation and test.
    pub rows: [usize; 3],
    /// Steps taken.
    pub steps: u64,
    /// Steps of the whole schedule.
    pub planned_steps: u64,
    /// Step of the model that was kept.
    pub best_step: u64,
    /// Its log-likelihood of validation rows, or of rows left out in a cross-validation; none where there was neither.
    pub validation_log_likelihood: Option<f64>,
    /// The standard error of that over the rows.
    pub validation_standard_error: Option<f64>,
    /// Whether the density is the model or its proposal, which was no worse.
    pub density: Answer,
    /// How the number of steps was chosen, where rows were few.
    pub cross_validation: Option<CrossValidation>,
    /// Why training ended: `done`, `patience`, `time` or `max-time`.
    pub ended: String,
    /// What one should know about the result, in sentences.
    pub notes: Vec<String>,
    /// Test log-likelihood with its errors.
    pub test: Likelihood,
    /// Whether the model fits the test rows, where there are any.
    #[serde(default)]
    pub goodness: Option<Goodness>,
    /// Whether the likelihood can be trusted, and the model fits.
    pub verdict: Verdict,
    /// Mean log-density of the test rows under the truth, where it is known.
    pub truth: Option<f64>,
    /// How far the model is from it, on many fresh rows where they can be scored quickly. Results of earlier versions have none.
    #[serde(default)]
    pub gap: Option<Gap>,
    /// Seconds of training and evaluation.
    pub seconds: f64,
}
