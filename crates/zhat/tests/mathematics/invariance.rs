//! Every kernel leaves every target invariant, and the check would notice if one did not.

use zhat::Result;
use zhat::ar::ArEbm;
use zhat::burn::tensor::{Device, Tensor};
use zhat::kernel::{
    Barker, Candidates, ConditionalImportance, ConditionalSmc, Contrast, Kernel, Metropolis,
    Repeat, State,
};
use zhat::model::{FullGaussian, GaussianChain, GaussianChainProposal, UnnormalisedModel};
use zhat::proposal::{ConditionalProposal, Langevin, Proposal, RandomWalk, WholeRows};
use zhat::rng::Stream;
use zhat::smc::{ResampleWhen, Resampling, SmcConfig};
use zhat::testing::invariance;
use zhat::weights::barker;

use crate::autoregressive::Exact;
use crate::support::{Target, kernels, model_itself_kernel, place, rng};

/// Exact draws in, one transition, and back out: below 4.5 for an invariant kernel, except once in some 16,000 checks of
/// nine statistics (two-sided normal tail 6.8e-6 each). Seeds are fixed.
fn z_of<M, K: Kernel<M> + ?Sized>(kernel: &K, model: &M, x0: Tensor<2>, seed: u64) -> f64 {
    invariance(kernel, model, x0, &mut rng(seed)).unwrap().z_score
}

#[test]
fn every_kernel_leaves_every_target_invariant() {
    for (target_name, target) in Target::all() {
        let x0 = target.sample(20_000, &mut rng(1));
        for (kernel_name, kernel) in kernels() {
            let z = z_of(kernel.as_ref(), &target, x0.clone(), 2);
            assert!(z < 4.5, "{kernel_name} on {target_name}: z = {z:.2}");
        }
    }
}

#[test]
fn the_model_as_its_own_proposal_leaves_it_invariant() {
    let model = FullGaussian::new(&[1.0, -0.5], &[1.5, 0.7, 0.7, 0.6], &Device::flex()).unwrap();
    let x0 = model.sample(20_000, &place(), &mut rng(1));
    let z = z_of(&model_itself_kernel(), &model, x0, 2);
    assert!(z < 4.5, "z = {z:.2}");
}

#[test]
fn conditional_smc_leaves_a_chain_invariant_with_every_resampling_scheme() {
    let device = Device::flex();
    let model = GaussianChain::new(0.9, 0.8, 0.8, 3, &device);
    let exact = model.exact(&device).unwrap();
    let x0 = exact.sample(10_000, &place(), &mut rng(3));
    let proposal = GaussianChainProposal { coupling: 0.5, std_dev: 1.2 };
    let schemes = [Resampling::Multinomial, Resampling::Stratified, Resampling::Systematic];
    let times = [ResampleWhen::EveryStage, ResampleWhen::EffectiveSampleSizeBelow(0.7)];
    for resampling in schemes {
        for resample_when in times {
            let config = SmcConfig { num_particles: 4, resampling, resample_when };
            let kernel =
                ConditionalSmc::new(proposal.clone(), 3).unwrap().with_config(config).unwrap();
            let z = z_of(&kernel, &model, x0.clone(), 4);
            assert!(z < 4.5, "{resampling:?}, {resample_when:?}: z = {z:.2}");
            let z = z_of(&Repeat::new(kernel, 3).unwrap(), &model, x0.clone(), 5);
            assert!(z < 4.5, "{resampling:?}, {resample_when:?}, 3 steps: z = {z:.2}");
        }
    }
}

