//! Shapes and settings of the autoregressive EBM, with the paper's five presets.

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::elementwise::Shape;
use super::model::ArEbm;
use super::network::ResidualNetConfig;
use crate::error::{Error, Result};
use crate::rng::Stream;

/// Activation of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// `max(x, 0)`
    #[default]
    Relu,
    /// `tanh(x)`
    Tanh,
}

impl Activation {
    pub(crate) fn shape(self) -> Shape {
        match self {
            Activation::Relu => Shape::Relu,
            Activation::Tanh => Shape::Tanh,
        }
    }
}

/// Size of one residual network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSize {
    /// Number of residual blocks.
    pub blocks: usize,
    /// Units in each layer.
    pub width: usize,
    /// Activation.
    pub activation: Activation,
}

/// Shape of an [`ArEbm`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ArEbmConfig {
    /// Number of features, `D`; 0 as long as the data are to say it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub features: usize,
    /// The energy network.
    pub energy: NetworkSize,
    /// The proposal network.
    pub proposal: NetworkSize,
    /// Share of the units dropped inside each block while training.
    pub dropout: f64,
    /// Length of the context vector that the proposal network gives to the energy network.
    pub context: usize,
    /// Components of the proposal's mixture.
    pub mixture_components: usize,
    /// What is added to the scales of the mixture.
    pub minimum_scale: f64,
}

/// How a preset is trained (the paper's table of hyperparameters).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArTrainingConfig {
    /// Observations in a step.
    pub batch: usize,
    /// Negatives of each observation, `J`.
    pub num_negatives: usize,
    /// Number of steps, warm-up included.
    pub iterations: usize,
    /// First steps, in which the proposal alone is trained.
    pub warm_up: usize,
    /// Learning rate at the start; it falls along a cosine to zero.
    pub learning_rate: f64,
}

/// The settings of one of the paper's data sets, or of a small example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// POWER, 6 features.
    Power,
    /// GAS, 8 features.
    Gas,
    /// HEPMASS, 21 features.
    Hepmass,
    /// MINIBOONE, 43 features.
    Miniboone,
    /// BSDS300, 63 features.
    Bsds300,
    /// A handful of features, about a minute on two cores.
    Small,
}

impl Preset {
    /// All presets.
    pub const ALL: [Preset; 6] = [
        Preset::Power,
        Preset::Gas,
        Preset::Hepmass,
        Preset::Miniboone,
        Preset::Bsds300,
        Preset::Small,
    ];

    /// Number of features of the paper's data set; 4 for the small preset, which takes any number.
    pub fn features(self) -> usize {
        match self {
            Preset::Power => 6,
            Preset::Gas => 8,
            Preset::Hepmass => 21,
            Preset::Miniboone => 43,
            Preset::Bsds300 => 63,
            Preset::Small => 4,
        }
    }

    /// The model's shape.
    pub fn model(self) -> ArEbmConfig {
        let mut config = ArEbmConfig::new(self.features());
        match self {
            Preset::Power | Preset::Hepmass => {}
            Preset::Gas => {
                config.energy.activation = Activation::Tanh;
                config.dropout = 0.0;
            }
            Preset::Miniboone => config.dropout = 0.5,
            Preset::Bsds300 => config.proposal.width = 512,
            Preset::Small => {
                config.energy = NetworkSize { blocks: 2, width: 64, activation: Activation::Relu };
                config.proposal =
                    NetworkSize { blocks: 2, width: 64, activation: Activation::Relu };
                config.dropout = 0.0;
                config.context = 32;
            }
        }
        config
    }

    /// The training settings.
    pub fn training(self) -> ArTrainingConfig {
        let (batch, iterations) = match self {
            Preset::Power => (512, 1_000_000),
            Preset::Gas => (512, 600_000),
            Preset::Hepmass => (512, 200_000),
            Preset::Miniboone => (128, 300_000),
            Preset::Bsds300 => (128, 600_000),
            Preset::Small => (128, 4_000),
        };
        let (warm_up, num_negatives, learning_rate) = match self {
            Preset::Small => (400, 20, 3e-3),
            _ => (5_000, 20, 5e-4),
        };
        ArTrainingConfig { batch, num_negatives, iterations, warm_up, learning_rate }
    }
}

