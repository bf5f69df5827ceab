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

/// What a validation found: log-likelihoods row by row, so that two models can be held against each other on each of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Validated {
    /// `log p~(x) - log Z` of every row.
    pub log_likelihoods: Vec<f64>,
    /// Standard error of the estimate of `log Z` in them, which is the same amount for every row.
    pub se_log_z: f64,
    /// `log q(x)` of every row, for a proposal of the model's own, which needs no `Z`.
    pub proposal: Option<Vec<f64>>,
    /// Which of the two would be used if training ended here.
    pub answer: Answer,
    /// What each row counts; `None` where all count the same.
    pub weights: Option<Vec<f64>>,
}

/// Nats a row below which a model is not ahead of its proposal, however surely: the error of a quadrature, which is the same in
/// every row, can be as much, and nobody would pay for it with integrals in every score.
pub const LEAST_LEAD: f64 = 1e-4;

/// Which density a training ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The model.
    #[default]
    Model,
    /// The proposal that was trained with it, because the model is no better.
    Proposal,
}

impl Validated {
    /// Of a model that has no proposal of its own.
    pub fn new(log_likelihoods: Vec<f64>, se_log_z: f64) -> Self {
        Self { log_likelihoods, se_log_z, proposal: None, answer: Answer::Model, weights: None }
    }

    /// With what each row counts.
    ///
    /// # Panics
    /// If there is not one weight for each row.
    pub fn with_weights(self, weights: Option<Vec<f64>>) -> Self {
        let is_whole = |weights: &Vec<f64>| weights.len() == self.log_likelihoods.len();
        assert!(weights.as_ref().is_none_or(is_whole), "one weight for each row");
        Self { weights, ..self }
    }

    /// The mean of something over the rows, as they count.
    pub fn mean_of(&self, values: &[f64]) -> Difference {
        Difference::weighted(values, self.weights.as_deref())
    }

    /// With the proposal's log-likelihoods of the same rows, and the proposal as the answer unless the model is ahead of it by
    /// more than one standard error, and by more than [`LEAST_LEAD`].
    pub fn or_proposal(self, proposal: Vec<f64>) -> Self {
        let ahead = self.log_likelihoods.iter().zip(&proposal).map(|(of, to)| of - to);
        let ahead = self.mean_of(&ahead.collect::<Vec<_>>());
        // The error of log Z is not known where it was estimated once.
        let of_log_z = if self.se_log_z.is_finite() { self.se_log_z } else { 0.0 };
        let is_ahead = ahead.mean > ahead.standard_error.hypot(of_log_z).max(LEAST_LEAD);
        let answer = if is_ahead { Answer::Model } else { Answer::Proposal };
        Self { proposal: Some(proposal), answer, ..self }
    }

    /// The model's log-likelihood, in nats a row.
    pub fn log_likelihood(&self) -> f64 {
        self.mean_of(&self.log_likelihoods).mean
    }

    /// The proposal's, where there is one.
    pub fn proposal_log_likelihood(&self) -> Option<f64> {
        self.proposal.as_deref().map(|proposal| self.mean_of(proposal).mean)
    }

    /// The log-likelihoods of the answer.
    pub fn of_answer(&self) -> &[f64] {
        match (&self.proposal, self.answer) {
            (Some(proposal), Answer::Proposal) => proposal,
            _ => &self.log_likelihoods,
        }
    }
}

/// How far one density is ahead of another, in nats a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Mean over the rows.
    pub mean: f64,
    /// Its standard error over the rows: that of differences on the same row, which is far below that of either density.
    pub standard_error: f64,
}

impl Difference {
    /// Of log-likelihoods of the same rows.
    ///
    /// # Panics
    /// If they are not equally many.
    pub fn new(of: &[f64], to: &[f64]) -> Self {
        assert_eq!(of.len(), to.len(), "the same rows");
        Self::from_zero(&of.iter().zip(to).map(|(of, to)| of - to).collect::<Vec<_>>())
    }

