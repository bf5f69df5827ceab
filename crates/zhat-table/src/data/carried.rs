//! Columns that are no part of a model, carried along as text: identifiers, names, dates.

/// Cells of some columns as they stand in a file, row after row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Their cells.
    pub cells: Vec<String>,
    /// Which column of the table each of them is; none where it is beside them.
    pub of_table: Vec<Option<usize>>,
    /// Words of the table that the model does not know: column, the first of them, and in how many cells one is.
    pub unknown: Vec<(String, String, usize)>,
}

impl Carried {
    /// The cells of one row.
    pub fn row(&self, row: usize) -> &[String] {
        &self.cells[row * self.columns.len()..][..self.columns.len()]
    }
}
