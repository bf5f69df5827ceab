//! Whether a density fits rows that it was not fitted to: column by column, and as a whole.

use serde::{Deserialize, Serialize};
use zhat::rng::Streams;

use super::calibration::Calibration;
use super::check::Check;
use super::two_sample::{TwoSample, two_sample};
use crate::density::Density;
use crate::error::Result;
use crate::fit::number_or_null;

/// Rows whose cells are looked at, and cells of them, at most: with many columns fewer rows have to do.
const MOST_ROWS: usize = 2_000;
const MOST_CELLS: usize = 40_000;
/// Draws that stand for columns of a density that says nothing of a cell given those before it.
const DRAWS: usize = 20_000;
/// Rows that may be on the wrong side of some quantile of a column, as a share: what one would see in a picture.
const LARGEST_DISTANCE: f64 = 0.05;
/// How often a classifier may be right: 0.55 is what it manages where a tenth of the rows is where the model has nothing.
const LARGEST_ACCURACY: f64 = 0.55;
/// A figure that chance gives more often than this is no reason.
const LEVEL: f64 = 0.01;
/// Columns that are named in a reason.
const NAMED: usize = 3;

/// How well a density fits rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goodness {
    /// Rows that were looked at column by column.
    pub rows: usize,
    /// Whether columns were looked at given those before them; else by themselves, by draws.
    pub conditional: bool,
    /// Every column.
    pub columns: Vec<ColumnFit>,
    /// Whether a classifier tells rows from draws; none where there are too few rows.
    pub two_sample: Option<TwoSample>,
}

/// How well a column fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnFit {
    /// Its name.
    pub column: String,
    /// The largest share of rows on the wrong side of a quantile: Kolmogorov and Smirnov's distance.
    pub distance: f64,
    /// How often chance alone gives as much in one of all columns (Holm's correction).
    #[serde(deserialize_with = "number_or_null")]
    pub p_value: f64,
    /// What is wrong, in words.
    pub words: String,
}

/// Looks at a density by rows that it was not fitted to.
///
/// # Shapes
/// - `rows`: `[n, columns]`, row-major, in the units of the data and without noise
pub fn goodness(density: &dyn Density, rows: &[f32], streams: &Streams) -> Result<Goodness> {
    let streams = streams.derive("goodness", 0);
    let (columns, given) = (density.columns().len(), density.given());
    let all = rows.len() / columns;
    let number = all.min(MOST_ROWS).min((MOST_CELLS / columns).max(1));
    let some: Vec<f32> = (0..number)
        .flat_map(|at| &rows[at * all / number * columns..][..columns])
        .copied()
        .collect();
    let cells = density.cells(&some)?;
    let conditional = cells.is_some();
    let calibration = match cells {
        Some(cells) => {
            // Nothing is said of what is given.
            let modelled = cells.below.chunks_exact(columns).flat_map(|row| &row[given..]);
            Calibration::new(&modelled.copied().collect::<Vec<_>>(), columns - given)
        }
        None => {
            let nothing = vec![f32::NAN; columns];
            let cloud = density.draw(&nothing, DRAWS, &streams)?;
            let draws = cloud.sample(DRAWS, &mut streams.stream("marginals", 0, 0)).rows;
            let rng = &mut streams.stream("places", 0, 0);
            Calibration::of_marginals(&some, &draws, columns, rng)
        }
    };
    let fits = calibration.columns.iter().zip(calibration.adjusted());
    let fits = fits.zip(&density.columns()[given..]);
    let columns = fits.map(|((column, p_value), name)| ColumnFit {
        column: name.clone(),
        distance: column.distance,
        p_value,
        words: column.words(),
    });
    Ok(Goodness {
        rows: calibration.rows,
        conditional,
        columns: columns.collect(),
        two_sample: two_sample(density, rows, &streams)?,
    })
}

impl Goodness {
    /// The columns from the one that fits worst.
    pub fn worst(&self) -> Vec<&ColumnFit> {
        let mut columns: Vec<&ColumnFit> = self.columns.iter().collect();
        columns.sort_by(|a, b| b.distance.total_cmp(&a.distance));
        columns
    }

    /// What a verdict rests on. Where there are many rows every model is told from the truth: a check fails by the size of what is
    /// wrong, if chance does not explain it.
    pub(super) fn checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        let given = if self.conditional { ", given those before it" } else { "" };
        if let Some(worst) = self.worst().first().filter(|_| self.rows > 0) {
            let is_wrong =
                |column: &&&ColumnFit| column.distance > LARGEST_DISTANCE && column.p_value < LEVEL;
            let worst_columns = self.worst();
            let wrong: Vec<&&ColumnFit> = worst_columns.iter().filter(is_wrong).collect();
            let tell = |column: &ColumnFit| {
                let ColumnFit { column: name, distance, words, .. } = column;
                format!("{name}{given}, by {:.1} % ({words})", 100.0 * distance)
            };
            let named: Vec<String> = wrong.iter().take(NAMED).map(|column| tell(column)).collect();
            let reason = match wrong.len() {
                0 => format!(
                    "the rows are where each column says; furthest off is {}, p = {:.2}",
                    tell(worst),
                    worst.p_value
                ),
                number => format!(
                    "the rows are not where {number} of {} columns say{}: {}; p {}",
                    self.columns.len(),
                    if number > NAMED { ", above all" } else { "" },
                    named.join("; "),
                    at(worst.p_value)
                ),
            };
            let largest = wrong.first().map_or(worst.distance, |column| column.distance);
            let name = "rows on the wrong side of a quantile, worst column";
            checks.push(Check::of_fit(name, largest, LARGEST_DISTANCE, wrong.is_empty(), reason));
        }
        if let Some(found) = &self.two_sample {
            let TwoSample {
                rows, effective_draws, accuracy, p_value, where_rows, where_draws, ..
            } = found;
            let places: Vec<&str> = [where_rows, where_draws]
                .into_iter()
                .map(|s| &**s)
                .filter(|s| !s.is_empty())
                .collect();
            let told = *accuracy > LARGEST_ACCURACY && *p_value < LEVEL;
            let most = match places.is_empty() || !told {
                true => String::new(),
                false => format!("; there are {}", places.join(", and ")),
            };
            let reason = format!(
                "a classifier tells rows from draws {:.0} % of the time (p {}){most}",
                100.0 * accuracy,
                at(*p_value)
            );
            let name = "how often a classifier tells rows from draws";
            checks.push(Check::of_fit(
                name,
                *accuracy,
                LARGEST_ACCURACY,
                *p_value >= LEVEL,
                reason,
            ));
            let share = effective_draws / *rows as f64;
            let reason = format!(
                "{rows} draws are worth {effective_draws:.0} independent ones: they say little of the model"
            );
            if share < FEWEST_DIFFERENT {
                let name = "share of the draws that differ";
                checks.push(Check::at_least(name, share, FEWEST_DIFFERENT, reason));
            }
        }
        checks
    }
}

/// Draws of which fewer are different than this, as a share, are no sample of the model.
const FEWEST_DIFFERENT: f64 = 0.5;

/// A p-value in a sentence.
fn at(p_value: f64) -> String {
    match p_value {
        p if p < 1e-4 => "below 0.0001".into(),
        p => format!("= {p:.3}"),
    }
}
