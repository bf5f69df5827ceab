//! Shapes of the autoregressive EBM.

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::model::ArEbm;
use super::network::ResidualNet;
use crate::error::{Error, Result, at_least, positive};
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
            at_least(1, name, value)?;
        }
        if !(0.0..=0.99).contains(&self.dropout) {
            return Err(Error::setting("dropout", self.dropout, "from 0 to 0.99"));
        }
        positive("minimum_scale", self.minimum_scale)?;
        Ok(())
    }

    /// The model, with weights drawn from our own stream.
    pub fn init(&self, device: &Device, rng: &mut Stream) -> Result<ArEbm> {
        self.validate()?;
        let outputs = self.context + 3 * self.mixture_components;
        Ok(ArEbm {
            proposal: ResidualNet::new(&self.proposal, 2 * self.features, outputs, device, rng),
            energy: ResidualNet::new(&self.energy, self.context + 1, 1, device, rng),
            shape: self.clone(),
        })
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_settings_are_named() {
        let mut config = ArEbmConfig::new(3);
        config.dropout = 1.0;
        assert!(config.validate().unwrap_err().to_string().starts_with("dropout is 1"));
        config = ArEbmConfig::new(0);
        assert!(config.validate().unwrap_err().to_string().starts_with("features is 0"));
    }
}
