//! The record of one experiment: the document that `results.json` holds and that every other output is made from.

use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::{error::ReportError, number::Words, setting::Setting, summary::Curves};

/// An experiment, what it was run with, and what came out.
///
/// Settings and arms keep the order in which they were added. Non-finite numbers are written as words, see
/// [`crate::number`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The experiment's name, for example `ring`.
    pub experiment: String,
    /// The version of the program that ran it.
    pub version: String,
    /// Everything that was chosen, by name.
    pub settings: IndexMap<String, Setting>,
    /// Wall-clock time.
    #[serde(with = "Words")]
    pub seconds: f64,
    /// Number of threads.
    pub threads: usize,
    /// How many repetitions the curves summarise.
    #[serde(default)]
    pub finished_runs: usize,
    /// Whether the user stopped it before every repetition was finished; not written when false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The methods that were compared, by name.
    pub arms: IndexMap<String, Arm>,
    /// What the paper says, and what was found.
    pub claims: Vec<Claim>,
}

/// One of the methods compared in an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Summary over repetitions of the error against the iteration.
    #[serde(flatten)]
    pub curves: Curves,
    /// Median acceptance probability at the same iterations, by acceptance rule; not written when there is none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty", with = "Words")]
    pub acceptance: IndexMap<String, Vec<f64>>,
    /// How many repetitions of this arm were finished, where that differs from [`Experiment::finished_runs`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_runs: Option<usize>,
}

/// A sentence of the paper beside what was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// What the paper says.
    pub claim: String,
    /// How it is decided: what is compared, with which error, at which level.
    pub test: String,
    /// What was found, with its numbers.
    pub measured: String,
    /// What the test says.
    pub decision: Decision,
}

/// What a test says of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It is so, beyond the error.
    Holds,
    /// It is otherwise, beyond the error.
    DoesNotHold,
    /// The error is too large to say.
    NotToldApart,
}

impl Decision {
    /// Whether something is above a bound, from an interval that it lies in.
    pub fn above(bound: f64, (low, high): (f64, f64)) -> Self {
        match (low > bound, high < bound) {
            (true, _) => Self::Holds,
            (_, true) => Self::DoesNotHold,
            _ => Self::NotToldApart,
        }
    }

    /// Whether all of several things are so: one that is not is enough for a no.
    pub fn all(decisions: impl IntoIterator<Item = Self>) -> Self {
        decisions.into_iter().fold(Self::Holds, |all, next| match (all, next) {
            (Self::Holds, other) | (other, Self::Holds) => other,
            (Self::DoesNotHold, _) | (_, Self::DoesNotHold) => Self::DoesNotHold,
            _ => Self::NotToldApart,
        })
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::NotToldApart => "not told apart",
        })
    }
}

/// As it is shown on a terminal: without the marks that lower and raise text on a page.
impl fmt::Display for Claim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claim, test, measured, decision } = self;
        let text = format!("{decision}: {claim}\n  {measured}\n  Test: {test}");
        formatter.write_str(&text.replace("_{", "_").replace("^{", "^").replace('}', ""))
    }
}

impl Experiment {
    /// An experiment with nothing in it yet.
    pub fn new(experiment: impl Into<String>, version: impl Into<String>) -> Self {
        Self { experiment: experiment.into(), version: version.into(), ..Self::default() }
    }

    /// The same with settings, by the names and values with which they are written to files.
    pub fn with_settings(self, settings: &impl Serialize) -> Result<Self, ReportError> {
        let written = serde_json::to_string(settings)?;
        Ok(Self { settings: serde_json::from_str(&written)?, ..self })
    }

    /// The document of `results.json`.
    pub fn to_json(&self) -> Result<String, ReportError> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

impl From<Curves> for Arm {
    fn from(curves: Curves) -> Self {
        Self { curves, ..Self::default() }
    }
}

impl Claim {
    /// A claim, how it is decided, what was measured, and what follows.
    pub fn new(
        claim: impl Into<String>,
        test: impl Into<String>,
        measured: impl Into<String>,
        decision: Decision,
    ) -> Self {
        Self { claim: claim.into(), test: test.into(), measured: measured.into(), decision }
    }
}
