//! What a page shows of the data and of the model: test rows and draws, in the units of the data.

use zhat::rng::Streams;
use zhat_report::number::rounded;

use super::Finished;
use crate::data::{ColumnKind, Form, Kind};
use crate::density::Draws;
use crate::error::Result;
use crate::fitted::draws_like;
use crate::prepare::Prepared;

/// Draws of the model, at least and at most.
const DRAWS: [usize; 2] = [2_000, 20_000];
/// Cells of them that cost little whatever the model is.
const CHEAP_CELLS: usize = 60_000;
/// Draws for every test row: with so many nearly all of the chance in a comparison is that of the rows.
const DRAWS_PER_ROW: usize = 4;

/// How a day is written.
const DAY: &str = "2024-02-29";

/// How many draws stand beside so many test rows.
fn num_draws(test_rows: usize, columns: usize) -> usize {
    let [least, most] = DRAWS;
    (DRAWS_PER_ROW * test_rows).max(CHEAP_CELLS / columns).clamp(least, most)
}

/// Rows of the data and of the model.
pub(super) struct Shown<'a> {
    pub columns: &'a [String],
    pub data: Prepared,
    /// Test rows, with the noise of discrete columns.
    pub test: Vec<f32>,
    /// The same as they are in the file: draws of discrete columns are values too.
    pub as_read: Vec<f32>,
    pub draws: Draws,
    /// What the columns are; none where all are any numbers.
    pub kinds: Option<Vec<&'a ColumnKind>>,
}

impl<'a> Shown<'a> {
    /// Reads the data again and draws from the model; in words why the data cannot be read, if so.
    pub fn new(run: &'a Finished) -> Result<std::result::Result<Self, String>> {
        let density = run.fitted.density();
        let data = match run.fitted.own_data(&run.config) {
            Ok(data) => data,
            Err(error) if error.is_stop() => return Err(error),
            Err(error) => return Ok(Err(format!("The data could not be read again: {error}"))),
        };
        let streams = Streams::new(run.config.seed).derive("report", 0);
        let test = data.in_units(&data.test);
        // Where columns are given, draws have those of the test rows.
        let like = if test.is_empty() { &data.in_units(&data.train) } else { &test };
        let columns = density.columns().len();
        let number = num_draws(test.len() / columns, columns);
        let draws = draws_like(density, like, number, &streams)?;
        let as_read = data.test_as_read();
        let kinds = run.fitted.kinds();
        Ok(Ok(Self { columns: density.columns(), data, test, as_read, draws, kinds }))
    }

    /// A cell as the user writes it.
    pub fn text(&self, column: usize, value: f32) -> String {
        match &self.kinds {
            Some(kinds) => kinds[column].text(f64::from(value)),
            None => rounded(f64::from(value)),
        }
    }

    /// The words of a column, where it has some.
    pub fn levels(&self, column: usize) -> Option<&[String]> {
        match &self.kinds.as_ref()?[column].kind {
            Kind::Categorical { levels } => Some(levels),
            _ => None,
        }
    }

    /// Two values of a column of dates or times within a window, and the days they are.
    pub fn days(&self, column: usize, (low, high): (f64, f64)) -> Option<Vec<(f64, String)>> {
        let kind = self.kinds.as_ref()?[column];
        let day = |share: f64| {
            let value = (low + share * (high - low)).round();
            let text = kind.text(value);
            // What comes after the day has no room.
            (value, text.get(..DAY.len()).map_or(text.clone(), String::from))
        };
        matches!(kind.form, Form::Date | Form::Time { .. }).then(|| [0.2, 0.8].map(day).to_vec())
    }

    /// The columns that are numbers, and of the rows only those that are whole in them.
    pub fn numbers(&self, rows: &[f32]) -> (Vec<String>, Vec<f32>) {
        let columns: Vec<usize> =
            (0..self.columns.len()).filter(|&column| self.levels(column).is_none()).collect();
        let names = columns.iter().map(|&column| self.columns[column].clone()).collect();
        let mut values = Vec::with_capacity(rows.len());
        for row in rows.chunks_exact(self.columns.len()) {
            if columns.iter().all(|&column| !row[column].is_nan()) {
                values.extend(columns.iter().map(|&column| row[column]));
            }
        }
        (names, values)
    }

    /// Number of draws.
    pub fn num_draws(&self) -> usize {
        self.draws.rows.len() / self.columns.len()
    }

    /// Number of test rows.
    pub fn rows(&self) -> usize {
        self.test.len() / self.columns.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_many_for_many_rows_and_for_few_columns() {
        assert_eq!(num_draws(2_000, 2), 20_000);
        assert_eq!(num_draws(30, 4), 15_000);
        assert_eq!(num_draws(57, 30), 2_000);
        assert_eq!(num_draws(1_902, 10), 7_608);
        assert_eq!(num_draws(100_000, 6), 20_000);
    }
}
