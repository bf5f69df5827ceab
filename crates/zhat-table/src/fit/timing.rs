//! How long a step takes, and so how many fit into a time.

use std::time::Instant;

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use zhat::ar::{ArEbm, ArStepConfig, PlacedStep};
use zhat::criterion::Method;
use zhat::ranks::Workers;
use zhat::rng::Streams;
use zhat::train::{Batch, Trainer};
use zhat::watch::Watch;

use super::clock::Clock;
use super::config::FitConfig;
use super::rows::filled;
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

/// Models that train only to see how long a step takes.
pub struct StepTimer {
    /// One in the warm-up, and one after it.
    trainers: [Trainer<ArEbm, PlacedStep>; 2],
    workers: Workers,
    batch: Batch,
    rounds: u64,
    /// Seconds of the steps of each.
    seconds: [Vec<f64>; 2],
}

impl StepTimer {
    /// Rounds that do not count, while caches and clocks settle.
    const UNTIMED: u64 = 2;
    /// Rounds that make a median.
    pub const ROUNDS: u64 = Self::UNTIMED + 9;

    /// Nothing is timed yet.
    pub fn new(config: &FitConfig, data: &Prepared, workers: impl Into<Workers>) -> Result<Self> {
        let workers = workers.into();
        let (streams, features) = (Streams::new(config.seed), data.columns.len());
        let trainer = |criterion| {
            let device = workers.training_device();
            let model = config.shape_of(data).init(&device, &mut streams.stream("init", 0, 0))?;
            let settings = ArStepConfig { criterion, warm_up: 0, ..config.step.clone() };
            let step = PlacedStep::new(&settings, workers.clone())?;
            Trainer::new(model, step, config.training.clone(), streams)
        };
        let rows = config.training.batch_size.min(data.train.len() / features);
        let some = filled(data, data.train[..rows * features].to_vec(), &streams);
        let x = TensorData::new(some, [rows, features]);
        Ok(Self {
            workers: workers.clone(),
            trainers: [trainer(Method::QOnly)?, trainer(config.step.criterion)?],
            batch: Tensor::from_data(x, &Device::flex()).into(),
            rounds: 0,
            seconds: [Vec::new(), Vec::new()],
        })
    }

    /// One step of the warm-up and one after it. Timers that are compared should take turns, so that a machine that is busy for a
    /// moment does not slow down one of them alone.
    pub fn round(&mut self) -> Result<()> {
        for (trainer, seconds) in self.trainers.iter_mut().zip(&mut self.seconds) {
            let start = Instant::now();
            trainer.train_step(&self.batch)?;
            if self.rounds >= Self::UNTIMED {
                seconds.push(start.elapsed().as_secs_f64());
            }
        }
        self.rounds += 1;
        Ok(())
    }

    /// The means by any clock, over at least so many seconds each.
    pub(super) fn means(&mut self, clock: Clock, least: f64, watch: &Watch) -> Result<StepSeconds> {
        let (batch, workers) = (&self.batch, &self.workers);
        let [warm_up, full] = self.trainers.each_mut().map(|trainer| {
            clock.measure(least, workers, || {
                watch.check()?;
                trainer.train_step(batch).map(|_| ())
            })
        });
        Ok(StepSeconds { warm_up: warm_up?, full: full? })
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
