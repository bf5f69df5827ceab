//! The ring model of the paper's second experiment, `log p~(x) = -exp(theta)/2 (||x|| - mu)^2`.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

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
        let norm: Tensor<1> = x.square().sum_dim(1).sqrt().squeeze_dim(1);
        (norm - self.radius).square() * self.log_precision.val().exp() * -0.5
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
}
