//! The mixture of any dimension: four Gaussians of unequal weight with strongly correlated coordinates.
//!
//! The parameters follow from the dimension by a fixed rule. Component k = 1..4 has weight k/10. Its mean has
//! independent coordinates of standard deviation 4 / sqrt(2 D), so that two means are about 4 apart in any
//! dimension. Its covariance is F F^T + 0.2 I with a D x r factor F (r = 3, or D if smaller) of independent
//! entries of variance 0.8 / r: every coordinate has variance about 1, most of it shared with the others.

use std::ops::RangeInclusive;

use zhat::weights::log_sum_exp;

use super::fixed::Fixed;
use super::gaussians::{Component, Gaussians};
use super::quadrature::surprise;
use super::{Builtin, Entropy, normal_entropy};

const COMPONENTS: usize = 4;
const DISTANCE: f64 = 4.0;
const SHARED: f64 = 0.8;
const FACTORS: usize = 3;

/// The dimensions it comes in.
pub(super) const DIMENSIONS: RangeInclusive<usize> = 1..=256;

/// The mixture of a given dimension, at least 1.
pub(super) fn mixture(dimension: usize) -> Gaussians {
    let mut fixed = Fixed(dimension as u64);
    let component = |k: usize| {
        let spread = DISTANCE / (2.0 * dimension as f64).sqrt();
        let mean = (0..dimension).map(|_| spread * fixed.normal()).collect();
        Component::new((k + 1) as f64, mean, covariance(dimension, &mut fixed))
    };
    let components = (0..COMPONENTS).map(component).collect();
    let description = format!(
        "four Gaussians with correlated coordinates in {dimension} dimensions; also mixture-D"
    );
    Gaussians::new(format!("mixture-{dimension}"), description, components, entropy)
}

fn covariance(dimension: usize, fixed: &mut Fixed) -> Vec<f64> {
    let factors = FACTORS.min(dimension);
    let scale = (SHARED / factors as f64).sqrt();
    let loadings: Vec<f64> = (0..dimension * factors).map(|_| scale * fixed.normal()).collect();
    let mut matrix = vec![0.0; dimension * dimension];
    for i in 0..dimension {
        for j in 0..dimension {
            let (a, b) = (&loadings[i * factors..][..factors], &loadings[j * factors..][..factors]);
            matrix[i * dimension + j] = a.iter().zip(b).map(|(x, y)| x * y).sum();
        }
        matrix[i * dimension + i] += 1.0 - SHARED;
    }
    matrix
}

/// H(x) = H(x | component) + H(component) - H(component | x): the first two are closed forms, and only the
/// last, which is small, is averaged over fixed draws. The error is its standard error.
fn entropy(set: &Gaussians) -> Entropy {
    let dimension = set.dimension();
    // About a tenth of a second of arithmetic, whatever the dimension.
    let draws = (100_000_000 / (COMPONENTS * dimension * dimension)).clamp(200, 100_000);
    let mut fixed = Fixed(1);
    let (mut value, mut variance) = (0.0, 0.0);
    for component in &set.components {
        let given = dimension as f64 * normal_entropy(1.0) + component.log_std_dev();
        let number = (component.weight * draws as f64).ceil();
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..number as usize {
            let normals: Vec<f64> = (0..dimension).map(|_| fixed.normal()).collect();
            let doubt = doubt(&set.log_terms(&component.draw(&normals)));
            sum += doubt;
            squares += doubt * doubt;
        }
        let mean = sum / number;
        value += component.weight * (given - component.weight.ln() - mean);
        variance += component.weight.powi(2) * (squares / number - mean * mean) / number;
    }
    Entropy { value, error: variance.max(0.0).sqrt() }
}

/// Entropy of the component, given the logs of weight times density at a row.
fn doubt(log_terms: &[f64]) -> f64 {
    let total = log_sum_exp(log_terms);
    log_terms.iter().map(|term| surprise(term - total)).sum()
}
