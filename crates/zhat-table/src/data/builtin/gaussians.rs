//! Gaussians with weights and full covariances: draws, log-density, and the mean given some coordinates.

use std::f64::consts::PI;

use rand::Rng;
use zhat::weights::log_sum_exp;

use super::{Builtin, Entropy, normal, uniform};

/// A weighted Gaussian.
#[derive(Debug, Clone)]
pub(super) struct Component {
    /// Normalised once it is part of a mixture.
    pub(super) weight: f64,
    mean: Vec<f64>,
    covariance: Vec<f64>,
    /// Lower Cholesky factor of the covariance.
    factor: Vec<f64>,
}

impl Component {
    /// A Gaussian with a positive weight, which need not be normalised.
    ///
    /// # Panics
    /// If the covariance (row after row) has another size than the mean or is not positive definite.
    pub(super) fn new(weight: f64, mean: Vec<f64>, covariance: Vec<f64>) -> Self {
        let factor = cholesky(&covariance, mean.len()).expect("a covariance is positive definite");
        Self { weight, mean, covariance, factor }
    }

    /// A draw, given as many standard normal numbers as there are dimensions.
    pub(super) fn draw(&self, normals: &[f64]) -> Vec<f64> {
        let dimension = self.mean.len();
        (0..dimension)
            .map(|i| self.mean[i] + dot(&self.factor[i * dimension..][..=i], normals))
            .collect()
    }

    /// Half the log-determinant of the covariance.
    pub(super) fn log_std_dev(&self) -> f64 {
        log_diagonal(&self.factor, self.mean.len())
    }

    /// Log of weight times density.
    fn log_term(&self, row: &[f64]) -> f64 {
        let centred: Vec<f64> = row.iter().zip(&self.mean).map(|(x, mean)| x - mean).collect();
        self.weight.ln() + log_gaussian(&self.factor, &solve_lower(&self.factor, &centred))
    }
}

/// A set of Gaussians whose weights sum to 1.
#[derive(Debug, Clone)]
pub(super) struct Gaussians {
    name: String,
    description: String,
    pub(super) components: Vec<Component>,
    entropy: fn(&Gaussians) -> Entropy,
}

impl Gaussians {
    /// A mixture; the weights are normalised.
    pub(super) fn new(
        name: String,
        description: String,
        mut components: Vec<Component>,
        entropy: fn(&Gaussians) -> Entropy,
    ) -> Self {
        let total: f64 = components.iter().map(|component| component.weight).sum();
        components.iter_mut().for_each(|component| component.weight /= total);
        Self { name, description, components, entropy }
    }

    /// Log of weight times density, for every component.
    pub(super) fn log_terms(&self, row: &[f64]) -> Vec<f64> {
        self.components.iter().map(|component| component.log_term(row)).collect()
    }
}

impl Builtin for Gaussians {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn dimension(&self) -> usize {
        self.components[0].mean.len()
    }

    fn sample(&self, rows: usize, rng: &mut dyn Rng) -> Vec<f64> {
        let mut values = Vec::with_capacity(rows * self.dimension());
        for _ in 0..rows {
            let mut left = uniform(rng);
            let component = self.components.iter().find(|component| {
                left -= component.weight;
                left < 0.0
            });
            // Rounding may leave a rest of about 1e-16: it belongs to the last component.
            let component = component.unwrap_or(&self.components[self.components.len() - 1]);
            let normals: Vec<f64> = (0..self.dimension()).map(|_| normal(rng)).collect();
            values.extend(component.draw(&normals));
        }
        values
    }

    fn log_density(&self, row: &[f64]) -> f64 {
        log_sum_exp(&self.log_terms(row))
    }

    fn entropy(&self) -> Entropy {
        (self.entropy)(self)
    }

    fn conditional_mean(&self, observed: &[Option<f64>]) -> Option<Vec<f64>> {
        let dimension = self.dimension();
        assert_eq!(observed.len(), dimension, "one entry per coordinate");
        let given: Vec<usize> = (0..dimension).filter(|&i| observed[i].is_some()).collect();
        let mut log_weights = Vec::new();
        let mut means = Vec::new();
        for component in &self.components {
            let entry = |i: usize, j: usize| component.covariance[i * dimension + j];
            let among: Vec<f64> =
                given.iter().flat_map(|&i| given.iter().map(move |&j| entry(i, j))).collect();
            let factor = cholesky(&among, given.len())
                .expect("a principal part of a positive definite matrix is positive definite");
            let centred: Vec<f64> =
                given.iter().map(|&i| observed[i].unwrap_or(0.0) - component.mean[i]).collect();
            let half = solve_lower(&factor, &centred);
            log_weights.push(component.weight.ln() + log_gaussian(&factor, &half));
            let pulls = solve_upper(&factor, &half);
            let mean = |i: usize| {
                let pull = given.iter().zip(&pulls).map(|(&j, pull)| entry(i, j) * pull);
                observed[i].unwrap_or(component.mean[i] + pull.sum::<f64>())
            };
            means.push((0..dimension).map(mean).collect::<Vec<f64>>());
        }
        let total = log_sum_exp(&log_weights);
        let mut result = vec![0.0; dimension];
        for (log_weight, mean) in log_weights.iter().zip(&means) {
            let weight = (log_weight - total).exp();
            result.iter_mut().zip(mean).for_each(|(sum, mean)| *sum += weight * mean);
        }
        for (value, given) in result.iter_mut().zip(observed) {
            *value = given.unwrap_or(*value);
        }
        Some(result)
    }
}

/// Log-density of a Gaussian, given its Cholesky factor and the whitened row.
fn log_gaussian(factor: &[f64], whitened: &[f64]) -> f64 {
    let dimension = whitened.len();
    -0.5 * (dot(whitened, whitened) + dimension as f64 * (2.0 * PI).ln())
        - log_diagonal(factor, dimension)
}

fn log_diagonal(factor: &[f64], dimension: usize) -> f64 {
    (0..dimension).map(|i| factor[i * dimension + i].ln()).sum()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The lower factor L of A = L L^T, or none if A is not positive definite.
fn cholesky(matrix: &[f64], dimension: usize) -> Option<Vec<f64>> {
    assert_eq!(matrix.len(), dimension * dimension, "a square matrix");
    let mut factor = vec![0.0; dimension * dimension];
    for i in 0..dimension {
        for j in 0..=i {
            let (row_i, row_j) = (&factor[i * dimension..][..j], &factor[j * dimension..][..j]);
            let rest = matrix[i * dimension + j] - dot(row_i, row_j);
            factor[i * dimension + j] = match i == j {
                true if rest > 0.0 => rest.sqrt(),
                true => return None,
                false => rest / factor[j * dimension + j],
            };
        }
    }
    Some(factor)
}

/// The x of L x = b.
fn solve_lower(factor: &[f64], b: &[f64]) -> Vec<f64> {
    let dimension = b.len();
    let mut x: Vec<f64> = Vec::with_capacity(dimension);
    for i in 0..dimension {
        let row = &factor[i * dimension..][..=i];
        x.push((b[i] - dot(&row[..i], &x)) / row[i]);
    }
    x
}

/// The x of L^T x = b.
fn solve_upper(factor: &[f64], b: &[f64]) -> Vec<f64> {
    let dimension = b.len();
    let mut x = b.to_vec();
    for i in (0..dimension).rev() {
        x[i] /= factor[i * dimension + i];
        for j in 0..i {
            x[j] -= factor[i * dimension + j] * x[i];
        }
    }
    x
}
