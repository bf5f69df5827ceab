//! The 2-Wasserstein distance between two sets of points: exactly, or along random lines.

mod assignment;
mod costs;
mod sliced;

pub use sliced::sliced_wasserstein;

use costs::Costs;

use crate::error::{Error, Result, at_least};
use crate::watch::Watch;

/// The cheapest way to move one set of points onto another, with a proof.
#[derive(Debug, Clone, PartialEq)]
pub struct Matching {
    /// For every point of `x`, the point of `y` to which it goes.
    pub partner: Vec<usize>,
    /// `sqrt(1/n sum_i |x_i - y_partner(i)|^2)`, the 2-Wasserstein distance.
    pub distance: f64,
    /// No matching has a smaller distance than this, by linear programming duality and 64-bit costs.
    ///
    /// It is below `distance` by rounding alone, relatively by less than 1e-6.
    pub lower_bound: f64,
}

/// The 2-Wasserstein distance between two sets of equally many points:
/// the square root of the smallest mean of `|x_i - y_j|^2` over all ways to pair them up.
///
/// For 10,000 points of 6 features this takes seconds and tens of megabytes; [`match_points`] can be watched and stopped.
///
/// ```
/// let (x, y) = ([0.0, 0.0, 1.0, 0.0], [1.0, 2.0, 0.0, 2.0]);
/// assert_eq!(zhat::evaluate::wasserstein(&x, &y, 2)?, 2.0);
/// # Ok::<(), zhat::Error>(())
/// ```
///
/// # Shapes
/// - `x`, `y`: `[n, dimension]`, row-major
pub fn wasserstein(x: &[f32], y: &[f32], dimension: usize) -> Result<f64> {
    Ok(match_points(x, y, dimension, &Watch::default())?.distance)
}

/// The best matching behind [`wasserstein`], for someone who watches.
///
/// The watch counts points that have a partner, over all rounds, and is looked at every few milliseconds; the first points
/// take longest.
///
/// # Shapes
/// - `x`, `y`: `[n, dimension]`, row-major
pub fn match_points(x: &[f32], y: &[f32], dimension: usize, watch: &Watch) -> Result<Matching> {
    let [number, others] = [check("x", x, dimension)?, check("y", y, dimension)?];
    if others != number {
        let expected = format!("{number}, as there are points of x");
        return Err(Error::setting("number of points of y", others, expected));
    }
    let scale = power_of_two(x.iter().chain(y));
    let costs = Costs::new(x, y, dimension, scale);
    let assignment = assignment::solve(&costs, watch)?;
    let distance = |total: f64| (total / number as f64).sqrt() / f64::from(scale);
    let pairs = assignment.column_of.iter().enumerate();
    Ok(Matching {
        distance: distance(pairs.map(|(row, &column)| costs.exact(row, column)).sum()),
        lower_bound: distance(costs.lower_bound(&assignment.prices).max(0.0)),
        partner: assignment.column_of,
    })
}

/// The number of points, all of whose features are finite.
fn check(name: &'static str, points: &[f32], dimension: usize) -> Result<usize> {
    at_least(1, "dimension", dimension)?;
    assert!(points.len().is_multiple_of(dimension), "whole points of {dimension} features");
    if points.is_empty() {
        return Err(Error::setting(name, "empty", "at least one point"));
    }
    match points.iter().position(|value| !value.is_finite()) {
        None => Ok(points.len() / dimension),
        Some(at) => {
            let (point, feature) = (at / dimension, at % dimension);
            let value = format!("{} at point {point}, feature {feature}", points[at]);
            Err(Error::setting(name, value, "finite numbers"))
        }
    }
}

/// What takes the largest value to about 1, exactly.
fn power_of_two<'a>(values: impl Iterator<Item = &'a f32>) -> f32 {
    let largest = values.fold(0.0, |largest: f32, value| largest.max(value.abs()));
    match largest == 0.0 {
        true => 1.0,
        // 2^126 is the largest power of two whose reciprocal is a normal number.
        false => (-largest.log2().ceil()).clamp(-126.0, 126.0).exp2(),
    }
}
