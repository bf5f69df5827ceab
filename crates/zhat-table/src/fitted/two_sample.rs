//! A classifier two-sample test: can a machine tell rows from draws of the model, and where do they differ?
//!
//! Where the model is right nobody can, and whoever guesses is right half of the time (Lopez-Paz and Oquab, 2017). What the classifier
//! manages beyond that is an effect size that does not grow with the number of rows, and it cannot be fooled by a wrong `Z`.

use serde::{Deserialize, Serialize};
use zhat::rng::{Stream, Streams};

use super::discriminant::{Discriminant, Judged};
use super::sample::draws_like;
use crate::data::Shape;
use crate::density::{Density, Draws};
use crate::error::Result;
use crate::fit::number_or_null;

/// Rows that are told from as many draws, at most.
const MOST_ROWS: usize = 2_000;
/// With fewer rows than this nothing is learnt.
const FEWEST_ROWS: usize = 30;
/// Particles for each draw where draws are made by weights, and at least.
const PARTICLES_PER_DRAW: usize = 10;
const LEAST_PARTICLES: usize = 20_000;
/// Products of two columns among the classifier's inputs, at most: of pairs taken at random where there are more.
const MOST_PRODUCTS: usize = 150;
/// Waves of each length among its inputs.
const WAVES: usize = 32;
/// How many waves of each kind there are to the distance between two usual rows.
const WAVE_NUMBERS: [f64; 2] = [1.0, 3.0];
/// How far out an input may be, in standard deviations: further out is further out.
const FURTHEST: f64 = 6.0;
/// Indicators of a column's classes, at most.
const MOST_CLASSES: usize = 12;

/// What a classifier makes of rows and draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TwoSample {
    /// Rows, and as many draws.
    pub rows: usize,
    /// As many independent draws tell as much.
    #[serde(deserialize_with = "number_or_null")]
    pub effective_draws: f64,
    /// How often the classifier is right about what it was not trained on: a half where nothing can be told.
    pub accuracy: f64,
    /// How often it would be right as often if rows and draws were mixed up, by doing so.
    pub p_value: f64,
    /// Where rows are more common than draws, in words; empty where that cannot be said.
    pub where_rows: String,
    /// Where draws are more common than rows.
    pub where_draws: String,
    /// The classifier's opinion of each row, and then of each draw: the higher the more like a row.
    #[serde(skip)]
    pub opinions: Vec<f64>,
}

/// Tells rows from as many draws of the density; none where there are too few rows to learn from.
///
/// A draw is left without the cells that some row is missing, so that holes tell nothing.
///
/// # Shapes
/// - `rows`: `[n, columns]`, row-major, in the units of the data
pub fn two_sample(
    density: &dyn Density,
    rows: &[f32],
    streams: &Streams,
) -> Result<Option<TwoSample>> {
    let columns = density.columns().len();
    let number = (rows.len() / columns).min(MOST_ROWS);
    if number < FEWEST_ROWS {
        return Ok(None);
    }
    let all = rows.len() / columns;
    let mut both: Vec<f32> = (0..number)
        .flat_map(|at| &rows[at * all / number * columns..][..columns])
        .copied()
        .collect();
    let drawn = match density.given() {
        0 => draws(density, number, streams)?,
        // Given what the rows have: they differ in the rest alone.
        _ => draws_like(density, &both, number, streams)?,
    };
    let Draws { rows: mut draws, effective_sample_size } = drawn;
    for (draw, row) in draws.iter_mut().zip(&both) {
        if row.is_nan() {
            *draw = f32::NAN;
        }
    }
    both.extend(draws);
    let inputs = inputs(density, &both, &mut streams.stream("inputs", 0, 0))?;
    density.watch().check()?;
    let rng = &mut streams.stream("folds", 0, 0);
    let Judged { opinions, accuracy, p_value } =
        density.pool().install(|| Discriminant::new(inputs, number).judge(rng));
    density.watch().check()?;
    let region = |of_rows: bool| region(density, &both, &opinions, of_rows);
    let (where_rows, where_draws) = (region(true), region(false));
    Ok(Some(TwoSample {
        rows: number,
        effective_draws: effective_sample_size,
        accuracy,
        p_value,
        where_rows,
        where_draws,
        opinions,
    }))
}

