//! A fit from the first step to the last, which can be stopped at any moment and taken up again: a directory, events and a
//! trainer.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use burn::tensor::{Device, Tensor, TensorData};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use zhat::ar::{ArEbm, ArStep};
use zhat::rng::Streams;
use zhat::train::{self, Best, Ended, Rows, Trainer, TrainerState, Validated};
use zhat::watch::Watch;

use super::config::FitConfig;
use super::evaluation::evaluate;
use super::events::{Event, FitReport};
use crate::density::{ArDensity, Estimation};
use crate::error::{Result, TableError};
use crate::prepare::Prepared;
use crate::run::{
    Checkpoints, EventFile, Metrics, ModelCard, RunDirectory, save_model, write_atomically,
};

/// A fit that is under way.
pub struct Session {
    run: RunDirectory,
    config: FitConfig,
    data: Prepared,
    threads: usize,
    trainer: Trainer<ArEbm, ArStep>,
    log: Log,
    checkpoints: Checkpoints,
    /// Seconds that the run took before this session.
    seconds: f64,
}

/// What a checkpoint says beside the state of the trainer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Note {
    metrics_bytes: u64,
    seconds: f64,
    data_hash: String,
}

/// Where the numbers of a run go while it goes on.
struct Log {
    metrics: Metrics,
    events: Option<EventFile>,
    every: u64,
}

impl Session {
    /// Starts a run in a new directory.
    pub fn start(config: FitConfig, data: Prepared, out: &Path, threads: usize) -> Result<Self> {
        config.validate()?;
        let run = RunDirectory::create(out)?;
        write_atomically(&run.config(), config.to_toml().as_bytes())?;
        let session = Self::new(run, config, data, threads)?;
        let Self { checkpoints, trainer, log, data, .. } = &session;
        save(checkpoints, &mut trainer.state()?, log.metrics.bytes(), 0.0, &data.hash)?;
        Ok(session)
    }

    /// Goes on with a run, as it was or with settings that make it no other run; the data must be the same. Gives warnings
    /// about checkpoints that were damaged.
    pub fn resume(
        config: FitConfig,
        data: Prepared,
        out: &Path,
        threads: usize,
    ) -> Result<(Self, Vec<String>)> {
        config.validate()?;
        let run = RunDirectory::open(out)?;
        run.check_writable()?;
        config.check_resumed(&FitConfig::read(&run.config())?)?;
        let mut session = Self::new(run, config, data, threads)?;
        let (state, warnings) = session.checkpoints.load()?;
        let broken = |reason: &str| TableError::model(&session.run.checkpoints(), reason.into());
        let state = state.ok_or_else(|| broken("there is no whole checkpoint to go on from"))?;
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
        write_atomically(&session.run.config(), session.config.to_toml().as_bytes())?;
        session.checkpoints.forget_after(state.progress.step)?;
        session.log.metrics = Metrics::open(&session.run.metrics(), note.metrics_bytes)?;
        session.seconds = note.seconds;
        session.trainer.restore(state)?;
        Ok((session, warnings))
    }

    fn new(
        run: RunDirectory,
        config: FitConfig,
        mut data: Prepared,
        threads: usize,
    ) -> Result<Self> {
        let streams = Streams::new(config.seed);
        let shape = config.shape(data.columns.len());
        let model = shape.init(&Device::flex().autodiff(), &mut streams.stream("init", 0, 0))?;
        let step = ArStep::new(&config.step, threads)?;
        let trainer = Trainer::new(model, step, config.training.clone(), streams)?;
        let trainer = match data.validation.is_empty() {
            true => trainer,
            false => trainer.with_validation(validation(&config, &mut data, threads)),
        };
        let log = Log {
            // As it is: only a checkpoint says how much of it counts.
            metrics: Metrics::open(&run.metrics(), u64::MAX)?,
            events: None,
            every: config.log_every,
        };
        let checkpoints = Checkpoints::new(run.checkpoints());
        Ok(Self { run, config, data, threads, trainer, log, checkpoints, seconds: 0.0 })
    }

