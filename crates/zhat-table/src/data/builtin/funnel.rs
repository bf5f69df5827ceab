//! Neal's funnel (2003): the first coordinate is the log-variance of all the others.

use std::ops::RangeInclusive;

use rand::Rng;

use super::{Builtin, Entropy, log_normal, normal, normal_entropy};

/// Neal has 3; with 1.5 the mouth is still fifty times as wide as the neck, and can be seen in one picture.
const LOG_VARIANCE_STD_DEV: f64 = 1.5;

/// The dimensions it comes in: a neck and at least one width.
pub(super) const DIMENSIONS: RangeInclusive<usize> = 2..=64;

#[derive(Debug, Clone, Copy)]
pub(super) struct Funnel {
    pub(super) dimension: usize,
}

impl Builtin for Funnel {
    fn name(&self) -> String {
        match self.dimension {
            2 => "funnel".into(),
            dimension => format!("funnel-{dimension}"),
        }
    }

    fn description(&self) -> String {
        "Neal's funnel: the first column is the log-variance of the others; also funnel-D".into()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn sample(&self, rows: usize, rng: &mut dyn Rng) -> Vec<f64> {
        let mut values = Vec::with_capacity(self.dimension * rows);
        for _ in 0..rows {
            let log_variance = LOG_VARIANCE_STD_DEV * normal(rng);
            values.push(log_variance);
            let std_dev = (0.5 * log_variance).exp();
            values.extend((1..self.dimension).map(|_| std_dev * normal(rng)));
        }
        values
    }

    fn log_density(&self, row: &[f64]) -> f64 {
        let std_dev = (0.5 * row[0]).exp();
        log_normal(row[0], 0.0, LOG_VARIANCE_STD_DEV)
            + row[1..].iter().map(|&x| log_normal(x, 0.0, std_dev)).sum::<f64>()
    }

    /// The mean of the log-variance is 0, so each of the others has the entropy of a standard normal.
    fn entropy(&self) -> Entropy {
        let others = (self.dimension - 1) as f64 * normal_entropy(1.0);
        Entropy::exact(normal_entropy(LOG_VARIANCE_STD_DEV) + others)
    }
}
