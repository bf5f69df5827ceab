//! The kernel of conditional NCE, Algorithm 2: pairs with Barker's acceptance probability.

use burn::tensor::Tensor;
use burn::tensor::activation::softplus;

use super::{Candidates, Contrast, Kernel, State, pairwise};
use crate::error::{Result, at_least};
use crate::model::UnnormalisedModel;
use crate::proposal::ConditionalProposal;
use crate::rng::Stream;
use crate::weights::barker;

/// Draws `x_j ~ q(. | x_0)` and moves with `alpha_j = w(x_j|x_0) / (w(x_j|x_0) + w(x_0|x_j))`, averaged over `J` pairs.
///
/// Averaging over pairs is again an invariant kernel: pick one of the pairs, then accept it or stay.
#[derive(Debug, Clone)]
pub struct Barker<Q> {
    proposal: Q,
    num_negatives: usize,
}

impl<Q> Barker<Q> {
    /// With a conditional proposal and `J` pairs.
    pub fn new(proposal: Q, num_negatives: usize) -> Result<Self> {
        Ok(Self { proposal, num_negatives: at_least(1, "num_negatives", num_negatives)? })
    }
}

impl<M: UnnormalisedModel + ?Sized, Q: ConditionalProposal<M>> Contrast<M> for Barker<Q> {
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates> {
        let proposed = self.proposal.propose(model, &state.x, self.num_negatives, rng)?;
        pairwise(model, state, proposed, barker)
    }

    /// The CNCE criterion `1/J sum_j log(1 + w(x_j|x_0) / w(x_0|x_j))` (eq. cond_nce:crit).
    fn value(&self, candidates: &Candidates) -> Option<Tensor<1>> {
        let log_w = candidates.attached_log_w_tilde();
        let first = log_w.clone().narrow(1, 0, 1);
        let negatives = log_w.narrow(1, 1, self.num_negatives);
        Some(softplus(negatives - first, 1.0).mean())
    }

    fn value_on_host(&self, candidates: &Candidates) -> Option<f64> {
        // log(1 + e^x) = -log(1 - alpha), one logarithm for a row, unless a move is certain to rounding.
        let (softplus, pairs) =
            (|x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p(), self.num_negatives as f64);
        let rows = candidates.weights.rows().zip(candidates.log_w_tilde.rows());
        let values = rows.map(|(weights, log_w)| {
            let stays: f64 = weights[1..].iter().map(|weight| 1.0 - pairs * weight).product();
            match stays > 1e-12 {
                true => -stays.ln(),
                false => log_w[1..].iter().map(|log_w_j| softplus(log_w_j - log_w[0])).sum(),
            }
        });
        Some(values.sum::<f64>() / pairs / candidates.x.dims()[0] as f64)
    }
}

impl<M: ?Sized, Q> Kernel<M> for Barker<Q> where Self: Contrast<M> {}
