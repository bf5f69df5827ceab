//! A mixture of Gaussians with diagonal covariances, as a proposal and as a multimodal model.

use burn::module::{Module, Param};
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Tensor};

use super::Proposal;
use crate::error::{Result, at_least, positive};
use crate::host::{Place, to_host};
use crate::model::{UnnormalisedModel, log_sum_exp, parameter};
use crate::rng::Stream;

/// `q(x) = sum_k pi_k N(x; mu_k, diag(s_k^2))`, with logits of `pi`, means and log-scales as parameters.
#[derive(Module, Debug)]
pub struct GaussianMixture {
    logits: Param<Tensor<1>>,
    means: Param<Tensor<2>>,
    log_std_devs: Param<Tensor<2>>,
}

/// One component of a [`GaussianMixture`].
#[derive(Debug, Clone, PartialEq)]
pub struct Component {
    /// Weight `pi`; weights are normalised by the mixture.
    pub weight: f64,
    /// Mean `mu`.
    pub mean: Vec<f64>,
    /// Standard deviations `s`.
    pub std_dev: Vec<f64>,
}

impl Component {
    /// A component with a weight, a mean and standard deviations.
    pub fn new(weight: f64, mean: &[f64], std_dev: &[f64]) -> Self {
        Self { weight, mean: mean.to_vec(), std_dev: std_dev.to_vec() }
    }
}

impl GaussianMixture {
    /// From its components, which must have positive weights and scales.
    pub fn new(components: &[Component], device: &Device) -> Result<Self> {
        let number = at_least(1, "components", components.len())?;
        let dimension = components[0].mean.len();
        for Component { weight, mean, std_dev } in components {
            assert!(mean.len() == dimension && std_dev.len() == dimension, "one shape for all");
            positive("component weight", *weight)?;
            for std_dev in std_dev {
                positive("component std_dev", *std_dev)?;
            }
        }
        let logits = components.iter().map(|c| c.weight.ln()).collect();
        let means = components.iter().flat_map(|c| c.mean.clone()).collect();
        let log_std_devs = components.iter().flat_map(|c| &c.std_dev).map(|s| s.ln()).collect();
        Ok(Self {
            logits: parameter(logits, [number], device),
            means: parameter(means, [number, dimension], device),
            log_std_devs: parameter(log_std_devs, [number, dimension], device),
        })
    }
}

impl Proposal for GaussianMixture {
    fn sample(&self, number: usize, place: &Place, rng: &mut Stream) -> Tensor<2> {
        let weights = to_host(&log_softmax(self.logits.val(), 0).exp());
        let (means, scales) = (to_host(&self.means.val()), to_host(&self.log_std_devs.val()));
        let dimension = means.len() / weights.len();
        let mut values = Vec::with_capacity(number * dimension);
        for _ in 0..number {
            let at = rng.categorical(&weights) * dimension;
            values.extend((at..at + dimension).map(|i| means[i] + scales[i].exp() * rng.normal()));
        }
        place.tensor(values, [number, dimension])
    }

    fn log_prob(&self, x: Tensor<2>) -> Tensor<1> {
        let [components, dimension] = self.means.dims();
        // [n, 1, d] against [1, k, d].
        let log_scales = self.log_std_devs.val();
        let z = (x.unsqueeze_dim::<3>(1) - self.means.val().unsqueeze())
            / log_scales.clone().exp().unsqueeze();
        let quadratic: Tensor<2> = z.square().sum_dim(2).squeeze_dim(2);
        let log_det = log_scales.sum_dim(1).reshape([1, components]);
        let log_weights = log_softmax(self.logits.val(), 0).unsqueeze::<2>();
        let constant = 0.5 * dimension as f64 * (2.0 * std::f64::consts::PI).ln();
        let joint = log_weights - log_det - quadratic * 0.5 - constant;
        log_sum_exp(joint).squeeze_dim(1)
    }
}

impl UnnormalisedModel for GaussianMixture {
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        self.log_prob(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_density_integrates_to_one_and_is_what_is_drawn_from() {
        let device = Device::flex();
        let mixture = GaussianMixture::new(
            &[Component::new(0.3, &[-1.5], &[0.4]), Component::new(0.7, &[1.0], &[0.8])],
            &device,
        )
        .unwrap();
        let place = Place::new(&device);
        // Riemann sum on a grid that covers all mass, and the same of x * q(x).
        let (step, points) = (0.01, 1400);
        let grid: Vec<f64> = (0..points).map(|i| -7.0 + step * f64::from(i)).collect();
        let log_q = to_host(&mixture.log_prob(place.tensor(grid.clone(), [points as usize, 1])));
        let mass: f64 = log_q.iter().map(|l| l.exp() * step).sum();
        let mean: f64 = log_q.iter().zip(&grid).map(|(l, x)| l.exp() * x * step).sum();
        assert!((mass - 1.0).abs() < 1e-4);
        assert!((mean - 0.25).abs() < 1e-4);
        let number = 40_000;
        let rng = &mut crate::rng::Streams::new(11).stream("test", 0, 0);
        let draws = to_host(&mixture.sample(number, &place, rng));
        let sample_mean = draws.iter().sum::<f64>() / number as f64;
        // Variance of the mixture: sum pi (s^2 + mu^2) - mean^2 = 1.8085; 4.5 standard errors.
        assert!((sample_mean - 0.25).abs() < 4.5 * (1.8085f64 / number as f64).sqrt());
    }
}
