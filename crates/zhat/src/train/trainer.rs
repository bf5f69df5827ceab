//! One training step after the other, with everything that keeps a long run safe.

use burn::module::Module;
use burn::optim::ModuleOptimizer;

use super::average::average;
use super::config::TrainingConfig;
use super::data::{DataSource, Order};
use super::guard::Guard;
use super::optimiser::scale_gradients;
use super::state::{Best, Parts, Progress, TrainerState};
use super::step::{Batch, StepReport, TrainingStep};
use super::validation::{Answer, Difference, Validated, Validation};
use crate::error::{Error, Result};
use crate::rng::Streams;
use crate::watch::Watch;

/// A model in training.
///
/// It owns the optimiser, the schedule, the order of the rows, the divergence guard and the best model so far, and can be
/// put away as a [`TrainerState`] at any step: a trainer made in the same way goes on from it to the same bits.
pub struct Trainer<M, S> {
    /// Away only while the optimiser has it: a parameter that someone else holds too would be copied.
    model: Option<M>,
    /// The mean of its last parameters, where that is asked for.
    mean: Option<M>,
    step: S,
    config: TrainingConfig,
    streams: Streams,
    order: Order,
    optimiser: ModuleOptimizer,
    validation: Option<Box<dyn Validation<M> + Send>>,
    progress: Progress,
    best: Option<Kept<M>>,
    /// Where the guard goes back to.
    last: Option<TrainerState>,
}

/// The best model so far, with what it was found to be worth on every row.
struct Kept<M> {
    model: M,
    log_likelihoods: Vec<f64>,
}

