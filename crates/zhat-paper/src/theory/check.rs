//! What a check finds, and how it is decided.

use serde::Serialize;
use zhat::Result;
use zhat::testing::{Invariance, exceedance, z_score};

/// Standard errors within which a true claim is found, unless by chance. Twice the normal tail at 5.1 is 3.4e-7; with the
/// 198 z-scores of a run that is once in 15,000 seeds ([`chance_of_false_alarm`]), and never more than once in 10,000.
pub const Z_LIMIT: f64 = 5.1;
/// Standard errors that two things which are claimed to differ must be apart.
const Z_APART: f64 = 8.0;
/// Largest difference of numbers that are claimed to be equal: the noise of 32-bit floats here.
const TOLERANCE: f64 = 1e-4;

/// How a check is decided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Standard errors between the computed mean and what is expected; at most [`Z_LIMIT`] for a true claim.
    ZScore,
    /// Standard errors between two things that are claimed to differ; at least 8.
    ZScoreApart,
    /// Largest absolute difference between numbers claimed to be equal; at most 1e-4, the noise of 32-bit floats here.
    Difference,
    /// Smallest margin of an inequality; not below zero.
    Margin,
}

/// A claim of the paper, what was found, and what would have failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// A short name.
    pub id: &'static str,
    /// What the paper says.
    pub claim: &'static str,
    /// Deliberate mistakes that the check notices; the tests make each of them.
    pub twin: &'static str,
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
    /// Whether the claim holds.
    pub pass: bool,
}

/// What was computed, what was expected, and how far they are apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Finding {
    /// What was computed, in the component where the agreement is worst.
    pub computed: f64,
    /// What the claim says it should be.
    pub expected: f64,
    /// z-score, largest difference or smallest margin.
    pub z_or_diff: f64,
    /// Which of the three it is.
    pub measure: Measure,
    /// How many z-scores could have failed by chance.
    pub num_z_scores: usize,
}

/// The probability that a right program fails one of the checks: all their z-scores, with Bonferroni's inequality.
pub fn chance_of_false_alarm(checks: &[Check]) -> f64 {
    checks.iter().map(|check| check.finding.num_z_scores as f64).sum::<f64>() * exceedance(Z_LIMIT)
}

impl Finding {
    /// An expectation: samples of several components against their expected values; the worst z-score decides.
    pub fn expectation(samples: &[Vec<f64>], expected: &[f64]) -> Self {
        Self::new(worst_z_score(samples, expected), Measure::ZScore, expected.len())
    }

    /// An expectation, from so many draws of a row of components.
    pub fn of_draws(
        number: usize,
        expected: &[f64],
        mut draw: impl FnMut() -> Result<Vec<f64>>,
    ) -> Result<Self> {
        let samples = (0..number).map(|_| draw()).collect::<Result<Vec<_>>>()?;
        Ok(Self::expectation(&samples, expected))
    }

    /// A claim that an estimator is biased: the largest z-score must be large.
    pub fn bias(samples: &[Vec<f64>], expected: &[f64]) -> Self {
        Self::new(worst_z_score(samples, expected), Measure::ZScoreApart, 0)
    }

    /// An equality, number by number; differences are relative for numbers above one.
    pub fn equality(computed: &[f64], expected: &[f64]) -> Self {
        let distance =
            |computed: f64, expected: f64| (computed - expected).abs() / expected.abs().max(1.0);
        Self::new(worst(computed, expected, distance), Measure::Difference, 0)
    }

    /// An inequality `larger >= smaller`, pair by pair.
    pub fn at_least(larger: &[f64], smaller: &[f64]) -> Self {
        let (larger, smaller, _) = worst(larger, smaller, |larger, smaller| smaller - larger);
        Self::new((larger, smaller, larger - smaller), Measure::Margin, 0)
    }

