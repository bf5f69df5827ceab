//! Any kernel as a Markov chain Monte Carlo sampler of a model, many chains at once.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::diagnostics::{
    bulk_effective_sample_size, effective_sample_size, rank_normalised_r_hat, split_r_hat,
    tail_effective_sample_size,
};
use crate::error::{Error, Result, at_least, positive};
use crate::host::{Place, to_host};
use crate::kernel::{Kernel, State};
use crate::rng::Stream;

/// How long to run the chains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SamplerConfig {
    /// Draws kept of each chain.
    pub num_draws: usize,
    /// Steps thrown away at the start.
    pub num_warm_up: usize,
    /// Steps from one kept draw to the next.
    pub thinning: usize,
}

impl SamplerConfig {
    /// A number of draws after as many steps of warm-up, without thinning.
    pub fn new(num_draws: usize) -> Self {
        Self { num_draws, num_warm_up: num_draws, thinning: 1 }
    }

    /// Runs a kernel from the rows of `x0`, one chain each.
    ///
    /// Give it a model without autodiff (`model.valid()`), which is faster and gives the same draws.
    ///
    /// # Shapes
    /// - `x0`: `[chains, d]`
    pub fn run<M: ?Sized, K: Kernel<M> + ?Sized>(
        &self,
        kernel: &K,
        model: &M,
        x0: Tensor<2>,
        rng: &mut Stream,
    ) -> Result<Samples> {
        at_least(1, "num_draws", self.num_draws)?;
        at_least(1, "thinning", self.thinning)?;
        let [num_chains, dimension] = x0.dims();
        let place = Place::of(&x0);
        let mut here = to_host(&x0);
        let mut state = State::new(x0);
        let mut values = Vec::with_capacity(self.num_draws * num_chains * dimension);
        let (mut moves, mut stuck) = (0.0, vec![true; num_chains]);
        let num_steps = self.num_draws * self.thinning;
        for step in 0..self.num_warm_up + num_steps {
            let candidates = kernel.propose(model, state, rng)?;
            state = candidates.select(rng);
            // The graph of past steps is of no use to a sampler.
            state.log_p_tilde = state.log_p_tilde.map(Tensor::inner);
            let before = std::mem::replace(&mut here, to_host(&state.x));
            if step >= self.num_warm_up {
                moves += candidates.move_probability();
                let pairs = before.chunks_exact(dimension).zip(here.chunks_exact(dimension));
                stuck
                    .iter_mut()
                    .zip(pairs)
                    .for_each(|(stuck, (before, now))| *stuck &= before == now);
                if (step + 1 - self.num_warm_up).is_multiple_of(self.thinning) {
                    values.extend_from_slice(&here);
                }
            }
        }
        Ok(Samples {
            values,
            num_chains,
            dimension,
            place,
            acceptance_rate: moves / num_steps as f64,
            stuck_chains: stuck.into_iter().filter(|stuck| *stuck).count(),
        })
    }
}

/// How the step size of a kernel is found in warm-up: dual averaging (Hoffman and Gelman, 2014, section 3.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StepSizeConfig {
    /// The step size to begin with; within some powers of ten it does not matter.
    pub initial: f64,
    /// The mean probability to move that is wanted.
    pub target: f64,
}

impl StepSizeConfig {
    /// For MALA: 0.574 moves fastest in many dimensions (Roberts and Rosenthal, 1998).
    pub fn langevin() -> Self {
        Self { initial: 0.1, target: 0.574 }
    }

    /// For HMC: 0.8, above the 0.651 that is best in theory, is what works on other targets than Gaussians.
    pub fn hamiltonian() -> Self {
        Self { initial: 0.1, target: 0.8 }
    }
}

