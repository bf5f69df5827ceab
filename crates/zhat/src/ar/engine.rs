//! The two networks of a model, laid out for the CPU, and the gradient with respect to all their parameters.

use burn::module::Param;
use burn::nn::Linear;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};

use super::config::{ArEbmConfig, NetworkSize};
use super::masked::{Degrees, Reach};
use super::model::ArEbm;
use super::network::{ResidualNet, bias_of};
use super::panels::{Panels, STRIP, padded};
use super::trunk::{Layer, LayerGradient, Trunk};
use crate::gaussian_mixture::{Conditionals, GaussianMixture};
use crate::host::numbers;

/// A copy of a model's parameters in panels.
#[derive(Debug, Clone)]
pub struct Engine {
    pub config: ArEbmConfig,
    /// The proposal network of every member.
    pub members: Vec<ProposalEngine>,
    pub energy: EnergyEngine,
    /// Room for the conditionals of the Gaussian mixture beside the head.
    pub known: Option<Conditionals>,
    /// What units of a masked conditioner see of the inputs, and of each other.
    masks: Option<[Vec<f32>; 2]>,
}

/// The proposal network.
#[derive(Debug, Clone)]
pub struct ProposalEngine {
    /// First layer, the part that belongs to the features, `[inputs, width]`.
    pub first: Panels,
    /// Bias of the first layer at each stage: its own, plus the rows of the mask's observed entries. A masked conditioner has
    /// one for all stages.
    pub stage_bias: Vec<Vec<f32>>,
    pub trunk: Trunk,
    /// Last layer, for each stage of a masked conditioner, or one for all stages.
    pub last: Vec<LastLayers>,
}

/// The columns of a last layer.
#[derive(Debug, Clone)]
pub struct LastLayers {
    /// Those of the context.
    pub context: Layer,
    /// Those of the base.
    pub head: Layer,
}

/// The energy network.
#[derive(Debug, Clone)]
pub struct EnergyEngine {
    /// First layer, the part that belongs to the context.
    pub first: Layer,
    /// First layer, the part that belongs to `x_d`, padded.
    pub of_x: Vec<f32>,
    pub trunk: Trunk,
    /// Last layer, padded.
    pub last: Vec<f32>,
    pub last_bias: f32,
}

/// The gradient with respect to the parameters of an [`Engine`].
#[derive(Debug, Clone, PartialEq)]
pub struct EngineGradient {
    /// Of the proposal network of every member.
    pub members: Vec<ProposalGradient>,
    pub energy_first: LayerGradient,
    pub energy_of_x: Vec<f32>,
    pub energy: Vec<[LayerGradient; 2]>,
    /// Last layer of the energy, padded, and its bias at the end.
    pub energy_last: Vec<f32>,
}

/// The gradient with respect to the parameters of a proposal network.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposalGradient {
    /// First layer, the part that belongs to the features.
    pub first: Panels,
    /// Gradient with respect to `stage_bias`.
    pub stage_bias: Vec<Vec<f32>>,
    pub blocks: Vec<[LayerGradient; 2]>,
    /// Last layer: the columns of the context and of the base.
    pub last: Vec<[LayerGradient; 2]>,
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
        squares(&self.weight) + squares(&self.bias)
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
    /// A copy of a model's parameters.
    pub fn new(model: &ArEbm) -> Self {
        let config = &model.shape;
        let mut engine = Self {
            config: config.clone(),
            members: model.members().map(|_| ProposalEngine::zeros(config)).collect(),
            energy: EnergyEngine::zeros(config),
            known: None,
            masks: Degrees::new(config).map(|degrees| [degrees.first(), degrees.inner()]),
        };
        engine.read(model);
        engine
    }

    /// Takes the parameters of a model of the same shape, in the memory that is there.
    pub fn read(&mut self, model: &ArEbm) {
        for (member, net) in self.members.iter_mut().zip(model.members()) {
            member.read(&self.config, net);
        }
        self.energy.read(&model.energy);
        self.known = model.known.as_ref().map(GaussianMixture::conditionals);
    }

    pub fn zero_gradient(&self) -> EngineGradient {
        let energy = &self.energy;
        EngineGradient {
            members: self.members.iter().map(ProposalEngine::zero_gradient).collect(),
            energy_first: energy.first.zero_gradient(),
            energy_of_x: vec![0.0; energy.of_x.len()],
            energy: zero_blocks(&energy.trunk),
            energy_last: vec![0.0; energy.last.len() + 1],
        }
    }
}

impl ProposalEngine {
    fn zeros(config: &ArEbmConfig) -> Self {
        let (width, features) = (config.proposal.width, config.features);
        let layers = |stage: usize, units: usize| LastLayers {
            context: Layer::zeros(units, context_outputs(config, stage)),
            head: Layer::zeros(units, config.head_outputs(stage)),
        };
        let degrees = Degrees::new(config);
        let (biases, last) = match &degrees {
            Some(degrees) => {
                let last = |stage| layers(stage, degrees.units_before(stage));
                (1, (0..features).map(last).collect())
            }
            None => (features, vec![layers(0, width)]),
        };
        Self {
            first: Panels::zeros(config.inputs_before(features), width),
            stage_bias: vec![padded(&vec![0.0; width]); biases],
            trunk: trunk(&config.proposal, degrees.as_ref()),
            last,
        }
    }

