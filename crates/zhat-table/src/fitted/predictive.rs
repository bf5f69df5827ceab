//! How well a density of some columns given others predicts them: intervals and their coverage, CRPS, probabilities of classes.

use rayon::prelude::*;
use serde::Serialize;
use zhat::rng::Streams;

use super::sample::{SampleOptions, sample_for};
use crate::data::Shape;
use crate::density::Density;
use crate::error::Result;
use crate::fit::weighted_mean_and_error;

/// Rows that are predicted, at most.
const ROWS: usize = 2_000;
/// Draws for each of them.
const DRAWS: usize = 400;
/// Rows that are drawn for together.
const TOGETHER: usize = 250;
/// Rows times classes, at most, where other columns have to be summed over.
const MARGINALS: usize = 20_000;
/// Levels of the central intervals whose coverage is told.
const LEVELS: [f64; 4] = [0.5, 0.8, 0.9, 0.95];
/// The level of the interval whose width is told.
const WIDTH_OF: f64 = 0.9;
/// Parts that the rows are cut into by their confidence.
const BINS: usize = 10;

/// What the predictions of every column that is not given are worth, each given those that are and nothing else.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predictive {
    /// Rows that were predicted.
    pub rows: usize,
    /// Draws behind each prediction of a number.
    pub draws: usize,
    /// Column by column.
    pub targets: Vec<Target>,
}

/// A column that is predicted.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Target {
    /// Numbers.
    Number(PredictedNumber),
    /// Words.
    Classes(PredictedClasses),
}

/// Predictions of a number, in the units of the data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PredictedNumber {
    /// The column.
    pub column: String,
    /// Continuous ranked probability score, `E|X - y| - E|X - X'| / 2` (Gneiting and Raftery, 2007), without the bias of few draws: the
    /// absolute error, for a prediction that is a single number. Mean over the rows.
    pub crps: f64,
    /// Its standard error over the rows.
    pub se_crps: f64,
    /// Mean absolute error of the medians.
    pub absolute_error: f64,
    /// Root mean square error of the means.
    pub root_mean_square_error: f64,
    /// How many rows are in the central interval of a level.
    pub coverage: Vec<Coverage>,
    /// Mean width of the interval of 90 %.
    pub width_of_90: f64,
}

/// How many rows are in a central interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Coverage {
    /// The share that should be.
    pub level: f64,
    /// The share that is.
    pub found: f64,
    /// Its standard error over the rows.
    pub standard_error: f64,
}

/// Predictions of a class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PredictedClasses {
    /// The column.
    pub column: String,
    /// Mean of `-log p(class)`.
    pub log_loss: f64,
    /// Its standard error over the rows.
    pub se_log_loss: f64,
    /// How often the most likely class is right.
    pub accuracy: f64,
    /// Its standard error over the rows.
    pub se_accuracy: f64,
    /// How often the class that is most frequent in the rows is right.
    pub most_frequent: f64,
    /// How far the share of right answers is from the probability they were given: mean distance over ten equal parts of the rows, by
    /// that probability. Chance alone makes it a few hundredths with few rows.
    pub calibration_error: f64,
    /// Rows.
    pub rows: usize,
}

/// Predicts the columns that a density is not given of some rows, and holds them against what they are. At most 2,000 rows are used, evenly
/// from all of them, each by its weight if there are any; one with a missing cell says nothing of that column.
///
/// # Shapes
/// - `rows`: `[n, columns]`, in the units of the data
pub fn predictive(
    density: &dyn Density,
    rows: &[f32],
    weights: Option<&[f64]>,
    seed: u64,
) -> Result<Predictive> {
    let (columns, given) = (density.columns().len(), density.given());
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let whole: Vec<Row> = rows
        .chunks_exact(columns)
        .enumerate()
        .map(|(at, cells)| Row { cells, weight: weight(at) })
        .filter(|row| row.cells[..given].iter().all(|cell| !cell.is_nan()))
        .collect();
    let number = whole.len().min(ROWS);
    let chosen: Vec<Row> = (0..number).map(|at| whole[at * whole.len() / number]).collect();
    let shapes = &density.standardiser().shapes;
    let is_classes = |column: usize| shapes.get(column).is_some_and(Shape::is_classes);
    let numbers: Vec<usize> = (given..columns).filter(|&column| !is_classes(column)).collect();
    let mut found = vec![Tally::default(); columns];
    if !numbers.is_empty() {
        for (part, rows) in chosen.chunks(TOGETHER).enumerate() {
            let mut wanted: Vec<f32> = rows.iter().flat_map(|row| row.cells).copied().collect();
            wanted.chunks_exact_mut(columns).for_each(|row| row[given..].fill(f32::NAN));
            let seed = Streams::new(seed).stream("predictive", part as u64, 0).index(usize::MAX);
            let options = SampleOptions {
                number: DRAWS,
                given: Vec::new(),
                particles: None,
                seed: seed as u64,
            };
            let draws = sample_for(density, &wanted, &options)?.table.into_values();
            let mut rng = Streams::new(seed as u64).stream("ranks", 0, 0);
            for (row, draws) in rows.iter().zip(draws.chunks_exact(DRAWS * columns)) {
                for &column in numbers.iter().filter(|&&column| !row.cells[column].is_nan()) {
                    let mut values: Vec<f64> =
                        draws.iter().skip(column).step_by(columns).map(|&x| f64::from(x)).collect();
                    values.sort_unstable_by(f64::total_cmp);
                    let y = f64::from(row.cells[column]);
                    found[column].add(&values, y, row.weight, rng.uniform());
                }
            }
        }
    }
    let target = |column: usize| -> Result<Target> {
        let name = density.columns()[column].clone();
        match shapes.get(column) {
            Some(Shape::Classes { levels }) => {
                Ok(Target::Classes(classes(density, &chosen, column, *levels)?))
            }
            _ => Ok(Target::Number(found[column].of(name))),
        }
    };
    let targets = (given..columns).map(target).collect::<Result<_>>()?;
    Ok(Predictive { rows: number, draws: DRAWS, targets })
}

