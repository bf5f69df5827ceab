//! The autoregressive EBM as a density: features inside, rows in the units of the data outside.

use std::sync::Arc;

use zhat::ar::{ArEbm, ArStepConfig, Evaluator, ObservedScores, RowScores, SmcEstimate};
use zhat::criterion::Method;
use zhat::ranks::Workers;
use zhat::rng::Streams;
use zhat::smc::{ResampleWhen, Resampling, SmcConfig};
use zhat::watch::Watch;

use super::{
    CellScores, Cloud, Density, Estimate, Estimation, FAR_OUT, Opinion, Tail, check_given,
};
use crate::data::Standardiser;
use crate::error::Result;
use crate::memory;

/// Particles of the other opinions on `log Z`, at most: they are a check, and need not be as sharp.
const MOST_FOR_OPINIONS: usize = 200_000;

/// Particles around a row, at most, in the opinion from rows.
const MOST_AROUND_A_ROW: usize = 4_000;
/// Rows at whose prefixes normalisers are sampled, and draws for each factor.
const ROWS_FOR_NORMALISERS: usize = 64;
const DRAWS_FOR_NORMALISERS: usize = 200;

/// An autoregressive EBM with its columns and their units.
#[derive(Debug)]
pub struct ArDensity {
    evaluator: Evaluator,
    watch: Arc<Watch>,
    columns: Vec<String>,
    standardiser: Standardiser,
    criterion: Method,
    /// Particles for what is missing of a row that is scored.
    particles: usize,
    /// The proposal, for rows with holes; none where nobody asks for it, or it is the density itself.
    proposal: Option<Evaluator>,
}

/// Particles for what is missing of a row that is scored, where nothing else is said.
const PARTICLES_FOR_HOLES: usize = 128;

impl ArDensity {
    /// The density that a criterion trains: the proposal where it alone was trained, else the model.
    ///
    /// 0 threads means as many as there are cores; several ranks share the work.
    pub fn new(
        model: &ArEbm,
        criterion: Method,
        columns: &[String],
        standardiser: &Standardiser,
        workers: impl Into<Workers>,
        watch: Arc<Watch>,
    ) -> Result<Self> {
        let evaluator = match criterion {
            Method::QOnly => Evaluator::of_proposal(model, workers)?,
            _ => Evaluator::new(model, workers)?,
        };
        Ok(Self {
            evaluator: evaluator.with_watch(Arc::clone(&watch)),
            watch,
            columns: columns.to_vec(),
            standardiser: standardiser.clone(),
            criterion,
            particles: PARTICLES_FOR_HOLES,
            proposal: None,
        })
    }

    /// Without a look-ahead to what is given ([`Evaluator::blind`]), to measure what it is worth.
    pub fn blind(self) -> Self {
        Self { evaluator: self.evaluator.blind(), ..self }
    }

    /// With scores of the proposal too where a row has holes, and so many particles for those.
    pub fn with_holes(mut self, model: &ArEbm, particles: usize) -> Result<Self> {
        self.particles = particles;
        if self.criterion != Method::QOnly {
            let proposal = Evaluator::of_proposal(model, self.evaluator.workers().clone())?;
            self.proposal = Some(proposal.with_watch(Arc::clone(&self.watch)));
        }
        Ok(self)
    }

    /// Log-densities of what is observed of rows, in the units of the data, by the model and by its proposal, and their errors.
    fn observed(&self, rows: &[f32]) -> Result<[ObservedScores; 2]> {
        let features = self.standardiser.features(rows);
        let smc = SmcConfig::new(self.particles)?;
        let cells = self.standardiser.cell_log_derivatives(rows);
        let slopes: Vec<f64> = cells
            .chunks_exact(self.columns.len())
            .map(|row| row[self.given()..].iter().filter(|slope| !slope.is_nan()).sum())
            .collect();
        let of = |evaluator: &Evaluator| -> Result<ObservedScores> {
            let mut found = evaluator.score_observed(&features, &smc, &Streams::new(0))?;
            found.log_p.iter_mut().zip(&slopes).for_each(|(log_p, slope)| *log_p += slope);
            Ok(found)
        };
        let model = of(&self.evaluator)?;
        let proposal = match (&self.proposal, self.criterion) {
            (Some(proposal), _) => of(proposal)?,
            (None, Method::QOnly) => model.clone(),
            (None, _) => ObservedScores {
                log_p: vec![f64::NAN; slopes.len()],
                error: vec![f64::NAN; slopes.len()],
            },
        };
        Ok([model, proposal])
    }

