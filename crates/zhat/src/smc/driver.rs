//! The one loop of sequential Monte Carlo: particles advance by a stage, are weighed, and descend from those that weigh.

use super::eves::Eves;
use super::{Genealogy, ResampleWhen, Resampling, SmcConfig};
use crate::error::{Error, Result};
use crate::pareto::pareto_k;
use crate::rng::Stream;
use crate::weights::{effective_sample_size, log_mean_exp, softmax};

/// The particles of many independent systems (rows), as the loop sees them.
pub trait Particles {
    /// Every particle gains a column; the log-weights, row by row, gain its `log p~(x_d | x_<d) - log q(x_d | x_<d)`.
    fn advance(&mut self, stage: usize, log_weights: &mut [f64]) -> Result<()>;

    /// The normalised weights of all particles after a stage, row by row: for what is done with them before the next.
    fn weighed(&mut self, _stage: usize, _weights: &[f64]) {}

    /// The particles of a row become copies of their ancestors, of which the columns up to `stage` are known.
    fn descend(&mut self, stage: usize, row: usize, ancestors: &[usize]);

    /// Where the ancestors of a row are drawn from after a stage.
    fn rng(&mut self, stage: usize, row: usize) -> &mut Stream;
}

/// What is special about the first particle of every row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// Nothing: it is drawn like the others.
    Drawn,
    /// It is given, and its first offspring is always itself (conditional SMC).
    Retained,
    /// It is given and stands beside the system, one more than its particles: it has no weight and no offspring but
    /// itself (the data point of ML-IS).
    Beside,
}

/// How the particles of every row are weighed and resampled.
#[derive(Debug, Clone)]
pub struct Filter {
    config: SmcConfig,
    rows: usize,
    first: First,
    first_row: usize,
    forgets: bool,
    from_first: bool,
    /// How many particles are drawn to stand for all that were not given; 0 for none.
    drawn: usize,
    diagnoses: bool,
}

impl Filter {
    /// For a number of independent rows.
    pub fn new(config: &SmcConfig, rows: usize, first: First) -> Self {
        let config = config.clone();
        Self {
            config,
            rows,
            first,
            first_row: 0,
            forgets: false,
            from_first: false,
            drawn: 0,
            diagnoses: false,
        }
    }

    /// Errors number the rows from this one on, for a part of a batch.
    pub fn numbered_from(self, first_row: usize) -> Self {
        Self { first_row, ..self }
    }

    /// Weights and ancestors are kept for the last stage alone, so that there may be millions of particles.
    pub fn without_past(self) -> Self {
        Self { forgets: true, ..self }
    }

    /// After every stage all particles descend from the first one, which was given: each stage is an importance sampler of its
    /// own, of one factor at the given prefix, and `log Z-hat` the sum of theirs.
    pub fn from_first(self) -> Self {
        Self { from_first: true, ..self }
    }

    /// So many particles, drawn by their weights after every stage, stand for all that were not given: what is told of their weights,
    /// here and in the genealogy, are shares of these draws, and on average the weights. One that was given keeps its weight, as it counts
    /// in any case. `Z-hat` and effective sample sizes are of all particles. With 0 nothing is drawn. For stages that begin
    /// [anew](Self::from_first).
    pub fn with_drawn(self, drawn: usize) -> Self {
        assert!(drawn == 0 || self.from_first, "weights are carried on otherwise");
        Self { drawn, ..self }
    }

    /// The tails of the weights and the variance of `Z-hat` go into the genealogy too.
    pub fn with_diagnostics(self) -> Self {
        Self { diagnoses: true, ..self }
    }

