//! Eight Gaussians: round blobs of equal weight on a circle.

use super::gaussians::{Component, Gaussians};
use super::quadrature::{over_square, surprise};
use super::{Builtin, Entropy};

const RADIUS: f64 = 4.0;
const STD_DEV: f64 = 0.5;

pub(super) fn eight_gaussians() -> Gaussians {
    let variance = STD_DEV * STD_DEV;
    let component = |corner: usize| {
        let (sin, cos) = (std::f64::consts::FRAC_PI_4 * corner as f64).sin_cos();
        Component::new(1.0, vec![RADIUS * cos, RADIUS * sin], vec![variance, 0.0, 0.0, variance])
    };
    let components = (0..8).map(component).collect();
    let description = "eight round blobs on a circle";
    Gaussians::new("eight-gaussians".into(), description.into(), components, entropy)
}

fn entropy(set: &Gaussians) -> Entropy {
    let value = over_square(9.0, 120, |x, y| surprise(set.log_density(&[x, y])));
    Entropy { value, error: 1e-8 }
}