/// A row that is predicted, and what it counts.
#[derive(Debug, Clone, Copy)]
struct Row<'a> {
    cells: &'a [f32],
    weight: f64,
}

/// What was found of a number, row by row.
#[derive(Debug, Clone, Default)]
struct Tally {
    crps: Vec<f64>,
    absolute: Vec<f64>,
    square: Vec<f64>,
    /// Share of the draws below, anywhere between those of its ties: uniform where the density is right.
    below: Vec<f64>,
    width: Vec<f64>,
    weights: Vec<f64>,
}

impl Tally {
    /// A row, by draws from the smallest to the largest.
    fn add(&mut self, draws: &[f64], y: f64, weight: f64, chance: f64) {
        self.weights.push(weight);
        let number = draws.len() as f64;
        let apart = draws.iter().map(|x| (x - y).abs()).sum::<f64>() / number;
        // Of all pairs, sum_{i<j} (x_j - x_i) = sum_i (2 i - n + 1) x_i for sorted draws.
        let pairs: f64 =
            draws.iter().enumerate().map(|(i, x)| (2.0 * i as f64 - number + 1.0) * x).sum();
        self.crps.push(apart - pairs / (number * (number - 1.0)));
        let mean = draws.iter().sum::<f64>() / number;
        self.square.push((mean - y).powi(2));
        self.absolute.push((quantile(draws, 0.5) - y).abs());
        let (below, not_above) =
            (draws.partition_point(|x| *x < y), draws.partition_point(|x| *x <= y));
        let ties = (not_above - below + 1) as f64;
        self.below.push((below as f64 + chance * ties) / (number + 1.0));
        let half = 0.5 * WIDTH_OF;
        self.width.push(quantile(draws, 0.5 + half) - quantile(draws, 0.5 - half));
    }

    fn of(&self, column: String) -> PredictedNumber {
        let of = |values: &[f64]| weighted_mean_and_error(values, Some(&self.weights));
        let (crps, se_crps) = of(&self.crps);
        let mean = |values: &[f64]| of(values).0;
        let coverage = |level: f64| {
            let inside =
                self.below.iter().map(|u| f64::from(u8::from((u - 0.5).abs() < 0.5 * level)));
            let (found, standard_error) = of(&inside.collect::<Vec<_>>());
            Coverage { level, found, standard_error }
        };
        PredictedNumber {
            column,
            crps,
            se_crps,
            absolute_error: mean(&self.absolute),
            root_mean_square_error: mean(&self.square).sqrt(),
            coverage: LEVELS.map(coverage).to_vec(),
            width_of_90: mean(&self.width),
        }
    }
}

/// Between the two draws at a level, by how far it is from one to the next: a share of new draws as large as the level is below it, on average.
fn quantile(sorted: &[f64], level: f64) -> f64 {
    let number = sorted.len() as f64;
    let at = (level * (number + 1.0) - 1.0).clamp(0.0, number - 1.0);
    let (low, share) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + share * (sorted[high] - sorted[low])
}

/// The probabilities of all classes of a column for each row, by scores of what is given and each class in turn.
///
/// # Shapes
/// - output: `[n, levels]`
fn class_probabilities(
    density: &dyn Density,
    rows: &[Row],
    column: usize,
    levels: usize,
) -> Result<Vec<f64>> {
    let given = density.given();
    let mut wanted: Vec<f32> = Vec::with_capacity(rows.len() * levels * density.columns().len());
    for row in rows {
        for class in 0..levels {
            let cell = |(at, &cell): (usize, &f32)| match at {
                at if at == column => class as f32,
                at if at < given => cell,
                _ => f32::NAN,
            };
            wanted.extend(row.cells.iter().enumerate().map(cell));
        }
    }
    let mut shares = density.score(&wanted)?.log_p_tilde;
    density.pool().install(|| {
        shares.par_chunks_exact_mut(levels).for_each(|row| {
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|log_p| *log_p = (*log_p - most).exp());
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|share| *share /= total);
        });
    });
    Ok(shares)
}

