//! What a fitted density can do, whatever its family: score rows, draw them given some of their columns, and say how well
//! its `log Z` is known.

mod autoregressive;
mod cells;
mod cloud;

pub use autoregressive::ArDensity;
pub use cells::{Cells, with_cells};
pub use cloud::{Cloud, Draws};

use serde::{Deserialize, Deserializer, Serialize};
pub use zhat::ar::CellScores;
use zhat::ar::RowScores;
use zhat::criterion::Method;
use zhat::evaluate::LogZ;
use zhat::rng::Streams;
use zhat::smc::Resampling;
use zhat::student::widening;
use zhat::watch::Watch;

use crate::data::Standardiser;
use crate::error::{Result, TableError};

/// A density over the columns of a table, in memory.
///
/// Rows are row-major and in the units of the data. A cell that is NaN is missing.
pub trait Density: std::fmt::Debug + Send + Sync {
    /// Names of the columns, in the order of a row.
    fn columns(&self) -> &[String];

    /// How many of the first columns are given: it is a density of the others given them, for every row that has them.
    fn given(&self) -> usize {
        0
    }

    /// How columns become features: standard deviations, in which distances are measured, and after them normal scores if the
    /// model has maps to them, in which rows are far out.
    fn standardiser(&self) -> &Standardiser;

    /// Whether `log p~` is `log p`: then `log Z` is 0 without an error, and draws with nothing given are independent.
    fn is_normalised(&self) -> bool;

    /// What it was trained by, where that is known.
    fn criterion(&self) -> Option<Method> {
        None
    }

    /// The threads that it works on, for what goes with it; no result depends on their number.
    fn pool(&self) -> &rayon::ThreadPool;

    /// What its work is watched and stopped by.
    fn watch(&self) -> &Watch;

    /// Log-densities of rows, but for `log Z`, and those of the proposal that goes with the density. A row with a missing
    /// cell has the log-density of what is observed of it, or NaN where the density cannot say.
    ///
    /// # Shapes
    /// - `rows`: `[n, columns]`
    fn score(&self, rows: &[f32]) -> Result<RowScores>;

    /// The same with a standard error of every `log p~`: that of the particles which stand for what is missing of a row. A density that
    /// knows of them scores rows with holes by what is observed of them.
    fn score_with_errors(&self, rows: &[f32]) -> Result<(RowScores, Vec<f64>)> {
        let scores = self.score(rows)?;
        let errors = vec![0.0; scores.log_q.len()];
        Ok((scores, errors))
    }

    /// What the density says of every cell given those before it in its row: log-densities, which sum to those of the rows, and shares
    /// of the mass below, which are uniform where the density is right (of what is counted they are anywhere between those of its ends);
    /// NaN for a row with a missing cell, 0 and no share for a column that is given. None where it says nothing of a cell without those after it.
    ///
    /// # Shapes
    /// - `rows`: `[n, columns]`
    fn cells(&self, rows: &[f32]) -> Result<Option<CellScores>>;

    /// Weighted draws of the cells that are missing in a row, given the others.
    ///
    /// # Shapes
    /// - `given`: `[columns]`
    fn draw(&self, given: &[f32], particles: usize, streams: &Streams) -> Result<Cloud>;

    /// Moves every row by a kernel that leaves the density invariant, so that copies differ.
    ///
    /// # Shapes
    /// - `rows`: `[n, columns]`
    fn refresh(&self, rows: Vec<f32>, streams: &Streams) -> Result<Vec<f32>>;

    /// Independent estimates of `log Z`; none where there is nothing to estimate.
    fn estimates(&self, settings: &Estimation, streams: &Streams) -> Result<Vec<Estimate>>;

    /// `log Z` by other methods, as a check on the estimates.
    fn opinions(&self, settings: &Estimation, streams: &Streams) -> Result<Vec<Opinion>>;

    /// `log Z` by a method that starts from rows, as a check from the other side: it is too high where estimates by fresh particles
    /// are too low. Rows of the data are not exact draws of the density, so it is a bound only as far as they are like those.
    ///
    /// Where integrals are done by quadrature, they are sampled instead, and `log Z` should be 0. None where there is nothing to check.
    ///
    /// # Shapes
    /// - `rows`: `[n, columns]`, of which some are used
    fn opinion_from_rows(
        &self,
        _rows: &[f32],
        _settings: &Estimation,
        _streams: &Streams,
    ) -> Result<Option<Opinion>> {
        Ok(None)
    }

