//! The banana: a normal coordinate, and a second one that is normal around a parabola of the first.

use rand::Rng;

use super::{Builtin, Entropy, log_normal, normal, normal_entropy};

const LENGTH: f64 = 1.5;
const WIDTH: f64 = 0.3;
const BEND: f64 = 0.5;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Banana;

impl Builtin for Banana {
    fn name(&self) -> String {
        "banana".into()
    }

    fn description(&self) -> String {
        "a bent Gaussian: the second column follows a parabola of the first".into()
    }

    fn dimension(&self) -> usize {
        2
    }

    fn sample(&self, rows: usize, rng: &mut dyn Rng) -> Vec<f64> {
        let mut values = Vec::with_capacity(2 * rows);
        for _ in 0..rows {
            let x = LENGTH * normal(rng);
            values.extend([x, ridge(x) + WIDTH * normal(rng)]);
        }
        values
    }

    fn log_density(&self, row: &[f64]) -> f64 {
        log_normal(row[0], 0.0, LENGTH) + log_normal(row[1], ridge(row[0]), WIDTH)
    }

    fn entropy(&self) -> Entropy {
        Entropy::exact(normal_entropy(LENGTH) + normal_entropy(WIDTH))
    }
}

/// Shifted so that the second column has mean 0.
fn ridge(x: f64) -> f64 {
    BEND * (x * x - LENGTH * LENGTH)
}
