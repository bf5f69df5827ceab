//! Two rings around the origin: uniform in angle, normal in radius.

use std::f64::consts::TAU;

use rand::Rng;
use zhat::weights::log_mean_exp;

use super::plane::Plane;
use super::quadrature::{over_line, surprise};
use super::{Entropy, index, log_normal, normal, uniform};

/// The radii are more than 12 standard deviations from 0, so that a negative radius (probability below 1e-35) need
/// not be accounted for.
const RADII: [f64; 2] = [1.5, 3.0];
const STD_DEV: f64 = 0.12;

pub(super) const TWO_RINGS: Plane = Plane {
    name: "two-rings",
    description: "two thin rings around the origin, of equal weight",
    draw,
    log_density,
    entropy,
};

fn draw(rng: &mut dyn Rng) -> [f64; 2] {
    let radius = RADII[index(2, rng)] + STD_DEV * normal(rng);
    let (sin, cos) = (TAU * uniform(rng)).sin_cos();
    [radius * cos, radius * sin]
}

fn log_density([x, y]: [f64; 2]) -> f64 {
    at_radius(x.hypot(y))
}

fn entropy() -> Entropy {
    let at = |radius: f64| TAU * radius * surprise(at_radius(radius));
    // From and to twelve standard deviations outside the rings.
    Entropy { value: over_line(0.06, 4.44, 400, at), error: 1e-8 }
}

/// The density of the radius, spread over a circle of that radius.
fn at_radius(radius: f64) -> f64 {
    let rings = RADII.map(|mean| log_normal(radius, mean, STD_DEV));
    log_mean_exp(&rings) - (TAU * radius.max(f64::MIN_POSITIVE)).ln()
}
