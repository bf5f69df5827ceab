//! Log-weights in, normalised weights out: the one place where weights are normalised.
//!
//! Everything is computed on the host in 64-bit floats and in logs, so that weights of 1e-300 and 1e+300 stand side by
//! side without harm, and a weight that is not a number is reported with its row and candidate. A density of zero, which is
//! a log-weight of minus infinity, is a weight of zero: models may have a hard support.

use burn::tensor::Tensor;

use crate::error::{Error, Result};
use crate::host::{Place, to_host};

/// Unnormalised log-weights `log w~ = log p~ - log q` of the candidates of each row: finite, or minus infinity for a
/// candidate outside the support of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct LogWeights {
    values: Vec<f64>,
    columns: usize,
}

/// Weights of the candidates of each row, immutable once made.
///
/// They sum to one over a row for every p_theta-invariant kernel; those of binary NCE and of the self-normalised likelihood need not.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    values: Vec<f64>,
    columns: usize,
}

impl LogWeights {
    /// `log p~ - log q`, candidate by candidate, after a check that `log q` is finite and `log p~` is too, or minus
    /// infinity.
    ///
    /// # Shapes
    /// - `log_p_tilde`: `[n, c]`
    /// - `log_proposal`: `n * c` values, row by row
    pub fn new(log_p_tilde: &Tensor<2>, log_proposal: &[f64]) -> Result<Self> {
        let columns = log_p_tilde.dims()[1];
        let mut values = to_host(log_p_tilde);
        assert_eq!(values.len(), log_proposal.len(), "one log_proposal for each candidate");
        check_log_density("log_p_tilde of the model", &values, columns)?;
        check_finite("log-density of the proposal", log_proposal, columns)?;
        for (value, log_q) in values.iter_mut().zip(log_proposal) {
            *value -= log_q;
        }
        Ok(Self { values, columns })
    }

    /// From numbers that are known to be finite or minus infinity.
    pub fn from_values(values: Vec<f64>, columns: usize) -> Self {
        assert!(columns > 0 && values.len().is_multiple_of(columns), "whole rows of candidates");
        Self { values, columns }
    }

    /// The log-weights, row by row.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.columns)
    }

    /// `w_j = w~_j / sum_l w~_l` over all candidates, `l = 0..=J` (CIS, eq. rank_nce:grad).
    pub fn normalise(&self) -> Weights {
        self.map_rows(softmax)
    }

    /// `w_j = w~_j / sum_l w~_l` over `l = 1..=J`; the data point has weight zero (IS, eq. is:estimator:grad).
    ///
    /// Where no draw hits the support of the model they are all zero: such a row knows nothing of the gradient of `log Z`.
    pub fn normalise_negatives(&self) -> Weights {
        self.map_rows(|log_w, weights| {
            weights[0] = 0.0;
            softmax(&log_w[1..], &mut weights[1..]);
        })
    }

    /// `w_j = sigma(log w~_j - log J)`: the probability that candidate `j` is data (binary NCE).
    pub fn classify(&self) -> Weights {
        let log_negatives = ((self.columns - 1) as f64).ln();
        self.map_rows(|log_w, weights| {
            for (weight, log_w) in weights.iter_mut().zip(log_w) {
                *weight = barker(log_w - log_negatives);
            }
        })
    }

    /// `w_j = w~_j / J`, not normalised; the data point has weight zero (the self-normalised likelihood, whose `w~` knows its own `Z`).
    ///
    /// Where the model is far above the proposal they may be too large for a number: infinity.
    pub fn over_negatives(&self) -> Weights {
        let negatives = (self.columns - 1) as f64;
        self.map_rows(|log_w, weights| {
            for (weight, log_w) in weights.iter_mut().zip(log_w).skip(1) {
                *weight = log_w.exp() / negatives;
            }
        })
    }

    /// Pairs `(x_0, x_j)`, each moved with probability `acceptance(log w~(x_j|x_0) - log w~(x_0|x_j))`, averaged
    /// over the `J` pairs (eq. cond_nce:grad).
    pub fn accept(&self, acceptance: fn(f64) -> f64) -> Weights {
        let negatives = (self.columns - 1) as f64;
        self.map_rows(|log_w, weights| {
            let mut moved = 0.0;
            for (weight, log_w_tilde) in weights[1..].iter_mut().zip(&log_w[1..]) {
                *weight = acceptance(log_w_tilde - log_w[0]) / negatives;
                moved += *weight;
            }
            weights[0] = (1.0 - moved).max(0.0);
        })
    }

    /// Mean over all pairs of the probability to move from `x_0` to `x_j` under a rule such as [`barker`].
    pub fn mean_acceptance(&self, acceptance: fn(f64) -> f64) -> f64 {
        let pairs = self.values.len() - self.values.len() / self.columns;
        let sum: f64 = self
            .rows()
            .flat_map(|row| row[1..].iter().map(move |log_w| acceptance(log_w - row[0])))
            .sum();
        sum / pairs as f64
    }

    fn map_rows(&self, normalise: impl Fn(&[f64], &mut [f64])) -> Weights {
        let mut values = vec![0.0; self.values.len()];
        for (log_w, weights) in self.rows().zip(values.chunks_exact_mut(self.columns)) {
            normalise(log_w, weights);
        }
        Weights { values, columns: self.columns }
    }
}

