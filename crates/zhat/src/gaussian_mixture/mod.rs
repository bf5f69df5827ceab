//! A Gaussian mixture over whole rows, fitted by EM, whose conditionals in the order of the columns are cheap.
//!
//! Component `k` is `x = mu_k + L_k z` with standard normal `z` and a lower triangular `L_k`, so the first `d` columns
//! depend on the first `d` numbers of `z` alone: a prefix of a row is whitened once and gives the distribution of the next
//! column ([`Conditionals`]).

mod candidates;
mod conditional;
mod em;
mod k_means;
mod kernels;
mod select;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use conditional::Conditionals;
pub use em::{Covariance, EmConfig};
pub use select::{Selected, Selection, Tried, select, select_by_cross_validation};

use self::kernels::{LANES, Tiles, whiten};
use crate::error::{Error, Result, at_least};
use crate::rng::Stream;
use crate::weights::log_sum_exp;

/// A mixture of Gaussians: log-weights, means, and lower Cholesky factors of the covariances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", rename_all = "kebab-case")]
pub struct GaussianMixture {
    features: usize,
    log_weights: Vec<f64>,
    means: Vec<f64>,
    factors: Vec<f64>,
}

/// A mixture as it was written, before anybody has looked at it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Stored {
    features: usize,
    log_weights: Vec<f64>,
    means: Vec<f64>,
    factors: Vec<f64>,
}

impl TryFrom<Stored> for GaussianMixture {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        let Stored { features, log_weights, means, factors } = stored;
        Self { features, log_weights, means, factors }.checked()
    }
}

impl GaussianMixture {
    /// A mixture from its numbers; the log-weights are normalised.
    ///
    /// # Shapes
    /// - `log_weights`: `[g]`
    /// - `means`: `[g, features]`, row-major
    /// - `factors`: `[g, features (features + 1) / 2]`: the lower triangles of the Cholesky factors, row by row
    pub fn new(
        features: usize,
        log_weights: Vec<f64>,
        means: Vec<f64>,
        factors: Vec<f64>,
    ) -> Result<Self> {
        let total = log_sum_exp(&log_weights);
        let log_weights = log_weights.iter().map(|log_weight| log_weight - total).collect();
        Self { features, log_weights, means, factors }.checked()
    }

    /// The mixture as it is, to the bit, if its numbers make one.
    fn checked(self) -> Result<Self> {
        at_least(1, "features", self.features)?;
        let number = at_least(1, "components", self.num_components())?;
        let broken = |what: &str| {
            Err(Error::BrokenState { reason: format!("{what} in the Gaussian mixture") })
        };
        if self.means.len() != number * self.features
            || self.factors.len() != number * triangle(self.features)
        {
            return broken("the numbers of weights, means and factors do not go together");
        }
        let numbers = self.log_weights.iter().chain(&self.means).chain(&self.factors);
        if !numbers.copied().all(f64::is_finite) {
            return broken("there is a number that is not finite");
        }
        if log_sum_exp(&self.log_weights).abs() > 1e-9 {
            return broken("the weights do not sum to one");
        }
        if self.scales().any(|scale| scale <= 0.0) {
            return broken("there is a scale that is not positive");
        }
        Ok(self)
    }

    /// Fits a mixture by EM, from centres found by k-means; the best of several starts.
    ///
    /// It may have fewer components than asked for: one that no row is left to is dropped. The result does not depend on
    /// the number of threads.
    ///
    /// # Shapes
    /// - `rows`: `[n, features]`, row-major
    pub fn fit(rows: &[f32], features: usize, config: &EmConfig, rng: &mut Stream) -> Result<Self> {
        Ok(em::fit(rows, features, config, rng, &mut |_| Ok(()))?.0)
    }

    /// Number of features, `D`.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Number of components, `G`.
    pub fn num_components(&self) -> usize {
        self.log_weights.len()
    }

    /// Logarithms of the weights, which sum to one.
    pub fn log_weights(&self) -> &[f64] {
        &self.log_weights
    }

    /// The mean of a component.
    pub fn mean(&self, component: usize) -> &[f64] {
        &self.means[component * self.features..][..self.features]
    }

    /// The lower triangle of the Cholesky factor of a component's covariance, row by row.
    pub fn factor(&self, component: usize) -> &[f64] {
        let length = triangle(self.features);
        &self.factors[component * length..][..length]
    }

