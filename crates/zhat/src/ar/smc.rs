//! Sequential Monte Carlo over the features: estimates of `log Z` that stream millions of particles, draws from the
//! model, and draws of some features given the others.

use rayon::prelude::*;

use super::defence::Defence;
use super::evaluate::{Evaluator, TILE};
use crate::error::Result;
use crate::rng::{Stream, Streams};
use crate::smc::{Filter, SmcConfig};
use crate::weights::{LogWeights, Weights};

/// One run of SMC, or of importance sampling when it never resamples.
#[derive(Debug, Clone, PartialEq)]
pub struct SmcEstimate {
    /// `log Z-hat`; `Z-hat` is unbiased.
    pub log_z_hat: f64,
    /// Effective sample size of every stage, before resampling.
    pub effective_sample_size: Vec<f64>,
    /// Largest normalised weight of every stage.
    pub largest_weight: Vec<f64>,
    /// The particles, feature by feature.
    pub columns: Vec<Vec<f32>>,
    /// Their normalised weights.
    pub weights: Vec<f64>,
}

impl Evaluator {
    /// Plain SMC with the proposal and its defensive part; `repeat` numbers independent runs of the same seed.
    ///
    /// Memory is about `4 * features + 60` bytes for each particle. A particle's context is computed once for all the
    /// offspring of its ancestor, and once for everybody at the first stage.
    pub fn smc(&self, config: &SmcConfig, streams: &Streams, repeat: u64) -> Result<SmcEstimate> {
        self.smc_given(config, &vec![None; self.features()], streams, repeat)
    }

    /// SMC for the features that are not given: the particles are draws of `p(x_missing | x_given)`.
    ///
    /// A given feature is not drawn, and weighs a particle by `p~(x_d | x_<d)` alone. So `Z-hat` is an unbiased
    /// estimate of the integral of `p~` over the missing features, and `log Z-hat - log Z` one of the log of the
    /// marginal density of the given ones.
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
        let mut filter = Filter::new(config, 1, false);
        let mut cloud =
            Cloud { number: config.num_particles, columns: Vec::new(), ancestors: None };
        let mut effective_sample_size = Vec::with_capacity(features);
        let mut largest_weight = Vec::with_capacity(features);
        let mut weights: Option<Weights> = None;
        for index in 0..features {
            let (column, log_w) = self.grow(&cloud, given, streams, repeat)?;
            cloud.columns.push(column);
            let (_, normalised) = filter.weigh(&LogWeights::from_values(log_w, cloud.number));
            effective_sample_size.extend(normalised.effective_sample_size());
            largest_weight.push(normalised.values().iter().copied().fold(0.0, f64::max));
            weights = Some(normalised);
            if index + 1 < features {
                let ancestry =
                    filter.resample(&mut streams.stream("ar-smc-resampling", repeat, index as u64));
                cloud.resample(ancestry.resampled[0].then_some(ancestry.ancestors));
            }
        }
        let weights = weights.expect("at least one feature").values().to_vec();
        Ok(SmcEstimate {
            log_z_hat: filter.log_z_hat()[0],
            effective_sample_size,
            largest_weight,
            columns: cloud.columns,
            weights,
        })
    }

    /// One more feature of every particle, and its log-weight.
    fn grow(
        &self,
        cloud: &Cloud,
        given: &[Option<f32>],
        streams: &Streams,
        repeat: u64,
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        let (features, index, number) = (self.features(), cloud.columns.len(), cloud.number);
        let tiles = number.div_ceil(TILE);
        // As long as nothing has been drawn, all particles are the same.
        let common = given[..index].iter().all(Option::is_some);
        let (mut column, mut log_w) = (vec![0.0; number], vec![0.0; number]);
        self.pool.install(|| {
            let outputs = column.par_chunks_mut(TILE).zip(log_w.par_chunks_mut(TILE));
            outputs.enumerate().try_for_each(|(tile, (column, log_w))| {
                self.watch.check()?;
                self.with_memory(|forward, stage| {
                    let (first, rows) = (tile * TILE, column.len());
                    forward.begin_free(rows, features);
                    forward.defend(Defence::EVALUATION);
                    cloud.copy_to(first, features, &mut forward.rows);
                    if let Some(value) = given[index] {
                        forward.give(index, value);
                    }
                    match &cloud.ancestors {
                        _ if common => forward.share(&vec![0; rows]),
                        Some(ancestors) => forward.share(&ancestors[first..first + rows]),
                        None => {}
                    }
                    let lane = (index * tiles + tile) as u64;
                    let mut stream = [streams.stream("ar-smc", repeat, lane)];
                    self.advance(forward, index, &mut stream, stage);
                    column.copy_from_slice(&stage.x);
                    let factors = stage.log_p.iter().zip(&stage.log_draw);
                    for (log_w, (log_p, log_q)) in log_w.iter_mut().zip(factors) {
                        // What is given was not proposed.
                        let log_q = if given[index].is_some() { 0.0 } else { *log_q };
                        *log_w = f64::from(*log_p) - f64::from(log_q);
                    }
                });
                self.watch.advance(column.len());
                Ok(())
            })
        })?;
        crate::weights::check_finite("log p~ - log q of the autoregressive EBM", &log_w, number)?;
        Ok((column, log_w))
    }
}

/// The particles so far.
struct Cloud {
    number: usize,
    /// Feature by feature.
    columns: Vec<Vec<f32>>,
    /// Whom each particle took its features from at the last resampling, if there was one.
    ancestors: Option<Vec<usize>>,
}

impl Cloud {
    fn resample(&mut self, ancestors: Option<Vec<usize>>) {
        self.ancestors = ancestors;
        let Some(ancestors) = &self.ancestors else { return };
        for column in &mut self.columns {
            *column = ancestors.iter().map(|&ancestor| column[ancestor]).collect();
        }
    }

    /// What is known of the particles from `first` on, into rows.
    fn copy_to(&self, first: usize, features: usize, rows: &mut [f32]) {
        for (feature, values) in self.columns.iter().enumerate() {
            for (row, &value) in rows.chunks_exact_mut(features).zip(&values[first..]) {
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
