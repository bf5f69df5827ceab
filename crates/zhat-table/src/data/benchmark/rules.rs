//! The rules that several sets share: the split by position, and the columns that are left out.

use super::Parts;
use crate::data::split::Split;
use crate::data::table::Table;

/// The last tenth is the test part, the last tenth of the rest the validation part (both rounded down).
pub(super) fn last_tenths(table: Table, mut steps: Vec<String>) -> Parts {
    let test = table.rows() / 10;
    let validation = (table.rows() - test) / 10;
    let (rest, test) = cut(table, test);
    let (train, validation) = cut(rest, validation);
    steps
        .push("cut off the last tenth as test and the last tenth of the rest as validation".into());
    Parts { split: Split { train, validation, test }, steps }
}

/// The names of columns that have none.
pub(super) fn feature_names(number: usize) -> Vec<String> {
    (0..number).map(|feature| format!("f{feature}")).collect()
}

/// The table without its last rows, and those.
pub(super) fn cut(table: Table, last: usize) -> (Table, Table) {
    let (columns, dimension) = (table.columns().to_vec(), table.dimension());
    let at = (table.rows() - last) * dimension;
    let mut values = table.into_values();
    let rest = values.split_off(at);
    (Table::new(columns.clone(), values), Table::new(columns, rest))
}

/// The columns whose smallest value occurs at most so many times: more often means a value that stands for "none".
pub(super) fn with_rare_minimum(table: &Table, most: usize) -> Vec<usize> {
    let statistics = table.statistics();
    let occurs = |column: usize| {
        table.column(column).filter(|&value| value == statistics[column].minimum).count()
    };
    (0..table.dimension()).filter(|&column| occurs(column) <= most).collect()
}

/// The columns that are left when, again and again, the first one that correlates above a bound with another is dropped.
pub(super) fn without_correlated(table: &Table, bound: f64) -> Vec<usize> {
    let correlations = correlations(table);
    let mut kept: Vec<usize> = (0..table.dimension()).collect();
    let correlated = |kept: &[usize]| {
        kept.iter().position(|&first| {
            kept.iter().any(|&other| other != first && correlations[first][other] > bound)
        })
    };
    while let Some(first) = correlated(&kept) {
        kept.remove(first);
    }
    kept
}

/// Pearson's correlation of every pair of columns.
fn correlations(table: &Table) -> Vec<Vec<f64>> {
    let (dimension, statistics) = (table.dimension(), table.statistics());
    let mut products = vec![vec![0.0; dimension]; dimension];
    let mut centred = vec![0.0; dimension];
    for row in table.iter_rows() {
        for (centred, (value, column)) in centred.iter_mut().zip(row.iter().zip(&statistics)) {
            *centred = f64::from(*value) - column.mean;
        }
        for (first, products) in products.iter_mut().enumerate() {
            for (second, product) in products.iter_mut().enumerate().take(first) {
                *product += centred[first] * centred[second];
            }
        }
    }
    let mut correlations = vec![vec![1.0; dimension]; dimension];
    for first in 0..dimension {
        for second in 0..first {
            let scale = statistics[first].std_dev * statistics[second].std_dev;
            let correlation = products[first][second] / (table.rows() as f64 * scale);
            correlations[first][second] = correlation;
            correlations[second][first] = correlation;
        }
    }
    correlations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: &[&[f32]]) -> Table {
        let names = (0..columns.len()).map(|index| format!("c{index}")).collect();
        let rows = columns[0].len();
        let values =
            (0..rows).flat_map(|row| columns.iter().map(move |column| column[row])).collect();
        Table::new(names, values)
    }

    #[test]
    fn the_tenths_are_rounded_down_and_taken_from_the_end() {
        let rows: Vec<f32> = (0..109).map(|row| row as f32).collect();
        let split = last_tenths(table(&[&rows]), Vec::new()).split;
        assert_eq!((split.train.rows(), split.validation.rows(), split.test.rows()), (90, 9, 10));
        assert_eq!(split.validation.values()[0], 90.0);
        assert_eq!(split.test.values()[9], 108.0);
    }

    #[test]
    fn only_the_smallest_value_is_counted() {
        let often_smallest = [0.0, 0.0, 0.0, 1.0, 2.0, 3.0];
        let often_largest = [9.0, 9.0, 9.0, 9.0, 0.0, 1.0];
        let twice = [0.0, 0.0, 1.0, 1.0, 1.0, 1.0];
        let columns = table(&[&often_smallest, &often_largest, &twice]);
        assert_eq!(with_rare_minimum(&columns, 2), [1, 2]);
    }

    #[test]
    fn the_first_of_a_correlated_pair_goes_and_an_opposite_one_stays() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0];
        let like_a = [1.0, 2.1, 2.9, 4.0, 5.1, 7.0];
        let against_a = a.map(|value| -value);
        let other = [3.0, -1.0, 4.0, -1.0, 5.0, -9.0];
        let columns = table(&[&other, &a, &against_a, &like_a]);
        assert_eq!(without_correlated(&columns, 0.98), [0, 2, 3]);
        // Three that correlate with each other: the last one stays.
        assert_eq!(without_correlated(&table(&[&a, &like_a, &a]), 0.98), [2]);
    }
}
