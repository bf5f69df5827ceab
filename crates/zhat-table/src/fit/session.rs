//! A fit from the first step to the last, which can be stopped at any moment and taken up again: a directory, events and a
//! trainer.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use zhat::ar::{ArEbm, DeviceStep, PlacedStep};
use zhat::gaussian_mixture::Selected;
use zhat::host::parameters;
use zhat::ranks::Workers;
use zhat::rng::Streams;
use zhat::train::{self, Difference, Ended, Trainer, TrainerState};
use zhat::watch::Watch;

use super::beside::Beside;
use super::clock::Limit;
use super::config::FitConfig;
use super::events::{Event, FitReport};
use super::folds::{Round, cross_validate};
use super::known::{initial_model, stack};
use super::log::Log;
use super::recalibration::KeptBack;
use super::rows::TrainingRows;
use super::validation::Validator;
use crate::error::{Result, TableError};
use crate::prepare::Prepared;
use crate::run::{
    Checkpoints, EventFile, Metrics, RunDirectory, RunLock, sealed, sha256, write_atomically,
};

/// A fit that is under way.
pub struct Session {
    pub(super) run: RunDirectory,
    /// No other process writes there as long as the first rank holds this.
    _lock: Option<RunLock>,
    pub(super) config: FitConfig,
    pub(super) data: Prepared,
    /// All ranks train, and the first of them writes.
    pub(super) workers: Workers,
    /// The mixtures beside the model's head.
    known: Option<Selected>,
    /// The mixtures that may come to stand there after training.
    pub(super) beside: Option<Beside>,
    pub(super) trainer: Trainer<ArEbm, PlacedStep>,
    log: Log,
    checkpoints: Checkpoints,
    /// Seconds that the run took before this session.
    seconds: f64,
    /// Missing cells of the training part, as they were drawn last before this session.
    drawn: Vec<f32>,
    /// By which the base is recalibrated at the end.
    pub(super) kept_back: KeptBack,
}

/// What a checkpoint says beside the state of the trainer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Note {
    metrics_bytes: u64,
    seconds: f64,
    data_hash: String,
    /// Missing cells of the training part, as they were drawn last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing: Vec<f32>,
}

impl Session {
    /// Starts a run in a new directory, or in one whose run was killed before its first checkpoint. It may take a while, and can
    /// be stopped. Of several ranks, all of which start it with the same data, the first alone touches the directory.
    pub fn start(
        mut config: FitConfig,
        data: Prepared,
        out: &Path,
        workers: impl Into<Workers>,
        watch: &Watch,
    ) -> Result<Self> {
        let workers = workers.into();
        config.validate()?;
        // Before there is a directory.
        config.check_memory(data.columns.len(), workers.threads())?;
        if workers.device().is_some() {
            DeviceStep::check(&config.step, &config.shape_of(&data))?;
        }
        config.clear_of(&data);
        let (run, lock) = match workers.is_first() {
            true => {
                let (run, lock) = RunDirectory::create(out)?;
                config.write(&run)?;
                (run, Some(lock))
            }
            false => (RunDirectory::elsewhere(out), None),
        };
        Self::new(run, lock, config, data, workers, watch)?.begun()
    }