impl Weights {
    /// Weights of a contrast of one's own, row by row, each finite and not negative.
    ///
    /// # Panics
    /// If these are not whole rows of so many columns.
    pub fn new(values: Vec<f64>, columns: usize) -> Result<Self> {
        assert!(columns > 0 && values.len().is_multiple_of(columns), "whole rows of candidates");
        let good = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        check("weight", &values, columns, good)?;
        Ok(Self { values, columns })
    }

    /// The weights, row by row.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.columns)
    }

    /// Number of candidates in a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All weights in row-major order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Effective sample size of each row, between 1 and the number of candidates.
    pub fn effective_sample_size(&self) -> impl Iterator<Item = f64> {
        self.rows().map(effective_sample_size)
    }

    /// As a constant tensor.
    ///
    /// # Shapes
    /// - output: `[n, c]`
    pub fn tensor(&self, place: &Place) -> Tensor<2> {
        place.tensor(self.values.clone(), [self.values.len() / self.columns, self.columns])
    }
}

/// Barker's acceptance probability `1 / (1 + 1/ratio)` from the log of the ratio, its logistic function; CNCE's rule
/// (Alg. 2).
pub fn barker(log_ratio: f64) -> f64 {
    if log_ratio >= 0.0 {
        1.0 / (1.0 + (-log_ratio).exp())
    } else {
        let ratio = log_ratio.exp();
        ratio / (1.0 + ratio)
    }
}

/// The Metropolis-Hastings acceptance probability `min(1, ratio)` from the log of the ratio (eq. mh:acc_prob).
pub fn metropolis(log_ratio: f64) -> f64 {
    log_ratio.min(0.0).exp()
}

/// `1 / sum_j w_j^2` for weights that sum to one.
pub fn effective_sample_size(weights: &[f64]) -> f64 {
    1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>()
}

/// `log sum_j exp(v_j)`, and minus infinity for nothing.
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        return largest;
    }
    largest + values.iter().map(|value| (value - largest).exp()).sum::<f64>().ln()
}

/// `log mean_j exp(v_j)`.
pub fn log_mean_exp(values: &[f64]) -> f64 {
    log_sum_exp(values) - (values.len() as f64).ln()
}

pub(crate) fn softmax(log_w: &[f64], weights: &mut [f64]) {
    let largest = log_w.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return weights.fill(0.0);
    }
    let mut sum = 0.0;
    for (weight, log_w) in weights.iter_mut().zip(log_w) {
        *weight = (log_w - largest).exp();
        sum += *weight;
    }
    for weight in weights {
        *weight /= sum;
    }
}

/// An error that names the function, row and candidate of the first value that is NaN or infinite.
pub(crate) fn check_finite(what: &str, values: &[f64], columns: usize) -> Result<()> {
    check(what, values, columns, |value| value.is_finite())
}

/// The same for a log-density, which may be minus infinity: the density is zero there.
pub(crate) fn check_log_density(what: &str, values: &[f64], columns: usize) -> Result<()> {
    check(what, values, columns, |value| *value < f64::INFINITY)
}

