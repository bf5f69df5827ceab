//! The self-normalised likelihood: `log Z` as a parameter of the model, and an objective whose estimate is unbiased.

use burn::tensor::Tensor;

use crate::error::Result;
use crate::kernel::{Candidates, ConditionalImportance, Contrast, State};
use crate::model::UnnormalisedModel;
use crate::proposal::IndependentProposal;
use crate::rng::Stream;
use crate::weights::Weights;

/// Minimises `-log p(x_0) + 1/J sum_j p(x_j) / q(x_j) - 1` with `p = p~ e^-c` (Senetaire, Jeha, Mattei and Frellsen, 2023).
///
/// `log Z <= c + Z e^-c - 1`, with equality at `c = log Z`, so that this is a bound on the negative log-likelihood, and at the best `c` the
/// likelihood itself; unlike that of ML-IS its estimate is unbiased for any number of draws. The weights `p(x_j) / (J q(x_j))` need not sum
/// to one, and there is no kernel behind them. It needs a model with a free constant, such as a [`WithLogZ`](crate::model::WithLogZ).
#[derive(Debug, Clone)]
pub struct SelfNormalised<Q>(ConditionalImportance<Q>);

impl<Q> SelfNormalised<Q> {
    /// With a proposal and `J` draws of it.
    pub fn new(proposal: Q, num_negatives: usize) -> Result<Self> {
        Ok(Self(ConditionalImportance::new(proposal, num_negatives)?))
    }
}

impl<M: UnnormalisedModel + ?Sized, Q: IndependentProposal<M>> Contrast<M> for SelfNormalised<Q> {
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates> {
        let mut candidates = self.0.propose(model, state, rng)?;
        let weights = candidates.log_w_tilde.over_negatives();
        // Checked: the constant may be so wrong that they are no numbers.
        candidates.weights = Weights::new(weights.values().to_vec(), weights.columns())?;
        Ok(candidates)
    }

    fn value(&self, candidates: &Candidates) -> Option<Tensor<1>> {
        let [_, columns] = candidates.log_p_tilde.dims();
        let ratios = candidates.attached_log_w_tilde().narrow(1, 1, columns - 1).exp();
        Some(ratios.mean() - 1.0 - candidates.start().mean())
    }
}
