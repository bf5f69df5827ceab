//! A table of numbers: named columns, and rows of 32-bit floats one after the other.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::carried::Carried;
use super::error::{Error, Result};
use super::nearest::{listing, nearest};

/// Named columns of numbers, row by row in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    columns: Vec<String>,
    values: Vec<f32>,
    rows: usize,
    carried: Carried,
}

/// What one column looks like; missing cells (NaN) are counted and set aside.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ColumnStatistics {
    /// Cells that are NaN.
    pub missing: usize,
    /// Mean of the others.
    pub mean: f64,
    /// Standard deviation of the others (divided by their number, not by one less).
    pub std_dev: f64,
    /// Smallest of the others.
    pub minimum: f32,
    /// Largest of the others.
    pub maximum: f32,
}

impl Table {
    /// A table from its values, row after row.
    ///
    /// # Panics
    /// If there are no columns, or the values do not fill whole rows.
    pub fn new(columns: Vec<String>, values: Vec<f32>) -> Self {
        assert!(!columns.is_empty(), "a table has at least one column");
        let rows = values.len() / columns.len();
        assert_eq!(rows * columns.len(), values.len(), "the values fill whole rows");
        Self { columns, values, rows, carried: Carried::default() }
    }

    /// The same with columns beside it, as many rows of them.
    pub(crate) fn with_carried(self, carried: Carried) -> Self {
        Self { carried, ..self }
    }

