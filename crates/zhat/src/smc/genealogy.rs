//! What a run of sequential Monte Carlo leaves behind: weights, ancestors, and what the gradient weighs by.

use crate::kernel::SmcGradient;

/// The particles of many independent systems (rows), stage by stage: how much they weighed and who descends from whom.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Genealogy {
    /// Candidates of a row: its particles, and what stands beside them.
    pub candidates: usize,
    /// `log Z-hat` of every row.
    pub log_z_hat: Vec<f64>,
    /// Effective sample size after every stage, before resampling, of every row.
    pub effective_sample_size: Vec<Vec<f64>>,
    /// Largest normalised weight of every stage, of every row.
    pub largest_weight: Vec<Vec<f64>>,
    /// Shape of the tail of every stage's weights ([`pareto_k`](crate::evaluate::pareto_k)), of every row, where it was asked for.
    pub pareto_k: Vec<Vec<f64>>,
    /// Variance of `Z-hat / Z` of every row, by who descends from whom, where it was asked for: Lee and Whiteley (2018), whose estimate
    /// is unbiased (times `Z-hat^2`) where every stage is resampled multinomially, and a guide elsewhere. May be below 0.
    pub relative_variance: Vec<f64>,
    /// Log-weights after the last stage, of the factors since the last resampling and in units of their mean before.
    pub log_weights: Vec<f64>,
    /// Normalised weights of every stage (of the last alone where the past is forgotten), row by row.
    pub weights: Vec<Vec<f64>>,
    /// Ancestors drawn after every stage but the last, where a row was resampled.
    pub ancestors: Vec<Vec<Option<Vec<usize>>>>,
}

impl Genealogy {
    /// Normalised weights after the last stage, row by row.
    pub fn final_weights(&self) -> &[f64] {
        self.weights.last().expect("at least one stage")
    }

    /// Whether a row's particles were resampled after a stage, or the stage is the last.
    pub fn ends_block(&self, stage: usize, row: usize) -> bool {
        self.ancestors.get(stage).is_none_or(|ancestors| ancestors[row].is_some())
    }

    /// What `grad log p~(x_d | x_<d)` of each particle of each stage is weighed by, row by row.
    ///
    /// Filtering: `d log Z-hat / d log p~`. Between two resamplings `log Z-hat` gains `log 1/c sum_j prod_d p~_d / q_d`
    /// over the stages of the block, so all its factors are weighed by the normalised weights at its end. Trajectory: the
    /// final weights of all descendants together.
    pub fn coefficients(&self, gradient: SmcGradient) -> Vec<Vec<f64>> {
        let mut coefficients = vec![Vec::new(); self.weights.len()];
        let mut current = self.final_weights().to_vec();
        for stage in (0..self.weights.len()).rev() {
            for (row, ancestors) in self.ancestors.get(stage).into_iter().flatten().enumerate() {
                let Some(ancestors) = ancestors else { continue };
                let span = row * self.candidates..(row + 1) * self.candidates;
                let weights = &self.weights[stage][span.clone()];
                let current = &mut current[span];
                match gradient {
                    SmcGradient::Filtering => current.copy_from_slice(weights),
                    SmcGradient::Trajectory => {
                        let descendants = current.to_vec();
                        current.fill(0.0);
                        for (&ancestor, weight) in ancestors.iter().zip(descendants) {
                            current[ancestor] += weight;
                        }
                    }
                }
            }
            coefficients[stage].clone_from(&current);
        }
        coefficients
    }

    /// For every stage and final particle, the particle of that stage that it descends from, within its row.
    pub fn lineages(&self) -> Vec<Vec<usize>> {
        let mut current: Vec<usize> =
            (0..self.log_weights.len()).map(|particle| particle % self.candidates).collect();
        let mut lineages = vec![current.clone()];
        for ancestors in self.ancestors.iter().rev() {
            for (ancestors, current) in
                ancestors.iter().zip(current.chunks_exact_mut(self.candidates))
            {
                if let Some(ancestors) = ancestors {
                    current.iter_mut().for_each(|particle| *particle = ancestors[*particle]);
                }
            }
            lineages.push(current.clone());
        }
        lineages.reverse();
        lineages
    }
}
