//! One cell: a model trained on one set by one approach, and what it is worth.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use zhat::ranks::Workers;
use zhat::rng::Streams;
use zhat_table::data::benchmark::Benchmark;
use zhat_table::density::Estimation;
use zhat_table::fit::{self, FitConfig, Likelihood, Session, StepSeconds, evaluate};
use zhat_table::fitted::Fitted;
use zhat_table::run::{RunLock, of_first};
use zhat_table::{Result, TableError};

use super::approach::Approach;
use super::distance::Distances;
use super::plan::Plan;
use super::{Bench, Event, Observer, preset, read_json, write_json};

/// A cell of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The set.
    pub dataset: Benchmark,
    /// What it is trained by.
    pub criterion: Approach,
    /// Steps, warm-up included.
    pub steps: u64,
    /// Steps of the warm-up.
    pub warm_up: u64,
    /// The paper's number of steps; none beyond the paper.
    pub paper_steps: Option<u64>,
    /// Rows in a step.
    pub batch: usize,
    /// The paper's number of rows in a step; none beyond the paper.
    pub paper_batch: Option<usize>,
    /// Median seconds of a step.
    pub step_seconds: StepSeconds,
    /// Seconds that all steps took.
    pub training_seconds: f64,
    /// Hours that the paper's number of steps would take on this machine; none beyond the paper.
    pub full_hours: Option<f64>,
    /// Step of the model that was kept.
    pub best_step: Option<u64>,
    /// Test log-likelihood, in the standardised units that are published.
    pub likelihood: Option<Likelihood>,
    /// Distances between model and test rows, unless none were asked for.
    pub wasserstein: Option<Distances>,
    /// Why there is no model, where training diverged for good.
    pub diverged: Option<String>,
    /// Log-density of every test row but for `log Z`, to compare criteria row by row; found again from the model.
    #[serde(skip)]
    pub log_p_tilde: Vec<f64>,
}

impl Cell {
    /// How many of the paper's steps it took; none beyond the paper.
    pub fn share_of_paper(&self) -> Option<f64> {
        self.paper_steps.map(|steps| self.steps as f64 / steps as f64)
    }
}

/// What a finished training leaves for the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Trained {
    best_step: Option<u64>,
    diverged: Option<String>,
}

/// The part of a run's `results.json` that is needed here.
#[derive(Serialize, Deserialize)]
struct Results {
    best_step: u64,
    test: Likelihood,
}

/// How long steps took, as they were taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Speed {
    total: f64,
    warm_up: Vec<f32>,
    full: Vec<f32>,
}

/// Steps whose times are kept for the median.
const TIMES: usize = 2000;

