//! Densities in closed form, as models: mixtures of Gaussians, normalised, or known up to a constant and by a proposal.

use rayon::ThreadPool;
use zhat::ar::RowScores;
use zhat::evaluate::{bridge_sampling, pareto_k};
use zhat::rng::{Stream, Streams};
use zhat::watch::Watch;
use zhat::weights::{effective_sample_size, log_mean_exp, log_sum_exp};
use zhat_table::Result;
use zhat_table::data::Standardiser;
use zhat_table::density::{
    CellScores, Cloud, Density, Estimate, Estimation, FAR_OUT, Opinion, Tail,
};

/// A weighted Gaussian: its weight, mean, and the lower factor of its covariance, row by row.
#[derive(Debug, Clone)]
pub struct Part {
    pub weight: f64,
    pub mean: Vec<f64>,
    pub factor: Vec<f64>,
}

impl Part {
    /// Of one deviation in all directions.
    pub fn round(weight: f64, mean: &[f64], std_dev: f64) -> Self {
        Self::new(weight, mean, &vec![std_dev; mean.len()])
    }

    /// Of a deviation for each column, which are independent.
    pub fn new(weight: f64, mean: &[f64], std_dev: &[f64]) -> Self {
        let size = mean.len();
        let mut factor = vec![0.0; size * size];
        (0..size).for_each(|i| factor[i * size + i] = std_dev[i]);
        Self { weight, mean: mean.to_vec(), factor }
    }

    /// Of columns with deviation 1 and one correlation from each to the next.
    pub fn chained(mean: &[f64], correlation: f64) -> Self {
        let size = mean.len();
        let mut factor = vec![0.0; size * size];
        for i in 0..size {
            for j in 0..=i {
                let scale = if j == 0 { 1.0 } else { (1.0 - correlation * correlation).sqrt() };
                factor[i * size + j] = correlation.powi((i - j) as i32) * scale;
            }
        }
        Self { weight: 1.0, mean: mean.to_vec(), factor }
    }
}

/// A mixture of Gaussians.
#[derive(Debug, Clone)]
pub struct Mixture(pub Vec<Part>);

impl Mixture {
    pub fn dimension(&self) -> usize {
        self.0[0].mean.len()
    }

    /// All deviations times a factor.
    pub fn scaled(&self, by: f64) -> Self {
        let mut scaled = self.clone();
        scaled.0.iter_mut().flat_map(|part| &mut part.factor).for_each(|entry| *entry *= by);
        scaled
    }

    /// All means moved in the first column.
    pub fn moved(&self, by: f64) -> Self {
        let mut moved = self.clone();
        moved.0.iter_mut().for_each(|part| part.mean[0] += by);
        moved
    }

    /// Independent rows, one after the other.
    pub fn rows(&self, number: usize, rng: &mut Stream) -> Vec<f32> {
        let total: f64 = self.0.iter().map(|part| part.weight).sum();
        let weights: Vec<f64> = self.0.iter().map(|part| part.weight / total).collect();
        let size = self.dimension();
        let mut rows = Vec::with_capacity(number * size);
        for _ in 0..number {
            let part = &self.0[rng.categorical(&weights)];
            let normals = rng.normals(size);
            rows.extend((0..size).map(|i| {
                let of_normals = part.factor[i * size..][..=i].iter().zip(&normals);
                (part.mean[i] + of_normals.map(|(a, b)| a * b).sum::<f64>()) as f32
            }));
        }
        rows
    }

    /// Of every cell given those before it: log-density, and share of the mass below.
    fn cells(&self, row: &[f32]) -> Vec<(f64, f64)> {
        let total: f64 = self.0.iter().map(|part| part.weight).sum();
        let mut log_weights: Vec<f64> =
            self.0.iter().map(|part| (part.weight / total).ln()).collect();
        let size = row.len();
        let mut whitened = vec![Vec::with_capacity(size); self.0.len()];
        (0..size)
            .map(|i| {
                let before = log_sum_exp(&log_weights);
                let mut below = 0.0;
                for ((part, whitened), log_weight) in
                    self.0.iter().zip(&mut whitened).zip(&mut log_weights)
                {
                    let pull: f64 = part.factor[i * size..][..i]
                        .iter()
                        .zip(whitened.iter())
                        .map(|(a, z)| a * z)
                        .sum();
                    let scale = part.factor[i * size + i];
                    let z = (f64::from(row[i]) - part.mean[i] - pull) / scale;
                    let share = zhat::log_normal_mass([f64::NEG_INFINITY, z]).exp();
                    below += (*log_weight - before).exp() * share;
                    *log_weight -= 0.5 * (z * z + (2.0 * std::f64::consts::PI).ln()) + scale.ln();
                    whitened.push(z);
                }
                (log_sum_exp(&log_weights) - before, below.clamp(0.0, 1.0))
            })
            .collect()
    }

