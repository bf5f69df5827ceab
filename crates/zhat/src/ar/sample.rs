//! Draws from the proposal and from the model.

use rayon::prelude::*;

use super::config::Normalisation;
use super::criterion::ArStepConfig;
use super::defence::Defence;
use super::evaluate::{Evaluator, Memory, TILE};
use crate::error::Result;
use crate::rng::{Stream, Streams};
use crate::smc::Particles;

impl Evaluator {
    /// Independent draws from the proposal.
    ///
    /// # Panics
    /// If features are given: there is no proposal of those.
    ///
    /// # Shapes
    /// - output: `[number, features]`, row-major
    pub fn sample_proposal(&self, number: usize, streams: &Streams) -> Vec<f32> {
        let features = self.engine.config.features;
        assert_eq!(self.given(), 0, "a proposal of all features");
        let mut rows = vec![0.0; number * features];
        self.pool.install(|| {
            rows.par_chunks_mut(TILE * features).enumerate().for_each(|(tile, out)| {
                self.with_memory(|Memory { forward, conditioning, pass }| {
                    forward.begin_free(out.len() / features, features, Defence::default());
                    let mut stream = [streams.stream("ar-proposal", 0, tile as u64)];
                    for stage in 0..features {
                        forward.propose(&self.engine, stage, None, conditioning, pass);
                        forward.draw(&self.engine, stage, &mut stream, conditioning, pass);
                        forward.settle(self.engine.config.kind(stage), stage, pass);
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
        let tile = settings.tile_observations(Normalisation::Global);
        let moved: Vec<Result<Vec<f32>>> = self.pool.install(|| {
            x.par_chunks(tile * features)
                .enumerate()
                .map(|(at, x)| {
                    let (first, observations) = (at * tile, x.len() / features);
                    let rngs = streams.lanes("ar-transition", step, first..first + observations);
                    self.with_memory(|memory| {
                        let defence = settings.defence(features);
                        memory.forward.begin(x, features, candidates, false, defence);
                        for of_one in memory.forward.rows.chunks_exact_mut(candidates * features) {
                            let given = of_one[..self.given()].to_vec();
                            let others = of_one.chunks_exact_mut(features).skip(1);
                            others.for_each(|row| row[..given.len()].copy_from_slice(&given));
                        }
                        let mut tile = Tile { evaluator: self, memory, rngs };
                        let filter = settings.filter(observations, first, false).without_past();
                        let genealogy = filter.run(features, &mut tile)?;
                        let Tile { memory: Memory { forward, .. }, mut rngs, .. } = tile;
                        let mut moved = Vec::with_capacity(x.len());
                        let weights = genealogy.final_weights().chunks_exact(candidates);
                        for (n, (weights, rng)) in weights.zip(&mut rngs).enumerate() {
                            let row = n * candidates + rng.categorical(weights);
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

/// The candidates of a few observations, in the memory of a worker.
pub(super) struct Tile<'a> {
    pub evaluator: &'a Evaluator,
    pub memory: &'a mut Memory,
    /// One for each observation.
    pub rngs: Vec<Stream>,
}

impl Particles for Tile<'_> {
    fn advance(&mut self, stage: usize, log_weights: &mut [f64]) -> Result<()> {
        if stage < self.evaluator.given() {
            return Ok(());
        }
        self.evaluator.advance(self.memory, stage, &mut self.rngs);
        self.memory.pass.add_log_weights(log_weights);
        Ok(())
    }

    fn descend(&mut self, stage: usize, row: usize, ancestors: &[usize]) {
        self.memory.forward.resample(row, ancestors, stage + 1);
    }

    fn rng(&mut self, _stage: usize, row: usize) -> &mut Stream {
        &mut self.rngs[row]
    }
}
