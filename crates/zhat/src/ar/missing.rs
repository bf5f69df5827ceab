//! Rows with holes: the likelihood of what is observed, and new draws of what is missing.
//!
//! Particles are drawn from the factors themselves, which is exact, and weigh by the factors of what is observed. That something is
//! missing must not depend on its value, given what is observed (missing at random): the likelihood is of the values alone.

use rayon::prelude::*;

use super::config::Normalisation;
use super::defence::Defence;
use super::evaluate::{Evaluator, Memory, TILE};
use crate::error::{Error, Result};
use crate::rng::{Stream, Streams};
use crate::smc::{Filter, First, Particles, SmcConfig};
use crate::weights::log_mean_exp;

/// Independent particle systems of each row, from whose spread the error is known.
const ISLANDS: usize = 8;

/// Log-densities of rows as far as they are observed.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedScores {
    /// The log of the marginal density of what is observed of every row: 0 where nothing is.
    pub log_p: Vec<f64>,
    /// Standard error of each by the particles that stand for what is missing; 0 where nothing missing comes before something
    /// observed, as then nothing is drawn.
    pub error: Vec<f64>,
}

impl Evaluator {
    /// The log of the marginal density of what is observed of every row: sums over missing classes and cells, integrals over missing
    /// numbers, by SMC over the features before the last that is observed.
    ///
    /// The particles of a row are cut into eight systems, whose mean is unbiased and whose spread is its error.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major; what is missing is not a number
    pub fn score_observed(
        &self,
        x: &[f32],
        smc: &SmcConfig,
        streams: &Streams,
    ) -> Result<ObservedScores> {
        self.check_holes(smc)?;
        let features = self.features();
        assert!(x.len().is_multiple_of(features), "whole rows of {features} features");
        let number = x.len() / features;
        self.check_given(x.iter().map(|x| x.is_nan()))?;
        let missing: Vec<bool> = x.iter().map(|x| x.is_nan()).collect();
        let filled: Vec<f32> = x.iter().map(|&x| if x.is_nan() { 0.0 } else { x }).collect();
        let holes = |row: &usize| has_holes(&missing[row * features..][..features]);
        let (drawn, plain): (Vec<usize>, Vec<usize>) = (0..number).partition(holes);
        let mut scores = ObservedScores { log_p: vec![0.0; number], error: vec![0.0; number] };
        let particles = smc.num_particles.div_ceil(ISLANDS);
        let smc = SmcConfig { num_particles: particles, ..smc.clone() };
        let together = (TILE / (particles * ISLANDS)).max(1);
        let own = self.part_of_rows(drawn.len(), together);
        let found = self.pool.install(|| {
            let found: Vec<Vec<f64>> = plain
                .par_chunks(TILE)
                .map(|rows| {
                    self.with_memory(|memory| self.score_ends(memory, rows, &filled, &missing))
                })
                .collect();
            let found = found.iter().flatten();
            plain.iter().zip(found).for_each(|(&row, &log_p)| scores.log_p[row] = log_p);
            let tiles: Vec<Result<Vec<f64>>> = drawn[own.clone()]
                .par_chunks(together)
                .enumerate()
                .map(|(tile, rows)| {
                    self.watch.check()?;
                    let tile = own.start / together + tile;
                    let systems: Vec<usize> = rows.iter().flat_map(|&row| [row; ISLANDS]).collect();
                    let streams = streams.derive("ar-observed", tile as u64);
                    let mut holes =
                        Holes::new(self, &systems, &filled, &missing, particles, &streams);
                    let filter = Filter::new(&smc, systems.len(), First::Drawn).without_past();
                    let genealogy = filter.run(holes.last_stage(), &mut holes)?;
                    self.watch.advance(rows.len() * features);
                    let systems = genealogy.log_z_hat.chunks_exact(ISLANDS);
                    Ok(systems.flat_map(mean_and_error).collect())
                })
                .collect();
            tiles.into_iter().collect::<Result<Vec<_>>>().map(|tiles| tiles.concat())
        });
        if self.workers.is_stopped(&self.watch) {
            return Err(Error::Stopped);
        }
        let found = self.workers.concat(found?);
        for (found, &row) in found.chunks_exact(2).zip(&drawn) {
            (scores.log_p[row], scores.error[row]) = (found[0], found[1]);
        }
        Ok(scores)
    }

