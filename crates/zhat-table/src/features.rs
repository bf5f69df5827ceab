//! How the columns of a table become features: units, normal scores, rhythms, and what is no number at all.

use std::borrow::Cow;

use zhat::gaussian_mixture::{
    EmConfig, GaussianMixture, Selection, select, select_by_cross_validation,
};
use zhat::rng::Streams;
use zhat::train::Difference;
use zhat::watch::Watch;

use crate::data::{ColumnKind, Marginals, Shape, Standardiser, Table, fill, in_order};
use crate::error::Result;
use crate::fit::DataConfig;

/// With fewer rows for training and validation together, normal scores have to show that they are better.
const FEW_ROWS: usize = 1_000;
/// Folds that they show it on.
const FOLDS: usize = 5;
/// Components and rows at most that they are asked about where there are many.
const MOST_COMPONENTS: usize = 40;
const MOST_ROWS: usize = 8_000;
/// And multiplications in an iteration of EM: a second or two in all.
const MOST_WORK: f64 = 1e7;
/// What a line may leave of a variance, where mixtures have a floor: rows are 32-bit floats.
const LEAST_VARIANCE: f64 = 1e-12;
/// Columns that are fewer than this are few: what is between them can be told by mixtures.
pub(crate) const FEW_COLUMNS: usize = 5;

/// How the columns become features.
pub(crate) fn standardiser_of(
    data: &DataConfig,
    parts: [&Table; 2],
    kinds: &[ColumnKind],
    streams: &Streams,
    watch: &Watch,
) -> Result<Standardiser> {
    let in_order = in_order(kinds, parts[0].columns());
    let shapes: Vec<Shape> = in_order.iter().map(|kind| kind.shape()).collect();
    let numbers = numbers(parts, &shapes, streams);
    let standardiser = match (data.standardise, data.marginals, &numbers) {
        (false, ..) | (true, _, None) => {
            Standardiser::identity(numbers.as_ref().map_or(0, |[train, _]| train.dimension()))
        }
        (true, Marginals::Auto, Some([train, validation])) => {
            better_marginals(train, validation, streams, watch)?
        }
        (true, marginals, Some([train, _])) => {
            Standardiser::fit(train)?.with_marginals(train, marginals)
        }
    };
    let periods: Vec<Option<f64>> = in_order.iter().map(|kind| kind.cycle).collect();
    let standardiser = match &numbers {
        Some([train, _]) if periods.iter().any(Option::is_some) => {
            let is_number = |column: &usize| !shapes[*column].is_classes();
            let columns: Vec<usize> = (0..shapes.len()).filter(is_number).collect();
            let of_numbers: Vec<&Shape> = columns.iter().map(|&column| &shapes[column]).collect();
            let periods: Vec<_> = columns.iter().map(|&column| periods[column]).collect();
            standardiser.with_cycles(train, &periods, &of_numbers)
        }
        _ => standardiser,
    };
    Ok(standardiser.with_shapes(shapes))
}

