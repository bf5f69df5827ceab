//! The distance along random lines, for sets of points too large for a matching.

use rayon::prelude::*;

use super::check;
use crate::error::{Result, at_least};
use crate::rng::Stream;

/// The sliced 2-Wasserstein distance: `sqrt(mean_k W_2^2(x . theta_k, y . theta_k))` over unit vectors `theta_k` drawn
/// uniformly from the sphere, where `W_2` on a line pairs quantiles.
///
/// There is no factor for the dimension: two sets that differ by a shift of length `s` in `d` dimensions are about
/// `s / sqrt(d)` apart. The sets may differ in size.
///
/// # Shapes
/// - `x`: `[n, dimension]`, row-major
/// - `y`: `[m, dimension]`, row-major
pub fn sliced_wasserstein(
    x: &[f32],
    y: &[f32],
    dimension: usize,
    projections: usize,
    rng: &mut Stream,
) -> Result<f64> {
    check("x", x, dimension)?;
    check("y", y, dimension)?;
    at_least(1, "projections", projections)?;
    let directions = rng.normals(projections * dimension);
    let squares: Vec<f64> = directions
        .par_chunks(dimension)
        .map(|direction| {
            let length = direction.iter().map(|value| value * value).sum::<f64>().sqrt();
            let unit: Vec<f64> = direction.iter().map(|value| value / length).collect();
            squared_distance(&project(x, &unit), &project(y, &unit))
        })
        .collect();
    Ok((squares.iter().sum::<f64>() / projections as f64).sqrt())
}

/// Coordinates along a line, in order.
fn project(points: &[f32], unit: &[f64]) -> Vec<f64> {
    let mut along: Vec<f64> = points
        .chunks_exact(unit.len())
        .map(|point| point.iter().zip(unit).map(|(&value, unit)| f64::from(value) * unit).sum())
        .collect();
    along.sort_unstable_by(f64::total_cmp);
    along
}

/// `W_2^2` of sorted numbers: the integral of the squared difference of the quantile functions.
fn squared_distance(x: &[f64], y: &[f64]) -> f64 {
    // In units of 1 / (n m), a number of x has mass m and one of y has mass n.
    let (mut at_x, mut at_y, mut left_x, mut left_y) = (0, 0, y.len(), x.len());
    let mut total = 0.0;
    while at_x < x.len() {
        let moved = left_x.min(left_y);
        total += moved as f64 * (x[at_x] - y[at_y]).powi(2);
        (left_x, left_y) = (left_x - moved, left_y - moved);
        if left_x == 0 {
            (at_x, left_x) = (at_x + 1, y.len());
        }
        if left_y == 0 {
            (at_y, left_y) = (at_y + 1, x.len());
        }
    }
    total / (x.len() as f64 * y.len() as f64)
}