    /// New values of what is missing in every row, by one transition of a kernel that leaves `p(missing | observed)` invariant:
    /// conditional SMC with the present values as the particle that is kept (Andrieu, Doucet and Holenstein, 2010).
    ///
    /// A row of which a missing value is not a number has no present values, and gets a draw of plain SMC. What is missing after all that
    /// is observed is drawn from the model itself. Numbers in cells come back as the centres of their cells.
    ///
    /// # Shapes
    /// - `x`, `missing`, output: `[n, features]`, row-major
    pub fn redraw_missing(
        &self,
        x: &[f32],
        missing: &[bool],
        smc: &SmcConfig,
        streams: &Streams,
        step: u64,
    ) -> Result<Vec<f32>> {
        self.check_holes(smc)?;
        let features = self.features();
        assert!(x.len().is_multiple_of(features), "whole rows of {features} features");
        assert_eq!(x.len(), missing.len(), "for every value whether it is missing");
        self.check_given(missing.iter().copied())?;
        let number = x.len() / features;
        let row_of = |row: usize| row * features..(row + 1) * features;
        let is_new = |row: &usize| x[row_of(*row)].iter().any(|x| x.is_nan());
        let holed = (0..number).filter(|&row| missing[row_of(row)].contains(&true));
        let (new, kept): (Vec<usize>, Vec<usize>) = holed.partition(is_new);
        let filled: Vec<f32> = x.iter().map(|&x| if x.is_nan() { 0.0 } else { x }).collect();
        let together = (TILE / smc.num_particles).max(1);
        let mut moved = filled.clone();
        for (first, rows) in [(First::Drawn, new), (First::Retained, kept)] {
            let purpose = if first == First::Drawn { "ar-fill" } else { "ar-redraw" };
            let tiles: Vec<Result<Vec<f32>>> = self.pool.install(|| {
                let tiles = rows.par_chunks(together).enumerate();
                tiles
                    .map(|(tile, rows)| {
                        self.watch.check()?;
                        let streams = streams.derive(purpose, step).derive("tile", tile as u64);
                        self.redraw(rows, &filled, missing, smc, first, &streams)
                    })
                    .collect()
            });
            for (tile, rows) in tiles.into_iter().zip(rows.chunks(together)) {
                for (values, &row) in tile?.chunks_exact(features).zip(rows) {
                    moved[row_of(row)].copy_from_slice(values);
                }
            }
        }
        Ok(moved)
    }

    /// New values of a few rows.
    fn redraw(
        &self,
        rows: &[usize],
        x: &[f32],
        missing: &[bool],
        smc: &SmcConfig,
        first: First,
        streams: &Streams,
    ) -> Result<Vec<f32>> {
        let (features, particles) = (self.features(), smc.num_particles);
        let mut holes = Holes::new(self, rows, x, missing, particles, streams);
        holes.retained = first == First::Retained;
        let stages = holes.last_stage();
        let mut chosen: Vec<usize> = (0..rows.len()).map(|row| row * particles).collect();
        if stages > 0 {
            let genealogy =
                Filter::new(smc, rows.len(), first).without_past().run(stages, &mut holes)?;
            let weights = genealogy.final_weights().chunks_exact(particles);
            for (row, weights) in weights.enumerate() {
                chosen[row] += holes.rngs[row].categorical(weights);
            }
        }
        let values = chosen.iter().flat_map(|&at| &holes.rows[at * features..][..features]);
        let mut values: Vec<f32> = values.copied().collect();
        for stage in 0..features {
            let after: Vec<usize> =
                (0..rows.len()).filter(|&row| stage >= holes.last[row]).collect();
            let drawn = holes.draw_of(&values, &after, stage);
            for (&row, value) in after.iter().zip(drawn) {
                values[row * features + stage] = value;
            }
        }
        Ok(values)
    }

