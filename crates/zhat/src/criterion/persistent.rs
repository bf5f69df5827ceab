//! Chains that go on where they were at the last training step: PCD, P-RNCE, P-CNCE and P-MH-CNCE.

use burn::tensor::{Gradients, Tensor};

use super::{Criterion, Loss, negative_phase};
use crate::chain::ChainStore;
use crate::error::{Error, Result};
use crate::host::{Place, to_host};
use crate::kernel::{Kernel, State};
use crate::model::UnnormalisedModel;
use crate::rng::Stream;

/// A kernel with persistent chains. The gradient still sums over all candidates; one is drawn only to move the chain.
#[derive(Debug, Clone)]
pub struct Persistent<K> {
    kernel: K,
    chains: ChainStore,
}

impl<K> Persistent<K> {
    /// With a number of chains for each slot of a batch: 1 for RNCE, `J` for CNCE with one pair a chain.
    pub fn new(kernel: K, chains_per_slot: usize) -> Result<Self> {
        if chains_per_slot == 0 {
            return Err(Error::setting("chains_per_slot", chains_per_slot, "at least 1"));
        }
        Ok(Self { kernel, chains: ChainStore::new(chains_per_slot) })
    }

    /// Where the chains are, to be stored with a checkpoint.
    pub fn chains(&self) -> &ChainStore {
        &self.chains
    }

    /// Goes on from stored chains.
    pub fn with_chains(self, chains: ChainStore) -> Self {
        Self { chains, ..self }
    }
}

impl<M: UnnormalisedModel + ?Sized, K: Kernel<M>> Criterion<M> for Persistent<K> {
    fn loss(&mut self, model: &M, x0: Tensor<2>, rng: &mut Stream) -> Result<Loss> {
        let [rows, dimension] = x0.dims();
        let place = Place::of(&x0);
        let chains = self.chains.start(&to_host(&x0), dimension);
        let shape = [rows * self.chains.chains_per_slot(), dimension];
        let state = State::new(place.tensor(chains, shape));
        let candidates = self.kernel.propose(model, state, rng)?;
        let (_, moved) = candidates.draw(rng);
        self.chains.store(&moved);
        Ok(Loss {
            surrogate: negative_phase(&candidates) - model.log_p_tilde(x0.inner()).mean(),
            adaptation: self.kernel.adaptation_loss(&candidates),
            candidates,
        })
    }

    /// Persistent methods have a gradient but no criterion.
    fn value(&self, _loss: &Loss) -> Option<Tensor<1>> {
        None
    }

    fn update(&mut self, gradients: &mut Gradients, learning_rate: f64) {
        self.kernel.update(gradients, learning_rate);
    }
}
