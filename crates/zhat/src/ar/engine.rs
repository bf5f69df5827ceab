//! The two networks of a model, laid out for the CPU, and the gradient with respect to all their parameters.

use burn::module::Param;
use burn::nn::Linear;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};

use super::config::{ArEbmConfig, NetworkSize};
use super::model::ArEbm;
use super::network::{ResidualNet, bias_of};
use super::panels::{Panels, padded};
use super::trunk::{Layer, LayerGradient, Trunk};

/// A copy of a model's parameters in panels.
#[derive(Debug, Clone)]
pub struct Engine {
    pub config: ArEbmConfig,
    pub proposal: ProposalEngine,
    pub energy: EnergyEngine,
}

/// The proposal network.
#[derive(Debug, Clone)]
pub struct ProposalEngine {
    /// First layer, the part that belongs to the features, `[features, width]`.
    pub first: Panels,
    /// Bias of the first layer at each stage: its own, plus the rows of the mask's observed entries.
    pub stage_bias: Vec<Vec<f32>>,
    pub trunk: Trunk,
    /// Last layer, the columns of the context.
    pub context: Layer,
    /// Last layer, the columns of the mixture.
    pub mixture: Layer,
}

/// The energy network; its input is `[context, x_d]` in this order.
#[derive(Debug, Clone)]
pub struct EnergyEngine {
    /// First layer; its transpose only has the columns of the context.
    pub first: Layer,
    pub trunk: Trunk,
    /// Last layer, padded.
    pub last: Vec<f32>,
    pub last_bias: f32,
}

/// The gradient with respect to the parameters of an [`Engine`].
#[derive(Debug, Clone, PartialEq)]
pub struct EngineGradient {
    /// First layer of the proposal, the part that belongs to the features.
    pub first: Panels,
    /// Gradient with respect to `stage_bias`.
    pub stage_bias: Vec<Vec<f32>>,
    pub proposal: Vec<[LayerGradient; 2]>,
    /// Last layer of the proposal, the columns of the context.
    pub context: LayerGradient,
    /// Last layer of the proposal, the columns of the mixture.
    pub mixture: LayerGradient,
    pub energy_first: LayerGradient,
    pub energy: Vec<[LayerGradient; 2]>,
    /// Last layer of the energy, padded, and its bias at the end.
    pub energy_last: Vec<f32>,
}

/// The gradient of one linear layer of a module.
#[derive(Debug, Clone)]
pub struct LinearGradient<'a> {
    pub linear: &'a Linear,
    /// `[inputs, outputs]`, row-major
    pub weight: Vec<f32>,
    /// One value for each output.
    pub bias: Vec<f32>,
}

impl LinearGradient<'_> {
    pub fn squared_norm(&self) -> f64 {
        self.weight.iter().chain(&self.bias).map(|&g| f64::from(g) * f64::from(g)).sum()
    }

    /// Hands the gradient to Burn's optimisers.
    pub fn register(self, params: &mut GradientsParams, device: &Device) {
        let shape = self.linear.weight.val().dims();
        params.register::<2>(
            self.linear.weight.id,
            Tensor::from_data(TensorData::new(self.weight, shape), device),
        );
        let (id, outputs) = (bias_of(self.linear).id, self.bias.len());
        params.register::<1>(id, Tensor::from_data(TensorData::new(self.bias, [outputs]), device));
    }
}

impl Engine {
    /// Reads the parameters of a model.
    pub fn new(model: &ArEbm) -> Self {
        let config = &model.shape;
        Self {
            config: config.clone(),
            proposal: ProposalEngine::new(config, &model.proposal),
            energy: EnergyEngine::new(config, &model.energy),
        }
    }

    pub fn zero_gradient(&self) -> EngineGradient {
        let (proposal, energy) = (&self.proposal, &self.energy);
        EngineGradient {
            first: Panels::zeros(proposal.first.rows(), proposal.first.columns()),
            stage_bias: proposal.stage_bias.iter().map(|bias| vec![0.0; bias.len()]).collect(),
            proposal: zero_blocks(&proposal.trunk),
            context: proposal.context.zero_gradient(),
            mixture: proposal.mixture.zero_gradient(),
            energy_first: energy.first.zero_gradient(),
            energy: zero_blocks(&energy.trunk),
            energy_last: vec![0.0; energy.last.len() + 1],
        }
    }
}

impl ProposalEngine {
    fn new(config: &ArEbmConfig, net: &ResidualNet) -> Self {
        let (width, features, context) = (config.proposal.width, config.features, config.context);
        let first = values(&net.first.weight);
        let mut total = values(bias_of(&net.first));
        let mut stage_bias = Vec::with_capacity(features);
        for stage in 0..features {
            stage_bias.push(padded(&total));
            for (bias, mask) in total.iter_mut().zip(&first[(features + stage) * width..][..width])
            {
                *bias += mask;
            }
        }
        let (last, last_bias) = (values(&net.last.weight), values(bias_of(&net.last)));
        let outputs = last_bias.len();
        let head = |from: usize, to: usize| {
            Layer::new(
                Panels::from_rows(&last[from..], outputs, width, to - from),
                &last_bias[from..to],
            )
        };
        Self {
            first: Panels::from_rows(&first, width, features, width),
            stage_bias,
            trunk: trunk(&config.proposal, net),
            context: head(0, context),
            mixture: head(context, outputs),
        }
    }
}

