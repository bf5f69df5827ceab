//! The pinwheel: five curved arms around the origin.
//!
//! A row begins as a draw from a Gaussian around (1, 0), long in the first direction and narrow in the second.
//! It is then turned about the origin by the angle of its arm and, further, by `TWIST * exp(distance)`. A turn by
//! an angle that depends on the distance alone keeps areas, so the density is that of the Gaussian at the point
//! turned back, averaged over the arms. (Johnson et al. 2016 turn by the first coordinate instead of the distance,
//! which has no closed inverse.)

use std::f64::consts::TAU;

use rand::Rng;
use zhat::weights::log_mean_exp;

use super::plane::Plane;
use super::quadrature::{over_square, surprise};
use super::{Entropy, index, log_normal, normal};

const ARMS: usize = 5;
const LENGTH: f64 = 0.3;
const WIDTH: f64 = 0.1;
const TWIST: f64 = 0.25;

pub(super) const PINWHEEL: Plane = Plane {
    name: "pinwheel",
    description: "five curved arms around the origin",
    draw,
    log_density,
    entropy,
};

fn draw(rng: &mut dyn Rng) -> [f64; 2] {
    let arm = index(ARMS, rng);
    let (x, y) = (1.0 + LENGTH * normal(rng), WIDTH * normal(rng));
    turned([x, y], angle(arm) + TWIST * x.hypot(y).exp())
}

fn log_density([x, y]: [f64; 2]) -> f64 {
    straight(turned([x, y], -TWIST * x.hypot(y).exp()))
}

/// By quadrature over the arms before the twist, which does not change the entropy.
fn entropy() -> Entropy {
    // Ten standard deviations of the longer axis, two points to one of the shorter: exact to rounding.
    let value = over_square(4.0, 160, |x, y| surprise(straight([x, y])));
    Entropy { value, error: 1e-8 }
}

/// Log-density before the twist.
fn straight(point: [f64; 2]) -> f64 {
    let arms: [f64; ARMS] = std::array::from_fn(|arm| {
        let [x, y] = turned(point, -angle(arm));
        log_normal(x, 1.0, LENGTH) + log_normal(y, 0.0, WIDTH)
    });
    log_mean_exp(&arms)
}

fn angle(arm: usize) -> f64 {
    TAU * arm as f64 / ARMS as f64
}

fn turned([x, y]: [f64; 2], angle: f64) -> [f64; 2] {
    let (sin, cos) = angle.sin_cos();
    [cos * x - sin * y, sin * x + cos * y]
}