    fn read(&mut self, config: &ArEbmConfig, net: &ResidualNet) {
        let width = config.proposal.width;
        let first = numbers(&net.first.weight);
        self.first.read_rows(&first, width);
        let mut total = numbers(bias_of(&net.first)).to_vec();
        for (stage, bias) in self.stage_bias.iter_mut().enumerate() {
            if stage > 0 {
                let mask = &first[(config.features + stage - 1) * width..][..width];
                total.iter_mut().zip(mask).for_each(|(bias, mask)| *bias += mask);
            }
            bias[..width].copy_from_slice(&total);
        }
        read_blocks(&mut self.trunk, net);
        let (last, bias) = (numbers(&net.last.weight), numbers(bias_of(&net.last)));
        for (stage, layers) in self.last.iter_mut().enumerate() {
            let from = config.outputs_before(stage);
            let head = from + context_outputs(config, stage);
            layers.context.read(&last[from..], bias.len(), &bias[from..]);
            layers.head.read(&last[head..], bias.len(), &bias[head..]);
        }
    }

    fn zero_gradient(&self) -> ProposalGradient {
        let last = self.last.iter();
        ProposalGradient {
            first: Panels::zeros(self.first.rows(), self.first.columns()),
            stage_bias: self.stage_bias.iter().map(|bias| vec![0.0; bias.len()]).collect(),
            blocks: zero_blocks(&self.trunk),
            last: last.map(|l| [l.context.zero_gradient(), l.head.zero_gradient()]).collect(),
        }
    }

    /// The last layer of a stage.
    pub fn last(&self, stage: usize) -> &LastLayers {
        &self.last[at_stage(&self.last, stage)]
    }
}

/// The index of what belongs to a stage, where there may be one for all of them.
pub fn at_stage<T>(parts: &[T], stage: usize) -> usize {
    if parts.len() == 1 { 0 } else { stage }
}

impl EnergyEngine {
    fn zeros(config: &ArEbmConfig) -> Self {
        let width = config.energy.width;
        Self {
            first: Layer::zeros(config.context, width),
            of_x: padded(&vec![0.0; width]),
            trunk: trunk(&config.energy, None),
            last: padded(&vec![0.0; width]),
            last_bias: 0.0,
        }
    }

    fn read(&mut self, net: &ResidualNet) {
        let width = self.first.weight.columns();
        // The module's input is [x_d, context].
        let first = numbers(&net.first.weight);
        let (of_x, of_context) = first.split_at(width);
        self.first.read(of_context, width, &numbers(bias_of(&net.first)));
        self.of_x[..width].copy_from_slice(of_x);
        read_blocks(&mut self.trunk, net);
        self.last[..width].copy_from_slice(&numbers(&net.last.weight));
        self.last_bias = numbers(bias_of(&net.last))[0];
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
        self.fill(0.0);
    }

    pub fn fill(&mut self, value: f32) {
        self.parts_mut().into_iter().for_each(|part| part.fill(value));
    }

    /// The gradients of the module's own parameters, layer by layer.
    ///
    /// In warm-up the energy network has none and stays as it is.
    pub fn layers<'a>(
        &self,
        engine: &Engine,
        model: &'a ArEbm,
        with_energy: bool,
    ) -> Vec<LinearGradient<'a>> {
        let config = &model.shape;
        let mut members = self.members.iter().zip(model.members());
        let (first, net) = members.next().expect("a member");
        let mut layers = first.layers(engine, net);
        if with_energy {
            let width = config.energy.width;
            let weight = [&self.energy_of_x[..width], &self.energy_first.weight.to_rows()].concat();
            let bias = self.energy_first.bias[..width].to_vec();
            layers.push(LinearGradient { linear: &model.energy.first, weight, bias });
            layers.extend(block_layers(&model.energy, &self.energy));
            let (bias, weight) = self.energy_last.split_last().expect("a bias");
            let (weight, bias) = (weight[..width].to_vec(), vec![*bias]);
            layers.push(LinearGradient { linear: &model.energy.last, weight, bias });
        }
        layers.extend(members.flat_map(|(gradient, net)| gradient.layers(engine, net)));
        layers
    }

    /// All numbers, padding included.
    pub fn parts(&self) -> Vec<&[f32]> {
        let mut parts: Vec<&[f32]> = vec![&self.energy_last, &self.energy_of_x];
        let mut layers: Vec<&LayerGradient> = vec![&self.energy_first];
        layers.extend(self.energy.iter().flatten());
        for member in &self.members {
            parts.push(member.first.data());
            parts.extend(member.stage_bias.iter().map(Vec::as_slice));
            layers.extend(member.blocks.iter().chain(&member.last).flatten());
        }
        parts.extend(layers.into_iter().flat_map(|layer| [layer.weight.data(), &layer.bias]));
        parts
    }

    /// The same, to be changed.
    pub fn parts_mut(&mut self) -> Vec<&mut [f32]> {
        let mut parts: Vec<&mut [f32]> = vec![&mut self.energy_last, &mut self.energy_of_x];
        let mut layers: Vec<&mut LayerGradient> = vec![&mut self.energy_first];
        layers.extend(self.energy.iter_mut().flatten());
        for member in &mut self.members {
            parts.push(member.first.data_mut());
            parts.extend(member.stage_bias.iter_mut().map(Vec::as_mut_slice));
            layers.extend(member.blocks.iter_mut().chain(&mut member.last).flatten());
        }
        let layers = layers.into_iter();
        parts.extend(layers.flat_map(|layer| [layer.weight.data_mut(), &mut layer.bias]));
        parts
    }
}

