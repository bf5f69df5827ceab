//! What tests of kernels, criteria and estimators need: invariance, z-scores with a stated level, gradients.
//!
//! A kernel of your own is tested by one call:
//!
//! ```
//! use zhat::burn::tensor::Device;
//! use zhat::host::Place;
//! use zhat::kernel::Metropolis;
//! use zhat::model::DiagonalGaussian;
//! use zhat::proposal::{Proposal, RandomWalk};
//! use zhat::rng::Streams;
//! use zhat::testing::{invariance, z_limit};
//!
//! let model = DiagonalGaussian::standard(2, &Device::flex());
//! let rng = &mut Streams::new(1).stream("test", 0, 0);
//! let x0 = model.sample(10_000, &Place::new(&Device::flex()), rng);
//! let kernel = Metropolis::new(RandomWalk::new(1.0)?, 1)?;
//! let found = invariance(&kernel, &model, x0, rng)?;
//! // An invariant kernel fails this for one seed in 100,000.
//! assert!(found.z_score < z_limit(1e-5, found.num_statistics));
//! # Ok::<(), zhat::Error>(())
//! ```

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use crate::error::Result;
use crate::host::to_host;
use crate::kernel::{Contrast, State};
use crate::rng::Stream;

/// Fewer rows moved than this share, and the check of invariance is blind.
const SMALLEST_SHARE_MOVED: f64 = 0.05;

/// What [`invariance`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct Invariance {
    /// The largest absolute z-score of the changes of all statistics; infinite where fewer than 5 % of the rows moved: a
    /// kernel that stays where it is changes nothing and is of no use.
    pub z_score: f64,
    /// The mean change of the statistic with the largest z-score.
    pub mean_change: f64,
    /// How many statistics the largest is of, for [`z_limit`].
    pub num_statistics: usize,
    /// Share of the rows that are not where they were.
    pub share_moved: f64,
}

/// Exact draws of the model in, one transition, and out: no mean of any function may change.
///
/// The functions are the coordinates, their squares, products of neighbours, and a half-space, which tell apart location,
/// scale, correlation and asymmetry.
///
/// # Shapes
/// - `x0`: `[n, d]`, exact draws of the model
pub fn invariance<M: ?Sized, K: Contrast<M> + ?Sized>(
    kernel: &K,
    model: &M,
    x0: Tensor<2>,
    rng: &mut Stream,
) -> Result<Invariance> {
    let dimension = x0.dims()[1];
    let before = to_host(&x0);
    let after = to_host(&kernel.propose(model, State::new(x0), rng)?.select(rng).x);
    Ok(compare(&before, &after, dimension))
}

/// The same for a transition that has been made already: the rows before, and the same rows after it.
pub fn compare(before: &[f64], after: &[f64], dimension: usize) -> Invariance {
    assert_eq!(before.len(), after.len(), "as many rows before as after");
    let pairs = || before.chunks_exact(dimension).zip(after.chunks_exact(dimension));
    let number = pairs().count() as f64;
    let middle = before.iter().step_by(dimension).sum::<f64>() / number;
    let num_statistics = 3 * dimension;
    let (mean_change, z_score) = (0..num_statistics)
        .map(|at| {
            let change = |(b, a)| statistic(at, a, middle) - statistic(at, b, middle);
            let changes: Vec<f64> = pairs().map(change).collect();
            (changes.iter().sum::<f64>() / number, z_score(&changes, 0.0))
        })
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .expect("at least one coordinate");
    let share_moved = pairs().filter(|(b, a)| b != a).count() as f64 / number;
    let z_score = if share_moved < SMALLEST_SHARE_MOVED { f64::INFINITY } else { z_score };
    Invariance { z_score, mean_change, num_statistics, share_moved }
}

/// Statistic number `at` of `3 d`: `d` coordinates, `d` squares, `d - 1` products of neighbours, one half-space.
fn statistic(at: usize, x: &[f64], middle: f64) -> f64 {
    let (block, i) = (at / x.len(), at % x.len());
    match block {
        0 => x[i],
        1 => x[i] * x[i],
        _ if i + 1 < x.len() => x[i] * x[i + 1],
        _ => f64::from(u8::from(x[0] > middle)),
    }
}

/// Standard errors between the mean of independent values and what is expected of it.
///
/// Values that do not vary at all must be right to rounding (1e-6, relative above 1); else the score is infinite, as it is
/// where a value is not a number.
pub fn z_score(values: &[f64], expected: f64) -> f64 {
    let number = values.len() as f64;
    let mean = values.iter().sum::<f64>() / number;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (number - 1.0);
    let standard_error = (variance / number).sqrt();
    let distance = (mean - expected).abs();
    if !(distance / standard_error.max(1e-12)).is_finite() {
        return f64::INFINITY;
    }
    if standard_error < 1e-12 {
        let right = distance < 1e-6 * expected.abs().max(1.0);
        return if right { 0.0 } else { f64::INFINITY };
    }
    distance / standard_error
}

