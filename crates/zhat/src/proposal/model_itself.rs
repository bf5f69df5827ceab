//! The model as its own proposal, where it can be drawn from: the ideal `q = p_theta` of the paper.

use burn::tensor::Tensor;

use super::{ConditionalProposal, Draws, IndependentProposal, Proposal, Proposed, draw_from};
use crate::error::Result;
use crate::rng::Stream;

/// `q = p_theta` with the current parameters at every step; for models that are also a [`Proposal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelItself;

impl<M: Proposal> IndependentProposal<M> for ModelItself {
    fn draw(&self, model: &M, x0: &Tensor<2>, num_negatives: usize, rng: &mut Stream) -> Draws {
        draw_from(model, x0, num_negatives, rng)
    }
}

impl<M: Proposal> ConditionalProposal<M> for ModelItself {
    fn propose(
        &self,
        model: &M,
        x0: &Tensor<2>,
        num_negatives: usize,
        rng: &mut Stream,
    ) -> Result<Proposed> {
        Ok(Proposed::from(draw_from(model, x0, num_negatives, rng)))
    }
}