    /// How the density falls far out, at its worst: in what column, and whether there is an integral.
    ///
    /// # Shapes
    /// - `rows`: `[n, columns]`; some of them are the contexts, and all of them say how far out the data are
    fn tail(&self, rows: &[f32]) -> Result<Tail>;

    /// How well scores are known where they hold integrals that are done by quadrature, in nats; 0 where none is.
    ///
    /// # Shapes
    /// - `rows`: `[n, columns]`, of which some are used
    fn quadrature_error(&self, rows: &[f32]) -> Result<f64>;

    /// What the watch counts while estimates, and opinions, are made: to show progress against.
    fn work(&self, settings: &Estimation) -> [u64; 2];
}

/// How `log Z` is estimated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Estimation {
    /// Particles of each estimate.
    pub particles: usize,
    /// Number of independent estimates.
    pub estimates: usize,
    /// How ancestors are drawn.
    #[serde(default = "sharpest")]
    pub resampling: Resampling,
}

impl Estimation {
    /// With systematic resampling, which is the sharpest.
    pub fn new(particles: usize, estimates: usize) -> Self {
        Self { particles, estimates, resampling: sharpest() }
    }
}

fn sharpest() -> Resampling {
    Resampling::Systematic
}

/// One estimate of `log Z`.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// `log Z-hat`.
    pub log_z_hat: f64,
    /// Effective sample size after each stage, as a share of the particles.
    pub effective_sample_size: Vec<f64>,
    /// Largest weight of a single particle, at any stage.
    pub largest_weight: f64,
    /// Share of the mass with a feature further out than [`FAR_OUT`].
    pub far_out: f64,
    /// Shape of the tail of every stage's weights ([`pareto_k`](zhat::evaluate::pareto_k)).
    pub pareto_k: Vec<f64>,
    /// Variance of `Z-hat / Z` by this estimate alone, from who descends from whom.
    pub relative_variance: f64,
}

/// In standard deviations of the features, after a map to normal scores if there is one: heavy tails of the data are not far
/// out then. A little within the range that the evaluation's defensive draws cover.
pub const FAR_OUT: f32 = 5.0;

/// How a density falls in a column, given those before it, far out on one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// The column.
    pub column: String,
    /// Where it was put, in features' standard deviations, and `log p~` there.
    #[serde(deserialize_with = "figures_or_null")]
    pub log_p_tilde: Vec<[f64; 2]>,
    /// Whether it falls fast enough to have an integral. If not there is no `Z`, and no likelihood.
    pub falls: bool,
}

impl Tail {
    /// Two figures that show it: `log p~ -2.6 at 6 and -2.0 at 10000 standard deviations`.
    pub fn figures(&self) -> String {
        let [[near, first], [far, last]] = self.ends();
        let [first, last] = [first, last].map(short);
        format!("log p~ {first} at {near} and {last} at {far} standard deviations")
    }

    /// The same as a line of a table: its name and its value.
    pub fn line(&self) -> [String; 2] {
        let [[near, first], [far, last]] = self.ends();
        let name = format!("log p~ of {} at {near} and {far} deviations", self.column);
        [name, format!("{}, {}", short(first), short(last))]
    }

    /// The first and the last place; of a tail that does not fall and yet is lower at its end, the two between which it rises most.
    pub(crate) fn ends(&self) -> [[f64; 2]; 2] {
        let [Some(&first), Some(&last)] = [self.log_p_tilde.first(), self.log_p_tilde.last()]
        else {
            return [[f64::NAN; 2]; 2];
        };
        let rise = |from: &[f64; 2], to: &[f64; 2]| to[1] - from[1] + (to[0] / from[0]).ln();
        if self.falls || rise(&first, &last) >= 0.0 {
            return [first, last];
        }
        let steps = self.log_p_tilde.windows(2).map(|two| [two[0], two[1]]);
        steps.max_by(|[a, b], [c, d]| rise(a, b).total_cmp(&rise(c, d))).unwrap_or([first, last])
    }
}

