//! What a training step of the autoregressive EBM optimises, and how the work is cut.

use serde::{Deserialize, Serialize};

use super::config::Normalisation;
use super::defence::Defence;
use crate::criterion::Method;
use crate::error::{Error, Result, at_least};
use crate::smc::{ResampleWhen, Resampling, SmcConfig};

/// What the proposal is trained for.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProposalTarget {
    /// The data: maximum likelihood (the paper's choice for this model).
    #[default]
    Data,
    /// The model: `-sum_j w_j grad log q(x_j)` with the candidates' weights (eq. prop_distr:kl_crit:grad).
    Model,
    /// This share of the data's objective and the rest of the model's.
    Mix(f64),
}

/// Whether the proposal's objective reaches the blocks that make the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextFlow {
    /// It does, and so does the EBM's (the paper's choice).
    #[default]
    Shared,
    /// It trains the mixture's own layer alone; the EBM's objective trains what makes the context. In warm-up it is
    /// shared all the same, because nothing else trains the blocks there.
    Detached,
}

/// Settings of a training step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ArStepConfig {
    /// The criterion of the energy: one of [`Method::AUTOREGRESSIVE`].
    pub criterion: Method,
    /// First steps, in which the proposal alone is trained.
    pub warm_up: u64,
    /// Negatives of each observation, `J`.
    pub num_negatives: usize,
    /// Negatives of a factor, drawn by their weights, that stand for all of them in its gradient, beside the data point by its own weight; 0
    /// for all, and always all where there is one normaliser for a row. What is drawn costs noise, and what is not drawn costs no way
    /// back through the energy, which is two thirds of the work.
    #[serde(default)]
    pub num_drawn: usize,
    /// Share of the negatives that have a feature (now and then more than one) drawn uniformly from a wide range instead of
    /// from the proposal, so that the energy learns to leave no mass where the proposal hardly ever goes; zero in the paper.
    pub wide_share: f64,
    /// What the proposal is trained for.
    pub proposal_target: ProposalTarget,
    /// Whether the proposal's objective reaches the context.
    pub context_flow: ContextFlow,
    /// How ancestors are drawn in SMC-RNCE.
    pub resampling: Resampling,
    /// Whether candidates of an observation with the same prefix share their dropout mask, and so their context: all of
    /// them at the first stage, and those of one ancestor after resampling. It saves passes of the proposal network, for
    /// masks that vary less. Without dropout they always share it.
    pub share_masks: bool,
    /// Rows (observations times candidates) that go through the networks together, twice as many where every factor is normalised
    /// by itself; they should stay in the cache.
    pub tile_rows: usize,
    /// Pieces into which a batch is cut, whatever the number of threads, up to the next power of two; at most as many threads can
    /// work.
    pub lanes: usize,
}

impl ArStepConfig {
    /// The paper's settings, with `J = 20`.
    pub fn new(criterion: Method) -> Self {
        Self {
            criterion,
            warm_up: 0,
            num_negatives: 20,
            num_drawn: 0,
            wide_share: 0.0,
            proposal_target: ProposalTarget::Data,
            context_flow: ContextFlow::Shared,
            resampling: Resampling::Multinomial,
            share_masks: false,
            tile_rows: 168,
            lanes: 16,
        }
    }

    /// Checks the ranges of the settings.
    pub fn validate(&self) -> Result<()> {
        if !Method::AUTOREGRESSIVE.contains(&self.criterion) {
            let names = Method::AUTOREGRESSIVE.map(Method::name).join(", ");
            let expected = format!("one of {names} for the autoregressive EBM");
            return Err(Error::setting("criterion", self.criterion, expected));
        }
        at_least(1, "num_negatives", self.num_negatives)?;
        at_least(1, "tile_rows", self.tile_rows)?;
        at_least(1, "lanes", self.lanes)?;
        if !(0.0..1.0).contains(&self.wide_share) {
            return Err(Error::setting("wide_share", self.wide_share, "at least 0 and below 1"));
        }
        match self.proposal_target {
            ProposalTarget::Mix(share) if !(0.0..=1.0).contains(&share) => {
                Err(Error::setting("proposal_target.mix", share, "between 0 and 1"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the model itself is not trained yet; where the proposal is the model, there is nothing to wait for.
    pub fn warms_up(&self, step: u64) -> bool {
        step < self.warm_up && self.criterion != Method::QOnly
    }

    /// The settings of a step: those of the warm-up at first.
    pub fn at(&self, step: u64) -> Self {
        let criterion = if self.warms_up(step) { Method::QOnly } else { self.criterion };
        Self { criterion, ..self.clone() }
    }

    /// Candidates of each observation that go through the networks, the data point included.
    pub fn candidates(&self) -> usize {
        if self.criterion == Method::QOnly { 1 } else { self.num_negatives + 1 }
    }

    /// The defensive part of the negatives' proposal: the share of all their features together, spread over them.
    pub(super) fn defence(&self, features: usize) -> Defence {
        Defence::new(1.0 - (1.0 - self.wide_share).powf(1.0 / features as f64))
    }

    /// Observations in a tile. Candidates of one factor alone have their conditioning in common: of the same number of rows the
    /// conditioner would see few, too few for the products of its weights' gradient.
    pub fn tile_observations(&self, normalisation: Normalisation) -> usize {
        let rows = match normalisation {
            Normalisation::Global => self.tile_rows,
            Normalisation::Local => 2 * self.tile_rows,
        };
        (rows / self.candidates()).max(1)
    }

    /// The shares of the data's and of the model's objective in the proposal's.
    pub(crate) fn proposal_shares(&self) -> (f64, f64) {
        match self.proposal_target {
            _ if self.criterion == Method::QOnly => (1.0, 0.0),
            ProposalTarget::Data => (1.0, 0.0),
            ProposalTarget::Model => (0.0, 1.0),
            ProposalTarget::Mix(share) => (share, 1.0 - share),
        }
    }

    /// The particle system of one observation: its size, and when it resamples.
    pub(crate) fn smc(&self) -> SmcConfig {
        let (num_particles, share) = match self.criterion {
            Method::MlIs => (self.num_negatives, 0.0),
            Method::SmcRnce | Method::SmcRnceTrajectory => (self.num_negatives + 1, 0.5),
            _ => (self.candidates(), 0.0),
        };
        SmcConfig {
            num_particles,
            resampling: self.resampling,
            resample_when: ResampleWhen::EffectiveSampleSizeBelow(share),
        }
    }
}