impl SamplerConfig {
    /// Runs a kernel whose step size is found in warm-up, and held from there on: only then are draws those of the model. Gives the
    /// step size too.
    ///
    /// `kernel` makes the kernel of a step size, such as `|step_size| Metropolis::new(Langevin::new(step_size)?, 1)`.
    ///
    /// # Shapes
    /// - `x0`: `[chains, d]`
    pub fn run_adapting<M: ?Sized, K: Kernel<M>>(
        &self,
        step_size: &StepSizeConfig,
        kernel: impl Fn(f64) -> Result<K>,
        model: &M,
        x0: Tensor<2>,
        rng: &mut Stream,
    ) -> Result<(Samples, f64)> {
        let StepSizeConfig { initial, target } = *step_size;
        positive("initial", initial)?;
        if !(target > 0.0 && target < 1.0) {
            return Err(Error::setting("target", target, "between 0 and 1"));
        }
        at_least(1, "num_warm_up", self.num_warm_up)?;
        // Pulled towards steps that are larger, which are cheaper; the constants are Hoffman and Gelman's. Where no step is too far (a
        // model that is flat) or all are, it ends within 13 powers of ten of where it began.
        let (pull, strength, delay, forgetting) = ((10.0 * initial).ln(), 0.05, 10.0, 0.75);
        let (mut log_size, mut averaged, mut excess) = (initial.ln(), initial.ln(), 0.0);
        let mut state = State::new(x0);
        for step in 1..=self.num_warm_up {
            let time = step as f64;
            let moved = match kernel(log_size.exp())?.propose(model, state.clone(), rng) {
                Ok(candidates) => {
                    state = candidates.select(rng);
                    state.log_p_tilde = state.log_p_tilde.map(Tensor::inner);
                    candidates.move_probability()
                }
                // What is no number was a step too far; where chains start it is the model's fault.
                Err(Error::NotFinite { .. }) if step > 1 => 0.0,
                Err(error) => return Err(error),
            };
            let share = 1.0 / (time + delay);
            excess = (1.0 - share) * excess + share * (target - moved);
            log_size = pull - time.sqrt() / strength * excess;
            log_size = log_size.clamp(initial.ln() - 30.0, initial.ln() + 30.0);
            let weight = time.powf(-forgetting);
            averaged = weight * log_size + (1.0 - weight) * averaged;
        }
        let found = averaged.exp();
        let config = Self { num_warm_up: 0, ..self.clone() };
        Ok((config.run(&kernel(found)?, model, state.x, rng)?, found))
    }
}

/// Draws of many chains.
#[derive(Debug, Clone)]
pub struct Samples {
    /// Draw by draw, chain by chain.
    values: Vec<f64>,
    num_chains: usize,
    dimension: usize,
    place: Place,
    acceptance_rate: f64,
    stuck_chains: usize,
}

impl Samples {
    /// All draws of all chains.
    ///
    /// # Shapes
    /// - output: `[draws * chains, d]`
    pub fn tensor(&self) -> Tensor<2> {
        let rows = self.values.len() / self.dimension;
        self.place.tensor(self.values.clone(), [rows, self.dimension])
    }

    /// Mean probability to move in a step after the warm-up.
    pub fn acceptance_rate(&self) -> f64 {
        self.acceptance_rate
    }

    /// Number of chains that did not move once after the warm-up: their draws are one point, many times over.
    ///
    /// Look at this before any mean of the draws. A smaller step of the kernel, more candidates, or a start where the
    /// model has mass is what they need.
    pub fn stuck_chains(&self) -> usize {
        self.stuck_chains
    }

    /// The draws of one coordinate, chain by chain.
    pub fn chains(&self, coordinate: usize) -> Vec<Vec<f64>> {
        let draws = self.values.chunks_exact(self.num_chains * self.dimension);
        (0..self.num_chains)
            .map(|chain| {
                draws.clone().map(|draw| draw[chain * self.dimension + coordinate]).collect()
            })
            .collect()
    }

    /// Effective number of independent draws of each coordinate; not a number where no chain moves.
    pub fn effective_sample_sizes(&self) -> Vec<f64> {
        (0..self.dimension).map(|at| effective_sample_size(&self.chains(at))).collect()
    }

