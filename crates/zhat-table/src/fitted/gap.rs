//! How far a density is from the truth, where the truth is known.

use std::fmt;

use serde::{Deserialize, Serialize};
use zhat::rng::Streams;
use zhat::train::Difference;

use super::rows::drawn;
use crate::data::{ColumnKind, ReadOptions};
use crate::density::Density;
use crate::error::Result;
use crate::fit::number_or_null;

/// Numbers in the fresh rows that a fit is measured by: scoring them takes a second or two.
const FRESH_NUMBERS: usize = 200_000;

/// How much likelier rows are by the truth than by a density, in nats a row: what is expected of it is the Kullback-Leibler divergence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Mean over the rows.
    #[serde(deserialize_with = "number_or_null")]
    pub mean: f64,
    /// Its standard error, over the rows and of `log Z`. It is taken row by row: what makes a row likely by both cancels.
    #[serde(deserialize_with = "number_or_null")]
    pub standard_error: f64,
    /// Rows.
    pub rows: usize,
    /// Whether they were drawn for this alone.
    pub fresh: bool,
}

impl Gap {
    /// Of log-densities of the same rows, where `log Z` has an error.
    pub(super) fn new(truth: &[f64], log_densities: &[f64], se_log_z: f64) -> Self {
        let Difference { mean, standard_error } = Difference::new(truth, log_densities);
        Self {
            mean,
            standard_error: standard_error.hypot(se_log_z),
            rows: truth.len(),
            fresh: false,
        }
    }

    /// On rows of a built-in set that nothing else has seen; none where the truth of them is not known, or scoring them takes long.
    pub(crate) fn on_fresh_rows(
        density: &dyn Density,
        source: &str,
        kinds: &[ColumnKind],
        streams: &Streams,
    ) -> Result<Option<Self>> {
        let options = ReadOptions {
            max_rows: Some(FRESH_NUMBERS / density.columns().len()),
            model_columns: density.columns().to_vec(),
            model_kinds: kinds.to_vec(),
            ..ReadOptions::default()
        };
        let rng = &mut streams.stream("rows-for-the-gap", 0, 0);
        let (table, truth) = drawn(source, &options, density.given(), rng, density.watch())?;
        let Some(truth) = truth else { return Ok(None) };
        let found = density.score(table.values())?.log_p_tilde;
        Ok(Some(Self { fresh: true, ..Self::new(&truth, &found, 0.0) }))
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mean, standard_error, rows, fresh } = self;
        let which = if *fresh { "fresh" } else { "test" };
        write!(f, "{mean:.4} ± {standard_error:.4} ({rows} {which} rows)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_of_rows_paired_and_of_log_z() {
        // Log-densities that differ by much from row to row, and from each other by 0, 1 and 2.
        let gap = Gap::new(&[-1.0, -50.0, -7.0], &[-1.0, -51.0, -9.0], 0.0);
        assert!((gap.mean - 1.0).abs() < 1e-12 && gap.rows == 3 && !gap.fresh);
        assert!((gap.standard_error - (1.0f64 / 3.0).sqrt()).abs() < 1e-12);
        let with_log_z = Gap::new(&[-1.0, -50.0, -7.0], &[-1.0, -51.0, -9.0], 1.0);
        assert!((with_log_z.standard_error - (4.0f64 / 3.0).sqrt()).abs() < 1e-12);
        let same = Gap::new(&[-1.0, -50.0], &[-1.0, -50.0], 0.0);
        assert_eq!([same.mean, same.standard_error], [0.0; 2]);
        assert_eq!(Gap { fresh: true, ..gap }.to_string(), "1.0000 ± 0.5774 (3 fresh rows)");
    }
}
