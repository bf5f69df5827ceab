//! The banana: a normal coordinate, and a second one that is normal around a parabola of the first.

use rand::Rng;

use super::plane::Plane;
use super::{Entropy, log_normal, normal, normal_entropy};

const LENGTH: f64 = 1.5;
const WIDTH: f64 = 0.3;
const BEND: f64 = 0.5;

pub(super) const BANANA: Plane = Plane {
    name: "banana",
    description: "a bent Gaussian: the second column follows a parabola of the first",
    draw,
    log_density,
    entropy,
};

fn draw(rng: &mut dyn Rng) -> [f64; 2] {
    let x = LENGTH * normal(rng);
    [x, ridge(x) + WIDTH * normal(rng)]
}

fn log_density([x, y]: [f64; 2]) -> f64 {
    log_normal(x, 0.0, LENGTH) + log_normal(y, ridge(x), WIDTH)
}

fn entropy() -> Entropy {
    Entropy::exact(normal_entropy(LENGTH) + normal_entropy(WIDTH))
}

/// Shifted so that the second column has mean 0.
fn ridge(x: f64) -> f64 {
    BEND * (x * x - LENGTH * LENGTH)
}
