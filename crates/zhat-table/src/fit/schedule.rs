//! A whole schedule fitted to a time: warm-up, learning rate and validations in as many steps as there is room for.

use std::sync::Arc;

use burn::tensor::Device;
use zhat::ar::ArEbmConfig;
use zhat::ranks::Workers;
use zhat::rng::Streams;
use zhat::train::Answer;
use zhat::watch::Watch;

use super::beside::Beside;
use super::clock::Limit;
use super::config::FitConfig;
use super::evaluation::work_of_evaluation;
use super::rows::{REDRAWS, TrainingRows, between};
use super::timing::{StepSeconds, StepTimer};
use super::validation::Validator;
use crate::density::{Density, Estimation};
use crate::error::{Result, TableError};
use crate::prepare::Prepared;

/// The share of what is left that is planned for; the rest is for the page, and for a machine that slows down.
const FORESEEN: f64 = 0.92;
/// Validations of a run that has the time for them.
const VALIDATIONS: f64 = 40.0;
/// And of one that has not.
const FEWEST_VALIDATIONS: f64 = 4.0;
/// Share of the time that validations may take.
const VALIDATION_SHARE: f64 = 0.2;
/// Share of the time that mixtures beside the networks may take.
const MIXTURES_SHARE: f64 = 0.25;
/// Share of the steps from one validation to the next that it may take where there are more of them.
const CHEAP: f64 = 0.05;
/// Share of the time that is for steps at least, however long the last evaluation takes.
const LEAST_FOR_STEPS: f64 = 0.1;

/// Rows that a redraw of what is missing is timed by.
const TIMED_ROWS: usize = 1_000;

/// What the parts of a fit take, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Costs {
    step: StepSeconds,
    validation: f64,
    /// The evaluation at the end, with its verdict.
    evaluation: f64,
    /// Drawing anew what is missing, once.
    redraw: f64,
    /// Steps from one redraw to the next, unless that makes too few or too many redraws.
    redraw_every: f64,
}

impl Costs {
    /// The same with a validation after every so many steps, as part of the steps.
    fn validated_every(self, steps: u64) -> Self {
        let StepSeconds { warm_up, full } = self.step;
        let of_step = self.validation / steps as f64;
        let step = StepSeconds { warm_up: warm_up + of_step, full: full + of_step };
        Self { step, ..self }
    }

    /// How many steps fit into a time with the redraws among them, if this share of them is warm-up.
    fn steps_within(&self, seconds: f64, warm_up_share: f64) -> u64 {
        let of_step = self.redraw / self.redraw_every;
        let StepSeconds { warm_up, full } = self.step;
        let with_redraws = StepSeconds { warm_up: warm_up + of_step, full: full + of_step };
        let redraws = with_redraws.steps_within(seconds, warm_up_share) as f64 / self.redraw_every;
        let redraws = redraws.clamp(REDRAWS[0] as f64, REDRAWS[1] as f64);
        self.step.steps_within(seconds - redraws * self.redraw, warm_up_share)
    }
}

/// Steps of a run, and from one validation or checkpoint to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Steps {
    all: u64,
    validation_every: u64,
    checkpoint_every: u64,
}

