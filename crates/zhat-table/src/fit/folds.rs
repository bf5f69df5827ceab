//! How long a model of few rows is trained: cross-validation, because a tenth of few rows says nothing.

use std::ops::Range;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use zhat::ar::{ArEbm, PlacedStep};
use zhat::gaussian_mixture::Selected;
use zhat::ranks::Workers;
use zhat::rng::Streams;
use zhat::train::{Answer, Difference, Ended, Trainer, TrainingConfig, Validated};
use zhat::watch::Watch;

use super::config::FitConfig;
use super::known::initial_model;
use super::rows::{TrainingRows, numbers};
use super::validation::{BaseAnswers, Validator};
use crate::error::{Result, TableError};
use crate::prepare::Prepared;

/// What cross-validation found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrossValidation {
    /// Parts that the rows were cut into; each was left out once.
    pub folds: usize,
    /// Rows, all of which were left out once.
    pub rows: usize,
    /// What models were worth on the rows that were left out, after so many steps.
    pub curve: Vec<CurvePoint>,
    /// Steps of the highest point of the curve.
    pub best_step: u64,
    /// The fewest steps that are not told from them: within one standard error of the difference, row by row.
    pub chosen_step: u64,
    /// What the curve has there, in nats a row; none where nothing was a number.
    pub log_likelihood: Option<f64>,
    /// Its standard error over the rows.
    pub standard_error: Option<f64>,
    /// Whether the curve is that of the model or that of its proposal, which was no worse.
    pub answer: Answer,
}

/// Models after as many steps, on the rows that each was not trained on, in nats a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Steps.
    pub step: u64,
    /// Log-likelihood of the model; none while only the proposal was trained, or where it is no number.
    pub model: Option<f64>,
    /// Log-likelihood of the proposal.
    pub proposal: Option<f64>,
    /// Standard error over the rows, of whichever is the answer.
    pub standard_error: Option<f64>,
    /// How far the highest point is ahead, row by row; none where that is not to be had.
    pub behind_best: Option<Difference>,
}

/// How far the folds have come, for whoever watches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Round {
    /// Steps of every fold.
    pub step: u64,
    /// The better of model and proposal on the rows that were left out.
    pub log_likelihood: f64,
}

/// Chooses the number of steps by training without each of the folds in turn; `None` if it was told to stop.
///
/// All folds go on side by side from one validation to the next, so that they end together: after as many validations
/// without a better one as the patience is, or when `is_over` says so.
pub(super) fn cross_validate(
    config: &FitConfig,
    data: &Prepared,
    known: Option<&Selected>,
    workers: &Workers,
    watch: &Watch,
    is_over: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Round),
) -> Result<Option<CrossValidation>> {
    let number = data.train.len() / data.columns.len();
    let num_folds = config.validation.folds.min(number);
    let order = Streams::new(config.seed).stream("folds", 0, 0).permutation(number);
    let begin = |fold| {
        let part = fold * number / num_folds..(fold + 1) * number / num_folds;
        Fold::new(config, data, known, workers, &order, part, fold, watch)
    };
    let mut folds: Vec<Fold> = match (0..num_folds).map(begin).collect::<Result<_>>() {
        Err(error) if error.is_stop() => return Ok(None),
        folds => folds?,
    };
    // A device does one thing after the other.
    let threads = if workers.device().is_some() { 1 } else { workers.threads() };
    let validator = Validator::new(config, data);
    let weights = folds.iter().map(|fold| fold.weights.clone()).collect::<Option<Vec<_>>>();
    let mut curves = Curves { weights: weights.map(|folds| folds.concat()), ..Curves::default() };
    let patience = config.training.patience as usize;
    for step in rounds(&config.training) {
        let advance = |fold: &mut Fold| fold.advance(step, &validator, watch);
        match in_parallel(&mut folds, threads, &advance) {
            Err(TableError::Zhat(zhat::Error::Stopped)) => return Ok(None),
            found => curves.add(step, found?, config.validation.base),
        }
        tell(Round { step, log_likelihood: curves.highest_of(curves.steps.len() - 1) });
        if (patience > 0 && curves.rounds_since_best() >= patience) || is_over() {
            break;
        }
    }
    Ok(Some(curves.choose(num_folds)))
}

/// The steps after which the folds are looked at: those of validations, and some before the first of them, because few rows are
/// soon learnt by heart.
fn rounds(training: &TrainingConfig) -> Vec<u64> {
    let TrainingConfig { num_steps, validation_every, .. } = *training;
    let before = [8, 4, 2].into_iter().map(|part| validation_every / part);
    let validations = (1..=num_steps.div_ceil(validation_every)).map(|at| at * validation_every);
    let mut steps: Vec<u64> = before.chain(validations).map(|step| step.min(num_steps)).collect();
    steps.insert(0, 0);
    steps.dedup();
    steps
}

