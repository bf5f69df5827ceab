//! Chains that go on where they were at the last training step: PCD, P-RNCE, P-CNCE and P-MH-CNCE.

use burn::tensor::Tensor;

use super::{Criterion, Loss, negative_phase};
use crate::chain::ChainStore;
use crate::error::{Error, Result, at_least};
use crate::host::{Place, to_host};
use crate::kernel::{Kernel, State};
use crate::model::UnnormalisedModel;
use crate::rng::Stream;
use crate::train::{Batch, Parts};
use crate::weights::check_finite;

/// A kernel with persistent chains. The gradient still sums over all candidates; one is drawn only to move the chain.
#[derive(Debug, Clone)]
pub struct Persistent<K> {
    kernel: K,
    chains: ChainStore,
}

impl<K> Persistent<K> {
    /// With a number of chains for each slot of a batch: 1 for RNCE, `J` for CNCE with one pair a chain.
    pub fn new(kernel: K, chains_per_slot: usize) -> Result<Self> {
        at_least(1, "chains_per_slot", chains_per_slot)?;
        Ok(Self { kernel, chains: ChainStore::new(chains_per_slot) })
    }
}

impl<M: UnnormalisedModel + ?Sized, K: Kernel<M>> Criterion<M> for Persistent<K> {
    fn loss(&mut self, model: &M, batch: &Batch, rng: &mut Stream) -> Result<Loss> {
        let x0 = &batch.x;
        let [rows, dimension] = x0.dims();
        let place = Place::of(x0);
        // Before a chain starts where the model has no mass, from which it would not come back.
        let log_p_tilde = model.log_p_tilde(x0.clone().inner());
        check_finite("log_p_tilde of the model", &to_host(&log_p_tilde), 1)?;
        let chains = self.chains.start(&to_host(x0), dimension);
        let shape = [rows * self.chains.chains_per_slot(), dimension];
        let state = State::new(place.tensor(chains, shape));
        let candidates = self.kernel.propose(model, state, rng)?;
        let (_, moved) = candidates.draw(rng);
        self.chains.store(&moved);
        // Chains are draws of the model, so that only the data count more or less.
        let positive = match &batch.weights {
            Some(weights) => (log_p_tilde * place.tensor(weights.clone(), [rows])).mean(),
            None => log_p_tilde.mean(),
        };
        let surrogate = negative_phase(&candidates) - positive;
        let value = to_host(&surrogate)[0];
        Ok(Loss { surrogate, value, adaptation: None, candidates })
    }

    /// Persistent methods have a gradient but no criterion.
    fn value(&self, _loss: &Loss) -> Option<Tensor<1>> {
        None
    }

    fn save(&self, parts: &mut Parts) -> Result<()> {
        parts.push(serde_json::to_vec(&self.chains).expect("chains are plain data"));
        Ok(())
    }

    fn load(&mut self, parts: &mut Parts) -> Result<()> {
        self.chains = serde_json::from_slice(&parts.take()?)
            .map_err(|error| Error::BrokenState { reason: error.to_string() })?;
        Ok(())
    }
}
