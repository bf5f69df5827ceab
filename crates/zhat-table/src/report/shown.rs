//! What a page shows of the data and of the model: test rows and draws, in the units of the data.

use zhat::rng::Streams;

use super::Finished;
use crate::density::Draws;
use crate::error::Result;
use crate::prepare::{Prepared, prepare_watched};

/// Draws of the model.
pub(super) const DRAWS: usize = 20_000;

/// Rows of the data and of the model.
pub(super) struct Shown<'a> {
    pub columns: &'a [String],
    pub data: Prepared,
    /// Test rows, with the noise of discrete columns.
    pub test: Vec<f32>,
    /// The same as they are in the file: draws of discrete columns are values too.
    pub as_read: Vec<f32>,
    pub draws: Draws,
}

impl<'a> Shown<'a> {
    /// Reads the data again and draws from the model; in words why the data cannot be read, if so.
    pub fn new(run: &'a Finished) -> Result<std::result::Result<Self, String>> {
        let density = run.fitted.density();
        let data = match prepare_watched(&run.config, density.watch()) {
            Ok(data) => data,
            Err(error) if error.is_stop() => return Err(error),
            Err(error) => return Ok(Err(format!("The data could not be read again: {error}"))),
        };
        let streams = Streams::new(run.config.seed).derive("report", 0);
        let nothing = vec![f32::NAN; density.columns().len()];
        let cloud = density.draw(&nothing, DRAWS, &streams)?;
        let draws = cloud.sample(DRAWS, &mut streams.stream("draws", 0, 0));
        let test = data.in_units(&data.test);
        let as_read = data.test_as_read();
        Ok(Ok(Self { columns: density.columns(), data, test, as_read, draws }))
    }

    /// Number of test rows.
    pub fn rows(&self) -> usize {
        self.test.len() / self.columns.len()
    }
}