#[test]
fn every_kind_of_kernel_leaves_the_autoregressive_ebm_invariant() {
    let exact = Exact::new();
    let x0 = exact.sample(10_000, &mut rng(3));
    let rows = || WholeRows::new(exact.model.clone(), 2);
    let mut kernels: Vec<(String, Box<dyn Kernel<ArEbm>>)> = vec![
        ("cis".into(), Box::new(ConditionalImportance::new(rows(), 4).unwrap())),
        ("barker".into(), Box::new(Barker::new(RandomWalk::new(1.5).unwrap(), 2).unwrap())),
        ("mala".into(), Box::new(Metropolis::new(Langevin::new(0.8).unwrap(), 1).unwrap())),
        ("metropolis, independent".into(), Box::new(Metropolis::new(rows(), 1).unwrap())),
    ];
    for resampling in [Resampling::Multinomial, Resampling::Stratified, Resampling::Systematic] {
        for resample_when in [ResampleWhen::EveryStage, ResampleWhen::EffectiveSampleSizeBelow(0.7)]
        {
            let config = SmcConfig { num_particles: 4, resampling, resample_when };
            let kernel = ConditionalSmc::new(exact.model.clone(), 3).unwrap();
            let kernel = kernel.with_config(config).unwrap();
            kernels.push((format!("csmc, {resampling:?}, {resample_when:?}"), Box::new(kernel)));
        }
    }
    for (name, kernel) in kernels {
        let moved = kernel.propose(&exact.model, State::new(x0.clone()), &mut rng(4)).unwrap();
        assert!(moved.move_probability() > 0.2, "{name} hardly moves");
        let z = z_of(kernel.as_ref(), &exact.model, x0.clone(), 4);
        assert!(z < 4.5, "{name}: z = {z:.2}");
    }
    // It would be noticed if one were not.
    let z = z_of(&Forgetful(rows()), &exact.model, x0.clone(), 4);
    assert!(z > 8.0, "a forgotten density went unnoticed: z = {z:.2}");
    let z = z_of(&Stale(RandomWalk::new(1.5).unwrap()), &exact.model, x0, 4);
    assert!(z > 8.0, "stale proposals went unnoticed: z = {z:.2}");
}

/// The published program's slip: with several steps, proposals are drawn around the original point.
struct Stale(RandomWalk);

impl<M: UnnormalisedModel> Contrast<M> for Stale {
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates> {
        let first = self.0.propose(model, &state.x, 1, rng)?;
        let second = self.0.propose(model, &state.x, 1, rng)?;
        // From where the first step went, but with a proposal from around the start, accepted as if it were not.
        let x = Tensor::cat(vec![first.x, second.x], 1);
        let [rows, _, dimension] = x.dims();
        let log_p_tilde =
            model.log_p_tilde(x.clone().reshape([rows * 2, dimension])).reshape([rows, 2]);
        Candidates::new(x, log_p_tilde, vec![0.0; rows * 2], |log_w| log_w.accept(barker))
    }
}

impl<M: UnnormalisedModel> Kernel<M> for Stale {}

/// A kernel with the wrong acceptance probability: it forgets the proposal's density.
struct Forgetful<Q>(Q);

impl<M: UnnormalisedModel, Q: Proposal> Contrast<M> for Forgetful<Q> {
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates> {
        let kernel = zhat::kernel::ConditionalImportance::new(SharedProposal(&self.0), 3)?;
        let right = kernel.propose(model, state, rng)?;
        let count = right.log_proposal.len();
        Candidates::new(right.x, right.log_p_tilde, vec![0.0; count], |w| w.normalise())
    }
}

impl<M: UnnormalisedModel, Q: Proposal> Kernel<M> for Forgetful<Q> {}

struct SharedProposal<'a, Q>(&'a Q);

impl<Q: Proposal> Proposal for SharedProposal<'_, Q> {
    fn sample(&self, number: usize, place: &zhat::host::Place, rng: &mut Stream) -> Tensor<2> {
        self.0.sample(number, place, rng)
    }

    fn log_prob(&self, x: Tensor<2>) -> Tensor<1> {
        self.0.log_prob(x)
    }
}

#[test]
fn a_broken_kernel_is_caught_on_every_target() {
    let wide =
        zhat::model::DiagonalGaussian::new(&[0.5, 0.0], &[2.0, 1.8], &Device::flex()).unwrap();
    for (name, target) in Target::all() {
        let x0 = target.sample(20_000, &mut rng(1));
        let z = z_of(&Stale(RandomWalk::new(1.5).unwrap()), &target, x0.clone(), 2);
        assert!(z > 8.0, "stale proposals on {name} went unnoticed: z = {z:.2}");
        let z = z_of(&Forgetful(wide.clone()), &target, x0, 2);
        assert!(z > 8.0, "a forgotten density on {name} went unnoticed: z = {z:.2}");
    }
}
