//! How the columns of a table become features: units, normal scores, rhythms, and what is no number at all.

use std::borrow::Cow;

use zhat::gaussian_mixture::{Selection, select, select_by_cross_validation};
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
/// With fewer columns than this they have to show it whatever the number of rows: what is between a few columns can be told.
pub(crate) const FEW_COLUMNS: usize = 5;
/// What they show it by, where there are many rows.
const OF_MANY: Selection = Selection {
    most_components: 40,
    rows_per_component: 5,
    most_rows: 8_000,
    starts: 1,
    smallest_share: 0.02,
    repeats: 0,
};

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

/// Normal scores or standard units. A map bends what is straight between columns: with few rows that may cost more than it gains
/// (of four tables of 150 to 570 rows Gaussian mixtures lost 0.1 to 1.2 nats by it on three, and won 8.6 on one), so they are asked.
fn better_marginals(
    train: &Table,
    validation: &Table,
    streams: &Streams,
    watch: &Watch,
) -> Result<Standardiser> {
    let plain = Standardiser::fit(train)?;
    let mapped = plain.clone().with_marginals(train, Marginals::Gaussian);
    let rows = train.rows() + validation.rows();
    let columns = train.dimension();
    let (few, many) =
        (rows < FEW_ROWS, columns < FEW_COLUMNS && validation.rows() >= FEW_ROWS / 10);
    if rows < 2 * FOLDS || !(few || many) || mapped.maps.is_empty() {
        return Ok(mapped);
    }
    let streams = streams.derive("marginals", 0);
    let with_slopes = |standardiser: &Standardiser, rows: &[f32], log_q: Vec<f64>| -> Vec<f64> {
        let slopes = standardiser.log_derivatives(rows);
        log_q.into_iter().zip(slopes).map(|(log_q, slope)| log_q + slope).collect()
    };
    let (both, judges) = match few {
        true => ([train.values(), validation.values()].concat(), &[][..]),
        false => (Vec::new(), head_of(validation.values(), columns)),
    };
    let left_out = |standardiser: &Standardiser| -> Result<Vec<f64>> {
        if few {
            let (features, selection) = (standardiser.features(&both), Selection::default());
            let stack =
                select_by_cross_validation(&features, columns, FOLDS, &selection, &streams, watch)?;
            return Ok(with_slopes(standardiser, &both, stack.held_out));
        }
        let [train, features] = [train.values(), judges].map(|rows| standardiser.features(rows));
        let stack = select(&train, &features, columns, &OF_MANY, &streams, watch)?;
        Ok(with_slopes(standardiser, judges, stack.held_out))
    };
    let gain = Difference::new(&left_out(&mapped)?, &left_out(&plain)?);
    // Where there are many, networks come after, which are better off with normal scores unless something speaks against them.
    let threshold = if few { gain.standard_error } else { -gain.standard_error };
    Ok(if gain.mean > threshold { mapped } else { plain })
}

/// The first rows, as many as are looked at.
fn head_of(rows: &[f32], columns: usize) -> &[f32] {
    &rows[..rows.len().min(columns * OF_MANY.most_rows)]
}
