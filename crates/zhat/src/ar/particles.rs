//! The particle systems of training: one for each observation, with the weights of their gradients.

use super::criterion::ArStepConfig;
use crate::criterion::Method;
use crate::error::{Error, Result};
use crate::kernel::SmcGradient;
use crate::rng::Stream;
use crate::smc::Filter;
use crate::weights::LogWeights;

/// The candidates of one observation, stage by stage. Candidate 0 is the data point, which ML-IS leaves out.
#[derive(Debug, Clone)]
pub struct ParticleSystem {
    /// Where the observation is in the batch, for errors.
    row: usize,
    filter: Filter,
    candidates: usize,
    with_data: bool,
    /// Normalised weights of each stage, one for each candidate.
    weights: Vec<Vec<f64>>,
    /// Ancestors drawn after each stage, where they were.
    ancestors: Vec<Option<Vec<usize>>>,
}

impl ParticleSystem {
    /// The system of the observation in this row of the batch, which has seen nothing yet.
    pub fn new(config: &ArStepConfig, row: usize) -> Self {
        Self {
            row,
            filter: Filter::new(&config.smc(), 1, true),
            candidates: config.candidates(),
            with_data: config.criterion != Method::MlIs,
            weights: Vec::new(),
            ancestors: Vec::new(),
        }
    }

    /// Takes in `log p~(x_d | x_<d) - log q(x_d | x_<d)` of every candidate.
    pub fn weigh(&mut self, log_weights: &[f64]) -> Result<()> {
        assert_eq!(log_weights.len(), self.candidates, "one weight for each candidate");
        if let Some(candidate) = log_weights.iter().position(|weight| !weight.is_finite()) {
            let what = "log p~ - log q of the autoregressive EBM".to_owned();
            let value = log_weights[candidate];
            return Err(Error::NotFinite { what, value, row: self.row, candidate });
        }
        let left_out = usize::from(!self.with_data);
        let stage =
            LogWeights::from_values(log_weights[left_out..].to_vec(), self.candidates - left_out);
        let (_, weights) = self.filter.weigh(&stage);
        let mut padded = vec![0.0; left_out];
        padded.extend_from_slice(weights.values());
        self.weights.push(padded);
        Ok(())
    }

    /// Draws ancestors where it is time to; `None` where every candidate goes on.
    pub fn resample(&mut self, rng: &mut Stream) -> Option<&[usize]> {
        let ancestry = self.filter.resample(rng);
        let left_out = usize::from(!self.with_data);
        self.ancestors.push(ancestry.resampled[0].then(|| {
            (0..left_out)
                .chain(ancestry.ancestors.iter().map(|ancestor| ancestor + left_out))
                .collect()
        }));
        self.ancestors.last().expect("just pushed").as_deref()
    }

    /// `log Z-hat` so far.
    pub fn log_z_hat(&self) -> f64 {
        self.filter.log_z_hat()[0]
    }

    /// Normalised weights of a stage.
    pub fn weights(&self, stage: usize) -> &[f64] {
        &self.weights[stage]
    }

    /// What `grad log p~(x_d | x_<d)` of each candidate of each stage is weighed by.
    ///
    /// Filtering: `d log Z-hat / d log p~`, which is the weight just before the next resampling, because the log-weights
    /// in between add up to it. Trajectory: the final weights of all descendants together.
    pub fn coefficients(&self, gradient: SmcGradient) -> Vec<Vec<f64>> {
        let stages = self.weights.len();
        let mut coefficients = vec![Vec::new(); stages];
        let mut current = self.weights[stages - 1].clone();
        for stage in (0..stages).rev() {
            if let Some(ancestors) = self.ancestors.get(stage).and_then(Option::as_ref) {
                current = match gradient {
                    SmcGradient::Filtering => self.weights[stage].clone(),
                    SmcGradient::Trajectory => {
                        let mut descendants = vec![0.0; self.candidates];
                        for (&ancestor, weight) in ancestors.iter().zip(&current) {
                            descendants[ancestor] += weight;
                        }
                        descendants
                    }
                };
            }
            coefficients[stage].clone_from(&current);
        }
        coefficients
    }
}
