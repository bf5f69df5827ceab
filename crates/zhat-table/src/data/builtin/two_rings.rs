//! Two rings around the origin: uniform in angle, normal in radius.

use std::f64::consts::TAU;

use rand::Rng;

use super::quadrature::over_line;
use super::{Builtin, Entropy, index, log_normal, log_sum_exp, normal, uniform};

/// The radii are more than 12 standard deviations from 0, so that a negative radius (probability below 1e-35) need
/// not be accounted for.
const RADII: [f64; 2] = [1.5, 3.0];
const STD_DEV: f64 = 0.12;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct TwoRings;

impl Builtin for TwoRings {
    fn name(&self) -> String {
        "two-rings".into()
    }

    fn description(&self) -> String {
        "two thin rings around the origin, of equal weight".into()
    }

    fn dimension(&self) -> usize {
        2
    }

    fn sample(&self, rows: usize, rng: &mut dyn Rng) -> Vec<f64> {
        let mut values = Vec::with_capacity(2 * rows);
        for _ in 0..rows {
            let radius = RADII[index(2, rng)] + STD_DEV * normal(rng);
            let (sin, cos) = (TAU * uniform(rng)).sin_cos();
            values.extend([radius * cos, radius * sin]);
        }
        values
    }

    fn log_density(&self, row: &[f64]) -> f64 {
        at_radius(row[0].hypot(row[1]))
    }

    fn entropy(&self) -> Entropy {
        let surprise = |radius: f64| {
            let log_density = at_radius(radius);
            -TAU * radius * log_density.exp() * log_density
        };
        // From and to twelve standard deviations outside the rings.
        Entropy { value: over_line(0.06, 4.44, 400, surprise), error: 1e-8 }
    }
}

/// The density of the radius, spread over a circle of that radius.
fn at_radius(radius: f64) -> f64 {
    let rings = RADII.iter().map(|&mean| log_normal(radius, mean, STD_DEV));
    log_sum_exp(rings) - 2f64.ln() - (TAU * radius.max(f64::MIN_POSITIVE)).ln()
}
