//! The Hamiltonian proposal: a leapfrog trajectory with a fresh momentum; with Metropolis' rule it is HMC.

use burn::tensor::Tensor;

use super::langevin::host_score;
use super::{ConditionalProposal, Proposed};
use crate::error::{Result, at_least, positive};
use crate::host::{Place, to_host};
use crate::model::UnnormalisedModel;
use crate::rng::Stream;

/// `num_leapfrog` steps of size `epsilon` through the energy landscape.
///
/// The trajectory is volume preserving and reversible, so what stands for `log q(x'|x) - log q(x|x')` is the change of
/// kinetic energy, `(|v'|^2 - |v|^2) / 2`, and any acceptance rule for pairs leaves the model invariant.
#[derive(Debug, Clone, PartialEq)]
pub struct Hamiltonian {
    step_size: f64,
    num_leapfrog: usize,
}

impl Hamiltonian {
    /// Trajectories of a number of leapfrog steps of a given size.
    pub fn new(step_size: f64, num_leapfrog: usize) -> Result<Self> {
        let step_size = positive("step_size", step_size)?;
        Ok(Self { step_size, num_leapfrog: at_least(1, "num_leapfrog", num_leapfrog)? })
    }
}

impl<M: UnnormalisedModel + ?Sized> ConditionalProposal<M> for Hamiltonian {
    fn propose(
        &self,
        model: &M,
        x0: &Tensor<2>,
        num_negatives: usize,
        rng: &mut Stream,
    ) -> Result<Proposed> {
        let [rows, dimension] = x0.dims();
        let (place, chains) = (Place::of(x0), rows * num_negatives);
        let mut x: Vec<f64> =
            to_host(x0).chunks_exact(dimension).flat_map(|row| row.repeat(num_negatives)).collect();
        let mut velocity = rng.normals(chains * dimension);
        let kinetic_before = kinetic(&velocity, dimension);
        let score =
            |x: &[f64]| host_score(model, place.tensor(x.to_vec(), [chains, dimension]), dimension);
        // Half a kick, then drift and kick in turns, the last kick a half one again.
        add_scaled(&mut velocity, &score(&x)?, 0.5 * self.step_size);
        for step in 1..=self.num_leapfrog {
            add_scaled(&mut x, &velocity, self.step_size);
            let kick = if step < self.num_leapfrog { self.step_size } else { 0.5 * self.step_size };
            add_scaled(&mut velocity, &score(&x)?, kick);
        }
        let log_ratio = kinetic(&velocity, dimension)
            .into_iter()
            .zip(kinetic_before)
            .map(|(after, before)| after - before)
            .collect();
        let x = place.tensor(x, [rows, num_negatives, dimension]);
        Ok(Proposed { x, log_ratio: Some(log_ratio) })
    }
}

fn add_scaled(values: &mut [f64], other: &[f64], scale: f64) {
    for (value, other) in values.iter_mut().zip(other) {
        *value += scale * other;
    }
}

fn kinetic(velocity: &[f64], dimension: usize) -> Vec<f64> {
    velocity
        .chunks_exact(dimension)
        .map(|row| 0.5 * row.iter().map(|v| v * v).sum::<f64>())
        .collect()
}
