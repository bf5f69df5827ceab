//! The pinwheel: five curved arms around the origin.
//!
//! A row begins as a draw from a Gaussian around (1, 0), long in the first direction and narrow in the second.
//! It is then turned about the origin by the angle of its arm and, further, by `TWIST * exp(distance)`. A turn by
//! an angle that depends on the distance alone keeps areas, so the density is that of the Gaussian at the point
//! turned back, averaged over the arms. (Johnson et al. 2016 turn by the first coordinate instead of the distance,
//! which has no closed inverse.)

use std::f64::consts::TAU;

use rand::Rng;

use super::quadrature::{over_square, surprise};
use super::{Builtin, Entropy, index, log_normal, log_sum_exp, normal};

const ARMS: usize = 5;
const LENGTH: f64 = 0.3;
const WIDTH: f64 = 0.1;
const TWIST: f64 = 0.25;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Pinwheel;

impl Builtin for Pinwheel {
    fn name(&self) -> String {
        "pinwheel".into()
    }

    fn description(&self) -> String {
        "five curved arms around the origin".into()
    }

    fn dimension(&self) -> usize {
        2
    }

    fn sample(&self, rows: usize, rng: &mut dyn Rng) -> Vec<f64> {
        let mut values = Vec::with_capacity(2 * rows);
        for _ in 0..rows {
            let arm = index(ARMS, rng);
            let (x, y) = (1.0 + LENGTH * normal(rng), WIDTH * normal(rng));
            let (x, y) = turned(x, y, angle(arm) + TWIST * x.hypot(y).exp());
            values.extend([x, y]);
        }
        values
    }

    fn log_density(&self, row: &[f64]) -> f64 {
        let (x, y) = (row[0], row[1]);
        let (x, y) = turned(x, y, -TWIST * x.hypot(y).exp());
        straight(x, y)
    }

    /// By quadrature over the arms before the twist, which does not change the entropy.
    fn entropy(&self) -> Entropy {
        // Ten standard deviations of the longer axis, two points to one of the shorter: exact to rounding.
        let value = over_square(4.0, 160, |x, y| surprise(straight(x, y)));
        Entropy { value, error: 1e-8 }
    }
}

/// Log-density before the twist.
fn straight(x: f64, y: f64) -> f64 {
    let arms = (0..ARMS).map(|arm| {
        let (x, y) = turned(x, y, -angle(arm));
        log_normal(x, 1.0, LENGTH) + log_normal(y, 0.0, WIDTH)
    });
    log_sum_exp(arms) - (ARMS as f64).ln()
}

fn angle(arm: usize) -> f64 {
    TAU * arm as f64 / ARMS as f64
}

fn turned(x: f64, y: f64, angle: f64) -> (f64, f64) {
    let (sin, cos) = angle.sin_cos();
    (cos * x - sin * y, sin * x + cos * y)
}
