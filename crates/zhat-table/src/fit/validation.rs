//! What a model is worth on rows that it is not trained on, by the same draws every time.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use zhat::ar::ArEbm;
use zhat::criterion::Method;
use zhat::ranks::Workers;
use zhat::rng::Streams;
use zhat::train::{Answer, Validated};
use zhat::watch::Watch;

use super::config::FitConfig;
use super::evaluation::log_z_of;
use crate::data::Standardiser;
use crate::density::{ArDensity, Density, Estimation};
use crate::error::{Result, TableError};
use crate::prepare::Prepared;

/// Whether the proposal may be the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaseAnswers {
    /// Where the model is not ahead of it by more than one standard error.
    Auto,
    /// Never: the model is what is looked at.
    Never,
}

/// Particles for what is missing of a validation row: models are compared by the same draws.
const PARTICLES_FOR_HOLES: usize = 32;

/// How models of a fit become densities, and how they are looked at.
#[derive(Debug, Clone)]
pub(super) struct Validator {
    columns: Vec<String>,
    standardiser: Standardiser,
    criterion: Method,
    base: BaseAnswers,
    settings: Estimation,
    streams: Streams,
    has_holes: bool,
}

impl Validator {
    pub fn new(config: &FitConfig, data: &Prepared) -> Self {
        Self {
            columns: data.columns.clone(),
            standardiser: data.standardiser.clone(),
            criterion: config.step.criterion,
            base: config.validation.base,
            settings: Estimation::new(config.validation.particles, 1),
            // One set of draws for all validations: models differ, their luck does not.
            streams: Streams::new(config.seed).derive("validation", 0),
            has_holes: data.kinds.iter().any(|kind| kind.missing > 0),
        }
    }

    /// The density that is the answer.
    pub fn density(
        &self,
        model: &ArEbm,
        answer: Answer,
        workers: impl Into<Workers>,
        watch: Arc<Watch>,
    ) -> Result<ArDensity> {
        let criterion = match answer {
            Answer::Model => self.criterion,
            Answer::Proposal => Method::QOnly,
        };
        let (columns, standardiser) = (&self.columns, &self.standardiser);
        let density = ArDensity::new(model, criterion, columns, standardiser, workers, watch)?;
        match self.has_holes {
            true => density.with_holes(model, PARTICLES_FOR_HOLES),
            false => Ok(density),
        }
    }

    /// The model on rows in the units of the data, each of which may count by a weight.
    pub fn validate(
        &self,
        model: &ArEbm,
        rows: &[f32],
        weights: Option<&[f64]>,
        workers: impl Into<Workers>,
    ) -> Result<Validated> {
        let density = self.density(model, Answer::Model, workers, Arc::default())?;
        let log_z = log_z_of(&density.estimates(&self.settings, &self.streams)?);
        let scores = density.score(rows)?;
        let log_likelihoods = scores.log_p_tilde.iter().map(|log_p| log_p - log_z.log_z).collect();
        let found = Validated::new(log_likelihoods, log_z.standard_error)
            .with_weights(weights.map(<[f64]>::to_vec));
        Ok(match self.base == BaseAnswers::Auto && self.criterion != Method::QOnly {
            true => found.or_proposal(scores.log_q),
            false => Validated { proposal: Some(scores.log_q), ..found },
        })
    }

    /// As a trainer wants it, with the validation part of the data.
    pub fn into_validation(
        self,
        rows: Vec<f32>,
        weights: Option<Vec<f64>>,
        workers: Workers,
    ) -> impl FnMut(&ArEbm, u64) -> zhat::Result<Validated> + 'static {
        move |model, _| {
            let found = self.validate(model, &rows, weights.as_deref(), workers.clone());
            found.map_err(|error| match error {
                TableError::Zhat(error) => error,
                other => zhat::Error::BrokenState { reason: other.to_string() },
            })
        }
    }
}