    /// The scores of rows of which nothing missing comes before something observed: no particles are needed.
    fn score_ends(
        &self,
        memory: &mut Memory,
        rows: &[usize],
        x: &[f32],
        missing: &[bool],
    ) -> Vec<f64> {
        let features = self.features();
        let values: Vec<f32> =
            rows.iter().flat_map(|row| &x[row * features..][..features]).copied().collect();
        let mut log_p = vec![0.0; rows.len()];
        memory.forward.begin(&values, features, 1, true, Defence::default());
        self.see_given(memory);
        for stage in self.given()..features {
            self.advance(memory, stage, &mut []);
            for (at, log_p) in log_p.iter_mut().enumerate() {
                if !missing[rows[at] * features + stage] {
                    *log_p += f64::from(memory.pass.log_p[at]);
                }
            }
        }
        self.watch.advance(rows.len() * features);
        log_p
    }

    /// An error where something is missing that is given: the model says nothing of it.
    fn check_given(&self, missing: impl Iterator<Item = bool>) -> Result<()> {
        let features = self.features();
        let mut missing = missing.enumerate();
        match missing.find(|(at, missing)| *missing && at % features < self.given()) {
            None => Ok(()),
            Some((at, _)) => {
                let value = format!("feature {} of row {}, missing", at % features, at / features);
                Err(Error::setting(
                    "given",
                    value,
                    "there: the model says nothing of what is given",
                ))
            }
        }
    }

    fn check_holes(&self, smc: &SmcConfig) -> Result<()> {
        smc.validate()?;
        match self.engine.config.normalisation {
            _ if self.draws_exactly() => Ok(()),
            Normalisation::Global => {
                Err(Error::setting("normalisation", "global", "local for rows with holes"))
            }
            Normalisation::Local => {
                Err(Error::setting("energy_form", "free", "tilted for rows with holes"))
            }
        }
    }
}

/// Whether something missing comes before something observed.
fn has_holes(missing: &[bool]) -> bool {
    missing[..observed_until(missing)].contains(&true)
}

/// One more than the last feature that is observed.
fn observed_until(missing: &[bool]) -> usize {
    missing.iter().rposition(|missing| !missing).map_or(0, |last| last + 1)
}

/// The log of the mean of estimates, and its standard error.
fn mean_and_error(log_z: &[f64]) -> [f64; 2] {
    let (mean, number) = (log_mean_exp(log_z), log_z.len() as f64);
    let squares: f64 = log_z.iter().map(|log_z| ((log_z - mean).exp() - 1.0).powi(2)).sum();
    [mean, (squares / (number * (number - 1.0))).sqrt()]
}

/// Particle systems of rows with holes, a few at a time.
struct Holes<'a> {
    evaluator: &'a Evaluator,
    particles: usize,
    /// Whether the first particle of each system keeps its values.
    retained: bool,
    /// `[systems * particles, features]`
    rows: Vec<f32>,
    /// `[systems, features]`
    missing: Vec<bool>,
    /// Up to where each system is observed.
    last: Vec<usize>,
    /// First particle of the same system with the same features so far, as far as is known.
    representative: Vec<usize>,
    draws: Stream,
    /// One for each system.
    rngs: Vec<Stream>,
}

impl<'a> Holes<'a> {
    /// Systems of some rows of `x`.
    fn new(
        evaluator: &'a Evaluator,
        systems: &[usize],
        x: &[f32],
        missing: &[bool],
        particles: usize,
        streams: &Streams,
    ) -> Self {
        let features = evaluator.features();
        let row = |row: usize| row * features..(row + 1) * features;
        let copies = |&system: &usize| x[row(system)].repeat(particles);
        Self {
            evaluator,
            particles,
            retained: false,
            rows: systems.iter().flat_map(copies).collect(),
            missing: systems.iter().flat_map(|&system| missing[row(system)].to_vec()).collect(),
            last: systems.iter().map(|&system| observed_until(&missing[row(system)])).collect(),
            representative: (0..systems.len() * particles).map(|at| at - at % particles).collect(),
            draws: streams.stream("draws", 0, 0),
            rngs: streams.lanes("particles", 0, 0..systems.len()),
        }
    }

    /// After which nothing is observed of any system.
    fn last_stage(&self) -> usize {
        self.last.iter().copied().max().unwrap_or(0)
    }

