//! 2-Wasserstein distances between rows of the model and rows of the data, beside those between rows of the data alone.

use serde::Serialize;
use zhat::evaluate::{match_points, sliced_wasserstein};
use zhat::named;
use zhat::rng::{Stream, Streams};

use super::sample::draws_like;
use crate::density::Density;
use crate::error::{Result, TableError};
use crate::fit::mean_and_error;

/// With more rows than this the distance is sliced: the assignment problem grows with their cube.
pub const MOST_FOR_EXACT: usize = 10_000;
/// Directions of a sliced distance.
const PROJECTIONS: usize = 500;
/// Particles for each row that is drawn.
const PARTICLES_PER_DRAW: usize = 10;

/// How a distance was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DistanceKind {
    /// By the optimal assignment of all rows.
    Exact,
    /// Along random directions.
    Sliced,
}

named!(DistanceKind, "distance", { Exact: "exact", Sliced: "sliced" });

/// Distances in standard units, each the mean of independent estimates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distances {
    /// How they were computed.
    pub kind: DistanceKind,
    /// Rows on each side.
    pub rows: usize,
    /// Between the model and the data.
    pub model: f64,
    /// Its standard error over the estimates.
    pub se_model: f64,
    /// Between two parts of the data: what a perfect model would have.
    pub data: Option<f64>,
    /// Its standard error.
    pub se_data: Option<f64>,
    /// Number of estimates.
    pub estimates: usize,
}

/// Distances between `number` rows of the model and as many of `test`, and of `other` and `test`.
///
/// Both sides are drawn anew for every estimate. `other` is data that is independent of `test`, such as the training part.
pub fn distances(
    density: &dyn Density,
    test: &[f32],
    other: Option<&[f32]>,
    number: usize,
    estimates: usize,
    streams: &Streams,
) -> Result<Distances> {
    let features = density.columns().len();
    let available = test.len() / features;
    if number == 0 || number > available {
        let expected = format!("between 1 and the number of rows, {available}");
        return Err(TableError::setting("rows of a distance", number, expected));
    }
    let other = other.filter(|rows| rows.len() >= number * features);
    let kind = if number > MOST_FOR_EXACT { DistanceKind::Sliced } else { DistanceKind::Exact };
    let watch = density.watch();
    let distance = |a: &[f32], b: &[f32], mut directions: Stream| {
        let [a, b] = [a, b].map(|rows| density.standardiser().standard(rows));
        density.pool().install(|| match kind {
            DistanceKind::Exact => Ok(match_points(&a, &b, features, watch)?.distance),
            DistanceKind::Sliced => {
                sliced_wasserstein(&a, &b, features, PROJECTIONS, &mut directions)
            }
        })
    };
    let (mut of_model, mut of_data) = (Vec::new(), Vec::new());
    for estimate in 0..estimates as u64 {
        watch.check()?;
        let stream = |purpose| streams.stream(purpose, estimate, 0);
        let data = choose(test, features, number, stream("test"));
        let streams = streams.derive("wasserstein", estimate);
        let model = match density.given() {
            0 => {
                let nothing = vec![f32::NAN; features];
                let cloud = density.draw(&nothing, PARTICLES_PER_DRAW * number, &streams)?;
                cloud.sample(number, &mut stream("draws")).rows
            }
            // Of rows that are not those it is held against, where there are others.
            _ => draws_like(density, other.unwrap_or(&data), number, &streams)?.rows,
        };
        of_model.push(distance(&model, &data, stream("directions"))?);
        if let Some(other) = other {
            let other = choose(other, features, number, stream("other"));
            of_data.push(distance(&other, &data, stream("directions"))?);
        }
    }
    let (model, se_model) = mean_and_error(&of_model);
    let (data, se_data) = other.map(|_| mean_and_error(&of_data)).unzip();
    Ok(Distances { kind, rows: number, model, se_model, data, se_data, estimates })
}

/// Some of the rows, without repetition.
fn choose(rows: &[f32], features: usize, number: usize, mut rng: Stream) -> Vec<f32> {
    let order = rng.permutation(rows.len() / features);
    order[..number].iter().flat_map(|&row| &rows[row * features..][..features]).copied().collect()
}
