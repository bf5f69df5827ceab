//! The rhythm of a column that comes round again: a map to a line on which every part of the cycle is equally frequent.
//!
//! Times of which none is at night are no smooth density on the line, and there are too many nights to learn each. `T` stretches every cycle
//! alike, by the shares of the rows in its parts, so that what is left to the networks is smooth; the density in the column's own
//! units is `p(T(x)) T'(x)`, which has the rhythm.

use serde::{Deserialize, Serialize};

/// Parts of a cycle at most.
const MOST_PARTS: usize = 96;
/// With fewer cycles from the first value to the last, what comes once is not told from what comes again.
const LEAST_CYCLES: f64 = 2.0;
/// Rows that every part has beside those that are in it (Krichevsky and Trofimov), so that none is impossible.
const BESIDE: f64 = 0.5;
/// No part is more rare than so many times an equal one: 32 bits must still tell its beginning from its end.
const RAREST: f64 = 1e-3;

/// A line that is wound up, with the shares of its parts; in standard units of the column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Rhythm(Parts);

/// What a rhythm is on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Parts {
    /// Length of a cycle.
    period: f64,
    /// Where one of them begins.
    origin: f64,
    /// Share of the values in each of so many equal parts of it.
    shares: Vec<f64>,
}

impl Rhythm {
    /// The rhythm of some values. Where they are on a grid, it is known how wide its cells are, and where one begins, so that no
    /// part ends within a cell.
    pub(crate) fn fit(
        values: impl Iterator<Item = f64>,
        period: f64,
        cell: Option<[f64; 2]>,
    ) -> Self {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let [low, high] =
            values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], &value| {
                [low.min(value), high.max(value)]
            });
        let origin = cell.map_or(0.0, |[begin, _]| begin);
        // Rice's rule: a histogram's error and its noise are of one size.
        let by_rows = 2.0 * (values.len() as f64).cbrt();
        let of_cells = cell.map(|[_, width]| period / width).filter(|cells| {
            cells.round() <= MOST_PARTS as f64 && (cells - cells.round()).abs() < 1e-6 * cells
        });
        let parts = match of_cells {
            _ if high - low < LEAST_CYCLES * period => 1,
            Some(cells) => cells.round() as usize,
            None => (by_rows as usize).clamp(1, MOST_PARTS),
        };
        let mut rhythm = Parts { period, origin, shares: vec![BESIDE; parts] };
        for value in values {
            let (_, phase) = rhythm.turns(value);
            let part = ((phase * parts as f64) as usize).min(parts - 1);
            rhythm.shares[part] += 1.0;
        }
        let rows: f64 = rhythm.shares.iter().sum();
        let least = RAREST * rows / parts as f64;
        rhythm.shares.iter_mut().for_each(|share| *share = share.max(least));
        let sum: f64 = rhythm.shares.iter().sum();
        rhythm.shares.iter_mut().for_each(|share| *share /= sum);
        Self(rhythm)
    }

    /// Length of a cycle, which is the same on both sides of the map.
    pub fn period(&self) -> f64 {
        self.0.period
    }

    /// `T(x)`.
    pub fn forward(&self, x: f64) -> f64 {
        let Parts { period, origin, shares } = &self.0;
        let (whole, phase) = self.0.turns(x);
        let at = phase * shares.len() as f64;
        let part = (at as usize).min(shares.len() - 1);
        let before: f64 = shares[..part].iter().sum();
        origin + period * (whole + before + shares[part] * (at - part as f64))
    }

    /// The `x` at which `T(x)` is this.
    pub fn inverse(&self, y: f64) -> f64 {
        let Parts { period, origin, shares } = &self.0;
        let (whole, mut left) = self.0.turns(y);
        let mut part = 0;
        while part + 1 < shares.len() && left >= shares[part] {
            left -= shares[part];
            part += 1;
        }
        let within = (left / shares[part]).min(1.0);
        origin + period * (whole + (part as f64 + within) / shares.len() as f64)
    }

    /// `log T'(x)`.
    pub fn log_derivative(&self, x: f64) -> f64 {
        let shares = &self.0.shares;
        let (_, phase) = self.0.turns(x);
        let part = ((phase * shares.len() as f64) as usize).min(shares.len() - 1);
        (shares[part] * shares.len() as f64).ln()
    }
}

impl Parts {
    /// Whole cycles from the origin to a value, and the share of one that is left.
    fn turns(&self, x: f64) -> (f64, f64) {
        let turns = (x - self.origin) / self.period;
        (turns.floor(), turns - turns.floor())
    }
}

