//! Every proposition of the paper, checked numerically.
//!
//! A claim about an expectation is checked by a z-score, a claim of equality by the largest difference. A check is a
//! function of what it checks: a kernel, a criterion, an estimator. So it can be given a broken one, and the tests
//! give every check a broken twin that it must notice.

/// A table of claims: a short name, what the paper says, the mistakes that the check notices, and the check.
macro_rules! claims {
    ($($id:literal: $claim:literal, $twin:literal, $check:expr;)*) => {
        pub fn claims() -> Vec<super::Claim> {
            vec![$(super::Claim { id: $id, claim: $claim, twin: $twin, check: $check }),*]
        }
    };
}

mod check;
mod equivalences;
mod estimators;
mod invariance;
mod setting;
#[cfg(test)]
mod twins;

pub use check::{Check, Finding, Measure, Z_LIMIT, chance_of_false_alarm};

use rayon::prelude::*;
use zhat::Result;
use zhat::rng::{Stream, Streams};

/// A row of the table; the check is on a stream of its own.
struct Claim {
    id: &'static str,
    claim: &'static str,
    twin: &'static str,
    check: fn(&mut Stream) -> Result<Finding>,
}

/// All claims, in the order of the paper.
fn all() -> Vec<Claim> {
    equivalences::claims()
        .into_iter()
        .chain(estimators::claims())
        .chain(invariance::claims())
        .collect()
}

/// Number of checks that [`run`] makes.
pub fn num_checks() -> usize {
    all().len()
}

/// Runs all checks, in parallel; `progress` is told of each as it ends. The result depends on the seed alone.
pub fn run(seed: u64, progress: impl Fn(&Check) + Sync) -> Result<Vec<Check>> {
    let streams = Streams::new(seed);
    all()
        .into_par_iter()
        .map(|Claim { id, claim, twin, check }| {
            let finding = check(&mut streams.stream(id, 0, 0))?;
            let check = Check { id, claim, twin, finding, pass: finding.holds() };
            progress(&check);
            Ok(check)
        })
        .collect()
}
