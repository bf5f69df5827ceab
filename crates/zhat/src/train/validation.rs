//! How good a model is on rows that it is not trained on.

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::evaluate::importance_sampling;
use crate::host::{Place, to_host};
use crate::model::UnnormalisedModel;
use crate::proposal::Proposal;
use crate::rng::Streams;

/// Looks at a model from time to time; a trainer keeps the best.
pub trait Validation<M> {
    /// The log-likelihood of the model after so many steps.
    fn validate(&mut self, model: &M, step: u64) -> Result<Validated>;
}

/// What a validation found, in nats a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Validated {
    /// Mean over the rows of `log p~(x) - log Z`.
    pub log_likelihood: f64,
    /// Standard error of the estimate of `log Z` in it.
    pub se_log_z: f64,
    /// The log-likelihood of a proposal of the model's own, which needs no `Z`.
    pub proposal_log_likelihood: Option<f64>,
}

impl<M, F: FnMut(&M, u64) -> Result<Validated>> Validation<M> for F {
    fn validate(&mut self, model: &M, step: u64) -> Result<Validated> {
        self(model, step)
    }
}

/// Held-out rows, with `log Z` by importance sampling. The draws are the same at every validation, so that models are
/// compared on equal terms.
pub struct HeldOut<Q> {
    rows: Tensor<2>,
    proposal: Q,
    num_samples: usize,
    streams: Streams,
}

impl<Q: Proposal> HeldOut<Q> {
    /// Rows, and a proposal that covers the model, with a number of its draws.
    ///
    /// # Shapes
    /// - `rows`: `[n, d]`
    pub fn new(rows: Tensor<2>, proposal: Q, num_samples: usize, streams: Streams) -> Self {
        Self { rows: rows.inner(), proposal, num_samples, streams }
    }
}

impl<M: UnnormalisedModel + Module, Q: Proposal> Validation<M> for HeldOut<Q> {
    fn validate(&mut self, model: &M, _step: u64) -> Result<Validated> {
        let (model, place) = (model.valid(), Place::of(&self.rows));
        let rng = &mut self.streams.stream("validation", 0, 0);
        let log_z = importance_sampling(&model, &self.proposal, self.num_samples, &place, rng)?;
        let log_p_tilde = to_host(&model.log_p_tilde(self.rows.clone()));
        let mean = log_p_tilde.iter().sum::<f64>() / log_p_tilde.len() as f64;
        Ok(Validated {
            log_likelihood: mean - log_z.log_z,
            se_log_z: log_z.standard_error,
            proposal_log_likelihood: None,
        })
    }
}