    /// Goes on with a run, as it was or with settings that make it no other run; the data must be the same. A run without a
    /// checkpoint begins. Gives warnings about checkpoints that were damaged.
    pub fn resume(
        config: FitConfig,
        data: Prepared,
        out: &Path,
        workers: impl Into<Workers>,
        watch: &Watch,
    ) -> Result<(Self, Vec<String>)> {
        let workers = workers.into();
        config.validate()?;
        let (run, lock) = match workers.is_first() {
            true => {
                let run = RunDirectory::open(out)?;
                let lock = run.lock()?;
                run.check_writable()?;
                config.check_resumed(&FitConfig::read(&run.config())?)?;
                (run, Some(lock))
            }
            false => (RunDirectory::elsewhere(out), None),
        };
        let mut session = Self::new(run, lock, config, data, workers, watch)?;
        let is_begun = session.workers.of_first(vec![u8::from(session.run.is_begun())]);
        if is_begun == [0] {
            session.write_config()?;
            return Ok((session.begun()?, Vec::new()));
        }
        let broken = |reason: &str| TableError::model(&session.run.checkpoints(), reason.into());
        let (state, warnings) = match session.workers.is_first() {
            true => session.checkpoints.load()?,
            false => (None, Vec::new()),
        };
        let state = match (state, session.workers.is_first()) {
            (None, true) => return Err(broken("there is no whole checkpoint to go on from")),
            (Some(state), _) if session.workers.is_alone() => state,
            (state, _) => {
                let bytes = state.map_or_else(Vec::new, |state| state.to_bytes());
                TrainerState::from_bytes(&session.workers.of_first(bytes))?
            }
        };
        let note: Note =
            serde_json::from_str(&state.note).map_err(|_| broken("a checkpoint has no note"))?;
        if note.data_hash != session.data.hash {
            let (expected, found) = (note.data_hash, session.data.hash);
            return Err(TableError::OtherData { expected, found });
        }
        let num_steps = session.config.training.num_steps;
        if state.progress.step > num_steps {
            return Err(TableError::config(format!(
                "training.num-steps is {num_steps}, but the run has taken {} steps already",
                state.progress.step
            )));
        }
        session.write_config()?;
        if session.workers.is_first() {
            session.checkpoints.forget_after(state.progress.step)?;
        }
        session.log.metrics = session.metrics(note.metrics_bytes)?;
        session.seconds = note.seconds;
        session.drawn = note.missing;
        session.trainer.restore(state)?;
        Ok((session, warnings))
    }

    /// The same with its first checkpoint on disk.
    fn begun(mut self) -> Result<Self> {
        self.log.metrics = self.metrics(0)?;
        let note = Note {
            metrics_bytes: 0,
            seconds: 0.0,
            data_hash: self.data.hash.clone(),
            missing: Vec::new(),
        };
        let mut state = self.trainer.state()?;
        check_alike(&self.workers, self.trainer.model(), 0)?;
        if self.workers.is_first() {
            save(&self.checkpoints, &mut state, &note)?;
        }
        Ok(self)
    }

    fn write_config(&self) -> Result<()> {
        match self.workers.is_first() {
            true => self.config.write(&self.run),
            false => Ok(()),
        }
    }

    /// The metrics of the run, cut off after so many bytes.
    fn metrics(&self, bytes: u64) -> Result<Metrics> {
        match self.workers.is_first() {
            true => Metrics::open(&self.run.metrics(), bytes),
            false => Ok(Metrics::default()),
        }
    }

    fn new(
        run: RunDirectory,
        lock: Option<RunLock>,
        config: FitConfig,
        mut data: Prepared,
        workers: Workers,
        watch: &Watch,
    ) -> Result<Self> {
        let threads = workers.threads();
        config.check_memory(data.columns.len(), threads)?;
        if !workers.is_alone() && !workers.agree(data.hash.as_bytes()) {
            let reason = "the ranks have not read the same data: give all of them the same file";
            return Err(TableError::config(reason.into()));
        }
        let streams = Streams::new(config.seed);
        let known = stack(&config, &data, threads, watch)?;
        let beside = Beside::fit(&config, &data, threads, watch)?;
        let mixture = known.as_ref().map(|known| known.mixture.clone());
        let device = workers.training_device();
        let model = initial_model(&config, &data, mixture, &streams, &device)?;
        let model = config.start.apply(model, &data, threads, &streams)?;
        let step = PlacedStep::new(&config.step, workers.clone())?;
        let trainer = Trainer::new(model, step, config.training.clone(), streams)?;
        let validation = std::mem::take(&mut data.validation);
        let kept_back = KeptBack::new(&config, &data, &validation);
        let trainer = if config.is_cross_validated(&data) {
            data.train.extend(validation);
            if let Some([train, validation, _]) = &mut data.weights {
                train.append(validation);
            }
            trainer
        } else if validation.is_empty() {
            trainer
        } else {
            let rows = data.in_units(config.validation.of_rows(&validation, data.columns.len()));
            let number = rows.len() / data.columns.len();
            let weights = data.weights.as_ref().map(|[_, weights, _]| weights[..number].to_vec());
            let validator = Validator::new(&config, &data);
            let validation = validator.into_validation(rows, weights, workers.clone());
            trainer.with_validation(validation)
        };
        let log = Log {
            // As it is: only a checkpoint says how much of it counts.
            metrics: match workers.is_first() {
                true => Metrics::open(&run.metrics(), u64::MAX)?,
                false => Metrics::default(),
            },
            events: None,
            every: config.log_every,
        };
        let checkpoints = Checkpoints::new(run.checkpoints());
        Ok(Self {
            run,
            _lock: lock,
            config,
            data,
            workers,
            known,
            beside,
            trainer,
            log,
            checkpoints,
            seconds: 0.0,
            drawn: Vec::new(),
            kept_back,
        })
    }

