//! Missing cells in any pattern, filled by draws given the observed ones.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use zhat::named;
use zhat::rng::{Stream, Streams};

use super::{BATCH, Fitted};
use crate::data::{Form, ReadOptions, TableWriter};
use crate::density::{Cloud, Density};
use crate::error::{Result, TableError};
use crate::memory;

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

named!(Fill, "fill", { Mean: "mean", Median: "median", Draw: "draw" });

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
    /// Whether the output is text, which holds words and every column of a file of text, in their order; if not, words are codes.
    pub text: bool,
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

impl Imputed {
    fn add(&mut self, row: &[f32], filled: &Filled) {
        let missing = row.iter().filter(|value| value.is_nan()).count();
        self.rows += 1;
        self.cells += missing;
        self.incomplete += usize::from(missing > 0);
        self.doubtful += usize::from(!filled.is_trusted());
    }
}

impl ImputeOptions {
    /// Checks the ranges of the settings.
    pub fn validate(&self) -> Result<()> {
        if let Some(level) = self.quantiles.iter().find(|level| !(0.0..=1.0).contains(*level)) {
            return Err(TableError::setting("quantiles", level, "between 0 and 1"));
        }
        if self.copies == 0 || (self.copies > 1 && self.fill != Fill::Draw) {
            let expected = "1, or more where fill is draw: copies differ in their draws";
            return Err(TableError::setting("copies", self.copies, expected));
        }
        if (self.particles as f64) < 2.0 * ENOUGH {
            let expected = format!("at least {}", 2.0 * ENOUGH);
            return Err(TableError::setting("particles", self.particles, expected));
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
        columns.extend(["effective_sample_size".into(), "trusted".into()]);
        columns
    }
}

/// Fills the missing cells of rows in memory, in the units of the data; words are codes. Gives the columns that
/// [`ImputeOptions::columns`] names, for every row as often as there are copies: the same as for the rows of a file.
///
/// # Shapes
/// - `rows`: `[n, columns]`
pub fn impute_rows(
    fitted: &Fitted,
    rows: &[f32],
    options: &ImputeOptions,
) -> Result<(Vec<f64>, Imputed)> {
    options.validate()?;
    let streams = Streams::new(options.seed).derive("impute", 0);
    let (density, features) = (fitted.density(), fitted.density().columns().len());
    let mut total = Imputed { rows: 0, incomplete: 0, cells: 0, doubtful: 0 };
    let width = options.columns(density.columns()).len() * options.copies;
    memory::check("copies", options.copies, 8.0 * (rows.len() / features * width) as f64)?;
    let mut lines = Vec::with_capacity(rows.len() / features * width);
    for batch in rows.chunks(BATCH * features) {
        density.watch().check()?;
        let streams = streams.derive("batch", total.rows as u64);
        let batch: Vec<&[f32]> = batch.chunks_exact(features).collect();
        for (row, filled) in batch.iter().zip(fill_batch(density, &batch, options, &streams)?) {
            total.add(row, &filled);
            lines.extend(filled.lines);
        }
    }
    Ok((lines, total))
}

/// Fills the missing cells of a file row by row, in the order of the file and in the units of its data. As text, every column of a file of
/// text is kept, and what is not missing stays as it is written. `create` is given the names of all columns, when there is a row.
///
/// `effective_sample_size` is that of the draws behind the worst of a row's missing cells (empty where none is missing);
/// `trusted` is 0 where that is below [`ENOUGH`] even with more particles, else 1.
pub fn impute(
    fitted: &Fitted,
    source: &str,
    read: &ReadOptions,
    options: &ImputeOptions,
    create: impl FnOnce(&[String]) -> Result<TableWriter>,
) -> Result<Imputed> {
    options.validate()?;
    let read = &ReadOptions { carry_every: options.text, ..read.clone() };
    let (mut create, mut out) = (Some(create), None);
    let kinds = fitted.kinds();
    let streams = Streams::new(options.seed).derive("impute", 0);
    let (density, features) = (fitted.density(), fitted.density().columns().len());
    let mut total = Imputed { rows: 0, incomplete: 0, cells: 0, doubtful: 0 };
    fitted.stream(source, read, |table| {
        let rows: Vec<&[f32]> = table.values().chunks_exact(features).collect();
        let streams = streams.derive("batch", total.rows as u64);
        let cells = (1.0 + options.quantiles.len() as f64) * features as f64 + 3.0;
        let needed = 8.0 * cells * options.copies as f64 * rows.len() as f64;
        memory::check("copies", options.copies, needed)?;
        let carried = table.carried();
        if let Some(create) = create.take() {
            let mut columns = options.columns(density.columns());
            if !carried.columns.is_empty() {
                columns.splice(..features, carried.columns.iter().cloned());
            }
            out = Some(create(&columns)?);
        }
        let Some(out) = &mut out else { return Ok(()) };
        let filled = fill_batch(density, &rows, options, &streams)?;
        for (at, (row, filled)) in rows.iter().zip(filled).enumerate() {
            total.add(row, &filled);
            if !options.text || carried.columns.is_empty() && kinds.is_none() {
                out.rows(&filled.lines)?;
                continue;
            }
            let text = |column: usize, value: f64| match &kinds {
                Some(kinds) => kinds[column].text(value),
                None => Form::Plain.text(value),
            };
            let (mut texts, mut numbers) = (Vec::new(), Vec::new());
            let width = filled.lines.len() / options.copies;
            for line in filled.lines.chunks_exact(width) {
                let cells = line[..features].iter().enumerate().map(|(c, &value)| text(c, value));
                match carried.columns.is_empty() {
                    true => texts.extend(cells),
                    false => {
                        let places = carried.row(at).iter().zip(&carried.of_table);
                        texts.extend(places.map(|(cell, place)| match place {
                            Some(column) if row[*column].is_nan() => text(*column, line[*column]),
                            _ => cell.clone(),
                        }));
                    }
                }
                let quantiles = (1 + options.quantiles.len()) * features;
                let of_quantiles = line[features..quantiles].iter().enumerate();
                texts.extend(of_quantiles.map(|(at, &value)| text(at % features, value)));
                numbers.extend_from_slice(&line[quantiles..]);
            }
            out.labelled(&texts, &numbers, options.copies)?;
        }
        Ok(())
    })?;
    if let Some(out) = out {
        out.finish()?;
    }
    Ok(total)
}

/// A row as it is written, once for each copy.
#[derive(Debug, Clone)]
struct Filled {
    effective_sample_size: f64,
    lines: Vec<f64>,
}

impl Filled {
    /// A whole row has no draws, and nothing to distrust.
    fn is_trusted(&self) -> bool {
        self.effective_sample_size.is_nan() || self.effective_sample_size >= ENOUGH
    }

