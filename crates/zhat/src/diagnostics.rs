//! Diagnostics of Markov chains: do they agree, and how many independent draws is it worth?
//!
//! After Vehtari, Gelman, Simpson, Carpenter and Buerkner, *Rank-normalization, folding, and localization: an improved
//! R-hat*, Bayesian Analysis 16 (2021). Figures are those of ArviZ, digit by digit (`benches/vs_arviz`).

use crate::normal::normal_quantile;

/// Share of the draws in each tail, for [`tail_effective_sample_size`].
const TAIL: f64 = 0.05;

/// Split R-hat of one coordinate: every chain is halved, and the variance between halves compared with that within.
///
/// Not a number with fewer than four draws a chain and where no chain moves: chains that stand still in one place agree
/// about nothing. Infinite when they stand still in different places.
pub fn split_r_hat(chains: &[Vec<f64>]) -> f64 {
    r_hat_of(&split(chains))
}

/// Split R-hat of the ranks, as normal scores, and of those of the distances from the median: the larger of the two.
///
/// It sees chains that agree in their middle but not in their width, and needs no moments of what is sampled: close to 1 where they
/// agree, and above 1.01 for chains that are worth looking at. Where [`split_r_hat`] is no number, or infinite, this is too.
pub fn rank_normalised_r_hat(chains: &[Vec<f64>]) -> f64 {
    let halves = split(chains);
    if halves[0].len() < 2 || stand_still(&halves) {
        return r_hat_of(&halves);
    }
    let mut sorted: Vec<f64> = halves.iter().flat_map(|half| half.iter()).copied().collect();
    let middle = quantile(&mut sorted, 0.5);
    let folded: Vec<Vec<f64>> =
        halves.iter().map(|half| half.iter().map(|draw| (draw - middle).abs()).collect()).collect();
    let [bulk, tail] =
        [normal_scores(&halves), normal_scores(&folded)].map(|scores| r_hat_of(&scores));
    bulk.max(tail)
}

/// Effective sample size of the mean of one coordinate, from the autocorrelation of the split chains, cut off by Geyer's initial
/// monotone sequence; at most the number of draws times its logarithm. Not a number where no chain moves.
pub fn effective_sample_size(chains: &[Vec<f64>]) -> f64 {
    size_of(&split(chains))
}

/// Effective sample size of the ranks as normal scores: for the middle of a distribution that need not have moments.
pub fn bulk_effective_sample_size(chains: &[Vec<f64>]) -> f64 {
    let halves = split(chains);
    match halves[0].len() < 2 || stand_still(&halves) {
        true => f64::NAN,
        false => size_of(&normal_scores(&halves)),
    }
}

/// Effective sample size of the 5 % and of the 95 % quantile: the smaller of the two.
pub fn tail_effective_sample_size(chains: &[Vec<f64>]) -> f64 {
    if stand_still(&split(chains)) {
        return f64::NAN;
    }
    let of_quantile = |share: f64| {
        let mut sorted: Vec<f64> = chains.iter().flatten().copied().collect();
        let at = quantile(&mut sorted, share);
        let below = |draw: &f64| f64::from(u8::from(*draw <= at));
        let below: Vec<Vec<f64>> =
            chains.iter().map(|chain| chain.iter().map(below).collect()).collect();
        let halves = split(&below);
        // Where all draws are on one side, as with ties, they are taken for independent.
        match stand_still(&halves) && halves.iter().all(|half| half.first() == halves[0].first()) {
            true => (halves.len() * halves[0].len()) as f64,
            false => size_of(&halves),
        }
    };
    of_quantile(TAIL).min(of_quantile(1.0 - TAIL))
}

fn r_hat_of<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let length = chains[0].as_ref().len() as f64;
    if length < 2.0 {
        return f64::NAN;
    }
    if stand_still(chains) {
        let first = |chain: &C| chain.as_ref()[0];
        let one_place = chains.iter().all(|chain| first(chain) == first(&chains[0]));
        return if one_place { f64::NAN } else { f64::INFINITY };
    }
    let (within, total) = variances(chains);
    (total / within).sqrt()
}

