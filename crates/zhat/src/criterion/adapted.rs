//! A criterion whose proposal learns from the criterion's own candidates.

use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Gradients, Tensor};

use super::{Criterion, Loss};
use crate::error::Result;
use crate::host::Place;
use crate::proposal::{Adaptive, Proposal};
use crate::rng::Stream;
use crate::train::{Batch, OptimiserConfig, Parts};

/// A criterion with an [`Adaptive`] proposal inside it, which is trained beside the model, to minimise `KL[p_theta || q_phi]`.
///
/// Its gradient is `-sum_j w_j grad_phi log q_phi(x_j)` with the same candidates and weights as the model's
/// (eq. prop_distr:kl_crit:grad): nothing more is drawn or evaluated than `log q_phi` with its graph. With several MCMC steps
/// it learns from the last, which is closest to the model. Its learning rate is the model's.
pub struct Adapted<C, Q> {
    criterion: C,
    proposal: Adaptive<Q>,
    config: OptimiserConfig,
    optimiser: ModuleOptimizer,
}

impl<C, Q: Module + Proposal> Adapted<C, Q> {
    /// The criterion must draw from the same proposal: give it a clone of the handle.
    pub fn new(criterion: C, proposal: Adaptive<Q>, config: OptimiserConfig) -> Self {
        Self { criterion, proposal, optimiser: config.init(), config }
    }
}

impl<M: ?Sized, C: Criterion<M>, Q: Module + Proposal> Criterion<M> for Adapted<C, Q> {
    fn loss(&mut self, model: &M, batch: &Batch, rng: &mut Stream) -> Result<Loss> {
        let mut loss = self.criterion.loss(model, batch, rng)?;
        let x = &loss.candidates.x;
        let [rows, candidates, dimension] = x.dims();
        let log_q = self.proposal.now().log_prob(x.clone().reshape([rows * candidates, dimension]));
        let weights = loss.candidates.weights.values();
        let weights = weights.iter().map(|weight| -weight / rows as f64).collect();
        loss.adaptation = Some((log_q * Place::of(x).tensor(weights, [rows * candidates])).sum());
        Ok(loss)
    }

    fn value(&self, loss: &Loss) -> Option<Tensor<1>> {
        self.criterion.value(loss)
    }

    fn update(&mut self, gradients: &mut Gradients, learning_rate: f64) {
        let before = self.proposal.now();
        let gradients = GradientsParams::from_module(gradients, &before);
        self.proposal.set(self.optimiser.step(learning_rate, before, gradients));
    }

    fn save(&self, parts: &mut Parts) -> Result<()> {
        parts.push_module(&self.proposal.now())?;
        parts.push_optimiser(&self.optimiser)?;
        self.criterion.save(parts)
    }

    fn load(&mut self, parts: &mut Parts) -> Result<()> {
        self.proposal.set(parts.take_module(&self.proposal.now())?);
        self.optimiser = parts.take_optimiser(&self.config)?;
        self.criterion.load(parts)
    }
}
