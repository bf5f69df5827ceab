//! Sets whose density is known exactly, so that a fitted likelihood can be held against the truth.

mod banana;
mod checkerboard;
mod eight_gaussians;
mod fixed;
mod funnel;
mod gaussians;
mod mixed;
mod mixture;
mod pinwheel;
mod plane;
mod quadrature;
mod regression;
mod two_rings;

use std::fmt::Debug;

use rand::Rng;
use rand_distr::{Distribution, StandardNormal, StandardUniform};

use super::error::{Error, Result};
use super::kinds::ColumnKind;
use super::nearest::nearest;
use super::table::Table;

/// A distribution that can be drawn from and whose log-density is exact and normalised.
pub trait Builtin: Debug + Send + Sync {
    /// Its name, as in `builtin:NAME`.
    fn name(&self) -> String;

    /// What it looks like, in one line.
    fn description(&self) -> String;

    /// Number of columns.
    fn dimension(&self) -> usize;

    /// Independent draws, row after row: `rows * dimension` numbers.
    fn sample(&self, rows: usize, rng: &mut dyn Rng) -> Vec<f64>;

    /// Log-density of one row, in nats; minus infinity outside the support.
    fn log_density(&self, row: &[f64]) -> f64;

    /// Entropy in nats: minus the best possible mean log-likelihood.
    fn entropy(&self) -> Entropy;

    /// What its columns are, with their names; empty where all are any numbers.
    fn kinds(&self) -> Vec<ColumnKind> {
        Vec::new()
    }

    /// Names of its columns: `x1`, `x2`, ... where it has no others.
    fn columns(&self) -> Vec<String> {
        match self.kinds() {
            kinds if kinds.is_empty() => {
                (1..=self.dimension()).map(|index| format!("x{index}")).collect()
            }
            kinds => kinds.into_iter().map(|kind| kind.name).collect(),
        }
    }

    /// Log-density of those coordinates of a row that are observed, where it is known exactly.
    fn log_marginal(&self, row: &[f64], observed: &[bool]) -> Option<f64> {
        match () {
            () if observed.iter().all(|observed| *observed) => Some(self.log_density(row)),
            () if !observed.contains(&true) => Some(0.0),
            () => None,
        }
    }

    /// The mean of every coordinate given those that are observed, where it is known exactly.
    fn conditional_mean(&self, observed: &[Option<f64>]) -> Option<Vec<f64>> {
        let _ = observed;
        None
    }
}

/// An entropy and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entropy {
    /// In nats.
    pub value: f64,
    /// 0 for a closed form, a bound for quadrature, a standard error for Monte Carlo.
    pub error: f64,
}

impl Entropy {
    fn exact(value: f64) -> Self {
        Self { value, error: 0.0 }
    }
}

/// One of every built-in set; `mixture` and `funnel` come in other dimensions too (`mixture-16`).
pub fn list() -> Vec<Box<dyn Builtin>> {
    vec![
        Box::new(pinwheel::PINWHEEL),
        Box::new(checkerboard::CHECKERBOARD),
        Box::new(eight_gaussians::eight_gaussians()),
        Box::new(two_rings::TWO_RINGS),
        Box::new(banana::BANANA),
        Box::new(funnel::Funnel { dimension: 2 }),
        Box::new(mixture::mixture(16)),
        Box::new(mixed::Mixed),
        Box::new(regression::Regression),
    ]
}

/// The set of a name; `mixture-D` and `funnel-D` take a dimension.
pub fn find(name: &str) -> Result<Box<dyn Builtin>> {
    if let Some(set) = list().into_iter().find(|set| set.name() == name) {
        return Ok(set);
    }
    let dimension = |text: &str, range: std::ops::RangeInclusive<usize>| match text.parse() {
        Ok(dimension) if range.contains(&dimension) => Ok(dimension),
        _ => Err(Error::InvalidSetting {
            name: "the dimension of a built-in set",
            value: name.into(),
            expected: format!("NAME-D with D from {} to {}", range.start(), range.end()),
        }),
    };
    match name.split_once('-') {
        Some(("mixture", text)) => {
            Ok(Box::new(mixture::mixture(dimension(text, mixture::DIMENSIONS)?)))
        }
        Some(("funnel", text)) => {
            Ok(Box::new(funnel::Funnel { dimension: dimension(text, funnel::DIMENSIONS)? }))
        }
        _ => {
            let names: Vec<String> = list().iter().map(|set| set.name()).collect();
            let also = names.iter().map(String::as_str).chain(["mixture"]);
            Err(Error::UnknownBuiltin {
                name: name.into(),
                nearest: nearest(name, also),
                available: names.join(", "),
            })
        }
    }
}

/// A table of draws.
pub fn draw(set: &dyn Builtin, rows: usize, rng: &mut impl Rng) -> Table {
    let values = set.sample(rows, rng).into_iter().map(|value| value as f32).collect();
    Table::new(set.columns(), values)
}

/// A standard normal draw.
fn normal(rng: &mut dyn Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// A uniform draw on [0, 1).
fn uniform(rng: &mut dyn Rng) -> f64 {
    StandardUniform.sample(rng)
}

/// One of 0, 1, ..., `number - 1`.
fn index(number: usize, rng: &mut dyn Rng) -> usize {
    ((uniform(rng) * number as f64) as usize).min(number - 1)
}

/// Log-density of a normal distribution.
fn log_normal(x: f64, mean: f64, std_dev: f64) -> f64 {
    let z = (x - mean) / std_dev;
    -0.5 * (z * z + (2.0 * std::f64::consts::PI).ln()) - std_dev.ln()
}

/// Entropy of a normal distribution.
fn normal_entropy(std_dev: f64) -> f64 {
    0.5 * (2.0 * std::f64::consts::PI * std::f64::consts::E).ln() + std_dev.ln()
}
