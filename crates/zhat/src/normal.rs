//! Quantiles and masses of the normal distribution.

/// Quantile of the normal distribution to about 1e-9 of its value (Acklam's rational approximations).
pub fn normal_quantile(share: f64) -> f64 {
    const CENTRE: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const UNDER_CENTRE: [f64; 6] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
        1.0,
    ];
    const TAIL: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const UNDER_TAIL: [f64; 5] =
        [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1.0];
    /// The tails begin here.
    const LOW: f64 = 0.02425;
    let polynomial = |terms: &[f64], x: f64| terms.iter().fold(0.0, |sum, term| sum * x + term);
    if share > 0.5 {
        return -normal_quantile(1.0 - share);
    }
    if share < LOW {
        let root = (-2.0 * share.ln()).sqrt();
        return polynomial(&TAIL, root) / polynomial(&UNDER_TAIL, root);
    }
    let (off, square) = (share - 0.5, (share - 0.5).powi(2));
    off * polynomial(&CENTRE, square) / polynomial(&UNDER_CENTRE, square)
}

/// The log of the mass of the standard normal between two ends, which may be infinite; right to about 1e-13 of the mass, however far
/// out it is.
pub fn log_normal_mass([low, high]: [f64; 2]) -> f64 {
    if low >= 0.0 {
        let (near, far) = (log_tail(low), log_tail(high));
        near + (-(far - near).exp_m1()).ln()
    } else if high <= 0.0 {
        log_normal_mass([-high, -low])
    } else {
        (1.0 - log_tail(-low).exp() - log_tail(high).exp()).ln()
    }
}

/// The log of the mass above `z >= 0`.
fn log_tail(z: f64) -> f64 {
    /// From here on the continued fraction needs few terms.
    const FAR: f64 = 2.5;
    const TERMS: usize = 60;
    if z == f64::INFINITY {
        return f64::NEG_INFINITY;
    }
    let log_density = -0.5 * z * z - 0.5 * (2.0 * std::f64::consts::PI).ln();
    if z < FAR {
        // Phi(z) - 1/2 = N(z) (z + z^3 / 3 + z^5 / (3 5) + ...): all terms have one sign.
        let (mut term, mut sum, mut odd) = (z, z, 1.0);
        while term > 1e-17 * sum {
            odd += 2.0;
            term *= z * z / odd;
            sum += term;
        }
        return (0.5 - log_density.exp() * sum).ln();
    }
    // N(z) / (z + 1 / (z + 2 / (z + ...))), Laplace's.
    let below = (1..=TERMS).rev().fold(z, |below, term| z + term as f64 / below);
    log_density - below.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masses_of_the_normal_distribution_are_those_of_tables() {
        let infinite = f64::INFINITY;
        for (ends, expected) in [
            ([-infinite, infinite], 1.0),
            ([-infinite, -1.959_963_984_540_054], 0.025),
            ([0.0, 1.0], 0.341_344_746_068_542_9),
            ([-1.0, 2.0], 0.818_594_614_120_364),
            ([1.0, 2.0], 0.135_905_121_983_277_84),
            ([-3.0, -2.5], 0.004_859_767_294_146_037),
            ([5.0, infinite], 2.866_515_718_791_939e-7),
        ] {
            let found = log_normal_mass(ends).exp();
            assert!((found / expected - 1.0).abs() < 1e-9, "{ends:?}: {found:e} {expected:e}");
        }
        // Far out, where the mass itself is no number: log N(z) - log z - 1 / z^2 + ..., and a narrow cell has its density.
        let far = log_normal_mass([100.0, infinite]);
        let expected = -5000.0 - 0.5 * (2.0 * std::f64::consts::PI).ln() - 100f64.ln() - 1e-4;
        assert!((far - expected).abs() < 1e-7, "{far} {expected}");
        for z in [0.3, 1.9, 2.4999, 2.5, 4.0, 7.0] {
            let density = -0.5 * (z * z + (2.0 * std::f64::consts::PI).ln());
            let found = log_normal_mass([z - 5e-5, z + 5e-5]) - 1e-4f64.ln();
            assert!((found - density).abs() < 1e-7, "{z}: {found} {density}");
        }
    }

    #[test]
    fn quantiles_of_the_normal_distribution_are_those_of_tables() {
        for (share, expected) in [
            (0.5, 0.0),
            (0.975, 1.959963984540054),
            (0.005, -2.5758293035489004),
            (0.84, 0.994457883209753),
            (0.02, -2.053748910631823),
        ] {
            assert!((normal_quantile(share) - expected).abs() < 1e-8, "{share}");
        }
    }
}
