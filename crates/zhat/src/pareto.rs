//! How heavy the tail of importance weights is: the shape `k` of a generalised Pareto distribution fitted to the largest of them.
//!
//! After Vehtari, Simpson, Gelman, Yao and Gabry, *Pareto smoothed importance sampling*, JMLR 25 (2024); the fit is that of Zhang and
//! Stephens (2009) with their weakly informative prior.

/// Fewer weights than this above the cut are no tail.
const FEWEST: usize = 5;
/// Weights below the smallest positive number are zero.
const LOG_SMALLEST: f64 = -708.396_418_532_264_1;

/// The shape `k` of the tail of weights that are given as logs. Moments of the weights up to `1 / k` exist: above 1/2 they have no
/// variance, above 0.7 an estimate with them takes more draws than anybody has, above 1 they have no mean.
///
/// Zero where the largest weights are all the same, which have no tail; infinite where a few draws have all the weight; not a number
/// where a weight is not.
pub fn pareto_k(log_weights: &[f64]) -> f64 {
    if log_weights.is_empty() || log_weights.iter().any(|log_w| log_w.is_nan()) {
        return f64::NAN;
    }
    let number = log_weights.len();
    let largest = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return f64::NAN;
    }
    let tail = (number as f64 / 5.0).min(3.0 * (number as f64).sqrt()).ceil() as usize;
    let mut relative: Vec<f64> = log_weights.iter().map(|log_w| log_w - largest).collect();
    if tail + 1 > number {
        return f64::INFINITY;
    }
    // The largest `tail` and the one below them, at which the tail begins.
    let (_, &mut below, above) = relative.select_nth_unstable_by(number - tail - 1, f64::total_cmp);
    let cut = below.max(LOG_SMALLEST);
    let mut excess: Vec<f64> =
        above.iter().filter(|log_w| **log_w > cut).map(|log_w| log_w.exp() - cut.exp()).collect();
    if cut > -1e-12 {
        return 0.0;
    }
    if excess.len() < FEWEST {
        return f64::INFINITY;
    }
    excess.sort_unstable_by(f64::total_cmp);
    shape(&excess)
}

/// The posterior mean of the shape, for what exceeds the cut in increasing order.
fn shape(excess: &[f64]) -> f64 {
    const PRIOR_SCALE: f64 = 3.0;
    const PRIOR_DRAWS: f64 = 10.0;
    let number = excess.len() as f64;
    let quartile = excess[(number / 4.0 + 0.5) as usize - 1];
    let largest = excess[excess.len() - 1];
    let grid = 30 + number.sqrt() as usize;
    let mean_log = |b: f64| excess.iter().map(|x| (-b * x).ln_1p()).sum::<f64>() / number;
    let (mut places, mut log_likelihoods) = (Vec::with_capacity(grid), Vec::with_capacity(grid));
    for point in 1..=grid {
        let b = (1.0 - (grid as f64 / (point as f64 - 0.5)).sqrt()) / (PRIOR_SCALE * quartile)
            + 1.0 / largest;
        let k = mean_log(b);
        places.push(b);
        log_likelihoods.push(number * ((-b / k).ln() - k - 1.0));
    }
    let weight =
        |of: &f64| 1.0 / log_likelihoods.iter().map(|other| (other - of).exp()).sum::<f64>();
    let weights = log_likelihoods.iter().map(weight);
    let kept = places.iter().zip(weights).filter(|(_, weight)| *weight >= 10.0 * f64::EPSILON);
    let (sum, total) =
        kept.fold((0.0, 0.0), |(sum, total), (b, weight)| (sum + b * weight, total + weight));
    let k = mean_log(sum / total);
    (number * k + 0.5 * PRIOR_DRAWS) / (number + PRIOR_DRAWS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    /// `w = u^-k` has a Pareto tail of shape `k`.
    #[test]
    fn the_shape_of_a_pareto_tail_is_found() {
        for k in [0.2, 0.5, 0.9, 1.5] {
            let mut rng = Streams::new(3).stream("pareto", 0, 0);
            let log_w: Vec<f64> = (0..40_000).map(|_| -k * rng.uniform().ln()).collect();
            let found = pareto_k(&log_w);
            // The standard error of the shape from 600 of them is (1 + k) / sqrt(600), 0.10 at most.
            assert!((found - k).abs() < 0.3, "{k}: {found}");
            let shifted: Vec<f64> = log_w.iter().map(|log_w| log_w + 5000.0).collect();
            assert!((pareto_k(&shifted) - found).abs() < 1e-6, "a constant changes nothing");
        }
    }

    /// The same weights by ArviZ 0.23.4, `arviz.psislw`: `log w_i = 1.7 sin(i^2) + 0.002 i` for i from 0 to 499, and four times those.
    #[test]
    fn it_is_what_arviz_finds() {
        let log_w = |scale: f64| -> Vec<f64> {
            (0..500).map(f64::from).map(|i| scale * (1.7 * (i * i).sin() + 0.002 * i)).collect()
        };
        for (scale, expected) in [(1.0, ARVIZ[0]), (4.0, ARVIZ[1])] {
            let found = pareto_k(&log_w(scale));
            assert!((found - expected).abs() < 1e-6, "{scale}: {found} {expected}");
        }
    }

    const ARVIZ: [f64; 2] = [-0.354_665_543_727_859_9, 0.217_716_384_747_622_2];

    #[test]
    fn equal_weights_have_no_tail_and_a_few_that_have_all_have_nothing_else() {
        assert_eq!(pareto_k(&[0.3; 100]), 0.0);
        let mut few = vec![-900.0; 100];
        few[7] = 0.0;
        assert_eq!(pareto_k(&few), f64::INFINITY);
        assert!(pareto_k(&[0.0, f64::NAN]).is_nan() && pareto_k(&[]).is_nan());
    }
}
