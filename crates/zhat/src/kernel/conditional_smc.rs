//! The conditional sequential Monte Carlo (CSMC) kernel, Algorithm 3: one step of it is SMC-RNCE.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{Candidates, Contrast, Kernel, State, Terms};
use crate::error::{Result, at_least};
use crate::host::Place;
use crate::model::SequentialModel;
use crate::proposal::SequentialProposal;
use crate::rng::Stream;
use crate::smc::{Smc, SmcConfig};

/// How the gradient of `log Z_CSMC` weighs the factors of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SmcGradient {
    /// The derivative of `log Z_CSMC` with the ancestors held fixed: a stage's factors are weighed by that stage's
    /// weights (with adaptive resampling: by the weights just before the next resampling).
    #[default]
    Filtering,
    /// CD-1 with the CSMC kernel: whole trajectories are weighed by the final weights.
    Trajectory,
}

/// Particles that grow one column at a time, of which the first is always the state the chain is in.
#[derive(Debug, Clone)]
pub struct ConditionalSmc<Q> {
    proposal: Q,
    config: SmcConfig,
    gradient: SmcGradient,
}

impl<Q> ConditionalSmc<Q> {
    /// With `J` negatives beside the retained particle, and the paper's adaptive resampling.
    pub fn new(proposal: Q, num_negatives: usize) -> Result<Self> {
        let config = SmcConfig::new(at_least(1, "num_negatives", num_negatives)? + 1)?;
        Ok(Self { proposal, config, gradient: SmcGradient::default() })
    }

    /// With another resampling scheme or threshold; `num_particles` counts the retained one.
    pub fn with_config(mut self, config: SmcConfig) -> Result<Self> {
        config.validate()?;
        self.config = config;
        Ok(self)
    }

    /// With another form of the gradient.
    pub fn with_gradient(mut self, gradient: SmcGradient) -> Self {
        self.gradient = gradient;
        self
    }
}

impl<M: SequentialModel + ?Sized, Q: SequentialProposal> Contrast<M> for ConditionalSmc<Q> {
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates> {
        let place = Place::of(&state.x);
        let smc = Smc::conditional(&self.config, model, &self.proposal, state.x, rng)?;
        let (log_p_tilde, weights) = smc.terms(self.gradient, &place);
        let log_proposal = smc.log_proposal();
        let mut candidates =
            Candidates::new(smc.x, smc.log_p_tilde, log_proposal, |log_w| log_w.normalise())?;
        candidates.log_z_hat = Some(smc.log_z_hat);
        candidates.terms = Some(Terms { start: candidates.start(), log_p_tilde, weights });
        Ok(candidates)
    }

    /// `-log p~(x_0) + log Z_CSMC`, in the filtering form; the trajectory form is no derivative of a value.
    fn value(&self, candidates: &Candidates) -> Option<Tensor<1>> {
        let log_z_hat = candidates.log_z_hat.clone()?;
        (self.gradient == SmcGradient::Filtering)
            .then(|| log_z_hat.mean() - candidates.start().mean())
    }
}

