//! The log-density of every row of a file, streamed: files may be larger than memory.

use serde::Serialize;

use super::explain::{explained_by_the_others, explained_by_those_before};
use super::{BATCH, Fitted};
use crate::data::{ReadOptions, TableWriter};
use crate::error::Result;

/// What was scored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scored {
    /// Rows that were read and written.
    pub rows: usize,
    /// Those among them that have no log-density, for a missing cell.
    pub missing: usize,
    /// Those among them with a missing cell that have one, of what is observed of them.
    pub holed: usize,
    /// The largest standard error of one of these.
    pub largest_error: f64,
    /// Mean log-density of the others.
    pub mean_log_density: f64,
    /// Standard error of the mean over the rows.
    pub se_test: f64,
    /// `log Z` that was subtracted.
    pub log_z: f64,
    /// Its standard error: all log-densities are off by the same amount, of about this size.
    pub se_log_z: f64,
}

/// What is written beside the log-density of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScoreOptions {
    /// Its parts: `log p~` and `log q`.
    pub parts: bool,
    /// Where it stands among all rows: the strangest, with the lowest log-density, is the first. All scores are held for that.
    pub rank: bool,
    /// Its standard error: that of the particles which stand for missing cells.
    pub errors: bool,
    /// The log-density of each column given those before it: they sum to that of the row.
    pub explain: bool,
    /// The log-density of each column given all the others, by particles.
    pub explain_others: bool,
}

impl ScoreOptions {
    /// Names of the columns that are written: 64-bit numbers.
    fn columns(self, model: &[String]) -> Vec<String> {
        let mut names = vec!["log_density".to_owned()];
        names.extend(self.errors.then(|| "standard_error".to_owned()));
        if self.parts {
            names.extend(["log_p_tilde", "log_q"].map(String::from));
        }
        if self.explain {
            names.extend(model.iter().map(|name| format!("log_density_of_{name}")));
        }
        if self.explain_others {
            names.extend(model.iter().map(|name| format!("log_density_of_{name}_given_others")));
        }
        names.extend(self.rank.then(|| "rank".to_owned()));
        names
    }
}

/// Log-densities of some rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    /// Of every row; NaN where all of it is missing.
    pub log_density: Vec<f64>,
    /// Their standard errors: those of the particles which stand for missing cells.
    pub standard_error: Vec<f64>,
    /// The log-density of each column given those before it, row after row; empty where it was not asked.
    pub of_columns: Vec<f64>,
}

/// The log-density of every row in memory, in the units of the data: the same as that of a row of a file.
///
/// # Shapes
/// - `rows`: `[n, columns]`
pub fn score_rows(fitted: &Fitted, rows: &[f32], explain: bool) -> Result<Scores> {
    let (log_z, _) = fitted.log_z()?;
    let columns = fitted.card().columns.len();
    let number = rows.len() / columns;
    let mut all = Scores {
        log_density: Vec::with_capacity(number),
        standard_error: Vec::with_capacity(number),
        of_columns: Vec::with_capacity(if explain { rows.len() } else { 0 }),
    };
    for batch in rows.chunks(BATCH * columns) {
        fitted.density().watch().check()?;
        let (scores, errors) = fitted.density().score_with_errors(batch)?;
        let rows = scores.log_p_tilde.iter().zip(batch.chunks_exact(columns));
        all.log_density
            .extend(rows.map(|(log_p_tilde, row)| log_density(*log_p_tilde, log_z, row)));
        all.standard_error.extend(errors);
        if explain {
            all.of_columns.extend(explained_by_those_before(fitted.density(), batch)?);
        }
    }
    Ok(all)
}

/// The density of nothing is one, and says nothing.
fn log_density(log_p_tilde: f64, log_z: f64, row: &[f32]) -> f64 {
    if row.iter().all(|cell| cell.is_nan()) { f64::NAN } else { log_p_tilde - log_z }
}