    /// Writes TensorBoard event files too, into `tensorboard/` of the run.
    pub fn with_tensorboard(mut self) -> Result<Self> {
        if self.workers.is_first() {
            self.log.events = Some(EventFile::create(&self.run.root().join("tensorboard"))?);
        }
        Ok(self)
    }

    /// Steps taken so far.
    pub fn steps_taken(&self) -> u64 {
        self.trainer.progress().step
    }

    /// The configuration.
    pub fn config(&self) -> &FitConfig {
        &self.config
    }

    /// Trains to the end, evaluates, and writes the model and the results; `None` if it was told to stop before.
    pub fn run(
        &mut self,
        limit: Option<&Limit>,
        watch: &Arc<Watch>,
        observer: &mut dyn FnMut(&Event),
    ) -> Result<Option<FitReport>> {
        let started = Instant::now() - Duration::from_secs_f64(self.seconds);
        if self.config.is_cross_validated(&self.data)
            && self.config.training.stop_after.is_none()
            && !self.choose_steps(limit, watch, observer)?
        {
            return Ok(None);
        }
        let ended = match self.train(limit, started, watch, observer)? {
            _ if self.workers.is_stopped(watch) => return Ok(None),
            Ended::Done => "done",
            Ended::Patience => "patience",
            Ended::Stopped => limit.map_or("stopped", Limit::name),
        };
        observer(&Event::Evaluating);
        match self.finish(ended, started, watch) {
            Err(TableError::Zhat(zhat::Error::Stopped)) => Ok(None),
            result => result.map(Some),
        }
    }

    /// Chooses the number of steps by cross-validation and writes it down, so that it is never done twice; false if it was
    /// told to stop.
    fn choose_steps(
        &mut self,
        limit: Option<&Limit>,
        watch: &Watch,
        observer: &mut dyn FnMut(&Event),
    ) -> Result<bool> {
        let (config, steps) = (&self.config, self.config.training.num_steps);
        // The model of all rows is trained after the folds, and for as long as each of them.
        let folds = config.validation.folds as f64;
        let is_over =
            || limit.is_some_and(|limit| limit.is_over(self.seconds, folds / (folds + 1.0), true));
        let mut tell = |Round { step, log_likelihood }| {
            observer(&Event::CrossValidation { step, steps, log_likelihood });
        };
        let Self { data, workers, known, .. } = self;
        let known = known.as_ref();
        // Few rows are few for one rank too.
        let found = match workers.is_first() {
            true => cross_validate(config, data, known, workers, watch, &is_over, &mut tell)?,
            false => None,
        };
        if let Some(found) = &found {
            write_atomically(&self.run.cross_validation(), &sealed(found, &[]))?;
        }
        let chosen = found.map(|found| found.chosen_step.to_le_bytes().to_vec());
        let chosen = workers.of_first(chosen.unwrap_or_default());
        let Ok(chosen) = <[u8; 8]>::try_from(chosen).map(u64::from_le_bytes) else {
            return Ok(false);
        };
        self.config.training.stop_after = Some(chosen);
        self.write_config()?;
        self.trainer.stop_after(chosen);
        Ok(true)
    }

