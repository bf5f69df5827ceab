//! The paper's networks and training settings for its five data sets (its table of hyperparameters).

use serde::{Deserialize, Serialize};
use zhat::ar::{Activation, ArEbmConfig, ArStepConfig};
use zhat::criterion::Method;
use zhat_table::data::Marginals;
use zhat_table::fit::{BaseAnswers, FitConfig};

/// Settings to start from: those of one of the paper's data sets, or the default of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The default of a fit: a handful of features, about a minute on two cores.
    Small,
    /// Household power consumption, 6 features.
    Power,
    /// Gas sensors, 8 features.
    Gas,
    /// Particle collisions, 21 features.
    Hepmass,
    /// Neutrino events, 43 features.
    Miniboone,
    /// Patches of natural images, 63 features.
    Bsds300,
}

zhat::named!(Preset, "preset", {
    Small: "small",
    Power: "power",
    Gas: "gas",
    Hepmass: "hepmass",
    Miniboone: "miniboone",
    Bsds300: "bsds300",
});

impl Preset {
    /// Number of features of the paper's set; 4 for the small preset, which takes any number, as all do.
    pub fn features(self) -> usize {
        match self {
            Preset::Small => 4,
            Preset::Power => 6,
            Preset::Gas => 8,
            Preset::Hepmass => 21,
            Preset::Miniboone => 43,
            Preset::Bsds300 => 63,
        }
    }

    /// The configuration of a fit of some data.
    pub fn config(self, source: &str) -> FitConfig {
        let mut config = FitConfig::new(source);
        let (num_steps, batch_size) = match self {
            Preset::Small => return config,
            Preset::Power => (1_000_000, 512),
            Preset::Gas => (600_000, 512),
            Preset::Hepmass => (200_000, 512),
            Preset::Miniboone => (300_000, 128),
            Preset::Bsds300 => (600_000, 128),
        };
        // The paper's networks see the sets as they are published.
        config.data.marginals = Marginals::Standard;
        config.model = ArEbmConfig::new(0);
        match self {
            Preset::Gas => {
                config.model.energy.activation = Activation::Tanh;
                config.model.dropout = 0.0;
            }
            Preset::Miniboone => config.model.dropout = 0.5,
            Preset::Bsds300 => config.model.proposal.width = 512,
            _ => {}
        }
        // The paper has no wide negatives.
        config.step = ArStepConfig { warm_up: 5_000, ..ArStepConfig::new(Method::SmcRnce) };
        let training = &mut config.training;
        (training.num_steps, training.batch_size, training.learning_rate) =
            (num_steps, batch_size, 5e-4);
        (training.validation_every, training.checkpoint_every) = (1000, 1000);
        // The paper trains to the end, on its own split, and reports the model.
        training.patience = 0;
        (config.validation.base, config.validation.cross_validate_below) = (BaseAnswers::Never, 0);
        config.log_every = 100;
        config.evaluation.particles = 200_000;
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zhat_table::data::benchmark::Benchmark;

    #[test]
    fn every_benchmark_set_has_a_preset_of_its_name_and_size() {
        assert_eq!(Preset::ALL.len(), Benchmark::ALL.len() + 1);
        for set in Benchmark::ALL {
            let preset: Preset = set.name().parse().unwrap();
            assert_eq!(preset.features(), set.dimension());
        }
    }

    #[test]
    fn networks_and_training_are_those_of_the_papers_table() {
        let paper: Vec<FitConfig> = Preset::ALL[1..].iter().map(|p| p.config("x.csv")).collect();
        for config in &paper {
            config.validate().unwrap();
            assert_eq!(config.data.marginals, Marginals::Standard);
            assert_eq!(config.model.confine, 0.0, "the paper's energies are as they are");
            assert_eq!((config.step.warm_up, config.step.wide_share), (5_000, 0.0));
            assert_eq!((config.training.patience, config.validation.base), (0, BaseAnswers::Never));
            assert_eq!(config.validation.cross_validate_below, 0);
            assert_eq!((config.step.num_negatives, config.training.learning_rate), (20, 5e-4));
        }
        let of = |value: fn(&FitConfig) -> f64| paper.iter().map(value).collect::<Vec<f64>>();
        assert_eq!(of(|config| config.model.dropout), [0.1, 0.0, 0.1, 0.5, 0.1]);
        assert_eq!(of(|c| c.model.proposal.width as f64), [256.0, 256.0, 256.0, 256.0, 512.0]);
        assert_eq!(of(|c| c.training.batch_size as f64), [512.0, 512.0, 512.0, 128.0, 128.0]);
        assert_eq!(paper[1].model.energy.activation, Activation::Tanh);
        assert_eq!(paper[1].model.proposal.activation, Activation::Relu);
    }
}