    /// Of differences themselves, each of which counts by a weight: those of `None` count the same.
    ///
    /// The mean is that of each row as often as its weight says. The error is that of as many rows as there are effective ones, `(sum w)^2 /
    /// sum w^2` (Kish, 1965): a row that counts twice moves the mean twice as much, but is one observation still.
    ///
    /// # Panics
    /// If there is not one weight for each.
    pub fn weighted(values: &[f64], weights: Option<&[f64]>) -> Self {
        let Some(weights) = weights else { return Self::from_zero(values) };
        assert_eq!(values.len(), weights.len(), "one weight for each row");
        let total: f64 = weights.iter().sum();
        let pairs = || values.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
        let mean = pairs().map(|(value, weight)| weight * value).sum::<f64>() / total;
        let squares: f64 = pairs().map(|(value, weight)| (weight * (value - mean)).powi(2)).sum();
        let effective = effective_rows(weights);
        let few = if effective > 1.0 { effective / (effective - 1.0) } else { 0.0 };
        Self { mean, standard_error: (few * squares).sqrt() / total }
    }

    /// Of differences themselves; one row has no error.
    pub fn from_zero(values: &[f64]) -> Self {
        let (mean, number) = (mean(values), values.len() as f64);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let variance = if number > 1.0 { squares / (number - 1.0) } else { 0.0 };
        Self { mean, standard_error: (variance / number).sqrt() }
    }
}

/// As many rows that count the same tell as much about a mean: `(sum w)^2 / sum w^2`.
pub fn effective_rows(weights: &[f64]) -> f64 {
    let total: f64 = weights.iter().sum();
    total * total / weights.iter().map(|weight| weight * weight).sum::<f64>()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
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
        let log_likelihoods = log_p_tilde.iter().map(|log_p| log_p - log_z.log_z).collect();
        Ok(Validated::new(log_likelihoods, log_z.standard_error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_taken_row_by_row() {
        // Rows differ by thousands of nats, the models by one or two on each.
        let first = [-1000.0, -10.0, -3000.0, 0.0];
        let second: Vec<f64> = first.iter().zip([1.0, 2.0, 1.0, 2.0]).map(|(x, d)| x - d).collect();
        let ahead = Difference::new(&first, &second);
        assert!((ahead.mean - 1.5).abs() < 1e-12);
        // The standard deviation of 1, 2, 1, 2 is 1 / sqrt(3), of which the error is a half.
        assert!((ahead.standard_error - 0.5 / 3f64.sqrt()).abs() < 1e-12);
        assert_eq!(Difference::from_zero(&[3.0]), Difference { mean: 3.0, standard_error: 0.0 });
    }

    #[test]
    fn the_proposal_answers_unless_the_model_is_ahead_by_more_than_an_error() {
        let answer = |ahead: &[f64], se_log_z| {
            let found = Validated::new(ahead.to_vec(), se_log_z);
            found.or_proposal(vec![0.0; ahead.len()]).answer
        };
        // Mean 1 with an error of 0.5 / sqrt(3), about 0.29; then mean 0.25 with the same error.
        assert_eq!(answer(&[0.5, 1.5, 0.5, 1.5], f64::NAN), Answer::Model);
        assert_eq!(answer(&[-0.25, 0.75, -0.25, 0.75], f64::NAN), Answer::Proposal);
        assert_eq!(
            answer(&[0.5, 1.5, 0.5, 1.5], 1.1),
            Answer::Proposal,
            "log Z may be off by more"
        );
        assert_eq!(answer(&[f64::NAN, 1.0], 0.0), Answer::Proposal, "no number is no answer");
        assert_eq!(answer(&[4e-7; 4], 0.0), Answer::Proposal, "surely ahead, by nothing");
        assert_eq!(answer(&[2e-4; 4], 0.0), Answer::Model);
        let found = Validated::new(vec![-2.0], 0.0).or_proposal(vec![-1.0]);
        assert_eq!((found.of_answer(), found.log_likelihood()), (&[-1.0][..], -2.0));
    }
}