/// What an observer is told.
#[allow(missing_docs, reason = "the line above each variant says what its fields are")]
pub enum Event<'a, M, S> {
    /// A step was taken, so many in all: the model and what made its gradient, as they are after it, what the step found, and
    /// its learning rate.
    Step { step: u64, model: &'a M, training: &'a S, report: &'a StepReport, learning_rate: f64 },
    /// After so many steps a validation was made, which may be the best so far, and is so far ahead of the best before it.
    Validation { step: u64, found: &'a Validated, best: bool, ahead: Option<Difference> },
    /// This is a place to come back to: to be stored by whoever wants to resume, with a note if need be.
    Checkpoint(&'a mut TrainerState),
    /// A step went wrong: from it the run has gone back to the step of the last checkpoint, and its learning rate is
    /// multiplied by this factor from now on.
    RolledBack { from: u64, to: u64, reason: &'a str, rate_factor: f64 },
}

/// What an observer answers, in their own error; it ends the run.
type Told<E> = std::result::Result<(), E>;

/// Someone who is told what happens.
pub type Observer<'o, M, S, E> = dyn FnMut(Event<M, S>) -> Told<E> + 'o;

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All steps were taken.
    Done,
    /// So many validations in a row were no better.
    Patience,
    /// The watch said so.
    Stopped,
}

impl<M: Module, S: TrainingStep<M>> Trainer<M, S> {
    /// A run from the start.
    pub fn new(model: M, step: S, config: TrainingConfig, streams: Streams) -> Result<Self> {
        config.validate()?;
        let model = if step.uses_graph() { model } else { model.no_grad() };
        Ok(Self {
            optimiser: config.optimiser.init(),
            order: Order::new(config.batch_size, streams),
            progress: Progress { rate_factor: 1.0, ..Progress::default() },
            validation: None,
            best: None,
            last: None,
            mean: (config.averaging > 0.0).then(|| model.clone()),
            model: Some(model),
            step,
            config,
            streams,
        })
    }

    /// With a validation every so many steps ([`TrainingConfig::validation_every`]), and the best model kept.
    pub fn with_validation(mut self, validation: impl Validation<M> + Send + 'static) -> Self {
        self.validation = Some(Box::new(validation));
        self
    }

    /// The model as it is now: the mean of its last parameters ([`TrainingConfig::averaging`]), or the last.
    pub fn model(&self) -> &M {
        self.mean.as_ref().unwrap_or(self.last_model())
    }

    /// The model of the last parameters.
    fn last_model(&self) -> &M {
        self.model.as_ref().expect("the optimiser gave it back")
    }

    /// The model with the best validation, or as it is now where there was none.
    pub fn best_model(&self) -> &M {
        self.best.as_ref().map_or(self.model(), |best| &best.model)
    }

    /// What makes the gradients, with all that it keeps.
    pub fn step(&self) -> &S {
        &self.step
    }

    /// How far the run has come.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The settings.
    pub fn config(&self) -> &TrainingConfig {
        &self.config
    }

    /// Ends the run after this step, or goes on to it: the learning rates stay those of all steps.
    pub fn stop_after(&mut self, step: u64) {
        self.config.stop_after = Some(step);
    }

    /// Trains until the last step.
    pub fn fit(&mut self, data: &impl DataSource) -> Result<Ended> {
        self.fit_watched(data, &Watch::default(), &mut |_| Ok::<_, Error>(()))
    }

    /// Trains until the last step, or until the watch says stop; it counts steps.
    pub fn fit_watched<E: From<Error>>(
        &mut self,
        data: &impl DataSource,
        watch: &Watch,
        observer: &mut Observer<M, S, E>,
    ) -> std::result::Result<Ended, E> {
        if self.last.is_none() {
            self.checkpoint(observer)?;
        }
        let ended = loop {
            if self.progress.step >= self.config.last_step() {
                break Ended::Done;
            }
            if watch.is_stopped() {
                break Ended::Stopped;
            }
            let since = self.progress.validations_since_best;
            if self.config.patience > 0 && since >= self.config.patience {
                break Ended::Patience;
            }
            let batch = data.batch(self.progress.step, &mut self.order);
            let (report, learning_rate) = match self.train_step(&batch) {
                Err(error) if error.is_recoverable() => {
                    self.roll_back(error, observer)?;
                    continue;
                }
                result => result?,
            };
            let step = self.progress.step;
            let (model, training) = (self.last_model(), &self.step);
            observer(Event::Step { step, model, training, report: &report, learning_rate })?;
            if step.is_multiple_of(self.config.validation_every) || step == self.config.last_step()
            {
                self.validate(observer)?;
            }
            if step.is_multiple_of(self.config.checkpoint_every) {
                self.checkpoint(observer)?;
            }
            watch.advance(1);
        };
        self.checkpoint(observer)?;
        Ok(ended)
    }

    /// One step on a batch; gives what it found and the learning rate.
    ///
    /// A loss or gradient that is not one of a run that goes well is an error, and leaves the parameters as they were.
    pub fn train_step(&mut self, batch: &Batch) -> Result<(StepReport, f64)> {
        let step = self.progress.step;
        let model = self.model.as_ref().expect("a model");
        let (gradients, report) = self.step.gradient(model, batch, &self.streams, step)?;
        if self.progress.warming_up != report.warming_up {
            // Another loss begins.
            self.progress.guard = Guard::default();
            self.progress.warming_up = report.warming_up;
        }
        if let Some(reason) = self.progress.guard.watch(report.loss) {
            return Err(Error::LossExploded { step, reason });
        }
        let norm = report.gradient_norm;
        let gradients = match self.config.max_gradient_norm.filter(|&largest| norm > largest) {
            Some(largest) => scale_gradients(model, gradients, largest / norm),
            None => gradients,
        };
        let learning_rate = self.progress.rate_factor * self.config.learning_rate_at(step);
        let model = self.model.take().expect("a model");
        let model = self.model.insert(self.optimiser.step(learning_rate, model, gradients));
        self.step.accept(learning_rate);
        self.progress.step += 1;
        let averaging = self.config.averaging;
        let averaged = |mean| average(mean, model, self.progress.step, averaging);
        self.mean = self.mean.take().map(averaged);
        Ok((report, learning_rate))
    }

    /// Looks at the model now, and keeps it if it is the best so far; nothing without a validation.
    pub fn validate<E: From<Error>>(&mut self, observer: &mut Observer<M, S, E>) -> Told<E> {
        let Some(validation) = &mut self.validation else { return Ok(()) };
        let step = self.progress.step;
        let model = self.mean.as_ref().or(self.model.as_ref()).expect("a model");
        let found = validation.validate(model, step)?;
        // While only the proposal is trained, the model is nothing to keep, but the proposal may be.
        let warming_up = self.progress.warming_up;
        let counts = step > 0 && (!warming_up || found.answer == Answer::Proposal);
        let log_likelihoods = found.of_answer();
        let Difference { mean: value, standard_error } = found.mean_of(log_likelihoods);
        // A run that was taken up with other rows has nothing to be paired with at first.
        let before = self.best.as_ref().map(|best| &best.log_likelihoods);
        let ahead = before.filter(|before| before.len() == log_likelihoods.len()).map(|before| {
            let ahead = log_likelihoods.iter().zip(before).map(|(of, to)| of - to);
            found.mean_of(&ahead.collect::<Vec<_>>())
        });
        let is_higher = self.progress.best.is_none_or(|best| value > best.log_likelihood);
        let best = counts && value.is_finite() && is_higher;
        if best {
            let log_likelihoods = log_likelihoods.to_vec();
            self.best = Some(Kept { model: model.clone(), log_likelihoods });
            let answer = found.answer;
            self.progress.best = Some(Best { step, log_likelihood: value, standard_error, answer });
            self.progress.validations_since_best = 0;
        } else if counts && !warming_up {
            self.progress.validations_since_best += 1;
        }
        observer(Event::Validation { step, found: &found, best, ahead })
    }

    /// Everything that the next steps depend on.
    pub fn state(&self) -> Result<TrainerState> {
        let mut parts = Parts::default();
        parts.push_module(self.last_model())?;
        parts.push_optimiser(&self.optimiser)?;
        if let Some(mean) = &self.mean {
            parts.push_module(mean)?;
        }
        if let Some(best) = &self.best {
            parts.push_module(&best.model)?;
            parts.push_numbers(&best.log_likelihoods);
        }
        self.step.save(&mut parts)?;
        Ok(TrainerState { progress: self.progress.clone(), note: String::new(), parts })
    }

    /// Goes on from a state of a trainer that was made in the same way.
    pub fn restore(&mut self, state: TrainerState) -> Result<()> {
        let mut parts = state.parts.clone();
        self.model = Some(parts.take_module(self.last_model())?);
        self.optimiser = parts.take_optimiser(&self.config.optimiser)?;
        self.mean = self.mean.take().map(|mean| parts.take_module(&mean)).transpose()?;
        self.best = match state.progress.best {
            Some(_) => Some(Kept {
                model: parts.take_module(self.last_model())?,
                log_likelihoods: parts.take_numbers()?,
            }),
            None => None,
        };
        self.step.load(&mut parts)?;
        self.progress = state.progress.clone();
        self.last = Some(state);
        Ok(())
    }

    fn checkpoint<E: From<Error>>(&mut self, observer: &mut Observer<M, S, E>) -> Told<E> {
        let state = self.last.insert(self.state()?);
        observer(Event::Checkpoint(state))
    }

    /// Goes back to the last checkpoint with half the learning rate.
    fn roll_back<E: From<Error>>(
        &mut self,
        error: Error,
        observer: &mut Observer<M, S, E>,
    ) -> Told<E> {
        let (from, reason, rollbacks) =
            (self.progress.step, error.to_string(), self.progress.rollbacks + 1);
        if rollbacks > self.config.max_rollbacks {
            let tries = self.config.max_rollbacks;
            return Err(Error::Diverged { tries, step: from, reason }.into());
        }
        let rate_factor = 0.5 * self.progress.rate_factor;
        let last = self.last.take().expect("a run begins with a checkpoint");
        self.restore(last)?;
        (self.progress.rollbacks, self.progress.rate_factor) = (rollbacks, rate_factor);
        let to = self.progress.step;
        observer(Event::RolledBack { from, to, reason: &reason, rate_factor })?;
        // A run that is stopped here goes on with the lower rate too.
        self.checkpoint(observer)
    }
}