/// Draws that are as independent as the density can make them.
fn draws(density: &dyn Density, number: usize, streams: &Streams) -> Result<Draws> {
    let nothing = vec![f32::NAN; density.columns().len()];
    let particles = match density.is_normalised() {
        true => number,
        false => (PARTICLES_PER_DRAW * number).max(LEAST_PARTICLES),
    };
    let cloud = density.draw(&nothing, particles, streams)?;
    let mut draws = cloud.sample(number, &mut streams.stream("draws", 0, 0));
    if !density.is_normalised() {
        draws.rows = density.refresh(draws.rows, streams)?;
    }
    Ok(draws)
}

/// What the classifier is given of every row, input by input: columns, their squares and products, classes, waves of several lengths in
/// random directions, and what the model says of the row.
fn inputs(density: &dyn Density, rows: &[f32], rng: &mut Stream) -> Result<Vec<Vec<f64>>> {
    let (columns, standardiser) = (density.columns().len(), density.standardiser());
    let number = rows.len() / columns;
    let features = standardiser.features(rows);
    let of_column = |column: usize| features.iter().skip(column).step_by(columns);
    let (mut numbers, mut classes) = (Vec::new(), Vec::new());
    for column in 0..columns {
        match standardiser.shapes.get(column) {
            Some(Shape::Classes { levels }) => {
                for level in 0..(*levels).min(MOST_CLASSES) {
                    let is = |x: &f32| f64::from(u8::from(*x == level as f32));
                    classes.push(standard(of_column(column).map(is).collect()));
                }
            }
            _ => numbers.push(standard(of_column(column).map(|&x| f64::from(x)).collect())),
        }
    }
    let mut base: Vec<Vec<f64>> = numbers.iter().chain(&classes).flatten().cloned().collect();
    let lines = numbers.iter().flatten().count();
    let mut inputs: Vec<Vec<f64>> = base.clone();
    let mut add = |input: Vec<f64>| inputs.extend(standard(input));
    base[..lines].iter().for_each(|x| add(x.iter().map(|x| x * x).collect()));
    let mut pairs: Vec<(usize, usize)> =
        (0..base.len()).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    if pairs.len() > MOST_PRODUCTS {
        let order = rng.permutation(pairs.len());
        pairs = order[..MOST_PRODUCTS].iter().map(|&at| pairs[at]).collect();
    }
    for (a, b) in pairs {
        add(base[a].iter().zip(&base[b]).map(|(x, y)| x * y).collect());
    }
    base.truncate(lines);
    let usual = usual_distance(&base, number, rng);
    for wave_number in WAVE_NUMBERS.into_iter().filter(|_| lines > 0) {
        for _ in 0..WAVES {
            let direction: Vec<f64> =
                (0..lines).map(|_| wave_number / usual * rng.normal()).collect();
            let phase = |row: usize| -> f64 {
                base.iter().zip(&direction).map(|(x, direction)| x[row] * direction).sum()
            };
            let phases: Vec<f64> = (0..number).map(phase).collect();
            add(phases.iter().map(|phase| phase.cos()).collect());
            add(phases.iter().map(|phase| phase.sin()).collect());
        }
    }
    let log_p = log_densities(density, rows)?;
    add(log_p.iter().map(|log_p| log_p.max(-FURTHEST).exp()).collect());
    add(log_p);
    Ok(inputs)
}

