//! A fit from the first step to the last, which can be stopped at any moment and taken up again.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use burn::module::Module;
use burn::optim::{AdamConfig, ModuleOptimizer};
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, Device};
use serde::{Deserialize, Serialize};
use zhat::ar::{ArEbm, ArEbmConfig, ArStep};
use zhat::rng::Streams;
use zhat::train::Schedule;

use super::config::{EvaluationConfig, FitConfig};
use super::evaluation::evaluate;
use super::events::{Event, FitReport, MetricsRecord, Observer};
use super::guard::{Guard, MAX_ROLLBACKS};
use crate::density::{ArDensity, Density, Estimation};
use crate::error::{Result, TableError};
use crate::prepare::Prepared;
use crate::run::{
    Checkpoint, Checkpoints, EventFile, Metrics, ModelCard, RunDirectory, save_model,
    write_atomically,
};

/// A fit that is under way.
pub struct Session {
    run: RunDirectory,
    config: FitConfig,
    data: Prepared,
    shape: ArEbmConfig,
    streams: Streams,
    threads: usize,
    device: Device,
    model: ArEbm,
    optimiser: ModuleOptimizer,
    best: Option<ArEbm>,
    state: State,
    step: ArStep,
    metrics: Metrics,
    events: Option<EventFile>,
    checkpoints: Checkpoints,
    order: Option<(u64, Vec<usize>)>,
    started: Instant,
}

/// What a checkpoint says beside the parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    /// Steps taken.
    step: u64,
    /// The learning rate is multiplied by this, which the guard lowers.
    rate_factor: f64,
    rollbacks: u32,
    guard: Guard,
    best: Option<Best>,
    validations_since_best: u32,
    metrics_bytes: u64,
    seconds: f64,
    data_hash: String,
}

/// The best validation so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Best {
    step: u64,
    log_likelihood: f64,
}

/// Why the training loop was left.
enum Ended {
    Done,
    Patience,
    MaxTime,
    Stopped,
}

impl Session {
    /// Starts a run in a new directory.
    pub fn start(config: FitConfig, data: Prepared, out: &Path, threads: usize) -> Result<Self> {
        config.validate()?;
        let run = RunDirectory::create(out)?;
        write_atomically(&run.config(), config.to_toml().as_bytes())?;
        let mut session = Self::new(run, config, data, threads)?;
        session.save()?;
        Ok(session)
    }

    /// Goes on with a run; the data must be the same. Gives warnings about checkpoints that were damaged.
    pub fn resume(data: Prepared, out: &Path, threads: usize) -> Result<(Self, Vec<String>)> {
        let run = RunDirectory::open(out)?;
        run.check_writable()?;
        let config = FitConfig::read(&run.config())?;
        let mut session = Self::new(run, config, data, threads)?;
        let warnings = session.load()?;
        let expected = session.state.data_hash.clone();
        if expected != session.data.hash {
            return Err(TableError::OtherData { expected, found: session.data.hash.clone() });
        }
        session.checkpoints.forget_after(session.state.step)?;
        session.metrics = Metrics::open(&session.run.metrics(), session.state.metrics_bytes)?;
        Ok((session, warnings))
    }

    fn new(run: RunDirectory, config: FitConfig, data: Prepared, threads: usize) -> Result<Self> {
        let streams = Streams::new(config.seed);
        let device = Device::flex().autodiff();
        let shape = config.shape(data.columns.len());
        let model = shape.init(&device, &mut streams.stream("init", 0, 0))?;
        let step = ArStep::new(&config.step(), threads)?;
        let state = State {
            step: 0,
            rate_factor: 1.0,
            rollbacks: 0,
            guard: Guard::default(),
            best: None,
            validations_since_best: 0,
            metrics_bytes: 0,
            seconds: 0.0,
            data_hash: data.hash.clone(),
        };
        Ok(Self {
            // As it is: only a checkpoint says how much of it counts.
            metrics: Metrics::open(&run.metrics(), u64::MAX)?,
            checkpoints: Checkpoints::new(run.checkpoints()),
            optimiser: AdamConfig::new().with_epsilon(1e-8).init(),
            events: None,
            best: None,
            order: None,
            started: Instant::now(),
            run,
            config,
            data,
            shape,
            streams,
            threads,
            device,
            model,
            state,
            step,
        })
    }

