//! `log Z` by sequential Monte Carlo, plain and conditional.

use burn::tensor::Tensor;

use super::LogZ;
use crate::error::{Error, Result};
use crate::host::Place;
use crate::model::SequentialModel;
use crate::proposal::SequentialProposal;
use crate::rng::Stream;
use crate::smc::{Smc, SmcConfig};

/// `num_estimates` independent SMC estimates of `Z`, each unbiased.
pub fn smc<M, Q>(
    config: &SmcConfig,
    model: &M,
    proposal: &Q,
    num_estimates: usize,
    place: &Place,
    rng: &mut Stream,
) -> Result<LogZ>
where
    M: SequentialModel + ?Sized,
    Q: SequentialProposal + ?Sized,
{
    if num_estimates < 2 {
        return Err(Error::setting("num_estimates", num_estimates, "at least 2"));
    }
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
pub fn conditional_smc<M, Q>(
    config: &SmcConfig,
    model: &M,
    proposal: &Q,
    x0: Tensor<2>,
    rng: &mut Stream,
) -> Result<LogZ>
where
    M: SequentialModel + ?Sized,
    Q: SequentialProposal + ?Sized,
{
    if x0.dims()[0] < 2 {
        return Err(Error::setting("rows of x0", x0.dims()[0], "at least 2"));
    }
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
