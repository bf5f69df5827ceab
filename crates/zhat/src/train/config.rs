//! Settings of a run.

use serde::{Deserialize, Serialize};

use super::{OptimiserConfig, Schedule};
use crate::error::{Error, Result, at_least, positive};

/// How long, how fast and how carefully a model is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TrainingConfig {
    /// Number of steps.
    pub num_steps: u64,
    /// End after this many of them, with the learning rates of a run that goes on to the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_after: Option<u64>,
    /// Rows in a step.
    pub batch_size: usize,
    /// Learning rate at the start.
    pub learning_rate: f64,
    /// How the learning rate changes.
    pub schedule: Schedule,
    /// First steps, in which it does not change yet.
    pub hold: u64,
    /// Which optimiser.
    pub optimiser: OptimiserConfig,
    /// The gradient of the model is scaled down to at most this norm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gradient_norm: Option<f64>,
    /// The model is the mean of the parameters over about this share of the steps so far; 0 for those of the last step.
    #[serde(default)]
    pub averaging: f64,
    /// Steps from one validation to the next.
    pub validation_every: u64,
    /// Stop after so many validations without a better one; 0 for never.
    pub patience: u32,
    /// Steps from one checkpoint to the next.
    pub checkpoint_every: u64,
    /// How often a run that diverges goes back to its last checkpoint, with half the learning rate, before it is given up.
    pub max_rollbacks: u32,
}

impl TrainingConfig {
    /// Stochastic gradient descent on 100 rows a step with a constant learning rate.
    pub fn new(num_steps: u64, learning_rate: f64) -> Self {
        Self {
            num_steps,
            stop_after: None,
            batch_size: 100,
            learning_rate,
            schedule: Schedule::Constant,
            hold: 0,
            optimiser: OptimiserConfig::Sgd,
            max_gradient_norm: None,
            averaging: 0.0,
            validation_every: 1000,
            patience: 0,
            checkpoint_every: 1000,
            max_rollbacks: 5,
        }
    }

    /// With another number of rows in a step.
    pub fn with_batch_size(self, batch_size: usize) -> Self {
        Self { batch_size, ..self }
    }

    /// With another optimiser.
    pub fn with_optimiser(self, optimiser: OptimiserConfig) -> Self {
        Self { optimiser, ..self }
    }

    /// With a schedule.
    pub fn with_schedule(self, schedule: Schedule) -> Self {
        Self { schedule, ..self }
    }

    /// With clipping of the gradient's norm.
    pub fn with_max_gradient_norm(self, norm: f64) -> Self {
        Self { max_gradient_norm: Some(norm), ..self }
    }

    /// With the mean of the parameters over about this share of the steps so far in the place of the last.
    pub fn with_averaging(self, share: f64) -> Self {
        Self { averaging: share, ..self }
    }

    /// With another time from one validation, and from one checkpoint, to the next.
    pub fn with_every(self, validation_every: u64, checkpoint_every: u64) -> Self {
        Self { validation_every, checkpoint_every, ..self }
    }

    /// With another number of returns before a run that diverges is given up.
    pub fn with_max_rollbacks(self, max_rollbacks: u32) -> Self {
        Self { max_rollbacks, ..self }
    }

    /// The step that training ends after.
    pub fn last_step(&self) -> u64 {
        self.stop_after.map_or(self.num_steps, |last| last.min(self.num_steps))
    }

    /// The learning rate of a step, counted from 0.
    pub fn learning_rate_at(&self, step: u64) -> f64 {
        let (done, all) = (step.saturating_sub(self.hold), self.num_steps - self.hold);
        self.learning_rate * self.schedule.factor(done as usize, all as usize)
    }

    /// Checks the ranges of the settings.
    pub fn validate(&self) -> Result<()> {
        at_least(1, "num-steps", self.num_steps as usize)?;
        at_least(1, "batch-size", self.batch_size)?;
        at_least(1, "validation-every", self.validation_every as usize)?;
        at_least(1, "checkpoint-every", self.checkpoint_every as usize)?;
        if self.hold > self.num_steps {
            let expected = format!("at most num-steps, {}", self.num_steps);
            return Err(Error::setting("hold", self.hold, expected));
        }
        positive("learning-rate", self.learning_rate)?;
        if !(0.0..1.0).contains(&self.averaging) {
            return Err(Error::setting("averaging", self.averaging, "at least 0 and below 1"));
        }
        self.max_gradient_norm.map(|norm| positive("max-gradient-norm", norm)).transpose()?;
        Ok(())
    }
}
