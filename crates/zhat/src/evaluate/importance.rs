//! `log Z` by importance sampling, plain and conditional.

use burn::tensor::Tensor;

use super::LogZ;
use crate::error::{Result, at_least};
use crate::host::{Place, to_host};
use crate::kernel::{ConditionalImportance, Contrast, State};
use crate::model::UnnormalisedModel;
use crate::proposal::{IndependentProposal, Proposal};
use crate::rng::Stream;
use crate::weights::{LogWeights, log_mean_exp};

/// `Z_IS = 1/n sum_i p~(x_i) / q(x_i)` (eq. is:z_hat), in tiles so that memory stays bounded.
pub fn importance_sampling<M: UnnormalisedModel + ?Sized, Q: Proposal + ?Sized>(
    model: &M,
    proposal: &Q,
    num_samples: usize,
    place: &Place,
    rng: &mut Stream,
) -> Result<LogZ> {
    const TILE: usize = 4096;
    at_least(2, "num_samples", num_samples)?;
    let mut log_w = Vec::with_capacity(num_samples);
    while log_w.len() < num_samples {
        let number = TILE.min(num_samples - log_w.len());
        let x = proposal.sample(number, place, rng);
        let log_q = to_host(&proposal.log_prob(x.clone()));
        let log_p_tilde = model.log_p_tilde(x).inner().unsqueeze_dim(1);
        log_w.extend(LogWeights::new(&log_p_tilde, &log_q)?.rows().flatten());
    }
    Ok(LogZ::from_estimates(&log_w))
}

/// From exact draws `x0 ~ p_theta`: `1 / Z` is the mean of `1 / Z_CIS`, `Z_CIS = 1/(J+1) sum_j w~_j` (eq. cis:z_hat).
///
/// # Shapes
/// - `x0`: `[n, d]`, one estimate a row
pub fn conditional_importance_sampling<M: UnnormalisedModel + ?Sized, Q: IndependentProposal<M>>(
    model: &M,
    proposal: Q,
    num_negatives: usize,
    x0: Tensor<2>,
    rng: &mut Stream,
) -> Result<LogZ> {
    at_least(2, "rows of x0", x0.dims()[0])?;
    let kernel = ConditionalImportance::new(proposal, num_negatives)?;
    let candidates = kernel.propose(model, State::new(x0), rng)?;
    let log_z_hats: Vec<f64> = candidates.log_w_tilde.rows().map(log_mean_exp).collect();
    let effective_sample_size =
        candidates.weights.effective_sample_size().sum::<f64>() / log_z_hats.len() as f64;
    Ok(LogZ { effective_sample_size, ..LogZ::from_conditional_estimates(&log_z_hats) })
}
