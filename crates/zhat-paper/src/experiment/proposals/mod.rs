//! Figure 1, left: which proposal should RNCE use? The data distribution, the model itself, or one that learns?

mod arm;
mod claims;
mod report;

pub use arm::{Arm, Source, Start};

use burn::tensor::Device;
use serde::Serialize;
use zhat::Result;
use zhat::criterion::Criterion;
use zhat::host::Place;
use zhat::model::DiagonalGaussian;
use zhat::proposal::Proposal;
use zhat::rng::Streams;
use zhat::train::{
    Batch, CriterionStep, DataSource, Order, Rows, Schedule, Trainer, TrainingConfig,
};
use zhat::watch::Watch;

use super::repetitions::{repeat, trace};
use super::{Protocol, check_count, parse_arms};

/// Dimension of the Gaussians.
pub const DIMENSION: usize = 5;
/// Every coordinate of the model's mean at the start; the data have mean 0.
pub const START_MEAN: f64 = 4.0;
/// The learning rate is this times `sqrt(B)`.
pub const BASE_RATE: f64 = 0.01;

/// Settings of the experiment; the default is the paper's.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Number of repetitions.
    pub runs: usize,
    /// Number of training steps.
    pub steps: usize,
    /// Number of fixed training points; fresh data at every step if there is none.
    pub samples: Option<usize>,
    /// Number of negatives `J`.
    pub negatives: usize,
    /// Batch size `B`.
    pub batch_size: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// What is compared.
    pub arms: Vec<Arm>,
    /// What to follow where text and program differ.
    pub protocol: Protocol,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            runs: 20,
            steps: 6500,
            samples: None,
            negatives: 10,
            batch_size: 32,
            seed: 0,
            arms: vec![Arm::DATA, Arm::MODEL, Arm::ADAPTIVE],
            protocol: Protocol::Text,
        }
    }
}

impl Settings {
    /// Few steps, and as few runs as can tell arms apart at a level of 5 %.
    pub fn quick() -> Self {
        Self { runs: 6, steps: 1500, ..Self::default() }
    }

    /// With the arms of these names, see [`Arm`].
    pub fn with_arms(self, names: &[impl AsRef<str>]) -> Result<Self> {
        Ok(Self { arms: parse_arms(names)?, ..self })
    }

    /// With, beside each arm, the same with so many MCMC steps, if it is more than one.
    pub fn with_mcmc_steps(mut self, num_steps: usize) -> Result<Self> {
        check_count("mcmc-steps", num_steps)?;
        for mut arm in self.arms.clone() {
            arm.num_steps = num_steps;
            if !self.arms.contains(&arm) {
                self.arms.push(arm);
            }
        }
        Ok(self)
    }

    /// An error that names the first setting outside its range.
    pub fn validate(&self) -> Result<()> {
        check_count("runs", self.runs)?;
        check_count("steps", self.steps)?;
        check_count("samples", self.samples.unwrap_or(1))?;
        check_count("negatives", self.negatives)?;
        check_count("batch-size", self.batch_size)?;
        check_count("the number of arms", self.arms.len())
    }

    /// `0.01 sqrt(B)`.
    pub fn learning_rate(&self) -> f64 {
        BASE_RATE * (self.batch_size as f64).sqrt()
    }

    /// Variance of the model at the start: `Sigma = 2 I` in the text, `Sigma = 4 I` in the program.
    pub fn start_variance(&self) -> f64 {
        match self.protocol {
            Protocol::Text => 2.0,
            Protocol::AsPublished => 4.0,
        }
    }

    fn schedule(&self) -> Schedule {
        match self.protocol {
            Protocol::Text => Schedule::Constant,
            Protocol::AsPublished => Schedule::Linear(0.01),
        }
    }
}

/// The divergences of every finished repetition.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// What was run.
    pub settings: Settings,
    /// `divergences[arm][run][step]`: `KL[p_d || p_theta]` after each step.
    pub divergences: Vec<Vec<Vec<f64>>>,
}

impl Results {
    /// Number of repetitions that were finished.
    pub fn finished_runs(&self) -> usize {
        self.divergences.first().map_or(0, Vec::len)
    }
}

/// Runs the experiment on the current thread pool.
pub fn run(settings: &Settings, watch: &Watch) -> Result<Results> {
    settings.validate()?;
    let number = (settings.runs, settings.arms.len());
    let divergences = repeat(number, settings.seed, watch, |streams| {
        let data = Data::new(settings, streams);
        let curves = settings.arms.iter().map(|arm| {
            let criterion = arm.criterion(settings.negatives)?;
            train(settings, streams, &data, criterion, watch)
        });
        curves.collect::<Result<Option<Vec<_>>>>()
    })?;
    Ok(Results { settings: settings.clone(), divergences })
}