    pub fn log_density(&self, row: &[f32]) -> f64 {
        self.cells(row).iter().map(|(log_p, _)| log_p).sum()
    }
}

/// A mixture as a model: normalised, or times a constant and with a proposal.
#[derive(Debug)]
pub struct Known {
    model: Mixture,
    proposal: Option<(Mixture, f64)>,
    columns: Vec<String>,
    standardiser: Standardiser,
    pool: ThreadPool,
    watch: Watch,
}

impl Known {
    pub fn normalised(model: Mixture) -> Self {
        let size = model.dimension();
        Self {
            model,
            proposal: None,
            columns: (1..=size).map(|index| format!("x{index}")).collect(),
            standardiser: Standardiser::identity(size),
            pool: rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap(),
            watch: Watch::default(),
        }
    }

    /// `p~` is the mixture times the exponential of `log_z`, which nobody is told.
    pub fn global(model: Mixture, log_z: f64, proposal: Mixture) -> Self {
        Self { proposal: Some((proposal, log_z)), ..Self::normalised(model) }
    }

    fn log_p_tilde(&self, row: &[f32]) -> f64 {
        self.model.log_density(row) + self.proposal.as_ref().map_or(0.0, |(_, log_z)| *log_z)
    }

    /// Draws of the proposal and their log-weights.
    fn particles(&self, number: usize, rng: &mut Stream) -> (Vec<f32>, Vec<f64>) {
        let (proposal, _) = self.proposal.as_ref().expect("a proposal");
        let rows = proposal.rows(number, rng);
        let log_w = rows
            .chunks_exact(self.columns.len())
            .map(|row| self.log_p_tilde(row) - proposal.log_density(row))
            .collect();
        (rows, log_w)
    }

    /// Draws of the model by weight, moved once.
    fn moved(&self, number: usize, streams: &Streams) -> Result<Vec<f32>> {
        let cloud = self.draw(&vec![f32::NAN; self.columns.len()], 10 * number, streams)?;
        let draws = cloud.sample(number, &mut streams.stream("draws", 0, 0)).rows;
        self.refresh(draws, streams)
    }
}

/// Weights that sum to one.
fn normalised(log_w: &[f64]) -> Vec<f64> {
    let total = log_sum_exp(log_w);
    log_w.iter().map(|log_w| (log_w - total).exp()).collect()
}

impl Density for Known {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn standardiser(&self) -> &Standardiser {
        &self.standardiser
    }

    fn is_normalised(&self) -> bool {
        self.proposal.is_none()
    }

    fn pool(&self) -> &ThreadPool {
        &self.pool
    }

    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn score(&self, rows: &[f32]) -> Result<RowScores> {
        let rows = || rows.chunks_exact(self.columns.len());
        let log_p_tilde: Vec<f64> = rows().map(|row| self.log_p_tilde(row)).collect();
        let log_q = match &self.proposal {
            Some((proposal, _)) => rows().map(|row| proposal.log_density(row)).collect(),
            None => log_p_tilde.clone(),
        };
        Ok(RowScores { log_q, log_p_tilde })
    }

    fn cells(&self, rows: &[f32]) -> Result<Option<CellScores>> {
        if self.proposal.is_some() {
            return Ok(None);
        }
        let cells = rows.chunks_exact(self.columns.len()).flat_map(|row| self.model.cells(row));
        let (log_p, below) = cells.unzip();
        Ok(Some(CellScores { log_p, below }))
    }

    fn draw(&self, given: &[f32], particles: usize, streams: &Streams) -> Result<Cloud> {
        assert!(given.iter().all(|cell| cell.is_nan()), "nothing is given in the zoo");
        let rng = &mut streams.stream("particles", 0, 0);
        let (rows, weights) = match &self.proposal {
            None => (self.model.rows(particles, rng), vec![1.0 / particles as f64; particles]),
            Some(_) => {
                let (rows, log_w) = self.particles(particles, rng);
                (rows, normalised(&log_w))
            }
        };
        let size = self.columns.len();
        let column = |at: usize| rows.iter().skip(at).step_by(size).copied().collect();
        let columns = (0..size).map(column).collect();
        let effective = effective_sample_size(&weights);
        Ok(Cloud::new(columns, weights, effective, &self.standardiser, given))
    }

