//! Bridge sampling (Meng and Wong, 1996): `Z` from draws of the proposal and draws of the model together.

/// More rounds than any case with usable overlap needs.
const MAX_ROUNDS: usize = 1000;
/// Change of `log Z-hat` at which the rounds end.
const TOLERANCE: f64 = 1e-10;

/// `log Z-hat` by the optimal bridge between a normalised proposal and the model.
///
/// With `l = log p~ - log q`, `s_q` and `s_p` the shares of the two kinds of draws, it solves
/// `Z = mean_q[e^l / (s_p e^l + s_q Z)] / mean_p[1 / (s_p e^l + s_q Z)]`. The estimate is consistent, not unbiased. It
/// needs overlap of the two only somewhere, where importance sampling needs the proposal to cover the model. Draws of the
/// proposal outside the support of the model have `l` minus infinity; where all have, so is the estimate.
///
/// # Shapes
/// - `log_w_proposal`: `l` at independent draws of the proposal
/// - `log_w_model`: `l` at draws of the model
pub fn bridge_sampling(log_w_proposal: &[f64], log_w_model: &[f64]) -> f64 {
    assert!(!log_w_proposal.is_empty() && !log_w_model.is_empty(), "draws of both kinds");
    let (of_q, of_p) = (log_w_proposal.len() as f64, log_w_model.len() as f64);
    let (share_q, share_p) = (of_q / (of_q + of_p), of_p / (of_q + of_p));
    let mut log_z = crate::weights::log_mean_exp(log_w_proposal);
    if log_z == f64::NEG_INFINITY {
        return log_z;
    }
    for _ in 0..MAX_ROUNDS {
        // Both means times Z, so that only ratios are exponentiated.
        let over: f64 =
            log_w_proposal.iter().map(|l| 1.0 / (share_p + share_q * (log_z - l).exp())).sum();
        let under: f64 =
            log_w_model.iter().map(|l| 1.0 / (share_p * (l - log_z).exp() + share_q)).sum();
        let change = (over / of_q).ln() - (under / of_p).ln();
        log_z += change;
        if change.abs() < TOLERANCE {
            break;
        }
    }
    log_z
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    /// `p~ = 7 N(x; 1, 0.8^2)` and `q = N(0, 1)`: `log Z = log 7`.
    fn log_w(x: f64) -> f64 {
        let log_p = 7f64.ln() - 0.5 * ((x - 1.0) / 0.8).powi(2) - 0.8f64.ln();
        log_p + 0.5 * x * x
    }

    #[test]
    fn it_finds_the_constant_of_a_gaussian_within_its_own_spread() {
        // 200 repetitions: their mean is within 3.3 standard errors (two-sided level 0.001) of the truth.
        let estimates: Vec<f64> = (0..200)
            .map(|repeat| {
                let mut rng = Streams::new(4).stream("bridge", repeat, 0);
                let q: Vec<f64> = (0..400).map(|_| log_w(rng.normal())).collect();
                let p: Vec<f64> = (0..200).map(|_| log_w(1.0 + 0.8 * rng.normal())).collect();
                bridge_sampling(&q, &p) - 7f64.ln()
            })
            .collect();
        let mean = estimates.iter().sum::<f64>() / 200.0;
        let variance = estimates.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / 199.0;
        assert!(mean.abs() < 3.3 * (variance / 200.0).sqrt() + 1e-3, "{mean} {variance}");
        assert!(variance.sqrt() < 0.05, "{variance}");
    }

    #[test]
    fn where_the_proposal_is_the_model_it_is_exact() {
        let constant = bridge_sampling(&[0.3; 5], &[0.3; 2]);
        assert!((constant - 0.3).abs() < 1e-9, "{constant}");
    }

    #[test]
    fn huge_and_tiny_constants_do_no_harm() {
        for shift in [-2000.0, 2000.0] {
            let shifted = |x: &[f64]| x.iter().map(|l| l + shift).collect::<Vec<f64>>();
            let (q, p) = ([0.1, -0.4, 0.9], [0.5, 0.2]);
            let moved = bridge_sampling(&shifted(&q), &shifted(&p));
            assert!((moved - shift - bridge_sampling(&q, &p)).abs() < 1e-6);
        }
    }
}
