//! Expectation and maximisation: one pass over the rows gives the responsibilities and the moments they weigh.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::k_means::clusters;
use super::kernels::{LANES, STRIDE, Tiles, moments, responsibilities};
use super::{GaussianMixture, Whitening, triangle};
use crate::error::{Error, Result, at_least, positive};
use crate::linalg::cholesky;
use crate::rng::Stream;

/// Which covariances the components have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Covariance {
    /// Any covariance.
    #[default]
    Full,
    /// Features that are independent within a component.
    Diagonal,
}

crate::named!(Covariance, "covariance", { Full: "full", Diagonal: "diagonal" });

/// How a mixture is fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EmConfig {
    /// Number of components.
    pub components: usize,
    /// Which covariances they have.
    pub covariance: Covariance,
    /// What is added to every variance, in the squared unit of the data: no component falls onto a single row.
    pub floor: f64,
    /// How many rows with the covariance that all components have on average are added to every component: with few rows
    /// for each, components of one shape and different means are the better guess.
    pub shrinkage: f64,
    /// Iterations of one start at most.
    pub max_iterations: usize,
    /// EM ends when the mean log-likelihood of a row changes by less.
    pub tolerance: f64,
    /// From how many starts the best is kept.
    pub starts: usize,
}

impl EmConfig {
    /// Full covariances with a floor for standardised data, one start, 100 iterations, to within 0.001 nats a row.
    pub fn new(components: usize) -> Self {
        Self {
            components,
            covariance: Covariance::Full,
            floor: 1e-4,
            shrinkage: 0.0,
            max_iterations: 100,
            tolerance: 1e-3,
            starts: 1,
        }
    }

    /// Checks the ranges of the settings.
    pub fn validate(&self) -> Result<()> {
        at_least(1, "components", self.components)?;
        positive("floor", self.floor)?;
        if !(self.shrinkage.is_finite() && self.shrinkage >= 0.0) {
            return Err(Error::setting("shrinkage", self.shrinkage, "finite and not negative"));
        }
        at_least(1, "max_iterations", self.max_iterations)?;
        positive("tolerance", self.tolerance)?;
        at_least(1, "starts", self.starts)?;
        Ok(())
    }
}

/// Fits a mixture, and gives the mean log-likelihood of its rows with it.
///
/// `observe` hears that mean before every maximisation and may stop the work by an error.
pub fn fit(
    rows: &[f32],
    features: usize,
    config: &EmConfig,
    rng: &mut Stream,
    observe: &mut dyn FnMut(f64) -> Result<()>,
) -> Result<(GaussianMixture, f64)> {
    config.validate()?;
    at_least(1, "features", features)?;
    assert_eq!(rows.len() % features, 0, "whole rows");
    let number = rows.len() / features;
    if number < config.components {
        let expected = format!("at most the number of rows, which is {number}");
        return Err(Error::setting("components", config.components, expected));
    }
    if let Some(at) = rows.iter().position(|value| !value.is_finite()) {
        let value = format!("{} at row {}, feature {}", rows[at], at / features, at % features);
        return Err(Error::setting("a value of the Gaussian mixture's rows", value, "finite"));
    }
    let tiles = Tiles::new(rows, features);
    let mut best: Option<(GaussianMixture, f64)> = None;
    for _ in 0..config.starts {
        let found = climb(&tiles, features, config, rng, observe)?;
        if best.as_ref().is_none_or(|best| found.1 > best.1) {
            best = Some(found);
        }
    }
    Ok(best.expect("at least one start"))
}

/// EM from one start.
fn climb(
    tiles: &Tiles,
    features: usize,
    config: &EmConfig,
    rng: &mut Stream,
    observe: &mut dyn FnMut(f64) -> Result<()>,
) -> Result<(GaussianMixture, f64)> {
    let start = clusters(tiles, features, config.components, rng);
    let given = |row: usize, component: usize| f64::from(start.labels[row] == component);
    let sums = sums(tiles, &start.centres, features, config.covariance, |first, rows, out| {
        for (component, out) in out.chunks_exact_mut(BLOCK).enumerate() {
            (0..rows).for_each(|row| out[row] = given(first + row, component));
        }
        0.0
    });
    let mut mixture = maximise(sums, &start.centres, features, config)?;
    let mut before = f64::NEG_INFINITY;
    for iteration in 0.. {
        let whitening = Whitening::new(&mixture);
        let sums = sums_of(&whitening, tiles, config.covariance);
        let mean = sums.log_likelihood / tiles.rows() as f64;
        observe(mean)?;
        if iteration == config.max_iterations || (mean - before).abs() < config.tolerance {
            return Ok((mixture, mean));
        }
        before = mean;
        mixture = maximise(sums, &mixture.means, features, config)?;
    }
    unreachable!("the iterations are counted")
}

