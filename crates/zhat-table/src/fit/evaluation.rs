//! The numbers that are always given with a likelihood.

use serde::{Deserialize, Deserializer, Serialize};
use zhat::evaluate::LogZ;
use zhat::rng::Streams;
use zhat::train::{Difference, effective_rows};

use crate::density::{Density, Estimate, Estimation, FAR_OUT, Tail};
use crate::error::Result;
use crate::fitted::contexts;

/// A log-likelihood with everything one needs to trust it or not, in nats a row and in the units of the data.
///
/// Where the density is normalised, nothing is estimated: `log_z` is 0, and so are its errors, particles and estimates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Likelihood {
    /// Mean over the rows of `log p~(x) - log Z`; not a number where there is no `Z`.
    #[serde(deserialize_with = "number_or_null")]
    pub log_likelihood: f64,
    /// Standard error over the rows.
    #[serde(deserialize_with = "number_or_null")]
    pub se_test: f64,
    /// Standard error of `log Z`, over the independent estimates.
    #[serde(deserialize_with = "number_or_null")]
    pub se_log_z: f64,
    /// `log` of the mean of the estimates of `Z`; not a number where there is no `Z`.
    #[serde(deserialize_with = "number_or_null")]
    pub log_z: f64,
    /// Mean of the `log Z-hat`, lower than `log_z` by Jensen's inequality.
    #[serde(deserialize_with = "number_or_null")]
    pub mean_log_z_hat: f64,
    /// Standard deviation of the `log Z-hat`: how far one of them is from the next.
    #[serde(deserialize_with = "number_or_null")]
    pub spread_of_log_z_hat: f64,
    /// How many equal estimates they are worth; far fewer than there are where one dominates.
    #[serde(deserialize_with = "number_or_null")]
    pub effective_estimates: f64,
    /// Whether so few dominate that `log_z` is too low by an amount that nobody knows.
    pub collapsed: bool,
    /// The proposal's own log-likelihood, which needs no `Z`.
    #[serde(deserialize_with = "number_or_null")]
    pub proposal_log_likelihood: f64,
    /// Its standard error over the rows.
    #[serde(deserialize_with = "number_or_null")]
    pub proposal_se_test: f64,
    /// Effective sample size after each stage, averaged over the estimates, as a share of the particles.
    #[serde(deserialize_with = "numbers_or_null")]
    pub effective_sample_size: Vec<f64>,
    /// Smallest of them; 1 where there are none.
    #[serde(deserialize_with = "number_or_null")]
    pub smallest_effective_sample_size: f64,
    /// Standard error of `log Z` by the genealogies of the estimates, each by itself (Lee and Whiteley, 2018): beside
    /// [`se_log_z`](Self::se_log_z), which is from one estimate to the next. Not a number in results of earlier versions.
    #[serde(default = "not_known", deserialize_with = "number_or_null")]
    pub se_log_z_by_genealogy: f64,
    /// Shape of the tail of the weights after each stage, averaged over the estimates; above 0.7 their mean says little.
    #[serde(default, deserialize_with = "numbers_or_null")]
    pub pareto_k: Vec<f64>,
    /// Rows.
    pub rows: usize,
    /// As many rows that count the same tell as much, where rows have weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_rows: Option<f64>,
    /// Largest weight of a single particle, at any stage of any estimate.
    #[serde(deserialize_with = "number_or_null")]
    pub largest_weight: f64,
    /// Share of the model's mass, and of the rows, with a feature further than five standard deviations out.
    #[serde(deserialize_with = "two_or_null")]
    pub far_out: [f64; 2],
    /// How well the integrals in a row's log-density are known, on average; 0 where there are none.
    #[serde(deserialize_with = "number_or_null")]
    pub quadrature_error: f64,
    /// How the density falls far out, at its worst.
    pub tail: Tail,
    /// Particles of an estimate.
    pub particles: usize,
    /// Number of estimates.
    pub estimates: usize,
}

impl Likelihood {
    /// Whether the density is its own proposal, whose likelihood then says nothing new.
    pub fn is_of_proposal(&self) -> bool {
        self.log_likelihood == self.proposal_log_likelihood
    }