    /// Rows as features with something in the place of what is missing, for what only needs rows to be there.
    fn some_features(&self, rows: &[f32]) -> Vec<f32> {
        let mut features = self.standardiser.features(rows);
        features.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 0.0);
        features
    }

    /// The log of the derivative of the map of every row: of what is modelled of it.
    fn log_derivatives(&self, rows: &[f32]) -> Vec<f64> {
        let cells = self.standardiser.cell_log_derivatives(rows);
        let rows = cells.chunks_exact(self.columns.len());
        rows.map(|row| row[self.given()..].iter().sum()).collect()
    }

    /// Rows as features, and whether each is whole. One that is not goes through the networks as zeros, for its results to be
    /// blanked afterwards.
    fn whole_features(&self, rows: &[f32]) -> (Vec<f32>, Vec<bool>) {
        let mut features = self.standardiser.features(rows);
        let mut whole = Vec::with_capacity(rows.len() / self.columns.len());
        for row in features.chunks_exact_mut(self.columns.len()) {
            whole.push(!row.iter().any(|cell| cell.is_nan()));
            if whole.last() == Some(&false) {
                row.fill(0.0);
            }
        }
        (features, whole)
    }

    /// Some of the rows that have no holes, as features.
    fn whole_rows(&self, rows: &[f32], most: usize) -> Vec<f32> {
        let columns = self.columns.len();
        let whole: Vec<&[f32]> = rows
            .chunks_exact(columns)
            .filter(|row| !row.iter().any(|cell| cell.is_nan()))
            .collect();
        let number = whole.len().min(most);
        let some: Vec<f32> =
            (0..number).flat_map(|at| whole[at * whole.len() / number]).copied().collect();
        self.standardiser.features(&some)
    }

    /// Plain importance sampling: SMC that never resamples.
    fn importance(&self, particles: usize, estimates: usize, streams: &Streams) -> Result<Opinion> {
        let never = ResampleWhen::EffectiveSampleSizeBelow(0.0);
        let smc = SmcConfig::new(particles)?.with_resample_when(never);
        let streams = streams.derive("importance", 0);
        let (mut log_z_hats, mut size) = (Vec::new(), 0.0);
        for repeat in 0..estimates {
            let run = self.evaluator.smc(&smc, &streams, repeat as u64)?;
            log_z_hats.push(run.log_z_hat);
            size += run.effective_sample_size.last().expect("a column") / estimates as f64;
        }
        Ok(Opinion::new("importance sampling", &log_z_hats, Some(size)))
    }

    fn bridge(&self, particles: usize, estimates: usize, streams: &Streams) -> Result<Opinion> {
        let log_z_hats = (0..estimates)
            .map(|repeat| self.evaluator.bridge(particles, streams, repeat as u64))
            .collect::<zhat::Result<Vec<f64>>>()?;
        Ok(Opinion::new("bridge sampling", &log_z_hats, None))
    }
}

impl Density for ArDensity {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn given(&self) -> usize {
        self.evaluator.given()
    }

    fn standardiser(&self) -> &Standardiser {
        &self.standardiser
    }

    fn is_normalised(&self) -> bool {
        self.evaluator.is_normalised()
    }

    fn criterion(&self) -> Option<Method> {
        Some(self.criterion)
    }

    fn pool(&self) -> &rayon::ThreadPool {
        self.evaluator.pool()
    }

    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn score(&self, rows: &[f32]) -> Result<RowScores> {
        Ok(self.score_with_errors(rows)?.0)
    }

