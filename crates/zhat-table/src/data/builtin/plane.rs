//! A set in the plane, as a draw of one point, its log-density and its entropy.

use rand::Rng;

use super::{Builtin, Entropy};

#[derive(Debug, Clone, Copy)]
pub(super) struct Plane {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) draw: fn(&mut dyn Rng) -> [f64; 2],
    pub(super) log_density: fn([f64; 2]) -> f64,
    pub(super) entropy: fn() -> Entropy,
}

impl Builtin for Plane {
    fn name(&self) -> String {
        self.name.into()
    }

    fn description(&self) -> String {
        self.description.into()
    }

    fn dimension(&self) -> usize {
        2
    }

    fn sample(&self, rows: usize, rng: &mut dyn Rng) -> Vec<f64> {
        (0..rows).flat_map(|_| (self.draw)(rng)).collect()
    }

    fn log_density(&self, row: &[f64]) -> f64 {
        (self.log_density)([row[0], row[1]])
    }

    fn entropy(&self) -> Entropy {
        (self.entropy)()
    }
}