fn check(what: &str, values: &[f64], columns: usize, good: impl Fn(&f64) -> bool) -> Result<()> {
    match values.iter().position(|value| !good(value)) {
        None => Ok(()),
        Some(at) => Err(Error::NotFinite {
            what: what.to_owned(),
            value: values[at],
            row: at / columns,
            candidate: at % columns,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    /// Weights of 1e-300 and 1e+300 beside one of 1.
    fn extreme() -> LogWeights {
        LogWeights::from_values(vec![0.0, 1e300f64.ln(), 1e-300f64.ln(), 0.0, 0.0, 0.0], 3)
    }

    #[test]
    fn normalised_weights_sum_to_one_and_survive_extremes() {
        let weights = extreme().normalise();
        let rows: Vec<_> = weights.rows().collect();
        assert_eq!(rows[0][1], 1.0);
        assert!((rows[0][0].ln() + 1e300f64.ln()).abs() < 1e-9);
        assert_eq!(rows[0][2], 0.0);
        for row in rows {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn negatives_alone_leave_the_data_point_without_weight() {
        let weights = LogWeights::from_values(vec![50.0, 0.0, 3f64.ln()], 3).normalise_negatives();
        let expected = [0.0, 0.25, 0.75];
        assert!(weights.values().iter().zip(expected).all(|(w, e)| (w - e).abs() < 1e-12));
    }

    #[test]
    fn classification_weights_are_the_posterior_of_being_data() {
        // J = 2, w~ = (2, 2, 6): sigma(log(w~/J)) = 1/2, 1/2, 3/4.
        let log_w = [2f64, 2.0, 6.0].map(f64::ln).to_vec();
        let weights = LogWeights::from_values(log_w, 3).classify();
        let expected = [0.5, 0.5, 0.75];
        assert!(weights.values().iter().zip(expected).all(|(w, e)| (w - e).abs() < 1e-12));
    }

    #[test]
    fn pairs_move_with_the_acceptance_probability() {
        let log_w = [1f64, 3.0, 0.25].map(f64::ln).to_vec();
        let log_w = LogWeights::from_values(log_w, 3);
        let barker_weights = log_w.accept(barker);
        let metropolis_weights = log_w.accept(metropolis);
        let close = |a: &[f64], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(barker_weights.values(), [1.0 - 0.375 - 0.1, 0.375, 0.1]));
        assert!(close(metropolis_weights.values(), [1.0 - 0.5 - 0.125, 0.5, 0.125]));
        assert!((log_w.mean_acceptance(barker) - 0.475).abs() < 1e-12);
        assert!((log_w.mean_acceptance(metropolis) - 0.625).abs() < 1e-12);
    }

    #[test]
    fn extreme_ratios_are_always_or_never_accepted() {
        for rule in [barker, metropolis] {
            assert_eq!(rule(1500.0), 1.0);
            assert_eq!(rule(-1500.0), 0.0);
        }
        assert!(extreme().accept(barker).values().iter().all(|weight| weight.is_finite()));
    }

    #[test]
    fn the_effective_sample_size_counts_equal_weights() {
        assert!((effective_sample_size(&[0.25; 4]) - 4.0).abs() < 1e-12);
        assert_eq!(effective_sample_size(&[0.0, 1.0, 0.0]), 1.0);
    }

    #[test]
    fn log_sum_exp_is_stable() {
        assert!((log_sum_exp(&[1000.0, 1000.0]) - (1000.0 + 2f64.ln())).abs() < 1e-12);
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
        assert!((log_mean_exp(&[-1000.0; 5]) + 1000.0).abs() < 1e-9);
    }

    #[test]
    fn a_density_of_zero_is_a_weight_of_zero() {
        let zero = f64::NEG_INFINITY;
        let log_w = LogWeights::from_values(vec![0.0, zero, 0.0, 1.0, zero, zero], 3);
        assert_eq!(log_w.normalise().values(), [0.5, 0.0, 0.5, 1.0, 0.0, 0.0]);
        assert_eq!(log_w.normalise_negatives().values(), [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(log_w.classify().values()[1], 0.0);
        for rule in [barker, metropolis] {
            assert_eq!(log_w.accept(rule).values()[3..], [1.0, 0.0, 0.0]);
        }
    }

    #[test]
    fn weights_of_ones_own_are_checked() {
        let weights = Weights::new(vec![0.25, 0.75, 0.0, 2.0], 2).unwrap();
        assert_eq!(weights.rows().collect::<Vec<_>>(), [[0.25, 0.75], [0.0, 2.0]]);
        for bad in [-1e-9, f64::NAN, f64::INFINITY] {
            let error = Weights::new(vec![0.5, 0.5, bad, 1.0], 2).unwrap_err();
            assert!(matches!(error, Error::NotFinite { row: 1, candidate: 0, .. }), "{error}");
        }
    }

    #[test]
    fn an_energy_that_is_not_a_number_is_named_with_its_row_and_candidate() {
        let place = Place::new(&Device::flex());
        let log_p_tilde = place.tensor(vec![0.0, 0.0, 0.0, 0.0, 0.0, f64::NAN], [2, 3]);
        let error = LogWeights::new(&log_p_tilde, &[0.0; 6]).unwrap_err();
        assert!(matches!(error, Error::NotFinite { row: 1, candidate: 2, .. }));
        assert!(
            error.to_string().contains("log_p_tilde of the model is NaN at row 1, candidate 2")
        );
        let finite = place.tensor(vec![0.0; 6], [2, 3]);
        let log_q = [0.0, f64::INFINITY, 0.0, 0.0, 0.0, 0.0];
        let error = LogWeights::new(&finite, &log_q).unwrap_err();
        assert!(
            error.to_string().contains("log-density of the proposal is inf at row 0, candidate 1")
        );
    }
}
