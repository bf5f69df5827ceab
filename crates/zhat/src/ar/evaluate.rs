//! Evaluation without a graph: log-densities of rows, and estimates of `log Z` that stream millions of particles.

use std::sync::Mutex;

use rayon::prelude::*;

use super::config::ArEbmConfig;
use super::engine::Engine;
use super::forward::{Forward, Stage};
use super::model::ArEbm;
use crate::error::{Error, Result};
use crate::rng::Streams;
use crate::smc::{Filter, SmcConfig};
use crate::weights::{LogWeights, Weights};

/// Rows that go through the networks together: 42 times the six rows of the inner loop, half a megabyte of activations.
const TILE: usize = 252;

/// A trained model, ready to be evaluated on a number of threads. Results do not depend on their number.
#[derive(Debug)]
pub struct Evaluator {
    pub(super) engine: Engine,
    pub(super) pool: rayon::ThreadPool,
    memory: Mutex<Vec<(Forward, Stage)>>,
}

/// Log-densities of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RowScores {
    /// `log q(x)` of every row.
    pub log_q: Vec<f64>,
    /// `log p~(x)` of every row.
    pub log_p_tilde: Vec<f64>,
}

/// One run of SMC, or of importance sampling when it never resamples.
#[derive(Debug, Clone, PartialEq)]
pub struct SmcEstimate {
    /// `log Z-hat`; `Z-hat` is unbiased.
    pub log_z_hat: f64,
    /// Effective sample size of every stage, before resampling.
    pub effective_sample_size: Vec<f64>,
    /// The particles, feature by feature.
    pub columns: Vec<Vec<f32>>,
    /// Their normalised weights.
    pub weights: Vec<f64>,
}

impl Evaluator {
    /// Reads the parameters of a model; 0 threads means as many as there are cores.
    pub fn new(config: &ArEbmConfig, model: &ArEbm, threads: usize) -> Result<Self> {
        config.validate()?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| Error::setting("threads", threads, format!("startable ({error})")))?;
        Ok(Self { engine: Engine::new(config, model), pool, memory: Mutex::new(Vec::new()) })
    }

    /// `log q(x)` and `log p~(x)` of every row, without dropout.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major
    pub fn score(&self, x: &[f32]) -> RowScores {
        let features = self.engine.config.features;
        assert!(x.len().is_multiple_of(features), "whole rows of {features} features");
        let tiles: Vec<RowScores> = self.pool.install(|| {
            x.par_chunks(TILE * features)
                .map(|x| {
                    self.with_memory(|forward, stage| {
                        let rows = x.len() / features;
                        let mut scores =
                            RowScores { log_q: vec![0.0; rows], log_p_tilde: vec![0.0; rows] };
                        forward.begin(x, features, 1);
                        for index in 0..features {
                            self.advance(forward, index, &mut [], stage);
                            add(&mut scores.log_q, &stage.log_q);
                            add(&mut scores.log_p_tilde, &stage.log_p);
                        }
                        scores
                    })
                })
                .collect()
        });
        RowScores {
            log_q: tiles.iter().flat_map(|tile| &tile.log_q).copied().collect(),
            log_p_tilde: tiles.iter().flat_map(|tile| &tile.log_p_tilde).copied().collect(),
        }
    }

    /// Plain SMC with the proposal; `repeat` numbers independent runs of the same seed.
    ///
    /// Memory is about `4 * features + 60` bytes for each particle. A particle's context is computed once for all the
    /// offspring of its ancestor, and once for everybody at the first stage.
    pub fn smc(&self, config: &SmcConfig, streams: &Streams, repeat: u64) -> Result<SmcEstimate> {
        config.validate()?;
        let (features, number) = (self.engine.config.features, config.num_particles);
        let mut filter = Filter::new(config, 1, false);
        let mut columns: Vec<Vec<f32>> = Vec::with_capacity(features);
        let mut ancestors: Option<Vec<usize>> = None;
        let mut effective_sample_size = Vec::with_capacity(features);
        let mut weights: Option<Weights> = None;
        for index in 0..features {
            let (column, log_w) =
                self.grow(&columns, ancestors.as_deref(), number, streams, repeat)?;
            columns.push(column);
            let (_, normalised) = filter.weigh(&LogWeights::from_values(log_w, number));
            effective_sample_size.extend(normalised.effective_sample_size());
            weights = Some(normalised);
            if index + 1 < features {
                let ancestry =
                    filter.resample(&mut streams.stream("ar-smc-resampling", repeat, index as u64));
                ancestors = ancestry.resampled[0].then_some(ancestry.ancestors);
                if let Some(ancestors) = &ancestors {
                    for column in &mut columns {
                        *column = ancestors.iter().map(|&ancestor| column[ancestor]).collect();
                    }
                }
            }
        }
        let weights = weights.expect("at least one feature").values().to_vec();
        Ok(SmcEstimate {
            log_z_hat: filter.log_z_hat()[0],
            effective_sample_size,
            columns,
            weights,
        })
    }

    /// One more feature of every particle, and its log-weight.
    fn grow(
        &self,
        columns: &[Vec<f32>],
        ancestors: Option<&[usize]>,
        number: usize,
        streams: &Streams,
        repeat: u64,
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        let (features, index) = (self.engine.config.features, columns.len());
        let tiles = number.div_ceil(TILE);
        let (mut column, mut log_w) = (vec![0.0; number], vec![0.0; number]);
        self.pool.install(|| {
            let outputs = column.par_chunks_mut(TILE).zip(log_w.par_chunks_mut(TILE));
            outputs.enumerate().for_each(|(tile, (column, log_w))| {
                self.with_memory(|forward, stage| {
                    let (first, rows) = (tile * TILE, column.len());
                    forward.begin_free(rows, features);
                    for (feature, values) in columns.iter().enumerate() {
                        for (row, &value) in values[first..first + rows].iter().enumerate() {
                            forward.rows[row * features + feature] = value;
                        }
                    }
                    if let Some(ancestors) = ancestors {
                        forward.share(&ancestors[first..first + rows]);
                    }
                    let lane = (index * tiles + tile) as u64;
                    self.advance(
                        forward,
                        index,
                        &mut [streams.stream("ar-smc", repeat, lane)],
                        stage,
                    );
                    column.copy_from_slice(&stage.x);
                    for (log_w, (log_p, log_q)) in
                        log_w.iter_mut().zip(stage.log_p.iter().zip(&stage.log_q))
                    {
                        *log_w = f64::from(*log_p) - f64::from(*log_q);
                    }
                });
            });
        });
        crate::weights::check_finite("log p~ - log q of the autoregressive EBM", &log_w, number)?;
        Ok((column, log_w))
    }

    /// One stage: contexts, draws, `log q` and `log p~`.
    pub(super) fn advance(
        &self,
        forward: &mut Forward,
        index: usize,
        streams: &mut [crate::rng::Stream],
        stage: &mut Stage,
    ) {
        forward.propose(&self.engine, index, None, stage);
        forward.draw(&self.engine, index, streams, stage);
        forward.weigh(&self.engine, None, stage);
        forward.forget_sharing();
    }

    /// Lends the memory of a worker.
    pub(super) fn with_memory<T>(&self, work: impl FnOnce(&mut Forward, &mut Stage) -> T) -> T {
        let (mut forward, mut stage) =
            self.memory.lock().expect("no panic").pop().unwrap_or_default();
        let result = work(&mut forward, &mut stage);
        self.memory.lock().expect("no panic").push((forward, stage));
        result
    }
}

fn add(to: &mut [f64], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to += f64::from(from));
}