    /// Writes TensorBoard event files too, into `tensorboard/` of the run.
    pub fn with_tensorboard(mut self) -> Result<Self> {
        self.log.events = Some(EventFile::create(&self.run.root().join("tensorboard"))?);
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
        max_time: Option<Duration>,
        watch: &Arc<Watch>,
        observer: &mut dyn FnMut(&Event),
    ) -> Result<Option<FitReport>> {
        let started = Instant::now() - Duration::from_secs_f64(self.seconds);
        let ended = match self.train(max_time, started, watch, observer)? {
            _ if watch.is_stopped() => return Ok(None),
            Ended::Done => "done",
            Ended::Patience => "patience",
            Ended::Stopped => "max-time",
        };
        observer(&Event::Evaluating);
        match self.finish(ended, started, watch) {
            Err(TableError::Zhat(zhat::Error::Stopped)) => Ok(None),
            result => result.map(Some),
        }
    }

    fn train(
        &mut self,
        max_time: Option<Duration>,
        started: Instant,
        watch: &Watch,
        observer: &mut dyn FnMut(&Event),
    ) -> Result<Ended> {
        let Self { run, data, trainer, log, checkpoints, config, .. } = self;
        let shape = [data.train.len() / data.columns.len(), data.columns.len()];
        let rows = TensorData::new(std::mem::take(&mut data.train), shape);
        let rows = Rows::new(Tensor::from_data(rows, &Device::flex()));
        // Training ends by the watch or by the clock, and what comes after it by the watch alone.
        let until = Watch::default();
        let mut kept = log.metrics.bytes();
        let mut handle = |event: train::Event<ArEbm, ArStep>| -> Result<()> {
            match event {
                train::Event::Step { step, report, learning_rate, .. } => {
                    log.step(step, report, learning_rate)?;
                    observer(&Event::Step { step, steps: config.training.num_steps, report });
                    if watch.is_stopped() || max_time.is_some_and(|limit| started.elapsed() > limit)
                    {
                        until.stop();
                    }
                }
                train::Event::Validation { step, found, best } => {
                    let log_likelihood = found.log_likelihood;
                    log.append(
                        step,
                        &[
                            ("validation", Some(log_likelihood)),
                            ("validation_proposal", found.proposal_log_likelihood),
                        ],
                    )?;
                    observer(&Event::Validation { step, log_likelihood, best });
                }
                train::Event::Checkpoint(state) => {
                    kept = log.metrics.bytes();
                    save(checkpoints, state, kept, started.elapsed().as_secs_f64(), &data.hash)?;
                }
                train::Event::RolledBack { from, to, reason, rate_factor } => {
                    log.metrics = Metrics::open(&run.metrics(), kept)?;
                    observer(&Event::Warning(&format!(
                        "step {from}: {reason} Back to step {to} with the learning rate times {rate_factor}."
                    )));
                }
            }
            Ok(())
        };
        if watch.is_stopped() {
            until.stop();
        }
        let ended = trainer.fit_watched(&rows, &until, &mut handle)?;
        if ended == Ended::Stopped && !watch.is_stopped() {
            trainer.validate(&mut handle)?;
        }
        Ok(ended)
    }

    /// Writes the best model, evaluates it on the test part and writes the results.
    fn finish(&mut self, ended: &str, started: Instant, watch: &Arc<Watch>) -> Result<FitReport> {
        let (model, progress) = (self.trainer.best_model(), self.trainer.progress());
        let best = progress.best.unwrap_or(Best { step: progress.step, log_likelihood: f64::NAN });
        let criterion = self.config.step.criterion.name().to_owned();
        let card = ModelCard {
            format: crate::run::FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            model: model.shape.clone(),
            columns: self.data.columns.clone(),
            standardiser: self.data.standardiser.clone(),
            data_hash: self.data.hash.clone(),
            criterion: criterion.clone(),
            step: best.step,
        };
        save_model(&self.run, model, &card)?;
        let settings = &self.config.evaluation;
        let stages =
            self.data.test.len() + settings.particles * settings.estimates * card.columns.len();
        watch.begin(stages as u64);
        let density = density(&self.config, &self.data, self.threads);
        let test = evaluate(
            &density(model, Arc::clone(watch))?,
            &self.data.in_units(&self.data.test),
            settings,
            &Streams::new(self.config.seed).derive("test", 0),
        )?;
        let report = FitReport {
            version: card.version,
            source: self.config.data.source.clone(),
            columns: card.columns,
            criterion,
            rows: self.data.rows,
            steps: progress.step,
            best_step: best.step,
            validation_log_likelihood: best.log_likelihood,
            ended: ended.into(),
            test,
            truth: self.data.truth_of_test,
            seconds: started.elapsed().as_secs_f64(),
        };
        let json = serde_json::to_vec_pretty(&report).expect("a report is plain data");
        write_atomically(&self.run.results(), &json)?;
        Ok(report)
    }
}