fn size_of<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let length = chains[0].as_ref().len();
    let number = (length * chains.len()) as f64;
    if length < 2 || stand_still(chains) {
        return f64::NAN;
    }
    let (within, total) = variances(chains);
    let correlation = |lag: usize| {
        let covariance = mean(chains.iter().map(|chain| autocovariance(chain.as_ref(), lag)));
        1.0 - (within - covariance) / total
    };
    // Sums of pairs of neighbours are positive and decreasing for a reversible chain; noise is cut off where they are not.
    let (mut kept, mut pair) = (vec![1.0, correlation(1)], 1.0 + correlation(1));
    let (mut last, mut lag) = (1.0, 1);
    while lag + 3 < length && pair > 0.0 {
        let [even, odd] = [lag + 1, lag + 2].map(&correlation);
        (pair, last) = (even + odd, even);
        if pair >= 0.0 {
            kept.extend([even, odd]);
        } else {
            kept.extend([0.0, 0.0]);
        }
        lag += 2;
    }
    // Pairs up to here count whole; of the one after them the even lag does, if it is positive.
    let end = lag.saturating_sub(2);
    if last > 0.0 {
        kept[end + 1] = last;
    }
    for at in (1..end.saturating_sub(1)).step_by(2) {
        if kept[at + 1] + kept[at + 2] > kept[at - 1] + kept[at] {
            kept[at + 1] = 0.5 * (kept[at - 1] + kept[at]);
            kept[at + 2] = kept[at + 1];
        }
    }
    let time = 2.0 * kept[..=end].iter().sum::<f64>() - 1.0 + kept[end + 1];
    number / time.max(1.0 / number.log10())
}

/// Draws by their ranks among all of them, as quantiles of the normal distribution; those that are equal share theirs.
fn normal_scores<C: AsRef<[f64]>>(chains: &[C]) -> Vec<Vec<f64>> {
    let length = chains[0].as_ref().len();
    let all: Vec<f64> = chains.iter().flat_map(|chain| chain.as_ref()).copied().collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_unstable_by(|&a, &b| all[a].total_cmp(&all[b]));
    let mut scores = vec![0.0; all.len()];
    for equal in order.chunk_by(|&a, &b| all[a] == all[b]) {
        let first = order.partition_point(|&at| all[at] < all[equal[0]]);
        let rank = first as f64 + 0.5 * (equal.len() + 1) as f64;
        // Blom's (1958) offsets.
        let score = normal_quantile((rank - 0.375) / (all.len() as f64 + 0.25));
        equal.iter().for_each(|&at| scores[at] = score);
    }
    scores.chunks_exact(length).map(<[f64]>::to_vec).collect()
}

/// A quantile, between two draws in proportion.
fn quantile(draws: &mut [f64], share: f64) -> f64 {
    draws.sort_unstable_by(f64::total_cmp);
    let at = share * (draws.len() - 1) as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(draws.len() - 1);
    draws[low] * (1.0 - part) + draws[high] * part
}

/// Both halves of every chain; a draw in the middle is dropped.
fn split(chains: &[Vec<f64>]) -> Vec<&[f64]> {
    assert!(!chains.is_empty(), "at least one chain");
    let half = chains[0].len() / 2;
    chains.iter().flat_map(|chain| [&chain[..half], &chain[chain.len() - half..]]).collect()
}

/// Whether no chain moves. Asked of the draws, since the variance of equal numbers is zero only up to rounding.
fn stand_still<C: AsRef<[f64]>>(chains: &[C]) -> bool {
    chains.iter().map(AsRef::as_ref).all(|chain| chain.iter().all(|draw| *draw == chain[0]))
}

