//! The log-density of every row of a file, streamed: files may be larger than memory.

use serde::Serialize;

use super::Fitted;
use crate::data::{ReadOptions, TableWriter};
use crate::error::Result;

/// What was scored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scored {
    /// Rows that were read and written.
    pub rows: usize,
    /// Those among them with a missing cell, which have no log-density.
    pub missing: usize,
    /// Mean log-density of the others.
    pub mean_log_density: f64,
    /// Standard error of the mean over the rows.
    pub se_test: f64,
    /// `log Z` that was subtracted.
    pub log_z: f64,
    /// Its standard error: all log-densities are off by the same amount, of about this size.
    pub se_log_z: f64,
}

/// Names of the columns that are written: 64-bit numbers.
pub fn score_columns(parts: bool) -> Vec<String> {
    let names = ["log_density", "log_p_tilde", "log_q"].map(String::from);
    names.into_iter().take(if parts { 3 } else { 1 }).collect()
}

/// Writes the log-density of every row, in the order of the file and in the units of its data; with its parts, `log p~` and
/// `log q`, if they are wanted.
pub fn score(
    fitted: &Fitted,
    source: &str,
    read: &ReadOptions,
    parts: bool,
    out: &mut TableWriter,
) -> Result<Scored> {
    let (log_z, se_log_z) = fitted.log_z()?;
    let (mut missing, mut moments) = (0, Moments::default());
    let rows = fitted.stream(source, read, |table| {
        let scores = fitted.density().score(table.values())?;
        let mut lines = Vec::with_capacity(3 * scores.log_q.len());
        for (log_p_tilde, log_q) in scores.log_p_tilde.iter().zip(&scores.log_q) {
            let log_density = log_p_tilde - log_z;
            match log_density.is_nan() {
                true => missing += 1,
                false => moments.add(log_density),
            }
            lines.push(log_density);
            if parts {
                lines.extend([log_p_tilde, log_q]);
            }
        }
        Ok(out.rows(&lines)?)
    })?;
    let (mean_log_density, se_test) = moments.mean_and_error();
    Ok(Scored { rows, missing, mean_log_density, se_test, log_z, se_log_z })
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
    fn moments_are_those_of_all_numbers_at_once() {
        let values: Vec<f64> = (0..50).map(|i| f64::from(i * i % 17) - 1e3).collect();
        let mut moments = Moments::default();
        values.iter().for_each(|&value| moments.add(value));
        let (mean, error) = crate::fit::mean_and_error(&values);
        let (found, spread) = moments.mean_and_error();
        assert!((mean - found).abs() < 1e-9 && (error - spread).abs() < 1e-9);
    }
}
