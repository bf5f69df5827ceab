//! Several steps of a kernel as one kernel: CD-k and the multi-step criteria of the appendix.

use burn::tensor::Tensor;

use super::{Candidates, Contrast, Kernel, State, Terms};
use crate::error::{Result, at_least};
use crate::host::Place;
use crate::rng::Stream;

/// `k` steps of a kernel, each from a candidate drawn by its weight; the gradient is the average over the steps, each
/// marginalised over its own draw (eq. cd_rnce_multi_steps:grad).
#[derive(Debug, Clone)]
pub struct Repeat<K> {
    kernel: K,
    num_steps: usize,
}

impl<K> Repeat<K> {
    /// A number of steps of a kernel.
    pub fn new(kernel: K, num_steps: usize) -> Result<Self> {
        Ok(Self { kernel, num_steps: at_least(1, "num_steps", num_steps)? })
    }
}

impl<M: ?Sized, K: Kernel<M>> Contrast<M> for Repeat<K> {
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates> {
        let mut candidates = self.kernel.propose(model, state, rng)?;
        if self.num_steps == 1 {
            return Ok(candidates);
        }
        let start = candidates.start();
        let mut terms = vec![terms_of(&candidates)];
        for _ in 1..self.num_steps {
            let state = candidates.select(rng);
            candidates = self.kernel.propose(model, state, rng)?;
            terms.push(terms_of(&candidates));
        }
        let (log_p_tilde, weights) = terms.into_iter().unzip();
        candidates.terms = Some(Terms {
            start,
            log_p_tilde: Tensor::cat(log_p_tilde, 1),
            weights: Tensor::cat(weights, 1) / self.num_steps as f64,
        });
        Ok(candidates)
    }

    fn value(&self, candidates: &Candidates) -> Option<Tensor<1>> {
        if self.num_steps == 1 { self.kernel.value(candidates) } else { None }
    }

    fn value_on_host(&self, candidates: &Candidates) -> Option<f64> {
        if self.num_steps == 1 { self.kernel.value_on_host(candidates) } else { None }
    }
}

impl<M: ?Sized, K: Kernel<M>> Kernel<M> for Repeat<K> {}

/// Log-densities and weights of one step.
fn terms_of(candidates: &Candidates) -> (Tensor<2>, Tensor<2>) {
    match &candidates.terms {
        Some(terms) => (terms.log_p_tilde.clone(), terms.weights.clone()),
        None => {
            let weights = candidates.weights.tensor(&Place::of(&candidates.x));
            (candidates.log_p_tilde.clone(), weights)
        }
    }
}
