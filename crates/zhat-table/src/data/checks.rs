//! What is wrong, or looks wrong, with a table that could be read: errors first, then warnings.

use thiserror::Error as ThisError;

use super::error::{Error, Result};
use super::table::{ColumnStatistics, Table};

mod discrete;
mod related;

use discrete::{Ties, ties};
use related::related;

/// No density is fitted to fewer rows: a tenth of them must still be a test set.
const MINIMUM_ROWS: usize = 20;

/// Something that does not stop a fit, but that its user should know.
#[derive(Debug, Clone, PartialEq, ThisError)]
#[allow(missing_docs, reason = "the message above each variant says what its fields are")]
#[non_exhaustive]
pub enum Warning {
    #[error("{dropped} of {of} rows were dropped for missing cells.")]
    DroppedRows { dropped: usize, of: usize },

    /// The step is the smallest gap where the values are not evenly spaced.
    #[error(
        "column {column} looks discrete ({distinct} values): its density diverges. \
         Add noise as wide as its step with `dequantise` {column}={step}."
    )]
    Discrete { column: String, distinct: usize, step: f64 },

    /// A share of the rows have one value, in a column that is continuous otherwise.
    #[error(
        "column {column} is {value} in {:.1}% of the rows: its density diverges there. \
         Leave the column out with `columns`, or add noise with `dequantise` {column}=STEP.",
        100.0 * share
    )]
    Spike { column: String, value: f32, share: f64 },

    #[error("column {column} counts the rows; if it is an index, leave it out with `columns`.")]
    Counter { column: String },

    /// Standard deviation divided by the distance between floats at this size.
    #[error(
        "column {column} varies by only {floats_per_std_dev:.0} 32-bit floats around its mean: \
         subtract an offset before reading it."
    )]
    Precision { column: String, floats_per_std_dev: f64 },
}

/// Checks a table for what makes a density impossible, and returns what makes it doubtful.
///
/// `file` is the name for messages; `dropped` is how many rows were left out in reading.
pub fn check(file: &str, table: &Table, dropped: usize) -> Result<Vec<Warning>> {
    let (rows, columns) = (table.rows(), table.dimension());
    let statistics = table.statistics();
    let constant = |s: &ColumnStatistics| s.minimum >= s.maximum;
    if rows > 1
        && let Some(index) = statistics.iter().position(constant)
    {
        return Err(Error::Constant {
            file: file.into(),
            name: table.columns()[index].clone(),
            value: statistics[index].minimum,
            others: others(table, index),
        });
    }
    // Two rows per column, so that a covariance can be estimated.
    let needed = MINIMUM_ROWS.max(2 * columns);
    if rows < needed {
        return Err(Error::TooFewRows { file: file.into(), rows, columns, needed, dropped });
    }
    if let Some((first, second, relation)) = related(table, &statistics) {
        return Err(Error::DuplicateColumns {
            file: file.into(),
            first: table.columns()[first].clone(),
            second: table.columns()[second].clone(),
            relation,
            others: others(table, second),
        });
    }
    let mut warnings = Vec::new();
    if dropped > 0 {
        warnings.push(Warning::DroppedRows { dropped, of: rows + dropped });
    }
    for (index, statistics) in statistics.iter().enumerate() {
        warnings.extend(warning(table, index, statistics));
    }
    Ok(warnings)
}

/// The most important thing to say about one column.
fn warning(table: &Table, index: usize, statistics: &ColumnStatistics) -> Option<Warning> {
    let column = table.columns()[index].clone();
    let mut cells = table.column(index);
    let first = f64::from(cells.next()?);
    if (1..).zip(cells).all(|(row, value)| f64::from(value) == first + f64::from(row)) {
        return Some(Warning::Counter { column });
    }
    let largest = statistics.minimum.abs().max(statistics.maximum.abs());
    let floats_per_std_dev = statistics.std_dev / (f64::from(largest) * f64::from(f32::EPSILON));
    // With fewer than a thousand floats to a standard deviation, rounding is seen before the shape is.
    if floats_per_std_dev < 1000.0 {
        return Some(Warning::Precision { column, floats_per_std_dev });
    }
    match ties(table.column(index)) {
        Ties::Few => None,
        Ties::Discrete { distinct, step } => Some(Warning::Discrete { column, distinct, step }),
        Ties::Spike { value, share } => Some(Warning::Spike { column, value, share }),
    }
}

/// The columns without one, as they would be typed, if they fit on a line.
fn others(table: &Table, without: usize) -> String {
    let names: Vec<&str> = (0..table.dimension())
        .filter(|&index| index != without)
        .map(|index| table.columns()[index].as_str())
        .collect();
    match names.len() {
        0 => "NAME".into(),
        1..=12 => names.join(","),
        _ => format!("(all but {})", table.columns()[without]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: &[&dyn Fn(usize) -> f32], rows: usize) -> Table {
        let names = (1..=columns.len()).map(|i| format!("x{i}")).collect();
        let values = (0..rows).flat_map(|row| columns.iter().map(move |f| f(row))).collect();
        Table::new(names, values)
    }

    /// Evenly spread and never the same twice.
    fn spread(row: usize) -> f32 {
        (row as f32 * 0.618_034).fract()
    }

    #[test]
    fn a_good_table_gives_no_warning() {
        let good = table(&[&spread, &|row| (row as f32 * 0.754_877).fract()], 500);
        assert_eq!(check("t", &good, 0).unwrap(), []);
    }

    #[test]
    fn constant_duplicate_and_dependent_columns_are_errors() {
        let message = |t: Table| check("t", &t, 0).unwrap_err().to_string();
        let constant = message(table(&[&spread, &|_| 3.0], 50));
        assert!(constant.contains("column x2: every row is 3"), "{constant}");
        assert!(constant.contains("`columns` x1"), "{constant}");
        let equal = message(table(&[&spread, &spread], 50));
        assert!(equal.contains("columns x1 and x2 are equal"), "{equal}");
        let line = message(table(&[&spread, &|row| 32.0 - 1.8 * spread(row)], 50));
        assert!(line.contains("lie on a line"), "{line}");
    }

    #[test]
    fn too_few_rows_say_how_many_are_needed() {
        let few = check("t", &table(&[&spread], 7), 5).unwrap_err().to_string();
        assert!(few.contains("7 rows") && few.contains("at least 20") && few.contains("5 were"));
    }

    #[test]
    fn discrete_spiked_counting_and_coarse_columns_are_warned_of() {
        let t = table(
            &[
                &|row| (spread(row) * 7.0).floor() * 0.25 + 1.0,
                &|row| if row % 10 == 0 { 0.0 } else { spread(row) },
                &|row| row as f32 + 5.0,
                &|row| 1e6 + spread(row * 3),
            ],
            400,
        );
        let warnings = check("t", &t, 0).unwrap();
        assert!(
            matches!(&warnings[0], Warning::Discrete { distinct: 7, step, .. } if *step == 0.25)
        );
        assert!(matches!(&warnings[1], Warning::Spike { value: 0.0, .. }), "{:?}", warnings[1]);
        assert!(matches!(&warnings[2], Warning::Counter { .. }));
        assert!(matches!(&warnings[3], Warning::Precision { .. }));
        assert!(warnings[0].to_string().contains("`dequantise` x1=0.25"));
    }
}