/// What the largest of `number` absolute z-scores exceeds with a probability of at most `level`, if all is as expected.
///
/// The normal quantile with Bonferroni's correction: it holds for components that depend on each other, and for means of
/// so many values that the central limit theorem holds that far out (some thousands).
pub fn z_limit(level: f64, number: usize) -> f64 {
    assert!(level > 0.0 && level <= 0.05 && number > 0, "a level of at most 0.05");
    let (mut low, mut high) = (1.5, 40.0);
    while high - low > 1e-9 {
        let middle = 0.5 * (low + high);
        if number as f64 * exceedance(middle) > level { low = middle } else { high = middle }
    }
    high
}

/// The probability that the absolute value of a standard normal variable exceeds `z`, for `z` from 1.5 on.
pub fn exceedance(z: f64) -> f64 {
    // Laplace's continued fraction of Mills' ratio, z + 1/(z + 2/(z + 3/..)); 100 terms give ten digits at 1.5.
    let fraction = (1..=100).rev().fold(z, |rest, term| z + f64::from(term) / rest);
    2.0 * (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() / fraction
}

/// The gradient of a scalar in all float parameters of a module, in the order of its fields; zero where it has none.
pub fn gradient<M: Module>(loss: &Tensor<1>, module: &M) -> Vec<f64> {
    flatten(&GradientsParams::from_module(&mut loss.backward(), module), module)
}

/// A gradient as one vector, as [`gradient`] has it.
pub fn flatten<M: Module>(gradients: &GradientsParams, module: &M) -> Vec<f64> {
    struct Collect<'a>(&'a GradientsParams, Vec<f64>);
    impl ModuleVisitor for Collect<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            match self.0.get::<D>(param.id) {
                Some(gradient) => self.1.extend(to_host(&gradient)),
                None => self.1.extend(vec![0.0; param.val().shape().num_elements()]),
            }
        }
    }
    let mut collect = Collect(gradients, Vec::new());
    module.visit(&mut collect);
    collect.1
}

/// Central differences `(f(x + h e_i) - f(x - h e_i)) / 2h` in every coordinate.
///
/// With 32-bit floats behind `f`, `h = 1e-2` balances the truncation `h^2 f''' / 6` against rounding.
pub fn finite_differences(f: impl Fn(&[f64]) -> f64, at: &[f64], h: f64) -> Vec<f64> {
    (0..at.len())
        .map(|i| {
            let shifted = |sign: f64| {
                let mut shifted = at.to_vec();
                shifted[i] += sign * h;
                f(&shifted)
            };
            (shifted(1.0) - shifted(-1.0)) / (2.0 * h)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    #[test]
    fn the_limit_is_the_quantile_of_the_normal_distribution() {
        for (level, number, limit) in
            [(0.05, 1, 1.959964), (1e-4, 1, 3.890592), (1e-4, 100, 4.891638)]
        {
            let computed = z_limit(level, number);
            assert!((computed - limit).abs() < 1e-5, "{level} of {number}: {computed}");
        }
        assert!((exceedance(3.0) - 0.002699796).abs() < 1e-9);
    }

    #[test]
    fn a_z_score_counts_standard_errors() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert!((z_score(&values, 3.0 + 0.5f64.sqrt()) - 1.0).abs() < 1e-12);
        assert_eq!(z_score(&[0.5; 10], 0.5), 0.0);
        assert_eq!(z_score(&[0.5; 10], 0.6), f64::INFINITY);
        assert_eq!(z_score(&[0.5, -f64::NAN], 0.5), f64::INFINITY);
    }

    #[test]
    fn a_shift_a_scale_a_rotation_and_a_standstill_are_all_seen() {
        let mut rng = Streams::new(2).stream("test", 0, 0);
        let before = rng.normals(20_000);
        let fresh = rng.normals(20_000);
        let limit = z_limit(1e-5, 6);
        assert!(compare(&before, &fresh, 2).z_score < limit);
        let shift: Vec<f64> = fresh.iter().map(|x| x + 0.1).collect();
        let scale: Vec<f64> = fresh.iter().map(|x| x * 1.1).collect();
        let correlated: Vec<f64> =
            fresh.chunks(2).flat_map(|x| [x[0], 0.2 * x[0] + 0.98f64.sqrt() * x[1]]).collect();
        let folded: Vec<f64> =
            fresh.iter().map(|x| if *x > 0.0 && *x < 0.2 { -x } else { *x }).collect();
        for broken in [shift, scale, correlated, folded, before.clone()] {
            assert!(compare(&before, &broken, 2).z_score > limit);
        }
        assert_eq!(compare(&before, &before, 2).share_moved, 0.0);
    }

    #[test]
    fn central_differences_are_exact_for_a_parabola() {
        let computed = finite_differences(|x| x[0] * x[0] + 3.0 * x[1], &[2.0, 5.0], 0.1);
        assert!((computed[0] - 4.0).abs() < 1e-9 && (computed[1] - 3.0).abs() < 1e-9);
    }
}