impl EnergyEngine {
    fn new(config: &ArEbmConfig, net: &ResidualNet) -> Self {
        let (width, context) = (config.energy.width, config.context);
        // The module's input is [x_d, context]; ours is [context, x_d].
        let mut first = values(&net.first.weight);
        first.rotate_left(width);
        let weight = Panels::from_rows(&first, width, context + 1, width);
        let transposed = Panels::from_rows(&first, width, context, width).transposed();
        let bias = padded(&values(bias_of(&net.first)));
        Self {
            first: Layer { weight, transposed, bias },
            trunk: trunk(&config.energy, net),
            last: padded(&values(&net.last.weight)),
            last_bias: values(bias_of(&net.last))[0],
        }
    }
}

impl EngineGradient {
    pub fn add(&mut self, other: &EngineGradient) {
        for (to, from) in self.parts_mut().into_iter().zip(other.parts()) {
            for (to, from) in to.iter_mut().zip(from) {
                *to += from;
            }
        }
    }

    pub fn clear(&mut self) {
        self.parts_mut().into_iter().for_each(|part| part.fill(0.0));
    }

    /// The gradients of the module's own parameters, layer by layer.
    ///
    /// In warm-up the energy network has none and stays as it is.
    pub fn layers<'a>(&self, model: &'a ArEbm, with_energy: bool) -> Vec<LinearGradient<'a>> {
        let config = &model.shape;
        let (features, width) = (config.features, config.proposal.width);
        // d/d bias = sum over the stages; d/d (row e of the mask) = sum over the stages after e.
        let mut weight = self.first.to_rows();
        weight.resize(2 * features * width, 0.0);
        let mut bias = vec![0.0; width];
        for stage in (0..features).rev() {
            weight[(features + stage) * width..][..width].copy_from_slice(&bias);
            for (sum, part) in bias.iter_mut().zip(&self.stage_bias[stage]) {
                *sum += part;
            }
        }
        let mut layers = vec![LinearGradient { linear: &model.proposal.first, weight, bias }];
        layers.extend(block_layers(&model.proposal, &self.proposal));
        let (context, mixture) = (self.context.weight.to_rows(), self.mixture.weight.to_rows());
        let parts = (config.context, 3 * config.mixture_components);
        let mut weight = Vec::with_capacity(context.len() + mixture.len());
        for (context, mixture) in context.chunks_exact(parts.0).zip(mixture.chunks_exact(parts.1)) {
            weight.extend_from_slice(context);
            weight.extend_from_slice(mixture);
        }
        let bias = [&self.context.bias[..parts.0], &self.mixture.bias[..parts.1]].concat();
        layers.push(LinearGradient { linear: &model.proposal.last, weight, bias });
        if with_energy {
            let width = config.energy.width;
            let mut weight = self.energy_first.weight.to_rows();
            weight.rotate_right(width);
            let bias = self.energy_first.bias[..width].to_vec();
            layers.push(LinearGradient { linear: &model.energy.first, weight, bias });
            layers.extend(block_layers(&model.energy, &self.energy));
            let (bias, weight) = self.energy_last.split_last().expect("a bias");
            let (weight, bias) = (weight[..width].to_vec(), vec![*bias]);
            layers.push(LinearGradient { linear: &model.energy.last, weight, bias });
        }
        layers
    }

    fn parts(&self) -> Vec<&[f32]> {
        let mut parts: Vec<&[f32]> = vec![self.first.data(), &self.energy_last];
        parts.extend(self.stage_bias.iter().map(Vec::as_slice));
        let blocks = self.proposal.iter().chain(&self.energy).flatten();
        for layer in blocks.chain([&self.context, &self.mixture, &self.energy_first]) {
            parts.extend([layer.weight.data(), &layer.bias]);
        }
        parts
    }

    fn parts_mut(&mut self) -> Vec<&mut [f32]> {
        let mut parts: Vec<&mut [f32]> = vec![self.first.data_mut(), &mut self.energy_last];
        parts.extend(self.stage_bias.iter_mut().map(Vec::as_mut_slice));
        let blocks = self.proposal.iter_mut().chain(&mut self.energy).flatten();
        for layer in blocks.chain([&mut self.context, &mut self.mixture, &mut self.energy_first]) {
            parts.extend([layer.weight.data_mut(), &mut layer.bias]);
        }
        parts
    }
}

fn zero_blocks(trunk: &Trunk) -> Vec<[LayerGradient; 2]> {
    trunk
        .blocks
        .iter()
        .map(|[first, second]| [first.zero_gradient(), second.zero_gradient()])
        .collect()
}

fn trunk(size: &NetworkSize, net: &ResidualNet) -> Trunk {
    let layer = |linear: &Linear| {
        let weight = Panels::from_rows(&values(&linear.weight), size.width, size.width, size.width);
        Layer::new(weight, &values(bias_of(linear)))
    };
    let blocks =
        net.blocks.iter().map(|block| [layer(&block.first), layer(&block.second)]).collect();
    Trunk { activation: size.activation, blocks }
}

fn values<const D: usize>(param: &Param<Tensor<D>>) -> Vec<f32> {
    param.val().into_data().convert::<f32>().try_into_vec().expect("32-bit floats")
}

fn block_layers<'a>(
    net: &'a ResidualNet,
    blocks: &[[LayerGradient; 2]],
) -> impl Iterator<Item = LinearGradient<'a>> {
    net.blocks.iter().zip(blocks).flat_map(|(block, [first, second])| {
        [(&block.first, first), (&block.second, second)].map(|(linear, gradient)| LinearGradient {
            linear,
            weight: gradient.weight.to_rows(),
            bias: gradient.bias[..gradient.weight.columns()].to_vec(),
        })
    })
}
