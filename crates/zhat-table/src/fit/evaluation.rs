//! The numbers that are always given with a likelihood.

use serde::{Deserialize, Serialize};
use zhat::ar::Evaluator;
use zhat::evaluate::LogZ;
use zhat::rng::Streams;
use zhat::smc::{ResampleWhen, Resampling, SmcConfig};

use zhat::Result;

/// A log-likelihood with everything one needs to trust it or not, in nats a row and in the units of the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Likelihood {
    /// Mean over the rows of `log p~(x) - log Z`.
    pub log_likelihood: f64,
    /// Standard error over the rows.
    pub se_test: f64,
    /// Standard error of `log Z`, over the independent estimates.
    pub se_log_z: f64,
    /// `log` of the mean of the estimates of `Z`.
    pub log_z: f64,
    /// Mean of the `log Z-hat`, lower than `log_z` by Jensen's inequality.
    pub mean_log_z_hat: f64,
    /// The proposal's own log-likelihood, which needs no `Z`.
    pub proposal_log_likelihood: f64,
    /// Its standard error over the rows.
    pub proposal_se_test: f64,
    /// Effective sample size after each stage, averaged over the estimates, as a share of the particles.
    pub ess: Vec<f64>,
    /// Smallest of them.
    pub smallest_ess: f64,
    /// Rows.
    pub rows: usize,
    /// Largest weight of a single particle, at any stage of any estimate.
    #[serde(default)]
    pub largest_weight: f64,
    /// Share of the model's mass, and of the rows, with a feature further than five standard deviations out.
    #[serde(default)]
    pub far_out: [f64; 2],
    /// Particles of an estimate.
    pub particles: usize,
    /// Number of estimates.
    pub estimates: usize,
}

/// In standard deviations; a little within the range that the evaluation's defensive draws cover.
const FAR_OUT: f32 = 5.0;

/// Evaluates rows that are standardised; `log_scale` is the sum of the logs of the standard deviations.
pub fn evaluate(
    evaluator: &Evaluator,
    rows: &[f32],
    log_scale: f64,
    particles: usize,
    estimates: usize,
    streams: &Streams,
) -> Result<Likelihood> {
    let smc = SmcConfig::new(particles)?
        .with_resampling(Resampling::Systematic)
        .with_resample_when(ResampleWhen::EveryStage);
    evaluate_with(evaluator, rows, log_scale, &smc, estimates, streams)
}

/// The same with any settings of SMC.
pub fn evaluate_with(
    evaluator: &Evaluator,
    rows: &[f32],
    log_scale: f64,
    smc: &SmcConfig,
    estimates: usize,
    streams: &Streams,
) -> Result<Likelihood> {
    let particles = smc.num_particles;
    let mut log_z_hats = Vec::with_capacity(estimates);
    let (mut ess, mut largest_weight) = (vec![0.0; evaluator.features()], 0.0f64);
    let mut far_out = 0.0;
    for repeat in 0..estimates {
        let run = evaluator.smc(smc, streams, repeat as u64)?;
        log_z_hats.push(run.log_z_hat);
        for (sum, size) in ess.iter_mut().zip(&run.effective_sample_size) {
            *sum += size / (particles * estimates) as f64;
        }
        largest_weight = run.largest_weight.iter().copied().fold(largest_weight, f64::max);
        let mass = run.weights.iter().enumerate().filter(|(particle, _)| {
            run.columns.iter().any(|column| column[*particle].abs() > FAR_OUT)
        });
        far_out += mass.map(|(_, weight)| weight).sum::<f64>() / estimates as f64;
    }
    let (log_z, mean_log_z_hat, se_log_z) = match log_z_hats[..] {
        [single] => (single, single, f64::NAN),
        _ => {
            let estimate = LogZ::from_estimates(&log_z_hats);
            (estimate.log_z, estimate.mean_log_z_hat, estimate.standard_error)
        }
    };
    let scores = evaluator.score(rows);
    let (log_p_tilde, se_test) = mean_and_error(&scores.log_p_tilde);
    let (log_q, proposal_se_test) = mean_and_error(&scores.log_q);
    Ok(Likelihood {
        log_likelihood: log_p_tilde - log_z - log_scale,
        se_test,
        se_log_z,
        log_z,
        mean_log_z_hat,
        proposal_log_likelihood: log_q - log_scale,
        proposal_se_test,
        smallest_ess: ess.iter().copied().fold(f64::INFINITY, f64::min),
        ess,
        rows: scores.log_q.len(),
        largest_weight,
        far_out: [far_out, share_far_out(rows, evaluator.features())],
        particles,
        estimates,
    })
}

fn share_far_out(rows: &[f32], features: usize) -> f64 {
    let far = rows.chunks_exact(features).filter(|row| row.iter().any(|x| x.abs() > FAR_OUT));
    far.count() as f64 / (rows.len() / features) as f64
}

/// Mean and its standard error.
pub(crate) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let number = values.len() as f64;
    let mean = values.iter().sum::<f64>() / number;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (number - 1.0) / number).sqrt())
}