/// Rows whose responsibilities are held at a time.
const BLOCK: usize = 16 * LANES;

/// Parts of the rows that are summed apart at most: it bounds the memory, and it depends on nothing but the rows.
const MOST_PARTS: usize = 64;

/// Mass, first and second moments about a centre of every component, and the log-likelihood of all rows.
struct Sums {
    mass: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    log_likelihood: f64,
}

impl Sums {
    fn add(mut self, other: &Sums) -> Self {
        let add = |into: &mut [f64], from: &[f64]| {
            into.iter_mut().zip(from).for_each(|(into, from)| *into += from);
        };
        add(&mut self.mass, &other.mass);
        add(&mut self.first, &other.first);
        add(&mut self.second, &other.second);
        self.log_likelihood += other.log_likelihood;
        self
    }
}

/// The expectation: responsibilities by the mixture, and the moments about its means.
fn sums_of(whitening: &Whitening<'_>, tiles: &Tiles, covariance: Covariance) -> Sums {
    let features = whitening.mixture.features;
    let number = whitening.mixture.num_components();
    sums(tiles, &whitening.mixture.means, features, covariance, |first, rows, out| {
        let mut buffer = vec![[0.0; LANES]; features];
        let mut log_joint = vec![[0.0; LANES]; number];
        let mut log_likelihood = 0.0;
        for begin in (0..rows).step_by(LANES) {
            let tile = tiles.tile((first + begin) / LANES);
            whitening.log_joint(tile, covariance, &mut buffer, &mut log_joint);
            let (mut largest, mut total) = ([0.0; LANES], [0.0; LANES]);
            responsibilities(&mut log_joint, &mut largest, &mut total);
            for (component, values) in log_joint.iter().enumerate() {
                out[component * BLOCK + begin..][..LANES].copy_from_slice(values);
            }
            for lane in 0..LANES.min(rows - begin) {
                log_likelihood += largest[lane] + total[lane].ln();
            }
        }
        log_likelihood
    })
}

/// Moments of the rows by given responsibilities.
///
/// `weigh(first, rows, out)` writes the responsibilities of the rows from `first` on, a block for every component, and gives
/// the log-likelihood of these rows. Parts of fixed size are summed in order, so threads change nothing.
fn sums(
    tiles: &Tiles,
    centres: &[f64],
    features: usize,
    covariance: Covariance,
    weigh: impl Fn(usize, usize, &mut [f64]) -> f64 + Sync,
) -> Sums {
    let number = centres.len() / features;
    let nothing = || Sums {
        mass: vec![0.0; number],
        first: vec![0.0; number * features],
        second: vec![0.0; number * triangle(features)],
        log_likelihood: 0.0,
    };
    let part = tiles.rows().div_ceil(MOST_PARTS).next_multiple_of(BLOCK).max(4 * BLOCK);
    let of_part = |begin: usize| {
        let mut sums = nothing();
        let mut weights = vec![0.0; number * BLOCK];
        let mut gathered = Gathered::new();
        for first in (begin..tiles.rows().min(begin + part)).step_by(BLOCK) {
            let rows = BLOCK.min(tiles.rows() - first);
            sums.log_likelihood += weigh(first, rows, &mut weights);
            for (component, weights) in weights.chunks_exact(BLOCK).enumerate() {
                let centre = &centres[component * features..][..features];
                gathered.gather(tiles, first, &weights[..rows], centre);
                sums.mass[component] += gathered.weights.iter().sum::<f64>();
                moments(
                    &gathered.weights,
                    &gathered.centred,
                    covariance,
                    &mut gathered.scratch,
                    &mut sums.first[component * features..][..features],
                    &mut sums.second[component * triangle(features)..][..triangle(features)],
                );
            }
        }
        sums
    };
    let parts: Vec<Sums> = (0..tiles.rows()).into_par_iter().step_by(part).map(of_part).collect();
    parts.iter().fold(nothing(), Sums::add)
}