/// The variance within chains, and the estimate of the total variance.
fn variances<C: AsRef<[f64]>>(chains: &[C]) -> (f64, f64) {
    let chains = || chains.iter().map(AsRef::as_ref);
    let length = chains().next().map_or(0, <[f64]>::len) as f64;
    let means: Vec<f64> = chains().map(|chain| mean(chain.iter().copied())).collect();
    let within = mean(chains().map(|chain| autocovariance(chain, 0) * length / (length - 1.0)));
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

    /// `sin(0.37 t^2 + 1.3 j)` in draw `t` of chain `j`, with a drift and a shift of the chains if wanted.
    fn waves(drift: f64, length: usize) -> Vec<Vec<f64>> {
        let draw = |j: f64, t: f64| {
            (0.37 * t * t + 1.3 * j).sin() + 0.3 * drift * j + 0.5 * drift * (0.2 * t).cos()
        };
        (0..4).map(|j| (0..length).map(|t| draw(f64::from(j), t as f64)).collect()).collect()
    }

    /// Figures of ArviZ 0.23.4 for the same chains: `rhat` with "rank" and "split", `ess` with "bulk", "tail" and "mean".
    #[test]
    fn figures_are_those_of_arviz() {
        let cases = [
            (
                0.0,
                60,
                [
                    1.020_355_838_906,
                    1.021_274_190_718,
                    243.927_901_825,
                    274.618_094_818,
                    250.726_473_275,
                ],
            ),
            (
                0.0,
                61,
                [
                    1.020_021_265_282,
                    1.021_130_114_046,
                    237.402_381_374,
                    237.454_902_328,
                    241.088_328_765,
                ],
            ),
            (
                1.0,
                60,
                [
                    1.040_024_446_493,
                    1.036_670_055_162,
                    85.332_580_143_6,
                    154.840_846_610,
                    89.953_862_249_7,
                ],
            ),
            (
                1.0,
                61,
                [
                    1.040_296_099_496,
                    1.036_883_353_620,
                    87.313_461_716_3,
                    135.843_905_476,
                    92.254_031_134_3,
                ],
            ),
        ];
        for (drift, length, expected) in cases {
            let chains = waves(drift, length);
            let found = [
                rank_normalised_r_hat(&chains),
                split_r_hat(&chains),
                bulk_effective_sample_size(&chains),
                tail_effective_sample_size(&chains),
                effective_sample_size(&chains),
            ];
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    (found / expected - 1.0).abs() < 1e-7,
                    "{drift} {length}: {found} {expected}"
                );
            }
        }
        // Whole numbers, of which many are equal.
        let chains = waves(0.0, 80).into_iter().take(3);
        let ties: Vec<Vec<f64>> =
            chains.map(|chain| chain.iter().map(|x| (3.0 * x).floor()).collect()).collect();
        assert!((rank_normalised_r_hat(&ties) / 1.013_279_897_374 - 1.0).abs() < 1e-7);
        assert!((bulk_effective_sample_size(&ties) / 238.354_247_499 - 1.0).abs() < 1e-7);
        assert_eq!(tail_effective_sample_size(&ties), 240.0);
    }

    /// What the plain R-hat does not see.
    #[test]
    fn chains_of_different_widths_do_not_agree() {
        let mut chains = autoregressive(0.0, &[0.0; 4], 2000);
        assert!(rank_normalised_r_hat(&chains) < 1.01);
        chains[3].iter_mut().for_each(|draw| *draw *= 3.0);
        assert!(split_r_hat(&chains) < 1.01, "{}", split_r_hat(&chains));
        assert!(rank_normalised_r_hat(&chains) > 1.05, "{}", rank_normalised_r_hat(&chains));
        let still = vec![vec![0.7; 100]; 4];
        assert!(rank_normalised_r_hat(&still).is_nan());
        assert!(bulk_effective_sample_size(&still).is_nan());
        assert!(tail_effective_sample_size(&still).is_nan());
    }
}
