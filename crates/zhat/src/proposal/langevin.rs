//! The Langevin proposal `x' = x + epsilon^2/2 grad log p~(x) + epsilon z`; with Metropolis' rule it is MALA.

use burn::tensor::Tensor;

use super::{ConditionalProposal, Proposed};
use crate::error::{Result, positive};
use crate::host::{Place, to_host};
use crate::model::{UnnormalisedModel, score};
use crate::rng::Stream;
use crate::weights::check_finite;

/// A Gaussian step along the score of the model; `epsilon` is the step size.
#[derive(Debug, Clone, PartialEq)]
pub struct Langevin {
    step_size: f64,
}

impl Langevin {
    /// A Langevin step of a given size.
    pub fn new(step_size: f64) -> Result<Self> {
        Ok(Self { step_size: positive("step_size", step_size)? })
    }
}

impl<M: UnnormalisedModel + ?Sized> ConditionalProposal<M> for Langevin {
    fn propose(
        &self,
        model: &M,
        x0: &Tensor<2>,
        num_negatives: usize,
        rng: &mut Stream,
    ) -> Result<Proposed> {
        let [rows, dimension] = x0.dims();
        let (step, drift) = (self.step_size, 0.5 * self.step_size * self.step_size);
        let place = Place::of(x0);
        let start = to_host(x0);
        let start_score = host_score(model, x0.clone(), dimension)?;
        let mut x = Vec::with_capacity(rows * num_negatives * dimension);
        for (x0, score) in start.chunks_exact(dimension).zip(start_score.chunks_exact(dimension)) {
            for _ in 0..num_negatives {
                x.extend(x0.iter().zip(score).map(|(x, s)| x + drift * s + step * rng.normal()));
            }
        }
        let proposed: Tensor<2> = place.tensor(x.clone(), [rows * num_negatives, dimension]);
        let end_score = host_score(model, proposed.clone(), dimension)?;
        // log N(x_j; x_0 + drift(x_0)) - log N(x_0; x_j + drift(x_j)); the constants cancel.
        let log_ratio = (0..rows * num_negatives)
            .map(|pair| {
                let (to, from) = (pair * dimension, pair / num_negatives * dimension);
                let distance: f64 = (0..dimension)
                    .map(|i| {
                        let (a, b) = (start[from + i], x[to + i]);
                        let forward = b - a - drift * start_score[from + i];
                        let backward = a - b - drift * end_score[to + i];
                        backward * backward - forward * forward
                    })
                    .sum();
                distance / (2.0 * step * step)
            })
            .collect();
        let x = proposed.reshape([rows, num_negatives, dimension]);
        Ok(Proposed { x, log_ratio: Some(log_ratio) })
    }
}

/// The score on the host, finite.
pub(super) fn host_score<M: UnnormalisedModel + ?Sized>(
    model: &M,
    x: Tensor<2>,
    dimension: usize,
) -> Result<Vec<f64>> {
    let (_, score) = score(model, x);
    let score = to_host(&score);
    check_finite("score (gradient of log_p_tilde in x)", &score, dimension)?;
    Ok(score)
}
