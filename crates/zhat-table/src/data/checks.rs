//! What is wrong, or looks wrong, with a table that could be read: errors first, then warnings.

use thiserror::Error as ThisError;

use super::error::{Error, Result};
use super::nearest::listing;
use super::table::{ColumnStatistics, Table};
use super::typed::typed;

mod discrete;
mod functions;
mod identifier;
mod outlier;
mod related;

pub(crate) use discrete::{Ties, ties};
use functions::function_of_others;
pub(crate) use identifier::{is_counter, is_identifier, is_named_so};
use outlier::outliers;
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
         Add noise as wide as its step with `dequantise` {}.",
        typed(&format!("{column}={step}"))
    )]
    Discrete { column: String, distinct: usize, step: f64 },

    /// A share of the rows have one value, in a column that is continuous otherwise.
    #[error(
        "column {column} is {value} in {:.1}% of the rows: its density diverges there. \
         Leave the column out with `columns`, or add noise with `dequantise` {}.",
        100.0 * share, typed(&format!("{column}=STEP"))
    )]
    Spike { column: String, value: f32, share: f64 },

    /// Noise of a step was added, and the column is discrete all the same.
    #[error(
        "column {column} is still discrete: noise of {step} is less than 32-bit floats can tell at its size, or far below its \
         own step. Add wider noise, or leave the column out with `columns`."
    )]
    StillDiscrete { column: String, step: f64 },

    #[error(
        "column {column} has {} far out ({furthest}): its standard deviation is {std_dev:.3e} with {} and {without:.3e} without, \
         so that all other rows are squeezed together. If it is a mistake, remove the row.",
        if *number == 1 { "one value".into() } else { format!("{number} values") },
        if *number == 1 { "it" } else { "them" }
    )]
    Outliers { column: String, number: usize, furthest: f32, std_dev: f64, without: f64 },

    /// The rank of the columns says so, not a pair of them.
    #[error(
        "column {column} is a sum of multiples of {of}, so their joint density diverges. Leave one of them out with `columns` {others}."
    )]
    Function { column: String, of: String, others: String },

    #[error(
        "column {column} is a whole number that no two rows share; if it is an identifier, leave it out with `columns` {others}."
    )]
    Identifier { column: String, others: String },

    #[error(
        "line 1 ({line}) is read as a row, but is whole numbers above others; if it holds the names of the columns, say `header` yes."
    )]
    NumericHeader { line: String },

    #[error(
        "{shared} of the {of} test rows are in the training part too: the test likelihood is in part that of rows known by heart. \
         Remove copies of rows from the table."
    )]
    SharedRows { shared: usize, of: usize },

    #[error(
        "{rows} validation rows are few: which model is best is mostly luck. Take at least {least} (data.split.validation), or let \
         cross-validation choose (validation.cross-validate-below above the number of rows)."
    )]
    FewValidationRows { rows: usize, least: usize },

    #[error("column {column} counts the rows; if it is an index, leave it out with `columns`.")]
    Counter { column: String },

    /// Standard deviation divided by the distance between floats at this size.
    #[error(
        "column {column} varies by only {floats_per_std_dev:.0} 32-bit floats around its mean: \
         subtract an offset before reading it."
    )]
    Precision { column: String, floats_per_std_dev: f64 },
}

impl Warning {
    /// The column whose density it is about: nothing to warn of where the column is given.
    pub(crate) fn of_density(&self) -> Option<&str> {
        match self {
            Self::Discrete { column, .. }
            | Self::Spike { column, .. }
            | Self::StillDiscrete { column, .. } => Some(column),
            _ => None,
        }
    }
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
    check_rows(file, rows, columns, dropped)?;
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
        let found = warning(table, index, statistics);
        // A value of a discrete column may be rare.
        if !matches!(found, Some(Warning::Discrete { .. })) {
            warnings.extend(outliers(table.column(index), statistics).map(|found| {
                Warning::Outliers {
                    column: table.columns()[index].clone(),
                    number: found.number,
                    furthest: found.furthest,
                    std_dev: statistics.std_dev,
                    without: found.without,
                }
            }));
        }
        warnings.extend(found);
    }
    if let Some((column, of)) = function_of_others(table, &statistics) {
        warnings.push(Warning::Function {
            column: table.columns()[column].clone(),
            of: listing(of.iter().map(|&other| table.columns()[other].as_str())),
            others: others(table, column),
        });
    }
    Ok(warnings)
}