/// JSON has `null` for what is not a number.
fn figures_or_null<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Vec<[f64; 2]>, D::Error> {
    let figures = Vec::<[Option<f64>; 2]>::deserialize(from)?;
    Ok(figures.into_iter().map(|two| two.map(|one| one.unwrap_or(f64::NAN))).collect())
}

fn short(log_p: f64) -> String {
    if log_p.abs() < 1e4 { format!("{log_p:.1}") } else { format!("{log_p:.1e}") }
}

/// `log Z` by some method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Opinion {
    /// How it was made.
    pub method: String,
    /// `log Z`.
    pub log_z: f64,
    /// Its standard error, over independent estimates.
    pub standard_error: f64,
    /// Effective draws behind one estimate; for SMC, in its worst stage.
    pub effective_sample_size: Option<f64>,
    /// Whether it is an upper bound in expectation, so that only one that is higher disagrees.
    pub from_above: bool,
}

impl Opinion {
    /// From independent estimates.
    pub fn new(method: &str, log_z_hats: &[f64], effective_sample_size: Option<f64>) -> Self {
        let LogZ { log_z, standard_error, .. } = LogZ::from_estimates(log_z_hats);
        Self {
            method: method.into(),
            log_z,
            standard_error,
            effective_sample_size,
            from_above: false,
        }
    }

    /// From estimates whose reciprocals are unbiased for `1 / Z`: the mean of their logs, which is not below `log Z` in expectation.
    pub fn from_above(method: &str, log_z_hats: &[f64]) -> Self {
        let LogZ { mean_log_z_hat, spread, .. } = LogZ::from_conditional_estimates(log_z_hats);
        let number = log_z_hats.len();
        let standard_error = widening(number) * spread / (number as f64).sqrt();
        Self {
            method: method.into(),
            log_z: mean_log_z_hat,
            standard_error,
            effective_sample_size: None,
            from_above: true,
        }
    }
}

/// An error where a row lacks something that the density is given; a row may lack all else.
pub(crate) fn check_given(density: &dyn Density, row: &[f32]) -> Result<()> {
    let given = &density.columns()[..density.given()];
    let missing = given.iter().zip(row).find(|(_, cell)| cell.is_nan());
    match missing {
        None => Ok(()),
        Some((name, _)) => {
            let expected = format!(
                "with a value for each of {}: the model is a density of the other columns given these",
                given.join(", ")
            );
            Err(TableError::setting("given", format!("without {name}"), &expected))
        }
    }
}

/// A row with the cells of some columns, by name, and NaN in the others.
pub fn row_with(density: &dyn Density, cells: &[(String, f64)]) -> Result<Vec<f32>> {
    let columns = density.columns();
    let mut row = vec![f32::NAN; columns.len()];
    for (name, value) in cells {
        let wrong =
            |expected: &str| TableError::setting("given", format!("{name}={value}"), expected);
        let column = columns.iter().position(|column| column == name).ok_or_else(|| {
            wrong(&format!("for one of the model's columns, {}", columns.join(", ")))
        })?;
        if !value.is_finite() {
            return Err(wrong("a finite number"));
        }
        if !std::mem::replace(&mut row[column], *value as f32).is_nan() {
            return Err(wrong("the only value for its column"));
        }
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_shown_where_it_does_not_fall() {
        let shown = |log_p: [f64; 3], falls: bool| {
            let log_p_tilde = [6.0, 10.0, 1e4].into_iter().zip(log_p);
            let log_p_tilde = log_p_tilde.map(|(place, log_p)| [place, log_p]).collect();
            Tail { column: "x".into(), log_p_tilde, falls }.ends()
        };
        assert_eq!(shown([-5.0, -9.0, -900.0], true), [[6.0, -5.0], [1e4, -900.0]]);
        assert_eq!(shown([-2.6, -2.5, -2.0], false), [[6.0, -2.6], [1e4, -2.0]]);
        assert_eq!(shown([-14.0, -4.0, -900.0], false), [[6.0, -14.0], [10.0, -4.0]]);
    }
}