/// A model at the paper's start, in training with a criterion.
pub fn trainer<C: Criterion<DiagonalGaussian>>(
    settings: &Settings,
    streams: Streams,
    criterion: C,
) -> Result<Trainer<DiagonalGaussian, CriterionStep<C>>> {
    let (mean, std_dev) = ([START_MEAN; DIMENSION], [settings.start_variance().sqrt(); DIMENSION]);
    let model = DiagonalGaussian::new(&mean, &std_dev, &Device::flex().autodiff())?;
    let config = TrainingConfig::new(settings.steps as u64, settings.learning_rate())
        .with_batch_size(settings.batch_size)
        .with_schedule(settings.schedule())
        .with_max_rollbacks(0);
    Trainer::new(model, CriterionStep::new(criterion), config, streams)
}

/// One arm of one repetition: the divergence after each step.
fn train<C: Criterion<DiagonalGaussian>>(
    settings: &Settings,
    streams: &Streams,
    data: &Data,
    criterion: C,
    watch: &Watch,
) -> Result<Option<Vec<f64>>> {
    let mut trainer = trainer(settings, *streams, criterion)?;
    let measure = |model: &DiagonalGaussian, _: &_| [divergence(&model.mean(), &model.std_dev())];
    Ok(trace(&mut trainer, data, watch, measure)?.map(|[divergence]| divergence))
}

/// `KL[N(0, I) || N(mu, diag(s^2))] = 1/2 sum_i ((1 + mu_i^2) / s_i^2 - 1 + log s_i^2)`.
pub fn divergence(mean: &[f64], std_dev: &[f64]) -> f64 {
    let coordinate = |(mean, s): (&f64, &f64)| (1.0 + mean * mean) / (s * s) - 1.0 + (s * s).ln();
    0.5 * mean.iter().zip(std_dev).map(coordinate).sum::<f64>()
}

/// Training data: fresh draws at every step, or batches of a fixed set.
pub enum Data {
    /// Fresh draws from the truth.
    Fresh {
        /// How many.
        batch_size: usize,
        /// Where they go.
        place: Place,
        /// `p_d`.
        truth: DiagonalGaussian,
    },
    /// A fixed set, in a new order every epoch.
    Fixed(Rows),
}

impl Data {
    /// The data of a repetition.
    pub fn new(settings: &Settings, streams: &Streams) -> Self {
        let place = Place::new(&Device::flex());
        let truth = DiagonalGaussian::standard(DIMENSION, &Device::flex());
        match settings.samples {
            None => Data::Fresh { batch_size: settings.batch_size, place, truth },
            Some(samples) => {
                let rows = truth.sample(samples, &place, &mut streams.stream("data", 0, 0));
                Data::Fixed(Rows::new(rows))
            }
        }
    }
}

impl DataSource for Data {
    fn batch(&self, step: u64, order: &mut Order) -> Batch {
        match self {
            Data::Fresh { batch_size, place, truth } => {
                truth.sample(*batch_size, place, &mut order.streams.stream("data", step, 0)).into()
            }
            Data::Fixed(rows) => rows.batch(step, order),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `int p log(p / q)` for `p = N(0, 1)` and `q = N(mean, s^2)` by the midpoint rule.
    fn by_quadrature(mean: f64, s: f64) -> f64 {
        let log_density =
            |x: f64, s: f64| -0.5 * (x / s).powi(2) - s.ln() - 0.5 * std::f64::consts::TAU.ln();
        let width = 1e-4;
        let integrand = |i: i32| {
            let x = -10.0 + (f64::from(i) + 0.5) * width;
            let log_p = log_density(x, 1.0);
            log_p.exp() * (log_p - log_density(x - mean, s)) * width
        };
        (0..200_000).map(integrand).sum()
    }

    #[test]
    fn the_divergence_is_the_integral() {
        let (means, std_devs) = ([0.0, 1.5, -4.0], [1.0, 0.7, 2.0]);
        let expected: f64 = (0..3).map(|i| by_quadrature(means[i], std_devs[i])).sum();
        assert!((divergence(&means, &std_devs) - expected).abs() < 1e-6);
        assert_eq!(divergence(&[0.0; 5], &[1.0; 5]), 0.0);
    }

    #[test]
    fn both_protocols_start_where_they_should() {
        let start = |protocol| {
            let settings = Settings { protocol, ..Settings::default() };
            divergence(&[START_MEAN; DIMENSION], &[settings.start_variance().sqrt(); DIMENSION])
        };
        // 5/2 (17/2 - 1 + log 2) and 5/2 (17/4 - 1 + log 4).
        assert!((start(Protocol::Text) - 20.4829).abs() < 1e-4);
        assert!((start(Protocol::AsPublished) - 11.5907).abs() < 1e-4);
    }

    #[test]
    fn several_mcmc_steps_stand_beside_one() {
        let settings = Settings::default().with_arms(&["model", "p-rnce"]).unwrap();
        let names =
            |settings: Settings| settings.arms.iter().map(ToString::to_string).collect::<Vec<_>>();
        let several = settings.clone().with_mcmc_steps(3).unwrap();
        assert_eq!(names(several), ["model", "p-rnce", "model-k3", "p-rnce-k3"]);
        assert_eq!(names(settings.clone().with_mcmc_steps(1).unwrap()), ["model", "p-rnce"]);
        assert!(settings.with_mcmc_steps(0).is_err());
    }
}
