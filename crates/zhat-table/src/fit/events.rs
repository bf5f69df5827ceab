//! What a fit tells while it goes on and when it ends.

use serde::{Deserialize, Serialize};
use zhat::train::StepReport;

use super::evaluation::Likelihood;

/// A line of `metrics.jsonl`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricsRecord {
    /// Steps taken.
    pub step: u64,
    /// Loss of the step's batch, where it was a training line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// `-log q` of the batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal_nll: Option<f64>,
    /// Learning rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// Norm of the gradient before clipping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_norm: Option<f64>,
    /// Effective sample size of the candidates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_sample_size: Option<f64>,
    /// Validation log-likelihood, where it was a validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// Validation log-likelihood of the proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_proposal: Option<f64>,
}

/// What an observer is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// A step was taken.
    Step {
        /// Steps taken, and how many there will be.
        step: u64,
        /// Number of steps of the run.
        steps: u64,
        /// What the step found.
        report: &'a StepReport,
    },
    /// A validation was made.
    Validation {
        /// Steps taken.
        step: u64,
        /// What it found.
        log_likelihood: f64,
        /// Whether it is the best so far.
        best: bool,
    },
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
    /// Steps taken, of how many.
    pub steps: u64,
    /// Step of the model that was kept.
    pub best_step: u64,
    /// Its validation log-likelihood.
    pub validation_log_likelihood: f64,
    /// Why training ended: `done`, `patience` or `max-time`.
    pub ended: String,
    /// Test log-likelihood with its errors.
    pub test: Likelihood,
    /// Mean log-density of the test rows under the truth, where it is known.
    pub truth: Option<f64>,
    /// Seconds of training and evaluation.
    pub seconds: f64,
}