/// The columns of training and validation part that are no classes, as numbers on the line without holes: those of cells anywhere in
/// them, and what is missing filled with what other rows have. None where all are classes.
fn numbers<'a>(
    parts: [&'a Table; 2],
    shapes: &[Shape],
    streams: &Streams,
) -> Option<[Cow<'a, Table>; 2]> {
    let columns: Vec<usize> = (0..parts[0].dimension())
        .filter(|&column| !shapes.get(column).is_some_and(Shape::is_classes))
        .collect();
    if columns.is_empty() {
        return None;
    }
    let has_holes = |part: &Table| part.values().iter().any(|value| value.is_nan());
    if shapes.iter().all(|shape| *shape == Shape::Line) && !parts.into_iter().any(has_holes) {
        // They are what they should become, and a long table has no room for itself again.
        return Some(parts.map(Cow::Borrowed));
    }
    let mut rng = streams.stream("numbers", 0, 0);
    // An atom says nothing of where the others are.
    let without_atoms = |part: &Table| {
        let mut part = part.select_columns(&columns);
        if shapes.iter().any(Shape::is_atoms) {
            for row in part.values_mut().chunks_exact_mut(columns.len()) {
                for (value, &column) in row.iter_mut().zip(&columns) {
                    if shapes[column].atom(f64::from(*value)).is_some() {
                        *value = f32::NAN;
                    }
                }
            }
        }
        part
    };
    let observed = without_atoms(parts[0]);
    Some(parts.map(|part| {
        let mut part = without_atoms(part);
        if has_holes(&part) {
            fill(part.values_mut(), &observed, &mut rng);
        }
        if !shapes.is_empty() {
            for row in part.values_mut().chunks_exact_mut(columns.len()) {
                for (value, &column) in row.iter_mut().zip(&columns) {
                    *value =
                        shapes[column].spread_number(f64::from(*value), || rng.uniform()) as f32;
                }
            }
        }
        Cow::Owned(part)
    }))
}

/// Maps or standard units. A map bends what is straight between columns, such as shares of a whole or the highest and the mean
/// temperature of a day, which may cost more than it gains; Gaussian mixtures, which know straight lines best, are asked.
fn better_marginals(
    train: &Table,
    validation: &Table,
    streams: &Streams,
    watch: &Watch,
) -> Result<Standardiser> {
    let plain = Standardiser::fit(train)?;
    let rows = train.rows() + validation.rows();
    let columns = train.dimension();
    let few = rows < FEW_ROWS;
    // Of few rows or columns mixtures are much of the model, and they want what is closest to normal.
    let of_mixtures = few || columns < FEW_COLUMNS;
    let marginals = if of_mixtures { Marginals::Gaussian } else { Marginals::Halfway };
    let mapped = plain.clone().with_marginals(train, marginals);
    let has_judges = if few { rows >= 2 * FOLDS } else { validation.rows() >= FEW_ROWS / 10 };
    if !has_judges || mapped.maps.is_empty() {
        return Ok(mapped);
    }
    let streams = streams.derive("marginals", 0);
    // With few rows each is left out once; of many those of the validation are.
    let judges = match few {
        true => [train.values(), validation.values()].concat(),
        false => validation.values()[..validation.values().len().min(columns * MOST_ROWS)].to_vec(),
    };
    let left_out = |standardiser: &Standardiser| -> Result<Vec<f64>> {
        let features = standardiser.features(&judges);
        let usual = Selection::default();
        let held_out: Vec<f64> = if few {
            select_by_cross_validation(&features, columns, FOLDS, &usual, &streams, watch)?.held_out
        } else {
            let (most_components, most_rows) = (MOST_COMPONENTS, MOST_ROWS);
            let selection = Selection { most_components, most_rows, starts: 1, ..usual };
            let train = selection.thin(&[train.values()], columns, &streams, "mixture-train");
            let train = standardiser.features(&train);
            let selection = selection.within(MOST_WORK, train.len() / columns, columns);
            let stack = select(&train, &features, columns, &selection, &streams, watch)?;
            let hidden = below_the_floor(&train, &features, columns, &streams)?;
            stack.held_out.iter().zip(hidden).map(|(log_q, hidden)| log_q + hidden).collect()
        };
        let slopes = standardiser.log_derivatives(&judges);
        Ok(held_out.iter().zip(slopes).map(|(log_q, slope)| log_q + slope).collect())
    };
    let gain = Difference::new(&left_out(&mapped)?, &left_out(&plain)?);
    // Where there are many, networks come after, which are better off with maps unless something speaks against these.
    let threshold = if few { gain.standard_error } else { -gain.standard_error };
    Ok(if gain.mean > threshold { mapped } else { plain })
}

