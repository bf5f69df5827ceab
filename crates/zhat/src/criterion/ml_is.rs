//! Maximum likelihood with importance sampling (ML-IS): the data point is not among its own candidates.

use burn::tensor::Tensor;

use crate::error::Result;
use crate::kernel::{Candidates, ConditionalImportance, Contrast, State};
use crate::model::{UnnormalisedModel, log_sum_exp};
use crate::proposal::IndependentProposal;
use crate::rng::Stream;

/// Draws `x_1..x_J ~ q` and weighs them by `w_j = w~_j / sum_{l >= 1} w~_l` (eq. is:estimator:grad:derivation).
///
/// This is no invariant kernel: that is the difference between ML-IS and RNCE.
#[derive(Debug, Clone)]
pub struct ImportanceSampling<Q>(ConditionalImportance<Q>);

impl<Q> ImportanceSampling<Q> {
    /// With a proposal that does not depend on the state, and `J` draws.
    pub fn new(proposal: Q, num_negatives: usize) -> Result<Self> {
        Ok(Self(ConditionalImportance::new(proposal, num_negatives)?))
    }
}

impl<M: UnnormalisedModel + ?Sized, Q: IndependentProposal<M>> Contrast<M>
    for ImportanceSampling<Q>
{
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates> {
        let mut candidates = self.0.propose(model, state, rng)?;
        candidates.weights = candidates.log_w_tilde.normalise_negatives();
        Ok(candidates)
    }

    /// `-log p~(x_0) + log Z_IS` (eq. unnorm_model:ll with eq. is:z_hat).
    fn value(&self, candidates: &Candidates) -> Option<Tensor<1>> {
        let [_, columns] = candidates.log_p_tilde.dims();
        let log_w = candidates.attached_log_w_tilde().narrow(1, 1, columns - 1);
        Some(log_sum_exp(log_w).mean() - ((columns - 1) as f64).ln() - candidates.start().mean())
    }
}
