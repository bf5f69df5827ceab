//! A sequential proposal as an ordinary one: whole rows, drawn stage by stage.

use burn::tensor::Tensor;

use super::{Proposal, SequentialProposal};
use crate::host::{Place, to_host};
use crate::rng::Stream;

/// `q(x) = prod_d q(x_d | x_<d)`, so that a model that grows stage by stage can have any kernel and estimator.
#[derive(Debug, Clone)]
pub struct WholeRows<Q> {
    proposal: Q,
    num_stages: usize,
}

impl<Q: SequentialProposal> WholeRows<Q> {
    /// Rows of as many columns as there are stages.
    pub fn new(proposal: Q, num_stages: usize) -> Self {
        Self { proposal, num_stages }
    }
}

impl<Q: SequentialProposal> Proposal for WholeRows<Q> {
    fn sample(&self, number: usize, place: &Place, rng: &mut Stream) -> Tensor<2> {
        let shape = [number, self.num_stages];
        let mut x = vec![0.0; number * self.num_stages];
        for stage in 0..self.num_stages {
            let drawn = self.proposal.sample(stage, place.tensor(x.clone(), shape), rng);
            for (row, value) in x.chunks_exact_mut(self.num_stages).zip(to_host(&drawn)) {
                row[stage] = value;
            }
        }
        place.tensor(x, shape)
    }

    fn log_prob(&self, x: Tensor<2>) -> Tensor<1> {
        let stages = (0..self.num_stages).map(|stage| self.proposal.log_prob(stage, x.clone()));
        stages.reduce(|sum, stage| sum + stage).expect("at least one stage")
    }
}
