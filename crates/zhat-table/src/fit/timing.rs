//! How long a step takes, and so how many fit into a time.

use std::time::Instant;

use burn::optim::{AdamConfig, ModuleOptimizer};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use zhat::ar::{ArEbm, ArStep, ArStepConfig};
use zhat::criterion::Method;
use zhat::rng::Streams;

use super::config::FitConfig;
use crate::error::Result;
use crate::prepare::Prepared;

/// Median seconds of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepSeconds {
    /// In the warm-up, which trains the proposal alone.
    pub warm_up: f64,
    /// After it.
    pub full: f64,
}

impl StepSeconds {
    /// How many steps fit into a time, if this share of them is warm-up; at least one.
    pub fn steps_within(&self, seconds: f64, warm_up_share: f64) -> u64 {
        let step = warm_up_share * self.warm_up + (1.0 - warm_up_share) * self.full;
        ((seconds / step).round() as u64).max(1)
    }
}

/// A model that trains only to see how long a step takes.
pub struct StepTimer {
    config: FitConfig,
    streams: Streams,
    model: ArEbm,
    /// A step of the warm-up, and one after it.
    steps: [ArStep; 2],
    optimiser: ModuleOptimizer,
    rounds: u64,
    /// Seconds of the steps in the warm-up and after it.
    seconds: [Vec<f64>; 2],
}

impl StepTimer {
    /// Rounds that do not count, while caches and clocks settle.
    const UNTIMED: u64 = 2;
    /// Rounds that make a median.
    pub const ROUNDS: u64 = Self::UNTIMED + 9;

    /// Nothing is timed yet.
    pub fn new(config: &FitConfig, data: &Prepared, threads: usize) -> Result<Self> {
        let shape = config.shape(data.columns.len());
        let streams = Streams::new(config.seed);
        let step = |criterion| {
            ArStep::new(&ArStepConfig { criterion, warm_up: 0, ..config.step() }, threads)
        };
        Ok(Self {
            model: shape.init(&Device::flex().autodiff(), &mut streams.stream("init", 0, 0))?,
            steps: [step(Method::QOnly)?, step(config.training.criterion)?],
            optimiser: AdamConfig::new().with_epsilon(1e-8).init(),
            config: config.clone(),
            rounds: 0,
            streams,
            seconds: [Vec::new(), Vec::new()],
        })
    }

    /// One step of the warm-up and one after it. Timers that are compared should take turns, so that a machine that is busy for a
    /// moment does not slow down one of them alone.
    pub fn round(&mut self, data: &Prepared) -> Result<()> {
        let training = &self.config.training;
        let features = data.columns.len();
        let rows = training.batch.min(data.train.len() / features);
        let x = &data.train[..rows * features];
        for (step, seconds) in self.steps.iter_mut().zip(&mut self.seconds) {
            let start = Instant::now();
            let clip = Some(training.max_gradient_norm);
            let (gradients, _) = step.gradient(&self.model, x, &self.streams, self.rounds, clip)?;
            self.model = self.optimiser.step(training.learning_rate, self.model.clone(), gradients);
            if self.rounds >= Self::UNTIMED {
                seconds.push(start.elapsed().as_secs_f64());
            }
        }
        self.rounds += 1;
        Ok(())
    }

    /// The medians; not a number before [`ROUNDS`](Self::ROUNDS) have begun to count.
    pub fn medians(&self) -> StepSeconds {
        let [warm_up, full] = self.seconds.each_ref().map(|seconds| {
            let mut seconds = seconds.clone();
            seconds.sort_by(f64::total_cmp);
            seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN)
        });
        StepSeconds { warm_up, full }
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
