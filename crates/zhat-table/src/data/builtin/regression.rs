//! A regression with a known conditional density: two modes, and a spread that depends on what is given.

use rand::Rng;

use super::quadrature::{over_line, over_square, surprise};
use super::{Builtin, Entropy, log_normal, normal, uniform};

/// `x1` and `x2` are uniform on a square, and `y` is at one of two heights that depend on `x1`; which one depends on `x2`, and how near
/// to it on both.
#[derive(Debug, Clone, Copy)]
pub(super) struct Regression;

/// Half the side of the square.
const SIDE: f64 = 2.0;
/// Points of the integrals, in each direction.
const POINTS: usize = 50;

impl Regression {
    /// How likely the upper height is.
    fn upper(x2: f64) -> f64 {
        1.0 / (1.0 + (-2.0 * x2).exp())
    }

    /// The heights.
    fn heights(x1: f64) -> [f64; 2] {
        let middle = (1.5 * x1).sin();
        [middle - 1.0 - 0.2 * x1 * x1, middle + 1.0 + 0.2 * x1 * x1]
    }

    fn std_dev(x1: f64, x2: f64) -> f64 {
        0.15 + 0.1 * (x1 + SIDE) + 0.05 * (x2 + SIDE)
    }

    /// `log p(y | x1, x2)`
    fn log_conditional(x1: f64, x2: f64, y: f64) -> f64 {
        let (upper, [low, high], std_dev) =
            (Self::upper(x2), Self::heights(x1), Self::std_dev(x1, x2));
        let parts = [
            (1.0 - upper).ln() + log_normal(y, low, std_dev),
            upper.ln() + log_normal(y, high, std_dev),
        ];
        let most = parts[0].max(parts[1]);
        most + parts.iter().map(|part| (part - most).exp()).sum::<f64>().ln()
    }

    fn is_inside(x: f64) -> bool {
        (-SIDE..=SIDE).contains(&x)
    }
}

impl Builtin for Regression {
    fn name(&self) -> String {
        "regression".into()
    }

    fn description(&self) -> String {
        "y given x1 and x2 (--given x1,x2): two modes, with a spread that depends on both".into()
    }

    fn dimension(&self) -> usize {
        3
    }

    fn columns(&self) -> Vec<String> {
        ["x1", "x2", "y"].map(String::from).to_vec()
    }

    fn sample(&self, rows: usize, rng: &mut dyn Rng) -> Vec<f64> {
        let mut values = Vec::with_capacity(3 * rows);
        for _ in 0..rows {
            let [x1, x2] = [(); 2].map(|()| SIDE * (2.0 * uniform(rng) - 1.0));
            let height = Self::heights(x1)[usize::from(uniform(rng) < Self::upper(x2))];
            values.extend([x1, x2, height + Self::std_dev(x1, x2) * normal(rng)]);
        }
        values
    }

    fn log_density(&self, row: &[f64]) -> f64 {
        match Self::is_inside(row[0]) && Self::is_inside(row[1]) {
            true => Self::log_conditional(row[0], row[1], row[2]) - 2.0 * (2.0 * SIDE).ln(),
            false => f64::NEG_INFINITY,
        }
    }

    fn log_marginal(&self, row: &[f64], observed: &[bool]) -> Option<f64> {
        let known = observed.iter().filter(|observed| **observed).count();
        match observed[2] {
            // What is uniform is so whatever else is known.
            false => {
                let mut inside = row.iter().zip(observed).filter(|(_, observed)| **observed);
                let inside = inside.all(|(x, _)| Self::is_inside(*x));
                Some(if inside { -(known as f64) * (2.0 * SIDE).ln() } else { f64::NEG_INFINITY })
            }
            true if known == 3 => Some(self.log_density(row)),
            true => None,
        }
    }

    /// The mean over the square of the entropy of `y`, both by the rule of midpoints.
    fn entropy(&self) -> Entropy {
        let of_y = |x1: f64, x2: f64| {
            let ([low, high], std_dev) = (Self::heights(x1), Self::std_dev(x1, x2));
            let [from, to] = [low - 8.0 * std_dev, high + 8.0 * std_dev];
            over_line(from, to, 4 * POINTS, |y| surprise(Self::log_conditional(x1, x2, y)))
        };
        let conditional = over_square(SIDE, POINTS, of_y) / (4.0 * SIDE * SIDE);
        Entropy { value: conditional + 2.0 * (2.0 * SIDE).ln(), error: 1e-3 }
    }
}
