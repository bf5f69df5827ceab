//! One training step after the other.

use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::optimiser::{gradient_norm, scale_gradients};
use super::{DataSource, OptimiserConfig, Schedule};
use crate::criterion::{Criterion, Loss};
use crate::error::{Error, Result};
use crate::rng::Streams;

/// Settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TrainingConfig {
    /// Number of steps.
    pub num_steps: usize,
    /// Learning rate at the start.
    pub learning_rate: f64,
    /// How the learning rate changes.
    pub schedule: Schedule,
    /// Which optimiser.
    pub optimiser: OptimiserConfig,
    /// The gradient of the model is scaled down to at most this norm.
    pub max_gradient_norm: Option<f64>,
    /// Seed of everything random.
    pub seed: u64,
}

impl TrainingConfig {
    /// Stochastic gradient descent with a constant learning rate, seed 0.
    pub fn new(num_steps: usize, learning_rate: f64) -> Self {
        Self {
            num_steps,
            learning_rate,
            schedule: Schedule::Constant,
            optimiser: OptimiserConfig::Sgd,
            max_gradient_norm: None,
            seed: 0,
        }
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

    /// With another seed.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    fn validate(&self) -> Result<()> {
        if self.num_steps == 0 {
            return Err(Error::setting("num_steps", 0, "at least 1"));
        }
        if !(self.learning_rate.is_finite() && self.learning_rate > 0.0) {
            return Err(Error::setting("learning_rate", self.learning_rate, "larger than zero"));
        }
        match self.max_gradient_norm {
            Some(norm) if norm.is_nan() || norm <= 0.0 => {
                Err(Error::setting("max_gradient_norm", norm, "larger than zero"))
            }
            _ => Ok(()),
        }
    }
}

/// A model in training.
pub struct Trainer<M, C> {
    model: M,
    criterion: C,
    config: TrainingConfig,
    streams: Streams,
    optimiser: ModuleOptimizer,
    step: usize,
}

/// What an observer is told after a step.
pub struct StepReport<'a, M, C> {
    /// The step just taken, counted from 0.
    pub step: usize,
    /// The model after the step.
    pub model: &'a M,
    /// The criterion after the step.
    pub criterion: &'a C,
    /// The loss of the step, with its candidates. Its graph has been used up.
    pub loss: &'a Loss,
    /// The learning rate of the step.
    pub learning_rate: f64,
}

/// Someone who watches a run, for metrics or progress.
pub trait Observer<M, C> {
    /// Called after every step; `false` ends the run.
    fn observe(&mut self, report: &StepReport<M, C>) -> bool;
}

impl<M, C, F: FnMut(&StepReport<M, C>) -> bool> Observer<M, C> for F {
    fn observe(&mut self, report: &StepReport<M, C>) -> bool {
        self(report)
    }
}

impl<M: Module, C: Criterion<M>> Trainer<M, C> {
    /// A run from the start.
    pub fn new(model: M, criterion: C, config: TrainingConfig) -> Result<Self> {
        config.validate()?;
        let (streams, optimiser) = (Streams::new(config.seed), config.optimiser.init());
        Ok(Self { model, criterion, config, streams, optimiser, step: 0 })
    }

    /// The model as it is now.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The criterion as it is now, with its chains and its proposal.
    pub fn criterion(&self) -> &C {
        &self.criterion
    }

    /// The trained model.
    pub fn into_model(self) -> M {
        self.model
    }

    /// Trains until the last step, or until the observer has seen enough.
    pub fn fit(
        &mut self,
        data: &impl DataSource,
        observer: &mut impl Observer<M, C>,
    ) -> Result<()> {
        while self.step < self.config.num_steps {
            let x0 = data.batch(self.step, &self.streams);
            let (loss, learning_rate) = self.train_step(x0)?;
            let report = StepReport {
                step: self.step - 1,
                model: &self.model,
                criterion: &self.criterion,
                loss: &loss,
                learning_rate,
            };
            if !observer.observe(&report) {
                break;
            }
        }
        Ok(())
    }

    /// One step on a batch; gives the loss and the learning rate.
    ///
    /// A loss or gradient that is not finite is an error, and leaves the parameters as they were.
    ///
    /// # Shapes
    /// - `x0`: `[n, d]`
    pub fn train_step(&mut self, x0: Tensor<2>) -> Result<(Loss, f64)> {
        let rng = &mut self.streams.stream("candidates", self.step as u64, 0);
        let loss = self.criterion.loss(&self.model, x0, rng)?;
        let total = match &loss.adaptation {
            Some(adaptation) => loss.surrogate.clone() + adaptation.clone(),
            None => loss.surrogate.clone(),
        };
        let mut all = total.backward();
        let mut gradients = GradientsParams::from_module(&mut all, &self.model);
        let norm = gradient_norm(&self.model, &gradients);
        if !norm.is_finite() {
            return Err(Error::GradientNotFinite { part: "model", step: self.step });
        }
        if let Some(largest) = self.config.max_gradient_norm.filter(|&largest| norm > largest) {
            gradients = scale_gradients(&self.model, gradients, largest / norm);
        }
        let factor = self.config.schedule.factor(self.step, self.config.num_steps);
        let learning_rate = self.config.learning_rate * factor;
        self.model = self.optimiser.step(learning_rate, self.model.clone(), gradients);
        if loss.adaptation.is_some() {
            self.criterion.update(&mut all, learning_rate);
        }
        self.step += 1;
        Ok((loss, learning_rate))
    }
}
