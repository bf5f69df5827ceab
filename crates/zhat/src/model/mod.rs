//! Models: a log-density known up to a constant, `log p~_theta(x)`.

mod gaussian;
mod gaussian_chain;
mod mlp;
mod node;
mod ring;
mod with_log_z;

pub use gaussian::{DiagonalGaussian, FullGaussian};
pub use gaussian_chain::{GaussianChain, GaussianChainProposal};
pub use mlp::{MlpEnergy, MlpEnergyConfig};
pub use ring::RingModel;
pub use with_log_z::WithLogZ;

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};

use crate::host::Place;
use crate::rng::Stream;

/// An unnormalised model `p_theta(x) = p~_theta(x) / Z_theta` (eq. unnorm_model).
///
/// Any Burn module can be one: implement this for your own `#[derive(Module)]` struct and every criterion trains it.
pub trait UnnormalisedModel {
    /// `log p~_theta(x)` of every row.
    ///
    /// `x` comes without autodiff; the result carries the graph of the module's parameters, if they have one.
    ///
    /// # Shapes
    /// - `x`: `[n, d]`
    /// - output: `[n]`
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1>;
}

/// A model that is a product of conditional factors, `p~(x) = prod_d p~(x_d | x_<d)` (eq. nce_ext:ar_model).
pub trait SequentialModel: UnnormalisedModel {
    /// Number of factors, which is the number of columns of `x`.
    fn num_stages(&self) -> usize;

    /// `log p~(x_d | x_<d)` for `d = stage`, counted from 0.
    ///
    /// # Shapes
    /// - `x`: `[n, d]`; columns after `stage` are zero and must not be used
    /// - output: `[n]`
    fn log_factor(&self, stage: usize, x: Tensor<2>) -> Tensor<1>;
}

/// `log p~(x)` and its gradient with respect to `x`, the score, both without a graph.
///
/// # Shapes
/// - `x`: `[n, d]`
/// - output: `[n]` and `[n, d]`
pub fn score<M: UnnormalisedModel + ?Sized>(model: &M, x: Tensor<2>) -> (Tensor<1>, Tensor<2>) {
    let x = x.inner().autodiff().require_grad();
    let log_p_tilde = model.log_p_tilde(x.clone());
    let mut gradients = log_p_tilde.clone().sum().backward();
    let score = x.grad_remove(&mut gradients).expect("log_p_tilde depends on x");
    (log_p_tilde.inner(), score)
}

impl<M: UnnormalisedModel + ?Sized> UnnormalisedModel for &M {
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        (**self).log_p_tilde(x)
    }
}

/// A parameter on a device; it has a gradient if the device does autodiff.
pub(crate) fn parameter<const D: usize>(
    values: Vec<f64>,
    shape: [usize; D],
    device: &Device,
) -> Param<Tensor<D>> {
    let tensor = Place::new(device).tensor(values, shape);
    Param::from_tensor(if device.is_autodiff() { tensor.autodiff() } else { tensor })
}

/// A linear layer with weights and bias from `U(-1/sqrt(fan_in), 1/sqrt(fan_in))`, drawn from our own stream, never from
/// Burn's global generator.
pub(crate) fn linear(inputs: usize, outputs: usize, device: &Device, rng: &mut Stream) -> Linear {
    let bound = 1.0 / (inputs as f64).sqrt();
    let mut draw =
        |number: usize| (0..number).map(|_| bound * (2.0 * rng.uniform() - 1.0)).collect();
    let weight = parameter(draw(inputs * outputs), [inputs, outputs], device);
    let bias = Some(parameter(draw(outputs), [outputs], device));
    Linear { weight, bias }
}

/// `log sum_j exp(v_j)` over the columns, with the graph.
///
/// # Shapes
/// - `values`: `[n, c]`
/// - output: `[n, 1]`
pub(crate) fn log_sum_exp(values: Tensor<2>) -> Tensor<2> {
    let largest = values.clone().detach().max_dim(1);
    (values - largest.clone()).exp().sum_dim(1).log() + largest
}
