//! The Metropolis-Hastings kernel on pairs: MH-CNCE, and with the right proposal MALA and HMC.

use super::{Candidates, Contrast, Kernel, State, pairwise};
use crate::error::{Result, at_least};
use crate::model::UnnormalisedModel;
use crate::proposal::ConditionalProposal;
use crate::rng::Stream;
use crate::weights::metropolis;

/// Draws `x_j ~ q(. | x_0)` and moves with `alpha_j = min(1, w(x_j|x_0) / w(x_0|x_j))` (eq. mh:acc_prob), averaged over
/// `J` pairs. It has no criterion value, only a gradient.
#[derive(Debug, Clone)]
pub struct Metropolis<Q> {
    proposal: Q,
    num_negatives: usize,
}

impl<Q> Metropolis<Q> {
    /// With a conditional proposal and `J` pairs.
    pub fn new(proposal: Q, num_negatives: usize) -> Result<Self> {
        Ok(Self { proposal, num_negatives: at_least(1, "num_negatives", num_negatives)? })
    }
}

impl<M: UnnormalisedModel + ?Sized, Q: ConditionalProposal<M>> Contrast<M> for Metropolis<Q> {
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates> {
        let proposed = self.proposal.propose(model, &state.x, self.num_negatives, rng)?;
        pairwise(model, state, proposed, metropolis)
    }
}

impl<M: ?Sized, Q> Kernel<M> for Metropolis<Q> where Self: Contrast<M> {}
