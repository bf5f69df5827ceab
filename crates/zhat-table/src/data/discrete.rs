//! A discrete column: each of its values stands for a cell as wide as the column's step.

use serde::{Deserialize, Serialize};

/// How a column is discrete. Training adds uniform noise of the step to it, so a value stands for the cell from itself up to the
/// value plus the step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Discrete {
    /// Width of a cell.
    pub step: f64,
    /// Where the values are, if they are evenly spaced: without it cells begin wherever a value is, and draws cannot be brought
    /// back to values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Grid>,
}

/// Values that are an origin and multiples of the step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// One of the values, in the column or not: 0 where the values are multiples of the step.
    pub origin: f64,
    /// The lowest value of the column.
    pub lowest: f64,
    /// The highest value of the column.
    pub highest: f64,
}

/// How far a value may be from the grid, in steps, beyond the rounding of 32-bit floats.
const SLACK: f64 = 1e-3;
/// Where rounding is more of a step than this, there is no telling the cells apart.
const MOST_SLACK: f64 = 0.25;

impl Discrete {
    /// How a column with this step is discrete; missing cells are set aside.
    pub fn of(column: impl Iterator<Item = f32> + Clone, step: f64) -> Self {
        let values = || column.clone().map(f64::from).filter(|value| !value.is_nan());
        let (lowest, highest) = values()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let on_grid = |origin: f64| {
            values().all(|value| {
                let steps = (value - origin) / step;
                let slack = slack(value, step);
                slack < MOST_SLACK && (steps - steps.round()).abs() <= slack
            })
        };
        let origin = [0.0, lowest].into_iter().find(|&origin| lowest <= highest && on_grid(origin));
        let grid = origin.map(|origin| {
            let value = |value: f64| origin + ((value - origin) / step).round() * step;
            Grid { origin, lowest: value(lowest), highest: value(highest) }
        });
        Self { step, grid }
    }

    /// Whether cells can be made of it; if not, why.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !(self.step.is_finite() && self.step > 0.0) {
            return Err(format!("its step is {}, and has to be larger than zero", self.step));
        }
        let Some(Grid { origin, lowest, highest }) = self.grid else { return Ok(()) };
        match origin.is_finite() && lowest.is_finite() && highest.is_finite() && lowest <= highest {
            true => Ok(()),
            false => {
                Err(format!("its values are from {lowest} to {highest} with {origin} among them"))
            }
        }
    }

    /// Where the cell begins that a value stands for, or is in.
    pub fn start(&self, value: f64) -> f64 {
        match self.grid {
            Some(Grid { origin, .. }) => {
                let steps = (value - origin) / self.step + slack(value, self.step).min(MOST_SLACK);
                origin + steps.floor() * self.step
            }
            None => value,
        }
    }

    /// The value that a draw of the noisy column stands for. What falls a little short of the lowest value's cell, or beyond the
    /// highest's, as a smooth density has it, is counted to them.
    pub fn value_of(&self, draw: f64) -> f64 {
        match self.grid {
            Some(Grid { origin, lowest, highest }) => {
                let steps = (draw - origin) / self.step;
                (origin + steps.floor() * self.step).clamp(lowest, highest)
            }
            None => draw,
        }
    }

    /// The value nearest to a number such as a mean of values.
    pub fn nearest(&self, number: f64) -> f64 {
        self.value_of(number + if self.grid.is_some() { self.step / 2.0 } else { 0.0 })
    }
}

/// What rounding to a 32-bit float may be, in steps.
fn slack(value: f64, step: f64) -> f64 {
    SLACK + value.abs() * f64::from(f32::EPSILON) / step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f32], step: f64) -> Discrete {
        Discrete::of(values.iter().copied(), step)
    }

    #[test]
    fn a_grid_is_found_from_zero_or_from_the_lowest_value_or_not_at_all() {
        let grid = |values: &[f32], step| of(values, step).grid;
        let (origin, lowest, highest) = (0.0, 2.0, 9.0);
        assert_eq!(grid(&[3.0, 2.0, f32::NAN, 9.0], 1.0), Some(Grid { origin, lowest, highest }));
        let shifted = grid(&[0.25, 1.25, 7.25], 1.0).unwrap();
        assert_eq!((shifted.origin, shifted.highest), (0.25, 7.25));
        assert_eq!(grid(&[0.0, 0.5, 2.0], 1.0), None);
        assert_eq!(grid(&[], 1.0), None);
        // 32-bit floats near 1e6 are 0.06 apart: a step of a tenth cannot be told.
        assert_eq!(grid(&[1e6, 1e6 + 1.0], 0.1), None);
    }

    #[test]
    fn values_find_their_cell_in_spite_of_rounding_and_draws_their_value() {
        let volts: Vec<f32> = (0..3000).map(|i| (223.2 + 0.01 * f64::from(i)) as f32).collect();
        let column = of(&volts, 0.01);
        for (i, &value) in volts.iter().enumerate() {
            let start = column.start(f64::from(value));
            assert!((start - (223.2 + 0.01 * i as f64)).abs() < 1e-9, "{value}: {start}");
            assert_eq!(column.value_of(f64::from(value) + 0.005) as f32, value);
        }
        let dice = of(&[1.0, 2.0, 6.0], 1.0);
        assert_eq!([0.9, 1.0, 3.99, 6.5, 7.2].map(|x| dice.value_of(x)), [1.0, 1.0, 3.0, 6.0, 6.0]);
        assert_eq!([2.4, 2.6].map(|mean| dice.nearest(mean)), [2.0, 3.0]);
        let anywhere = Discrete { step: 1.0, grid: None };
        assert_eq!(
            (anywhere.start(2.3), anywhere.value_of(2.3), anywhere.nearest(2.3)),
            (2.3, 2.3, 2.3)
        );
    }
}
