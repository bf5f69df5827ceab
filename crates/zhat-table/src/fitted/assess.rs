//! The likelihood of rows with everything one needs to trust it or not.

use serde::Serialize;
use zhat::rng::Streams;

use super::Distances;
use super::gap::Gap;
use super::goodness::{Goodness, goodness};
use super::predictive::Predictive;
use super::verdict::Verdict;
use crate::density::{Density, Estimation, Opinion};
use crate::error::{Result, TableError};
use crate::fit::{Likelihood, evaluate_rows};

/// Everything about a density's likelihood of some rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assessment {
    /// The likelihood, with `log Z` as it is estimated, or known.
    #[serde(flatten)]
    pub likelihood: Likelihood,
    /// Mean log-density of the rows under the truth, where it is known.
    pub truth: Option<f64>,
    /// How far the density is from it, where it has a likelihood.
    pub gap: Option<Gap>,
    /// Log-density of every row, in their order.
    #[serde(skip)]
    pub log_densities: Vec<f64>,
    /// `log Z` as it is estimated, and by other methods beside it; none where nothing is estimated, or there is no `Z`.
    pub opinions: Vec<Opinion>,
    /// Whether the model fits the rows; none where there are none, or there is no `Z`.
    pub goodness: Option<Goodness>,
    /// Whether the likelihood can be trusted, and the model fits.
    pub verdict: Verdict,
    /// 2-Wasserstein distances between rows of the model and rows of the data.
    pub wasserstein: Option<Distances>,
    /// What its predictions are worth, where it is a density of some columns given others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predictive: Option<Predictive>,
}

impl Assessment {
    /// The same with what the truth makes of the rows, in their order.
    ///
    /// # Panics
    /// If there is not one log-density for each row.
    pub fn beside_truth(self, truth: &[f64]) -> Self {
        let Likelihood { tail, se_log_z, .. } = &self.likelihood;
        let gap = tail.falls.then(|| Gap::new(truth, &self.log_densities, *se_log_z));
        let mean = truth.iter().sum::<f64>() / truth.len() as f64;
        Self { truth: Some(mean), gap, ..self }
    }
}

/// Assesses a density on whole rows, in the units of the data, each of which may count by a weight; with a cross-check other methods are asked for `log Z` too.
pub fn assess(
    density: &dyn Density,
    rows: &[f32],
    weights: Option<&[f64]>,
    settings: &Estimation,
    cross_check: bool,
    seed: u64,
) -> Result<Assessment> {
    if settings.estimates < 2 {
        let expected = "at least 2, for an error bar";
        return Err(TableError::setting("estimates", settings.estimates, expected));
    }
    let streams = Streams::new(seed).derive("assess", 0);
    assess_by(density, rows, weights, settings, cross_check.then_some(settings), &streams)
}

/// The same by given streams, and with other settings for the other methods.
pub(crate) fn assess_by(
    density: &dyn Density,
    rows: &[f32],
    weights: Option<&[f64]>,
    settings: &Estimation,
    cross_check: Option<&Estimation>,
    streams: &Streams,
) -> Result<Assessment> {
    let (likelihood, log_densities) = evaluate_rows(density, rows, weights, settings, streams)?;
    let likelihood = likelihood.or_none();
    let mut opinions = Vec::new();
    let has_integral = likelihood.tail.falls;
    if has_integral && !density.is_normalised() {
        let effective = likelihood.smallest_effective_sample_size * likelihood.particles as f64;
        opinions.push(Opinion {
            method: "SMC".into(),
            log_z: likelihood.log_z,
            standard_error: likelihood.se_log_z,
            effective_sample_size: Some(effective),
            from_above: false,
        });
    }
    if let Some(settings) = cross_check.filter(|_| has_integral) {
        opinions.extend(density.opinions(settings, streams)?);
        opinions.extend(density.opinion_from_rows(rows, settings, streams)?);
    }
    let goodness = match has_integral && likelihood.rows > 0 {
        true => Some(goodness(density, rows, streams)?),
        false => None,
    };
    let (columns, criterion) = (density.columns(), density.criterion());
    let verdict = Verdict::new(&likelihood, &opinions, goodness.as_ref(), columns, criterion);
    Ok(Assessment {
        likelihood,
        truth: None,
        gap: None,
        log_densities,
        opinions,
        goodness,
        verdict,
        wasserstein: None,
        predictive: None,
    })
}
