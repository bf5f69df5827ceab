//! Estimates of the normalising constant, always with an effective sample size and a standard error; distances between
//! sets of points.

mod annealed;
mod bridge;
mod importance;
mod sequential;
mod wasserstein;

pub use annealed::{AnnealedConfig, Bridge};
pub use bridge::bridge_sampling;
pub use importance::{conditional_importance_sampling, importance_sampling};
pub use sequential::{conditional_smc, smc};
pub use wasserstein::{Matching, match_points, sliced_wasserstein, wasserstein};

use serde::{Deserialize, Serialize};

use crate::weights::{LogWeights, effective_sample_size, log_mean_exp};

/// An estimate of `log Z`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogZ {
    /// `log` of the mean of the estimates of `Z` (for conditional estimators: minus `log` of the mean of `1 / Z-hat`).
    pub log_z: f64,
    /// Mean of the `log Z-hat`; lower than `log_z` by Jensen's inequality (higher for conditional estimators).
    pub mean_log_z_hat: f64,
    /// Standard error of `log_z`, by the delta method from the spread of the independent estimates.
    pub standard_error: f64,
    /// Effective sample size: of the weights for importance sampling, the smallest stage's mean for SMC.
    pub effective_sample_size: f64,
    /// Number of independent estimates behind the numbers.
    pub num_estimates: usize,
}

impl LogZ {
    /// From independent unbiased estimates of `Z`, given as logs.
    ///
    /// # Panics
    /// If there are fewer than two: one estimate has no spread.
    pub fn from_estimates(log_z_hats: &[f64]) -> Self {
        let number = log_z_hats.len();
        assert!(number >= 2, "a standard error needs two estimates");
        let log_z = log_mean_exp(log_z_hats);
        // Relative to their mean; var(log mean) = var(Z-hat) / (n mean^2) to first order.
        let relative: Vec<f64> = log_z_hats.iter().map(|log| (log - log_z).exp()).collect();
        let variance =
            relative.iter().map(|r| (r - 1.0).powi(2)).sum::<f64>() / (number - 1) as f64;
        let weights = LogWeights::from_values(log_z_hats.to_vec(), number).normalise();
        Self {
            log_z,
            mean_log_z_hat: log_z_hats.iter().sum::<f64>() / number as f64,
            standard_error: (variance / number as f64).sqrt(),
            effective_sample_size: effective_sample_size(weights.values()),
            num_estimates: number,
        }
    }

    /// From independent estimates whose reciprocals are unbiased for `1 / Z`, given as logs.
    pub(crate) fn from_conditional_estimates(log_z_hats: &[f64]) -> Self {
        let reciprocal: Vec<f64> = log_z_hats.iter().map(|log| -log).collect();
        let estimate = Self::from_estimates(&reciprocal);
        Self { log_z: -estimate.log_z, mean_log_z_hat: -estimate.mean_log_z_hat, ..estimate }
    }
}
