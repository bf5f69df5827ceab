//! Binary noise-contrastive estimation, with `log Z` as a parameter of the model.

use burn::tensor::Tensor;
use burn::tensor::activation::softplus;

use crate::error::Result;
use crate::kernel::{Candidates, ConditionalImportance, Contrast, State};
use crate::model::UnnormalisedModel;
use crate::proposal::IndependentProposal;
use crate::rng::Stream;

/// Tells a data point from `J` draws of `q` by `sigma(log p(x) - log(J q(x)))` (Gutmann and Hyvarinen, 2012).
///
/// The weights are these probabilities; they need not sum to one, and there is no kernel behind them. It needs a model
/// that can learn its own normaliser: one with a free constant, such as a [`WithLogZ`](crate::model::WithLogZ).
#[derive(Debug, Clone)]
pub struct BinaryNce<Q>(ConditionalImportance<Q>);

impl<Q> BinaryNce<Q> {
    /// With a noise distribution and `J` draws.
    pub fn new(proposal: Q, num_negatives: usize) -> Result<Self> {
        Ok(Self(ConditionalImportance::new(proposal, num_negatives)?))
    }
}

impl<M: UnnormalisedModel + ?Sized, Q: IndependentProposal<M>> Contrast<M> for BinaryNce<Q> {
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates> {
        let mut candidates = self.0.propose(model, state, rng)?;
        candidates.weights = candidates.log_w_tilde.classify();
        Ok(candidates)
    }

    /// `-log sigma(l_0) - sum_{j >= 1} log sigma(-l_j)` with `l = log p - log(J q)`.
    fn value(&self, candidates: &Candidates) -> Option<Tensor<1>> {
        let [_, columns] = candidates.log_p_tilde.dims();
        let negatives = columns - 1;
        let logits = candidates.attached_log_w_tilde() - (negatives as f64).ln();
        let data = softplus(logits.clone().narrow(1, 0, 1).neg(), 1.0).mean();
        let noise = softplus(logits.narrow(1, 1, negatives), 1.0).mean() * negatives as f64;
        Some(data + noise)
    }
}