    fn score_with_errors(&self, rows: &[f32]) -> Result<(RowScores, Vec<f64>)> {
        self.watch.check()?;
        let (features, whole) = self.whole_features(rows);
        let scores = self.evaluator.score(&features);
        self.watch.check()?;
        let log_derivatives = self.log_derivatives(rows);
        let in_units = |scores: Vec<f64>| {
            let score = |((score, whole), log_derivative)| match whole {
                true => score + log_derivative,
                false => f64::NAN,
            };
            scores.into_iter().zip(whole.iter().copied()).zip(&log_derivatives).map(score).collect()
        };
        let mut scores =
            RowScores { log_p_tilde: in_units(scores.log_p_tilde), log_q: in_units(scores.log_q) };
        let mut errors = vec![0.0; whole.len()];
        let columns = self.columns.len();
        let has_given = |row: usize| check_given(self, &rows[row * columns..][..columns]).is_ok();
        let holed: Vec<usize> =
            (0..whole.len()).filter(|&row| !whole[row] && has_given(row)).collect();
        if !holed.is_empty() && self.evaluator.scores_holes() {
            let part = |row: &usize| rows[row * columns..][..columns].to_vec();
            let [model, proposal] =
                self.observed(&holed.iter().flat_map(part).collect::<Vec<_>>())?;
            for (at, &row) in holed.iter().enumerate() {
                scores.log_p_tilde[row] = model.log_p[at];
                scores.log_q[row] = proposal.log_p[at];
                errors[row] = model.error[at];
            }
        }
        Ok((scores, errors))
    }

    fn cells(&self, rows: &[f32]) -> Result<Option<CellScores>> {
        self.watch.check()?;
        let (features, whole) = self.whole_features(rows);
        let Some(mut cells) = self.evaluator.cells(&features) else { return Ok(None) };
        self.watch.check()?;
        // Of what is counted the share below is anywhere in the mass of its class or cell: uniform, where the density is right.
        let mut rng = Streams::new(0).stream("cells", 0, 0);
        for (cell, (below, log_p)) in cells.below.iter_mut().zip(&cells.log_p).enumerate() {
            if self.standardiser.is_counted(cell % self.columns.len()) {
                *below = (*below - rng.uniform() * log_p.exp()).clamp(0.0, 1.0);
            }
        }
        let log_derivatives = self.standardiser.cell_log_derivatives(rows);
        let of_cells = cells.log_p.iter_mut().zip(&mut cells.below).zip(log_derivatives);
        for (cell, ((log_p, below), log_derivative)) in of_cells.enumerate() {
            match whole[cell / self.columns.len()] {
                // Nothing is said of what is given.
                true if cell % self.columns.len() < self.given() => {}
                // At an atom the share below is anywhere in its mass, as that of a cell.
                true if self
                    .standardiser
                    .atom(cell % self.columns.len(), features[cell])
                    .is_some() =>
                {
                    *below += rng.uniform() * log_p.exp();
                }
                true => *log_p += log_derivative,
                // An increasing map leaves the share below a cell as it is.
                false => (*log_p, *below) = (f64::NAN, f64::NAN),
            }
        }
        Ok(Some(cells))
    }

    fn draw(&self, given: &[f32], particles: usize, streams: &Streams) -> Result<Cloud> {
        check_given(self, given)?;
        let features = self.standardiser.features(given);
        let known: Vec<_> = features.iter().map(|cell| (!cell.is_nan()).then_some(*cell)).collect();
        memory::check("particles", particles, memory::of_particles(particles, given.len()))?;
        let smc = SmcConfig::new(particles)?.with_resampling(Resampling::Systematic);
        let SmcEstimate { columns, weights, effective_sample_size, log_z_hat, .. } =
            self.evaluator.smc_given(&smc, &known, streams, 0)?;
        let worst = effective_sample_size.into_iter().fold(f64::INFINITY, f64::min);
        let mut cloud = Cloud::new(columns, weights, worst, &self.standardiser, given);
        cloud.log_evidence = log_z_hat;
        Ok(cloud)
    }