fn classes(
    density: &dyn Density,
    rows: &[Row],
    column: usize,
    levels: usize,
) -> Result<PredictedClasses> {
    let known: Vec<Row> = rows.iter().copied().filter(|row| !row.cells[column].is_nan()).collect();
    // The first column that is not given needs no sum over others.
    let most = if column == density.given() { ROWS } else { (MARGINALS / levels).max(1) };
    let number = known.len().min(most);
    let known: Vec<Row> = (0..number).map(|at| known[at * known.len() / number]).collect();
    let shares = class_probabilities(density, &known, column, levels)?;
    let mut loss = Vec::with_capacity(number);
    // The probability of the most likely class, whether it was right, and what the row counts.
    let mut answers: Vec<(f64, f64, f64)> = Vec::with_capacity(number);
    let mut counts = vec![0.0; levels];
    for (row, shares) in known.iter().zip(shares.chunks_exact(levels)) {
        let class = row.cells[column] as usize;
        counts[class] += row.weight;
        loss.push(-shares[class].max(f64::MIN_POSITIVE).ln());
        let best = (0..levels).max_by(|&a, &b| shares[a].total_cmp(&shares[b])).expect("a class");
        answers.push((shares[best], f64::from(u8::from(best == class)), row.weight));
    }
    let weights: Vec<f64> = known.iter().map(|row| row.weight).collect();
    let of = |values: &[f64]| weighted_mean_and_error(values, Some(&weights));
    let (log_loss, se_log_loss) = of(&loss);
    let right: Vec<f64> = answers.iter().map(|(_, right, _)| *right).collect();
    let (accuracy, se_accuracy) = of(&right);
    Ok(PredictedClasses {
        column: density.columns()[column].clone(),
        log_loss,
        se_log_loss,
        accuracy,
        se_accuracy,
        most_frequent: counts.iter().copied().fold(0.0, f64::max) / counts.iter().sum::<f64>(),
        calibration_error: calibration_error(answers),
        rows: number,
    })
}

/// Mean over equal parts of the rows, by confidence, of how far confidence and accuracy are apart.
fn calibration_error(mut answers: Vec<(f64, f64, f64)>) -> f64 {
    answers.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let total: f64 = answers.iter().map(|(.., weight)| weight).sum();
    let number = answers.len();
    let apart = |bin: usize| {
        let part = &answers[bin * number / BINS..(bin + 1) * number / BINS];
        part.iter()
            .map(|(confidence, right, weight)| weight * (right - confidence))
            .sum::<f64>()
            .abs()
    };
    (0..BINS).map(apart).sum::<f64>() / total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_draws_are_those_of_the_distribution() {
        let mut rng = Streams::new(4).stream("draws", 0, 0);
        let mut tally = Tally::default();
        for _ in 0..2000 {
            let mut draws: Vec<f64> = (0..50).map(|_| rng.normal()).collect();
            draws.sort_unstable_by(f64::total_cmp);
            let (y, chance) = (rng.normal(), rng.uniform());
            tally.add(&draws, y, 1.0, chance);
        }
        let found = tally.of("y".into());
        // E|X - Y| - E|X - X'| / 2 = E|X - X'| / 2 for two standard normals: 1 / sqrt(pi).
        let expected = 1.0 / std::f64::consts::PI.sqrt();
        assert!((found.crps - expected).abs() < 4.0 * found.se_crps, "{found:?}");
        for Coverage { level, found, standard_error } in found.coverage {
            assert!((found - level).abs() < 4.0 * standard_error, "{level} {found}");
        }
        // Of 50 draws it is a little wider than that of the distribution, 3.29.
        assert!((found.width_of_90 - 3.4).abs() < 0.15, "{}", found.width_of_90);
    }

    #[test]
    fn a_draw_with_ties_is_covered_as_often_as_it_should_be() {
        let mut rng = Streams::new(5).stream("draws", 0, 0);
        let mut tally = Tally::default();
        for _ in 0..4000 {
            let mut coin = || f64::from(u8::from(rng.uniform() < 0.3));
            let mut draws: Vec<f64> = (0..40).map(|_| coin()).collect();
            draws.sort_unstable_by(f64::total_cmp);
            let y = coin();
            tally.add(&draws, y, 1.0, rng.uniform());
        }
        for Coverage { level, found, standard_error } in tally.of("y".into()).coverage {
            assert!((found - level).abs() < 4.0 * standard_error, "{level} {found}");
        }
    }

    #[test]
    fn confidence_that_is_right_is_calibrated_and_too_much_of_it_is_not() {
        let mut rng = Streams::new(6).stream("answers", 0, 0);
        let answers: Vec<(f64, f64, f64)> = (0..20_000)
            .map(|_| {
                let confidence = 0.5 + 0.5 * rng.uniform();
                (confidence, f64::from(u8::from(rng.uniform() < confidence)), 1.0)
            })
            .collect();
        assert!(calibration_error(answers.clone()) < 0.02);
        let sure = answers.iter().map(|(c, right, _)| ((c + 0.1).min(1.0), *right, 1.0)).collect();
        assert!(calibration_error(sure) > 0.06);
    }
}
