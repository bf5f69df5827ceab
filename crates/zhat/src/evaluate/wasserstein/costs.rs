//! Squared distances from one point to all points of the other set, computed whenever they are needed.
//!
//! A matrix of 10,000 by 10,000 costs is 400 MB. Computing a row of it anew takes as long as reading it from memory.

use rayon::prelude::*;

use crate::simd::{dispatch, multiply_add};

/// Points in a panel: four vector registers of partial sums.
pub(super) const WIDTH: usize = 32;
/// Values compared at a time.
const ABREAST: usize = 8;

/// Features summed in one go. Rounding grows with the longest sum, so there are two levels of them: a cost of `d` features
/// is within `(19 + d / 16) 2^-24` of its value, relatively.
const RUN: usize = 16;

/// Both sets of points: rows are the points of `x`, columns those of `y`.
#[derive(Debug)]
pub(super) struct Costs {
    pub dimension: usize,
    pub number: usize,
    rows: Vec<f32>,
    /// `[panel][feature][point]`.
    panels: Vec<f32>,
}

/// The costs of one row, and the smallest `cost + price` of every panel.
#[derive(Debug, Default, Clone)]
pub(super) struct Scan {
    pub costs: Vec<f32>,
    pub minima: Vec<f64>,
}

impl Costs {
    /// All points are multiplied by `scale`, a power of two, so that no square is too large or too small for an `f32`.
    pub fn new(x: &[f32], y: &[f32], dimension: usize, scale: f32) -> Self {
        let number = x.len() / dimension;
        let mut panels = vec![0.0; number.div_ceil(WIDTH) * WIDTH * dimension];
        for (panel, points) in panels.chunks_mut(WIDTH * dimension).zip(y.chunks(WIDTH * dimension))
        {
            for (at, point) in points.chunks(dimension).enumerate() {
                for (feature, value) in point.iter().enumerate() {
                    panel[feature * WIDTH + at] = value * scale;
                }
            }
        }
        Self { dimension, number, rows: x.iter().map(|value| value * scale).collect(), panels }
    }

    /// Prices of the columns: 0, and infinity where a panel has no point, so that nobody wants it.
    pub fn no_prices(&self) -> Vec<f64> {
        let mut prices = vec![0.0; self.number];
        prices.resize(self.number.next_multiple_of(WIDTH), f64::INFINITY);
        prices
    }

    /// Computes a row.
    pub fn scan(&self, row: usize, prices: &[f64], scan: &mut Scan) {
        scan.costs.resize(prices.len(), 0.0);
        scan.minima.resize(prices.len() / WIDTH, 0.0);
        scan_row(self.row(row), &self.panels, prices, &mut scan.costs, &mut scan.minima);
    }

    /// What the cheapest assignment costs at least, by duality: the sum over rows of their smallest `cost + price`, less
    /// the prices. Costs are in 64 bits.
    pub fn lower_bound(&self, prices: &[f64]) -> f64 {
        let mut lowest = vec![0.0; self.number];
        lowest.par_iter_mut().enumerate().for_each(|(row, lowest)| {
            lowest_of_row(self.row(row), &self.panels, prices, lowest);
        });
        // Row by row, as prices may be large and their sum no more exact than its last digit.
        lowest.iter().zip(prices).map(|(lowest, price)| lowest - price).sum()
    }

    /// The cost of a pair in 64 bits.
    pub fn exact(&self, row: usize, column: usize) -> f64 {
        let panel = &self.panels[column / WIDTH * WIDTH * self.dimension..];
        let features = panel.iter().skip(column % WIDTH).step_by(WIDTH);
        self.row(row)
            .iter()
            .zip(features)
            .map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2))
            .sum()
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.rows[row * self.dimension..][..self.dimension]
    }
}

dispatch! {
    /// Costs of a row to the points of all panels.
    pub fn scan_row<const FMA: bool>(
        point: &[f32], panels: &[f32], prices: &[f64], costs: &mut [f32], minima: &mut [f64],
    ) {
        let panels = panels.chunks_exact(WIDTH * point.len()).zip(prices.as_chunks::<WIDTH>().0);
        let outputs = costs.chunks_exact_mut(WIDTH).zip(minima);
        for ((panel, prices), (costs, minimum)) in panels.zip(outputs) {
            let mut total = [0.0; WIDTH];
            for (point, panel) in point.chunks(RUN).zip(panel.chunks(RUN * WIDTH)) {
                let mut sum = [0.0; WIDTH];
                for (&value, others) in point.iter().zip(panel.chunks_exact(WIDTH)) {
                    for (sum, other) in sum.iter_mut().zip(others) {
                        let difference = value - other;
                        *sum = multiply_add::<FMA>(difference, difference, *sum);
                    }
                }
                total.iter_mut().zip(sum).for_each(|(total, sum)| *total += sum);
            }
            costs.copy_from_slice(&total);
            *minimum = smallest(&total, prices);
        }
    }
}

dispatch! {
    /// The smallest `cost + price` of a row.
    pub fn lowest_of_row<const _FMA: bool>(
        point: &[f32], panels: &[f32], prices: &[f64], lowest: &mut f64,
    ) {
        *lowest = f64::INFINITY;
        for (panel, prices) in
            panels.chunks_exact(WIDTH * point.len()).zip(prices.as_chunks::<WIDTH>().0)
        {
            let mut total = [0.0; WIDTH];
            for (&value, others) in point.iter().zip(panel.chunks_exact(WIDTH)) {
                for (total, &other) in total.iter_mut().zip(others) {
                    let difference = f64::from(value) - f64::from(other);
                    *total += difference * difference;
                }
            }
            *lowest = lowest.min(smallest(&total, prices));
        }
    }
}

/// The smallest `cost + price` of a panel.
#[inline(always)]
fn smallest<T: Copy + Into<f64>>(costs: &[T; WIDTH], prices: &[f64; WIDTH]) -> f64 {
    let mut least = [f64::INFINITY; ABREAST];
    for start in (0..WIDTH).step_by(ABREAST) {
        for at in 0..ABREAST {
            let paid = costs[start + at].into() + prices[start + at];
            least[at] = if paid < least[at] { paid } else { least[at] };
        }
    }
    for half in [4, 2, 1] {
        for at in 0..half {
            let other = least[at + half];
            least[at] = if other < least[at] { other } else { least[at] };
        }
    }
    least[0]
}
