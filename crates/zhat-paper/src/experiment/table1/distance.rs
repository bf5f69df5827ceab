//! The 2-Wasserstein distance between a model and the test rows, estimate by estimate.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zhat::evaluate::match_points;
use zhat::rng::{Stream, Streams};
use zhat_table::density::Density;
use zhat_table::fit::mean_and_error;
use zhat_table::{Result, TableError};

use super::approach::Approach;
use super::published::as_published;
use super::{Bench, Event, Observer};

/// Independent estimates of a distance; each one draws both the data and the model's points anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distances {
    /// Points on each side.
    pub points: usize,
    /// Particles of SMC from which the model's points are drawn by weight, or the points themselves where draws are exact; 0
    /// where there is no model.
    pub particles: usize,
    /// The estimates, as true distances in standardised units.
    pub values: Vec<f64>,
}

impl Distances {
    /// Mean and standard error.
    pub fn summary(&self) -> (f64, f64) {
        mean_and_error(&self.values)
    }

    /// The same on the scale of the authors' program.
    pub fn as_published(&self) -> (f64, f64) {
        let (mean, error) = self.summary();
        (as_published(mean, self.points), as_published(error, self.points))
    }
}

impl Bench<'_> {
    /// The distances of a cell's model; `None` if it was told to stop.
    pub(super) fn distances(
        &self,
        criterion: Approach,
        density: &dyn Density,
        observer: &mut Observer,
    ) -> Result<Option<Distances>> {
        let path = self.cell_directory(criterion).join("wasserstein.json");
        let particles = match density.is_normalised() {
            true => self.settings.points_of(self.set),
            false => self.settings.particles,
        };
        let nothing = vec![f32::NAN; density.columns().len()];
        self.estimates(&path, particles, observer, |streams, repeat, points| {
            let cloud = density.draw(&nothing, particles, &streams.derive("cloud", repeat))?;
            Ok(cloud.sample(points, &mut streams.stream("draws", repeat, 0)).rows)
        })
    }

    /// The distances of validation rows in place of a model's draws: what a perfect model would have.
    pub(super) fn floor(&self, observer: &mut Observer) -> Result<Option<Distances>> {
        let path = self.directory.join("wasserstein-of-data.json");
        self.estimates(&path, 0, observer, |streams, repeat, points| {
            let mut rng = streams.stream("validation-rows", repeat, 0);
            Ok(self.draw(&self.data.validation, points, &mut rng))
        })
    }

    /// As many estimates as were asked for, each written when it is known; what is known already is not computed again.
    fn estimates(
        &self,
        path: &Path,
        particles: usize,
        observer: &mut Observer,
        mut draw: impl FnMut(&Streams, u64, usize) -> Result<Vec<f32>>,
    ) -> Result<Option<Distances>> {
        let points = self.settings.points_of(self.set);
        let known = self
            .known::<Distances>(path)?
            .filter(|known| (known.points, known.particles) == (points, particles));
        let mut known = known.unwrap_or(Distances { points, particles, values: Vec::new() });
        // The same test rows for all criteria, and other particles than the likelihood's.
        let streams = Streams::new(self.settings.seed).derive("wasserstein", 0);
        let (number, features) = (self.settings.estimates, self.data.columns.len());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.workers.threads()).build();
        let pool = pool.map_err(|error| TableError::Config { reason: error.to_string() })?;
        while known.values.len() < number {
            let first = known.values.len();
            observer(&Event::Distance(first, number));
            if self.is_stopped() {
                return Ok(None);
            }
            // All ranks draw together, and each has a matching of its own.
            let mut own = Vec::new();
            for repeat in first..number.min(first + self.workers.size()) {
                let is_own = repeat == first + self.workers.rank();
                let repeat = repeat as u64;
                let drawn = draw(&streams, repeat, points)?;
                if !is_own {
                    continue;
                }
                let mut rng = streams.stream("rows", repeat, 0);
                let rows = self.draw(&self.data.test, points, &mut rng);
                match pool.install(|| match_points(&rows, &drawn, features, self.watch)) {
                    Err(zhat::Error::Stopped) => {}
                    matching => own.push(matching?.distance),
                }
            }
            if self.is_stopped() {
                return Ok(None);
            }
            known.values.extend(self.workers.concat(own));
            self.keep(path, &known)?;
        }
        known.values.truncate(number);
        Ok(Some(known))
    }

    /// Rows of a part, with replacement as in the paper.
    fn draw(&self, part: &[f32], number: usize, rng: &mut Stream) -> Vec<f32> {
        let features = self.data.columns.len();
        let rows = part.len() / features;
        let mut drawn = Vec::with_capacity(number * features);
        for _ in 0..number {
            drawn.extend_from_slice(&part[rng.index(rows) * features..][..features]);
        }
        drawn
    }

    /// Where a cell is.
    pub(super) fn cell_directory(&self, criterion: Approach) -> PathBuf {
        self.directory.join(criterion.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_error_is_that_of_the_mean() {
        let distances = Distances { points: 200, particles: 1, values: vec![1.0, 2.0, 3.0] };
        let (mean, error) = distances.summary();
        assert_eq!(mean, 2.0);
        assert!((error - 1.0 / 3f64.sqrt()).abs() < 1e-12);
        // sqrt(200 / 2) = 10.
        assert_eq!(distances.as_published().0, 20.0);
    }
}