    /// Columns of the file that are carried along and are no part of the table; most often none.
    pub fn carried(&self) -> &Carried {
        &self.carried
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn dimension(&self) -> usize {
        self.columns.len()
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All values, to be changed in place.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// All values, without the names.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// One row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &[f32] {
        assert!(row < self.rows, "row {row} of a table of {} rows", self.rows);
        &self.values[row * self.dimension()..][..self.dimension()]
    }

    /// The rows in order.
    pub fn iter_rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.dimension())
    }

    /// The values of one column from the first row to the last.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn column(&self, column: usize) -> impl ExactSizeIterator<Item = f32> + Clone {
        assert!(column < self.dimension(), "column {column} of {}", self.dimension());
        self.values.chunks_exact(self.dimension()).map(move |row| row[column])
    }

    /// The cells of a column that are not missing. A list that grows as it is read takes three times the room.
    pub(crate) fn known_cells(&self, column: usize) -> Vec<f32> {
        let mut known = Vec::with_capacity(self.rows);
        known.extend(self.column(column).filter(|cell| !cell.is_nan()));
        known
    }

    /// Where a named column stands, from 0.
    pub fn column_index(&self, name: &str) -> Result<usize> {
        self.columns.iter().position(|column| column == name).ok_or_else(|| Error::UnknownColumn {
            file: "the table".into(),
            name: name.into(),
            nearest: nearest(name, self.columns.iter().map(String::as_str)),
            available: listing(self.columns.iter().map(String::as_str)),
        })
    }

    /// A table of some of the columns, in the order given.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn select_columns(&self, columns: &[usize]) -> Table {
        let mut values = Vec::with_capacity(self.rows * columns.len());
        for row in self.iter_rows() {
            values.extend(columns.iter().map(|&column| row[column]));
        }
        Table::new(columns.iter().map(|&column| self.columns[column].clone()).collect(), values)
    }

    /// A table of some of the rows, in the order given.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn select_rows(&self, rows: &[usize]) -> Table {
        let mut values = Vec::with_capacity(rows.len() * self.dimension());
        for &row in rows {
            values.extend_from_slice(self.row(row));
        }
        Table::new(self.columns.clone(), values)
    }

    /// The rows of three parts, which are all rows there are, each in the order given: the rows are moved, and not copied, so that a
    /// long table is there once.
    ///
    /// # Panics
    /// If the parts are not all rows.
    pub(crate) fn into_parts(mut self, parts: [&[usize]; 3]) -> [Table; 3] {
        let ([train, validation, test], width) = (parts, self.dimension());
        let of_train = train.len();
        let before_test = of_train + validation.len();
        assert_eq!(before_test + test.len(), self.rows, "every row is in a part");
        // The row that belongs there.
        let row_at = |at: usize| match at {
            at if at < of_train => train[at],
            at if at < before_test => validation[at - of_train],
            at => test[at - before_test],
        };
        let mut is_there = vec![false; self.rows];
        for first in 0..self.rows {
            // Around a cycle of the permutation: each row to where it belongs, and the first one last.
            let held = (!is_there[first]).then(|| self.row(first).to_vec());
            let mut at = first;
            while let (Some(held), false) = (&held, is_there[at]) {
                is_there[at] = true;
                let from = row_at(at);
                match from == first {
                    true => self.values[at * width..][..width].copy_from_slice(held),
                    false => self.values.copy_within(from * width..(from + 1) * width, at * width),
                }
                at = from;
            }
        }
        let test = self.values.split_off(before_test * width);
        let validation = self.values.split_off(of_train * width);
        [self.values, validation, test].map(|values| Table::new(self.columns.clone(), values))
    }

    /// Mean, standard deviation, extremes and missing cells of every column, summed in 64 bits.
    pub fn statistics(&self) -> Vec<ColumnStatistics> {
        let dimension = self.dimension();
        let (mut missing, mut sums) = (vec![0; dimension], vec![0.0; dimension]);
        let (mut minima, mut maxima) =
            (vec![f32::INFINITY; dimension], vec![f32::NEG_INFINITY; dimension]);
        for row in self.iter_rows() {
            for (column, &value) in row.iter().enumerate() {
                if value.is_nan() {
                    missing[column] += 1;
                    continue;
                }
                sums[column] += f64::from(value);
                minima[column] = minima[column].min(value);
                maxima[column] = maxima[column].max(value);
            }
        }
        let counts: Vec<f64> = missing.iter().map(|&m| (self.rows - m) as f64).collect();
        let means: Vec<f64> = sums.iter().zip(&counts).map(|(sum, count)| sum / count).collect();
        // A second pass, around the mean: one pass would cancel where the mean is far from 0.
        let mut squares = vec![0.0; dimension];
        for row in self.iter_rows() {
            for (column, &value) in row.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
                squares[column] += (f64::from(value) - means[column]).powi(2);
            }
        }
        (0..dimension)
            .map(|column| ColumnStatistics {
                missing: missing[column],
                mean: means[column],
                std_dev: (squares[column] / counts[column]).sqrt(),
                minimum: minima[column],
                maximum: maxima[column],
            })
            .collect()
    }

    /// SHA-256 of names, shape and values, in hexadecimal: the same on every machine and for every format.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"zhat-table 1");
        hash.update((self.rows as u64).to_le_bytes());
        hash.update((self.dimension() as u64).to_le_bytes());
        for name in &self.columns {
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name.as_bytes());
        }
        let mut bytes = Vec::with_capacity(4 * 4096);
        for values in self.values.chunks(4096) {
            bytes.clear();
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            hash.update(&bytes);
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_moved_into_parts_are_those_that_would_be_copied() {
        let rows = 501;
        let values = (0..2 * rows).map(|value| value as f32).collect();
        let table = Table::new(vec!["a".into(), "b".into()], values);
        let mut order: Vec<usize> = (0..rows).map(|row| (row * 200 + 7) % rows).collect();
        // With rows that stay, and one that changes places with another.
        (order[3], order[9]) = (order[9], order[3]);
        let parts = [&order[..300], &order[300..420], &order[420..]];
        let copied = parts.map(|part| table.select_rows(part));
        assert_eq!(table.into_parts(parts), copied);
    }

    fn table() -> Table {
        Table::new(vec!["a".into(), "b".into()], vec![1.0, 10.0, 2.0, f32::NAN, 3.0, 30.0])
    }

    #[test]
    fn statistics_set_missing_cells_aside() {
        let statistics = table().statistics();
        assert_eq!((statistics[0].mean, statistics[0].missing), (2.0, 0));
        assert!((statistics[0].std_dev - (2.0f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!((statistics[1].mean, statistics[1].std_dev), (20.0, 10.0));
        assert_eq!((statistics[1].minimum, statistics[1].maximum), (10.0, 30.0));
        assert_eq!(statistics[1].missing, 1);
    }

    #[test]
    fn columns_and_rows_are_selected_in_the_order_given() {
        let selected = table().select_columns(&[1, 0]).select_rows(&[2, 0]);
        assert_eq!(selected.columns(), ["b", "a"]);
        assert_eq!(selected.values(), [30.0, 3.0, 10.0, 1.0]);
        assert!(table().column_index("c").unwrap_err().to_string().contains("column c"));
    }

    #[test]
    fn the_hash_is_pinned_and_sees_names_values_and_shape() {
        let hash = Table::new(vec!["a".into()], vec![1.0, 2.0]).hash();
        assert_eq!(hash, "4dd87d75d7f156840838111345d72810fd4c6d51d07431a9976b83728f2c4b9f");
        assert_ne!(hash, Table::new(vec!["b".into()], vec![1.0, 2.0]).hash());
        assert_ne!(hash, Table::new(vec!["a".into()], vec![1.0, 2.5]).hash());
        assert_ne!(hash, Table::new(vec!["a".into(), "".into()], vec![1.0, 2.0]).hash());
    }
}