/// Some rows left out, and a model that is trained on the others.
struct Fold {
    trainer: Trainer<ArEbm, PlacedStep>,
    /// One thread, and a device where there is one.
    workers: Workers,
    train: TrainingRows,
    /// In the units of the data.
    left_out: Vec<f32>,
    /// What these count, where not all count the same.
    weights: Option<Vec<f64>>,
}

/// What a fold's model and proposal have on the rows that were left out; none for a model that is not trained yet.
struct Found {
    model: Option<Vec<f64>>,
    proposal: Vec<f64>,
}

impl Fold {
    #[allow(clippy::too_many_arguments)]
    fn new(
        config: &FitConfig,
        data: &Prepared,
        known: Option<&Selected>,
        workers: &Workers,
        order: &[usize],
        part: Range<usize>,
        fold: usize,
        watch: &Watch,
    ) -> Result<Self> {
        let features = data.columns.len();
        let rows = |rows: &mut dyn Iterator<Item = &usize>| -> Vec<f32> {
            rows.flat_map(|row| &data.train[row * features..][..features]).copied().collect()
        };
        let train = rows(&mut order[..part.start].iter().chain(&order[part.end..]));
        let streams = Streams::new(config.seed).derive("fold", fold as u64);
        let refit = |known: &Selected| {
            known.refit(&numbers(data, train.clone(), &streams), &streams, watch)
        };
        let known = known.map(refit);
        let workers = Workers::from(1).on(workers.device().cloned())?;
        let device = workers.training_device();
        let model = initial_model(config, data, known.transpose()?, &streams, &device)?;
        let weights_of = |rows: &mut dyn Iterator<Item = &usize>| -> Option<Vec<f64>> {
            let [weights, ..] = data.weights.as_ref()?;
            Some(rows.map(|&row| weights[row]).collect())
        };
        let counts = weights_of(&mut order[..part.start].iter().chain(&order[part.end..]));
        let train = TrainingRows::new(data, train, counts.as_deref(), &streams)?;
        let step = PlacedStep::new(&config.step, workers.clone())?;
        let trainer = Trainer::new(model, step, config.training.clone(), streams)?;
        let weights = weights_of(&mut order[part.clone()].iter());
        Ok(Self {
            trainer,
            workers,
            train,
            left_out: data.in_units(&rows(&mut order[part].iter())),
            weights,
        })
    }

    fn advance(&mut self, step: u64, validator: &Validator, watch: &Watch) -> Result<Found> {
        self.trainer.stop_after(step);
        let until = Watch::default();
        let ended = self.trainer.fit_watched(&self.train, &until, &mut |_| {
            if watch.is_stopped() {
                until.stop();
            }
            Ok::<_, TableError>(())
        })?;
        if ended == Ended::Stopped {
            return Err(zhat::Error::Stopped.into());
        }
        self.train.redraw(self.trainer.model(), step, 1)?;
        let weights = self.weights.as_deref();
        let found = validator.validate(
            self.trainer.model(),
            &self.left_out,
            weights,
            self.workers.clone(),
        )?;
        let is_trained = !self.trainer.progress().warming_up;
        let proposal = found.proposal.expect("the autoregressive EBM has a proposal");
        Ok(Found { model: is_trained.then_some(found.log_likelihoods), proposal })
    }
}

/// Does the work for each, on so many threads; whichever is free takes the next.
fn in_parallel<T: Send, R: Send>(
    all: &mut [T],
    threads: usize,
    work: &(dyn Fn(&mut T) -> Result<R> + Sync),
) -> Result<Vec<R>> {
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let threads = if threads == 0 { cores() } else { threads }.min(all.len());
    let mut done: Vec<Option<Result<R>>> = all.iter().map(|_| None).collect();
    let queue = Mutex::new(all.iter_mut().zip(&mut done));
    let take = || queue.lock().expect("no panic").next();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((each, done)) = take() {
                    *done = Some(work(each));
                }
            });
        }
    });
    done.into_iter().map(|done| done.expect("all are done")).collect()
}

/// What models and proposals have on every row, after the steps of each round.
#[derive(Debug, Default)]
struct Curves {
    steps: Vec<u64>,
    /// None while they are not trained, or where they are no numbers.
    model: Vec<Option<Vec<f64>>>,
    /// None where the proposal may not be the answer.
    proposal: Vec<Option<Vec<f64>>>,
    /// What each row counts, where not all count the same.
    weights: Option<Vec<f64>>,
}

impl Curves {
    /// The mean of something over the rows, as they count.
    fn mean_of(&self, values: &[f64]) -> Difference {
        Difference::weighted(values, self.weights.as_deref())
    }