fn save(
    checkpoints: &Checkpoints,
    state: &mut TrainerState,
    metrics_bytes: u64,
    seconds: f64,
    data_hash: &str,
) -> Result<()> {
    let note = Note { metrics_bytes, seconds, data_hash: data_hash.into() };
    state.note = serde_json::to_string(&note).expect("a note is plain data");
    checkpoints.save(state)
}

/// The log-likelihood of some rows of the validation part.
fn validation(
    config: &FitConfig,
    data: &mut Prepared,
    threads: usize,
) -> impl FnMut(&ArEbm, u64) -> zhat::Result<Validated> + 'static {
    let features = data.columns.len();
    let standard = std::mem::take(&mut data.validation);
    let mut rows = data.in_units(&standard);
    if config.validation.rows > 0 {
        rows.truncate(config.validation.rows * features);
    }
    let (streams, settings) =
        (Streams::new(config.seed), Estimation::new(config.validation.particles, 1));
    let density = density(config, data, threads);
    move |model, step| {
        let streams = streams.derive("validation", step);
        let found = density(model, Arc::default())
            .and_then(|density| evaluate(&density, &rows, &settings, &streams));
        let found = found.map_err(|error| match error {
            TableError::Zhat(error) => error,
            other => zhat::Error::BrokenState { reason: other.to_string() },
        })?;
        Ok(Validated {
            log_likelihood: found.log_likelihood,
            se_log_z: found.se_log_z,
            proposal_log_likelihood: Some(found.proposal_log_likelihood),
        })
    }
}

/// How a model of this fit becomes a density.
fn density(
    config: &FitConfig,
    data: &Prepared,
    threads: usize,
) -> impl Fn(&ArEbm, Arc<Watch>) -> Result<ArDensity> + 'static {
    let (columns, standardiser) = (data.columns.clone(), data.standardiser.clone());
    let criterion = config.step.criterion;
    move |model, watch| ArDensity::new(model, criterion, &columns, &standardiser, threads, watch)
}

impl Log {
    fn step(&mut self, step: u64, report: &train::StepReport, learning_rate: f64) -> Result<()> {
        if !step.is_multiple_of(self.every) {
            return Ok(());
        }
        self.append(
            step,
            &[
                ("loss", Some(report.loss)),
                ("proposal_nll", report.proposal_nll),
                ("learning_rate", Some(learning_rate)),
                ("gradient_norm", Some(report.gradient_norm)),
                ("effective_sample_size", report.effective_sample_size),
            ],
        )
    }

    /// Appends what was measured to the metrics, and to the event file.
    fn append(&mut self, step: u64, measured: &[(&str, Option<f64>)]) -> Result<()> {
        let numbers = measured.iter().filter_map(|&(name, number)| Some((name, number?)));
        let mut line = IndexMap::from([("step", serde_json::Value::from(step))]);
        line.extend(numbers.clone().map(|(name, number)| (name, number.into())));
        self.metrics.append(&line)?;
        let Some(events) = &mut self.events else { return Ok(()) };
        let tag = |name| match name {
            "validation" => "validation/model",
            "validation_proposal" => "validation/proposal",
            other => other,
        };
        events.scalars(step, &numbers.map(|(name, number)| (tag(name), number)).collect::<Vec<_>>())
    }
}
