//! The methods by the names of the literature, each a short composition of a kernel, a start and a proposal.

use std::fmt;
use std::str::FromStr;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{Criterion, FromData, ImportanceSampling, Persistent};
use crate::error::{Error, Result};
use crate::kernel::{Barker, ConditionalImportance, Kernel, Metropolis, Repeat};
use crate::model::{DiagonalGaussian, FullGaussian, UnnormalisedModel};
use crate::proposal::{Hamiltonian, Langevin, Path, RandomWalk};

/// A method for any unnormalised model, by its usual name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Maximum likelihood with importance sampling.
    MlIs,
    /// Ranking NCE: the CIS kernel, from data.
    Rnce,
    /// Persistent RNCE.
    PRnce,
    /// Conditional NCE: the Barker kernel with a random walk, from data.
    Cnce,
    /// CNCE with the Metropolis-Hastings acceptance probability.
    MhCnce,
    /// Persistent CNCE.
    PCnce,
    /// Persistent MH-CNCE.
    PMhCnce,
    /// Contrastive divergence with Langevin (MALA) steps.
    Cd,
    /// Persistent contrastive divergence with Langevin (MALA) steps.
    Pcd,
    /// Contrastive divergence with Hamiltonian (HMC) steps.
    HmcCd,
    /// Yair and Michaeli's criterion: the whole chain against its reverse.
    TimeReversal,
}

impl Method {
    /// All of them, with their names.
    pub const ALL: [(Method, &'static str); 11] = [
        (Method::MlIs, "ml-is"),
        (Method::Rnce, "rnce"),
        (Method::PRnce, "p-rnce"),
        (Method::Cnce, "cnce"),
        (Method::MhCnce, "mh-cnce"),
        (Method::PCnce, "p-cnce"),
        (Method::PMhCnce, "p-mh-cnce"),
        (Method::Cd, "cd"),
        (Method::Pcd, "pcd"),
        (Method::HmcCd, "hmc-cd"),
        (Method::TimeReversal, "time-reversal"),
    ];
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let (_, name) = Self::ALL.iter().find(|(method, _)| method == self).expect("all are named");
        formatter.write_str(name)
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(method, _)| *method).ok_or_else(
            || {
                let names = Self::ALL.map(|(_, name)| name).join(", ");
                Error::setting("method", name, format!("one of {names}"))
            },
        )
    }
}

/// A method with its settings; [`init`](Self::init) takes what is to be taken from the data and makes the criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MethodConfig {
    /// Which method.
    pub method: Method,
    /// `J`: candidates beside the data point, or pairs.
    #[serde(default = "ten")]
    pub num_negatives: usize,
    /// `k`: steps of the kernel (of the path, for `time-reversal`).
    #[serde(default = "one")]
    pub num_steps: usize,
    /// `epsilon` of random walk, Langevin and Hamiltonian steps. By default the mean standard deviation of the data for
    /// the random walk, half of it for Langevin and a fifth for Hamiltonian steps.
    #[serde(default)]
    pub step_size: Option<f64>,
}

impl MethodConfig {
    /// A method with 10 negatives and one step.
    pub fn new(method: Method) -> Self {
        Self { method, num_negatives: 10, num_steps: 1, step_size: None }
    }

    /// With `J` negatives.
    pub fn with_num_negatives(self, num_negatives: usize) -> Self {
        Self { num_negatives, ..self }
    }

    /// With `k` steps.
    pub fn with_num_steps(self, num_steps: usize) -> Self {
        Self { num_steps, ..self }
    }

    /// The criterion. `data` gives the step size of conditional proposals and the Gaussian proposal of the others (full
    /// covariance, or diagonal where the columns are too few rows or linearly dependent).
    ///
    /// # Shapes
    /// - `data`: `[n, d]`
    pub fn init<M: UnnormalisedModel + 'static>(
        &self,
        data: &Tensor<2>,
    ) -> Result<Box<dyn Criterion<M>>> {
        let (negatives, steps) = (self.num_negatives, self.num_steps);
        let step_size = |share: f64| match self.step_size {
            Some(step_size) => Ok(step_size),
            None => RandomWalk::fitted(data).map(|walk| share * walk.step_size()),
        };
        let walk = || RandomWalk::new(step_size(1.0)?);
        let langevin = || Langevin::new(step_size(0.5)?);
        Ok(match self.method {
            Method::MlIs => match FullGaussian::fitted(data) {
                Ok(q) => Box::new(FromData(ImportanceSampling::new(q, negatives)?)),
                Err(_) => {
                    let q = DiagonalGaussian::fitted(data)?;
                    Box::new(FromData(ImportanceSampling::new(q, negatives)?))
                }
            },
            Method::Rnce => Box::new(FromData(Repeat::new(cis::<M>(data, negatives)?, steps)?)),
            Method::PRnce => {
                Box::new(Persistent::new(Repeat::new(cis::<M>(data, negatives)?, steps)?, 1)?)
            }
            Method::Cnce => {
                Box::new(FromData(Repeat::new(Barker::new(walk()?, negatives)?, steps)?))
            }
            Method::MhCnce => {
                Box::new(FromData(Repeat::new(Metropolis::new(walk()?, negatives)?, steps)?))
            }
            Method::PCnce => {
                Box::new(Persistent::new(Repeat::new(Barker::new(walk()?, 1)?, steps)?, negatives)?)
            }
            Method::PMhCnce => Box::new(Persistent::new(
                Repeat::new(Metropolis::new(walk()?, 1)?, steps)?,
                negatives,
            )?),
            Method::Cd => {
                Box::new(FromData(Repeat::new(Metropolis::new(langevin()?, negatives)?, steps)?))
            }
            Method::Pcd => Box::new(Persistent::new(
                Repeat::new(Metropolis::new(langevin()?, 1)?, steps)?,
                negatives,
            )?),
            Method::HmcCd => {
                let hamiltonian = Hamiltonian::new(step_size(0.2)?, 5)?;
                Box::new(FromData(Repeat::new(Metropolis::new(hamiltonian, negatives)?, steps)?))
            }
            Method::TimeReversal => {
                Box::new(FromData(Barker::new(Path::new(walk()?, steps)?, negatives)?))
            }
        })
    }
}

/// The CIS kernel with a Gaussian proposal fitted to the data.
fn cis<M: UnnormalisedModel + 'static>(
    data: &Tensor<2>,
    num_negatives: usize,
) -> Result<Box<dyn Kernel<M>>> {
    Ok(match FullGaussian::fitted(data) {
        Ok(proposal) => Box::new(ConditionalImportance::new(proposal, num_negatives)?),
        Err(_) => {
            Box::new(ConditionalImportance::new(DiagonalGaussian::fitted(data)?, num_negatives)?)
        }
    })
}

fn ten() -> usize {
    10
}

fn one() -> usize {
    1
}
