//! Sequential Monte Carlo over the features: estimates of `log Z` that stream millions of particles, draws from the
//! model, and draws of some features given the others.

use rayon::prelude::*;

use super::evaluate::{Evaluator, Memory, TILE};
use super::guide::Ahead;
use crate::error::{Error, Result};
use crate::rng::{Stream, Streams};
use crate::smc::{Filter, First, Particles, SmcConfig};

/// One run of SMC, or of importance sampling when it never resamples.
#[derive(Debug, Clone, PartialEq)]
pub struct SmcEstimate {
    /// `log Z-hat`; `Z-hat` is unbiased.
    pub log_z_hat: f64,
    /// Effective sample size of every stage, before resampling.
    pub effective_sample_size: Vec<f64>,
    /// Largest normalised weight of every stage.
    pub largest_weight: Vec<f64>,
    /// Shape of the tail of every stage's weights ([`pareto_k`](crate::evaluate::pareto_k)).
    pub pareto_k: Vec<f64>,
    /// Variance of `Z-hat / Z` by the genealogy of this run alone (Lee and Whiteley, 2018).
    pub relative_variance: f64,
    /// The particles, feature by feature.
    pub columns: Vec<Vec<f32>>,
    /// Their normalised weights.
    pub weights: Vec<f64>,
}

impl Evaluator {
    /// Plain SMC with the proposal and its defensive part; `repeat` numbers independent runs of the same seed.
    ///
    /// Memory is about `4 * features + 45` bytes for each particle. A particle's context is computed once for all the
    /// offspring of its ancestor, and once for everybody at the first stage.
    pub fn smc(&self, config: &SmcConfig, streams: &Streams, repeat: u64) -> Result<SmcEstimate> {
        self.smc_given(config, &vec![None; self.features()], streams, repeat)
    }

    /// SMC for the features that are not given: the particles are draws of `p(x_missing | x_given)`.
    ///
    /// A given feature is not drawn, and weighs a particle by `p~(x_d | x_<d)` alone. So `Z-hat` is an unbiased
    /// estimate of the integral of `p~` over the missing features, and `log Z-hat - log Z` one of the log of the
    /// marginal density of the given ones. Features that the model itself is given weigh nothing, and must be given.
    ///
    /// Where something missing comes before something given, a mixture of Gaussians that is like the model looks ahead: it proposes
    /// the one with the other in view. It is fitted when it is first needed, to draws of the model, which takes up to some seconds.
    ///
    /// # Shapes
    /// - `given`: one entry for each feature
    pub fn smc_given(
        &self,
        config: &SmcConfig,
        given: &[Option<f32>],
        streams: &Streams,
        repeat: u64,
    ) -> Result<SmcEstimate> {
        config.validate()?;
        let features = self.features();
        assert_eq!(given.len(), features, "one entry for each feature");
        if let Some(feature) = given[..self.given()].iter().position(Option::is_none) {
            let expected = format!("with a value: the first {} features are given", self.given());
            return Err(Error::setting("given", format!("without feature {feature}"), expected));
        }
        let kind = |feature: usize| self.engine.config.kind(feature);
        let ahead = match has_holes(given).then(|| self.guide()).flatten() {
            Some(guide) => guide.ahead(given, kind)?,
            None => None,
        };
        self.smc_looking(config, given, ahead, streams, repeat)
    }

    /// The same with what looks ahead.
    pub(super) fn smc_looking(
        &self,
        config: &SmcConfig,
        given: &[Option<f32>],
        ahead: Option<Ahead>,
        streams: &Streams,
        repeat: u64,
    ) -> Result<SmcEstimate> {
        let features = self.features();
        let mut cloud = Cloud {
            evaluator: self,
            given,
            streams,
            repeat,
            columns: Vec::with_capacity(features),
            ancestors: None,
            resampling: None,
            log_twists: vec![0.0; config.num_particles],
            ahead,
        };
        let filter = Filter::new(config, 1, First::Drawn).without_past().with_diagnostics();
        let mut genealogy = filter.run(features, &mut cloud)?;
        Ok(SmcEstimate {
            log_z_hat: genealogy.log_z_hat[0],
            effective_sample_size: genealogy.effective_sample_size.concat(),
            largest_weight: genealogy.largest_weight.concat(),
            pareto_k: genealogy.pareto_k.concat(),
            relative_variance: genealogy.relative_variance[0],
            columns: cloud.columns,
            weights: genealogy.weights.pop().expect("at least one feature"),
        })
    }
}