impl TryFrom<Parts> for Rhythm {
    type Error = String;

    fn try_from(parts: Parts) -> Result<Self, String> {
        let is_length = |x: &f64| x.is_finite() && *x > 0.0;
        let sum: f64 = parts.shares.iter().sum();
        let is_one = is_length(&parts.period)
            && parts.origin.is_finite()
            && parts.shares.iter().all(is_length)
            && (sum - 1.0).abs() < 1e-9;
        match is_one {
            true => Ok(Self(parts)),
            false => {
                Err("a rhythm needs a period above 0, and shares above 0 that sum to 1".into())
            }
        }
    }
}

impl From<Rhythm> for Parts {
    fn from(rhythm: Rhythm) -> Self {
        rhythm.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty days, of which only the middle half is ever used, its second half twice as often.
    fn days() -> impl Iterator<Item = f64> {
        (0..6000).map(|at| {
            let within = (at as f64 * 0.618_034).fract();
            let hour = if at % 3 == 0 { 0.25 + 0.25 * within } else { 0.5 + 0.25 * within };
            f64::from(at % 20) + hour - 7.0
        })
    }

    #[test]
    fn every_part_of_a_cycle_is_equally_frequent_on_the_other_side_and_comes_back() {
        let rhythm = Rhythm::fit(days(), 1.0, None);
        let mut counts = [0usize; 8];
        for x in days() {
            let y = rhythm.forward(x);
            assert!((rhythm.inverse(y) - x).abs() < 1e-12);
            counts[(y.rem_euclid(1.0) * 8.0) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (700..800).contains(count)), "{counts:?}");
        // A cycle is as long as before, and the map rises.
        assert!((rhythm.forward(3.4) + 1.0 - rhythm.forward(4.4)).abs() < 1e-12);
        let mut last = f64::NEG_INFINITY;
        for step in 0..4000 {
            let y = rhythm.forward(step as f64 * 1e-3);
            assert!(y > last);
            last = y;
        }
    }

    #[test]
    fn the_derivative_is_that_of_the_map_and_a_density_keeps_its_mass() {
        let rhythm = Rhythm::fit(days(), 1.0, None);
        let (mut mass, step) = (0.0, 1e-4);
        for at in 0..10_000 {
            let x = (at as f64 + 0.5) * step;
            let slope = rhythm.log_derivative(x).exp();
            mass += slope * step;
            if at % 97 == 0 {
                let around = (rhythm.forward(x + 1e-7) - rhythm.forward(x - 1e-7)) / 2e-7;
                assert!((around - slope).abs() < 1e-5 * (1.0 + slope), "{x}: {around} {slope}");
            }
        }
        // A density that is 1 over the cycle on the other side.
        assert!((mass - 1.0).abs() < 1e-3, "{mass}");
        assert!(rhythm.log_derivative(0.1) < -5.0 && rhythm.log_derivative(0.6) > 0.9);
    }

    #[test]
    fn cells_are_not_cut_and_what_comes_once_has_no_rhythm() {
        // Days of the week, as cells around whole numbers.
        let weekdays = || (0..700).filter(|day| day % 7 < 5).map(f64::from);
        let rhythm = Rhythm::fit(weekdays(), 7.0, Some([-0.5, 1.0]));
        let shares = &rhythm.0.shares;
        assert_eq!(shares.len(), 7);
        assert!((shares[0] - shares[4]).abs() < 1e-12 && shares[6] < 0.01 * shares[0]);
        let once = Rhythm::fit(weekdays().take(8), 7.0, None);
        assert_eq!((once.forward(3.3), once.log_derivative(3.3)), (3.3, 0.0));
    }

    #[test]
    fn it_survives_json_and_a_broken_one_is_refused() {
        let rhythm = Rhythm::fit(days(), 1.0, None);
        let text = serde_json::to_string(&rhythm).unwrap();
        assert_eq!(serde_json::from_str::<Rhythm>(&text).unwrap(), rhythm);
        for wrong in [
            r#"{"period":0.0,"origin":0.0,"shares":[1.0]}"#,
            r#"{"period":1.0,"origin":0.0,"shares":[1.5,-0.5]}"#,
            r#"{"period":1.0,"origin":0.0,"shares":[]}"#,
        ] {
            assert!(serde_json::from_str::<Rhythm>(wrong).is_err(), "{wrong}");
        }
    }
}
