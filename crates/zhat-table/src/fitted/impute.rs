//! Missing cells in any pattern, filled by SMC over the autoregressive order with the observed cells conditioned on.

use serde::{Deserialize, Serialize};
use zhat::ar::SmcEstimate;
use zhat::rng::{Stream, Streams};
use zhat::smc::{Resampling, SmcConfig};

use super::Fitted;
use super::effective::effective_values;
use crate::data::{ReadOptions, TableWriter};
use crate::error::{Result, TableError};

/// Fewer effective draws than this, and a row is tried again with more particles, and flagged if that is no help.
pub const ENOUGH: f64 = 30.0;
/// How many times more particles a row gets when it is tried again.
const MORE: usize = 8;

/// What a missing cell is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// The conditional mean.
    Mean,
    /// The conditional median.
    Median,
    /// A draw; the missing cells of a row are drawn together.
    Draw,
}

/// How cells are filled, and what is written beside them.
#[derive(Debug, Clone, PartialEq)]
pub struct ImputeOptions {
    /// What a missing cell is filled with.
    pub fill: Fill,
    /// Copies of every row, each with its own draws; more than one only with [`Fill::Draw`].
    pub copies: usize,
    /// Quantiles of every cell in columns of their own; an observed cell is its own quantile.
    pub quantiles: Vec<f64>,
    /// Particles for each row.
    pub particles: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// What was filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Imputed {
    /// Rows that were read.
    pub rows: usize,
    /// Rows that had missing cells.
    pub incomplete: usize,
    /// Cells that were filled.
    pub cells: usize,
    /// Rows that are flagged as not to be trusted.
    pub doubtful: usize,
}

impl ImputeOptions {
    /// Checks the ranges of the settings.
    pub fn validate(&self) -> Result<()> {
        let wrong = |reason: String| Err(TableError::Config { reason });
        if let Some(level) = self.quantiles.iter().find(|level| !(0.0..=1.0).contains(*level)) {
            return wrong(format!("--quantiles {level}: must be between 0 and 1"));
        }
        if self.copies == 0 {
            return wrong("--copies is 0, but must be at least 1".into());
        }
        if self.copies > 1 && self.fill != Fill::Draw {
            return wrong(
                "--copies makes copies that differ in their draws; add --fill draw".into(),
            );
        }
        if (self.particles as f64) < 2.0 * ENOUGH {
            let least = 2.0 * ENOUGH;
            return wrong(format!(
                "--particles is {}, but must be at least {least}",
                self.particles
            ));
        }
        Ok(())
    }

    /// Names of the columns that are written, for a model with these columns.
    pub fn columns(&self, model: &[String]) -> Vec<String> {
        let mut columns = model.to_vec();
        for level in &self.quantiles {
            columns.extend(model.iter().map(|name| format!("{name}_q{level}")));
        }
        if self.copies > 1 {
            columns.push("copy".into());
        }
        columns.extend(["ess".into(), "trusted".into()]);
        columns
    }
}

/// Fills the missing cells of a file row by row, in the order of the file and in the units of its data.
///
/// `ess` is the effective number of draws behind the worst of a row's missing cells (empty where none is missing);
/// `trusted` is 0 where that is below [`ENOUGH`] even with more particles, else 1.
pub fn impute(
    fitted: &Fitted,
    source: &str,
    read: &ReadOptions,
    options: &ImputeOptions,
    out: &mut TableWriter,
) -> Result<Imputed> {
    options.validate()?;
    let streams = Streams::new(options.seed).derive("impute", 0);
    let features = fitted.evaluator.features();
    let mut total = Imputed { rows: 0, incomplete: 0, cells: 0, doubtful: 0 };
    fitted.stream(source, read, |table| {
        let values = table.into_values();
        let streams = streams.derive("batch", total.rows as u64);
        let filled = fill_batch(fitted, &values, options, &streams)?;
        for (row, filled) in values.chunks_exact(features).zip(&filled) {
            total.rows += 1;
            let missing = row.iter().filter(|value| value.is_nan()).count();
            total.cells += missing;
            total.incomplete += usize::from(missing > 0);
            total.doubtful += usize::from(missing > 0 && filled.ess < ENOUGH);
            out.rows(&lines(row, filled, missing > 0, options))?;
        }
        Ok(())
    })?;
    Ok(total)
}

/// What is known of the cells of one row, in the units of the data; only the entries of missing cells count.
#[derive(Debug, Clone, Default)]
struct Filled {
    ess: f64,
    /// One for each copy.
    values: Vec<Vec<f64>>,
    /// One for each level.
    quantiles: Vec<Vec<f64>>,
}

fn lines(row: &[f32], filled: &Filled, incomplete: bool, options: &ImputeOptions) -> Vec<f64> {
    let merge = |found: Option<&Vec<f64>>| -> Vec<f64> {
        let cell = |(feature, value): (usize, &f32)| match found {
            Some(found) if value.is_nan() => found[feature],
            _ => f64::from(*value),
        };
        row.iter().enumerate().map(cell).collect()
    };
    let mut lines = Vec::new();
    for copy in 0..options.copies {
        lines.extend(merge(filled.values.get(copy)));
        for level in 0..options.quantiles.len() {
            lines.extend(merge(filled.quantiles.get(level)));
        }
        if options.copies > 1 {
            lines.push((copy + 1) as f64);
        }
        lines.push(if incomplete { filled.ess } else { f64::NAN });
        lines.push(f64::from(u8::from(!incomplete || filled.ess >= ENOUGH)));
    }
    lines
}

