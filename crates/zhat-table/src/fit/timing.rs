//! How long a step takes, and so how many fit into a time.

use std::time::Instant;

use burn::optim::AdamConfig;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use zhat::ar::{ArCriterion, ArStep};
use zhat::rng::Streams;

use super::config::FitConfig;
use crate::error::Result;
use crate::prepare::Prepared;

/// Steps before the clock counts.
const UNTIMED: u64 = 3;
/// Steps whose median is taken.
const TIMED: usize = 9;

/// Median seconds of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepSeconds {
    /// In the warm-up, which trains the proposal alone.
    pub warm_up: f64,
    /// After it.
    pub full: f64,
}

impl StepSeconds {
    /// Times a few steps of a configuration, with a model that is thrown away.
    pub fn measure(config: &FitConfig, data: &Prepared, threads: usize) -> Result<Self> {
        let features = data.columns.len();
        let shape = config.shape(features);
        let streams = Streams::new(config.seed);
        let mut model =
            shape.init(&Device::flex().autodiff(), &mut streams.stream("init", 0, 0))?;
        let mut step = ArStep::new(&shape, &config.step(), threads)?;
        let mut optimiser = AdamConfig::new().with_epsilon(1e-8).init();
        let rows = config.training.batch.min(data.train.len() / features);
        let x = &data.train[..rows * features];
        let clip = Some(config.training.max_gradient_norm);
        let mut median = |criterion: ArCriterion| -> Result<f64> {
            step.settings_mut().criterion = criterion;
            let mut seconds = Vec::new();
            for index in 0..UNTIMED + TIMED as u64 {
                let start = Instant::now();
                let (gradients, _) = step.gradient(&model, x, &streams, index, clip)?;
                model = optimiser.step(config.training.learning_rate, model.clone(), gradients);
                if index >= UNTIMED {
                    seconds.push(start.elapsed().as_secs_f64());
                }
            }
            seconds.sort_by(f64::total_cmp);
            Ok(seconds[TIMED / 2])
        };
        let warm_up = median(ArCriterion::QOnly)?;
        Ok(Self { warm_up, full: median(config.training.criterion.for_step())? })
    }

    /// How many steps fit into a time, if this share of them is warm-up; at least one.
    pub fn steps_within(&self, seconds: f64, warm_up_share: f64) -> u64 {
        let step = warm_up_share * self.warm_up + (1.0 - warm_up_share) * self.full;
        ((seconds / step).round() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_filled_by_cheap_and_dear_steps() {
        let step = StepSeconds { warm_up: 0.1, full: 1.0 };
        assert_eq!(step.steps_within(100.0, 0.0), 100);
        assert_eq!(step.steps_within(55.0, 0.5), 100);
        assert_eq!(step.steps_within(0.01, 0.0), 1);
    }
}
