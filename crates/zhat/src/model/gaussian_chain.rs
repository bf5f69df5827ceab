//! A small sequential model with a known normaliser, to test sequential Monte Carlo on.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::{FullGaussian, SequentialModel, UnnormalisedModel, parameter};
use crate::error::Result;
use crate::host::{Place, to_host};
use crate::linalg;
use crate::proposal::SequentialProposal;
use crate::rng::Stream;

/// `log p~(x_d | x_<d) = -1/2 (x_d - a x_{d-1})^2 - 1/2 lambda^2 (x_d - b)^2`, with `x_{-1} = 0`.
///
/// The factors are not normalised and their integrals depend on the past, so that the joint density differs from the
/// product of normalised conditionals; it is Gaussian, so that `Z`, moments and exact draws are known. The parameters
/// are `a` (coupling) and `b` (location).
#[derive(Module, Debug)]
pub struct GaussianChain {
    coupling: Param<Tensor<1>>,
    location: Param<Tensor<1>>,
    pull: f64,
    num_stages: usize,
}

impl GaussianChain {
    /// A chain with coupling `a`, location `b`, pull `lambda` and a number of stages.
    pub fn new(
        coupling: f64,
        location: f64,
        pull: f64,
        num_stages: usize,
        device: &Device,
    ) -> Self {
        Self {
            coupling: parameter(vec![coupling], [1], device),
            location: parameter(vec![location], [1], device),
            pull,
            num_stages,
        }
    }

    /// `log Z`, in closed form: `log p~ = -1/2 x^T P x + h^T x - c` integrates to
    /// `d/2 log(2 pi) - 1/2 log det P + 1/2 h^T P^-1 h - c`.
    pub fn log_z(&self) -> f64 {
        let (location, squared_pull) = (to_host(&self.location.val())[0], self.pull * self.pull);
        let (inverse_factor, mean) = self.factor_and_mean();
        let log_det: f64 = (0..self.num_stages)
            .map(|i| -2.0 * inverse_factor[i * (self.num_stages + 1)].ln())
            .sum();
        let quadratic = squared_pull * location * mean.iter().sum::<f64>();
        let dimension = self.num_stages as f64;
        0.5 * dimension * (2.0 * std::f64::consts::PI).ln() - 0.5 * log_det + 0.5 * quadratic
            - 0.5 * dimension * squared_pull * location * location
    }

    /// The normalised density, from which exact draws can be made.
    pub fn exact(&self, device: &Device) -> Result<FullGaussian> {
        let (inverse_factor, mean) = self.factor_and_mean();
        FullGaussian::new(&mean, &gram(&inverse_factor, self.num_stages), device)
    }

    /// Inverse Cholesky factor of the precision matrix, and the mean.
    fn factor_and_mean(&self) -> (Vec<f64>, Vec<f64>) {
        let d = self.num_stages;
        let (a, b) = (to_host(&self.coupling.val())[0], to_host(&self.location.val())[0]);
        let mut precision = vec![0.0; d * d];
        for i in 0..d {
            let next = if i + 1 < d { a * a } else { 0.0 };
            precision[i * d + i] = 1.0 + next + self.pull * self.pull;
            if i > 0 {
                precision[i * d + i - 1] = -a;
                precision[(i - 1) * d + i] = -a;
            }
        }
        let factor = linalg::cholesky(&precision, d, "the chain").expect("diagonally dominant");
        let inverse = linalg::invert_lower(&factor, d);
        let h = self.pull * self.pull * b;
        let mean = gram(&inverse, d).chunks(d).map(|row| h * row.iter().sum::<f64>()).collect();
        (inverse, mean)
    }
}

impl UnnormalisedModel for GaussianChain {
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        let factors = (0..self.num_stages).map(|stage| self.log_factor(stage, x.clone()));
        factors.reduce(|sum, factor| sum + factor).expect("at least one stage")
    }
}

impl SequentialModel for GaussianChain {
    fn num_stages(&self) -> usize {
        self.num_stages
    }

    fn log_factor(&self, stage: usize, x: Tensor<2>) -> Tensor<1> {
        let current = column(&x, stage);
        let step = match stage {
            0 => current.clone(),
            _ => current.clone() - self.coupling.val() * column(&x, stage - 1),
        };
        let pull = (current - self.location.val()) * self.pull;
        (step.square() + pull.square()) * -0.5
    }
}

/// `q(x_d | x_<d) = N(a x_{d-1}, s^2)`: a proposal for a [`GaussianChain`] that knows nothing of its pull.
#[derive(Debug, Clone)]
pub struct GaussianChainProposal {
    /// Coupling `a`.
    pub coupling: f64,
    /// Standard deviation `s`.
    pub std_dev: f64,
}

impl SequentialProposal for GaussianChainProposal {
    fn sample(&self, stage: usize, prefix: Tensor<2>, rng: &mut Stream) -> Tensor<1> {
        let place = Place::of(&prefix);
        let rows = prefix.dims()[0];
        let noise = place.tensor(rng.normals(rows), [rows]) * self.std_dev;
        match stage {
            0 => noise,
            _ => noise + column(&prefix, stage - 1) * self.coupling,
        }
    }

    fn log_prob(&self, stage: usize, x: Tensor<2>) -> Tensor<1> {
        let current = column(&x, stage);
        let step = match stage {
            0 => current,
            _ => current - column(&x, stage - 1) * self.coupling,
        };
        let constant = self.std_dev.ln() + 0.5 * (2.0 * std::f64::consts::PI).ln();
        (step / self.std_dev).square() * -0.5 - constant
    }
}

fn column(x: &Tensor<2>, at: usize) -> Tensor<1> {
    x.clone().narrow(1, at, 1).squeeze_dim(1)
}

/// `A^T A` for a square matrix.
fn gram(matrix: &[f64], d: usize) -> Vec<f64> {
    (0..d * d)
        .map(|at| (0..d).map(|k| matrix[k * d + at / d] * matrix[k * d + at % d]).sum())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proposal::Proposal;

    #[test]
    fn the_normaliser_agrees_with_the_exact_gaussian() {
        // log p~(x) - log p(x) = log Z at every x.
        let device = Device::flex();
        let chain = GaussianChain::new(0.8, 1.5, 0.7, 4, &device);
        let x =
            Place::new(&device).tensor((0..12).map(|i| (i as f64).sin() * 2.0).collect(), [3, 4]);
        let log_p = to_host(&chain.exact(&device).unwrap().log_prob(x.clone()));
        for (log_p_tilde, log_p) in to_host(&chain.log_p_tilde(x)).iter().zip(log_p) {
            assert!((log_p_tilde - log_p - chain.log_z()).abs() < 1e-4);
        }
    }
}
