//! `log Z` from rows: an estimate that is too high where one of fresh particles is too low, and integrals checked by sampling.

use rayon::prelude::*;

use super::defence::Defence;
use super::evaluate::Evaluator;
use super::sample::Tile;
use crate::error::Result;
use crate::rng::Streams;
use crate::smc::{Filter, First, SmcConfig};

impl Evaluator {
    /// `log Z-hat` of conditional SMC around each row: the row is one of the particles, and is never lost.
    ///
    /// Where the row is an exact draw of the model, `1 / Z-hat` is unbiased for `1 / Z`, and so the mean of `log Z-hat` is above `log Z`,
    /// where that of plain SMC is below it (bidirectional Monte Carlo: Grosse, Ghahramani and Adams, 2015). A row where the
    /// model has mass that the proposal never visits makes it far higher: fresh particles say nothing of such a place.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major
    pub fn log_z_from_rows(
        &self,
        config: &SmcConfig,
        x: &[f32],
        streams: &Streams,
    ) -> Result<Vec<f64>> {
        self.around_rows(config, First::Retained, false, x, self.defence(), streams)
    }

    /// The sum over the features of the log of `E_q[p(x_d | x_<d) / q(x_d | x_<d)]`, by draws of the base at each row's own
    /// prefixes: 0 but for the luck of the draws where the normalisers of the factors are right. Its exponential is unbiased for 1.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major
    pub fn sampled_normalisers(
        &self,
        num_draws: usize,
        x: &[f32],
        streams: &Streams,
    ) -> Result<Vec<f64>> {
        assert!(self.is_normalised(), "factors that are normalised one by one");
        let config = SmcConfig::new(num_draws)?;
        // With a defensive part, so that log q of every draw is there.
        self.around_rows(&config, First::Beside, true, x, Defence::EVALUATION, streams)
    }

    fn around_rows(
        &self,
        config: &SmcConfig,
        first: First,
        local: bool,
        x: &[f32],
        defence: Defence,
        streams: &Streams,
    ) -> Result<Vec<f64>> {
        config.validate()?;
        let features = self.features();
        let candidates = config.num_particles + usize::from(first == First::Beside);
        let rows: Vec<Result<f64>> = self.pool.install(|| {
            x.par_chunks_exact(features)
                .enumerate()
                .map(|(row, x)| {
                    self.watch.check()?;
                    let rngs = streams.lanes("ar-around-rows", 0, row..row + 1);
                    self.with_memory(|memory| {
                        memory.forward.begin(x, features, candidates, local, defence);
                        let mut tile = Tile { evaluator: self, memory, rngs };
                        let filter =
                            Filter::new(config, 1, first).numbered_from(row).without_past();
                        let filter = if local { filter.from_first() } else { filter };
                        Ok(filter.run(features, &mut tile)?.log_z_hat[0])
                    })
                })
                .collect()
        });
        rows.into_iter().collect()
    }
}
