//! The adaptive proposal `q_phi`, which learns the model's distribution from the candidates' own weights.

use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Gradients, Tensor};

use super::Proposal;
use crate::host::Place;
use crate::rng::Stream;
use crate::train::OptimiserConfig;
use crate::weights::Weights;

/// A proposal that is a Burn module and is trained beside the model, to minimise `KL[p_theta || q_phi]`.
///
/// Its gradient is `-sum_j w_j grad_phi log q_phi(x_j)` with the same candidates and weights as the model's
/// (eq. prop_distr:kl_crit:grad): nothing more is drawn or evaluated than `log q_phi` with its graph.
#[derive(Clone)]
pub struct Adaptive<Q> {
    proposal: Q,
    optimiser: ModuleOptimizer,
}

impl<Q: Module + Proposal> Adaptive<Q> {
    /// A proposal with the optimiser that trains it. Its learning rate is the model's.
    pub fn new(proposal: Q, optimiser: &OptimiserConfig) -> Self {
        Self { proposal, optimiser: optimiser.init() }
    }

    /// The proposal as it is now.
    pub fn proposal(&self) -> &Q {
        &self.proposal
    }
}

impl<Q: Module + Proposal> Proposal for Adaptive<Q> {
    fn sample(&self, number: usize, place: &Place, rng: &mut Stream) -> Tensor<2> {
        self.proposal.sample(number, place, rng)
    }

    fn log_prob(&self, x: Tensor<2>) -> Tensor<1> {
        self.proposal.log_prob(x)
    }

    fn log_prob_values(&self, x: &Tensor<2>) -> Vec<f64> {
        self.proposal.log_prob_values(x)
    }

    fn adaptation_loss(&self, x: &Tensor<3>, weights: &Weights) -> Option<Tensor<1>> {
        let [rows, candidates, dimension] = x.dims();
        let log_q = self.proposal.log_prob(x.clone().reshape([rows * candidates, dimension]));
        let weights = weights.values().iter().map(|weight| -weight / rows as f64).collect();
        Some((log_q * Place::of(x).tensor(weights, [rows * candidates])).sum())
    }

    fn update(&mut self, gradients: &mut Gradients, learning_rate: f64) {
        let gradients = GradientsParams::from_module(gradients, &self.proposal);
        self.proposal = self.optimiser.step(learning_rate, self.proposal.clone(), gradients);
    }
}