    /// A kernel that leaves its model invariant; a share of moves that is too small counts as a difference.
    pub fn invariance(found: &Invariance) -> Self {
        let worst = (found.mean_change, 0.0, found.z_score);
        Self::new(worst, Measure::ZScore, found.num_statistics)
    }

    /// Two findings of one claim, which holds if both do; the one that is worse is shown.
    pub fn and(self, other: Self) -> Self {
        let num_z_scores = self.num_z_scores + other.num_z_scores;
        let worse = match (self.holds(), other.holds()) {
            (true, false) => other,
            (true, true) if self.measure == other.measure && self.z_or_diff < other.z_or_diff => {
                other
            }
            _ => self,
        };
        Self { num_z_scores, ..worse }
    }

    /// Whether the claim holds. What is not a number does not.
    pub fn holds(&self) -> bool {
        match self.measure {
            Measure::ZScore => self.z_or_diff <= Z_LIMIT,
            Measure::ZScoreApart => self.z_or_diff >= Z_APART,
            Measure::Difference => self.z_or_diff <= TOLERANCE,
            Measure::Margin => self.z_or_diff >= 0.0,
        }
    }

    fn new(worst: (f64, f64, f64), measure: Measure, num_z_scores: usize) -> Self {
        let (computed, expected, z_or_diff) = worst;
        Self { computed, expected, z_or_diff, measure, num_z_scores }
    }
}

/// The pair that is farthest apart by a distance, and the distance; one that is not a number is the farthest.
fn worst(first: &[f64], second: &[f64], distance: impl Fn(f64, f64) -> f64) -> (f64, f64, f64) {
    assert_eq!(first.len(), second.len(), "as many numbers as are expected");
    let pairs = first.iter().zip(second).map(|(&first, &second)| {
        let distance = distance(first, second);
        (first, second, if distance.is_nan() { f64::INFINITY } else { distance })
    });
    pairs.max_by(|a, b| a.2.total_cmp(&b.2)).expect("something to compare")
}

/// Mean, expected value and z-score of the component with the largest z-score; `samples` has a row for each draw.
fn worst_z_score(samples: &[Vec<f64>], expected: &[f64]) -> (f64, f64, f64) {
    expected
        .iter()
        .enumerate()
        .map(|(at, &expected)| {
            let values: Vec<f64> = samples.iter().map(|row| row[at]).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (mean, expected, z_score(&values, expected))
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
        let right = Finding::expectation(&samples, &[4.5, 1.5]);
        assert!(right.holds() && right.z_or_diff < 1e-9);
        let wrong = Finding::expectation(&samples, &[4.5, 1.0]);
        assert!(!wrong.holds() && !right.and(wrong).holds() && !wrong.and(right).holds());
        assert_eq!((wrong.computed, wrong.expected), (1.5, 1.0));
        assert_eq!(right.and(wrong).num_z_scores, 4);
        assert!(Finding::bias(&samples, &[4.5, 1.0]).holds());
        assert!(!Finding::bias(&samples, &[4.5, 1.5]).holds());
    }

    #[test]
    fn equalities_and_inequalities_are_decided_by_their_worst_pair() {
        assert!(!Finding::equality(&[1.0, 2.1], &[1.0, 2.0]).holds());
        assert!(Finding::equality(&[1.0, 2.0], &[1.0, 2.0]).holds());
        assert!(!Finding::at_least(&[1.0, 0.0], &[0.5, 0.1]).holds());
        assert!(Finding::at_least(&[1.0, 0.1], &[0.5, 0.1]).holds());
    }

    #[test]
    fn what_is_not_a_number_fails() {
        assert!(!Finding::expectation(&[vec![f64::NAN], vec![1.0]], &[1.0]).holds());
        assert!(!Finding::equality(&[f64::NAN, 1.0], &[1.0, 1.0]).holds());
        assert!(!Finding::at_least(&[1.0, f64::NAN], &[0.0, 0.0]).holds());
    }
}