/// The particles so far, of which a tile at a time goes through the networks.
struct Cloud<'a> {
    evaluator: &'a Evaluator,
    given: &'a [Option<f32>],
    streams: &'a Streams,
    repeat: u64,
    /// Feature by feature.
    columns: Vec<Vec<f32>>,
    /// Whom each particle took its features from after the last stage, if it was resampled.
    ancestors: Option<Vec<usize>>,
    resampling: Option<Stream>,
    /// What looks ahead to the given features, where it is of use.
    ahead: Option<Ahead>,
    /// What the log-weight of every particle holds for what is ahead of it.
    log_twists: Vec<f64>,
}

/// Whether something missing comes before something given.
fn has_holes(given: &[Option<f32>]) -> bool {
    let until = given.iter().rposition(Option::is_some).unwrap_or(0);
    given[..until].contains(&None)
}

impl Particles for Cloud<'_> {
    fn advance(&mut self, stage: usize, log_weights: &mut [f64]) -> Result<()> {
        let evaluator = self.evaluator;
        if let Some(value) = self.given[stage].filter(|_| stage < evaluator.given()) {
            self.columns.push(vec![value; log_weights.len()]);
            return Ok(());
        }
        let tiles = log_weights.len().div_ceil(TILE);
        let ancestors = self.ancestors.take();
        let mut column = vec![0.0; log_weights.len()];
        let mut log_twists = std::mem::take(&mut self.log_twists);
        let workers = &evaluator.workers;
        let own = evaluator.part_of_rows(log_weights.len(), TILE);
        let done = evaluator.pool.install(|| {
            let columns = column[own.clone()].par_chunks_mut(TILE);
            let log_weights = log_weights[own.clone()].par_chunks_mut(TILE);
            let log_twists = log_twists[own.clone()].par_chunks_mut(TILE);
            let outputs = columns.zip(log_weights).zip(log_twists);
            outputs.enumerate().try_for_each(|(tile, ((column, log_weights), log_twists))| {
                evaluator.watch.check()?;
                let tile = own.start / TILE + tile;
                let lane = (stage * tiles + tile) as u64;
                let stream = self.streams.stream("ar-smc", self.repeat, lane);
                evaluator.with_memory(|memory| {
                    self.begin(memory, stage, tile * TILE, column.len(), ancestors.as_deref());
                    match self.ahead.as_ref().filter(|ahead| ahead.looks(stage)) {
                        Some(ahead) => {
                            let weights = [log_weights, log_twists];
                            self.advance_ahead(memory, stage, stream, ahead, weights);
                        }
                        None => self.advance_blind(memory, stage, stream, log_weights),
                    }
                    column.copy_from_slice(&memory.pass.x);
                });
                evaluator.watch.advance(column.len());
                Ok(())
            })
        });
        if workers.is_stopped(&evaluator.watch) {
            return Err(Error::Stopped);
        }
        done?;
        if !workers.is_alone() {
            column = workers.concat(column[own.clone()].to_vec());
            log_weights.copy_from_slice(&workers.concat(log_weights[own.clone()].to_vec()));
            log_twists = workers.concat(log_twists[own].to_vec());
        }
        self.columns.push(column);
        self.log_twists = log_twists;
        Ok(())
    }

    fn descend(&mut self, _stage: usize, _row: usize, ancestors: &[usize]) {
        for column in &mut self.columns {
            *column = ancestors.iter().map(|&ancestor| column[ancestor]).collect();
        }
        if self.ahead.is_some() {
            self.log_twists = ancestors.iter().map(|&at| self.log_twists[at]).collect();
        }
        self.ancestors = Some(ancestors.to_vec());
    }

    fn rng(&mut self, stage: usize, _row: usize) -> &mut Stream {
        let stream = self.streams.stream("ar-smc-resampling", self.repeat, stage as u64);
        self.resampling.insert(stream)
    }
}

