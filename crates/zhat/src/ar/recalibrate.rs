//! How sure of itself a trained base is, set anew by rows that it was not trained on.
//!
//! A network is surer of rows that it has seen than of new ones, and says so of both: its intervals are too narrow. As a classifier is
//! mended by one temperature of its logits (Guo et al., 2017), the base of a feature is by two factors: one of the logits of its mixture or
//! classes, and one of the scales of its normals. Both are of the most likelihood for rows that were kept back, and go into the last layer, so that the
//! model keeps its form, and its factors are normalised as before.

use super::config::{ArEbmConfig, Conditioner, ScaleForm};
use super::engine::values;
use super::evaluate::Evaluator;
use super::kind::FeatureKind;
use super::model::ArEbm;
use super::network::{bias_of, constant_linear};
use crate::error::{Error, Result};
use crate::ranks::Workers;
use crate::train::effective_rows;
use crate::watch::Watch;

/// How far factors are moved, as logs, round by round: they end up to a fortieth where they are best, and within a factor of two.
const STEPS: [f64; 7] = [0.2, 0.2, 0.1, 0.1, 0.05, 0.05, 0.025];
/// Nats that all rows together have to gain for the two factors of a feature: what two that mean nothing gain by chance (Akaike's
/// criterion).
const PRICE: f64 = 2.0;

/// A model whose base is as sure of itself as rows that it was not trained on say.
#[derive(Debug, Clone)]
pub struct Recalibrated {
    /// The model; the same where nothing is gained.
    pub model: ArEbm,
    /// What the rows gain, in nats a row.
    pub gain: f64,
    /// By what logits and scales of each feature were multiplied, as logs.
    pub log_factors: Vec<[f64; 2]>,
}

impl ArEbmConfig {
    /// Whether the base of every feature has outputs of its own in the last layer, and logits and scales among them.
    fn can_be_recalibrated(&self) -> bool {
        self.conditioner == Conditioner::Masked && self.has_mixture()
    }
}

impl ArEbm {
    /// Recalibrates the base by rows without missing cells that it was not trained on, each of which may count by a weight.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major
    pub fn recalibrated(
        &self,
        x: &[f32],
        weights: Option<&[f64]>,
        workers: &Workers,
        watch: &Watch,
    ) -> Result<Recalibrated> {
        let features = self.shape.features;
        let mut best = vec![[0.0; 2]; features];
        if x.is_empty() || !self.shape.can_be_recalibrated() {
            return Ok(Recalibrated { model: self.clone(), gain: 0.0, log_factors: best });
        }
        let weigh = weights.map(|weights| (weights, effective_rows(weights)));
        let weigh = weigh.map(|(weights, rows)| (weights, rows / weights.iter().sum::<f64>()));
        let likelihoods = |log_factors: &[[f64; 2]]| -> Result<Vec<f64>> {
            if workers.is_stopped(watch) {
                return Err(Error::Stopped);
            }
            let model = self.clone().with_factors(log_factors);
            let log_p = Evaluator::of_proposal(&model, workers.clone())?.log_factors(x);
            let mut sums = vec![0.0; features];
            for (row, log_p) in log_p.chunks_exact(features).enumerate() {
                let weight = weigh.map_or(1.0, |(weights, scale)| weights[row] * scale);
                sums.iter_mut().zip(log_p).for_each(|(sum, log_p)| *sum += weight * log_p);
            }
            Ok(sums)
        };
        // The factors of a feature change no other feature's likelihood: one pass tries those of all.
        let at_start = likelihoods(&best)?;
        let mut found = at_start.clone();
        for step in STEPS {
            for (which, by) in [(0, -step), (0, step), (1, -step), (1, step)] {
                let mut tried = best.clone();
                tried.iter_mut().for_each(|factors| factors[which] += by);
                for (feature, likelihood) in likelihoods(&tried)?.into_iter().enumerate() {
                    if likelihood > found[feature] {
                        (best[feature], found[feature]) = (tried[feature], likelihood);
                    }
                }
            }
        }
        let mut gain = 0.0;
        for (feature, factors) in best.iter_mut().enumerate() {
            match found[feature] - at_start[feature] {
                more if more > PRICE => gain += more,
                _ => *factors = [0.0; 2],
            }
        }
        let rows = weights.map_or((x.len() / features) as f64, effective_rows);
        let model = self.clone().with_factors(&best);
        Ok(Recalibrated { model, gain: gain / rows, log_factors: best })
    }

