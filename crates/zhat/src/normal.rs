//! Quantiles of the normal distribution.

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

#[cfg(test)]
mod tests {
    use super::*;

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