impl ProposalGradient {
    /// The gradients of a member's own parameters, layer by layer.
    fn layers<'a>(&self, engine: &Engine, net: &'a ResidualNet) -> Vec<LinearGradient<'a>> {
        let Engine { config, masks, .. } = engine;
        let (features, width) = (config.features, config.proposal.width);
        let mut weight = self.first.to_rows();
        let mut bias = vec![0.0; width];
        if masks.is_none() {
            weight.resize(2 * features * width, 0.0);
        }
        // d/d bias = sum over the stages; d/d (row e of the mask) = sum over the stages after e.
        for (stage, part) in self.stage_bias.iter().enumerate().rev() {
            if masks.is_none() {
                weight[(features + stage) * width..][..width].copy_from_slice(&bias);
            }
            for (sum, part) in bias.iter_mut().zip(part) {
                *sum += part;
            }
        }
        let mut layers = vec![LinearGradient { linear: &net.first, weight, bias }];
        layers.extend(block_layers(net, &self.blocks));
        layers.push(self.last_layer(config, net));
        if let Some([first, inner]) = masks {
            let blocks = layers.len() - 1;
            mask(&mut layers[0], first);
            layers[1..blocks].iter_mut().for_each(|layer| mask(layer, inner));
        }
        layers
    }

    /// The last layer: stages side by side, with zeros for units that a stage does not see.
    fn last_layer<'a>(&self, config: &ArEbmConfig, net: &'a ResidualNet) -> LinearGradient<'a> {
        let columns = config.outputs_before(self.last.len());
        let mut weight = vec![0.0; config.proposal.width * columns];
        let mut bias = Vec::with_capacity(columns);
        for (stage, gradients) in self.last.iter().enumerate().skip(config.given) {
            let parts = [config.context, config.head_outputs(stage)];
            for (gradient, number) in gradients.iter().zip(parts) {
                let from = bias.len();
                gradient.weight.write_rows(&mut weight[from..], columns);
                bias.extend_from_slice(&gradient.bias[..number]);
            }
        }
        LinearGradient { linear: &net.last, weight, bias }
    }
}

/// The sum of the squares in 64 bits. Each place in a strip has a sum of its own, so that no addition waits for the one before it.
fn squares(values: &[f32]) -> f64 {
    let (strips, rest) = values.as_chunks::<STRIP>();
    let mut sums = [0.0; STRIP];
    for strip in strips {
        for (sum, &value) in sums.iter_mut().zip(strip) {
            *sum += f64::from(value) * f64::from(value);
        }
    }
    let of_rest = rest.iter().map(|&value| f64::from(value) * f64::from(value));
    sums.into_iter().chain(of_rest).sum()
}

fn zero_blocks(trunk: &Trunk) -> Vec<[LayerGradient; 2]> {
    trunk
        .blocks
        .iter()
        .map(|[first, second]| [first.zero_gradient(), second.zero_gradient()])
        .collect()
}

fn trunk(size: &NetworkSize, degrees: Option<&Degrees>) -> Trunk {
    let layer = || Layer::zeros(size.width, size.width);
    let blocks = (0..size.blocks).map(|_| [layer(), layer()]).collect();
    let reach = degrees.map_or(Reach::all(size.width), Degrees::reach);
    Trunk { activation: size.activation, blocks, reach, device: None }
}

fn read_blocks(trunk: &mut Trunk, net: &ResidualNet) {
    for (layers, block) in trunk.blocks.iter_mut().zip(&net.blocks) {
        for (layer, linear) in layers.iter_mut().zip([&block.first, &block.second]) {
            let bias = numbers(bias_of(linear));
            layer.read(&numbers(&linear.weight), bias.len(), &bias);
        }
    }
}

/// Outputs of the context of a stage: nothing is said of what is given.
fn context_outputs(config: &ArEbmConfig, stage: usize) -> usize {
    if config.is_given(stage) { 0 } else { config.context }
}

/// What a mask hides has no gradient.
fn mask(layer: &mut LinearGradient, mask: &[f32]) {
    layer.weight.iter_mut().zip(mask).for_each(|(gradient, seen)| *gradient *= seen);
}

pub(super) fn values<const D: usize>(param: &Param<Tensor<D>>) -> Vec<f32> {
    numbers(param).to_vec()
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
