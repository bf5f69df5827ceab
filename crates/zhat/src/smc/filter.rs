//! The bookkeeping of weights and ancestors, stage by stage, for many particle systems at once.

use super::{ResampleWhen, SmcConfig};
use crate::rng::Stream;
use crate::weights::{LogWeights, Weights, effective_sample_size, log_sum_exp};

/// Weights carried from stage to stage, and the estimate of `log Z` they add up to, for each row.
///
/// It knows nothing of models or tensors: it is told the log-weights of a stage and says who descends from whom.
#[derive(Debug, Clone)]
pub struct Filter {
    config: SmcConfig,
    conditional: bool,
    /// `log(c W_{d-1})` where the last stage was not resampled, else 0 (eq. nce_ext:weight_unnorm_resamp).
    carried: Vec<f64>,
    log_z_hat: Vec<f64>,
    weights: Vec<f64>,
}

/// Who descends from whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestry {
    /// Ancestor of every particle of every row, within its row; a particle's own index where nothing was resampled.
    pub ancestors: Vec<usize>,
    /// Whether the row was resampled.
    pub resampled: Vec<bool>,
}

impl Filter {
    /// Filters for a number of independent rows; conditional ones keep particle 0 of each.
    pub fn new(config: &SmcConfig, rows: usize, conditional: bool) -> Self {
        let particles = rows * config.num_particles;
        Self {
            config: config.clone(),
            conditional,
            carried: vec![0.0; particles],
            log_z_hat: vec![0.0; rows],
            weights: vec![0.0; particles],
        }
    }

    /// Takes in the weights `p~(x_d | x_<d) / q(x_d | x_<d)` of a stage; gives the log-weights times what was carried,
    /// and the same normalised.
    pub fn weigh(&mut self, stage: &LogWeights) -> (LogWeights, Weights) {
        let columns = self.config.num_particles;
        let total: Vec<f64> = self
            .carried
            .iter()
            .zip(stage.rows().flatten())
            .map(|(carried, w)| carried + w)
            .collect();
        for (log_z_hat, row) in self.log_z_hat.iter_mut().zip(total.chunks_exact(columns)) {
            // log of 1/c sum_j w_j (eq. csmc_zhat).
            *log_z_hat += log_sum_exp(row) - (columns as f64).ln();
        }
        let total = LogWeights::from_values(total, columns);
        let weights = total.normalise();
        self.weights.copy_from_slice(weights.values());
        (total, weights)
    }

    /// Draws the ancestors of the next stage where it is time to, and carries the weights where it is not.
    pub fn resample(&mut self, rng: &mut Stream) -> Ancestry {
        let columns = self.config.num_particles;
        let mut ancestry = Ancestry { ancestors: Vec::new(), resampled: Vec::new() };
        let rows = self.weights.chunks_exact(columns).zip(self.carried.chunks_exact_mut(columns));
        for (weights, carried) in rows {
            let resample = match self.config.resample_when {
                ResampleWhen::EveryStage => true,
                ResampleWhen::EffectiveSampleSizeBelow(share) => {
                    effective_sample_size(weights) < share * columns as f64
                }
            };
            ancestry.resampled.push(resample);
            if resample {
                carried.fill(0.0);
                ancestry.ancestors.extend(match self.conditional {
                    true => self.config.resampling.conditional_ancestors(weights, rng),
                    false => self.config.resampling.ancestors(weights, rng),
                });
            } else {
                for (carried, weight) in carried.iter_mut().zip(weights) {
                    *carried = (columns as f64 * weight).ln();
                }
                ancestry.ancestors.extend(0..columns);
            }
        }
        ancestry
    }

    /// `log Z-hat` of every row so far.
    pub fn log_z_hat(&self) -> &[f64] {
        &self.log_z_hat
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    #[test]
    fn without_resampling_the_estimate_is_that_of_importance_sampling() {
        let config = SmcConfig::new(3)
            .unwrap()
            .with_resample_when(ResampleWhen::EffectiveSampleSizeBelow(0.0));
        let mut filter = Filter::new(&config, 1, false);
        let mut rng = Streams::new(1).stream("test", 0, 0);
        let stages = [[0.1, -2.0, 0.7], [1.5, 0.3, -0.4], [0.0, 0.2, 0.9]];
        for stage in stages {
            filter.weigh(&LogWeights::from_values(stage.to_vec(), 3));
            let ancestry = filter.resample(&mut rng);
            assert_eq!(ancestry, Ancestry { ancestors: vec![0, 1, 2], resampled: vec![false] });
        }
        let totals: Vec<f64> = (0..3).map(|j| stages.iter().map(|s| s[j]).sum()).collect();
        let expected = crate::weights::log_mean_exp(&totals);
        assert!((filter.log_z_hat()[0] - expected).abs() < 1e-12);
    }

    #[test]
    fn rows_resample_on_their_own_and_particle_zero_is_kept() {
        let mut filter = Filter::new(&SmcConfig::new(4).unwrap(), 2, true);
        // Row 0: equal weights, ESS 4. Row 1: all on particle 3, ESS 1.
        let log_w = vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 900.0];
        filter.weigh(&LogWeights::from_values(log_w, 4));
        let ancestry = filter.resample(&mut Streams::new(1).stream("test", 0, 0));
        assert_eq!(ancestry.resampled, [false, true]);
        assert_eq!(ancestry.ancestors, [0, 1, 2, 3, 0, 3, 3, 3]);
    }
}