impl Limit {
    /// Fits the schedule of a run that is about to start to the time that is left, by timing a few steps and a validation.
    ///
    /// How much work there is time for, in steps of one network, decides about the model too: `model_for` says which it is.
    pub fn schedule<E: From<TableError>>(
        &self,
        config: &mut FitConfig,
        data: &Prepared,
        workers: impl Into<Workers>,
        watch: &Watch,
        model_for: impl FnOnce(u64) -> std::result::Result<ArEbmConfig, E>,
    ) -> std::result::Result<(), E> {
        let workers = &workers.into();
        let seconds = self.time().seconds;
        if !(seconds.is_finite() && seconds > 0.0) {
            return Err(TableError::setting("time", seconds, "larger than zero").into());
        }
        config.check_memory(data.columns.len(), workers.threads())?;
        let mut costs = self.costs(config, data, workers, watch)?;
        let (clock, least) = (self.time().clock, self.least());
        let mixtures = Beside::seconds(config, data, clock, 0.5 * least, workers, watch)?;
        let affordable = MIXTURES_SHARE * seconds;
        let components = Beside::components_within(config, data, mixtures, affordable);
        let mixtures = mixtures.min(affordable);
        let folds =
            if config.is_cross_validated(data) { config.validation.folds as f64 } else { 0.0 };
        let share = config.step.warm_up as f64 / config.training.num_steps as f64;
        let often = config.often(data.rows[0]);
        let plan = |costs: Costs| {
            steps(costs, FORESEEN * self.left() - mixtures, seconds, folds, share, often)
        };
        // Clocks differ, and plans must not.
        let agreed = |number: u64| {
            let bytes = workers.of_first(number.to_le_bytes().to_vec());
            bytes.try_into().map_or(number, u64::from_le_bytes)
        };
        let work = agreed(plan(costs).all * config.model.members as u64);
        let timed = config.model.members;
        config.take(model_for(work)?);
        if config.model.members != timed {
            // More networks have less room each in the processor's memory: their steps take longer than so many of one.
            costs = self.costs(config, data, workers, watch)?;
        }
        let steps = plan(costs);
        config.scale_to(agreed(steps.all));
        config.training.checkpoint_every = agreed(steps.checkpoint_every);
        config.validate_every(agreed(steps.validation_every));
        config.validation.mixture_components = agreed(components as u64) as usize;
        config.log_every = (config.training.num_steps / 200).max(1);
        Ok(())
    }

    /// Seconds that a part of a fit is timed for: one, or less where there is little time.
    fn least(&self) -> f64 {
        (0.01 * self.time().seconds).clamp(0.02, 1.0)
    }

    fn costs(
        &self,
        config: &FitConfig,
        data: &Prepared,
        workers: &Workers,
        watch: &Watch,
    ) -> Result<Costs> {
        let (clock, features) = (self.time().clock, data.columns.len());
        let least = self.least();
        let step = StepTimer::new(config, data, workers.clone())?.means(clock, least, watch)?;
        let streams = &mut Streams::new(config.seed).stream("init", 0, 0);
        let model = config.shape_of(data).init(&Device::flex(), streams)?;
        let validator = Validator::new(config, data);
        let part = if data.validation.is_empty() { &data.train } else { &data.validation };
        let rows = data.in_units(config.validation.of_rows(part, features));
        let validation = clock.measure(least, workers, || {
            watch.check()?;
            validator.validate(&model, &rows, None, workers.clone()).map(|_| ())
        })?;
        // What is known of one evaluation goes for the other, by what a watch counts in them.
        let density = validator.density(&model, Answer::Model, 1, Arc::default())?;
        let [of_validation, _] = density.work(&Estimation::new(config.validation.particles, 1));
        let unit = validation / (of_validation as f64 + rows.len() as f64);
        let evaluation = unit
            * (work_of_evaluation(&density, &config.evaluation) as f64 + data.test.len() as f64);
        let rows = &data.train[..data.train.len().min(TIMED_ROWS * features)];
        let holed = TrainingRows::new(data, rows.to_vec(), None, &Streams::new(config.seed))?;
        let mut redraw = 0.0;
        if holed.have_holes() {
            redraw = data.train.len() as f64 / rows.len() as f64
                * clock.measure(least, workers, || {
                    watch.check()?;
                    holed.redraw(&model, 0, workers.threads())
                })?;
        }
        let redraw_every = between(data.rows[0], config.training.batch_size) as f64;
        Ok(Costs { step, validation, evaluation, redraw, redraw_every })
    }
}

