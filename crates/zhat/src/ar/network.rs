//! The residual network as a Burn module: linear, pre-activation residual blocks, activation, linear.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::activation::{elu, relu};
use burn::tensor::{Device, Tensor};

use super::config::{Activation, NetworkSize};
use super::dropout::LayerMasks;
use super::engine::values;
use super::masked::Degrees;
use crate::model::{linear, parameter};
use crate::rng::Stream;

/// Linear, pre-activation residual blocks, activation, linear.
#[derive(Module, Debug)]
pub struct ResidualNet {
    /// From the inputs to the width.
    pub first: Linear,
    /// The blocks.
    pub blocks: Vec<ResidualBlock>,
    /// From the width to the outputs.
    pub last: Linear,
}

/// `h + W_b drop(act(W_a act(h) + b_a)) + b_b`
#[derive(Module, Debug)]
pub struct ResidualBlock {
    /// `W_a`, `b_a`
    pub first: Linear,
    /// `W_b`, `b_b`
    pub second: Linear,
}

impl ResidualNet {
    /// The second layer of every block starts at zero, weights and bias; the other layers start `U(+-1/sqrt(fan_in))`.
    pub(super) fn new(
        size: &NetworkSize,
        inputs: usize,
        outputs: usize,
        device: &Device,
        rng: &mut Stream,
    ) -> Self {
        let width = size.width;
        let first = linear(inputs, width, device, rng);
        let block = |_| ResidualBlock {
            first: linear(width, width, device, rng),
            second: Linear {
                weight: parameter(vec![0.0; width * width], [width, width], device),
                bias: Some(parameter(vec![0.0; width], [width], device)),
            },
        };
        let blocks = (0..size.blocks).map(block).collect();
        Self { first, blocks, last: linear(width, outputs, device, rng) }
    }

    /// Sets the weights to zero where a masked conditioner has none.
    pub(super) fn mask(&mut self, degrees: &Degrees) {
        let apply = |linear: &mut Linear, mask: Vec<f32>| {
            let weight = values(&linear.weight).into_iter().zip(mask).map(|(w, seen)| w * seen);
            let (weight, bias) = (weight.collect(), values(bias_of(linear)));
            *linear = constant_linear(weight, bias, &linear.weight.val().device());
        };
        apply(&mut self.first, degrees.first());
        for block in &mut self.blocks {
            apply(&mut block.first, degrees.inner());
            apply(&mut block.second, degrees.inner());
        }
        apply(&mut self.last, degrees.last());
    }

    /// The blocks and the activation after them, in plain Burn operations on any device.
    ///
    /// # Shapes
    /// - `h`: `[n, width]`
    /// - `seen`: `[width, width]`, of a masked conditioner: zeros where a unit may not see another
    /// - output: `[n, width]`
    pub(super) fn trunk(
        &self,
        h: Tensor<2>,
        activation: Activation,
        mut masks: Option<&mut dyn LayerMasks>,
        seen: Option<&Tensor<2>>,
    ) -> Tensor<2> {
        let layer = |linear: &Linear, x: Tensor<2>| match seen {
            None => linear.forward(x),
            Some(seen) => {
                x.matmul(linear.weight.val() * seen.clone()) + bias_of(linear).val().unsqueeze()
            }
        };
        let activate = |x: Tensor<2>| match activation {
            Activation::Relu => relu(x),
            Activation::Tanh => x.tanh(),
            Activation::Elu => elu(x, 1.0),
        };
        let mut h = h;
        for block in &self.blocks {
            let mut hidden = activate(layer(&block.first, activate(h.clone())));
            if let Some(masks) = &mut masks {
                let [rows, width] = hidden.dims();
                let mask = masks.next_mask(rows, width, &hidden.device());
                hidden = hidden * mask;
            }
            h = h + layer(&block.second, hidden);
        }
        activate(h)
    }

    /// The whole network.
    ///
    /// # Shapes
    /// - `input`: `[n, inputs]`
    /// - output: `[n, outputs]`
    pub(super) fn forward(
        &self,
        input: Tensor<2>,
        activation: Activation,
        masks: Option<&mut dyn LayerMasks>,
    ) -> Tensor<2> {
        self.last.forward(self.trunk(self.first.forward(input), activation, masks, None))
    }
}

/// A layer with these values, weights `[inputs, outputs]` in row-major order.
pub(super) fn constant_linear(weight: Vec<f32>, bias: Vec<f32>, device: &Device) -> Linear {
    let wide = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<f64>>();
    let outputs = bias.len();
    let shape = [weight.len() / outputs, outputs];
    Linear {
        weight: parameter(wide(weight), shape, device),
        bias: Some(parameter(wide(bias), [outputs], device)),
    }
}

/// All our layers have a bias.
pub(super) fn bias_of(linear: &Linear) -> &Param<Tensor<1>> {
    linear.bias.as_ref().expect("a bias")
}
