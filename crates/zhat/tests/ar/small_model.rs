//! A random model of two features, which quadrature can integrate.

use zhat::ar::{Activation, ArEbm, ArEbmConfig, NetworkSize};
use zhat::burn::module::{Module, ModuleMapper, Param};
use zhat::burn::tensor::{Device, Tensor, TensorData};
use zhat::rng::{Stream, Streams};

struct Randomise(Stream);
impl ModuleMapper for Randomise {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.val().dims();
        let fan_in = if D == 2 { shape[0] } else { 2 };
        let values: Vec<f32> = (0..shape.iter().product())
            .map(|_| (1.3 / (fan_in as f64).sqrt() * self.0.normal()) as f32)
            .collect();
        param.map(|tensor| Tensor::<D>::from_data(TensorData::new(values, shape), &tensor.device()))
    }
}

/// Small networks for two features.
pub fn config() -> ArEbmConfig {
    let mut config = ArEbmConfig::new(2);
    config.proposal = NetworkSize { blocks: 1, width: 16, activation: Activation::Tanh };
    config.energy = NetworkSize { blocks: 1, width: 16, activation: Activation::Relu };
    (config.context, config.mixture_components) = (8, 3);
    config
}

/// A model with random parameters.
pub fn random(config: &ArEbmConfig) -> (ArEbm, Streams) {
    let streams = Streams::new(27);
    let model = config.init(&Device::flex(), &mut streams.stream("init", 0, 0)).unwrap();
    (model.map(&mut Randomise(streams.stream("randomise", 0, 0))).masked(), streams)
}

/// A random model. Its energy network's last layer is made positive, so that the energy grows to both sides, and the
/// mixtures are made wide enough to cover it.
pub fn model() -> (ArEbm, Streams) {
    model_with_spread(2.0)
}

/// The same with this added to the raw scales of the mixtures.
pub fn model_with_spread(spread: f32) -> (ArEbm, Streams) {
    let (mut model, streams) = random(&config());
    model.energy.last.weight = model.energy.last.weight.map(|weight| weight.abs() * 2.0);
    model.energy.last.bias = model.energy.last.bias.map(|bias| bias.map(|bias| bias - 2.0));
    let wider: Vec<f32> =
        (0..8 + 9).map(|output| if output < 8 + 6 { 0.0 } else { spread }).collect();
    let wider = Tensor::<1>::from_data(TensorData::new(wider, [17]), &Device::flex());
    model.proposal.last.bias = model.proposal.last.bias.map(|bias| bias.map(|bias| bias + wider));
    (model, streams)
}