    fn train(
        &mut self,
        limit: Option<&Limit>,
        started: Instant,
        watch: &Watch,
        observer: &mut dyn FnMut(&Event),
    ) -> Result<Ended> {
        let earlier = self.seconds;
        let Self { run, data, trainer, log, checkpoints, config, .. } = self;
        let streams = Streams::new(config.seed);
        let train = std::mem::take(&mut data.train);
        let weights = data.weights.as_ref().map(|[train, ..]| &train[..]);
        let rows = TrainingRows::new(data, train, weights, &streams)?;
        rows.restore(&self.drawn);
        let mut drawn = rows.drawn();
        let redraw_every = rows.redraw_every(&config.training);
        let workers = &self.workers;
        let is_first = workers.is_first();
        // Training ends by the watch or by the clock, and what comes after it by the watch alone.
        let until = Watch::default();
        let mut kept = log.metrics.bytes();
        let (last, validation_every) =
            (config.training.last_step(), config.training.validation_every);
        let is_over = |step: u64| {
            let at_validation = step.is_multiple_of(validation_every);
            limit.is_some_and(|limit| limit.is_over(earlier, 1.0, at_validation))
        };
        let mut handle = |event: train::Event<ArEbm, PlacedStep>| -> Result<()> {
            match event {
                train::Event::Step { step, model, report, learning_rate, .. } => {
                    log.step(step, report, learning_rate)?;
                    if step.is_multiple_of(redraw_every) {
                        rows.redraw(model, step, workers.threads())?;
                    }
                    observer(&Event::Step { step, steps: last, report });
                    if step.is_multiple_of(config.training.checkpoint_every) {
                        check_alike(workers, model, step)?;
                    }
                    // Whoever stops, stops with all others after the same step.
                    if workers.any(watch.is_stopped() || is_over(step)) {
                        until.stop();
                    }
                }
                train::Event::Validation { step, found, best, ahead } => {
                    let Difference { mean: log_likelihood, standard_error } =
                        found.mean_of(&found.log_likelihoods);
                    log.append(
                        step,
                        &[
                            ("validation", Some(log_likelihood)),
                            ("validation_error", Some(standard_error)),
                            ("validation_proposal", found.proposal_log_likelihood()),
                            ("validation_ahead", ahead.map(|ahead| ahead.mean)),
                            ("validation_ahead_error", ahead.map(|ahead| ahead.standard_error)),
                        ],
                    )?;
                    observer(&Event::Validation { step, log_likelihood, best });
                }
                train::Event::Checkpoint(state) => {
                    kept = log.metrics.bytes();
                    drawn = rows.drawn();
                    let note = Note {
                        metrics_bytes: kept,
                        seconds: started.elapsed().as_secs_f64(),
                        data_hash: data.hash.clone(),
                        missing: drawn.clone(),
                    };
                    if is_first {
                        save(checkpoints, state, &note)?;
                    }
                }
                train::Event::RolledBack { from, to, reason, rate_factor } => {
                    if is_first {
                        log.metrics = Metrics::open(&run.metrics(), kept)?;
                    }
                    rows.restore(&drawn);
                    observer(&Event::Warning(&format!(
                        "step {from}: {reason} Back to step {to} with the learning rate times {rate_factor}."
                    )));
                }
            }
            Ok(())
        };
        if workers.is_stopped(watch) {
            until.stop();
        }
        let ended = trainer.fit_watched(&rows, &until, &mut handle)?;
        // The model that the time leaves behind may be the best.
        let is_validated = trainer.progress().step.is_multiple_of(validation_every);
        if ended == Ended::Stopped && !workers.is_stopped(watch) && !is_validated {
            trainer.validate(&mut handle)?;
        }
        Ok(ended)
    }
}

fn save(checkpoints: &Checkpoints, state: &mut TrainerState, note: &Note) -> Result<()> {
    state.note = serde_json::to_string(note).expect("a note is plain data");
    checkpoints.save(state)
}

/// An error unless all ranks have the same model, bit by bit: only then do they go on as one.
fn check_alike(workers: &Workers, model: &ArEbm, step: u64) -> Result<()> {
    if workers.is_alone() {
        return Ok(());
    }
    let bytes: Vec<u8> = parameters(model).iter().flat_map(|x| x.to_le_bytes()).collect();
    if workers.agree(sha256(&bytes).as_bytes()) {
        return Ok(());
    }
    Err(TableError::config(format!(
        "the ranks have come to different models by step {step}. All machines must have the same program, and processors with the \
         same instructions; resume the run from its last checkpoint on machines that are alike"
    )))
}
