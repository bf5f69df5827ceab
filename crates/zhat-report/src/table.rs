//! A table with headers and aligned columns: plain text for the terminal, and the source of a page's HTML table.

use std::fmt;

/// On which side the cells of a column are flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// Rows of text under headers; its `Display` is the aligned plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with no rows yet.
    pub fn new<H: Into<String>>(columns: impl IntoIterator<Item = (H, Align)>) -> Self {
        Self {
            columns: columns.into_iter().map(|(header, align)| (header.into(), align)).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row whose cells bring their headers, words before numbers; the first row of a table without columns gives them.
    pub fn entry<H: Into<String>>(
        &mut self,
        words: impl IntoIterator<Item = (H, String)>,
        numbers: impl IntoIterator<Item = (H, String)>,
    ) -> &mut Self {
        let words = words.into_iter().map(|cell| (cell, Align::Left));
        let all = words.chain(numbers.into_iter().map(|cell| (cell, Align::Right)));
        let (columns, cells): (Vec<_>, Vec<_>) =
            all.map(|((header, cell), align)| ((header.into(), align), cell)).unzip();
        if self.columns.is_empty() {
            self.columns = columns;
        }
        self.row(cells)
    }

    /// Adds a row; missing cells are empty.
    ///
    /// # Panics
    /// If there are more cells than columns.
    pub fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) -> &mut Self {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        let columns = self.columns.len();
        assert!(cells.len() <= columns, "a row of {} cells in {columns} columns", cells.len());
        cells.resize(columns, String::new());
        self.rows.push(cells);
        self
    }

    /// Headers and alignments.
    pub fn columns(&self) -> &[(String, Align)] {
        &self.columns
    }

    /// The rows, each with one cell per column.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| row[column].chars().count());
                cells.chain([self.columns[column].0.chars().count()]).max().unwrap_or(0)
            })
            .collect();
        let headers = self.columns.iter().map(|(header, _)| header.clone()).collect::<Vec<_>>();
        let rule = widths.iter().map(|&width| "-".repeat(width)).collect::<Vec<_>>();
        // A list of names and values has no header, and needs no rule below it.
        let head =
            if headers.iter().all(String::is_empty) { vec![] } else { vec![&headers, &rule] };
        for row in head.into_iter().chain(&self.rows) {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .zip(&self.columns)
                .map(|((cell, &width), (_, align))| match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                })
                .collect();
            writeln!(formatter, "{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_characters_and_not_by_bytes() {
        let mut table = Table::new([("arm", Align::Left), ("median", Align::Right)]);
        table.row(["q = p_θ", "0.5"]).row(["∞", "12.25"]);
        assert_eq!(
            table.to_string(),
            "arm      median\n-------  ------\nq = p_θ     0.5\n∞         12.25\n"
        );
    }

    #[test]
    fn a_table_without_headers_begins_with_its_first_row() {
        let mut table = Table::new([("", Align::Left), ("", Align::Right)]);
        table.row(["rows", "12"]).row(["log Z", "0.5"]);
        assert_eq!(table.to_string(), "rows    12\nlog Z  0.5\n");
    }

    #[test]
    fn the_first_entry_gives_the_columns() {
        let mut table = Table::default();
        for (name, value) in [("a", "1"), ("b", "2")] {
            table.entry([("arm", name.to_string())], [("median", value.to_string())]);
        }
        assert_eq!(table.columns()[1], ("median".to_string(), Align::Right));
        assert_eq!(table.rows(), [["a", "1"], ["b", "2"]]);
    }

    #[test]
    fn a_short_row_is_filled_up() {
        let mut table = Table::new([("a", Align::Left), ("b", Align::Right)]);
        table.row(["only"]);
        assert_eq!(table.rows(), [["only".to_string(), String::new()]]);
    }
}