    fn new(row: &[f32], cloud: Option<&Cloud>, options: &ImputeOptions, rng: &mut Stream) -> Self {
        // The row with its missing cells filled.
        let filled = |of: &dyn Fn(&Cloud, usize) -> f64| -> Vec<f64> {
            let cell = |(column, &value): (usize, &f32)| match cloud {
                Some(cloud) if value.is_nan() => of(cloud, column),
                _ => f64::from(value),
            };
            row.iter().enumerate().map(cell).collect()
        };
        let draws = cloud.filter(|_| options.fill == Fill::Draw);
        let draws = draws.map(|cloud| cloud.sample(options.copies, rng).rows);
        let mut found = Self {
            effective_sample_size: cloud.map_or(f64::NAN, Cloud::effective_sample_size),
            lines: Vec::new(),
        };
        for copy in 0..options.copies {
            found.lines.extend(match (options.fill, &draws) {
                (Fill::Draw, Some(draws)) => {
                    filled(&|_, column| f64::from(draws[copy * row.len() + column]))
                }
                (Fill::Median, _) => filled(&|cloud, column| cloud.quantile(column, 0.5)),
                _ => filled(&|cloud, column| cloud.filling(column)),
            });
            for &level in &options.quantiles {
                found.lines.extend(filled(&|cloud, column| cloud.quantile(column, level)));
            }
            if options.copies > 1 {
                found.lines.push((copy + 1) as f64);
            }
            let trusted = f64::from(u8::from(found.is_trusted()));
            found.lines.extend([found.effective_sample_size, trusted]);
        }
        found
    }
}

/// Fills the rows of a batch; those with too few effective draws are tried again with more particles.
fn fill_batch(
    density: &dyn Density,
    rows: &[&[f32]],
    options: &ImputeOptions,
    streams: &Streams,
) -> Result<Vec<Filled>> {
    let fill = |(at, row): (usize, &&[f32])| {
        let is_whole = !row.iter().any(|value| value.is_nan());
        let attempt = |particles: usize| {
            let streams = streams.derive("row", at as u64).derive("particles", particles as u64);
            let cloud = match is_whole {
                true => None,
                false => Some(density.draw(row, particles, &streams)?),
            };
            let mut rng = streams.stream("draws", 0, 0);
            Ok(Filled::new(row, cloud.as_ref(), options, &mut rng))
        };
        let first = attempt(options.particles)?;
        if first.is_trusted() { Ok(first) } else { attempt(options.particles.saturating_mul(MORE)) }
    };
    density.pool().install(|| rows.par_iter().enumerate().map(fill).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_named() {
        let good = ImputeOptions {
            fill: Fill::Mean,
            copies: 1,
            quantiles: vec![0.05, 0.95],
            particles: 500,
            seed: 0,
            text: true,
        };
        good.validate().unwrap();
        let message = |options: ImputeOptions| options.validate().unwrap_err().to_string();
        assert!(message(ImputeOptions { copies: 3, ..good.clone() }).contains("fill is draw"));
        assert!(
            message(ImputeOptions { quantiles: vec![5.0], ..good.clone() }).contains("0 and 1")
        );
        assert!(message(ImputeOptions { particles: 3, ..good.clone() }).contains("particles is 3"));
        let names = good.columns(&["a".into(), "b".into()]);
        assert_eq!(
            names,
            [
                "a",
                "b",
                "a_q0.05",
                "b_q0.05",
                "a_q0.95",
                "b_q0.95",
                "effective_sample_size",
                "trusted"
            ]
        );
    }
}
