//! The adaptive proposal `q_phi`, which learns the model's distribution from the candidates' own weights.

use std::sync::{Arc, RwLock, RwLockReadGuard};

use burn::module::Module;
use burn::tensor::Tensor;

use super::Proposal;
use crate::host::Place;
use crate::rng::Stream;

/// A proposal that is a Burn module and changes while a kernel draws from it.
///
/// This is a handle: its clones are the same proposal. One goes into the kernel, one into
/// [`Adapted`](crate::criterion::Adapted), which trains it, so that the kernel itself has no state.
#[derive(Debug, Clone)]
pub struct Adaptive<Q>(Arc<RwLock<Q>>);

impl<Q: Module> Adaptive<Q> {
    /// A proposal as it is at the start.
    pub fn new(proposal: Q) -> Self {
        Self(Arc::new(RwLock::new(proposal)))
    }

    /// The proposal as it is now.
    pub fn now(&self) -> Q {
        self.read().clone()
    }

    fn read(&self) -> RwLockReadGuard<'_, Q> {
        self.0.read().expect("nothing panics while it writes")
    }

    pub(crate) fn set(&self, proposal: Q) {
        *self.0.write().expect("nothing panics while it writes") = proposal;
    }
}

impl<Q: Module + Proposal> Proposal for Adaptive<Q> {
    fn sample(&self, number: usize, place: &Place, rng: &mut Stream) -> Tensor<2> {
        self.read().sample(number, place, rng)
    }

    fn log_prob(&self, x: Tensor<2>) -> Tensor<1> {
        self.read().log_prob(x)
    }

    fn log_prob_values(&self, x: &Tensor<2>) -> Vec<f64> {
        self.read().log_prob_values(x)
    }
}
