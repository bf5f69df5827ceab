//! Candidates started from the data: contrastive divergence in the widest sense.

use burn::tensor::Tensor;

use super::{Criterion, Loss, surrogate};
use crate::error::Result;
use crate::host::to_host;
use crate::kernel::{Contrast, State};
use crate::rng::Stream;
use crate::train::Batch;

/// A contrast whose chain starts at each data point anew; the data are evaluated once for both phases.
#[derive(Debug, Clone)]
pub struct FromData<C>(pub C);

impl<M: ?Sized, C: Contrast<M>> Criterion<M> for FromData<C> {
    fn loss(&mut self, model: &M, batch: &Batch, rng: &mut Stream) -> Result<Loss> {
        let candidates = self.0.propose(model, State::new(batch.x.clone()), rng)?;
        let surrogate = surrogate(&candidates, batch.weights.as_deref());
        let value = self.0.value_on_host(&candidates).unwrap_or_else(|| to_host(&surrogate)[0]);
        Ok(Loss { surrogate, value, adaptation: None, candidates })
    }

    fn value(&self, loss: &Loss) -> Option<Tensor<1>> {
        self.0.value(&loss.candidates)
    }
}