    /// The folds one after the other: every row is left out once.
    fn add(&mut self, step: u64, folds: Vec<Found>, base: BaseAnswers) {
        let finite = |rows: Vec<f64>| rows.iter().all(|row| row.is_finite()).then_some(rows);
        let models: Option<Vec<&[f64]>> = folds.iter().map(|fold| fold.model.as_deref()).collect();
        let proposals: Vec<&[f64]> = folds.iter().map(|fold| &*fold.proposal).collect();
        self.steps.push(step);
        self.model.push(models.and_then(|models| finite(models.concat())));
        self.proposal.push(match base {
            BaseAnswers::Auto => finite(proposals.concat()),
            BaseAnswers::Never => None,
        });
    }

    /// The higher of the two after a round.
    fn highest_of(&self, round: usize) -> f64 {
        let mean = |curve: &[Option<Vec<f64>>]| {
            curve[round].as_ref().map_or(f64::NEG_INFINITY, |rows| self.mean_of(rows).mean)
        };
        mean(&self.model).max(mean(&self.proposal))
    }

    fn rounds_since_best(&self) -> usize {
        let value = |round: &usize| self.highest_of(*round);
        // The first of equals.
        let best = (0..self.steps.len()).rev().max_by(|a, b| value(a).total_cmp(&value(b)));
        // While only the proposal is trained, the model has had no chance yet.
        let with_model = self.model.iter().filter(|model| model.is_some()).count();
        best.map_or(0, |best| self.steps.len() - 1 - best).min(with_model)
    }

    /// The model at its best against the proposal at its best, and then the fewest steps within one standard error.
    fn choose(self, folds: usize) -> CrossValidation {
        let highest = |curve: &[Option<Vec<f64>>]| -> Option<(usize, Vec<f64>)> {
            let mean = |round: &usize| curve[*round].as_ref().map(|rows| self.mean_of(rows).mean);
            let best = (0..curve.len()).rev().filter(|round| curve[*round].is_some());
            let best = best.max_by(|a, b| mean(a).partial_cmp(&mean(b)).expect("finite"))?;
            Some((best, curve[best].clone()?))
        };
        let answer = match (highest(&self.model), highest(&self.proposal)) {
            (Some((_, model)), Some((_, proposal))) => {
                let found = Validated::new(model, f64::NAN).with_weights(self.weights.clone());
                found.or_proposal(proposal).answer
            }
            (None, Some(_)) => Answer::Proposal,
            (_, None) => Answer::Model,
        };
        let curve = match answer {
            Answer::Model => &self.model,
            Answer::Proposal => &self.proposal,
        };
        let best = highest(curve);
        let behind_best: Vec<Option<Difference>> = curve
            .iter()
            .map(|rows| {
                let behind = best.as_ref()?.1.iter().zip(rows.as_ref()?).map(|(of, to)| of - to);
                Some(self.mean_of(&behind.collect::<Vec<_>>()))
            })
            .collect();
        // Where nothing was a number, there is nothing to choose from: all steps.
        let last = self.steps.len() - 1;
        let best = best.map_or(last, |(round, _)| round);
        let within = |behind: &Option<Difference>| {
            behind.is_some_and(|behind| behind.mean <= behind.standard_error)
        };
        let chosen = behind_best[..=best].iter().position(within).unwrap_or(best);
        let found = |rows: &Option<Vec<f64>>| rows.as_deref().map(|rows| self.mean_of(rows));
        let mean = |rows| found(rows).map(|found| found.mean);
        let standard_error = |rows| found(rows).map(|found| found.standard_error);
        let point = |round: usize| CurvePoint {
            step: self.steps[round],
            model: mean(&self.model[round]),
            proposal: mean(&self.proposal[round]),
            standard_error: standard_error(&curve[round]),
            behind_best: behind_best[round],
        };
        CrossValidation {
            folds,
            rows: curve.iter().flatten().next().map_or(0, Vec::len),
            best_step: self.steps[best],
            chosen_step: self.steps[chosen],
            log_likelihood: mean(&curve[chosen]),
            standard_error: standard_error(&curve[chosen]),
            answer,
            curve: (0..self.steps.len()).map(point).collect(),
        }
    }
}

