//! The methods by the names of the literature, each a short composition of a kernel, a start and a proposal.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{
    BinaryNce, Criterion, DenoisingScoreMatching, FromData, ImportanceSampling, Persistent,
    SelfNormalised, SlicedScoreMatching,
};
use crate::error::{Error, Result};
use crate::kernel::{
    Barker, ConditionalImportance, ConditionalSmc, Kernel, Metropolis, Repeat, SmcGradient,
};
use crate::model::{DiagonalGaussian, FullGaussian, SequentialModel, UnnormalisedModel};
use crate::named;
use crate::proposal::{Hamiltonian, Langevin, Path, Proposal, RandomWalk, SequentialProposal};
use crate::weights::{LogWeights, Weights, barker, metropolis};

/// A method by its usual name: the one list of criteria, for models of one's own and for tables alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Maximum likelihood with importance sampling.
    MlIs,
    /// Binary NCE; the model needs a free constant, its estimate of `-log Z` (see [`WithLogZ`](crate::model::WithLogZ)).
    Nce,
    /// Ranking NCE: the CIS kernel, from data.
    Rnce,
    /// SMC-RNCE: the conditional SMC kernel, from data, with the filtering gradient; for sequential models.
    SmcRnce,
    /// SMC-RNCE with the trajectory gradient.
    SmcRnceTrajectory,
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
    /// Sliced score matching by differences of `log p~`: no proposal, and no `Z`.
    Ssm,
    /// Denoising score matching by differences of `log p~`: no proposal, and no `Z`; it fits rows with a little noise.
    Dsm,
    /// The self-normalised likelihood; the model needs a free constant, as for binary NCE.
    Snl,
    /// The proposal alone, by maximum likelihood: for models that have one of their own, such as the autoregressive EBM.
    QOnly,
}

named!(Method, "criterion", {
    MlIs: "ml-is",
    Nce: "nce",
    Rnce: "rnce",
    SmcRnce: "smc-rnce",
    SmcRnceTrajectory: "smc-rnce-trajectory",
    PRnce: "p-rnce",
    Cnce: "cnce",
    MhCnce: "mh-cnce",
    PCnce: "p-cnce",
    PMhCnce: "p-mh-cnce",
    Cd: "cd",
    Pcd: "pcd",
    HmcCd: "hmc-cd",
    TimeReversal: "time-reversal",
    Ssm: "ssm",
    Dsm: "dsm",
    Snl: "snl",
    QOnly: "q-only",
});

impl Method {
    /// Those that train the autoregressive EBM.
    pub const AUTOREGRESSIVE: [Method; 5] =
        [Method::MlIs, Method::Rnce, Method::SmcRnce, Method::SmcRnceTrajectory, Method::QOnly];

    /// Those that train any model; the others need one that grows stage by stage.
    pub fn for_any_model() -> impl Iterator<Item = Method> {
        let sequential = [Method::SmcRnce, Method::SmcRnceTrajectory, Method::QOnly];
        Self::ALL.iter().copied().filter(move |method| !sequential.contains(method))
    }

    /// The weights that a step of the method gives its candidates; none where they are those of factors, or there are no candidates.
    pub fn weigh(self, log_w_tilde: &LogWeights) -> Option<Weights> {
        Some(match self {
            Method::MlIs => log_w_tilde.normalise_negatives(),
            Method::Nce => log_w_tilde.classify(),
            Method::Snl => log_w_tilde.over_negatives(),
            Method::Rnce | Method::PRnce => log_w_tilde.normalise(),
            Method::Cnce | Method::PCnce | Method::TimeReversal => log_w_tilde.accept(barker),
            Method::MhCnce | Method::PMhCnce | Method::Cd | Method::Pcd | Method::HmcCd => {
                log_w_tilde.accept(metropolis)
            }
            Method::SmcRnce
            | Method::SmcRnceTrajectory
            | Method::Ssm
            | Method::Dsm
            | Method::QOnly => return None,
        })
    }

    /// How the gradient weighs the factors of a sequential model.
    pub fn smc_gradient(self) -> SmcGradient {
        match self {
            Method::SmcRnceTrajectory => SmcGradient::Trajectory,
            _ => SmcGradient::Filtering,
        }
    }
}