/// The rows of a block that a component has a share in, about its centre.
struct Gathered {
    weights: Vec<f64>,
    centred: Vec<f64>,
    scratch: Vec<f64>,
    chosen: Vec<usize>,
}

impl Gathered {
    fn new() -> Self {
        let (weights, centred, chosen) = (Vec::new(), Vec::new(), Vec::new());
        Self { weights, centred, scratch: vec![0.0; BLOCK], chosen }
    }

    fn gather(&mut self, tiles: &Tiles, first: usize, weights: &[f64], centre: &[f64]) {
        self.chosen.clear();
        self.chosen.extend((0..weights.len()).filter(|&row| weights[row] > 0.0));
        let padded = self.chosen.len().next_multiple_of(STRIDE);
        self.weights.clear();
        self.weights.extend(self.chosen.iter().map(|&row| weights[row]));
        self.weights.resize(padded, 0.0);
        self.centred.clear();
        for (feature, centre) in centre.iter().enumerate() {
            let centred = |&row: &usize| tiles.value(first + row, feature) - centre;
            self.centred.extend(self.chosen.iter().map(centred));
            self.centred.resize((feature + 1) * padded, 0.0);
        }
    }
}

/// Fewer rows than this, and a component is dropped.
const EMPTY: f64 = 1e-6;

/// The maximisation: weights, means and covariances of the moments about the centres.
fn maximise(
    sums: Sums,
    centres: &[f64],
    features: usize,
    config: &EmConfig,
) -> Result<GaussianMixture> {
    let kept: Vec<usize> =
        (0..sums.mass.len()).filter(|&component| sums.mass[component] > EMPTY).collect();
    let (mut log_weights, mut means, mut scatters) = (Vec::new(), Vec::new(), Vec::new());
    let mut pooled = vec![0.0; triangle(features)];
    let mut total = 0.0;
    for &component in &kept {
        let mass = sums.mass[component];
        let first = &sums.first[component * features..][..features];
        let mut scatter =
            sums.second[component * triangle(features)..][..triangle(features)].to_vec();
        for row in 0..features {
            let begin = if config.covariance == Covariance::Full { 0 } else { row };
            for column in begin..=row {
                scatter[triangle(row) + column] -= first[row] * first[column] / mass;
            }
        }
        log_weights.push(mass.ln());
        let centre = &centres[component * features..][..features];
        means.extend(centre.iter().zip(first).map(|(centre, first)| centre + first / mass));
        pooled.iter_mut().zip(&scatter).for_each(|(pooled, scatter)| *pooled += scatter);
        total += mass;
        scatters.push((mass, scatter));
    }
    let mut factors = Vec::with_capacity(kept.len() * triangle(features));
    for (mass, scatter) in scatters {
        let value = |(scatter, pooled): (&f64, &f64)| {
            (scatter + config.shrinkage * pooled / total) / (mass + config.shrinkage)
        };
        let covariance: Vec<f64> = scatter.iter().zip(&pooled).map(value).collect();
        factors.extend(factor(&covariance, features, config.floor)?);
    }
    GaussianMixture::new(features, log_weights, means, factors)
}

/// The lower triangle of the Cholesky factor of a covariance (its lower triangle) with a floor; the floor is raised where
/// rounding has eaten it.
fn factor(covariance: &[f64], features: usize, floor: f64) -> Result<Vec<f64>> {
    let mut square = vec![0.0; features * features];
    for row in 0..features {
        square[row * features..][..=row].copy_from_slice(&covariance[triangle(row)..][..=row]);
    }
    let variances: Vec<f64> =
        square.iter().step_by(features + 1).map(|variance| variance.max(0.0)).collect();
    let largest = variances.iter().copied().fold(0.0, f64::max);
    let mut floor = floor;
    loop {
        for (feature, variance) in variances.iter().enumerate() {
            square[feature * (features + 1)] = variance + floor;
        }
        match cholesky(&square, features, "a component of the Gaussian mixture") {
            Ok(factor) => {
                let row = |row: usize| factor[row * features..][..=row].iter().copied();
                return Ok((0..features).flat_map(row).collect());
            }
            Err(error) if floor > largest => return Err(error),
            Err(_) => floor = (10.0 * floor).max(1e-12 * largest),
        }
    }
}