/// What the model says of whole rows, in standard deviations; nothing of others.
fn log_densities(density: &dyn Density, rows: &[f32]) -> Result<Vec<f64>> {
    let columns = density.columns().len();
    let whole: Vec<bool> =
        rows.chunks_exact(columns).map(|row| !row.iter().any(|cell| cell.is_nan())).collect();
    let of_whole: Vec<f32> = rows
        .chunks_exact(columns)
        .zip(&whole)
        .filter(|(_, whole)| **whole)
        .flat_map(|(row, _)| row)
        .copied()
        .collect();
    let mut scores = density.score(&of_whole)?.log_p_tilde.into_iter();
    let score = |&whole: &bool| if whole { scores.next().expect("a score") } else { f64::NAN };
    let all: Vec<f64> = whole.iter().map(score).collect();
    Ok(standard(all).unwrap_or_else(|| vec![0.0; whole.len()]))
}

/// Median distance of two rows.
fn usual_distance(base: &[Vec<f64>], number: usize, rng: &mut Stream) -> f64 {
    let mut distances: Vec<f64> = (0..500)
        .map(|_| {
            let (a, b) = (rng.index(number), rng.index(number));
            base.iter().map(|x| (x[a] - x[b]).powi(2)).sum::<f64>().sqrt()
        })
        .collect();
    distances.sort_unstable_by(f64::total_cmp);
    distances[250].max(1e-3)
}

/// An input with mean 0 and deviation 1, what is missing at its mean and what is far out brought near; none where it does not vary.
fn standard(input: Vec<f64>) -> Option<Vec<f64>> {
    let known = || input.iter().copied().filter(|x| x.is_finite());
    let number = known().count() as f64;
    let mean = known().sum::<f64>() / number;
    let deviation = (known().map(|x| (x - mean).powi(2)).sum::<f64>() / number).sqrt();
    if deviation.is_nan() || deviation <= 1e-9 * mean.abs().max(1e-9) {
        return None;
    }
    let one = |x: &f64| match *x {
        x if x.is_nan() => 0.0,
        x => ((x - mean) / deviation).clamp(-FURTHEST, FURTHEST),
    };
    Some(input.iter().map(one).collect())
}

/// The tenth of all points that looks most like rows, or like draws, in words: how many more there are, and what is special there.
fn region(density: &dyn Density, both: &[f32], opinions: &[f64], of_rows: bool) -> String {
    let (columns, half) = (density.columns().len(), opinions.len() / 2);
    let mut order: Vec<usize> = (0..opinions.len()).collect();
    let sign = if of_rows { -1.0 } else { 1.0 };
    order.sort_by(|&a, &b| (sign * opinions[a]).total_cmp(&(sign * opinions[b])));
    let (there, elsewhere) = order.split_at(opinions.len() / 10);
    let rows = there.iter().filter(|&&point| point < half).count();
    let draws = there.len() - rows;
    let (more, fewer) = if of_rows { (rows, draws) } else { (draws, rows) };
    if more <= fewer {
        return String::new();
    }
    let standardiser = density.standardiser();
    let features = standardiser.features(both);
    let middle = |points: &[usize], of: &[f32], column: usize| {
        let cells = points.iter().map(|&point| f64::from(of[point * columns + column]));
        let mut cells: Vec<f64> = cells.filter(|cell| !cell.is_nan()).collect();
        cells.sort_unstable_by(f64::total_cmp);
        cells.get(cells.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let apart = |column: usize| {
        let is_classes = standardiser.shapes.get(column).is_some_and(Shape::is_classes);
        let difference = middle(there, &features, column) - middle(elsewhere, &features, column);
        if is_classes || difference.is_nan() { 0.0 } else { difference.abs() }
    };
    let mut special: Vec<usize> = (0..columns).filter(|&column| apart(column) > 0.3).collect();
    special.sort_by(|&a, &b| apart(b).total_cmp(&apart(a)));
    let place: Vec<String> = special
        .iter()
        .take(3)
        .map(|&column| {
            let [here, usual] = [there, elsewhere].map(|points| middle(points, both, column));
            format!("{} is about {here:.3} (elsewhere {usual:.3})", density.columns()[column])
        })
        .collect();
    let (many, few) = if of_rows { ("rows", "draws") } else { ("draws", "rows") };
    let place = match place.is_empty() {
        true => String::new(),
        false => format!(" where {}", place.join(", ")),
    };
    format!("{more} {many} to {fewer} {few}{place}")
}