impl CrossValidation {
    /// In a sentence.
    pub fn sentence(&self) -> String {
        let found = self.log_likelihood.map_or_else(String::new, |found| {
            format!(", where rows that were left out have {found:.4} nats")
        });
        format!(
            "Few rows: {}-fold cross-validation chose {} steps (the highest point is at {}){found}; the model was then trained on \
             all {} rows but the test's.",
            self.folds, self.chosen_step, self.best_step, self.rows
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Curves of four rows, all of which have the same value but for a spread that is the same in every round.
    fn curves(model: &[f64], proposal: &[f64], base: BaseAnswers) -> Curves {
        let rows = |mean: f64| [-3.0, 3.0, -1.0, 1.0].iter().map(|spread| mean + spread).collect();
        let mut curves = Curves::default();
        for (round, (&model, &proposal)) in model.iter().zip(proposal).enumerate() {
            let model = (!model.is_nan()).then(|| rows(model));
            let found = vec![Found { model, proposal: rows(proposal) }];
            curves.add(10 * (round as u64 + 1), found, base);
        }
        curves
    }

    #[test]
    fn the_fewest_steps_within_one_error_of_the_best_are_chosen() {
        // The third and fourth round differ from the fifth on two rows of four by 0.1: 0.05, with an error of 0.029.
        let mut curves =
            curves(&[-9.0, -5.0, -2.0, -2.0, -2.0, -7.0], &[-20.0; 6], BaseAnswers::Auto);
        for (round, by) in [(2, [0.1, 0.1, 0.0, 0.0]), (3, [0.1, -0.05, 0.0, 0.0])] {
            let rows = curves.model[round].as_mut().unwrap();
            rows.iter_mut().zip(by).for_each(|(row, by)| *row -= by);
        }
        let found = curves.choose(5);
        // The fourth is behind by 0.0125, with an error of 0.03, the third by more than its error.
        assert_eq!((found.best_step, found.chosen_step), (50, 40));
        assert_eq!((found.answer, found.rows, found.folds), (Answer::Model, 4, 5));
        let behind = found.curve[2].behind_best.unwrap();
        assert!((behind.mean - 0.05).abs() < 1e-12 && behind.standard_error < 0.03, "{behind:?}");
        assert!((found.log_likelihood.unwrap() + 2.0125).abs() < 1e-12);
        let text = found.sentence();
        assert!(text.contains("5-fold cross-validation chose 40 steps"), "{text}");
    }

    #[test]
    fn the_proposal_is_the_answer_where_it_is_no_worse_at_its_own_best() {
        let (model, proposal) = ([f64::NAN, -3.0, -2.5], [-2.0, -2.6, -4.0]);
        let found = curves(&model, &proposal, BaseAnswers::Auto).choose(2);
        assert_eq!((found.answer, found.chosen_step), (Answer::Proposal, 10));
        assert_eq!(found.curve[0].model, None, "while only the proposal was trained");
        let found = curves(&model, &proposal, BaseAnswers::Never).choose(2);
        assert_eq!((found.answer, found.chosen_step), (Answer::Model, 30));
        // At its best before any step that changes it, the model is its proposal, but for the quadrature's error.
        let found = curves(&[-2.0 + 4e-7, -3.0], &[-2.0, -4.0], BaseAnswers::Auto).choose(2);
        assert_eq!((found.answer, found.chosen_step), (Answer::Proposal, 10));
    }

    #[test]
    fn the_folds_are_looked_at_early_at_validations_and_at_the_end() {
        let rounds = |steps, every| rounds(&TrainingConfig::new(steps, 0.1).with_every(every, 1));
        assert_eq!(rounds(250, 100), [0, 12, 25, 50, 100, 200, 250]);
        assert_eq!(rounds(3, 1), [0, 1, 2, 3]);
        assert_eq!(rounds(30, 100), [0, 12, 25, 30]);
    }

    #[test]
    fn patience_counts_from_the_best_and_waits_for_the_model() {
        let since = |model: &[f64], proposal: &[f64]| {
            curves(model, proposal, BaseAnswers::Auto).rounds_since_best()
        };
        assert_eq!(since(&[-2.0, -1.0, -3.0, -4.0], &[-9.0; 4]), 2);
        assert_eq!(since(&[-2.0, -1.0, -3.0, -4.0], &[-9.0, -9.0, -9.0, -0.5]), 0);
        let nan = f64::NAN;
        assert_eq!(since(&[nan, nan, nan, -4.0], &[-1.0, -2.0, -3.0, -4.0]), 1);
    }

    #[test]
    fn work_in_parallel_keeps_its_order_and_its_errors() {
        let double = |value: &mut u64| -> Result<u64> {
            *value += 1;
            if *value == 99 { Err(zhat::Error::Stopped.into()) } else { Ok(2 * *value) }
        };
        let mut values: Vec<u64> = (0..7).collect();
        for threads in [1, 2, 20] {
            let before = values.clone();
            let found = in_parallel(&mut values, threads, &double).unwrap();
            assert_eq!(found, before.iter().map(|value| 2 * (value + 1)).collect::<Vec<_>>());
        }
        assert!(in_parallel(&mut [1, 98, 3], 2, &double).is_err());
    }
}