    fn refresh(&self, mut rows: Vec<f32>, streams: &Streams) -> Result<Vec<f32>> {
        self.standardiser.apply(&mut rows);
        let settings = ArStepConfig::new(Method::SmcRnce);
        let mut moved = self.evaluator.transition(&settings, &rows, streams, 0)?;
        self.standardiser.invert(&mut moved);
        Ok(moved)
    }

    fn estimates(&self, settings: &Estimation, streams: &Streams) -> Result<Vec<Estimate>> {
        if self.is_normalised() {
            return Ok(Vec::new());
        }
        let needed = memory::of_particles(settings.particles, self.columns.len());
        memory::check("particles", settings.particles, needed)?;
        let smc = SmcConfig::new(settings.particles)?
            .with_resampling(settings.resampling)
            .with_resample_when(ResampleWhen::EveryStage);
        let estimate = |repeat| {
            let run = self.evaluator.smc(&smc, streams, repeat as u64)?;
            let far = |particle: usize| run.columns.iter().any(|c| c[particle].abs() > FAR_OUT);
            let share = |size: &f64| size / settings.particles as f64;
            Ok(Estimate {
                log_z_hat: run.log_z_hat,
                effective_sample_size: run.effective_sample_size.iter().map(share).collect(),
                largest_weight: run.largest_weight.iter().copied().fold(0.0, f64::max),
                pareto_k: run.pareto_k.clone(),
                relative_variance: run.relative_variance,
                far_out: (0..settings.particles).filter(|&p| far(p)).map(|p| run.weights[p]).sum(),
            })
        };
        (0..settings.estimates).map(estimate).collect()
    }

    fn opinions(&self, settings: &Estimation, streams: &Streams) -> Result<Vec<Opinion>> {
        if self.is_normalised() {
            return Ok(Vec::new());
        }
        let particles = settings.particles.min(MOST_FOR_OPINIONS);
        Ok(vec![
            self.importance(particles, settings.estimates, streams)?,
            self.bridge(particles, settings.estimates, streams)?,
        ])
    }

    fn opinion_from_rows(
        &self,
        rows: &[f32],
        settings: &Estimation,
        streams: &Streams,
    ) -> Result<Option<Opinion>> {
        let sampled = self.is_normalised();
        let most = if sampled { ROWS_FOR_NORMALISERS } else { settings.estimates };
        let rows = self.whole_rows(rows, most);
        let number = rows.len() / self.columns.len();
        if self.criterion == Method::QOnly || number < 2 {
            return Ok(None);
        }
        let streams = streams.derive("from-rows", 0);
        if sampled {
            let draws = DRAWS_FOR_NORMALISERS;
            let sums = self.evaluator.sampled_normalisers(draws, &rows, &streams)?;
            return Ok(Some(Opinion::new("sampling of the integrals", &sums, None)));
        }
        let smc = SmcConfig::new(settings.particles.min(MOST_AROUND_A_ROW))?;
        let log_z_hats = self.evaluator.log_z_from_rows(&smc, &rows, &streams)?;
        Ok(Some(Opinion::from_above("conditional SMC from rows", &log_z_hats)))
    }

    fn tail(&self, rows: &[f32]) -> Result<Tail> {
        self.watch.check()?;
        let ladder = self.evaluator.ladder(&self.some_features(rows));
        self.watch.check()?;
        let worst = ladder.worst();
        // JSON has no infinity.
        let finite = |&[at, log_p]: &[f64; 2]| [at, log_p.clamp(f64::MIN, f64::MAX)];
        Ok(Tail {
            column: self.columns[worst.feature].clone(),
            log_p_tilde: worst.log_p_tilde.iter().map(finite).collect(),
            falls: ladder.falls(),
        })
    }

    fn quadrature_error(&self, rows: &[f32]) -> Result<f64> {
        self.watch.check()?;
        let error = self.evaluator.quadrature_error(&self.some_features(rows));
        self.watch.check()?;
        Ok(error)
    }