    /// Writes TensorBoard event files too, into `tensorboard/` of the run.
    pub fn with_tensorboard(mut self) -> Result<Self> {
        self.events = Some(EventFile::create(&self.run.root().join("tensorboard"))?);
        Ok(self)
    }

    /// Appends a line to the metrics, and its numbers to the event file.
    fn log(&mut self, record: &MetricsRecord) -> Result<()> {
        self.metrics.append(record)?;
        let Some(events) = &mut self.events else { return Ok(()) };
        let scalars: Vec<(&str, f64)> = [
            ("loss", record.loss),
            ("proposal_nll", record.proposal_nll),
            ("learning_rate", record.learning_rate),
            ("gradient_norm", record.gradient_norm),
            ("effective_sample_size", record.effective_sample_size),
            ("validation/model", record.validation),
            ("validation/proposal", record.validation_proposal),
        ]
        .into_iter()
        .filter_map(|(tag, value)| Some((tag, value?)))
        .collect();
        events.scalars(record.step, &scalars)
    }

    /// The run directory.
    pub fn run_directory(&self) -> &RunDirectory {
        &self.run
    }

    /// Steps taken so far.
    pub fn steps_taken(&self) -> u64 {
        self.state.step
    }

    /// The configuration.
    pub fn config(&self) -> &FitConfig {
        &self.config
    }

