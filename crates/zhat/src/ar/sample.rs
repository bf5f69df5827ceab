//! Draws from the proposal and from the model.

use rayon::prelude::*;

use super::criterion::ArStepConfig;
use super::evaluate::{Evaluator, TILE};
use super::particles::ParticleSystem;
use crate::error::Result;
use crate::rng::{Stream, Streams};

impl Evaluator {
    /// Independent draws from the proposal.
    ///
    /// # Shapes
    /// - output: `[number, features]`, row-major
    pub fn sample_proposal(&self, number: usize, streams: &Streams) -> Vec<f32> {
        let features = self.engine.config.features;
        let mut rows = vec![0.0; number * features];
        self.pool.install(|| {
            rows.par_chunks_mut(TILE * features).enumerate().for_each(|(tile, out)| {
                self.with_memory(|forward, stage| {
                    forward.begin_free(out.len() / features, features);
                    let mut stream = [streams.stream("ar-proposal", 0, tile as u64)];
                    for index in 0..features {
                        forward.propose(&self.engine, index, None, stage);
                        forward.draw(&self.engine, index, &mut stream, stage);
                    }
                    out.copy_from_slice(&forward.rows);
                });
            });
        });
        rows
    }

    /// One transition of the conditional SMC kernel (Alg. 3) from every row; it leaves the model invariant.
    ///
    /// With RNCE's settings it is the conditional importance sampling kernel. There is no dropout.
    ///
    /// # Shapes
    /// - `x`, output: `[n, features]`, row-major
    pub fn transition(
        &self,
        settings: &ArStepConfig,
        x: &[f32],
        streams: &Streams,
        step: u64,
    ) -> Result<Vec<f32>> {
        settings.validate()?;
        let (features, candidates) = (self.engine.config.features, settings.candidates());
        let tile = settings.tile_observations();
        let moved: Vec<Result<Vec<f32>>> = self.pool.install(|| {
            x.par_chunks(tile * features)
                .enumerate()
                .map(|(at, x)| {
                    let (first, observations) = (at * tile, x.len() / features);
                    let mut rngs: Vec<Stream> = (0..observations)
                        .map(|n| streams.stream("ar-transition", step, (first + n) as u64))
                        .collect();
                    self.with_memory(|forward, stage| {
                        forward.begin(x, features, candidates);
                        forward.defend(settings.defence(features));
                        let mut systems: Vec<ParticleSystem> = (0..observations)
                            .map(|n| ParticleSystem::new(settings, first + n))
                            .collect();
                        for index in 0..features {
                            self.advance(forward, index, &mut rngs, stage);
                            for (n, (system, rng)) in systems.iter_mut().zip(&mut rngs).enumerate()
                            {
                                let rows = n * candidates..(n + 1) * candidates;
                                let pairs =
                                    stage.log_p[rows.clone()].iter().zip(&stage.log_draw[rows]);
                                let log_w: Vec<f64> =
                                    pairs.map(|(p, q)| f64::from(*p) - f64::from(*q)).collect();
                                system.weigh(&log_w)?;
                                if index + 1 < features
                                    && let Some(ancestors) = system.resample(rng)
                                {
                                    forward.resample(n, ancestors, index + 1);
                                }
                            }
                        }
                        let mut moved = Vec::with_capacity(x.len());
                        for (n, (system, rng)) in systems.iter().zip(&mut rngs).enumerate() {
                            let selected = rng.categorical(system.weights(features - 1));
                            let row = n * candidates + selected;
                            moved.extend_from_slice(&forward.rows[row * features..][..features]);
                        }
                        Ok(moved)
                    })
                })
                .collect()
        });
        moved.into_iter().collect::<Result<Vec<_>>>().map(|parts| parts.concat())
    }
}