    /// One step of conditional importance sampling with twenty candidates, which leaves the model invariant.
    fn refresh(&self, mut rows: Vec<f32>, streams: &Streams) -> Result<Vec<f32>> {
        let Some((proposal, _)) = &self.proposal else { return Ok(rows) };
        let (rng, size) = (&mut streams.stream("refresh", 0, 0), self.columns.len());
        for row in rows.chunks_exact_mut(size) {
            let (candidates, mut log_w) = self.particles(20, rng);
            log_w.push(self.log_p_tilde(row) - proposal.log_density(row));
            let chosen = rng.categorical(&normalised(&log_w));
            if chosen < 20 {
                row.copy_from_slice(&candidates[chosen * size..][..size]);
            }
        }
        Ok(rows)
    }

    fn estimates(&self, settings: &Estimation, streams: &Streams) -> Result<Vec<Estimate>> {
        let size = self.columns.len();
        let estimate = |repeat: usize| {
            let rng = &mut streams.stream("estimate", repeat as u64, 0);
            let (rows, log_w) = self.particles(settings.particles, rng);
            let weights = normalised(&log_w);
            let is_far = |row: &[f32]| row.iter().any(|x| x.abs() > FAR_OUT);
            let far = rows.chunks_exact(size).zip(&weights).filter(|(row, _)| is_far(row));
            let share = effective_sample_size(&weights) / settings.particles as f64;
            Estimate {
                log_z_hat: log_mean_exp(&log_w),
                effective_sample_size: vec![share; size],
                largest_weight: weights.iter().copied().fold(0.0, f64::max),
                far_out: far.map(|(_, weight)| weight).sum(),
                pareto_k: vec![pareto_k(&log_w); size],
                relative_variance: (1.0 / share - 1.0) / settings.particles as f64,
            }
        };
        let number = if self.proposal.is_some() { settings.estimates } else { 0 };
        Ok((0..number).map(estimate).collect())
    }

    fn opinions(&self, settings: &Estimation, streams: &Streams) -> Result<Vec<Opinion>> {
        if self.proposal.is_none() {
            return Ok(Vec::new());
        }
        let bridge = |repeat: usize| -> Result<f64> {
            let streams = streams.derive("bridge", repeat as u64);
            let (_, of_proposal) =
                self.particles(settings.particles, &mut streams.stream("proposal", 0, 0));
            let moved = self.moved(settings.particles / 20, &streams)?;
            let scores = self.score(&moved)?;
            let of_model: Vec<f64> =
                scores.log_p_tilde.iter().zip(&scores.log_q).map(|(p, q)| p - q).collect();
            Ok(bridge_sampling(&of_proposal, &of_model))
        };
        let estimates = (0..settings.estimates).map(bridge).collect::<Result<Vec<_>>>()?;
        Ok(vec![Opinion::new("bridge sampling", &estimates, None)])
    }

    /// The row is one of the particles.
    fn opinion_from_rows(
        &self,
        rows: &[f32],
        settings: &Estimation,
        streams: &Streams,
    ) -> Result<Option<Opinion>> {
        let Some((proposal, _)) = &self.proposal else { return Ok(None) };
        let rng = &mut streams.stream("from-rows", 0, 0);
        let rows = rows.chunks_exact(self.columns.len()).take(settings.estimates);
        let around = |row: &[f32]| {
            let (_, mut log_w) = self.particles(settings.particles - 1, rng);
            log_w.push(self.log_p_tilde(row) - proposal.log_density(row));
            log_mean_exp(&log_w)
        };
        let estimates: Vec<f64> = rows.map(around).collect();
        Ok(Some(Opinion::from_above("conditional importance sampling from rows", &estimates)))
    }

    fn tail(&self, _rows: &[f32]) -> Result<Tail> {
        Ok(Tail { column: self.columns[0].clone(), log_p_tilde: Vec::new(), falls: true })
    }

    fn quadrature_error(&self, _rows: &[f32]) -> Result<f64> {
        Ok(0.0)
    }

    fn work(&self, _settings: &Estimation) -> [u64; 2] {
        [0, 0]
    }
}