impl ArEbmConfig {
    /// The paper's networks (its table of hyperparameters, as for POWER) for a number of features.
    pub fn new(features: usize) -> Self {
        Self {
            features,
            energy: NetworkSize { blocks: 4, width: 128, activation: Activation::Relu },
            proposal: NetworkSize { blocks: 2, width: 256, activation: Activation::Relu },
            dropout: 0.1,
            context: 64,
            mixture_components: 10,
            minimum_scale: 1e-3,
        }
    }

    /// Small networks for a handful of features, whose number the data are to say.
    pub fn small() -> Self {
        let size = NetworkSize { blocks: 2, width: 64, activation: Activation::Relu };
        let (energy, proposal) = (size.clone(), size);
        Self { energy, proposal, dropout: 0.0, context: 32, ..Self::new(0) }
    }

    /// Checks the ranges of the settings.
    pub fn validate(&self) -> Result<()> {
        for (name, value) in [
            ("features", self.features),
            ("energy.width", self.energy.width),
            ("proposal.width", self.proposal.width),
            ("context", self.context),
            ("mixture_components", self.mixture_components),
        ] {
            if value == 0 {
                return Err(Error::setting(name, value, "at least 1"));
            }
        }
        if !(0.0..=0.99).contains(&self.dropout) {
            return Err(Error::setting("dropout", self.dropout, "from 0 to 0.99"));
        }
        if !(self.minimum_scale > 0.0 && self.minimum_scale.is_finite()) {
            return Err(Error::setting("minimum_scale", self.minimum_scale, "a positive number"));
        }
        Ok(())
    }

    /// The model, with weights drawn from our own stream.
    pub fn init(&self, device: &Device, rng: &mut Stream) -> Result<ArEbm> {
        self.validate()?;
        let network = |size: &NetworkSize, inputs, outputs| ResidualNetConfig {
            inputs,
            outputs,
            blocks: size.blocks,
            width: size.width,
        };
        let outputs = self.context + 3 * self.mixture_components;
        Ok(ArEbm {
            proposal: network(&self.proposal, 2 * self.features, outputs).init(device, rng),
            energy: network(&self.energy, self.context + 1, 1).init(device, rng),
            shape: self.clone(),
        })
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl ArTrainingConfig {
    /// Checks the ranges of the settings.
    pub fn validate(&self) -> Result<()> {
        for (name, value) in [
            ("batch", self.batch),
            ("num_negatives", self.num_negatives),
            ("iterations", self.iterations),
        ] {
            if value == 0 {
                return Err(Error::setting(name, value, "at least 1"));
            }
        }
        if self.warm_up > self.iterations {
            return Err(Error::setting(
                "warm_up",
                self.warm_up,
                format!("at most iterations, {}", self.iterations),
            ));
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return Err(Error::setting("learning_rate", self.learning_rate, "a positive number"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_survive_a_round_trip() {
        for preset in Preset::ALL {
            let (model, training) = (preset.model(), preset.training());
            model.validate().unwrap();
            training.validate().unwrap();
            let text = serde_json::to_string(&model).unwrap();
            assert_eq!(serde_json::from_str::<ArEbmConfig>(&text).unwrap(), model);
        }
        assert_eq!(Preset::Gas.model().energy.activation, Activation::Tanh);
        assert_eq!(Preset::Gas.model().proposal.activation, Activation::Relu);
        assert_eq!(Preset::Bsds300.model().proposal.width, 512);
        assert_eq!(Preset::Miniboone.training().batch, 128);
    }

    #[test]
    fn bad_settings_are_named() {
        let mut config = ArEbmConfig::new(3);
        config.dropout = 1.0;
        assert!(config.validate().unwrap_err().to_string().starts_with("dropout is 1"));
        config = ArEbmConfig::new(0);
        assert!(config.validate().unwrap_err().to_string().starts_with("features is 0"));
        let mut training = Preset::Small.training();
        training.warm_up = training.iterations + 1;
        assert!(training.validate().unwrap_err().to_string().contains("at most iterations"));
    }
}
