//! Candidates started from the data: contrastive divergence in the widest sense.

use burn::tensor::{Gradients, Tensor};

use super::{Criterion, Loss, surrogate};
use crate::error::Result;
use crate::kernel::{Contrast, State};
use crate::rng::Stream;

/// A contrast whose chain starts at each data point anew; the data are evaluated once for both phases.
#[derive(Debug, Clone)]
pub struct FromData<C>(pub C);

impl<M: ?Sized, C: Contrast<M>> Criterion<M> for FromData<C> {
    fn loss(&mut self, model: &M, x0: Tensor<2>, rng: &mut Stream) -> Result<Loss> {
        let candidates = self.0.propose(model, State::new(x0), rng)?;
        Ok(Loss {
            surrogate: surrogate(&candidates),
            adaptation: self.0.adaptation_loss(&candidates),
            candidates,
        })
    }

    fn value(&self, loss: &Loss) -> Option<Tensor<1>> {
        self.0.value(&loss.candidates)
    }

    fn update(&mut self, gradients: &mut Gradients, learning_rate: f64) {
        self.0.update(gradients, learning_rate);
    }
}
