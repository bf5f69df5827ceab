//! Where columns start when networks begin to be trained.

use serde::{Deserialize, Serialize};
use zhat::ar::ArEbm;
use zhat::gaussian_mixture::{EmConfig, GaussianMixture, Selection};
use zhat::named;
use zhat::rng::Streams;

use super::known::pool;
use super::rows::numbers;
use crate::error::Result;
use crate::prepare::Prepared;

/// Rows that lines are fitted to at most.
const MOST_ROWS: usize = 20_000;
/// Whole rows for each column from which lines are fitted to these alone: what a missing cell is filled with is on no line.
const WHOLE_ROWS: usize = 20;

/// Where columns start when networks begin to be trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// As standard normals, whatever the other columns are.
    #[default]
    Standard,
    /// Those that the columns before them nearly determine start on a straight line of these, where networks
    /// [can](zhat::ar::ArEbmConfig::can_start_on_lines); the others as standard normals.
    Lines,
}

named!(Start, "start", { Standard: "standard", Lines: "lines" });

impl Start {
    /// A model before its first step, as it is to start.
    pub(super) fn apply(
        self,
        model: ArEbm,
        data: &Prepared,
        threads: usize,
        streams: &Streams,
    ) -> Result<ArEbm> {
        if self == Self::Standard || !model.shape.can_start_on_lines() {
            return Ok(model);
        }
        let streams = streams.derive("lines", 0);
        let some = Selection { most_rows: MOST_ROWS, ..Selection::default() };
        let columns = data.columns.len();
        let mut rows = some.thin(&[&data.train], columns, &streams, "rows");
        let is_whole = |row: &&[f32]| row.iter().all(|value| !value.is_nan());
        let whole = rows.chunks_exact(columns).filter(is_whole);
        if whole.clone().count() >= WHOLE_ROWS * columns {
            rows = whole.flatten().copied().collect();
        }
        let rows = numbers(data, rows, &streams);
        let (features, rng) = (data.num_numbers(), &mut streams.stream("fit", 0, 0));
        let gaussian = pool(threads)?
            .install(|| GaussianMixture::fit(&rows, features, &EmConfig::new(1), rng))?;
        Ok(model.started_on_lines(&gaussian))
    }
}
