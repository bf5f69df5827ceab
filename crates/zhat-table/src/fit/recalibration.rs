//! The rows by which a base is recalibrated at the end of a fit: those of the validation, which it was not trained on.

use zhat::ar::{ArEbm, Recalibrated};
use zhat::criterion::Method;
use zhat::ranks::Workers;
use zhat::watch::Watch;

use super::config::FitConfig;
use crate::error::Result;
use crate::prepare::Prepared;

/// Two factors for each column are known well enough by so many rows.
const MOST_ROWS: usize = 10_000;

/// Rows as features, and what each counts.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptBack {
    rows: Vec<f32>,
    weights: Option<Vec<f64>>,
}

impl KeptBack {
    /// Those of a validation part without missing cells; none where nothing is to be recalibrated. A tilt that was trained beside a base has its
    /// own say in how sure the two are: only a base that is the density is.
    pub fn new(config: &FitConfig, data: &Prepared, validation: &[f32]) -> Self {
        let is_wanted = config.validation.recalibrate && config.step.criterion == Method::QOnly;
        if !is_wanted || config.is_cross_validated(data) {
            return Self::default();
        }
        let columns = data.columns.len();
        let whole: Vec<usize> = validation
            .chunks_exact(columns)
            .enumerate()
            .filter(|(_, row)| !row.iter().any(|cell| cell.is_nan()))
            .map(|(row, _)| row)
            .take(MOST_ROWS)
            .collect();
        let weights = data.weights.as_ref();
        Self {
            rows: whole
                .iter()
                .flat_map(|row| &validation[row * columns..][..columns])
                .copied()
                .collect(),
            weights: weights.map(|[_, of, _]| whole.iter().map(|row| of[*row]).collect()),
        }
    }

    /// The model with a base as sure as these rows say, and what they gain, in words.
    pub fn recalibrate(
        &self,
        model: &ArEbm,
        workers: &Workers,
        watch: &Watch,
    ) -> Result<(ArEbm, Option<String>)> {
        let Recalibrated { model, gain, log_factors } =
            model.recalibrated(&self.rows, self.weights.as_deref(), workers, watch)?;
        let changed = log_factors.iter().filter(|factors| **factors != [0.0; 2]).count();
        let sentence = format!(
            "How sure the density is of {changed} of {} columns was set by the rows that were kept back, which gain {gain:.4} nats a row.",
            log_factors.len() - model.shape.given
        );
        Ok((model, (changed > 0).then_some(sentence)))
    }
}
