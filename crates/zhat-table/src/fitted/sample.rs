//! Draws from the density, all of a row or some of it given the rest.

use serde::Serialize;
use zhat::rng::Streams;

use crate::data::{ColumnKind, Shape, Table};
use crate::density::{Density, Draws, FAR_OUT, row_with};
use crate::error::{Result, TableError};
use crate::memory;

/// Particles for each draw, where nothing else is said: few of them are then taken twice.
const PARTICLES_PER_DRAW: usize = 10;
/// And at least so many, for the weights to settle.
const LEAST_PARTICLES: usize = 20_000;
/// And at most so many.
const MOST_PARTICLES: usize = 5_000_000;

/// How rows are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleOptions {
    /// Number of rows.
    pub number: usize,
    /// Columns that are given, with their values in the units of the data.
    pub given: Vec<(String, f64)>,
    /// Particles behind the draws; none for ten a row, or one where draws are independent as they are.
    pub particles: Option<usize>,
    /// Seed of the draws.
    pub seed: u64,
}

/// Rows from the density, and how far they can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// The rows, in the units of the data.
    #[serde(skip)]
    pub table: Table,
    /// How many there are.
    pub rows: usize,
    /// As many independent draws tell as much, in the worst column.
    pub effective_sample_size: f64,
    /// Particles behind the draws.
    pub particles: usize,
    /// Their effective sample size, in the worst stage.
    pub effective_particles: f64,
    /// What was given, where it is further out than the model has seen anything.
    pub warnings: Vec<String>,
}

impl Sample {
    /// The rows as the user writes them.
    pub fn texts(&self, kinds: &[&ColumnKind]) -> Vec<String> {
        let cells = self.table.values().iter().enumerate();
        cells.map(|(at, &value)| kinds[at % kinds.len()].text(f64::from(value))).collect()
    }

    /// As many independent rows, in words, where they are fewer than the rows.
    pub fn warning(&self) -> Option<String> {
        worth_fewer(self.rows, self.effective_sample_size)
    }
}

/// Says what draws are worth, where that is fewer than there are by more than rounding to the same number explains.
pub(crate) fn worth_fewer(rows: usize, effective_sample_size: f64) -> Option<String> {
    let worth = effective_sample_size.round();
    (worth < 0.99 * rows as f64)
        .then(|| format!("these {rows} draws are worth {worth} independent rows: some are copies"))
}

/// Draws rows.
pub fn sample(density: &dyn Density, options: &SampleOptions) -> Result<Sample> {
    let number = options.number;
    if number == 0 {
        return Err(TableError::setting("number of rows", number, "at least 1"));
    }
    let given = row_with(density, &options.given)?;
    let warnings = far_out(density, &given);
    if given.iter().all(|cell| !cell.is_nan()) {
        let expected = "for some columns only: there is nothing left to draw";
        return Err(TableError::setting("given", "for every column", expected));
    }
    // The rows, as they are drawn and as they are written.
    let needed = number as f64 * (16.0 * density.columns().len() as f64 + 8.0);
    memory::check("number of rows", number, needed)?;
    let independent = density.is_normalised() && options.given.is_empty();
    let particles = options.particles.unwrap_or(match independent {
        true => number,
        false => PARTICLES_PER_DRAW.saturating_mul(number).clamp(LEAST_PARTICLES, MOST_PARTICLES),
    });
    let streams = Streams::new(options.seed).derive("sample", 0);
    let cloud = density.draw(&given, particles, &streams)?;
    let Draws { mut rows, effective_sample_size } =
        cloud.sample(number, &mut streams.stream("draws", 0, 0));
    if options.given.is_empty() && !independent {
        rows = density.refresh(rows, &streams)?;
    }
    Ok(Sample {
        table: Table::new(density.columns().to_vec(), rows),
        rows: number,
        effective_sample_size,
        particles,
        effective_particles: cloud.effective_particles,
        warnings,
    })
}

/// Says which of the given cells are so far out that the rest is a guess: in standard deviations, and as a normal score too
/// where the model has those.
fn far_out(density: &dyn Density, given: &[f32]) -> Vec<String> {
    let standardiser = density.standardiser();
    let (standard, features) = (standardiser.standard(given), standardiser.features(given));
    let is_far = |column: usize| {
        standard[column].abs().min(features[column].abs()) > FAR_OUT
            && !standardiser.shapes.get(column).is_some_and(Shape::is_classes)
    };
    let tell = |column: usize| {
        format!(
            "{}={} is {:.0} standard deviations from the mean of its column ({:.4}): the model knows nothing there, and the draws \
             are a guess",
            density.columns()[column],
            given[column],
            standard[column].abs(),
            standardiser.mean[column]
        )
    };
    (0..given.len()).filter(|&column| is_far(column)).map(tell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_that_are_worth_fewer_rows_say_how_many() {
        assert_eq!(worth_fewer(1000, 995.0), None);
        assert!(worth_fewer(1000, 1.2).unwrap().contains("1000 draws are worth 1 independent row"));
    }
}