    /// The log-density of a row.
    pub fn log_density(&self, row: &[f32]) -> f64 {
        self.log_densities(row)[0]
    }

    /// The log-density of every row, with all threads of the pool.
    ///
    /// # Shapes
    /// - `rows`: `[n, features]`, row-major
    pub fn log_densities(&self, rows: &[f32]) -> Vec<f64> {
        /// Rows that one thread takes at a time.
        const SHARE: usize = 64 * LANES;
        let whitening = Whitening::new(self);
        let share = |rows: &[f32]| {
            let tiles = Tiles::new(rows, self.features);
            let mut buffer = vec![[0.0; LANES]; self.features];
            let mut log_joint = vec![[0.0; LANES]; self.num_components()];
            let mut found = Vec::with_capacity(tiles.rows());
            for tile in 0..tiles.number() {
                let x = tiles.tile(tile);
                whitening.log_joint(x, Covariance::Full, &mut buffer, &mut log_joint);
                found.extend((0..tiles.rows_of(tile)).map(|lane| {
                    let of_row: Vec<f64> = log_joint.iter().map(|values| values[lane]).collect();
                    log_sum_exp(&of_row)
                }));
            }
            found
        };
        rows.par_chunks(SHARE * self.features).flat_map_iter(share).collect()
    }

    /// A row drawn from the mixture.
    pub fn sample(&self, rng: &mut Stream) -> Vec<f32> {
        let weights: Vec<f64> = self.log_weights.iter().map(|value| value.exp()).collect();
        let component = rng.categorical(&weights);
        let noise = rng.normals(self.features);
        let factor = self.factor(component);
        let draw = |(feature, mean): (usize, &f64)| {
            let row = &factor[triangle(feature)..][..=feature];
            (mean + row.iter().zip(&noise).map(|(a, b)| a * b).sum::<f64>()) as f32
        };
        self.mean(component).iter().enumerate().map(draw).collect()
    }

    /// The conditional distributions of every feature given those before it.
    pub fn conditionals(&self) -> Conditionals {
        Conditionals::new(self)
    }

    /// The diagonals of the factors, component by component.
    fn scales(&self) -> impl Iterator<Item = f64> {
        (0..self.num_components()).flat_map(|component| {
            let factor = self.factor(component);
            (0..self.features).map(|feature| factor[triangle(feature + 1) - 1])
        })
    }
}

/// What makes the log-density of a component cheap: the reciprocals of the scales, and its normalising constant.
struct Whitening<'a> {
    mixture: &'a GaussianMixture,
    /// `1 / L_dd`, `[g, features]`
    reciprocals: Vec<f64>,
    /// `log w - log |L| - D log(2 pi) / 2`
    constants: Vec<f64>,
}

impl<'a> Whitening<'a> {
    fn new(mixture: &'a GaussianMixture) -> Self {
        let scales: Vec<f64> = mixture.scales().collect();
        let constants = mixture
            .log_weights
            .iter()
            .zip(scales.chunks_exact(mixture.features))
            .map(|(log_weight, scales)| {
                log_weight - scales.iter().map(|scale| scale.ln() + LOG_ROOT_TAU).sum::<f64>()
            })
            .collect();
        Self { mixture, reciprocals: scales.iter().map(|scale| 1.0 / scale).collect(), constants }
    }

    /// `log w_k + log N(x; mu_k, L_k L_k')` of every row of a tile.
    fn log_joint(
        &self,
        x: &[[f32; LANES]],
        covariance: Covariance,
        buffer: &mut [[f64; LANES]],
        log_joint: &mut [[f64; LANES]],
    ) {
        let features = self.mixture.features;
        for (component, values) in log_joint.iter_mut().enumerate() {
            whiten(
                x,
                self.mixture.mean(component),
                self.mixture.factor(component),
                &self.reciprocals[component * features..][..features],
                covariance,
                buffer,
                values,
            );
            for value in values {
                *value = self.constants[component] - 0.5 * *value;
            }
        }
    }
}

/// `log sqrt(2 pi)`
const LOG_ROOT_TAU: f64 = 0.918_938_533_204_672_8;

/// How many numbers a lower triangle of so many rows has; also where the next row begins.
fn triangle(rows: usize) -> usize {
    rows * (rows + 1) / 2
}

#[cfg(test)]
mod tests;