    fn work(&self, settings: &Estimation) -> [u64; 2] {
        let rounds = if self.is_normalised() { 0 } else { settings.estimates * self.columns.len() };
        let opinions = settings.particles.min(MOST_FOR_OPINIONS);
        // Importance sampling, the bridge's two clouds and its scores; its move is not counted.
        [settings.particles, 3 * opinions + opinions / 20].map(|rows| (rounds * rows) as u64)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use zhat::ar::ArEbmConfig;

    use super::*;
    use crate::data::{Marginals, Table};
    use crate::fit::mean_and_error;

    const UNITS: [(f64, f64); 2] = [(100.0, 20.0), (-3.0, 0.5)];

    fn density(criterion: Method) -> (ArDensity, Evaluator) {
        let config = ArEbmConfig { features: 2, ..ArEbmConfig::small() };
        let model =
            config.init(&Device::flex(), &mut Streams::new(3).stream("init", 0, 0)).unwrap();
        let (mean, std_dev) = UNITS.into_iter().unzip();
        let standardiser = Standardiser::new(mean, std_dev);
        let columns = ["a".into(), "b".into()];
        let watch = Arc::default();
        let density = ArDensity::new(&model, criterion, &columns, &standardiser, 2, watch).unwrap();
        (density, Evaluator::new(&model, 2).unwrap())
    }

    #[test]
    fn rows_are_scored_in_the_units_of_the_data_and_not_at_all_where_a_cell_is_missing() {
        let (density, evaluator) = density(Method::Rnce);
        let scores = density.score(&[120.0, -3.5, 120.0, f32::NAN]).unwrap();
        let standard = evaluator.score(&[1.0, -1.0]);
        // p(x) = p(z) |dz / dx| with z = (x - mean) / sigma.
        let log_scale = (20.0f64 * 0.5).ln();
        assert!((scores.log_p_tilde[0] - standard.log_p_tilde[0] + log_scale).abs() < 1e-12);
        assert!((scores.log_q[0] - standard.log_q[0] + log_scale).abs() < 1e-12);
        assert!(scores.log_p_tilde[1].is_nan() && scores.log_q[1].is_nan());
    }

    /// A density of one column with heavy tails is one of its own units: it integrates to one, where leaving out the
    /// derivative of the map would not; and so are its draws and what they say of the column.
    #[test]
    fn a_column_mapped_to_normal_scores_is_scored_and_drawn_in_its_own_units() {
        let mut rng = Streams::new(8).stream("heavy", 0, 0);
        let values = (0..2000).map(|_| (100.0 + 20.0 * rng.normal().exp()) as f32).collect();
        let table = Table::new(vec!["a".into()], values);
        let standardiser =
            Standardiser::fit(&table).unwrap().with_marginals(&table, Marginals::Gaussian);
        let config = ArEbmConfig { features: 1, ..ArEbmConfig::small() };
        let model =
            config.init(&Device::flex(), &mut Streams::new(3).stream("init", 0, 0)).unwrap();
        let (columns, watch) = (["a".into()], Arc::default());
        let density =
            ArDensity::new(&model, Method::QOnly, &columns, &standardiser, 2, watch).unwrap();
        // Steps of equal features, which are short where the density is high.
        let mut edges: Vec<f32> = (0..=8000).map(|i| -8.0 + 0.002 * i as f32).collect();
        standardiser.invert(&mut edges);
        let middles: Vec<f32> = edges.windows(2).map(|pair| 0.5 * (pair[0] + pair[1])).collect();
        let widths = edges.windows(2).map(|pair| f64::from(pair[1]) - f64::from(pair[0]));
        let log_derivatives = standardiser.log_derivatives(&middles);
        let (mut total, mut mean, mut without) = (0.0, 0.0, 0.0);
        let scores = density.score(&middles).unwrap().log_p_tilde;
        for (((score, width), &x), log_derivative) in
            scores.iter().zip(widths).zip(&middles).zip(log_derivatives)
        {
            total += score.exp() * width;
            mean += score.exp() * width * f64::from(x);
            without += (score - log_derivative).exp() * width;
        }
        assert!((total - 1.0).abs() < 1e-3, "{total}");
        assert!((without - 1.0).abs() > 0.5, "{without}");
        let cloud = density.draw(&[f32::NAN], 50_000, &Streams::new(9)).unwrap();
        let draws = cloud.sample(50_000, &mut Streams::new(9).stream("draws", 0, 0)).rows;
        let (of_draws, error) =
            mean_and_error(&draws.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        assert!((cloud.mean(0) - mean).abs() < 5.0 * error, "{} {mean}", cloud.mean(0));
        assert!((of_draws - mean).abs() < 5.0 * error, "{of_draws} {mean}");
        let quantile = cloud.quantile(0, 0.9);
        let below = draws.iter().filter(|&&x| f64::from(x) <= quantile).count() as f64;
        assert!((below / 50_000.0 - 0.9).abs() < 5.0 * (0.09f64 / 50_000.0).sqrt());
    }

    /// Normalised column by column, with a column that is mapped to normal scores.
    fn local_density() -> (ArDensity, Streams) {
        let streams = Streams::new(12);
        let mut rng = streams.stream("rows", 0, 0);
        let mut row = || [(5.0 + rng.normal().exp()) as f32, (100.0 + 20.0 * rng.normal()) as f32];
        let table = Table::new(
            ["a", "b"].map(String::from).to_vec(),
            (0..900).flat_map(|_| row()).collect(),
        );
        let standardiser =
            Standardiser::fit(&table).unwrap().with_marginals(&table, Marginals::Gaussian);
        assert!(standardiser.maps[0].is_some());
        let config = ArEbmConfig {
            normalisation: zhat::ar::Normalisation::Local,
            energy_form: zhat::ar::EnergyForm::Tilted,
            conditioner: zhat::ar::Conditioner::Masked,
            features: 2,
            ..ArEbmConfig::small()
        };
        let model = config.init(&Device::flex(), &mut streams.stream("init", 0, 0)).unwrap();
        let (columns, watch) = (table.columns(), Arc::default());
        (ArDensity::new(&model, Method::MlIs, columns, &standardiser, 2, watch).unwrap(), streams)
    }

    #[test]
    fn cells_sum_to_the_score_in_the_units_of_the_data_and_shares_of_its_own_rows_are_uniform() {
        let (density, streams) = local_density();
        let number = 1_000;
        let cloud = density.draw(&[f32::NAN; 2], number, &streams).unwrap();
        let mut rows = cloud.sample(number, &mut streams.stream("draws", 0, 0)).rows;
        let calibration =
            crate::fitted::Calibration::new(&density.cells(&rows).unwrap().unwrap().below, 2);
        // Level 0.01 for both columns together, and the seed is fixed.
        assert!(calibration.beyond().is_empty() && calibration.rows == number, "{calibration:?}");
        rows[1] = f32::NAN;
        let cells = density.cells(&rows).unwrap().unwrap();
        let scores = density.score(&rows).unwrap().log_p_tilde;
        assert!(cells.log_p[..2].iter().chain(&cells.below[..2]).all(|cell| cell.is_nan()));
        for (cells, score) in cells.log_p.chunks_exact(2).zip(&scores).skip(1) {
            assert!((cells[0] + cells[1] - score).abs() < 1e-9, "{cells:?} {score}");
        }
        assert_eq!(self::density(Method::Rnce).0.cells(&rows).unwrap(), None);
    }

    #[test]
    fn a_row_is_strange_for_the_columns_that_make_it_so() {
        let (density, streams) = local_density();
        let cloud = density.draw(&[f32::NAN; 2], 2_000, &streams).unwrap();
        let mut rows = cloud.sample(2_000, &mut streams.stream("draws", 0, 0)).rows;
        rows[2 * 700 + 1] = 400.0;
        let found = crate::fitted::strangest(&density, &rows, 3).unwrap();
        assert_eq!(found.rows.len(), 3);
        let row = &found.rows[0];
        assert_eq!((row.index, row.columns()[0]), (700, 1));
        assert!(row.log_p_tilde < found.rows[1].log_p_tilde);
        let usual = found.usual.as_ref().unwrap();
        let mean = usual.log_p.iter().sum::<f64>() / (usual.log_p.len() / 2) as f64;
        for row in &found.rows {
            let sum: f64 = row.excess.iter().sum();
            assert!((sum - (mean - row.log_p_tilde)).abs() < 1e-9, "{row:?} {mean}");
        }
        // A density with one normaliser for all has strange rows, but no columns that make them so.
        let found = crate::fitted::strangest(&self::density(Method::Rnce).0, &rows, 2).unwrap();
        assert!(found.usual.is_none() && found.rows.iter().all(|row| row.excess.is_empty()));
    }

    #[test]
    fn where_the_proposal_alone_was_trained_it_is_the_density() {
        let (density, evaluator) = density(Method::QOnly);
        let rows = [120.0, -3.5, 90.0, -2.0];
        let scores = density.score(&rows).unwrap();
        assert_eq!(scores.log_p_tilde, scores.log_q);
        let streams = Streams::new(4);
        let settings = Estimation::new(1000, 5);
        assert!(density.is_normalised());
        assert_eq!(density.estimates(&settings, &streams).unwrap(), []);
        assert_eq!(density.opinions(&settings, &streams).unwrap(), []);
        // The energy has another mind of the same rows: this is what was reported once.
        let energy = self::density(Method::Rnce).0.score(&rows).unwrap();
        assert!((energy.log_p_tilde[0] - energy.log_q[0]).abs() > 0.1);
        // Draws of the proposal itself: first and second moments to five standard errors, and no copies among them.
        let number = 20_000;
        let draws = density.draw(&[f32::NAN; 2], number, &streams).unwrap();
        assert!((draws.effective_particles - number as f64).abs() < 1e-6);
        let draws = draws.sample(number, &mut streams.stream("draws", 0, 0));
        assert!(draws.effective_sample_size > 0.99 * number as f64, "some may round to the same");
        let mut expected = evaluator.sample_proposal(number, &streams);
        density.standardiser.invert(&mut expected);
        for (column, (mean, _)) in UNITS.into_iter().enumerate() {
            for power in [1, 2] {
                let moment = |rows: &[f32]| {
                    let cells = rows.iter().skip(column).step_by(2);
                    mean_and_error(
                        &cells.map(|&x| (f64::from(x) - mean).powi(power)).collect::<Vec<_>>(),
                    )
                };
                let ((found, error), (expected, other)) = (moment(&draws.rows), moment(&expected));
                assert!((found - expected).abs() < 5.0 * error.hypot(other), "{found} {expected}");
            }
        }
    }

    /// `E[a | b]` under the proposal by quadrature, against draws given `b`.
    #[test]
    fn draws_of_the_proposal_follow_what_is_given() {
        let (density, _) = density(Method::QOnly);
        let given = -2.6;
        let (mut sum, mut total) = (0.0, 0.0);
        let grid: Vec<f32> = (0..4000).map(|i| -100.0 + 0.1 * (i as f32 + 0.5)).collect();
        let rows: Vec<f32> = grid.iter().flat_map(|&a| [a, given]).collect();
        for (a, log_q) in grid.iter().zip(density.score(&rows).unwrap().log_q) {
            sum += f64::from(*a) * log_q.exp();
            total += log_q.exp();
        }
        let cloud = density.draw(&[f32::NAN, given], 100_000, &Streams::new(5)).unwrap();
        // Five standard errors of as many effective draws, with the column's own spread as a bound on the conditional's.
        let error = 5.0 * 30.0 / cloud.effective_sample_size().sqrt();
        assert!((cloud.mean(0) - sum / total).abs() < error, "{} {}", cloud.mean(0), sum / total);
        let draws = cloud.sample(10, &mut Streams::new(6).stream("draws", 0, 0));
        assert!(draws.rows.iter().skip(1).step_by(2).all(|&b| b == given));
    }
}