    /// Split R-hat of each coordinate: close to 1 when the chains agree, not a number where no chain moves.
    pub fn split_r_hats(&self) -> Vec<f64> {
        (0..self.dimension).map(|at| split_r_hat(&self.chains(at))).collect()
    }

    /// Effective number of independent draws for the middle of each coordinate, and for its tails (Vehtari et al., 2021): at least
    /// some hundreds are wanted of both.
    pub fn bulk_and_tail_effective_sample_sizes(&self) -> Vec<[f64; 2]> {
        let of = |chains: Vec<Vec<f64>>| {
            [bulk_effective_sample_size(&chains), tail_effective_sample_size(&chains)]
        };
        (0..self.dimension).map(|at| of(self.chains(at))).collect()
    }

    /// Rank-normalised split R-hat of each coordinate: below 1.01 when the chains agree, in their middle and in their width.
    pub fn rank_normalised_r_hats(&self) -> Vec<f64> {
        (0..self.dimension).map(|at| rank_normalised_r_hat(&self.chains(at))).collect()
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::kernel::Metropolis;
    use crate::model::DiagonalGaussian;
    use crate::proposal::{Hamiltonian, Langevin, Proposal};
    use crate::rng::Streams;

    /// Whatever the scale of the model, the step size that moves as often as wanted is found, and draws have its moments.
    #[test]
    fn step_sizes_are_found_for_models_of_any_scale() {
        let config = SamplerConfig::new(400);
        for (scale, seed) in [(0.02, 1), (1.0, 2), (50.0, 3)] {
            let place = Place::new(&Device::flex());
            let model = DiagonalGaussian::new(&[0.0; 3], &[scale; 3], &Device::flex()).unwrap();
            let rng = &mut Streams::new(seed).stream("adapt", 0, 0);
            let x0 = model.sample(40, &place, rng);
            let langevin = |step_size: f64| Metropolis::new(Langevin::new(step_size)?, 1);
            let hamiltonian = |step_size: f64| Metropolis::new(Hamiltonian::new(step_size, 5)?, 1);
            let target = StepSizeConfig::langevin();
            let found = [
                config.run_adapting(&target, langevin, &model, x0.clone(), rng).unwrap(),
                config
                    .run_adapting(&StepSizeConfig::hamiltonian(), hamiltonian, &model, x0, rng)
                    .unwrap(),
            ];
            for ((samples, step_size), wanted) in found.iter().zip([0.574, 0.8]) {
                let rate = samples.acceptance_rate();
                // Averages over some hundred noisy steps; for HMC the rate is steep in the step size.
                assert!((rate - wanted).abs() < 0.12, "{scale}: {rate} at {step_size}");
                assert!((0.05..5.0).contains(&(step_size / scale)), "{scale}: {step_size}");
                let chains = samples.chains(0);
                let all: Vec<f64> = chains.concat();
                let size = samples.bulk_and_tail_effective_sample_sizes()[0][0];
                let mean = all.iter().sum::<f64>() / all.len() as f64;
                let variance = all.iter().map(|x| x * x).sum::<f64>() / all.len() as f64;
                assert!(mean.abs() < 5.0 * scale / size.sqrt(), "{scale}: {mean} of {size}");
                assert!(
                    (variance / scale.powi(2) - 1.0).abs() < 5.0 * (2.0 / size).sqrt(),
                    "{variance}"
                );
                assert!(samples.rank_normalised_r_hats()[0] < 1.05);
            }
        }
        let rng = &mut Streams::new(1).stream("adapt", 0, 0);
        let model = DiagonalGaussian::standard(1, &Device::flex());
        let x0 = model.sample(2, &Place::new(&Device::flex()), rng);
        let wrong = StepSizeConfig { initial: 0.1, target: 1.0 };
        let kernel = |step_size: f64| Metropolis::new(Langevin::new(step_size)?, 1);
        assert!(config.run_adapting(&wrong, kernel, &model, x0, rng).is_err());
    }
}
