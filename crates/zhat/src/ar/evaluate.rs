//! Evaluation without a graph: a trained model on a number of threads, and the log-densities of rows.

use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use super::defence::Defence;
use super::engine::Engine;
use super::forward::{Forward, Pass};
use super::model::ArEbm;
use crate::error::{Error, Result};
use crate::watch::Watch;

/// Rows that go through the networks together: 42 times the six rows of the inner loop, half a megabyte of activations.
pub(super) const TILE: usize = 252;

/// A trained model, ready to be evaluated on a number of threads. Results do not depend on their number.
#[derive(Debug)]
pub struct Evaluator {
    pub(super) engine: Engine,
    pub(super) pool: rayon::ThreadPool,
    pub(super) watch: Arc<Watch>,
    /// Whether the proposal is the model, as where it alone was trained.
    is_proposal: bool,
    memory: Mutex<Vec<(Forward, Pass)>>,
}

/// Log-densities of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RowScores {
    /// `log q(x)` of every row.
    pub log_q: Vec<f64>,
    /// `log p~(x)` of every row.
    pub log_p_tilde: Vec<f64>,
}

impl Evaluator {
    /// Reads the parameters of a model; 0 threads means as many as there are cores.
    pub fn new(model: &ArEbm, threads: usize) -> Result<Self> {
        Ok(Self {
            engine: Engine::new(model),
            pool: pool(threads)?,
            watch: Arc::default(),
            is_proposal: false,
            memory: Mutex::new(Vec::new()),
        })
    }

    /// The proposal in the place of the model: `log p~` is `log q`, and the energy network is never run.
    pub fn of_proposal(model: &ArEbm, threads: usize) -> Result<Self> {
        Ok(Self { is_proposal: true, ..Self::new(model, threads)? })
    }

    /// Lets long work be watched and stopped; it counts rows times stages.
    pub fn with_watch(mut self, watch: Arc<Watch>) -> Self {
        self.watch = watch;
        self
    }

    /// Number of threads.
    pub fn num_threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// The threads themselves, for what goes with an evaluation.
    pub fn pool(&self) -> &rayon::ThreadPool {
        &self.pool
    }

    /// Number of features of a row.
    pub fn features(&self) -> usize {
        self.engine.config.features
    }

    /// `log q(x)` and `log p~(x)` of every row, without dropout.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major
    pub fn score(&self, x: &[f32]) -> RowScores {
        self.score_with(x, Defence::default())
    }

    /// The same with the defensive part in `log q`: the density that SMC's particles are drawn from.
    pub(super) fn score_defended(&self, x: &[f32]) -> RowScores {
        self.score_with(x, Defence::EVALUATION)
    }

    fn score_with(&self, x: &[f32], defence: Defence) -> RowScores {
        let features = self.engine.config.features;
        assert!(x.len().is_multiple_of(features), "whole rows of {features} features");
        let tiles: Vec<RowScores> = self.pool.install(|| {
            x.par_chunks(TILE * features)
                .map(|x| {
                    self.with_memory(|forward, pass| {
                        let rows = x.len() / features;
                        let mut scores =
                            RowScores { log_q: vec![0.0; rows], log_p_tilde: vec![0.0; rows] };
                        forward.begin(x, features, 1);
                        forward.defend(defence);
                        for stage in 0..features {
                            self.advance(forward, stage, &mut [], pass);
                            add(&mut scores.log_q, &pass.log_draw);
                            add(&mut scores.log_p_tilde, &pass.log_p);
                        }
                        self.watch.advance(rows * features);
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

    /// One stage: contexts, draws, `log q` and `log p~`.
    pub(super) fn advance(
        &self,
        forward: &mut Forward,
        stage: usize,
        streams: &mut [crate::rng::Stream],
        pass: &mut Pass,
    ) {
        if self.is_proposal {
            // It covers itself: draws need no defence, and all of them weigh the same.
            forward.defend(Defence::default());
        }
        forward.propose(&self.engine, stage, None, pass);
        forward.draw(&self.engine, stage, streams, pass);
        if self.is_proposal {
            pass.log_p.clone_from(&pass.log_q);
        } else {
            forward.weigh(&self.engine, None, pass);
        }
        forward.forget_sharing();
    }

    /// Lends the memory of a worker.
    pub(super) fn with_memory<T>(&self, work: impl FnOnce(&mut Forward, &mut Pass) -> T) -> T {
        let (mut forward, mut pass) =
            self.memory.lock().expect("no panic").pop().unwrap_or_default();
        let result = work(&mut forward, &mut pass);
        self.memory.lock().expect("no panic").push((forward, pass));
        result
    }
}

fn add(to: &mut [f64], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to += f64::from(from));
}

/// Threads to work on; 0 means as many as there are cores.
pub(super) fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::setting("threads", threads, format!("startable ({error})")))
}