impl Bench<'_> {
    /// The cell of a criterion, trained and evaluated as far as it is not; `None` if it was told to stop.
    pub(super) fn cell(
        &self,
        criterion: Approach,
        plan: &Plan,
        observer: &mut Observer,
    ) -> Result<Option<Cell>> {
        let directory = self.cell_directory(criterion);
        let path = directory.join("trained.json");
        let trained = match self.known::<Trained>(&path)? {
            Some(trained) => trained,
            None => {
                let Some(trained) = self.train(criterion, plan, observer)? else { return Ok(None) };
                self.keep(&path, &trained)?;
                trained
            }
        };
        let config = of_first(self.workers, || FitConfig::read_run(&directory))?;
        let speed = of_first(self.workers, || Speed::read(&directory))?;
        let step_seconds = speed.medians(plan, criterion);
        let paper = match criterion {
            Approach::Paper(_) => Some(preset(self.set).config("")),
            Approach::Beyond => None,
        };
        let full_hours = |paper: &FitConfig| {
            // A step takes as long as its rows do.
            let rows = paper.training.batch_size as f64 / config.training.batch_size as f64;
            let full_steps = (paper.training.num_steps - paper.step.warm_up) as f64;
            let full_seconds =
                paper.step.warm_up as f64 * step_seconds.warm_up + full_steps * step_seconds.full;
            rows * full_seconds / 3600.0
        };
        let mut cell = Cell {
            dataset: self.set,
            criterion,
            steps: config.training.num_steps,
            warm_up: config.step.warm_up,
            paper_steps: paper.as_ref().map(|paper| paper.training.num_steps),
            batch: config.training.batch_size,
            paper_batch: paper.as_ref().map(|paper| paper.training.batch_size),
            step_seconds,
            training_seconds: speed.total,
            full_hours: paper.as_ref().map(full_hours),
            best_step: trained.best_step,
            likelihood: None,
            wasserstein: None,
            diverged: trained.diverged,
            log_p_tilde: Vec::new(),
        };
        if cell.diverged.is_none() && !self.evaluate(&mut cell, &config, observer)? {
            return Ok(None);
        }
        Ok(Some(cell))
    }

    /// Trains, or goes on training; a run that diverges for good is a result too.
    fn train(
        &self,
        criterion: Approach,
        plan: &Plan,
        observer: &mut Observer,
    ) -> Result<Option<Trained>> {
        let directory = self.cell_directory(criterion);
        let begin = || -> Result<Session> {
            if of_first(self.workers, || Ok(has_checkpoint(&directory)))? {
                let config = of_first(self.workers, || FitConfig::read_run(&directory))?;
                let data = self.data_for(&config)?;
                let (workers, watch) = (self.workers.clone(), self.watch);
                return Ok(Session::resume(config, data, &directory, workers, watch)?.0);
            }
            // Killed before its first checkpoint: there is nothing to go on with.
            if self.workers.is_first() && directory.exists() {
                RunLock::check(&directory)?;
                fs::remove_dir_all(&directory)
                    .map_err(|source| TableError::Io { path: directory.clone(), source })?;
            }
            let config = self.config(criterion, plan);
            let data = self.data_for(&config)?;
            Session::start(config, data, &directory, self.workers.clone(), self.watch)
        };
        let mut session = match begin() {
            // With other ranks it is an error, which ends them: they may be past the place where this one was stopped.
            Err(error) if error.is_stop() && self.workers.is_alone() => return Ok(None),
            session => session?,
        };
        let (from, steps) = (session.steps_taken(), session.config().training.num_steps);
        observer(&Event::Training { set: self.set, criterion, from, steps });
        let mut speed = of_first(self.workers, || Speed::read(&directory))?;
        let is_first = self.workers.is_first();
        let warm_up = session.config().step.warm_up;
        let mut last: Option<Instant> = None;
        let mut timed = |event: &fit::Event| {
            if let (fit::Event::Step { step, .. }, Some(last)) = (event, last) {
                speed.add(last.elapsed().as_secs_f64(), *step <= warm_up);
            }
            if matches!(event, fit::Event::Validation { .. }) && is_first {
                // A killed run loses no more times than steps; if it fails, so will the checkpoint, which says so.
                let _ = speed.write(&directory);
            }
            // A validation is no part of the step after it.
            last = Some(Instant::now());
            observer(&Event::Fit(event));
        };
        let result = session.run(None, self.watch, &mut timed);
        if is_first {
            speed.write(&directory)?;
        }
        match result {
            Ok(None) => Ok(None),
            Ok(Some(report)) => {
                if is_first {
                    zhat_table::report::write(&self.open(criterion, self.workers.alone())?)?;
                }
                Ok(Some(Trained { best_step: Some(report.best_step), diverged: None }))
            }
            Err(error @ TableError::Zhat(zhat::Error::Diverged { .. })) => {
                Ok(Some(Trained { best_step: None, diverged: Some(error.to_string()) }))
            }
            Err(error) => Err(error),
        }
    }

    fn open(&self, criterion: Approach, workers: Workers) -> Result<Fitted> {
        let directory = self.cell_directory(criterion);
        Fitted::open(&directory, workers, Arc::clone(self.watch))
    }

    /// Fills in likelihood and distances; false if it was told to stop.
    fn evaluate(
        &self,
        cell: &mut Cell,
        config: &FitConfig,
        observer: &mut Observer,
    ) -> Result<bool> {
        let fitted = self.open(cell.criterion, self.workers.clone())?;
        let (particles, estimates) = (self.settings.particles, self.settings.estimates);
        // What training ended with, what an earlier evaluation found, or a new one.
        let path = fitted.run().root().join("likelihood.json");
        // A fit whose model has no Z gives no figure; the table has one all the same, and says so.
        // Where nothing is estimated, there is nothing to estimate otherwise.
        let fits = |known: &Likelihood| {
            let is_as_asked = (known.particles, known.estimates) == (particles, estimates);
            (known.estimates == 0 || is_as_asked) && known.log_likelihood.is_finite()
        };
        let results: Option<Results> = self.known(&fitted.run().results())?;
        cell.best_step = results.as_ref().map(|results| results.best_step).or(cell.best_step);
        let ended_with = results.map(|results| results.test).filter(fits);
        let test = self.data.in_units(&self.data.test);
        cell.likelihood = ended_with.or(self.known(&path)?.filter(fits));
        if cell.likelihood.is_none() {
            observer(&Event::Fit(&fit::Event::Evaluating));
            let streams = Streams::new(config.seed).derive("test", 0);
            let settings = Estimation::new(particles, estimates);
            let found = evaluate(fitted.density(), &test, None, &settings, &streams)?;
            self.keep(&path, &found)?;
            cell.likelihood = Some(found);
        }
        cell.log_p_tilde = fitted.density().score(&test)?.log_p_tilde;
        if self.settings.points_of(self.set) > 0 {
            cell.wasserstein = self.distances(cell.criterion, fitted.density(), observer)?;
            return Ok(cell.wasserstein.is_some());
        }
        Ok(true)
    }
}

fn has_checkpoint(directory: &Path) -> bool {
    let ending = |path: &Path| path.extension().is_some_and(|ending| ending == "checkpoint");
    fs::read_dir(directory.join("checkpoint"))
        .is_ok_and(|entries| entries.flatten().any(|entry| ending(&entry.path())))
}

impl Speed {
    fn read(directory: &Path) -> Result<Self> {
        Ok(read_json(&directory.join("speed.json"))?.unwrap_or_default())
    }

    fn write(&self, directory: &Path) -> Result<()> {
        write_json(&directory.join("speed.json"), self)
    }

    fn add(&mut self, seconds: f64, is_warm_up: bool) {
        self.total += seconds;
        let times = if is_warm_up { &mut self.warm_up } else { &mut self.full };
        if times.len() < TIMES {
            times.push(seconds as f32);
        }
    }

    /// The medians, or what the plan had timed where no step was taken.
    fn medians(&self, plan: &Plan, criterion: Approach) -> StepSeconds {
        let planned = plan.seconds.get(criterion.name()).copied();
        let planned = planned.unwrap_or(StepSeconds { warm_up: f64::NAN, full: f64::NAN });
        let median = |times: &[f32], otherwise: f64| {
            let mut times = times.to_vec();
            times.sort_by(f32::total_cmp);
            times.get(times.len() / 2).map_or(otherwise, |&time| f64::from(time))
        };
        let full = median(&self.full, planned.full);
        // A very short run has no warm-up at all; a step of it takes at most as long as one after it.
        let warm_up = median(&self.warm_up, planned.warm_up);
        StepSeconds { warm_up: if warm_up.is_nan() { full } else { warm_up }, full }
    }
}
