//! The experiments of the paper, each as settings, a run, and a report with figures and claims.
//!
//! The two toy experiments are written on zhat's public interface: compose a criterion, give it to a trainer, and watch it with an observer.
//! A repetition has a seed of its own, derived from that of the experiment, so that results are the same bits for any
//! number of threads. The arms of a repetition see the same data and the same random numbers.

mod paired;
pub mod proposals;
mod repetitions;
mod report;
pub mod ring;
pub mod table1;

pub use report::{NamedFigure, Report};

use serde::Serialize;

/// What to follow where the paper's text and the authors' published program differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// The text.
    #[default]
    Text,
    /// The program.
    AsPublished,
}

/// An error unless a setting that counts something is at least 1.
fn check_count(name: &'static str, value: usize) -> zhat::Result<()> {
    if value == 0 {
        return Err(invalid(name, value, "at least 1"));
    }
    Ok(())
}

/// An error for a setting outside its range.
fn invalid(name: &'static str, value: impl ToString, expected: impl Into<String>) -> zhat::Error {
    zhat::Error::InvalidSetting { name, value: value.to_string(), expected: expected.into() }
}

/// The arms by name, each once; at least one.
fn parse_arms<A: std::str::FromStr<Err = zhat::Error> + PartialEq>(
    names: &[impl AsRef<str>],
) -> zhat::Result<Vec<A>> {
    let mut arms = Vec::new();
    for name in names {
        let arm = name.as_ref().trim().parse()?;
        if !arms.contains(&arm) {
            arms.push(arm);
        }
    }
    Ok(arms)
}