    /// Without the figures that mean nothing where the density has no integral.
    pub(crate) fn or_none(self) -> Self {
        match self.tail.falls {
            true => self,
            false => Self { log_likelihood: f64::NAN, log_z: f64::NAN, ..self },
        }
    }
}

/// A log-likelihood, or a `log Z`, as it is shown: `no Z` where there is none.
pub fn nats(value: f64) -> String {
    if value.is_nan() { "no Z".into() } else { format!("{value:.4}") }
}

fn not_known() -> f64 {
    f64::NAN
}

/// JSON has no number that is none, and `null` for it: every figure that is written can be read again.
pub(crate) fn number_or_null<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

fn numbers_or_null<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<f64>, D::Error> {
    let numbers = Vec::<Option<f64>>::deserialize(from)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}

fn two_or_null<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<[f64; 2], D::Error> {
    Ok(<[Option<f64>; 2]>::deserialize(from)?.map(|number| number.unwrap_or(f64::NAN)))
}

/// The likelihood of whole rows, in the units of the data, each of which may count by a weight; without rows it is not a number, and the rest
/// is there.
pub fn evaluate(
    density: &dyn Density,
    rows: &[f32],
    weights: Option<&[f64]>,
    settings: &Estimation,
    streams: &Streams,
) -> Result<Likelihood> {
    Ok(evaluate_rows(density, rows, weights, settings, streams)?.0)
}

/// The same, with the log-density of every row.
pub(crate) fn evaluate_rows(
    density: &dyn Density,
    rows: &[f32],
    weights: Option<&[f64]>,
    settings: &Estimation,
    streams: &Streams,
) -> Result<(Likelihood, Vec<f64>)> {
    let estimates = density.estimates(settings, streams)?;
    let estimate = log_z_of(&estimates);
    let LogZ { log_z, mean_log_z_hat, spread, effective_estimates, .. } = estimate;
    let collapsed = estimate.num_estimates > 1 && estimate.is_collapsed();
    let scores = density.score(rows)?;
    let (log_p_tilde, se_test) = weighted_mean_and_error(&scores.log_p_tilde, weights);
    let (proposal_log_likelihood, proposal_se_test) =
        weighted_mean_and_error(&scores.log_q, weights);
    let number = estimates.len() as f64;
    let stages = estimates.first().map_or(0, |first| first.effective_sample_size.len());
    let mean_of_stage =
        |stage| estimates.iter().map(|e| e.effective_sample_size[stage]).sum::<f64>() / number;
    let effective_sample_size: Vec<f64> = (0..stages).map(mean_of_stage).collect();
    // JSON has no infinity, and a mean with one is one.
    let tail_of_stage = |stage: usize| {
        let tails = estimates.iter().map(|estimate| estimate.pareto_k[stage].min(LARGEST_TAIL));
        tails.sum::<f64>() / number
    };
    let genealogies = estimates.iter().map(|estimate| estimate.relative_variance.max(0.0));
    let se_log_z_by_genealogy = genealogies.sum::<f64>().sqrt() / number.max(1.0);
    // Without rows the density's own draws are the contexts.
    let tail = match rows.is_empty() {
        true => density.tail(&contexts(density, streams)?)?,
        false => density.tail(rows)?,
    };
    let far_out = estimates.iter().map(|estimate| estimate.far_out / number).sum();
    let likelihood = Likelihood {
        log_likelihood: log_p_tilde - log_z,
        se_test,
        // JSON has no infinity.
        se_log_z: estimate.standard_error.min(f64::MAX),
        log_z,
        mean_log_z_hat: mean_log_z_hat.max(f64::MIN),
        spread_of_log_z_hat: spread.min(f64::MAX),
        effective_estimates,
        collapsed,
        proposal_log_likelihood,
        proposal_se_test,
        smallest_effective_sample_size: effective_sample_size.iter().copied().fold(1.0, f64::min),
        effective_sample_size,
        se_log_z_by_genealogy,
        pareto_k: (0..stages).map(tail_of_stage).collect(),
        rows: scores.log_q.len(),
        effective_rows: weights.map(effective_rows),
        largest_weight: estimates.iter().map(|e| e.largest_weight).fold(0.0, f64::max),
        far_out: [far_out, share_far_out(density, rows)],
        quadrature_error: density.quadrature_error(rows)?,
        tail,
        particles: if estimates.is_empty() { 0 } else { settings.particles },
        estimates: estimates.len(),
    };
    Ok((likelihood, scores.log_p_tilde.iter().map(|log_p_tilde| log_p_tilde - log_z).collect()))
}

