//! What a fit needs of memory: its networks, its steps and its estimates.

use zhat::ar::{Conditioner, NetworkSize};

use super::config::FitConfig;
use crate::error::Result;
use crate::memory::{check, of_particles};

/// 32-bit numbers for each parameter: itself, its gradient, the optimiser's two, the best model's, a checkpoint's, and twice as
/// wide while it is drawn.
const COPIES: f64 = 8.0;

impl FitConfig {
    /// An error that names the setting for which there is not enough memory, if there is one.
    pub fn check_memory(&self, features: usize, threads: usize) -> Result<()> {
        let (name, value) = self.largest_of_networks();
        check(name, value, self.bytes_of_networks(features))?;
        check(
            "step.num-negatives",
            self.step.num_negatives,
            self.bytes_of_step(features, threads),
        )?;
        for (name, particles) in [
            ("validation.particles", self.validation.particles),
            ("evaluation.particles", self.evaluation.particles),
        ] {
            check(name, particles, of_particles(particles, features))?;
        }
        Ok(())
    }

    /// The setting that is most likely to be the mistake.
    fn largest_of_networks(&self) -> (&'static str, usize) {
        let model = &self.model;
        let settings = [
            ("model.proposal.width", model.proposal.width),
            ("model.proposal.blocks", model.proposal.blocks),
            ("model.members", model.members),
            ("model.energy.width", model.energy.width),
            ("model.energy.blocks", model.energy.blocks),
            ("model.context", model.context),
            ("model.mixture-components", model.mixture_components),
            ("model.spline-bins", model.spline_bins),
        ];
        settings.into_iter().max_by_key(|(_, value)| *value).expect("several settings")
    }

    fn bytes_of_networks(&self, features: usize) -> f64 {
        let (model, features) = (&self.model, features as f64);
        let parameters = |size: &NetworkSize, inputs: f64, outputs: f64| {
            let width = size.width as f64;
            width * (inputs + outputs + 2.0 * size.blocks as f64 * width)
        };
        let outputs = (model.context as f64)
            + 3.0 * (model.mixture_components as f64 + model.spline_bins as f64);
        let (inputs, outputs) = match model.conditioner {
            Conditioner::Stagewise => (2.0 * features, outputs),
            Conditioner::Masked => (features, features * outputs),
        };
        let number = model.members as f64 * parameters(&model.proposal, inputs, outputs)
            + parameters(&model.energy, model.context as f64 + 1.0, 1.0);
        let lanes = self.step.lanes.next_power_of_two().min(self.training.batch_size) as f64;
        4.0 * number * (COPIES + lanes)
    }

    /// Activations that a step keeps for its way back, of as many observations as are at work.
    fn bytes_of_step(&self, features: usize, threads: usize) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if threads == 0 { cores } else { threads };
        let workers = threads.min(self.step.lanes).min(self.training.batch_size) as f64;
        let kept = |size: &NetworkSize| size.width as f64 * (2.0 * size.blocks as f64 + 2.0);
        let of_proposal = match self.model.conditioner {
            Conditioner::Stagewise => kept(&self.model.proposal),
            Conditioner::Masked => 0.0,
        };
        let of_row = kept(&self.model.energy) + of_proposal + self.model.context as f64 + 8.0;
        let observations = self.step.tile_observations(self.model.normalisation);
        let rows = observations as f64 * (self.step.num_negatives as f64 + 1.0);
        4.0 * workers * rows * features as f64 * of_row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_beyond_all_memory_are_named_with_the_figure_and_those_of_users_are_not() {
        let config = FitConfig::new("builtin:pinwheel");
        config.check_memory(2, 0).unwrap();
        FitConfig::for_table("t.csv", 1_000_000, 300, None).check_memory(300, 2).unwrap();
        for (setting, name) in [
            ("step.num-negatives=1000000000000", "step.num-negatives is 1000000000000"),
            ("evaluation.particles=1000000000000", "evaluation.particles is"),
            ("validation.particles=1000000000000", "validation.particles is"),
            ("model.proposal.width=3000000", "model.proposal.width is 3000000"),
            ("model.energy.blocks=2000000000", "model.energy.blocks is"),
            ("model.context=1000000000000", "model.context is"),
        ] {
            let config = config.clone().with_setting(setting).unwrap();
            let message = config.check_memory(2, 1).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains("B of memory"), "{message}");
        }
    }
}