/// What the floor of a mixture's variances hides, row by row: a column that others determine to many digits is worth more to the line that
/// networks [start on](crate::fit::Start::Lines) than to any mixture. By a single Gaussian without that floor, less one with it.
fn below_the_floor(
    train: &[f32],
    rows: &[f32],
    columns: usize,
    streams: &Streams,
) -> Result<Vec<f64>> {
    let with = EmConfig::new(1);
    let without = EmConfig { floor: LEAST_VARIANCE, ..with.clone() };
    let log_densities = |config: &EmConfig| -> Result<Vec<f64>> {
        let rng = &mut streams.stream("floor", 0, 0);
        Ok(GaussianMixture::fit(train, columns, config, rng)?.log_densities(rows))
    };
    let (with, without) = (log_densities(&with)?, log_densities(&without)?);
    Ok(without.iter().zip(with).map(|(without, with)| without - with).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether many rows, each made from two random numbers, become normal scores.
    fn is_mapped<const D: usize>(row: impl Fn([f64; 2]) -> [f64; D]) -> bool {
        let mut rng = Streams::new(3).stream("rows", 0, 0);
        let names: Vec<String> = (0..D).map(|column| format!("column {column}")).collect();
        let mut part = |rows: usize| {
            let rows = (0..rows).flat_map(|_| row([rng.uniform(), rng.normal()]));
            Table::new(names.clone(), rows.map(|x| x as f32).collect())
        };
        let (train, validation) = (part(3_200), part(600));
        let watch = Watch::default();
        let found = better_marginals(&train, &validation, &Streams::new(1), &watch).unwrap();
        !found.maps.is_empty()
    }

    #[test]
    fn columns_of_many_rows_are_mapped_unless_mixtures_lose_by_it() {
        let ring = |[u, z]: [f64; 2]| {
            let (sin, cos) = (std::f64::consts::TAU * u).sin_cos();
            let radius = (if (97.0 * u).fract() < 0.5 { 1.0 } else { 2.0 }) + 0.05 * z;
            [radius * cos, radius * sin]
        };
        assert!(!is_mapped(ring), "a map bends rings");
        assert!(
            is_mapped(|[u, z]| [(1.5 * z).exp(), (4.0 * u).exp()]),
            "and straightens what is skewed"
        );
    }

    #[test]
    fn so_are_many_columns() {
        // Three skewed parts, and three sums of them that are known but for one part in a thousand.
        let skewed = |z: f64| (0.8 * z).exp();
        let parts = |[u, z]: [f64; 2]| {
            let noise = |k: f64| 1e-3 * ((1e3 * k * u).fract() - 0.5);
            let [a, b, c] = [skewed(z), skewed((11.0 * u).fract() * 3.0 - 1.5), skewed(3.0 * u)];
            let whole = a + b + c;
            [a, b, c, whole + noise(1.1), 2.0 * whole + noise(1.3), a + b + noise(1.7)]
        };
        assert!(!is_mapped(parts), "a map bends sums");
        let alone = |[u, z]: [f64; 2]| {
            let part = |k: f64| skewed(3.0 * (k * u).fract() - 1.5);
            [skewed(2.0 * z), part(7.0), part(53.0), part(397.0), part(2_503.0), part(17_389.0)]
        };
        assert!(is_mapped(alone), "and straightens columns that are only skewed");
    }

    #[test]
    fn a_line_counts_to_its_last_digit() {
        // Six skewed columns and the mean of three, known to a few digits or to all of them.
        let mean = |noise: f64| {
            move |[u, z]: [f64; 2]| {
                let part = |k: f64| (5.0 * (k * u).fract() - 2.5).exp();
                let parts = [7.0, 53.0, 397.0, 2_503.0, 17_389.0, 98_731.0].map(part);
                let [a, b, c, d, e, f] = parts;
                [a, b, c, d, e, f, (a + b + c) / 3.0 + noise * z]
            }
        };
        assert!(is_mapped(mean(0.1)), "a loose line bends little");
        assert!(!is_mapped(mean(1e-6)), "a close one is worth more than maps");
    }
}