/// Writes the log-density of every row, in the order of the file and in the units of its data, after the columns that are carried
/// along (`carry` of the options of reading). `create` is given the names of all columns, when there is a row.
pub fn score(
    fitted: &Fitted,
    source: &str,
    read: &ReadOptions,
    options: ScoreOptions,
    create: impl FnOnce(&[String]) -> Result<TableWriter>,
) -> Result<Scored> {
    let (log_z, se_log_z) = fitted.log_z()?;
    let (mut missing, mut holed, mut largest_error) = (0, 0, 0.0f64);
    let mut moments = Moments::default();
    // Nothing is said of columns that are given.
    let given = fitted.density().given();
    let (all, columns) = (fitted.card().columns.len(), &fitted.card().columns[given..]);
    let (mut create, mut out) = (Some(create), None);
    // Labels and lines of all rows, where they must be ranked first.
    let (mut held_labels, mut held) = (Vec::new(), Vec::new());
    let width = options.columns(columns).len() - usize::from(options.rank);
    let rows = fitted.stream(source, read, |table| {
        let (scores, errors) = fitted.density().score_with_errors(table.values())?;
        let (density, values) = (fitted.density(), table.values());
        let before = options.explain.then(|| explained_by_those_before(density, values));
        let others = options.explain_others.then(|| explained_by_the_others(density, values));
        let parts = [before.transpose()?, others.transpose()?];
        let mut lines = Vec::with_capacity(width * scores.log_q.len());
        let rows = scores.log_p_tilde.iter().zip(&scores.log_q).zip(&errors).enumerate();
        for (row, ((log_p_tilde, log_q), error)) in rows {
            let log_density = log_density(*log_p_tilde, log_z, table.row(row));
            match log_density.is_nan() {
                true => missing += 1,
                false => {
                    moments.add(log_density);
                    holed += usize::from(table.row(row).iter().any(|cell| cell.is_nan()));
                    largest_error = largest_error.max(*error);
                }
            }
            lines.push(log_density);
            if options.errors {
                lines.push(*error);
            }
            if options.parts {
                lines.extend([log_p_tilde, log_q]);
            }
            for part in parts.iter().flatten() {
                lines.extend_from_slice(&part[row * all..][given..all]);
            }
        }
        let carried = table.carried();
        if let Some(create) = create.take() {
            let columns = carried.columns.iter().cloned().chain(options.columns(columns));
            out = Some(create(&columns.collect::<Vec<_>>())?);
        }
        match (options.rank, &mut out) {
            (false, Some(out)) => out.labelled(&carried.cells, &lines, table.rows())?,
            _ => {
                held_labels.extend_from_slice(&carried.cells);
                held.extend(lines);
            }
        }
        Ok(())
    })?;
    if let Some(mut out) = out {
        if options.rank && rows > 0 {
            out.labelled(&held_labels, &with_ranks(&held, width), rows)?;
        }
        out.finish()?;
    }
    let (mean_log_density, se_test) = moments.mean_and_error();
    Ok(Scored { rows, missing, holed, largest_error, mean_log_density, se_test, log_z, se_log_z })
}

/// Lines with the place of their first number among all, from the lowest; equals in the order of the file, and none without one.
fn with_ranks(lines: &[f64], width: usize) -> Vec<f64> {
    let first = |line: &usize| lines[line * width];
    let mut order: Vec<usize> =
        (0..lines.len() / width).filter(|line| !first(line).is_nan()).collect();
    order.sort_by(|a, b| first(a).total_cmp(&first(b)));
    let mut ranks = vec![f64::NAN; lines.len() / width];
    (1..).zip(order).for_each(|(rank, line)| ranks[line] = f64::from(rank));
    let ranked = lines.chunks_exact(width).zip(ranks);
    ranked.flat_map(|(line, rank)| line.iter().copied().chain([rank])).collect()
}

/// Mean and spread of numbers that come one by one (Welford).
#[derive(Debug, Default)]
struct Moments {
    number: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.number += 1.0;
        let before = value - self.mean;
        self.mean += before / self.number;
        self.squares += before * (value - self.mean);
    }

    fn mean_and_error(&self) -> (f64, f64) {
        if self.number == 0.0 {
            return (f64::NAN, f64::NAN);
        }
        (self.mean, (self.squares / (self.number - 1.0) / self.number).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strangest_row_is_the_first_and_rows_without_a_density_have_no_rank() {
        let ranked = with_ranks(&[-1.0, 7.0, -9.0, 7.0, f64::NAN, 7.0, -1.0, 7.0], 2);
        assert_eq!(ranked[..6], [-1.0, 7.0, 2.0, -9.0, 7.0, 1.0]);
        assert!(ranked[8].is_nan());
        assert_eq!(ranked[9..], [-1.0, 7.0, 3.0]);
    }

    #[test]
    fn moments_are_those_of_all_numbers_at_once() {
        let values: Vec<f64> = (0..50).map(|i| f64::from(i * i % 17) - 1e3).collect();
        let mut moments = Moments::default();
        values.iter().for_each(|&value| moments.add(value));
        let (mean, error) = crate::fit::mean_and_error(&values);
        let (found, spread) = moments.mean_and_error();
        assert!((mean - found).abs() < 1e-9 && (error - spread).abs() < 1e-9);
    }
}
