//! An energy for data in `R^d` that is a multilayer perceptron.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::activation::silu;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::{UnnormalisedModel, linear};
use crate::error::{Result, at_least};
use crate::rng::Stream;

/// Shape of an [`MlpEnergy`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MlpEnergyConfig {
    /// Number of columns of the data.
    pub dimension: usize,
    /// Units in each hidden layer.
    pub width: usize,
    /// Number of hidden layers.
    pub hidden_layers: usize,
}

impl MlpEnergyConfig {
    /// Two hidden layers of 64 units.
    pub fn new(dimension: usize) -> Self {
        Self { dimension, width: 64, hidden_layers: 2 }
    }

    /// The network, with weights and biases drawn from `U(-1/sqrt(fan_in), 1/sqrt(fan_in))`.
    pub fn init(&self, device: &Device, rng: &mut Stream) -> Result<MlpEnergy> {
        for (name, value) in [
            ("dimension", self.dimension),
            ("width", self.width),
            ("hidden_layers", self.hidden_layers),
        ] {
            at_least(1, name, value)?;
        }
        let mut inputs = self.dimension;
        let mut layers = Vec::with_capacity(self.hidden_layers + 1);
        for layer in 0..=self.hidden_layers {
            let outputs = if layer < self.hidden_layers { self.width } else { 1 };
            layers.push(linear(inputs, outputs, device, rng));
            inputs = outputs;
        }
        Ok(MlpEnergy { layers })
    }
}

/// `log p~(x) = f(x) - |x|^2 / 2` with `f` a multilayer perceptron.
///
/// The quadratic term keeps `Z` finite whatever the network does, because `f` grows at most linearly; give it
/// standardised data.
#[derive(Module, Debug)]
pub struct MlpEnergy {
    layers: Vec<Linear>,
}

impl UnnormalisedModel for MlpEnergy {
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        let confinement = x.clone().square().sum_dim(1) * 0.5;
        let (last, hidden) = self.layers.split_last().expect("at least one layer");
        let features = hidden.iter().fold(x, |h, layer| silu(layer.forward(h)));
        (last.forward(features) - confinement).squeeze_dim(1)
    }
}
