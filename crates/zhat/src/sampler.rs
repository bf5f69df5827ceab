//! Any kernel as a Markov chain Monte Carlo sampler of a model, many chains at once.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::diagnostics::{
    bulk_effective_sample_size, effective_sample_size, rank_normalised_r_hat, split_r_hat,
    tail_effective_sample_size,
};
use crate::error::{Result, at_least};
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
