//! An arm: where the negatives come from, where the chain starts, and how many steps it takes.

use std::fmt;
use std::str::FromStr;

use burn::tensor::Device;
use serde::Serialize;
use zhat::criterion::{
    Adapted, Criterion, DenoisingScoreMatching, FromData, Persistent, SlicedScoreMatching,
};
use zhat::kernel::{ConditionalImportance, Kernel, Repeat};
use zhat::model::DiagonalGaussian;
use zhat::proposal::{Adaptive, ModelItself};
use zhat::train::OptimiserConfig;
use zhat::{Error, Result};

use super::DIMENSION;
use crate::experiment::invalid;

/// The proposal `q`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `q = p_d`, fixed.
    Data,
    /// `q = p_theta` with the current parameters.
    Model,
    /// `q = q_phi`, learnt beside the model and started at `p_d`.
    Adaptive,
    /// None: sliced score matching, as a control.
    Sliced,
    /// None: denoising score matching, as a control.
    Denoising,
}

impl Source {
    /// Whether there is a chain that could take several steps.
    fn has_chain(self) -> bool {
        !matches!(self, Self::Sliced | Self::Denoising)
    }
}

/// Where the chain starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the data: RNCE.
    Data,
    /// Where it was: persistent RNCE.
    Persistent,
}

/// RNCE with a proposal, from the data or persistent, with one or several MCMC steps.
///
/// Its name is `data`, `model` or `adaptive` after the proposal, with `p-` before it for persistent chains and `-kN` after it
/// for `N` steps: `p-adaptive-k3`. Persistent RNCE with `q = p_d` is `p-rnce`. The controls `ssm` and `dsm` have neither proposal nor chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct Arm {
    /// The proposal.
    pub source: Source,
    /// Where the chain starts.
    pub start: Start,
    /// Number of MCMC steps `k`.
    pub num_steps: usize,
}

/// Every arm with one step: its name, its label, and what it is.
const NAMES: [(&str, &str, Source, Start); 8] = [
    ("data", "q = p_{d}", Source::Data, Start::Data),
    ("model", "q = p_{θ}", Source::Model, Start::Data),
    ("adaptive", "q = q_{φ}", Source::Adaptive, Start::Data),
    ("p-rnce", "q = p_{d}, persistent", Source::Data, Start::Persistent),
    ("p-model", "q = p_{θ}, persistent", Source::Model, Start::Persistent),
    ("p-adaptive", "q = q_{φ}, persistent", Source::Adaptive, Start::Persistent),
    ("ssm", "sliced score matching", Source::Sliced, Start::Data),
    ("dsm", "denoising score matching", Source::Denoising, Start::Data),
];

impl Arm {
    /// RNCE with `q = p_d`.
    pub const DATA: Arm = Arm { source: Source::Data, start: Start::Data, num_steps: 1 };
    /// RNCE with `q = p_theta`.
    pub const MODEL: Arm = Arm { source: Source::Model, start: Start::Data, num_steps: 1 };
    /// RNCE with `q = q_phi`.
    pub const ADAPTIVE: Arm = Arm { source: Source::Adaptive, start: Start::Data, num_steps: 1 };

    /// The method as zhat's parts.
    pub fn criterion(self, num_negatives: usize) -> Result<Box<dyn Criterion<DiagonalGaussian>>> {
        let data = |device| DiagonalGaussian::standard(DIMENSION, &device);
        let learnt = Adaptive::new(data(Device::flex().autodiff()));
        let kernel: Box<dyn Kernel<DiagonalGaussian>> = match self.source {
            Source::Data => {
                Box::new(ConditionalImportance::new(data(Device::flex()), num_negatives)?)
            }
            Source::Model => Box::new(ConditionalImportance::new(ModelItself, num_negatives)?),
            Source::Adaptive => {
                Box::new(ConditionalImportance::new(learnt.clone(), num_negatives)?)
            }
            // Steps and noise in units of the data, whose standard deviation is 1.
            Source::Sliced => {
                return Ok(Box::new(FromData(SlicedScoreMatching::new(0.1, num_negatives)?)));
            }
            Source::Denoising => {
                return Ok(Box::new(FromData(DenoisingScoreMatching::new(0.2, num_negatives)?)));
            }
        };
        let kernel = Repeat::new(kernel, self.num_steps)?;
        let criterion: Box<dyn Criterion<DiagonalGaussian>> = match self.start {
            Start::Data => Box::new(FromData(kernel)),
            Start::Persistent => Box::new(Persistent::new(kernel, 1)?),
        };
        Ok(match self.source {
            Source::Adaptive => Box::new(Adapted::new(criterion, learnt, OptimiserConfig::Sgd)),
            _ => criterion,
        })
    }

    /// How a figure and a sentence call it.
    pub fn label(self) -> String {
        match (self.names().1, self.num_steps) {
            (label, 1) => label.into(),
            (label, k) => format!("{label}, k = {k}"),
        }
    }

    /// Name and label with one step.
    fn names(self) -> (&'static str, &'static str) {
        let mut all = NAMES.into_iter();
        let (name, label, ..) = all
            .find(|&(.., source, start)| (source, start) == (self.source, self.start))
            .expect("every arm has a name");
        (name, label)
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.names().0, self.num_steps) {
            (name, 1) => write!(formatter, "{name}"),
            (name, k) => write!(formatter, "{name}-k{k}"),
        }
    }
}

impl FromStr for Arm {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let steps = text.rsplit_once("-k").and_then(|(name, k)| Some((name, k.parse().ok()?)));
        let (name, num_steps) = steps.unwrap_or((text, 1));
        match NAMES.into_iter().find(|&(known, ..)| known == name) {
            Some((.., source, start)) if num_steps == 1 || num_steps > 1 && source.has_chain() => {
                Ok(Self { source, start, num_steps })
            }
            _ => {
                let names = NAMES.map(|(name, ..)| name).join(", ");
                let expected =
                    format!("one of {names}, or one of them with -k2 (3, ...) MCMC steps");
                Err(invalid("arm", format!("`{text}`"), expected))
            }
        }
    }
}

impl From<Arm> for String {
    fn from(arm: Arm) -> Self {
        arm.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_as_they_were_written() {
        for (.., source, start) in NAMES {
            for num_steps in [1, 4].into_iter().filter(|&k| k == 1 || source.has_chain()) {
                let arm = Arm { source, start, num_steps };
                assert_eq!(arm.to_string().parse(), Ok(arm));
            }
        }
        assert_eq!("p-rnce-k3".parse::<Arm>().unwrap().num_steps, 3);
    }

    #[test]
    fn an_unknown_arm_is_answered_with_the_known_ones() {
        for name in ["", "rnce", "ssm-k2", "data-k0", "data-k", "DATA", "k3"] {
            let message = name.parse::<Arm>().unwrap_err().to_string();
            assert!(message.contains("data, model, adaptive, p-rnce"), "{message}");
        }
    }
}