impl Cloud<'_> {
    /// Puts some particles in the place of rows that are known so far.
    fn begin(
        &self,
        memory: &mut Memory,
        stage: usize,
        first: usize,
        rows: usize,
        ancestors: Option<&[usize]>,
    ) {
        let forward = &mut memory.forward;
        forward.begin_free(rows, self.given.len(), self.evaluator.defence());
        self.copy_to(first, &mut forward.rows);
        if let Some(value) = self.given[stage] {
            forward.give(stage, value);
        }
        // As long as nothing has been drawn, all particles are the same.
        let common = self.given[..stage].iter().all(Option::is_some);
        match ancestors {
            _ if common => forward.share(&vec![0; rows]),
            Some(ancestors) => forward.share(&ancestors[first..first + rows]),
            None => {}
        }
    }

    /// The next feature by the model's own proposal, or as it is given.
    fn advance_blind(
        &self,
        memory: &mut Memory,
        stage: usize,
        mut stream: Stream,
        log_weights: &mut [f64],
    ) {
        let (evaluator, is_given) = (self.evaluator, self.given[stage].is_some());
        if evaluator.draws_exactly() && !is_given {
            return evaluator.draw_exactly(memory, stage, &mut stream);
        }
        evaluator.advance(memory, stage, &mut [stream]);
        if is_given {
            // What is given was not proposed.
            memory.pass.log_draw.fill(0.0);
        }
        memory.pass.add_log_weights(log_weights);
    }

    /// The next feature with what is ahead in view: a number is drawn by the guide, and weights hold what it promises of the rest.
    fn advance_ahead(
        &self,
        memory: &mut Memory,
        stage: usize,
        mut stream: Stream,
        ahead: &Ahead,
        [log_weights, log_twists]: [&mut [f64]; 2],
    ) {
        let kind = self.evaluator.engine.config.kind(stage);
        let mut walk = ahead.walk();
        // The guide knows nothing of classes, and cannot draw atoms.
        if self.given[stage].is_none() && !kind.is_categorical() && !kind.is_atoms() {
            let mut drawn = Vec::with_capacity(log_weights.len());
            let mut promises = Vec::with_capacity(log_weights.len());
            self.evaluator.advance_choosing(memory, stage, &mut stream, |row, rng| {
                let (before, rest) = row.split_at_mut(stage);
                walk.to(stage, before);
                rest[0] = walk.draw(kind, rng).unwrap_or_else(|| kind.settle(rest[0]));
                drawn.push(walk.draws(kind, rest[0]));
                promises.push(walk.promise(rest[0]));
            });
            let pass = &memory.pass;
            for (row, log_w) in log_weights.iter_mut().enumerate() {
                let [log_p, own] = [pass.log_p[row], pass.log_draw[row]].map(f64::from);
                *log_w += log_p - drawn[row].with_own(own) + promises[row];
                log_twists[row] += promises[row];
            }
            return;
        }
        self.advance_blind(memory, stage, stream, log_weights);
        let rows = memory.forward.rows.chunks_exact(self.given.len());
        for ((row, log_w), log_twist) in rows.zip(log_weights).zip(log_twists) {
            let promise = match () {
                // Nothing is ahead any more.
                () if ahead.ends(stage) => -*log_twist,
                () if kind.is_categorical() => continue,
                () => {
                    walk.to(stage, &row[..stage]);
                    walk.promise(row[stage])
                }
            };
            *log_w += promise;
            *log_twist += promise;
        }
    }

    /// What is known of the particles from `first` on, into rows.
    fn copy_to(&self, first: usize, rows: &mut [f32]) {
        for (feature, values) in self.columns.iter().enumerate() {
            for (row, &value) in rows.chunks_exact_mut(self.given.len()).zip(&values[first..]) {
                row[feature] = value;
            }
        }
    }
}

impl SmcEstimate {
    /// Rows drawn by weight from the particles: draws from the model as their number grows.
    ///
    /// # Shapes
    /// - output: `[number, features]`, row-major
    pub fn sample(&self, number: usize, rng: &mut Stream) -> Vec<f32> {
        let mut sum = 0.0;
        let cumulative: Vec<f64> = self
            .weights
            .iter()
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        let mut rows = Vec::with_capacity(number * self.columns.len());
        for _ in 0..number {
            let at = rng.uniform() * sum;
            let particle = cumulative.partition_point(|&c| c <= at).min(cumulative.len() - 1);
            rows.extend(self.columns.iter().map(|column| column[particle]));
        }
        rows
    }

    /// Log-weights `log p~ - log q` of the particles of a run that never resampled.
    pub fn log_weights(&self) -> Vec<f64> {
        let scale = self.log_z_hat + (self.weights.len() as f64).ln();
        self.weights.iter().map(|weight| weight.ln() + scale).collect()
    }
}
