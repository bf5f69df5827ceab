//! Draws from the density, all of a row or some of it given the rest.

use rayon::prelude::*;
use serde::Serialize;
use zhat::rng::Streams;

use crate::data::{ColumnKind, Shape, Table};
use crate::density::{Density, Draws, FAR_OUT, check_given, row_with};
use crate::error::{Result, TableError};
use crate::memory;

/// Particles for each draw, where nothing else is said: few of them are then taken twice.
const PARTICLES_PER_DRAW: usize = 10;
/// And at least so many, for the weights to settle.
const LEAST_PARTICLES: usize = 20_000;
/// And so many for each of many rows that are given.
const LEAST_FOR_A_ROW: usize = 500;
/// Cells that are far out which are told of, at most.
const MOST_WARNINGS: usize = 5;
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

/// Draws rows given each of some rows, as many for each as the options say: what is not missing in them is given, and what is missing is
/// drawn. The draws of a row stand together, in the order of the rows.
///
/// # Shapes
/// - `rows`: `[n, columns]`, in the units of the data
pub fn sample_for(density: &dyn Density, rows: &[f32], options: &SampleOptions) -> Result<Sample> {
    let (columns, number) = (density.columns().len(), options.number);
    if number == 0 || rows.is_empty() {
        return Err(TableError::setting("number of rows", 0, "at least 1"));
    }
    if !options.given.is_empty() {
        let expected = "empty where rows are given: their cells are what is given";
        return Err(TableError::setting("given", "a list of cells", expected));
    }
    let total = rows.len() / columns * number;
    memory::check("number of rows", total, total as f64 * (16.0 * columns as f64 + 8.0))?;
    let streams = Streams::new(options.seed).derive("sample-for", 0);
    let draw = |(at, row): (usize, &[f32])| -> Result<(Vec<f32>, [f64; 2], usize)> {
        let given = row.iter().take_while(|cell| !cell.is_nan()).count();
        if given == columns {
            return Ok((row.repeat(number), [number as f64; 2], 0));
        }
        // Given a beginning of it, the rest of a row is drawn exactly.
        let is_exact = density.is_normalised() && row[given..].iter().all(|cell| cell.is_nan());
        let many = PARTICLES_PER_DRAW.saturating_mul(number).max(LEAST_FOR_A_ROW);
        let particles = options.particles.unwrap_or(if is_exact { number } else { many });
        let streams = streams.derive("row", at as u64);
        let cloud = density.draw(row, particles, &streams)?;
        let Draws { rows, effective_sample_size } =
            cloud.sample(number, &mut streams.stream("draws", 0, 0));
        Ok((rows, [effective_sample_size, cloud.effective_particles], particles))
    };
    let found: Vec<_> = density.pool().install(|| {
        let rows = rows.par_chunks_exact(columns).enumerate();
        rows.map(draw).collect::<Result<Vec<_>>>()
    })?;
    let warnings = rows.chunks_exact(columns).map(|row| far_out(density, row));
    Ok(Sample {
        table: Table::new(
            density.columns().to_vec(),
            found.iter().flat_map(|(rows, ..)| rows).copied().collect(),
        ),
        rows: total,
        effective_sample_size: found.iter().map(|(_, [draws, _], _)| draws).sum(),
        particles: found.iter().map(|(.., particles)| particles).sum(),
        effective_particles: found.iter().map(|(_, [_, particles], _)| particles).sum(),
        warnings: warnings.flatten().take(MOST_WARNINGS).collect(),
    })
}

/// One row for each of so many, drawn from the density: where it is given columns, those of the rows, taken again from the first on
/// where there are too few.
pub(crate) fn draws_like(
    density: &dyn Density,
    rows: &[f32],
    number: usize,
    streams: &Streams,
) -> Result<Draws> {
    let (columns, given) = (density.columns().len(), density.given());
    if given == 0 {
        let cloud = density.draw(&vec![f32::NAN; columns], number, streams)?;
        return Ok(cloud.sample(number, &mut streams.stream("draws", 0, 0)));
    }
    let mut wanted: Vec<f32> =
        rows.chunks_exact(columns).cycle().take(number).flatten().copied().collect();
    wanted.chunks_exact_mut(columns).for_each(|row| row[given..].fill(f32::NAN));
    let seed = streams.stream("seed", 0, 0).index(usize::MAX) as u64;
    let options = SampleOptions { number: 1, given: Vec::new(), particles: None, seed };
    let Sample { table, effective_sample_size, .. } = sample_for(density, &wanted, &options)?;
    Ok(Draws { rows: table.into_values(), effective_sample_size })
}

/// Draws rows.
pub fn sample(density: &dyn Density, options: &SampleOptions) -> Result<Sample> {
    let number = options.number;
    if number == 0 {
        return Err(TableError::setting("number of rows", number, "at least 1"));
    }
    let given = row_with(density, &options.given)?;
    check_given(density, &given)?;
    let warnings = far_out(density, &given);
    if given.iter().all(|cell| !cell.is_nan()) {
        let expected = "for some columns only: there is nothing left to draw";
        return Err(TableError::setting("given", "for every column", expected));
    }
    // The rows, as they are drawn and as they are written.
    let needed = number as f64 * (16.0 * density.columns().len() as f64 + 8.0);
    memory::check("number of rows", number, needed)?;
    let beginning = given.iter().take_while(|cell| !cell.is_nan()).count();
    let independent = density.is_normalised() && beginning == options.given.len();
    let particles = options.particles.unwrap_or(match independent {
        true => number,
        false => PARTICLES_PER_DRAW.saturating_mul(number).clamp(LEAST_PARTICLES, MOST_PARTICLES),
    });
    let streams = Streams::new(options.seed).derive("sample", 0);
    let cloud = density.draw(&given, particles, &streams)?;
    let Draws { mut rows, effective_sample_size } =
        cloud.sample(number, &mut streams.stream("draws", 0, 0));
    if !independent && options.given.is_empty() {
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
