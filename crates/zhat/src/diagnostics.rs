//! Has the chain mixed, and how many independent draws is it worth?
//!
//! After Vehtari, Gelman, Simpson, Carpenter and Buerkner, *Rank-normalization, folding, and localization: an improved
//! R-hat*, Bayesian Analysis 16 (2021), sections 3.1 and 3.2 (without rank normalisation).

/// Split R-hat of one coordinate: every chain is halved, and the variance between halves compared with that within.
///
/// Not a number with fewer than four draws a chain and where no chain moves: chains that stand still in one place agree
/// about nothing. Infinite when they stand still in different places.
pub fn split_r_hat(chains: &[Vec<f64>]) -> f64 {
    let halves = split(chains);
    let length = halves[0].len() as f64;
    if length < 2.0 {
        return f64::NAN;
    }
    if stand_still(&halves) {
        let one_place = halves.iter().all(|half| half[0] == halves[0][0]);
        return if one_place { f64::NAN } else { f64::INFINITY };
    }
    let (within, total) = variances(&halves);
    (total / within).sqrt()
}

/// Effective sample size of one coordinate, from the autocorrelation of the split chains, cut off by Geyer's initial
/// monotone sequence; at most the number of draws times its logarithm. Not a number where no chain moves.
pub fn effective_sample_size(chains: &[Vec<f64>]) -> f64 {
    let halves = split(chains);
    let length = halves[0].len();
    let number = (length * halves.len()) as f64;
    if length < 2 || stand_still(&halves) {
        return f64::NAN;
    }
    let (within, total) = variances(&halves);
    let correlation = |lag: usize| {
        let covariance = mean(halves.iter().map(|half| autocovariance(half, lag)));
        1.0 - (within * (length - 1) as f64 / length as f64 - covariance) / total
    };
    // Sums of pairs of neighbours are positive and decreasing for a reversible chain; noise is cut off where they are not.
    let (mut sum, mut smallest, mut lag) = (0.0, f64::INFINITY, 0);
    while lag + 1 < length {
        let pair = correlation(lag) + correlation(lag + 1);
        if pair <= 0.0 {
            break;
        }
        smallest = pair.min(smallest);
        sum += smallest;
        lag += 2;
    }
    let time = (2.0 * sum - 1.0).max(1.0 / number.log10());
    number / time
}

/// Both halves of every chain; a draw in the middle is dropped.
fn split(chains: &[Vec<f64>]) -> Vec<&[f64]> {
    assert!(!chains.is_empty(), "at least one chain");
    let half = chains[0].len() / 2;
    chains.iter().flat_map(|chain| [&chain[..half], &chain[chain.len() - half..]]).collect()
}

/// Whether no chain moves. Asked of the draws, since the variance of equal numbers is zero only up to rounding.
fn stand_still(chains: &[&[f64]]) -> bool {
    chains.iter().all(|chain| chain.iter().all(|draw| *draw == chain[0]))
}

/// The variance within chains, and the estimate of the total variance.
fn variances(chains: &[&[f64]]) -> (f64, f64) {
    let length = chains[0].len() as f64;
    let means: Vec<f64> = chains.iter().map(|chain| mean(chain.iter().copied())).collect();
    let within =
        mean(chains.iter().map(|chain| autocovariance(chain, 0) * length / (length - 1.0)));
    let grand = mean(means.iter().copied());
    let between = means.iter().map(|m| (m - grand).powi(2)).sum::<f64>() / (means.len() - 1) as f64;
    (within, within * (length - 1.0) / length + between)
}

fn autocovariance(chain: &[f64], lag: usize) -> f64 {
    let mean = mean(chain.iter().copied());
    let products = chain.iter().zip(&chain[lag..]).map(|(a, b)| (a - mean) * (b - mean));
    products.sum::<f64>() / chain.len() as f64
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let number = values.clone().count() as f64;
    values.sum::<f64>() / number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    /// Chains with autocorrelation `rho^lag` around a mean for each.
    fn autoregressive(rho: f64, means: &[f64], length: usize) -> Vec<Vec<f64>> {
        let mut rng = Streams::new(5).stream("test", 0, 0);
        means
            .iter()
            .map(|mean| {
                let mut x = rng.normal();
                (0..length)
                    .map(|_| {
                        x = rho * x + (1.0 - rho * rho).sqrt() * rng.normal();
                        mean + x
                    })
                    .collect()
            })
            .collect()
    }

    #[test]
    fn the_effective_sample_size_is_that_of_an_autoregressive_chain() {
        for rho in [-0.3, 0.0, 0.5, 0.9] {
            let chains = autoregressive(rho, &[0.0; 8], 4000);
            let expected = 32_000.0 * (1.0 - rho) / (1.0 + rho);
            let ratio = effective_sample_size(&chains) / expected;
            // The estimate itself has a relative error of some 10 % here.
            assert!((0.75..1.35).contains(&ratio), "rho {rho}: {ratio}");
        }
    }

    #[test]
    fn split_r_hat_tells_chains_that_agree_from_chains_that_do_not() {
        assert!(split_r_hat(&autoregressive(0.5, &[0.0; 4], 2000)) < 1.02);
        assert!(split_r_hat(&autoregressive(0.5, &[0.0, 0.0, 0.0, 3.0], 2000)) > 1.5);
        // A drift within one chain is seen too, because chains are split.
        let drift: Vec<f64> = (0..1000).map(|i| f64::from(i) / 100.0).collect();
        assert!(split_r_hat(&[drift.clone(), drift]) > 1.5);
        assert!(split_r_hat(&[vec![0.0; 3]]).is_nan());
    }

    #[test]
    fn chains_that_never_move_are_worth_nothing() {
        let one_place = vec![vec![0.7; 100]; 4];
        assert!(split_r_hat(&one_place).is_nan());
        assert!(effective_sample_size(&one_place).is_nan());
        let two_places = [vec![0.7; 100], vec![-0.3; 100]];
        assert_eq!(split_r_hat(&two_places), f64::INFINITY);
        assert!(effective_sample_size(&two_places).is_nan());
    }
}
