//! One of the checks that a verdict rests on: what was measured, what it is held against, and what follows.

use std::fmt;

use serde::{Deserialize, Serialize};
use zhat_report::{Align, Table};

use crate::fit::number_or_null;

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// Whether the number is right: there is a `Z`, and it is known.
    Likelihood,
    /// Whether the model is: its draws are like rows that it was not fitted to.
    Fit,
}

/// Something that was looked at, with the figure that decides it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What it is about.
    pub about: About,
    /// What was looked at, in a few words.
    pub name: String,
    /// What was measured.
    #[serde(deserialize_with = "number_or_null")]
    pub figure: f64,
    /// What the figure is held against.
    #[serde(deserialize_with = "number_or_null")]
    pub threshold: f64,
    /// Whether the figure has to be at least the threshold, and not at most.
    pub at_least: bool,
    /// Whether it is on the right side. Checks of the fit fail only where chance does not explain the figure either.
    pub passed: bool,
    /// What the figure says, in a sentence without its full stop: the reason where the check failed.
    pub reason: String,
}

impl Check {
    /// A check of the likelihood whose figure may be at most the threshold; what is no number fails.
    pub(super) fn at_most(name: &str, figure: f64, threshold: f64, reason: String) -> Self {
        let passed = figure <= threshold;
        Self { at_least: false, ..Self::new(name, figure, threshold, passed, reason) }
    }

    /// A check of the likelihood whose figure must be at least the threshold; what is no number fails.
    pub(super) fn at_least(name: &str, figure: f64, threshold: f64, reason: String) -> Self {
        Self::new(name, figure, threshold, figure >= threshold, reason)
    }

    /// A check of the fit: it fails where the figure is above the threshold and chance does not explain it.
    pub(super) fn of_fit(
        name: &str,
        figure: f64,
        threshold: f64,
        by_chance: bool,
        reason: String,
    ) -> Self {
        let passed = figure <= threshold || by_chance;
        let check = Self::new(name, figure, threshold, passed, reason);
        Self { about: About::Fit, at_least: false, ..check }
    }

    /// In a word or two. A figure on the wrong side that passes has to say why.
    fn outcome(&self) -> &'static str {
        let is_within = if self.at_least {
            self.figure >= self.threshold
        } else {
            self.figure <= self.threshold
        };
        match (self.passed, is_within) {
            (true, true) => "passed",
            (true, false) => "passed: chance explains it",
            (false, _) => "FAILED",
        }
    }

    fn new(name: &str, figure: f64, threshold: f64, passed: bool, reason: String) -> Self {
        // JSON has no infinity.
        let figure = figure.clamp(f64::MIN, f64::MAX);
        Self {
            about: About::Likelihood,
            name: name.into(),
            figure,
            threshold,
            at_least: true,
            passed,
            reason,
        }
    }
}

/// The checks as a table: name, figure, what it is held against, whether it passed.
pub fn checks_table(checks: &[Check]) -> Table {
    let mut table = Table::new([
        ("check", Align::Left),
        ("figure", Align::Right),
        ("wanted", Align::Left),
        ("", Align::Left),
    ]);
    for check in checks {
        let side = if check.at_least { "at least" } else { "at most" };
        table.row([
            check.name.clone(),
            Short(check.figure).to_string(),
            format!("{side} {}", Short(check.threshold)),
            check.outcome().into(),
        ]);
    }
    table
}

/// A figure in about three digits.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.0 {
            x if x.is_nan() => write!(f, "none"),
            0.0 => write!(f, "0"),
            x if !(1e-3..1e6).contains(&x.abs()) => write!(f, "{x:.1e}"),
            x if x == x.round() => write!(f, "{x:.0}"),
            x if x.abs() >= 100.0 => write!(f, "{x:.0}"),
            x => write!(f, "{x:.3}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_fails_and_is_read_back() {
        let most = Check::at_most("a", f64::NAN, 0.1, "r".into());
        let least = Check::at_least("b", f64::NAN, 100.0, "r".into());
        assert!(!most.passed && !least.passed);
        let text = serde_json::to_string(&most).unwrap();
        assert!(text.contains("\"figure\":null"));
        let read: Check = serde_json::from_str(&text).unwrap();
        assert!(read.figure.is_nan() && read.name == "a");
        assert!(checks_table(&[most, least]).to_string().contains("at least 100"));
    }

    #[test]
    fn a_check_of_the_fit_needs_both_a_size_and_more_than_chance() {
        let passed = |figure, by_chance| Check::of_fit("c", figure, 0.05, by_chance, "".into());
        assert!(passed(0.04, false).passed && passed(0.3, true).passed);
        assert!(!passed(0.06, false).passed);
        let words = |figure, by_chance| passed(figure, by_chance).outcome();
        assert_eq!([words(0.04, true), words(0.06, false)], ["passed", "FAILED"]);
        assert_eq!(words(0.06, true), "passed: chance explains it");
    }
}
