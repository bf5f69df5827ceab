//! The ring model of the paper's second experiment, `log p~(x) = -exp(theta)/2 (||x|| - mu)^2`.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::node::{self, Energy};
use super::{UnnormalisedModel, parameter};
use crate::host::to_host;

/// A shell around the origin: radius `mu` is known, the log-precision `theta` is estimated.
#[derive(Module, Debug)]
pub struct RingModel {
    log_precision: Param<Tensor<1>>,
    radius: f64,
}

impl RingModel {
    /// A ring of a known radius, with a start for the log-precision `theta`.
    pub fn new(radius: f64, log_precision: f64, device: &Device) -> Self {
        Self { log_precision: parameter(vec![log_precision], [1], device), radius }
    }

    /// `exp(theta)`, on the host.
    pub fn precision(&self) -> f64 {
        to_host(&self.log_precision.val())[0].exp()
    }
}

impl UnnormalisedModel for RingModel {
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        let energy = RingEnergy { radius: self.radius, dimension: x.dims()[1] };
        if let Some(log_p_tilde) = node::evaluate(energy, &x, [self.log_precision.val()]) {
            return log_p_tilde;
        }
        let norm: Tensor<1> = x.square().sum_dim(1).sqrt().squeeze_dim(1);
        (norm - self.radius).square() * self.log_precision.val().exp() * -0.5
    }
}

/// The formula on numbers.
#[derive(Debug, Clone)]
struct RingEnergy {
    radius: f64,
    dimension: usize,
}

impl RingEnergy {
    /// `-exp(theta)/2 (||x|| - mu)^2` of each row.
    fn rows(&self, x: &[f32], log_precision: f32) -> impl Iterator<Item = f64> {
        let factor = -0.5 * f64::from(log_precision).exp();
        x.chunks_exact(self.dimension).map(move |row| {
            let norm = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            factor * (norm - self.radius).powi(2)
        })
    }
}

impl Energy<1> for RingEnergy {
    fn evaluate(&self, x: &[f32], [theta]: [&[f32]; 1], log_p_tilde: &mut Vec<f32>) {
        log_p_tilde.extend(self.rows(x, theta[0]).map(|value| value as f32));
    }

    fn differentiate(
        &self,
        x: &[f32],
        [theta]: [&[f32]; 1],
        c: &[f32],
        [gradient]: [&mut [f64]; 1],
    ) {
        // d/dtheta log p~ = log p~.
        gradient[0] +=
            self.rows(x, theta[0]).zip(c).map(|(row, c)| row * f64::from(*c)).sum::<f64>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Place;

    #[test]
    fn the_energy_and_its_gradient_match_the_formula() {
        let device = Device::flex().autodiff();
        let model = RingModel::new(2.0, 0.7, &device);
        let x = Place::new(&device).tensor(vec![3.0, 4.0], [1, 2]);
        let log_p_tilde = model.log_p_tilde(x);
        // ||x|| = 5: log p~ = -exp(0.7)/2 * 9, and d/dtheta log p~ = log p~.
        let expected = -0.5 * 0.7f64.exp() * 9.0;
        assert!((to_host(&log_p_tilde)[0] - expected).abs() < 1e-5);
        let gradients = log_p_tilde.backward();
        let gradient = model.log_precision.val().grad(&gradients).unwrap();
        assert!((to_host(&gradient)[0] - expected).abs() < 1e-5);
    }

    #[test]
    fn one_node_gives_what_tensor_operations_give() {
        let device = Device::flex().autodiff();
        let model = RingModel::new(2.0, 0.7, &device);
        let x = Place::new(&device).tensor(vec![3.0, 4.0, -1.0, 0.5, 0.0, 2.0], [3, 2]);
        // A tracked `x` takes the way of tensor operations.
        let ways = [model.log_p_tilde(x.clone()), model.log_p_tilde(x.autodiff().require_grad())];
        let [node, operations] = ways.map(|log_p_tilde| {
            let gradients = log_p_tilde.clone().square().sum().backward();
            let gradient = model.log_precision.val().grad(&gradients).unwrap();
            [to_host(&log_p_tilde), to_host(&gradient)].concat()
        });
        for (a, b) in node.iter().zip(operations) {
            assert!((a - b).abs() < 1e-5 * b.abs().max(1.0), "{a} against {b}");
        }
    }
}