    /// Systems of which a feature is missing, or observed, as long as they have something observed at it or after it.
    fn systems(&self, stage: usize, missing: bool) -> Vec<usize> {
        let features = self.evaluator.features();
        let number = self.last.len();
        let takes_part = |system: &usize| {
            stage < self.last[*system] && self.missing[system * features + stage] == missing
        };
        (0..number).filter(takes_part).collect()
    }

    /// Puts the particles of some systems in the place of rows that are known so far.
    fn begin(&self, memory: &mut Memory, systems: &[usize]) {
        let (features, particles) = (self.evaluator.features(), self.particles);
        let forward = &mut memory.forward;
        forward.begin_free(systems.len() * particles, features, Defence::default());
        let places = forward.rows.chunks_exact_mut(particles * features).zip(systems).enumerate();
        for (place, (rows, &system)) in places {
            let first = system * particles;
            rows.copy_from_slice(&self.rows[first * features..][..particles * features]);
            let shared = self.representative[first..first + particles].iter();
            let to = &mut forward.representative[place * particles..];
            to.iter_mut().zip(shared).for_each(|(to, from)| *to = from - first + place * particles);
        }
    }

    /// Exact draws of a feature of some rows of `values`.
    fn draw_of(&mut self, values: &[f32], rows: &[usize], stage: usize) -> Vec<f32> {
        if rows.is_empty() {
            return Vec::new();
        }
        let (evaluator, features) = (self.evaluator, self.evaluator.features());
        evaluator.with_memory(|memory| {
            memory.forward.begin_free(rows.len(), features, Defence::default());
            let places = memory.forward.rows.chunks_exact_mut(features).zip(rows);
            for (place, row) in places {
                place.copy_from_slice(&values[row * features..][..features]);
            }
            evaluator.draw_exactly(memory, stage, &mut self.draws);
            memory.pass.x.clone()
        })
    }
}

impl Particles for Holes<'_> {
    fn advance(&mut self, stage: usize, log_weights: &mut [f64]) -> Result<()> {
        let (evaluator, particles) = (self.evaluator, self.particles);
        if stage < evaluator.given() {
            return Ok(());
        }
        let features = evaluator.features();
        let [observed, missing] = [false, true].map(|missing| self.systems(stage, missing));
        evaluator.with_memory(|memory| {
            if !observed.is_empty() {
                self.begin(memory, &observed);
                memory.forward.keep();
                evaluator.advance(memory, stage, &mut []);
                for (system, log_p) in
                    observed.iter().zip(memory.pass.log_p.chunks_exact(particles))
                {
                    let log_weights = &mut log_weights[system * particles..][..particles];
                    let terms = log_weights.iter_mut().zip(log_p);
                    terms.for_each(|(log_w, &log_p)| *log_w += f64::from(log_p));
                }
            }
            if !missing.is_empty() {
                self.begin(memory, &missing);
                evaluator.draw_exactly(memory, stage, &mut self.draws);
                for (system, x) in missing.iter().zip(memory.pass.x.chunks_exact(particles)) {
                    for (particle, &x) in x.iter().enumerate().skip(usize::from(self.retained)) {
                        let row = system * particles + particle;
                        self.rows[row * features + stage] = x;
                    }
                    let first = system * particles;
                    let own = self.representative[first..first + particles].iter_mut();
                    own.enumerate().for_each(|(particle, to)| *to = first + particle);
                }
            }
        });
        Ok(())
    }

    fn descend(&mut self, stage: usize, row: usize, ancestors: &[usize]) {
        let (features, first) = (self.evaluator.features(), row * self.particles);
        let range = first * features..(first + self.particles) * features;
        let old = self.rows[range].to_vec();
        let shared: Vec<usize> =
            ancestors.iter().map(|ancestor| self.representative[first + ancestor]).collect();
        for (particle, &ancestor) in ancestors.iter().enumerate() {
            let to = (first + particle) * features;
            self.rows[to..to + stage + 1].copy_from_slice(&old[ancestor * features..][..stage + 1]);
            let sibling = shared.iter().position(|&other| other == shared[particle]);
            self.representative[first + particle] = first + sibling.expect("itself");
        }
    }

    fn rng(&mut self, _stage: usize, row: usize) -> &mut Stream {
        &mut self.rngs[row]
    }
}
