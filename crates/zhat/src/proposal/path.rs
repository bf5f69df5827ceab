//! A chain of several proposals as one: the path of Yair and Michaeli's time-reversal criterion.

use burn::tensor::Tensor;

use super::{ConditionalProposal, Proposed};
use crate::error::{Result, at_least};
use crate::rng::Stream;

/// `num_steps` draws from a conditional proposal, one from the other; only the last is a candidate.
///
/// The ratio is that of the whole path against its reverse, `sum_i log q(x_{i+1}|x_i) - log q(x_i|x_{i+1})`.
#[derive(Debug, Clone, PartialEq)]
pub struct Path<Q> {
    proposal: Q,
    num_steps: usize,
}

impl<Q> Path<Q> {
    /// Paths of a number of steps of a proposal.
    pub fn new(proposal: Q, num_steps: usize) -> Result<Self> {
        Ok(Self { proposal, num_steps: at_least(1, "num_steps", num_steps)? })
    }
}

impl<M: ?Sized, Q: ConditionalProposal<M>> ConditionalProposal<M> for Path<Q> {
    fn propose(
        &self,
        model: &M,
        x0: &Tensor<2>,
        num_negatives: usize,
        rng: &mut Stream,
    ) -> Result<Proposed> {
        let [rows, dimension] = x0.dims();
        let paths = rows * num_negatives;
        let mut path = self.proposal.propose(model, x0, num_negatives, rng)?;
        for _ in 1..self.num_steps {
            let here = path.x.reshape([paths, dimension]);
            let next = self.proposal.propose(model, &here, 1, rng)?;
            let log_ratio = match (path.log_ratio, next.log_ratio) {
                (Some(a), Some(b)) => Some(a.iter().zip(&b).map(|(a, b)| a + b).collect()),
                (a, b) => a.or(b),
            };
            path = Proposed { x: next.x.reshape([rows, num_negatives, dimension]), log_ratio };
        }
        Ok(path)
    }
}
