//! The 2-Wasserstein distance between a model and the test rows, estimate by estimate.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zhat::ar::Evaluator;
use zhat::evaluate::wasserstein;
use zhat::rng::Streams;
use zhat::smc::{ResampleWhen, Resampling, SmcConfig};
use zhat_table::Result;
use zhat_table::fit::Criterion;

use super::published::as_published;
use super::{Bench, Event, Watch, name, read_json, write_json};

/// Independent estimates of a distance; each one draws both the data and the model's points anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distances {
    /// Points on each side.
    pub points: usize,
    /// Particles of SMC from which the model's points are drawn by weight.
    pub particles: usize,
    /// The estimates, as true distances in standardised units.
    pub values: Vec<f64>,
}

impl Distances {
    /// Mean and standard error.
    pub fn summary(&self) -> (f64, f64) {
        let number = self.values.len() as f64;
        let mean = self.values.iter().sum::<f64>() / number;
        let squares: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        (mean, (squares / (number - 1.0) / number).sqrt())
    }

    /// The same on the scale of the authors' program.
    pub fn as_published(&self) -> (f64, f64) {
        let (mean, error) = self.summary();
        (as_published(mean, self.points), as_published(error, self.points))
    }
}

impl Bench<'_> {
    /// The distances of a cell's model; `None` if it was told to stop. What is known already is not computed again.
    pub(super) fn distances(
        &self,
        criterion: Criterion,
        evaluator: &Evaluator,
        watch: &mut dyn Watch,
    ) -> Result<Option<Distances>> {
        let path = self.cell_directory(criterion).join("wasserstein.json");
        let (points, particles) = (self.settings.points_of(self.set), self.settings.particles);
        let known = read_json::<Distances>(&path)?
            .filter(|known| (known.points, known.particles) == (points, particles));
        let mut known = known.unwrap_or(Distances { points, particles, values: Vec::new() });
        let number = self.settings.estimates;
        while known.values.len() < number {
            watch.on(&Event::Distance(known.values.len(), number));
            if self.is_stopped() {
                return Ok(None);
            }
            known.values.push(self.distance(evaluator, &known)?);
            write_json(&path, &known)?;
        }
        known.values.truncate(number);
        Ok(Some(known))
    }

    /// The next estimate.
    fn distance(&self, evaluator: &Evaluator, known: &Distances) -> Result<f64> {
        let repeat = known.values.len() as u64;
        // The same rows for all criteria, and other particles than the likelihood's.
        let streams = Streams::new(self.settings.seed).derive("wasserstein", 0);
        let config = SmcConfig::new(known.particles)?
            .with_resampling(Resampling::Systematic)
            .with_resample_when(ResampleWhen::EveryStage);
        let particles = evaluator.smc(&config, &streams, repeat)?;
        let drawn = particles.sample(known.points, &mut streams.stream("draws", repeat, 0));
        let features = self.data.columns.len();
        let rows = self.data.test.len() / features;
        let mut rng = streams.stream("rows", repeat, 0);
        let mut data = Vec::with_capacity(known.points * features);
        for _ in 0..known.points {
            let row = rng.index(rows);
            data.extend_from_slice(&self.data.test[row * features..][..features]);
        }
        Ok(wasserstein(&data, &drawn, features)?)
    }

    /// Where a cell is.
    pub(super) fn cell_directory(&self, criterion: Criterion) -> PathBuf {
        self.directory.join(name(criterion))
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
