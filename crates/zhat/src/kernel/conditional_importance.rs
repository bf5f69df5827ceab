//! The conditional importance sampling (CIS) kernel, Algorithm 1: one step of it is ranking NCE.

use burn::tensor::Tensor;
use burn::tensor::activation::log_softmax;

use super::{Candidates, Contrast, Kernel, State, evaluate};
use crate::error::{Result, at_least};
use crate::model::UnnormalisedModel;
use crate::proposal::IndependentProposal;
use crate::rng::Stream;
use crate::weights::{LogWeights, log_sum_exp};

/// Draws `x_1..x_J ~ q` and weighs `x_0..x_J` by `w_j = w~_j / sum_l w~_l`, `w~ = p~ / q`.
#[derive(Debug, Clone)]
pub struct ConditionalImportance<Q> {
    proposal: Q,
    num_negatives: usize,
}

impl<Q> ConditionalImportance<Q> {
    /// With a proposal that does not depend on the state, and `J` negatives.
    pub fn new(proposal: Q, num_negatives: usize) -> Result<Self> {
        Ok(Self { proposal, num_negatives: at_least(1, "num_negatives", num_negatives)? })
    }
}

impl<M: UnnormalisedModel + ?Sized, Q: IndependentProposal<M>> Contrast<M>
    for ConditionalImportance<Q>
{
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates> {
        let draws = self.proposal.draw(model, &state.x, self.num_negatives, rng);
        let (x, log_p_tilde) = evaluate(model, state, draws.x);
        Candidates::new(x, log_p_tilde, draws.log_q, LogWeights::normalise)
    }

    /// The RNCE criterion `-log w~_0 + log sum_j w~_j` (eq. rank_nce:crit).
    fn value(&self, candidates: &Candidates) -> Option<Tensor<1>> {
        let log_weights = log_softmax(candidates.attached_log_w_tilde(), 1);
        Some(log_weights.narrow(1, 0, 1).mean().neg())
    }

    fn value_on_host(&self, candidates: &Candidates) -> Option<f64> {
        // -log w_0, unless the data point has lost all its weight to rounding.
        let rows = candidates.weights.rows().zip(candidates.log_w_tilde.rows());
        let values = rows.map(|(weights, log_w)| match weights[0] {
            0.0 => log_sum_exp(log_w) - log_w[0],
            weight => -weight.ln(),
        });
        Some(values.sum::<f64>() / candidates.x.dims()[0] as f64)
    }
}

impl<M: ?Sized, Q> Kernel<M> for ConditionalImportance<Q> where Self: Contrast<M> {}
