//! The record of one check.

use serde::Serialize;

/// How a check is decided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Standard errors between the computed mean and what is expected; at most 4.5 for a true claim. An estimator without
    /// bias exceeds it once in 150,000 seeds.
    ZScore,
    /// Standard errors between two things that are claimed to differ; at least 8.
    ZScoreApart,
    /// Largest absolute difference between numbers claimed to be equal; at most 1e-4, the noise of 32-bit floats here.
    Difference,
    /// Smallest margin of an inequality; not below zero.
    Margin,
}

/// What is claimed, what was computed, what was expected, and whether they agree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// A short name.
    pub id: String,
    /// What the paper says.
    pub claim: String,
    /// What was computed, in the component where the agreement is worst.
    pub computed: f64,
    /// What the claim says it should be.
    pub expected: f64,
    /// z-score, largest difference or smallest margin.
    pub z_or_diff: f64,
    /// Which of the three it is.
    pub measure: Measure,
    /// Whether the claim holds.
    pub pass: bool,
}

impl Check {
    /// An expectation: samples of several components against their expected values; the worst z-score decides.
    pub fn expectation(id: &str, claim: &str, samples: &[Vec<f64>], expected: &[f64]) -> Self {
        let (computed, expected, z) = worst_z_score(samples, expected);
        Self::new(id, claim, (computed, expected, z), Measure::ZScore)
    }

    /// A claim that an estimator is biased: the largest z-score must be large.
    pub fn bias(id: &str, claim: &str, samples: &[Vec<f64>], expected: &[f64]) -> Self {
        let (computed, expected, z) = worst_z_score(samples, expected);
        Self::new(id, claim, (computed, expected, z), Measure::ZScoreApart)
    }

    /// An equality, number by number; differences are relative for numbers above one.
    pub fn equality(id: &str, claim: &str, computed: &[f64], expected: &[f64]) -> Self {
        assert_eq!(computed.len(), expected.len(), "{id}");
        let worst = computed
            .iter()
            .zip(expected)
            .map(|(c, e)| (*c, *e, (c - e).abs() / e.abs().max(1.0)))
            .max_by(|a, b| a.2.total_cmp(&b.2))
            .expect("something to compare");
        Self::new(id, claim, worst, Measure::Difference)
    }

    /// An inequality `larger >= smaller`, pair by pair.
    pub fn at_least(id: &str, claim: &str, larger: &[f64], smaller: &[f64]) -> Self {
        let worst = larger
            .iter()
            .zip(smaller)
            .map(|(l, s)| (*l, *s, l - s))
            .min_by(|a, b| a.2.total_cmp(&b.2))
            .expect("something to compare");
        Self::new(id, claim, worst, Measure::Margin)
    }

    fn new(id: &str, claim: &str, worst: (f64, f64, f64), measure: Measure) -> Self {
        let (computed, expected, z_or_diff) = worst;
        let pass = match measure {
            Measure::ZScore => z_or_diff <= 4.5,
            Measure::ZScoreApart => z_or_diff >= 8.0,
            Measure::Difference => z_or_diff <= 1e-4,
            Measure::Margin => z_or_diff >= 0.0,
        };
        Self { id: id.into(), claim: claim.into(), computed, expected, z_or_diff, measure, pass }
    }
}

/// Mean, expected value and z-score of the component with the largest z-score; `samples` has a row for each draw.
fn worst_z_score(samples: &[Vec<f64>], expected: &[f64]) -> (f64, f64, f64) {
    let number = samples.len() as f64;
    (0..expected.len())
        .map(|at| {
            let mean = samples.iter().map(|row| row[at]).sum::<f64>() / number;
            let squares = samples.iter().map(|row| (row[at] - mean).powi(2)).sum::<f64>();
            let standard_error = (squares / (number - 1.0) / number).sqrt();
            let distance = (mean - expected[at]).abs();
            // Draws that do not vary at all must be right to rounding.
            let z = if standard_error < 1e-12 { distance * 1e6 } else { distance / standard_error };
            (mean, expected[at], z)
        })
        .max_by(|a, b| a.2.total_cmp(&b.2))
        .expect("at least one component")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_expectation_fails_and_a_right_one_passes() {
        let samples: Vec<Vec<f64>> =
            (0..1000).map(|i| vec![f64::from(i % 10), f64::from(i % 4)]).collect();
        let right = Check::expectation("x", "", &samples, &[4.5, 1.5]);
        assert!(right.pass && right.z_or_diff < 1e-9);
        let wrong = Check::expectation("x", "", &samples, &[4.5, 1.0]);
        assert!(!wrong.pass);
        assert_eq!((wrong.computed, wrong.expected), (1.5, 1.0));
        assert!(Check::bias("x", "", &samples, &[4.5, 1.0]).pass);
        assert!(!Check::bias("x", "", &samples, &[4.5, 1.5]).pass);
    }

    #[test]
    fn equalities_and_inequalities_are_decided_by_their_worst_pair() {
        assert!(!Check::equality("x", "", &[1.0, 2.1], &[1.0, 2.0]).pass);
        assert!(Check::equality("x", "", &[1.0, 2.0], &[1.0, 2.0]).pass);
        assert!(!Check::at_least("x", "", &[1.0, 0.0], &[0.5, 0.1]).pass);
        assert!(Check::at_least("x", "", &[1.0, 0.1], &[0.5, 0.1]).pass);
    }

    #[test]
    fn a_constant_that_is_wrong_fails() {
        let samples = vec![vec![0.5]; 10];
        assert!(Check::expectation("x", "", &samples, &[0.5]).pass);
        assert!(!Check::expectation("x", "", &samples, &[0.6]).pass);
    }
}
