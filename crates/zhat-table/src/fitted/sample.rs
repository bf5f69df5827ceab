//! Draws from the model, all of a row or some of it given the rest.

use zhat::ar::ArStepConfig;
use zhat::criterion::Method;
use zhat::rng::Streams;
use zhat::smc::{Resampling, SmcConfig};

use super::Fitted;
use super::effective::effective_values;
use crate::data::Table;
use crate::error::{Result, TableError};

/// Particles for each draw, where nothing else is said: few of them are then taken twice.
const PARTICLES_PER_DRAW: usize = 10;
/// And at least so many, for the weights to settle.
const LEAST_PARTICLES: usize = 20_000;
/// And at most so many.
const MOST_PARTICLES: usize = 5_000_000;

/// How rows are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleOptions {
    /// Number of rows.
    pub number: usize,
    /// Columns that are given, with their values in the units of the data.
    pub given: Vec<(String, f64)>,
    /// Particles of SMC; none for ten a row.
    pub particles: Option<usize>,
    /// Seed of the draws.
    pub seed: u64,
}

/// Rows from the model, and how far they can be trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct Draws {
    /// The rows, in the units of the data.
    pub table: Table,
    /// As many independent draws tell as much, in the worst column.
    pub effective: f64,
    /// Particles of SMC.
    pub particles: usize,
    /// Their effective sample size, in the worst stage.
    pub effective_particles: f64,
}

impl Fitted {
    /// Draws rows by SMC.
    pub fn sample(&self, options: &SampleOptions) -> Result<Draws> {
        if options.number == 0 {
            return Err(TableError::Config { reason: "-n is 0, but must be at least 1".into() });
        }
        let given = self.given(&options.given)?;
        let particles = options.particles.unwrap_or_else(|| {
            (PARTICLES_PER_DRAW * options.number).clamp(LEAST_PARTICLES, MOST_PARTICLES)
        });
        let streams = Streams::new(options.seed).derive("sample", 0);
        let smc = SmcConfig::new(particles)?.with_resampling(Resampling::Systematic);
        let cloud = self.evaluator.smc_given(&smc, &given, &streams, 0)?;
        let mut rows = cloud.sample(options.number, &mut streams.stream("draws", 0, 0));
        let features = self.evaluator.features();
        let column = |feature: usize| -> Vec<f32> {
            rows.iter().skip(feature).step_by(features).copied().collect()
        };
        let effective = (0..features)
            .filter(|&feature| given[feature].is_none())
            .map(|feature| effective_values(&column(feature), std::iter::repeat(1.0)))
            .fold(options.number as f64, f64::min);
        if options.given.is_empty() {
            // One move that leaves the model invariant makes copies differ.
            let settings = ArStepConfig::new(Method::SmcRnce);
            rows = self.evaluator.transition(&settings, &rows, &streams, 0)?;
        }
        self.card.standardiser.invert(&mut rows);
        let mut table = Table::new(self.card.columns.clone(), rows);
        self.restore_given(options, &mut table);
        Ok(Draws {
            table,
            effective,
            particles,
            effective_particles: (cloud.effective_sample_size.iter().copied())
                .fold(f64::INFINITY, f64::min),
        })
    }

    /// What is given is given exactly, not to the last bit but one after going to standard units and back.
    fn restore_given(&self, options: &SampleOptions, table: &mut Table) {
        let features = self.evaluator.features();
        for (name, value) in &options.given {
            let feature = self.card.columns.iter().position(|column| column == name);
            for row in table.values_mut().chunks_exact_mut(features) {
                row[feature.expect("found before")] = *value as f32;
            }
        }
    }

    /// The given values in standard units, feature by feature.
    fn given(&self, given: &[(String, f64)]) -> Result<Vec<Option<f32>>> {
        let columns = &self.card.columns;
        let mut features = vec![None; columns.len()];
        for (name, value) in given {
            let feature = columns.iter().position(|column| column == name).ok_or_else(|| {
                let reason = format!(
                    "--given {name}={value}: the model has no column {name}; its columns are {}",
                    columns.join(", ")
                );
                TableError::Config { reason }
            })?;
            if !value.is_finite() {
                let reason = format!("--given {name}={value}: give a finite number");
                return Err(TableError::Config { reason });
            }
            let standardiser = &self.card.standardiser;
            let standard = (value - standardiser.mean[feature]) / standardiser.std_dev[feature];
            if features[feature].replace(standard as f32).is_some() {
                let reason = format!("--given {name}={value}: the column is given twice");
                return Err(TableError::Config { reason });
            }
        }
        if features.iter().all(Option::is_some) {
            let reason = "--given: every column is given, so there is nothing left to draw".into();
            return Err(TableError::Config { reason });
        }
        Ok(features)
    }
}
