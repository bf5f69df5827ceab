//! Sequential Monte Carlo: particles that grow one column at a time, plain or conditional on one of them.

mod driver;
mod eves;
mod genealogy;
mod resampling;
mod run;

pub use driver::{Filter, First, Particles};
pub use genealogy::Genealogy;
pub use resampling::Resampling;
pub use run::Smc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, at_least};

/// Settings of a particle system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SmcConfig {
    /// Number of particles; in conditional SMC the retained one is counted.
    pub num_particles: usize,
    /// How ancestors are drawn.
    pub resampling: Resampling,
    /// When ancestors are drawn.
    pub resample_when: ResampleWhen,
}

/// When the particles are resampled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResampleWhen {
    /// After every stage but the last.
    EveryStage,
    /// Adaptively: when the effective sample size is below this share of the particles (1/2 in the paper).
    EffectiveSampleSizeBelow(f64),
}

impl SmcConfig {
    /// The paper's choice: multinomial, and adaptive below half the particles.
    pub fn new(num_particles: usize) -> Result<Self> {
        let config = Self {
            num_particles,
            resampling: Resampling::Multinomial,
            resample_when: ResampleWhen::EffectiveSampleSizeBelow(0.5),
        };
        config.validate()?;
        Ok(config)
    }

    /// The same with another resampling scheme.
    pub fn with_resampling(self, resampling: Resampling) -> Self {
        Self { resampling, ..self }
    }

    /// The same with another time to resample.
    pub fn with_resample_when(self, resample_when: ResampleWhen) -> Self {
        Self { resample_when, ..self }
    }

    /// Checks the ranges of the settings.
    pub fn validate(&self) -> Result<()> {
        at_least(1, "num_particles", self.num_particles)?;
        match self.resample_when {
            ResampleWhen::EffectiveSampleSizeBelow(share) if !(0.0..=1.0).contains(&share) => {
                Err(Error::setting("effective-sample-size-below", share, "between 0 and 1"))
            }
            _ => Ok(()),
        }
    }
}