/// Fills the rows of a batch; complete rows are left alone.
fn fill_batch(
    fitted: &Fitted,
    values: &[f32],
    options: &ImputeOptions,
    streams: &Streams,
) -> Result<Vec<Filled>> {
    let features = fitted.evaluator.features();
    let mut standard = values.to_vec();
    fitted.card.standardiser.apply(&mut standard);
    let mut filled = vec![Filled::default(); values.len() / features];
    let mut open: Vec<usize> = (0..filled.len())
        .filter(|row| values[row * features..][..features].iter().any(|value| value.is_nan()))
        .collect();
    for (attempt, particles) in
        [options.particles, MORE * options.particles].into_iter().enumerate()
    {
        let smc = SmcConfig::new(particles)?.with_resampling(Resampling::Systematic);
        let given: Vec<Vec<Option<f32>>> = open
            .iter()
            .map(|row| {
                let cells = &standard[row * features..][..features];
                cells.iter().map(|value| (!value.is_nan()).then_some(*value)).collect()
            })
            .collect();
        let streams = streams.derive("attempt", attempt as u64);
        let found = fitted.evaluator.smc_given_each(&smc, &given, &streams, |row, cloud| {
            let mut rng = streams.stream("draws", row as u64, 0);
            summarise(fitted, &given[row], &cloud, options, &mut rng)
        })?;
        for (&row, found) in open.iter().zip(found) {
            filled[row] = found;
        }
        open.retain(|&row| filled[row].ess < ENOUGH);
    }
    Ok(filled)
}

fn summarise(
    fitted: &Fitted,
    given: &[Option<f32>],
    cloud: &SmcEstimate,
    options: &ImputeOptions,
    rng: &mut Stream,
) -> Filled {
    let standardiser = &fitted.card.standardiser;
    let units = |feature: usize, value: f64| {
        value * standardiser.std_dev[feature] + standardiser.mean[feature]
    };
    let missing: Vec<usize> = (0..given.len()).filter(|&f| given[f].is_none()).collect();
    let ess = missing
        .iter()
        .map(|&f| effective_values(&cloud.columns[f], cloud.weights.iter().copied()))
        .fold(f64::INFINITY, f64::min);
    let per_cell = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
        let mut row = vec![f64::NAN; given.len()];
        for &feature in &missing {
            row[feature] = units(feature, of(feature));
        }
        row
    };
    let mean = |feature: usize| -> f64 {
        let pairs = cloud.columns[feature].iter().zip(&cloud.weights);
        pairs.map(|(&value, weight)| f64::from(value) * weight).sum()
    };
    let quantile =
        |feature: usize, level: f64| quantile(&cloud.columns[feature], &cloud.weights, level);
    let values = match options.fill {
        Fill::Mean => vec![per_cell(&mean)],
        Fill::Median => vec![per_cell(&|feature| quantile(feature, 0.5))],
        Fill::Draw => (0..options.copies)
            .map(|_| {
                let particle = rng.categorical(&cloud.weights);
                per_cell(&|feature| f64::from(cloud.columns[feature][particle]))
            })
            .collect(),
    };
    let quantiles =
        options.quantiles.iter().map(|&level| per_cell(&|feature| quantile(feature, level)));
    Filled { ess, values, quantiles: quantiles.collect() }
}

/// The smallest value at which the cumulative weight reaches the level.
fn quantile(values: &[f32], weights: &[f64], level: f64) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let target = level * weights.iter().sum::<f64>();
    let mut sum = 0.0;
    for &index in &order {
        sum += weights[index];
        if sum >= target {
            return f64::from(values[index]);
        }
    }
    // Rounding may leave the sum a little short of the whole.
    order.last().map_or(f64::NAN, |&index| f64::from(values[index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_follow_the_weights() {
        let (values, weights) = ([3.0, 1.0, 2.0], [0.2, 0.5, 0.3]);
        assert_eq!(quantile(&values, &weights, 0.4), 1.0);
        assert_eq!(quantile(&values, &weights, 0.7), 2.0);
        assert_eq!(quantile(&values, &weights, 1.0), 3.0);
        assert_eq!(quantile(&values, &weights, 0.0), 1.0);
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let good = ImputeOptions {
            fill: Fill::Mean,
            copies: 1,
            quantiles: vec![0.05, 0.95],
            particles: 500,
            seed: 0,
        };
        good.validate().unwrap();
        let message = |options: ImputeOptions| options.validate().unwrap_err().to_string();
        assert!(message(ImputeOptions { copies: 3, ..good.clone() }).contains("--fill draw"));
        assert!(
            message(ImputeOptions { quantiles: vec![5.0], ..good.clone() }).contains("0 and 1")
        );
        assert!(message(ImputeOptions { particles: 3, ..good.clone() }).contains("--particles"));
        let names = good.columns(&["a".into(), "b".into()]);
        assert_eq!(names, ["a", "b", "a_q0.05", "b_q0.05", "a_q0.95", "b_q0.95", "ess", "trusted"]);
    }
}
