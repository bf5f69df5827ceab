//! `log Z` by sequential Monte Carlo, plain and conditional.

use burn::tensor::Tensor;

use super::LogZ;
use crate::error::{Result, at_least};
use crate::host::Place;
use crate::model::SequentialModel;
use crate::proposal::SequentialProposal;
use crate::rng::Stream;
use crate::smc::{Smc, SmcConfig};

/// `num_estimates` independent SMC estimates of `Z`, each unbiased.
pub fn smc<M: SequentialModel + ?Sized, Q: SequentialProposal + ?Sized>(
    config: &SmcConfig,
    model: &M,
    proposal: &Q,
    num_estimates: usize,
    place: &Place,
    rng: &mut Stream,
) -> Result<LogZ> {
    at_least(2, "num_estimates", num_estimates)?;
    let run = Smc::plain(config, model, proposal, num_estimates, place, rng)?;
    Ok(LogZ {
        effective_sample_size: smallest(&run),
        ..LogZ::from_estimates(&run.genealogy.log_z_hat)
    })
}

/// From exact draws `x0 ~ p_theta`, one estimate a row: `1 / Z` is the mean of `1 / Z_CSMC` (eq. csmc_zhat).
///
/// # Shapes
/// - `x0`: `[n, d]`
pub fn conditional_smc<M: SequentialModel + ?Sized, Q: SequentialProposal + ?Sized>(
    config: &SmcConfig,
    model: &M,
    proposal: &Q,
    x0: Tensor<2>,
    rng: &mut Stream,
) -> Result<LogZ> {
    at_least(2, "rows of x0", x0.dims()[0])?;
    let run = Smc::conditional(config, model, proposal, x0, rng)?;
    Ok(LogZ {
        effective_sample_size: smallest(&run),
        ..LogZ::from_conditional_estimates(&run.genealogy.log_z_hat)
    })
}

/// The smallest stage's mean over rows.
fn smallest(run: &Smc) -> f64 {
    let stages = run.genealogy.effective_sample_size.iter();
    stages.map(|rows| rows.iter().sum::<f64>() / rows.len() as f64).fold(f64::INFINITY, f64::min)
}