    /// Trains to the end, evaluates, and writes the model and the results; `None` if it was told to stop before.
    pub fn run(
        &mut self,
        max_time: Option<Duration>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Option<FitReport>> {
        self.started = Instant::now() - Duration::from_secs_f64(self.state.seconds);
        let ended = self.train(max_time, stop, observer)?;
        self.save()?;
        let ended = match ended {
            Ended::Stopped => return Ok(None),
            Ended::Done => "done",
            Ended::Patience => "patience",
            Ended::MaxTime => "max-time",
        };
        observer.on(&Event::Evaluating);
        self.finish(ended).map(Some)
    }

    fn train(
        &mut self,
        max_time: Option<Duration>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Ended> {
        let training = self.config.training.clone();
        while self.state.step < training.steps {
            if stop.load(Ordering::Relaxed) {
                return Ok(Ended::Stopped);
            }
            if max_time.is_some_and(|limit| self.started.elapsed() > limit) {
                self.validate(observer)?;
                return Ok(Ended::MaxTime);
            }
            if training.patience > 0 && self.state.validations_since_best >= training.patience {
                return Ok(Ended::Patience);
            }
            if let Some(reason) = self.train_step(observer)? {
                self.roll_back(&reason, observer)?;
                continue;
            }
            let step = self.state.step;
            if step.is_multiple_of(training.validation_every) || step == training.steps {
                self.validate(observer)?;
            }
            if step.is_multiple_of(training.checkpoint_every) {
                self.save()?;
            }
        }
        Ok(Ended::Done)
    }

    /// One step; gives a reason if it went so wrong that it must not count.
    fn train_step(&mut self, observer: &mut dyn Observer) -> Result<Option<String>> {
        let training = &self.config.training;
        let step = self.state.step;
        let rate = training.learning_rate
            * self.state.rate_factor
            * Schedule::Cosine.factor(
                step.saturating_sub(training.hold) as usize,
                (training.steps - training.hold) as usize,
            );
        let (clip, steps, log_every) =
            (training.max_gradient_norm, training.steps, training.log_every);
        if step == training.warm_up {
            // Another loss begins.
            self.state.guard = Guard::default();
        }
        let x = self.batch(step);
        let (gradients, report) =
            match self.step.gradient(&self.model, &x, &self.streams, step, Some(clip)) {
                Err(error) if error.is_recoverable() => return Ok(Some(error.to_string())),
                result => result?,
            };
        if let Some(reason) = self.state.guard.watch(report.loss) {
            return Ok(Some(reason));
        }
        self.model = self.optimiser.step(rate, self.model.clone(), gradients);
        self.state.step += 1;
        if self.state.step.is_multiple_of(log_every) {
            self.log(&MetricsRecord {
                step: self.state.step,
                loss: Some(report.loss),
                proposal_nll: Some(report.proposal_nll),
                learning_rate: Some(rate),
                gradient_norm: Some(report.gradient_norm),
                effective_sample_size: (report.effective_sample_size > 0.0)
                    .then_some(report.effective_sample_size),
                validation: None,
                validation_proposal: None,
            })?;
        }
        observer.on(&Event::Step { step: self.state.step, steps, report: &report });
        Ok(None)
    }

    /// The rows of a step: an epoch goes through all of them in a new random order.
    fn batch(&mut self, step: u64) -> Vec<f32> {
        let features = self.shape.features;
        let rows = self.data.train.len() / features;
        let batch = self.config.training.batch.min(rows);
        let per_epoch = (rows / batch) as u64;
        let (epoch, at) = (step / per_epoch, (step % per_epoch) as usize);
        if self.order.as_ref().is_none_or(|(known, _)| *known != epoch) {
            let order = self.streams.stream("order", epoch, 0).permutation(rows);
            self.order = Some((epoch, order));
        }
        let (_, order) = self.order.as_ref().expect("just set");
        let mut x = Vec::with_capacity(batch * features);
        for &row in &order[at * batch..(at + 1) * batch] {
            x.extend_from_slice(&self.data.train[row * features..(row + 1) * features]);
        }
        x
    }

    /// Goes back to the last good checkpoint with half the learning rate.
    fn roll_back(&mut self, reason: &str, observer: &mut dyn Observer) -> Result<()> {
        let (step, rollbacks) = (self.state.step, self.state.rollbacks + 1);
        if rollbacks > MAX_ROLLBACKS {
            return Err(TableError::Diverged {
                tries: MAX_ROLLBACKS,
                step,
                reason: reason.to_owned(),
            });
        }
        let factor = self.state.rate_factor * 0.5;
        self.load()?;
        self.state.rollbacks = rollbacks;
        self.state.rate_factor = factor;
        self.metrics = Metrics::open(&self.run.metrics(), self.state.metrics_bytes)?;
        // Written at once, so that a run stopped here goes on with the lower rate too.
        self.save()?;
        observer.on(&Event::Warning(&format!(
            "step {step}: {reason}; back to step {} with the learning rate times {factor}",
            self.state.step
        )));
        Ok(())
    }

    fn validate(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let training = &self.config.training;
        let features = self.shape.features;
        let rows = match training.validation_rows {
            0 => self.data.validation.len() / features,
            rows => rows.min(self.data.validation.len() / features),
        };
        let density = self.density(&self.model)?;
        let likelihood = evaluate(
            &density,
            &self.data.in_units(&self.data.validation[..rows * features]),
            &Estimation::new(training.validation_particles, 1),
            &self.streams.derive("validation", self.state.step),
        )?;
        // In the warm-up the energy is untrained; only a model with a trained energy may be the best.
        let trained = density.is_normalised() || self.state.step > training.warm_up;
        let value = likelihood.log_likelihood;
        let best = trained
            && value.is_finite()
            && self.state.best.is_none_or(|best| value > best.log_likelihood);
        if best {
            self.best = Some(self.model.clone());
            self.state.best = Some(Best { step: self.state.step, log_likelihood: value });
            self.state.validations_since_best = 0;
        } else if trained {
            self.state.validations_since_best += 1;
        }
        self.log(&MetricsRecord {
            step: self.state.step,
            loss: None,
            proposal_nll: None,
            learning_rate: None,
            gradient_norm: None,
            effective_sample_size: None,
            validation: Some(value),
            validation_proposal: Some(likelihood.proposal_log_likelihood),
        })?;
        observer.on(&Event::Validation { step: self.state.step, log_likelihood: value, best });
        Ok(())
    }

    fn save(&mut self) -> Result<()> {
        self.state.metrics_bytes = self.metrics.bytes();
        self.state.seconds = self.started.elapsed().as_secs_f64();
        let bytes = |model: &ArEbm| -> Result<Vec<u8>> {
            let record = model.clone().into_record();
            Ok(record.into_bytes().map_err(|error| self.broken(error.to_string()))?.to_vec())
        };
        let mut parts = vec![
            bytes(&self.model)?,
            self.optimiser.into_bytes().map_err(|error| self.broken(error.to_string()))?.to_vec(),
        ];
        if let Some(best) = &self.best {
            parts.push(bytes(best)?);
        }
        let checkpoint = Checkpoint { state: self.state.clone(), parts };
        self.checkpoints.save(self.state.step, &checkpoint)
    }

    /// Takes over the newest whole checkpoint.
    fn load(&mut self) -> Result<Vec<String>> {
        let (checkpoint, warnings) = self.checkpoints.load::<State>()?;
        let Some(Checkpoint { state, parts }) = checkpoint else {
            return Err(self.broken("there is no whole checkpoint to go on from".into()));
        };
        let model = |part: &Vec<u8>| -> Result<ArEbm> {
            let record = ModuleRecord::from_bytes(Bytes::from_bytes_vec(part.clone()))
                .map_err(|error| self.broken(error.to_string()))?;
            let empty = self.shape.init(&self.device, &mut self.streams.stream("init", 0, 0))?;
            empty.try_load_record(record).map_err(|error| self.broken(error.to_string()))
        };
        let (first, best) = (model(&parts[0])?, parts.get(2).map(model).transpose()?);
        self.optimiser = AdamConfig::new()
            .with_epsilon(1e-8)
            .init()
            .from_bytes(Bytes::from_bytes_vec(parts[1].clone()))
            .map_err(|error| self.broken(error.to_string()))?;
        self.model = first;
        self.best = best;
        self.state = state;
        Ok(warnings)
    }

    fn broken(&self, reason: String) -> TableError {
        TableError::model(&self.run.checkpoints(), reason)
    }

    /// The density of a model, as this fit trains it.
    fn density(&self, model: &ArEbm) -> Result<ArDensity> {
        let Prepared { columns, standardiser, .. } = &self.data;
        let criterion = self.config.training.criterion;
        ArDensity::new(model, criterion, columns, standardiser, self.threads, Default::default())
    }

    /// Writes the best model, evaluates it on the test part and writes the results.
    fn finish(&mut self, ended: &str) -> Result<FitReport> {
        let model = self.best.as_ref().unwrap_or(&self.model);
        let best =
            self.state.best.unwrap_or(Best { step: self.state.step, log_likelihood: f64::NAN });
        let criterion = self.config.training.criterion.name().to_owned();
        let card = ModelCard {
            format: crate::run::FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            model: self.shape.clone(),
            columns: self.data.columns.clone(),
            standardiser: self.data.standardiser.clone(),
            data_hash: self.data.hash.clone(),
            criterion: criterion.clone(),
            step: best.step,
        };
        save_model(&self.run, model, &card)?;
        let EvaluationConfig { particles, estimates } = self.config.evaluation;
        let test = evaluate(
            &self.density(model)?,
            &self.data.in_units(&self.data.test),
            &Estimation::new(particles, estimates),
            &self.streams.derive("test", 0),
        )?;
        let features = self.shape.features;
        let rows = |part: &[f32]| part.len() / features;
        let report = FitReport {
            version: card.version,
            source: self.config.data.source.clone(),
            columns: card.columns,
            criterion,
            rows: [rows(&self.data.train), rows(&self.data.validation), rows(&self.data.test)],
            steps: self.state.step,
            best_step: best.step,
            validation_log_likelihood: best.log_likelihood,
            ended: ended.into(),
            test,
            truth: self.data.truth_of_test,
            seconds: self.started.elapsed().as_secs_f64(),
        };
        let json = serde_json::to_vec_pretty(&report).expect("a report is plain data");
        write_atomically(&self.run.results(), &json)?;
        Ok(report)
    }
}
