//! The likelihood of rows with everything one needs to trust it or not.

use serde::Serialize;
use zhat::evaluate::LogZ;
use zhat::rng::Streams;
use zhat::smc::{ResampleWhen, Resampling, SmcConfig};

use super::verdict::Verdict;
use super::{Distances, Fitted};
use crate::error::{Result, TableError};
use crate::fit::{Likelihood, evaluate_with};

/// Particles of the other opinions on `log Z`, at most: they are a check, and need not be as sharp.
const MOST_FOR_OPINIONS: usize = 200_000;

/// How a model is assessed.
#[derive(Debug, Clone, PartialEq)]
pub struct AssessOptions {
    /// Particles of each estimate of `log Z`.
    pub particles: usize,
    /// Number of independent estimates.
    pub estimates: usize,
    /// How ancestors are drawn.
    pub resampling: Resampling,
    /// Whether importance sampling and bridge sampling are asked too.
    pub cross_check: bool,
    /// Seed of everything random.
    pub seed: u64,
}

/// One estimate of `log Z`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Opinion {
    /// How it was made.
    pub method: String,
    /// `log Z`.
    pub log_z: f64,
    /// Its standard error, over independent estimates.
    pub standard_error: f64,
    /// Effective draws behind one estimate; for SMC, in its worst stage.
    pub effective_sample_size: Option<f64>,
}

/// Everything about a model's likelihood of some rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assessment {
    /// The likelihood, with `log Z` by SMC.
    #[serde(flatten)]
    pub likelihood: Likelihood,
    /// Mean log-density of the rows under the truth, where it is known.
    pub truth: Option<f64>,
    /// `log Z` by SMC, and by other methods beside it.
    pub opinions: Vec<Opinion>,
    /// Whether the likelihood can be trusted.
    pub verdict: Verdict,
    /// 2-Wasserstein distances between rows of the model and rows of the data.
    pub wasserstein: Option<Distances>,
}

/// Assesses a model on rows that are standardised already.
pub fn assess(fitted: &Fitted, rows: &[f32], options: &AssessOptions) -> Result<Assessment> {
    if options.estimates < 2 {
        let reason = "--estimates must be at least 2, for an error bar".into();
        return Err(TableError::Config { reason });
    }
    let streams = Streams::new(options.seed).derive("assess", 0);
    let smc = SmcConfig::new(options.particles)?
        .with_resampling(options.resampling)
        .with_resample_when(ResampleWhen::EveryStage);
    let card = fitted.card();
    let likelihood = evaluate_with(
        &fitted.evaluator,
        rows,
        card.standardiser.log_scale(),
        &smc,
        options.estimates,
        &streams,
    )?;
    let mut opinions = vec![Opinion {
        method: "SMC".into(),
        log_z: likelihood.log_z,
        standard_error: likelihood.se_log_z,
        effective_sample_size: Some(likelihood.smallest_ess * options.particles as f64),
    }];
    if options.cross_check {
        opinions.push(importance(fitted, options, &streams)?);
        opinions.push(bridge(fitted, options, &streams)?);
    }
    let verdict = Verdict::new(&likelihood, &opinions, &card.columns);
    Ok(Assessment { likelihood, truth: None, opinions, verdict, wasserstein: None })
}

impl AssessOptions {
    fn particles_of_opinions(&self) -> usize {
        self.particles.min(MOST_FOR_OPINIONS)
    }

    /// Rows times stages that go through the networks for the estimates of `log Z`, to show progress against.
    pub fn work(&self, features: usize) -> u64 {
        let opinions = if self.cross_check {
            // Importance sampling, and the bridge's two clouds and one move, which is not counted, and its scores.
            let particles = self.particles_of_opinions();
            3 * particles + particles / 20
        } else {
            0
        };
        (self.estimates * (self.particles + opinions) * features) as u64
    }
}

/// Plain importance sampling: SMC that never resamples.
fn importance(fitted: &Fitted, options: &AssessOptions, streams: &Streams) -> Result<Opinion> {
    let never = ResampleWhen::EffectiveSampleSizeBelow(0.0);
    let smc = SmcConfig::new(options.particles_of_opinions())?.with_resample_when(never);
    let streams = streams.derive("importance", 0);
    let (mut log_z_hats, mut size) = (Vec::new(), 0.0);
    for repeat in 0..options.estimates {
        let run = fitted.evaluator.smc(&smc, &streams, repeat as u64)?;
        log_z_hats.push(run.log_z_hat);
        size += run.effective_sample_size.last().expect("a feature") / options.estimates as f64;
    }
    let estimate = LogZ::from_estimates(&log_z_hats);
    Ok(Opinion {
        method: "importance sampling".into(),
        log_z: estimate.log_z,
        standard_error: estimate.standard_error,
        effective_sample_size: Some(size),
    })
}

fn bridge(fitted: &Fitted, options: &AssessOptions, streams: &Streams) -> Result<Opinion> {
    let particles = options.particles_of_opinions();
    let log_z_hats = (0..options.estimates)
        .map(|repeat| fitted.evaluator.bridge(particles, streams, repeat as u64))
        .collect::<zhat::Result<Vec<f64>>>()?;
    let estimate = LogZ::from_estimates(&log_z_hats);
    Ok(Opinion {
        method: "bridge sampling".into(),
        log_z: estimate.log_z,
        standard_error: estimate.standard_error,
        effective_sample_size: None,
    })
}
