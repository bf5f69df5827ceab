//! Every proposition of the paper, checked numerically.
//!
//! A claim about an expectation is checked by a z-score, a claim of equality by the largest difference.

mod check;
mod equivalences;
mod estimators;
mod invariance;
mod setting;

pub use check::{Check, Measure};

use rayon::prelude::*;
use zhat::Result;
use zhat::rng::{Stream, Streams};

/// A named check: what it is called, and what to do with a stream of its own.
type Named = (&'static str, fn(&str, &mut Stream) -> Result<Check>);

/// All checks, in the order of the paper.
fn all() -> Vec<Named> {
    [equivalences::checks(), estimators::checks(), invariance::checks()].concat()
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
        .map(|(id, check)| {
            let check = check(id, &mut streams.stream(id, 0, 0))?;
            progress(&check);
            Ok(check)
        })
        .collect()
}
