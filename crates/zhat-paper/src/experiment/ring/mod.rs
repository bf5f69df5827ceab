//! Figure 1, middle and right, and both figures of the appendix: acceptance rule and persistence in CNCE.

mod claims;
mod combinations;
mod radius;
mod report;

pub use combinations::{COMBINATIONS, Combined};
pub use radius::{Ring, point};

use burn::tensor::{Device, Tensor};
use serde::Serialize;
use zhat::Result;
use zhat::criterion::{Criterion, Method, MethodConfig};
use zhat::host::{Place, to_host};
use zhat::model::RingModel;
use zhat::rng::{Stream, Streams};
use zhat::train::{CriterionStep, Rows, Schedule, Trainer, TrainingConfig};
use zhat::watch::Watch;
use zhat::weights::{barker, metropolis};

use super::repetitions::{repeat, trace};
use super::{Protocol, check_count, invalid, parse_arms};

/// Dimension of the space.
pub const DIMENSION: usize = 5;
/// The radius `mu` is drawn from this interval.
pub const RADIUS: (f64, f64) = (5.0, 10.0);
/// The variance `sigma^2` of truth and start is drawn from this interval (in the published program: `sigma`).
pub const VARIANCE: (f64, f64) = (0.3, 1.5);
/// Number of passes through the data.
pub const EPOCHS: usize = 50;
/// The learning rate starts at this times `sqrt(B)` and ends at a tenth of it.
pub const BASE_RATE: f64 = 0.01;
/// The methods compared.
pub const ARMS: [Method; 4] = [Method::Cnce, Method::MhCnce, Method::PCnce, Method::PMhCnce];
/// Methods without a proposal that can be run beside them, as controls.
pub const CONTROLS: [Method; 2] = [Method::Ssm, Method::Dsm];

/// Settings of the experiment; the default is the paper's main figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Number of repetitions.
    pub runs: usize,
    /// Number of training steps; 50 epochs if there is none.
    pub steps: Option<usize>,
    /// Number of training points `N`.
    pub samples: usize,
    /// Number of negatives `J`.
    pub negatives: usize,
    /// Batch size `B`.
    pub batch_size: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// What is compared: some of [`ARMS`] and [`CONTROLS`].
    pub arms: Vec<Method>,
    /// What to follow where text and program differ.
    pub protocol: Protocol,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            runs: 100,
            steps: None,
            samples: 200,
            negatives: 5,
            batch_size: 20,
            seed: 0,
            arms: ARMS.to_vec(),
            protocol: Protocol::Text,
        }
    }
}

impl Settings {
    /// Fewer runs.
    pub fn quick() -> Self {
        Self { runs: 20, ..Self::default() }
    }

    /// With the arms of these names.
    pub fn with_arms(self, names: &[impl AsRef<str>]) -> Result<Self> {
        let arms = parse_arms(names)?;
        match arms.iter().find(|arm| !ARMS.contains(arm) && !CONTROLS.contains(arm)) {
            Some(other) => {
                let known: Vec<&str> =
                    ARMS.iter().chain(&CONTROLS).map(|method| method.name()).collect();
                let known = known.join(", ");
                Err(invalid("arm", format!("`{other}`"), format!("one of {known}")))
            }
            None => Ok(Self { arms, ..self }),
        }
    }

    /// An error that names the first setting outside its range.
    pub fn validate(&self) -> Result<()> {
        check_count("runs", self.runs)?;
        check_count("steps", self.steps.unwrap_or(1))?;
        check_count("negatives", self.negatives)?;
        check_count("batch-size", self.batch_size)?;
        check_count("the number of arms", self.arms.len())?;
        if self.samples < 2 {
            return Err(invalid(
                "samples",
                self.samples,
                "at least 2, to have a standard deviation",
            ));
        }
        Ok(())
    }

    /// Number of training steps.
    pub fn num_steps(&self) -> usize {
        self.steps.unwrap_or(EPOCHS * self.samples.div_ceil(self.batch_size))
    }

    /// `0.01 sqrt(B)`, where it starts.
    pub fn learning_rate(&self) -> f64 {
        BASE_RATE * (self.batch_size as f64).sqrt()
    }
}

/// What was measured in every finished repetition.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// What was run.
    pub settings: Settings,
    /// Curves of each arm.
    pub arms: Vec<ArmCurves>,
}

impl Results {
    /// Number of repetitions that were finished.
    pub fn finished_runs(&self) -> usize {
        self.arms.first().map_or(0, |arm| arm.squared_error.len())
    }
}

/// `[run][step]` of one arm.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ArmCurves {
    /// Squared error of the precision `exp(theta)`.
    pub squared_error: Vec<Vec<f64>>,
    /// Mean acceptance probability of CNCE's rule over the pairs of the step.
    pub barker: Vec<Vec<f64>>,
    /// Mean acceptance probability of the Metropolis-Hastings rule over the same pairs.
    pub metropolis: Vec<Vec<f64>>,
}

/// Runs the experiment on the current thread pool.
pub fn run(settings: &Settings, watch: &Watch) -> Result<Results> {
    settings.validate()?;
    let number = (settings.runs, settings.arms.len());
    let arms = repeat(number, settings.seed, watch, |streams| {
        let problem = Problem::draw(settings, streams);
        let curves = settings.arms.iter().map(|arm| problem.train(*arm, settings, streams, watch));
        curves.collect::<Result<Option<Vec<_>>>>()
    })?;
    let mut curves = vec![ArmCurves::default(); settings.arms.len()];
    for (arm, runs) in curves.iter_mut().zip(arms) {
        for [squared_error, barker, metropolis] in runs {
            arm.squared_error.push(squared_error);
            arm.barker.push(barker);
            arm.metropolis.push(metropolis);
        }
    }
    Ok(Results { settings: settings.clone(), arms: curves })
}

