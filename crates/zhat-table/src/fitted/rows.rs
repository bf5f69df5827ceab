//! The rows that a model is assessed on: those that its run kept for the test, or others.

use rand::Rng;
use zhat::rng::Streams;
use zhat::watch::Watch;

use super::Fitted;
use crate::data::{Asked, Builtin, Loaded, Missing, ReadOptions, Source, Table};
use crate::density::check_given;
use crate::error::{Result, TableError};

/// Rows for an assessment, in the units of the data.
#[derive(Debug, Clone, PartialEq)]
pub struct TestRows {
    /// The rows.
    pub test: Vec<f32>,
    /// Rows of the same data that are independent of them.
    pub other: Option<Vec<f32>>,
    /// Log-density of every test row under the truth, where it is known.
    pub truth: Option<Vec<f64>>,
    /// What each test row counts, where a column says it.
    pub weights: Option<Vec<f64>>,
}

impl Fitted {
    /// The test part of the run's own data, read again; the training part goes with it.
    pub fn own_rows(&self) -> Result<TestRows> {
        let config = self.config()?;
        let data = self.own_data(&config)?;
        self.check_data(&data)?;
        if data.test.is_empty() {
            let reason =
                "the run has kept no rows for the test (data.split.test is 0); name a file of rows";
            return Err(TableError::config(reason.into()));
        }
        let (test, other) = (data.test_as_read(), Some(data.train_as_read()));
        let weights = data.weights.map(|[.., test]| test);
        Ok(TestRows { test, other, truth: data.truth_of_test, weights })
    }

    /// The rows of a file that need not have all of the model's columns: what it has not is missing. What the model is given has to be
    /// there.
    ///
    /// # Shapes
    /// - output: `[n, columns]`
    pub fn given_rows(&self, source: &str, options: &ReadOptions) -> Result<Vec<f32>> {
        let Source::File(path) = Source::parse(source)? else {
            return Err(TableError::setting("given-file", source, "a file"));
        };
        let options =
            ReadOptions { partial: true, missing: Missing::Keep, ..self.read_options(options) };
        let table = crate::data::read(&path, &options)?.table;
        self.note_unknown(&table.carried().unknown);
        let columns = &self.card.columns;
        let places: Vec<Option<usize>> = columns
            .iter()
            .map(|name| table.columns().iter().position(|known| known == name))
            .collect();
        let rows: Vec<f32> = table
            .iter_rows()
            .flat_map(|row| places.iter().map(|place| place.map_or(f32::NAN, |at| row[at])))
            .collect();
        for (at, row) in rows.chunks_exact(columns.len()).enumerate() {
            check_given(&*self.density, row).map_err(|error| {
                TableError::config(format!("{}, row {}: {error}", path.display(), at + 1))
            })?;
        }
        Ok(rows)
    }

    /// All rows of a file or a built-in set.
    pub fn rows_of(&self, source: &str, options: &ReadOptions, seed: u64) -> Result<TestRows> {
        let options = self.read_options(options);
        // Not the stream that a fit draws its data from.
        let rng = &mut Streams::new(seed).stream("fresh-data", 0, 0);
        let (given, watch) = (self.density.given(), self.density.watch());
        let (table, truth) = drawn(source, &options, given, rng, watch)?;
        self.note_unknown(&table.carried().unknown);
        Ok(TestRows { test: table.into_values(), other: None, truth, weights: None })
    }
}

/// All rows of a file or a built-in set as a model reads them, and their log-densities under the truth where it is known: of the other
/// columns given the first few.
pub(super) fn drawn(
    source: &str,
    options: &ReadOptions,
    given: usize,
    rng: &mut impl Rng,
    watch: &Watch,
) -> Result<(Table, Option<Vec<f64>>)> {
    let loaded = Source::parse(source)?.load_watched(options, &Asked::default(), rng, watch)?;
    let Loaded { table, truth, .. } = loaded;
    let given: Vec<usize> = (0..given).collect();
    let truth = truth.and_then(|truth| log_densities(&*truth, table.values(), &given));
    Ok((table, truth))
}

/// Log-densities of rows given some of their columns, in the units of the data, where they are known.
pub(crate) fn log_densities(
    truth: &dyn Builtin,
    values: &[f32],
    given: &[usize],
) -> Option<Vec<f64>> {
    let features = truth.dimension();
    let observed: Vec<bool> = (0..features).map(|column| given.contains(&column)).collect();
    let of_row = |row: &[f32]| {
        let row: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
        Some(truth.log_density(&row) - truth.log_marginal(&row, &observed)?)
    };
    values.chunks_exact(features).map(of_row).collect()
}
