//! Integrals of smooth functions that vanish at the border: the trapezoidal rule, which is exact to rounding there.

/// The sum of a function over a grid from `low` to `high`, times the step.
pub(super) fn over_line(low: f64, high: f64, points: usize, f: impl Fn(f64) -> f64) -> f64 {
    let step = (high - low) / points as f64;
    (0..points).map(|i| f(low + (i as f64 + 0.5) * step)).sum::<f64>() * step
}

/// The same over a square around 0.
pub(super) fn over_square(half_width: f64, points: usize, f: impl Fn(f64, f64) -> f64) -> f64 {
    over_line(-half_width, half_width, points, |x| {
        over_line(-half_width, half_width, points, |y| f(x, y))
    })
}

/// -p log p, given log p.
pub(super) fn surprise(log_density: f64) -> f64 {
    if log_density == f64::NEG_INFINITY { 0.0 } else { -log_density.exp() * log_density }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::builtin::{log_normal, normal_entropy};

    #[test]
    fn the_entropy_of_a_gaussian_is_exact_to_rounding() {
        let log_density = |x, y| log_normal(x, 0.3, 0.5) + log_normal(y, -0.2, 0.7);
        let entropy = over_square(8.0, 120, |x, y| surprise(log_density(x, y)));
        let expected = normal_entropy(0.5) + normal_entropy(0.7);
        assert!((entropy - expected).abs() < 1e-12, "{entropy} {expected}");
    }
}