    /// Runs all stages.
    ///
    /// Weights stay in logs from stage to stage, so that nothing underflows however far apart they are. A particle may
    /// have no weight at all, but not all of a row, and not one that was given.
    pub fn run(&self, stages: usize, particles: &mut impl Particles) -> Result<Genealogy> {
        let beside = usize::from(self.first == First::Beside);
        let candidates = self.config.num_particles + beside;
        let mut genealogy = Genealogy {
            candidates,
            log_z_hat: vec![0.0; self.rows],
            log_weights: vec![0.0; self.rows * candidates],
            ..Genealogy::default()
        };
        let mut eves = Eves::new(if self.diagnoses { self.rows } else { 0 }, candidates);
        for stage in 0..stages {
            particles.advance(stage, &mut genealogy.log_weights)?;
            let reused = if self.forgets { genealogy.weights.pop() } else { None };
            let mut weights = reused.unwrap_or_else(|| vec![0.0; self.rows * candidates]);
            let (mut sizes, mut largest) = (Vec::with_capacity(self.rows), Vec::new());
            let (mut descent, mut tails) = (Vec::with_capacity(self.rows), Vec::new());
            let by_row = genealogy.log_weights.chunks_exact_mut(candidates);
            for (row, (log_w, w)) in by_row.zip(weights.chunks_exact_mut(candidates)).enumerate() {
                self.check(row, log_w)?;
                // log of 1/c sum_j w_j (eq. csmc_zhat).
                let log_mean = log_mean_exp(&log_w[beside..]);
                softmax(&log_w[beside..], &mut w[beside..]);
                genealogy.log_z_hat[row] += log_mean;
                let size = effective_sample_size(w);
                sizes.push(size);
                largest.push(w.iter().copied().fold(0.0, f64::max));
                if self.diagnoses {
                    tails.push(pareto_k(&log_w[beside..]));
                }
                if self.drawn > 0 {
                    let given = usize::from(self.first != First::Drawn);
                    let rng = particles.rng(stage, row);
                    Resampling::Systematic.draw_shares(self.drawn, &mut w[given..], rng);
                }
                if stage + 1 == stages {
                    continue;
                }
                // What is carried to the next stage has mean 1 (eq. nce_ext:weight_unnorm_resamp).
                descent.push(if self.is_time(size) {
                    log_w.fill(0.0);
                    Some(self.ancestors(w, particles.rng(stage, row)))
                } else {
                    log_w.iter_mut().for_each(|log_w| *log_w -= log_mean);
                    None
                });
            }
            particles.weighed(stage, &weights);
            for (row, ancestors) in descent.iter().enumerate() {
                if let Some(ancestors) = ancestors {
                    if self.diagnoses {
                        eves.descend(row, ancestors);
                    }
                    particles.descend(stage, row, ancestors);
                }
            }
            genealogy.weights.push(weights);
            genealogy.effective_sample_size.push(sizes);
            genealogy.largest_weight.push(largest);
            genealogy.pareto_k.push(tails);
            if stage + 1 < stages && !self.forgets {
                genealogy.ancestors.push(descent);
            }
        }
        if self.diagnoses {
            genealogy.relative_variance = eves.relative_variances(genealogy.final_weights());
        }
        Ok(genealogy)
    }

    fn is_time(&self, size: f64) -> bool {
        match self.config.resample_when {
            _ if self.from_first => true,
            ResampleWhen::EveryStage => true,
            ResampleWhen::EffectiveSampleSizeBelow(share) => {
                size < share * self.config.num_particles as f64
            }
        }
    }

    fn ancestors(&self, weights: &[f64], rng: &mut Stream) -> Vec<usize> {
        let scheme = self.config.resampling;
        match self.first {
            _ if self.from_first => {
                vec![0; weights.len()]
            }
            First::Drawn => scheme.ancestors(weights, rng),
            First::Retained => scheme.conditional_ancestors(weights, rng),
            First::Beside => {
                let drawn = scheme.ancestors(&weights[1..], rng).into_iter();
                [0].into_iter().chain(drawn.map(|ancestor| ancestor + 1)).collect()
            }
        }
    }