    /// With the logits and the scales of every feature's base multiplied by factors, given as logs.
    fn with_factors(mut self, log_factors: &[[f64; 2]]) -> Self {
        let shape = self.shape.clone();
        let (components, numbers) = (shape.mixture_components, shape.number_outputs());
        for member in self.members_mut() {
            let last = &member.last;
            let (mut weight, mut bias) = (values(&last.weight), values(bias_of(last)));
            let outputs = bias.len();
            for (feature, log_factors) in log_factors.iter().enumerate().skip(shape.given) {
                let [logits, wider] = [log_factors[0].exp() as f32, log_factors[1] as f32];
                let from = shape.outputs_before(feature) + shape.context;
                let mut multiply = |from: usize, number: usize| {
                    bias[from..from + number].iter_mut().for_each(|bias| *bias *= logits);
                    for row in weight.chunks_exact_mut(outputs) {
                        row[from..from + number].iter_mut().for_each(|weight| *weight *= logits);
                    }
                };
                match shape.kind(feature) {
                    FeatureKind::Categorical { levels } => {
                        multiply(from, *levels);
                        continue;
                    }
                    FeatureKind::Atoms { values } => multiply(from + numbers, values.len() + 1),
                    _ => {}
                }
                multiply(from, components);
                if shape.scales == ScaleForm::Exponential {
                    let scales = from + 2 * components..from + 3 * components;
                    bias[scales].iter_mut().for_each(|bias| *bias += wider);
                }
            }
            member.last = constant_linear(weight, bias, &last.weight.val().device());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::ar::{Activation, EnergyForm, NetworkSize, Normalisation};
    use crate::rng::Streams;

    /// A model of four features of three kinds whose mixtures and classes say something.
    fn model(given: usize) -> ArEbm {
        let network = NetworkSize { blocks: 1, width: 16, activation: Activation::Relu };
        let kinds = vec![
            FeatureKind::Continuous,
            FeatureKind::Categorical { levels: 4 },
            FeatureKind::Continuous,
            FeatureKind::Atoms { values: vec![0.25] },
        ];
        let config = ArEbmConfig {
            conditioner: Conditioner::Masked,
            energy_form: EnergyForm::Tilted,
            normalisation: Normalisation::Local,
            scales: ScaleForm::Exponential,
            proposal: network.clone(),
            energy: network,
            members: 2,
            context: 4,
            mixture_components: 3,
            dropout: 0.0,
            kinds,
            given,
            ..ArEbmConfig::new(4)
        };
        let model = config.init(&Device::flex(), &mut Streams::new(3).stream("init", 0, 0));
        model.expect("a model").with_factors(&[[1.2, -0.7]; 4])
    }

    fn log_likelihood(model: &ArEbm, x: &[f32]) -> f64 {
        let scores = Evaluator::of_proposal(model, 1).unwrap().score(x).log_q;
        scores.iter().sum::<f64>() / scores.len() as f64
    }

    fn recalibrated(model: &ArEbm, x: &[f32]) -> Recalibrated {
        model.recalibrated(x, None, &Workers::from(1), &Watch::default()).unwrap()
    }

    #[test]
    fn a_base_that_is_too_sure_is_made_as_sure_as_it_should_be() {
        let truth = model(0);
        let drawn = |of: u64| {
            let evaluator = Evaluator::of_proposal(&truth, 1).unwrap();
            evaluator.sample_proposal(3_000, &Streams::new(of))
        };
        let (kept_back, test) = (drawn(1), drawn(2));
        let too_sure = truth.clone().with_factors(&[[0.4, -0.3]; 4]);
        let found = recalibrated(&too_sure, &kept_back);
        let [best, before, after] =
            [&truth, &too_sure, &found.model].map(|model| log_likelihood(model, &test));
        assert!(best - before > 0.1, "{best} {before}");
        assert!(best - after < 0.05 * (best - before), "{best} {before} {after}");
        let gained = after - before;
        assert!((found.gain - gained).abs() < 0.3 * gained, "{} {gained}", found.gain);
        for feature in [0, 2] {
            let wider = found.log_factors[feature][1];
            assert!((wider - 0.3).abs() < 0.15, "{feature}: {wider}");
        }
        assert_eq!(found.log_factors[1][1], 0.0, "classes have no scales");
        // Rows that mean nothing by their weights change nothing.
        let doubled = [&kept_back[..], &vec![0.25; kept_back.len()]].concat();
        let weights = [vec![1.0; 3_000], vec![0.0; 3_000]].concat();
        let workers = Workers::from(1);
        let weighted = too_sure.recalibrated(
            &with_classes(doubled),
            Some(&weights),
            &workers,
            &Watch::default(),
        );
        assert_eq!(weighted.unwrap().log_factors, found.log_factors);
    }

    /// With zeros in the place of what is no class.
    fn with_classes(mut rows: Vec<f32>) -> Vec<f32> {
        for row in rows.chunks_exact_mut(4) {
            row[1] = row[1].trunc();
        }
        rows
    }

    #[test]
    fn one_that_is_right_and_what_is_given_are_left_alone() {
        let truth = model(0);
        let evaluator = Evaluator::of_proposal(&truth, 1).unwrap();
        let rows = evaluator.sample_proposal(1_000, &Streams::new(5));
        let found = recalibrated(&truth, &rows);
        // Two factors that mean nothing gain one nat on average, and more than two one time in seven.
        assert!(found.gain < 4.0 * 5.0 / 1_000.0, "{}", found.gain);
        let left = found.log_factors.iter().filter(|factors| **factors == [0.0; 2]).count();
        assert!(left >= 2, "{:?}", found.log_factors);
        assert_eq!(recalibrated(&truth, &[]).gain, 0.0);
        let too_sure = model(1).with_factors(&[[0.4, -0.3]; 4]);
        let found = recalibrated(&too_sure, &rows);
        assert!(found.log_factors[0] == [0.0; 2] && found.gain > 0.0, "{:?}", found.log_factors);
    }
}