/// Tails heavier than this are all the same: nothing has a mean.
const LARGEST_TAIL: f64 = 10.0;

/// Particles of a fit's cross-check of `log Z`, at most: a verdict needs no more, and the paper's presets have ten times as many.
const MOST_FOR_CROSS_CHECK: usize = 20_000;

/// How other methods are asked for `log Z` at the end of a fit.
pub(super) fn cross_check(settings: &Estimation) -> Estimation {
    Estimation { particles: settings.particles.min(MOST_FOR_CROSS_CHECK), ..settings.clone() }
}

/// What a watch counts in the evaluation at the end of a fit, but for the rows.
pub(super) fn work_of_evaluation(density: &dyn Density, settings: &Estimation) -> u64 {
    let ([estimates, _], [_, opinions]) =
        (density.work(settings), density.work(&cross_check(settings)));
    estimates + opinions
}

/// What estimates say together: 0 where there are none, because nothing had to be estimated. One has no error.
pub(crate) fn log_z_of(estimates: &[Estimate]) -> LogZ {
    let log_z_hats: Vec<f64> = estimates.iter().map(|estimate| estimate.log_z_hat).collect();
    let (log_z, standard_error) = match log_z_hats[..] {
        [] => (0.0, 0.0),
        [single] => (single, f64::NAN),
        _ => return LogZ::from_estimates(&log_z_hats),
    };
    LogZ {
        log_z,
        mean_log_z_hat: log_z,
        spread: standard_error,
        standard_error,
        effective_estimates: log_z_hats.len() as f64,
        effective_sample_size: 1.0,
        num_estimates: log_z_hats.len(),
    }
}

fn share_far_out(density: &dyn Density, rows: &[f32]) -> f64 {
    let (standardiser, columns) = (density.standardiser(), density.columns().len());
    let features = standardiser.features(rows);
    let rows = features.chunks_exact(columns);
    let number = rows.len().max(1) as f64;
    let is_far = |(column, x): (usize, &f32)| x.abs() > FAR_OUT && !standardiser.is_counted(column);
    rows.filter(|row| row.iter().enumerate().any(is_far)).count() as f64 / number
}

/// The same of values that count by weights, where there are any.
pub(crate) fn weighted_mean_and_error(values: &[f64], weights: Option<&[f64]>) -> (f64, f64) {
    match weights {
        None => mean_and_error(values),
        Some(_) => {
            let Difference { mean, standard_error } = Difference::weighted(values, weights);
            (mean, standard_error)
        }
    }
}

/// Mean and its standard error.
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let number = values.len() as f64;
    let mean = values.iter().sum::<f64>() / number;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (number - 1.0) / number).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_likelihood_is_read_back_whatever_in_it_is_no_number() {
        let none = f64::NAN;
        let tail = Tail { column: "a".into(), log_p_tilde: vec![[6.0, none]], falls: true };
        let likelihood = Likelihood {
            log_likelihood: none,
            se_test: none,
            se_log_z: none,
            log_z: none,
            mean_log_z_hat: f64::NEG_INFINITY,
            spread_of_log_z_hat: f64::INFINITY,
            effective_estimates: none,
            collapsed: false,
            proposal_log_likelihood: none,
            proposal_se_test: none,
            effective_sample_size: vec![none, 0.5],
            smallest_effective_sample_size: none,
            se_log_z_by_genealogy: none,
            pareto_k: vec![none],
            rows: 0,
            effective_rows: None,
            largest_weight: none,
            far_out: [none, 0.25],
            quadrature_error: none,
            tail,
            particles: 0,
            estimates: 0,
        };
        let text = serde_json::to_string(&likelihood).unwrap();
        let again: Likelihood = serde_json::from_str(&text).unwrap();
        assert!(again.se_test.is_nan() && again.effective_sample_size[0].is_nan());
        assert_eq!((again.effective_sample_size[1], again.far_out[1]), (0.5, 0.25));
        assert!(again.tail.log_p_tilde[0][1].is_nan() && again.tail.log_p_tilde[0][0] == 6.0);
    }
}