/// A method with its settings; [`init`](Self::init) takes what is to be taken from the data and makes the criterion.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodConfig {
    /// Which method.
    pub method: Method,
    /// `J`: candidates beside the data point, or pairs, or directions of score matching.
    pub num_negatives: usize,
    /// `k`: steps of the kernel (of the path, for `time-reversal`).
    pub num_steps: usize,
    /// `epsilon` of random walk, Langevin and Hamiltonian steps, of the differences of sliced score matching, and the noise of denoising
    /// score matching. By default the mean standard deviation of the data for the random walk, half of it for Langevin steps, a
    /// fifth for Hamiltonian steps and for the noise, and a tenth for the differences.
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
        let cis = || ConditionalImportance::new(fitted_proposal(data)?, negatives);
        Ok(match self.method {
            Method::MlIs => {
                Box::new(FromData(ImportanceSampling::new(fitted_proposal(data)?, negatives)?))
            }
            Method::Nce => Box::new(FromData(BinaryNce::new(fitted_proposal(data)?, negatives)?)),
            Method::Rnce => from_data(cis()?, steps)?,
            Method::PRnce => persistent(cis()?, steps, 1)?,
            Method::Cnce => from_data(Barker::new(walk()?, negatives)?, steps)?,
            Method::MhCnce => from_data(Metropolis::new(walk()?, negatives)?, steps)?,
            Method::PCnce => persistent(Barker::new(walk()?, 1)?, steps, negatives)?,
            Method::PMhCnce => persistent(Metropolis::new(walk()?, 1)?, steps, negatives)?,
            Method::Cd => from_data(Metropolis::new(langevin()?, negatives)?, steps)?,
            Method::Pcd => persistent(Metropolis::new(langevin()?, 1)?, steps, negatives)?,
            Method::HmcCd => {
                let hamiltonian = Hamiltonian::new(step_size(0.2)?, 5)?;
                from_data(Metropolis::new(hamiltonian, negatives)?, steps)?
            }
            Method::TimeReversal => {
                Box::new(FromData(Barker::new(Path::new(walk()?, steps)?, negatives)?))
            }
            Method::Ssm => {
                Box::new(FromData(SlicedScoreMatching::new(step_size(0.1)?, negatives)?))
            }
            Method::Dsm => {
                Box::new(FromData(DenoisingScoreMatching::new(step_size(0.2)?, negatives)?))
            }
            Method::Snl => {
                Box::new(FromData(SelfNormalised::new(fitted_proposal(data)?, negatives)?))
            }
            Method::SmcRnce | Method::SmcRnceTrajectory | Method::QOnly => {
                let expected = "a method for any model, or the model one that grows stage by stage, \
                                with a proposal of its own";
                return Err(Error::setting("criterion", self.method, expected));
            }
        })
    }

    /// The criterion for a model that grows stage by stage, whose particles `proposal` draws; what is not sequential is
    /// as in [`init`](Self::init).
    ///
    /// # Shapes
    /// - `data`: `[n, d]`
    pub fn init_sequential<M: SequentialModel + 'static>(
        &self,
        proposal: impl SequentialProposal + 'static,
        data: &Tensor<2>,
    ) -> Result<Box<dyn Criterion<M>>> {
        match self.method {
            Method::SmcRnce | Method::SmcRnceTrajectory => {
                let kernel = ConditionalSmc::new(proposal, self.num_negatives)?;
                from_data(kernel.with_gradient(self.method.smc_gradient()), self.num_steps)
            }
            _ => self.init(data),
        }
    }
}

fn from_data<M: ?Sized + 'static>(
    kernel: impl Kernel<M> + 'static,
    num_steps: usize,
) -> Result<Box<dyn Criterion<M>>> {
    Ok(Box::new(FromData(Repeat::new(kernel, num_steps)?)))
}

fn persistent<M: UnnormalisedModel + ?Sized + 'static>(
    kernel: impl Kernel<M> + 'static,
    num_steps: usize,
    chains_per_slot: usize,
) -> Result<Box<dyn Criterion<M>>> {
    Ok(Box::new(Persistent::new(Repeat::new(kernel, num_steps)?, chains_per_slot)?))
}

/// A Gaussian like the data: with all covariances where there are rows enough for them, else with none.
fn fitted_proposal(data: &Tensor<2>) -> Result<Box<dyn Proposal>> {
    Ok(match FullGaussian::fitted(data) {
        Ok(full) => Box::new(full),
        Err(_) => Box::new(DiagonalGaussian::fitted(data)?),
    })
}
