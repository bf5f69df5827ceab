//! What the loss of a training step weighs the log-densities of every candidate by.

use super::config::ArEbmConfig;
use super::criterion::ArStepConfig;
use crate::criterion::Method;
use crate::kernel::SmcGradient;
use crate::smc::{Filter, First, Genealogy};

/// The loss is the sum over stages and candidates of both log-densities times these constants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficient {
    /// Of `log p~(x_d | x_<d)`.
    pub log_p: f32,
    /// Of `log q(x_d | x_<d)`.
    pub log_q: f32,
}

impl ArStepConfig {
    /// One particle system for each observation, the first of which is number `first` of the batch.
    ///
    /// Where every factor has a normaliser of its own, the candidates of each stage have the observation's own prefix.
    pub(super) fn filter(&self, observations: usize, first: usize, local: bool) -> Filter {
        let data = if self.criterion == Method::MlIs { First::Beside } else { First::Retained };
        let filter = Filter::new(&self.smc(), observations, data).numbered_from(first);
        if local { filter.from_first() } else { filter }
    }

    /// The coefficients of every stage, row by row; `shares` are what the observations count, of a whole of 1.
    ///
    /// The base of a class is the model of it, so it is trained for the data whatever the others are trained for.
    pub(super) fn coefficients(
        &self,
        genealogy: &Genealogy,
        shares: &[f64],
        shape: &ArEbmConfig,
    ) -> Vec<Vec<Coefficient>> {
        let (data_share, model_share) = self.proposal_shares();
        let energy = genealogy.coefficients(self.criterion.smc_gradient());
        let model = (model_share > 0.0).then(|| genealogy.coefficients(SmcGradient::Trajectory));
        let coefficient = |stage: usize, row: usize, energy: f64| {
            let data = if row.is_multiple_of(genealogy.candidates) { 1.0 } else { 0.0 };
            let share = shares[row / genealogy.candidates];
            if shape.kind(stage).is_categorical() {
                return Coefficient { log_p: 0.0, log_q: (-share * data) as f32 };
            }
            let model = model.as_ref().map_or(0.0, |model| model[stage][row]);
            Coefficient {
                log_p: (share * (energy - data)) as f32,
                log_q: (-share * (data_share * data + model_share * model)) as f32,
            }
        };
        let of_stage = |(stage, energy): (usize, &Vec<f64>)| {
            // What is given has no factor, and so no loss.
            let rows = energy.iter().enumerate().filter(|_| !shape.is_given(stage));
            rows.map(|(row, &energy)| coefficient(stage, row, energy)).collect()
        };
        energy.iter().enumerate().map(of_stage).collect()
    }
}
