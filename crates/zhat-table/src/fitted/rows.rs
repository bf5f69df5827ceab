//! The rows that a model is assessed on: those that its run kept for the test, or others.

use zhat::rng::Streams;

use super::Fitted;
use crate::data::{Asked, Builtin, Loaded, ReadOptions, Source};
use crate::error::{Result, TableError};

/// Rows for an assessment, in the units of the data.
#[derive(Debug, Clone, PartialEq)]
pub struct TestRows {
    /// The rows.
    pub test: Vec<f32>,
    /// Rows of the same data that are independent of them.
    pub other: Option<Vec<f32>>,
    /// Mean log-density of the test rows under the truth, where it is known.
    pub truth: Option<f64>,
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
        Ok(TestRows { test, other, truth: data.truth_of_test })
    }

    /// All rows of a file or a built-in set.
    pub fn rows_of(&self, source: &str, options: &ReadOptions, seed: u64) -> Result<TestRows> {
        let options = self.read_options(options);
        // Not the stream that a fit draws its data from.
        let mut rng = Streams::new(seed).stream("fresh-data", 0, 0);
        let (source, none, watch) =
            (Source::parse(source)?, Asked::default(), self.density.watch());
        let Loaded { table, truth, .. } = source.load_watched(&options, &none, &mut rng, watch)?;
        self.note_unknown(&table.carried().unknown);
        let features = table.dimension();
        let test = table.into_values();
        let truth = truth.map(|truth| mean_log_density(&*truth, &test, features));
        Ok(TestRows { test, other: None, truth })
    }
}

/// Mean log-density of rows, in the units of the data.
pub(crate) fn mean_log_density(truth: &dyn Builtin, values: &[f32], features: usize) -> f64 {
    let rows = values.chunks_exact(features);
    let number = rows.len() as f64;
    let log_density =
        |row: &[f32]| truth.log_density(&row.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
    rows.map(log_density).sum::<f64>() / number
}