    /// An error where a weight is not a number or infinite, what was given has none, or nothing has.
    fn check(&self, row: usize, log_w: &[f64]) -> Result<()> {
        let never = |log_w: &f64| *log_w == f64::NEG_INFINITY;
        let nothing = match self.first {
            First::Drawn => log_w.iter().all(never),
            First::Retained => never(&log_w[0]),
            First::Beside => never(&log_w[0]) || log_w[1..].iter().all(never),
        };
        let bad = log_w.iter().position(|log_w| log_w.is_nan() || *log_w == f64::INFINITY);
        match bad.or_else(|| log_w.iter().position(never).filter(|_| nothing)) {
            None => Ok(()),
            Some(candidate) => Err(Error::NotFinite {
                what: "log p~ - log q".to_owned(),
                value: log_w[candidate],
                row: self.first_row + row,
                candidate,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    /// Particles whose log-weights are written down, and who remember their ancestors.
    struct Written {
        log_weights: Vec<Vec<f64>>,
        descended: Vec<(usize, usize, Vec<usize>)>,
        rng: Stream,
    }

    impl Written {
        fn new(log_weights: &[&[f64]]) -> Self {
            let log_weights = log_weights.iter().map(|stage| stage.to_vec()).collect();
            Self { log_weights, descended: Vec::new(), rng: Streams::new(1).stream("test", 0, 0) }
        }

        fn run(&mut self, filter: &Filter) -> Result<Genealogy> {
            filter.run(self.log_weights.len(), self)
        }
    }

    impl Particles for Written {
        fn advance(&mut self, stage: usize, log_weights: &mut [f64]) -> Result<()> {
            log_weights.iter_mut().zip(&self.log_weights[stage]).for_each(|(to, w)| *to += w);
            Ok(())
        }

        fn descend(&mut self, stage: usize, row: usize, ancestors: &[usize]) {
            self.descended.push((stage, row, ancestors.to_vec()));
        }

        fn rng(&mut self, _: usize, _: usize) -> &mut Stream {
            &mut self.rng
        }
    }

    fn never(particles: usize) -> SmcConfig {
        SmcConfig::new(particles)
            .unwrap()
            .with_resample_when(ResampleWhen::EffectiveSampleSizeBelow(0.0))
    }

    #[test]
    fn without_resampling_the_estimate_is_that_of_importance_sampling() {
        let stages = [[0.1, -2.0, 0.7], [1.5, 0.3, -0.4], [0.0, 0.2, 0.9]];
        let mut particles = Written::new(&[&stages[0], &stages[1], &stages[2]]);
        let run = particles.run(&Filter::new(&never(3), 1, First::Drawn)).unwrap();
        assert!(particles.descended.is_empty());
        let totals: Vec<f64> = (0..3).map(|j| stages.iter().map(|s| s[j]).sum()).collect();
        assert!((run.log_z_hat[0] - log_mean_exp(&totals)).abs() < 1e-12);
        // One that stands beside them changes nothing, whatever it weighs.
        let beside = stages.map(|[a, b, c]| [7.0, a, b, c]);
        let mut particles = Written::new(&[&beside[0], &beside[1], &beside[2]]);
        let beside = particles.run(&Filter::new(&never(3), 1, First::Beside)).unwrap();
        assert_eq!(beside.log_z_hat, run.log_z_hat);
        assert_eq!(beside.final_weights()[0], 0.0);
        assert_eq!(beside.final_weights()[1..], *run.final_weights());
    }

    #[test]
    fn rows_resample_on_their_own_and_particle_zero_is_kept() {
        // Row 0: equal weights, effective sample size 4. Row 1: all on particle 3, effective sample size 1.
        let stages = [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 900.0], [0.0; 8]];
        let mut particles = Written::new(&[&stages[0], &stages[1]]);
        let filter = Filter::new(&SmcConfig::new(4).unwrap(), 2, First::Retained);
        let run = particles.run(&filter).unwrap();
        assert_eq!(particles.descended, [(0, 1, vec![0, 3, 3, 3])]);
        assert_eq!((run.ends_block(0, 0), run.ends_block(0, 1)), (false, true));
        assert_eq!(run.lineages()[0], [0, 1, 2, 3, 0, 3, 3, 3]);
        assert_eq!(run.effective_sample_size[0], [4.0, 1.0]);
        let forgetful = Written::new(&[&stages[0], &stages[1]]).run(&filter.without_past());
        let forgetful = forgetful.unwrap();
        assert_eq!((forgetful.weights.len(), forgetful.ancestors.len()), (1, 0));
        assert_eq!(forgetful.final_weights(), run.final_weights());
        assert_eq!(forgetful.log_z_hat, run.log_z_hat);
    }

    /// Particle 1 falls thousands of nats behind, far below the smallest number, and comes back.
    #[test]
    fn weights_thousands_of_nats_apart_are_carried() {
        for first in [First::Drawn, First::Retained] {
            let mut particles =
                Written::new(&[&[0.0, -5000.0], &[-3000.0, 1000.0], &[0.0, 1001.0]]);
            let run = particles.run(&Filter::new(&never(2), 1, first)).unwrap();
            assert!((run.log_z_hat[0] - log_mean_exp(&[-3000.0, -2999.0])).abs() < 1e-9);
            assert!((run.final_weights()[1] - 1.0 / (1.0 + (-1f64).exp())).abs() < 1e-9);
        }
    }

    #[test]
    fn a_particle_may_have_no_weight_but_not_all_of_a_row_and_not_the_one_given() {
        let none = f64::NEG_INFINITY;
        let run = |log_weights: &[f64], first| {
            let stages = [log_weights, &[0.0; 6][..log_weights.len()]];
            let candidates = 3 - usize::from(first == First::Beside);
            let filter = Filter::new(&never(candidates), log_weights.len() / 3, first);
            Written::new(&stages).run(&filter.numbered_from(10))
        };
        let kept = run(&[0.0, none, 0.0], First::Retained).unwrap();
        assert_eq!(kept.final_weights(), [0.5, 0.0, 0.5]);
        assert!((kept.log_z_hat[0] - (2f64 / 3.0).ln()).abs() < 1e-12);
        assert!(run(&[none, 0.0, 0.0], First::Drawn).is_ok());
        for (log_weights, first, row, candidate) in [
            (vec![0.0, 0.0, 0.0, none, none, none], First::Drawn, 11, 0),
            (vec![none, 0.0, 0.0], First::Retained, 10, 0),
            (vec![0.0, none, none], First::Beside, 10, 1),
            (vec![none, 0.0, 0.0], First::Beside, 10, 0),
            (vec![0.0, 0.0, f64::NAN], First::Drawn, 10, 2),
            (vec![0.0, f64::INFINITY, 0.0], First::Retained, 10, 1),
        ] {
            let error = run(&log_weights, first).unwrap_err();
            let Error::NotFinite { row: r, candidate: c, .. } = error else { panic!("{error}") };
            assert_eq!((r, c), (row, candidate), "{log_weights:?}");
        }
    }

    /// Three particles, resampled after the first of three stages: who weighs what, by hand.
    #[test]
    fn coefficients_are_those_of_the_definition() {
        let w: [f64; 3] = [0.2, 0.3, 0.5];
        let genealogy = Genealogy {
            candidates: 3,
            log_weights: vec![0.0; 3],
            weights: vec![vec![0.1, 0.1, 0.8], vec![0.6, 0.2, 0.2], w.to_vec()],
            ancestors: vec![vec![Some(vec![0, 2, 2])], vec![None]],
            ..Genealogy::default()
        };
        let filtering = genealogy.coefficients(crate::kernel::SmcGradient::Filtering);
        assert_eq!(filtering, [vec![0.1, 0.1, 0.8], w.to_vec(), w.to_vec()]);
        let trajectory = genealogy.coefficients(crate::kernel::SmcGradient::Trajectory);
        assert_eq!(trajectory, [vec![0.2, 0.0, 0.8], w.to_vec(), w.to_vec()]);
        assert_eq!(genealogy.lineages()[0], [0, 2, 2]);
    }
}
