//! `log Z` by annealed importance sampling (Neal, 2001), with any kernel in between.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::LogZ;
use crate::error::{Error, Result};
use crate::host::{Place, to_host};
use crate::kernel::{Kernel, State};
use crate::model::UnnormalisedModel;
use crate::proposal::Proposal;
use crate::rng::Stream;
use crate::weights::check_finite;

/// A density on the way from the proposal to the model: `q^(1 - beta) p~^beta`.
pub struct Bridge<'a, M: ?Sized, Q: ?Sized> {
    model: &'a M,
    proposal: &'a Q,
    beta: f64,
}

impl<M, Q> UnnormalisedModel for Bridge<'_, M, Q>
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
        if num_chains < 2 {
            return Err(Error::setting("num_chains", num_chains, "at least 2"));
        }
        if num_temperatures == 0 {
            return Err(Error::setting("num_temperatures", num_temperatures, "at least 1"));
        }
        Ok(Self { num_chains, num_temperatures })
    }

    /// Runs the chains from draws of the proposal to the model, one step of the kernel at each temperature.
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
        K: for<'a> Kernel<Bridge<'a, M, Q>>,
    {
        let mut x = proposal.sample(self.num_chains, place, rng);
        let mut log_w = vec![0.0; self.num_chains];
        let step = 1.0 / self.num_temperatures as f64;
        for temperature in 1..=self.num_temperatures {
            // log of bridge(beta_t) / bridge(beta_{t-1}) at the current place.
            let log_p_tilde = to_host(&model.log_p_tilde(x.clone()).inner());
            check_finite("log_p_tilde of the model", &log_p_tilde, 1)?;
            let log_q = to_host(&proposal.log_prob(x.clone()).inner());
            for ((log_w, p), q) in log_w.iter_mut().zip(log_p_tilde).zip(log_q) {
                *log_w += step * (p - q);
            }
            if temperature < self.num_temperatures {
                let bridge = Bridge { model, proposal, beta: step * temperature as f64 };
                x = kernel.propose(&bridge, State::new(x), rng)?.select(rng).x;
            }
        }
        Ok(LogZ::from_estimates(&log_w))
    }
}