/// One repetition: a truth, a start, and data.
pub struct Problem {
    radius: f64,
    precision: f64,
    start_log_precision: f64,
    data: Tensor<2>,
}

impl Problem {
    /// Draws the truth, the start, and data from the truth.
    pub fn draw(settings: &Settings, streams: &Streams) -> Self {
        let rng = &mut streams.stream("truth", 0, 0);
        let radius = uniform(RADIUS, rng);
        let [variance, start] = [(); 2].map(|()| match settings.protocol {
            Protocol::Text => uniform(VARIANCE, rng),
            Protocol::AsPublished => uniform(VARIANCE, rng).powi(2),
        });
        let ring = Ring::new(radius, variance.sqrt());
        let rng = &mut streams.stream("data", 0, 0);
        let mut values = Vec::with_capacity(settings.samples * DIMENSION);
        for _ in 0..settings.samples {
            let radius = match settings.protocol {
                Protocol::Text => ring.radius(rng),
                Protocol::AsPublished => ring.radius_as_published(rng),
            };
            values.extend(point(radius, rng));
        }
        let place = Place::new(&Device::flex());
        Self {
            radius,
            precision: 1.0 / variance,
            start_log_precision: -start.ln(),
            data: place.tensor(values, [settings.samples, DIMENSION]),
        }
    }

    /// The data.
    pub fn rows(&self) -> Rows {
        Rows::new(self.data.clone())
    }

    /// The model at its start, in training with a method.
    pub fn trainer(
        &self,
        arm: Method,
        settings: &Settings,
        streams: Streams,
    ) -> Result<Trainer<RingModel, RingStep>> {
        let model =
            RingModel::new(self.radius, self.start_log_precision, &Device::flex().autodiff());
        let method = MethodConfig {
            // By default, the mean over coordinates of the standard deviation of the data.
            step_size: match settings.protocol {
                Protocol::Text => None,
                Protocol::AsPublished => Some(spread_of_points(&self.data)),
            },
            ..MethodConfig::new(arm).with_num_negatives(settings.negatives)
        };
        let config = TrainingConfig::new(settings.num_steps() as u64, settings.learning_rate())
            .with_batch_size(settings.batch_size)
            .with_schedule(Schedule::Linear(0.1))
            .with_max_rollbacks(0);
        Trainer::new(model, CriterionStep::new(method.init(&self.data)?), config, streams)
    }

    /// Squared error and both acceptance probabilities after each step of an arm.
    fn train(
        &self,
        arm: Method,
        settings: &Settings,
        streams: &Streams,
        watch: &Watch,
    ) -> Result<Option<[Vec<f64>; 3]>> {
        let mut trainer = self.trainer(arm, settings, *streams)?;
        let measure = |model: &RingModel, step: &RingStep| {
            let log_w_tilde = &step.loss().candidates.log_w_tilde;
            [
                (model.precision() - self.precision).powi(2),
                log_w_tilde.mean_acceptance(barker),
                log_w_tilde.mean_acceptance(metropolis),
            ]
        };
        trace(&mut trainer, &self.rows(), watch, measure)
    }
}

/// A method by its name, on the ring.
type RingStep = CriterionStep<Box<dyn Criterion<RingModel>>>;

fn uniform((low, high): (f64, f64), rng: &mut Stream) -> f64 {
    low + (high - low) * rng.uniform()
}

/// The published program's step size: the mean over data points of the standard deviation across coordinates.
fn spread_of_points(data: &Tensor<2>) -> f64 {
    let values = to_host(data);
    let spread = |row: &[f64]| {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        let squares = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        (squares / (row.len() - 1) as f64).sqrt()
    };
    values.chunks_exact(DIMENSION).map(spread).sum::<f64>() / data.dims()[0] as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_epochs_are_the_papers_number_of_steps() {
        let steps = |samples| Settings { samples, ..Settings::default() }.num_steps();
        assert_eq!((steps(200), steps(1000), steps(201)), (500, 2500, 550));
    }

    #[test]
    fn the_published_step_size_is_the_mean_spread_of_the_points() {
        let values = vec![1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 2.0, 3.0, 4.0];
        let data = Place::new(&Device::flex()).tensor(values, [2, 5]);
        // The second point has variance 10 / 4.
        assert!((spread_of_points(&data) - 0.5 * 2.5f64.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn truth_and_start_come_from_the_intervals_of_the_protocol() {
        for (protocol, smallest) in [(Protocol::Text, 0.3), (Protocol::AsPublished, 0.09)] {
            let settings = Settings { samples: 2, protocol, ..Settings::default() };
            let problems: Vec<Problem> =
                (0..400).map(|i| Problem::draw(&settings, &Streams::new(i))).collect();
            let variances = problems.iter().flat_map(|problem| {
                [1.0 / problem.precision, (-problem.start_log_precision).exp()]
            });
            let (low, high) = variances
                .fold((f64::INFINITY, 0.0), |(low, high), v| (f64::min(low, v), f64::max(high, v)));
            let largest = if protocol == Protocol::Text { 1.5 } else { 2.25 };
            assert!(low >= smallest && low < 1.1 * smallest + 0.02, "{protocol:?}: {low}");
            assert!(high <= largest && high > 0.98 * largest, "{protocol:?}: {high}");
            assert!(problems.iter().all(|problem| (5.0..10.0).contains(&problem.radius)));
        }
    }
}
