//! Curves of many repetitions reduced to their median with its error, quartiles and worst case at log-spaced iterations.

use serde::{Deserialize, Serialize};

use crate::{error::ReportError, number::Words};

/// How many iterations a curve keeps per factor of ten.
const PER_DECADE: f64 = 20.0;

/// Median, quartiles and largest of one set of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantiles {
    /// The middle value.
    pub median: f64,
    /// Where the median of what the values were drawn from is, with a confidence of 95 %: see [`Quantiles::of`].
    pub median_interval: (f64, f64),
    /// The 25th percentile.
    pub q25: f64,
    /// The 75th percentile.
    pub q75: f64,
    /// The largest value.
    pub worst: f64,
}

/// Quantiles over repetitions, at each of some iterations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// The iterations, counted from 1.
    pub iterations: Vec<usize>,
    /// The median at each iteration.
    #[serde(with = "Words")]
    pub median: Vec<f64>,
    /// The 25th percentile at each iteration.
    #[serde(with = "Words")]
    pub q25: Vec<f64>,
    /// The 75th percentile at each iteration.
    #[serde(with = "Words")]
    pub q75: Vec<f64>,
    /// The largest value at each iteration.
    #[serde(with = "Words")]
    pub worst: Vec<f64>,
    /// Lower end of the median's 95 % interval over repetitions, at each iteration.
    #[serde(with = "Words")]
    pub median_low: Vec<f64>,
    /// Its upper end.
    #[serde(with = "Words")]
    pub median_high: Vec<f64>,
}

/// About 20 iterations per factor of ten, increasing and each once, from 1 to `last`, with 100 among them if it is reached.
///
/// Empty when `last` is 0.
pub fn log_spaced_iterations(last: usize) -> Vec<usize> {
    let mut iterations: Vec<usize> = (0..)
        .map(|step| 10f64.powf(f64::from(step) / PER_DECADE).round() as usize)
        .take_while(|&iteration| iteration < last)
        .collect();
    if last > 0 {
        iterations.push(last);
    }
    iterations.dedup();
    iterations
}

/// The quantiles over `runs` at each of `iterations`; `runs[r][i - 1]` is the value of run `r` at iteration `i`.
pub fn summarise(runs: &[Vec<f64>], iterations: &[usize]) -> Result<Curves, ReportError> {
    let mut curves = Curves { iterations: iterations.to_vec(), ..Curves::default() };
    for &iteration in iterations {
        let value = |(run, values): (usize, &Vec<f64>)| {
            let found = iteration.checked_sub(1).and_then(|index| values.get(index)).copied();
            found.ok_or_else(|| {
                ReportError::Unusable(format!(
                    "iteration {iteration} was asked for, but run {run} has iterations 1 to {}; summarise up to the shortest run",
                    values.len()
                ))
            })
        };
        let values = runs.iter().enumerate().map(value).collect::<Result<_, _>>()?;
        curves.push(Quantiles::of(values)?);
    }
    Ok(curves)
}

impl Quantiles {
    /// The quantiles of `values`, between order statistics by linear interpolation (numpy's default).
    ///
    /// A NaN comes from a run that diverged, so it counts as positive infinity: it is the worst there is, and the median is
    /// still that of all runs.
    ///
    /// The interval lies between the `k`-th smallest and the `k`-th largest value. The true median is below the first only
    /// if fewer than `k` of `n` independent values are below it, each with probability 1/2, so that `k` is the largest number
    /// with `P(Bin(n, 1/2) < k) <= 2.5 %`: exact for any distribution. Fewer than six values cannot say so much with any
    /// `k`, and their interval is everything.
    pub fn of(mut values: Vec<f64>) -> Result<Self, ReportError> {
        for value in &mut values {
            if value.is_nan() {
                *value = f64::INFINITY;
            }
        }
        values.sort_by(f64::total_cmp);
        let &worst = values.last().ok_or_else(|| {
            let reason = "there are no finished runs to summarise; let at least one run finish";
            ReportError::Unusable(reason.into())
        })?;
        Ok(Self {
            median: interpolated(&values, 0.5),
            median_interval: match interval_rank(values.len()) {
                0 => (f64::NEG_INFINITY, f64::INFINITY),
                k => (values[k - 1], values[values.len() - k]),
            },
            q25: interpolated(&values, 0.25),
            q75: interpolated(&values, 0.75),
            worst,
        })
    }
}

impl Curves {
    /// The iteration and quantiles at the end of the curves, if there are any.
    pub fn last(&self) -> Option<(usize, Quantiles)> {
        self.rows().last()
    }

    /// The curves row by row.
    pub fn rows(&self) -> impl Iterator<Item = (usize, Quantiles)> + '_ {
        self.iterations.iter().enumerate().map_while(|(row, &iteration)| {
            let quantiles = Quantiles {
                median: *self.median.get(row)?,
                median_interval: (*self.median_low.get(row)?, *self.median_high.get(row)?),
                q25: *self.q25.get(row)?,
                q75: *self.q75.get(row)?,
                worst: *self.worst.get(row)?,
            };
            Some((iteration, quantiles))
        })
    }

    fn push(&mut self, quantiles: Quantiles) {
        self.median.push(quantiles.median);
        self.q25.push(quantiles.q25);
        self.q75.push(quantiles.q75);
        self.worst.push(quantiles.worst);
        self.median_low.push(quantiles.median_interval.0);
        self.median_high.push(quantiles.median_interval.1);
    }
}

/// The largest `k` with `P(Bin(number, 1/2) < k) <= 2.5 %`.
fn interval_rank(number: usize) -> usize {
    // In logs: 2^-number is no longer a number from 1,075 on.
    let mut log_probability = -(number as f64) * std::f64::consts::LN_2;
    let mut below = log_probability.exp();
    let mut rank = 0;
    while below <= 0.025 {
        rank += 1;
        log_probability += ((number + 1 - rank) as f64 / rank as f64).ln();
        below += log_probability.exp();
    }
    rank
}

/// The value at `fraction` of the way through `sorted`, which is not empty.
fn interpolated(sorted: &[f64], fraction: f64) -> f64 {
    let position = fraction * (sorted.len() - 1) as f64;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    let part = position.fract();
    // Not `below + part * (above - below)` throughout: infinity minus infinity is not a number.
    if part == 0.0 || below == above { below } else { below + part * (above - below) }
}
