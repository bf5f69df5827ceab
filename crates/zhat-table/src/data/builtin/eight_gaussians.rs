//! Eight Gaussians: round blobs of equal weight on a circle.

use rand::Rng;

use super::quadrature::{over_square, surprise};
use super::{Builtin, Component, Entropy, GaussianMixture};

const RADIUS: f64 = 4.0;
const STD_DEV: f64 = 0.5;

/// See the module.
#[derive(Debug, Clone)]
pub struct EightGaussians(GaussianMixture);

impl Default for EightGaussians {
    fn default() -> Self {
        let variance = STD_DEV * STD_DEV;
        let component = |corner: usize| {
            let (sin, cos) = (std::f64::consts::FRAC_PI_4 * corner as f64).sin_cos();
            Component::new(
                1.0,
                vec![RADIUS * cos, RADIUS * sin],
                vec![variance, 0.0, 0.0, variance],
            )
        };
        Self(GaussianMixture::new((0..8).map(component).collect()))
    }
}

impl Builtin for EightGaussians {
    fn name(&self) -> String {
        "eight-gaussians".into()
    }

    fn description(&self) -> String {
        "eight round blobs on a circle".into()
    }

    fn dimension(&self) -> usize {
        2
    }

    fn sample(&self, rows: usize, rng: &mut dyn Rng) -> Vec<f64> {
        self.0.sample(rows, rng)
    }

    fn log_density(&self, row: &[f64]) -> f64 {
        self.0.log_density(row)
    }

    fn entropy(&self) -> Entropy {
        let value = over_square(9.0, 120, |x, y| surprise(self.0.log_density(&[x, y])));
        Entropy { value, error: 1e-8 }
    }

    fn conditional_mean(&self, observed: &[Option<f64>]) -> Option<Vec<f64>> {
        Some(self.0.conditional_mean(observed))
    }
}