impl<M: ?Sized, Q> Kernel<M> for ConditionalSmc<Q> where Self: Contrast<M> {}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::error::Error;
    use crate::host::to_host;
    use crate::model::{GaussianChain, GaussianChainProposal, UnnormalisedModel};
    use crate::proposal::Proposal;
    use crate::rng::Streams;
    use crate::smc::{ResampleWhen, Resampling};
    use crate::testing::{gradient, invariance, z_limit};

    /// The descendants' weights at every stage, against the gathered `log p~` of whole trajectories.
    #[test]
    fn the_terms_of_the_trajectory_form_add_up_to_the_weighted_candidates() {
        let device = Device::flex();
        let model = GaussianChain::new(0.9, 0.8, 0.8, 5, &device);
        let mut rng = Streams::new(1).stream("test", 0, 0);
        let x0 = model.exact(&device).unwrap().sample(20, &Place::new(&device), &mut rng);
        for resample_when in [ResampleWhen::EveryStage, ResampleWhen::EffectiveSampleSizeBelow(0.6)]
        {
            let resampling = Resampling::Stratified;
            let kernel =
                ConditionalSmc::new(GaussianChainProposal { coupling: 0.4, std_dev: 1.4 }, 5)
                    .unwrap()
                    .with_config(SmcConfig { num_particles: 6, resampling, resample_when })
                    .unwrap();
            let sum = |gradient| {
                let kernel = kernel.clone().with_gradient(gradient);
                let rng = &mut Streams::new(2).stream("test", 0, 0);
                let candidates = kernel.propose(&model, State::new(x0.clone()), rng).unwrap();
                let terms = candidates.terms.clone().unwrap();
                let place = Place::of(&candidates.x);
                let whole = candidates.log_p_tilde.clone() * candidates.weights.tensor(&place);
                [terms.log_p_tilde * terms.weights, whole].map(|sum| to_host(&sum.sum())[0])
            };
            let [trajectory, whole] = sum(SmcGradient::Trajectory);
            assert!((trajectory - whole).abs() < 1e-3, "{trajectory} {whole}");
            let [filtering, whole] = sum(SmcGradient::Filtering);
            assert!((filtering - whole).abs() > 0.1, "the forms differ: {filtering} {whole}");
        }
    }

    /// A strong pull puts most particles thousands of nats behind at every stage, where `exp` gives zero.
    #[test]
    fn weights_that_underflow_are_no_error() {
        let device = Device::flex();
        let model = GaussianChain::new(0.9, 2.0, 60.0, 3, &device);
        let proposal = GaussianChainProposal { coupling: 0.4, std_dev: 1.4 };
        let mut rng = Streams::new(1).stream("test", 0, 0);
        let x0 = model.exact(&device).unwrap().sample(20, &Place::new(&device), &mut rng);
        let never = ResampleWhen::EffectiveSampleSizeBelow(0.0);
        let config = SmcConfig::new(6).unwrap().with_resample_when(never);
        let kernel = ConditionalSmc::new(proposal.clone(), 5).unwrap().with_config(config).unwrap();
        let candidates = kernel.propose(&model, State::new(x0), &mut rng).unwrap();
        let lowest = candidates.log_w_tilde.rows().flatten().copied().fold(0.0, f64::min);
        assert!(lowest < -5000.0, "the case is not hard enough: {lowest}");
        // Never resampled: the weights are those of importance sampling with whole rows, up to one factor a row.
        let [n, c, d] = candidates.x.dims();
        let x = candidates.x.clone().reshape([n * c, d]);
        let log_q = to_host(&crate::proposal::WholeRows::new(proposal, 3).log_prob(x));
        let log_w_tilde = candidates.log_w_tilde.rows().flatten();
        let factors: Vec<f64> = to_host(&candidates.log_p_tilde)
            .iter()
            .zip(log_q)
            .zip(log_w_tilde)
            .map(|((p, q), w)| p - q - w)
            .collect();
        for row in factors.chunks_exact(c) {
            assert!(row.iter().all(|factor| (factor - row[0]).abs() < 0.05), "{row:?}");
        }
    }

    /// A chain of which every column is above zero.
    struct Truncated(GaussianChain);

    impl UnnormalisedModel for Truncated {
        fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
            let outside = x.clone().min_dim(1).squeeze_dim::<1>(1).lower_elem(0.0);
            self.0.log_p_tilde(x).mask_fill(outside, f64::NEG_INFINITY)
        }
    }

    impl SequentialModel for Truncated {
        fn num_stages(&self) -> usize {
            self.0.num_stages()
        }

        fn log_factor(&self, stage: usize, x: Tensor<2>) -> Tensor<1> {
            let outside = x.clone().narrow(1, stage, 1).squeeze_dim::<1>(1).lower_elem(0.0);
            self.0.log_factor(stage, x).mask_fill(outside, f64::NEG_INFINITY)
        }
    }

    #[test]
    fn a_hard_support_is_left_invariant_and_has_a_finite_gradient() {
        let device = Device::flex().autodiff();
        let model = Truncated(GaussianChain::new(0.9, 0.8, 0.8, 3, &device));
        let proposal = GaussianChainProposal { coupling: 0.5, std_dev: 1.2 };
        let rng = &mut Streams::new(1).stream("test", 0, 0);
        // Exact draws by rejection.
        let draws = model.0.exact(&device).unwrap().sample(20_000, &Place::new(&device), rng);
        let inside: Vec<f64> = to_host(&draws)
            .chunks_exact(3)
            .filter(|x| x.iter().all(|&x| x > 0.0))
            .flatten()
            .copied()
            .collect();
        let number = inside.len() / 3;
        assert!((2000..18_000).contains(&number), "{number} of 20,000 draws inside");
        let x0 = Place::new(&device).tensor(inside, [number, 3]);
        for resample_when in [ResampleWhen::EveryStage, ResampleWhen::EffectiveSampleSizeBelow(0.6)]
        {
            let config = SmcConfig::new(4).unwrap().with_resample_when(resample_when);
            let kernel =
                ConditionalSmc::new(proposal.clone(), 3).unwrap().with_config(config).unwrap();
            let propose = || {
                let rng = &mut Streams::new(2).stream("test", 0, 0);
                kernel.propose(&model, State::new(x0.clone()), rng).unwrap()
            };
            let candidates = propose();
            assert!(candidates.log_w_tilde.rows().flatten().any(|w| *w == f64::NEG_INFINITY));
            let surrogate = crate::criterion::surrogate(&candidates, None);
            let value = Contrast::<Truncated>::value(&kernel, &propose()).unwrap();
            let gradients = [surrogate, value].map(|loss| gradient(&loss, &model.0));
            assert!(gradients[0].iter().all(|g| g.abs() > 1e-4 && g.is_finite()), "{gradients:?}");
            for (surrogate, value) in gradients[0].iter().zip(&gradients[1]) {
                assert!((surrogate - value).abs() < 2e-4, "{gradients:?}");
            }
            // Nine statistics twice: once in a thousand seeds, and this one is fixed.
            let found = invariance(&kernel, &model, x0.clone(), rng).unwrap();
            assert!(found.z_score < z_limit(5e-4, 9), "{resample_when:?}: {found:?}");
        }
        let outside = Place::new(&device).tensor(vec![0.5, -0.1, 0.5], [1, 3]);
        let kernel = ConditionalSmc::new(proposal, 3).unwrap();
        let error = kernel.propose(&model, State::new(outside), rng).unwrap_err();
        assert!(matches!(error, Error::NotFinite { row: 0, candidate: 0, .. }), "{error}");
    }
}
