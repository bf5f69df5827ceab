//! `log Z` by annealed importance sampling (Neal, 2001), with any kernel in between.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::LogZ;
use crate::error::{Result, at_least};
use crate::host::{Place, indices, to_host};
use crate::kernel::{Kernel, State};
use crate::model::UnnormalisedModel;
use crate::proposal::Proposal;
use crate::rng::Stream;
use crate::weights::check_log_density;

/// A density on the way from the proposal to the model: `q^(1 - beta) p~^beta`.
pub struct AnnealingPath<'a, M: ?Sized, Q: ?Sized> {
    model: &'a M,
    proposal: &'a Q,
    beta: f64,
}

impl<M, Q> UnnormalisedModel for AnnealingPath<'_, M, Q>
where
    M: UnnormalisedModel + ?Sized,
    Q: Proposal + ?Sized,
{
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        self.model.log_p_tilde(x.clone()) * self.beta
            + self.proposal.log_prob(x) * (1.0 - self.beta)
    }
}

/// Settings of annealed importance sampling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AnnealedConfig {
    /// Independent chains, each of which gives one unbiased estimate of `Z`.
    pub num_chains: usize,
    /// Steps of `beta` from 0 to 1, equally spaced.
    pub num_temperatures: usize,
}

impl AnnealedConfig {
    /// A number of chains through a number of temperatures.
    pub fn new(num_chains: usize, num_temperatures: usize) -> Result<Self> {
        at_least(2, "num_chains", num_chains)?;
        at_least(1, "num_temperatures", num_temperatures)?;
        Ok(Self { num_chains, num_temperatures })
    }

    /// Runs the chains from draws of the proposal to the model, one step of the kernel at each temperature.
    ///
    /// A chain that starts outside the support of the model is an estimate of zero, and ends there.
    pub fn run<M, Q, K>(
        &self,
        kernel: &K,
        model: &M,
        proposal: &Q,
        place: &Place,
        rng: &mut Stream,
    ) -> Result<LogZ>
    where
        M: UnnormalisedModel + ?Sized,
        Q: Proposal + ?Sized,
        K: for<'a> Kernel<AnnealingPath<'a, M, Q>>,
    {
        let mut x = proposal.sample(self.num_chains, place, rng);
        // Of the chains that are alive, in their order.
        let mut log_w = vec![0.0; self.num_chains];
        let step = 1.0 / self.num_temperatures as f64;
        for temperature in 1..=self.num_temperatures {
            // log of path(beta_t) / path(beta_{t-1}) at the current place.
            let log_p_tilde = to_host(&model.log_p_tilde(x.clone()).inner());
            check_log_density("log_p_tilde of the model", &log_p_tilde, 1)?;
            let log_q = to_host(&proposal.log_prob(x.clone()).inner());
            for ((log_w, p), q) in log_w.iter_mut().zip(log_p_tilde).zip(log_q) {
                *log_w += step * (p - q);
            }
            if log_w.contains(&f64::NEG_INFINITY) {
                let alive: Vec<usize> =
                    (0..log_w.len()).filter(|&row| log_w[row] > f64::NEG_INFINITY).collect();
                log_w.retain(|log_w| *log_w > f64::NEG_INFINITY);
                if alive.is_empty() {
                    break;
                }
                let device = x.device();
                x = x.select(0, indices(&alive, [alive.len()], &device));
            }
            if temperature < self.num_temperatures {
                let path = AnnealingPath { model, proposal, beta: step * temperature as f64 };
                x = kernel.propose(&path, State::new(x), rng)?.select(rng).x;
            }
        }
        log_w.resize(self.num_chains, f64::NEG_INFINITY);
        Ok(LogZ::from_estimates(&log_w))
    }
}