/// An error for too few rows: two per column, so that a covariance can be estimated.
pub(super) fn check_rows(file: &str, rows: usize, columns: usize, dropped: usize) -> Result<()> {
    let needed = MINIMUM_ROWS.max(2 * columns);
    match rows < needed {
        true => Err(Error::TooFewRows { file: file.into(), rows, columns, needed, dropped }),
        false => Ok(()),
    }
}

/// An error for a column whose numbers differ, but not as 32-bit floats.
pub(super) fn check_collapse(file: &str, table: &Table, ranges: &[(f64, f64)]) -> Result<()> {
    for (index, (&(low, high), found)) in ranges.iter().zip(table.statistics()).enumerate() {
        if table.rows() > 1 && low < high && found.minimum >= found.maximum {
            return Err(Error::Collapsed {
                file: file.into(),
                name: table.columns()[index].clone(),
                low,
                high,
                value: found.minimum,
                gap: f64::from(found.minimum.abs()) * f64::from(f32::EPSILON),
                others: others(table, index),
            });
        }
    }
    Ok(())
}

/// The most important thing to say about one column.
fn warning(table: &Table, index: usize, statistics: &ColumnStatistics) -> Option<Warning> {
    let column = table.columns()[index].clone();
    if is_counter(table.column(index)) {
        return Some(Warning::Counter { column });
    }
    if is_identifier(&column, table.column(index)) {
        return Some(Warning::Identifier { column, others: others(table, index) });
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
pub(super) fn others(table: &Table, without: usize) -> String {
    let names: Vec<&str> = (0..table.dimension())
        .filter(|&index| index != without)
        .map(|index| table.columns()[index].as_str())
        .collect();
    match names.len() {
        0 => "NAME".into(),
        // A comma in a name would cut it.
        1..=12 if !names.iter().any(|name| name.contains(',')) => typed(&names.join(",")),
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

    #[test]
    fn outliers_totals_and_identifiers_are_warned_of() {
        let second = |row: usize| (row as f32 * 0.754_877).fract();
        let t = table(
            &[
                &|row| if row == 77 { 1e6 } else { spread(row) },
                &second,
                &|row| (row as f32 * 0.569_84).fract(),
                &|row| 2.0 - second(row) + (row as f32 * 0.569_84).fract(),
                &|row| ((row * 37) % 400) as f32,
            ],
            400,
        );
        let warnings = check("t", &t, 0).unwrap();
        assert!(matches!(&warnings[0], Warning::Outliers { number: 1, .. }), "{warnings:?}");
        assert!(warnings[0].to_string().contains("one value far out (1000000)"));
        assert!(matches!(&warnings[1], Warning::Identifier { column, .. } if column == "x5"));
        assert!(warnings[1].to_string().contains("`columns` x1,x2,x3,x4"));
        let total = warnings[2].to_string();
        assert!(total.contains("column x4 is a sum of multiples of x2, x3"), "{total}");
        assert_eq!(warnings.len(), 3);
    }

    #[test]
    fn what_is_to_be_typed_is_quoted_where_it_must_be() {
        let values = (0..800).map(|i| (i % 7) as f32 + (i % 2) as f32 * spread(i)).collect();
        let t = Table::new(vec!["a b".into(), "c".into()], values);
        let warnings = check("t", &t, 0).unwrap();
        assert!(warnings[0].to_string().contains("`dequantise` 'a b=1'"), "{}", warnings[0]);
        let constant = Table::new(vec!["a b".into(), "c".into()], vec![1.0, 2.0, 3.0, 2.0]);
        let message = check("t", &constant, 0).unwrap_err().to_string();
        assert!(message.contains("`columns` 'a b'"), "{message}");
    }
}
