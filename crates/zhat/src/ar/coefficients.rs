//! What the loss of a training step weighs the log-densities of every candidate by.

use super::config::{ArEbmConfig, Normalisation};
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
        if !local {
            return filter;
        }
        // Where the proposal alone is trained there is nothing to draw from.
        let drawn = if self.criterion == Method::QOnly { 0 } else { self.num_drawn };
        filter.from_first().with_drawn(drawn)
    }

    /// The coefficients of every stage, row by row; `shares` are what the observations count, of a whole of 1.
    pub(super) fn coefficients(
        &self,
        genealogy: &Genealogy,
        shares: &[f64],
        shape: &ArEbmConfig,
    ) -> Vec<Vec<Coefficient>> {
        let (energy, model) = match shape.normalisation {
            Normalisation::Local => (genealogy.weights.clone(), None),
            Normalisation::Global => {
                let of_model = self.proposal_shares().1 > 0.0;
                (
                    genealogy.coefficients(self.criterion.smc_gradient()),
                    of_model.then(|| genealogy.coefficients(SmcGradient::Trajectory)),
                )
            }
        };
        let model = model.as_ref().unwrap_or(&energy).iter();
        let stages = energy.iter().zip(model).enumerate();
        stages
            .map(|(stage, (energy, model))| self.of_stage(stage, energy, model, shares, shape))
            .collect()
    }

    /// The coefficients of one stage, from the weights of its factor in the gradients of `log Z-hat` and of the model's objective. Where
    /// every factor has a normaliser of its own, both are the weights of its candidates.
    ///
    /// The base of a class is the model of it, so it is trained for the data whatever the others are trained for.
    pub(super) fn of_stage(
        &self,
        stage: usize,
        energy: &[f64],
        model: &[f64],
        shares: &[f64],
        shape: &ArEbmConfig,
    ) -> Vec<Coefficient> {
        // What is given has no factor, and so no loss.
        if shape.is_given(stage) {
            return Vec::new();
        }
        let (data_share, model_share) = self.proposal_shares();
        let (candidates, is_class) = (self.candidates(), shape.kind(stage).is_categorical());
        let coefficient = |(row, (&energy, &model)): (usize, (&f64, &f64))| {
            let data = if row.is_multiple_of(candidates) { 1.0 } else { 0.0 };
            let share = shares[row / candidates];
            if is_class {
                return Coefficient { log_p: 0.0, log_q: (-share * data) as f32 };
            }
            Coefficient {
                log_p: (share * (energy - data)) as f32,
                log_q: (-share * (data_share * data + model_share * model)) as f32,
            }
        };
        energy.iter().zip(model).enumerate().map(coefficient).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ar::ProposalTarget;

    /// Two factors, each with two negatives: the model's share of the proposal's objective goes by the weights of the factor itself.
    #[test]
    fn factors_with_normalisers_of_their_own_are_weighed_by_their_own_candidates() {
        let shape = ArEbmConfig { normalisation: Normalisation::Local, ..ArEbmConfig::new(2) };
        let mut settings = ArStepConfig::new(Method::Rnce);
        (settings.num_negatives, settings.proposal_target) = (2, ProposalTarget::Mix(0.25));
        let weights = [vec![0.5, 0.2, 0.3], vec![0.1, 0.6, 0.3]];
        let genealogy = Genealogy {
            candidates: 3,
            log_weights: vec![0.0; 3],
            weights: weights.to_vec(),
            ancestors: vec![vec![Some(vec![0, 0, 0])]],
            ..Genealogy::default()
        };
        let found = settings.coefficients(&genealogy, &[2.0], &shape);
        for (found, weights) in found.iter().zip(&weights) {
            for (row, (found, weight)) in found.iter().zip(weights).enumerate() {
                let data = if row == 0 { 1.0 } else { 0.0 };
                let expected = [2.0 * (weight - data), -2.0 * (0.25 * data + 0.75 * weight)];
                assert_eq!([found.log_p, found.log_q], expected.map(|value| value as f32));
            }
        }
        assert_eq!([found[0].len(), found[1].len()], [3, 3]);
    }
}