/// How many steps, and how many validations among them, fill the time that is left of all; cross-validation trains as often
/// again as there are folds. Validations come as often as is wanted only where that costs next to nothing.
fn steps(costs: Costs, left: f64, all: f64, folds: f64, warm_up_share: f64, often: u64) -> Steps {
    let left = (left - costs.evaluation).max(LEAST_FOR_STEPS * all);
    // Folds are validated, and then the model of all rows is not.
    let validation = costs.validation * folds.max(1.0);
    let validations =
        (VALIDATION_SHARE * left / validation).floor().clamp(FEWEST_VALIDATIONS, VALIDATIONS);
    let least = LEAST_FOR_STEPS * all;
    let training = (left - validations * validation).max(least) / (folds + 1.0);
    let all = costs.steps_within(training, warm_up_share);
    let checkpoint_every = all.div_ceil(validations as u64);
    let is_cheap = costs.validation < CHEAP * costs.step.full * often as f64;
    if folds > 0.0 || !is_cheap || often >= checkpoint_every {
        return Steps { all, validation_every: checkpoint_every, checkpoint_every };
    }
    let all = costs.validated_every(often).steps_within(left, warm_up_share);
    let checkpoint_every = all.div_ceil(validations as u64);
    Steps { all, validation_every: often.min(checkpoint_every), checkpoint_every }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs {
        step: StepSeconds { warm_up: 0.01, full: 0.1 },
        validation: 0.5,
        evaluation: 30.0,
        redraw: 0.0,
        redraw_every: 1.0,
    };

    /// Validations need not come more often than their share of the time allows.
    const NEVER: u64 = u64::MAX;

    /// Seconds that a run of these steps takes.
    fn cost(costs: Costs, steps: Steps, folds: f64, share: f64) -> f64 {
        let step = share * costs.step.warm_up + (1.0 - share) * costs.step.full;
        let validations = (steps.all as f64 / steps.validation_every as f64).ceil();
        let redraws = steps.all as f64 / costs.redraw_every;
        let redraws = redraws.clamp(REDRAWS[0] as f64, REDRAWS[1] as f64);
        (folds + 1.0) * (steps.all as f64 * step + redraws * costs.redraw)
            + validations * folds.max(1.0) * costs.validation
            + costs.evaluation
    }

    #[test]
    fn steps_validations_and_the_last_evaluation_fill_the_time() {
        for (seconds, folds) in [(600.0, 0.0), (3600.0, 0.0), (600.0, 5.0)] {
            let steps = steps(COSTS, seconds, seconds, folds, 0.1, NEVER);
            let cost = cost(COSTS, steps, folds, 0.1);
            assert!((cost / seconds - 1.0).abs() < 0.02, "{seconds} {folds}: {cost} {steps:?}");
            let validations = steps.all.div_ceil(steps.validation_every);
            assert!((35..=40).contains(&validations), "{steps:?}");
        }
    }

    #[test]
    fn validations_come_often_where_they_are_cheap_and_are_in_the_plan() {
        let within = |costs, folds| steps(costs, 600.0, 600.0, folds, 0.1, 20);
        let cheap = Costs { validation: 0.09, ..COSTS };
        let often = within(cheap, 0.0);
        let cost = cost(cheap, often, 0.0, 0.1);
        assert_eq!(often.validation_every, 20);
        assert!((cost / 600.0 - 1.0).abs() < 0.005, "{cost} {often:?}");
        // Not where they take more than a twentieth of the time, nor with folds.
        for (costs, folds) in [(COSTS, 0.0), (cheap, 5.0)] {
            let rare = within(costs, folds);
            assert_eq!(rare.validation_every, rare.checkpoint_every);
        }
    }

    #[test]
    fn so_do_redraws_of_what_is_missing_be_they_few_or_all_that_are_wanted() {
        let holed = Costs { redraw: 4.0, redraw_every: 50.0, ..COSTS };
        for (seconds, expected) in [(60.0, 4.0..=4.0), (200.0, 15.0..=20.0), (3600.0, 40.0..=40.0)]
        {
            let steps = steps(holed, seconds, seconds, 0.0, 0.1, NEVER);
            let cost = cost(holed, steps, 0.0, 0.1);
            assert!((cost / seconds - 1.0).abs() < 0.02, "{seconds}: {cost} {steps:?}");
            let redraws = (steps.all as f64 / holed.redraw_every).clamp(4.0, 40.0);
            assert!(expected.contains(&redraws), "{redraws} {steps:?}");
        }
    }

    #[test]
    fn where_validations_are_dear_there_are_few_and_there_is_always_a_step() {
        let dear = Costs { validation: 20.0, ..COSTS };
        let few = steps(dear, 600.0, 600.0, 0.0, 0.0, NEVER);
        assert_eq!(few.all.div_ceil(few.validation_every), 5, "{few:?}");
        assert!(cost(dear, few, 0.0, 0.0) < 610.0);
        // The evaluation alone takes longer than there is.
        let short = steps(COSTS, 10.0, 10.0, 0.0, 0.0, NEVER);
        assert_eq!(short.all, 10, "a tenth of the time");
        let one = Steps { all: 1, validation_every: 1, checkpoint_every: 1 };
        assert_eq!(steps(COSTS, 1e-3, 1e-3, 5.0, 0.0, NEVER), one);
    }
}
