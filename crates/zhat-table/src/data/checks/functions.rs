//! A column that is a sum of multiples of several others: not a pair says so, but the rank of all columns.

use crate::data::table::{ColumnStatistics, Table};

/// Rows that are looked at first, spread over the table.
const SAMPLE: usize = 2_000;
/// With more columns than this nobody looks: it takes the square of their number.
const MOST_COLUMNS: usize = 500;
/// What is left of a column's variance, as a share of it, where it is a function of the others up to the rounding of 32-bit floats.
const NOTHING: f64 = 1e-10;
/// Multiples below this, in standard deviations, are none.
const NEGLIGIBLE: f64 = 1e-3;

/// The first column that is a sum of multiples of several before it, and those.
pub(super) fn function_of_others(
    table: &Table,
    statistics: &[ColumnStatistics],
) -> Option<(usize, Vec<usize>)> {
    let columns = table.dimension();
    if !(3..=MOST_COLUMNS).contains(&columns) {
        return None;
    }
    let standard = |column: usize, value: f32| {
        (f64::from(value) - statistics[column].mean) / statistics[column].std_dev
    };
    let whole = || table.iter_rows().filter(|row| !row.iter().any(|cell| cell.is_nan()));
    let stride = (table.rows() / SAMPLE).max(1);
    let sample: Vec<&[f32]> = whole().step_by(stride).collect();
    if sample.len() <= columns {
        return None;
    }
    // Directions at right angles (Gram and Schmidt, twice, for rounding), each with the multiples of the columns that it is.
    let mut directions: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    for column in 0..columns {
        let mut rest: Vec<f64> = sample.iter().map(|row| standard(column, row[column])).collect();
        let size = dot(&rest, &rest);
        let mut multiples = vec![0.0; columns];
        for _ in 0..2 {
            for (direction, of_columns) in &directions {
                let share = dot(&rest, direction);
                rest.iter_mut().zip(direction).for_each(|(rest, d)| *rest -= share * d);
                multiples.iter_mut().zip(of_columns).for_each(|(sum, of)| *sum += share * of);
            }
        }
        let left = dot(&rest, &rest);
        if left > NOTHING * size {
            let scale = left.sqrt();
            rest.iter_mut().for_each(|rest| *rest /= scale);
            multiples.iter_mut().for_each(|multiple| *multiple /= -scale);
            multiples[column] = 1.0 / scale;
            directions.push((rest, multiples));
            continue;
        }
        let of: Vec<usize> =
            (0..column).filter(|&other| multiples[other].abs() > NEGLIGIBLE).collect();
        let (mut squares, mut rows) = (0.0, 0.0);
        for row in whole() {
            let sum: f64 =
                of.iter().map(|&other| multiples[other] * standard(other, row[other])).sum();
            squares += (standard(column, row[column]) - sum).powi(2);
            rows += 1.0;
        }
        // A sample may agree where the table does not; small multiples that were left out count too.
        if of.len() > 1 && squares <= 100.0 * NOTHING * rows {
            return Some((column, of));
        }
    }
    None
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(column: impl Fn([f32; 3]) -> f32) -> Option<(usize, Vec<usize>)> {
        let part = |row: usize, of: f32| (row as f32 * of).fract();
        let values = (0..5000).flat_map(|row| {
            let [a, b, c] =
                [part(row, 0.618_034), 40.0 * part(row, 0.754_877), part(row, 0.569_84)];
            [a, b, c, column([a, b, c])]
        });
        let names = ["a", "b", "c", "d"].map(String::from).to_vec();
        let table = Table::new(names, values.collect());
        function_of_others(&table, &table.statistics())
    }

    #[test]
    fn a_total_is_found_and_what_it_is_the_total_of() {
        assert_eq!(found(|[a, b, c]| a + b + c), Some((3, vec![0, 1, 2])));
        assert_eq!(found(|[a, _, c]| 100.0 - 3.0 * a + 0.5 * c), Some((3, vec![0, 2])));
    }

    #[test]
    fn what_is_only_nearly_or_not_a_sum_is_left_alone() {
        assert_eq!(found(|[a, b, _]| a * b), None);
        assert_eq!(
            found(|[a, b, c]| a + b + 0.01 * c.sin().round() + 1e-3 * (b * 99.0).sin()),
            None
        );
    }
}
