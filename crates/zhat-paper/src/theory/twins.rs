//! For every check a broken twin of what it checks, which it must notice: a check that nothing can fail says nothing.

use burn::tensor::Tensor;
use rayon::prelude::*;
use zhat::Result;
use zhat::ar::Normalisation;
use zhat::criterion::{
    BinaryNce, DenoisingScoreMatching, FromData, ImportanceSampling, Method, Persistent,
    SelfNormalised, SlicedScoreMatching,
};
use zhat::evaluate::{bridge_sampling, smc};
use zhat::host::Place;
use zhat::kernel::{
    Barker, Candidates, ConditionalImportance, ConditionalSmc, Contrast, Kernel, Metropolis,
    SmcGradient, State, evaluate,
};
use zhat::model::{DiagonalGaussian, GaussianChain, GaussianChainProposal, UnnormalisedModel};
use zhat::proposal::{
    ConditionalProposal, Hamiltonian, Langevin, ModelItself, Path, Proposal, Proposed, RandomWalk,
    SequentialProposal,
};
use zhat::rng::{Stream, Streams};
use zhat::smc::SmcConfig;
use zhat::weights::Weights;

use super::equivalences::*;
use super::estimators::*;
use super::invariance::*;
use super::setting::{
    AnyContrast, THETA, chain, chain_proposal, data, log_z, model, place, proposal, weights_by_hand,
};
use super::{Finding, all, chance_of_false_alarm, run};

/// A check given something broken.
type Twin = (&'static str, &'static str, fn(&mut Stream) -> Result<Finding>);

fn twins() -> Vec<Twin> {
    vec![
        ("rnce-is-ml-cis", LEFT_OUT, |rng| rnce_is_ml_cis(&mut FromData(left_out()?), rng)),
        ("rnce-is-ml-cis", NO_Q, |rng| rnce_is_ml_cis(&mut FromData(no_q()?), rng)),
        ("rnce-is-cd1", LEFT_OUT, |rng| is_cd1(&mut FromData(left_out()?), weights_by_hand, rng)),
        ("rnce-is-cd1", NO_Q, |rng| is_cd1(&mut FromData(no_q()?), weights_by_hand, rng)),
        ("rnce-is-cd1-sampled", "candidates drawn without log q", |rng| {
            drawn_is_summed(&no_q()?, weights_by_hand, rng)
        }),
        ("rnce-is-cd1-sampled", FROZEN, |rng| drawn_is_summed(&Frozen, weights_by_hand, rng)),
        ("cnce-is-cd1", NO_RATIO, |rng| {
            let independent = Barker::new(NoRatio(proposal()), 5)?;
            cnce_is_cd1(&mut FromData(Barker::new(walk()?, 5)?), &mut FromData(independent), rng)
        }),
        ("cnce-is-cd1", METROPOLIS, |rng| {
            let independent = Metropolis::new(proposal(), 5)?;
            cnce_is_cd1(&mut FromData(Barker::new(walk()?, 5)?), &mut FromData(independent), rng)
        }),
        ("cnce-is-cd1-sampled", METROPOLIS, |rng| {
            drawn_is_summed(&Metropolis::new(walk()?, 5)?, symmetric_pairs, rng)
        }),
        ("cnce-is-cd1-sampled", FROZEN, |rng| drawn_is_summed(&Frozen, symmetric_pairs, rng)),
        ("ml-is-value", COUNTED, |rng| ml_is_value(&mut FromData(cis()?), rng)),
        ("ml-is-value", NO_Q, |rng| {
            ml_is_value(&mut FromData(ImportanceSampling::new(NoDensity(proposal()), 5)?), rng)
        }),
        ("nce-value", "weights that sum to one", |rng| nce_value(&mut FromData(cis()?), rng)),
        ("nce-value", NO_Q, |rng| {
            nce_value(&mut FromData(BinaryNce::new(NoDensity(proposal()), 5)?), rng)
        }),
        ("snl-value", "weights that sum to one", |rng| {
            snl_value(&mut FromData(ImportanceSampling::new(proposal(), 5)?), rng)
        }),
        ("snl-value", NO_Q, |rng| {
            snl_value(&mut FromData(SelfNormalised::new(NoDensity(proposal()), 5)?), rng)
        }),
        ("ssm-is-hyvarinens", "the objective of denoising", |rng| {
            score_matching(&DenoisingScoreMatching::new(0.5, 5)?, hyvarinen, rng)
        }),
        ("ssm-is-hyvarinens", "a conditional criterion with the same points", |rng| {
            score_matching(&Barker::new(walk()?, 5)?, hyvarinen, rng)
        }),
        ("dsm-is-vincents", "the objective of Hyvarinen", |rng| {
            score_matching(&SlicedScoreMatching::new(0.3, 5)?, vincent, rng)
        }),
        ("dsm-is-vincents", "another noise", |rng| {
            score_matching(&DenoisingScoreMatching::new(1.2 * NOISE, 5)?, vincent, rng)
        }),
        ("smc-rnce-value", "whole trajectories weighed by the last weights", |rng| {
            let kernel = |recorder| -> Result<Box<dyn Contrast<GaussianChain>>> {
                Ok(Box::new(every_stage(recorder)?.with_gradient(SmcGradient::Trajectory)))
            };
            smc_rnce_value(kernel, rng)
        }),
        ("smc-rnce-value", OTHER_DENSITY, |rng| {
            let kernel = |mut recorder: Recorder| -> Result<Box<dyn Contrast<GaussianChain>>> {
                recorder.proposal.std_dev *= 1.3;
                Ok(Box::new(every_stage(recorder)?))
            };
            smc_rnce_value(kernel, rng)
        }),
        ("ar-step", LEFT_OUT, |rng| ar_step(|_| ar_settings(Method::MlIs), rng)),
        ("ar-step", "no energy", |rng| ar_step(|_| ar_settings(Method::QOnly), rng)),
        ("ar-step", "whole trajectories weighed by the last weights", |rng| {
            let settings = |method| match method {
                Method::SmcRnce => ar_settings(Method::SmcRnceTrajectory),
                method => ar_settings(method),
            };
            ar_step(settings, rng)
        }),
        ("local-rnce-is-cd1", LEFT_OUT, |rng| {
            local_rnce_is_cd1(&ar_settings(Method::MlIs), Normalisation::Local, |p, q| p - q, rng)
        }),
        ("local-rnce-is-cd1", NO_Q, |rng| {
            local_rnce_is_cd1(&ar_settings(Method::Rnce), Normalisation::Local, |p, _| p, rng)
        }),
        ("local-rnce-is-cd1", "one normaliser for all features", |rng| {
            local_rnce_is_cd1(&ar_settings(Method::Rnce), Normalisation::Global, |p, q| p - q, rng)
        }),
        ("reversible-q-halves-cd1", NO_RATIO, |rng| {
            is_cd1(&mut FromData(Barker::new(NoRatio(Reversible), 1)?), |_| vec![0.5, 0.5], rng)
        }),
        ("cis-gradient-unbiased", LEFT_OUT, |rng| cis_gradient_unbiased(&left_out()?, rng)),
        ("cis-gradient-unbiased", NO_Q, |rng| cis_gradient_unbiased(&no_q()?, rng)),
        ("is-gradient-biased", COUNTED, |rng| is_gradient_biased(&cis()?, rng)),
        ("is-gradient-biased", NO_Q, |rng| {
            is_gradient_biased(&ImportanceSampling::new(NoDensity(proposal()), NEGATIVES)?, rng)
        }),
        ("cis-lemma", NO_Q, |rng| cis_lemma(&no_q()?, rng)),
        ("cis-lemma", "negatives from another q", |rng| {
            cis_lemma(&ConditionalImportance::new(Shifted(proposal()), NEGATIVES)?, rng)
        }),
        ("rnce-factor", LEFT_OUT, |rng| {
            factor_of_likelihood(&ImportanceSampling::new(ModelItself, NEGATIVES)?, 0.8, rng)
        }),
        ("rnce-factor", "another q", |rng| factor_of_likelihood(&cis()?, 0.8, rng)),
        ("cnce-factor", METROPOLIS, |rng| {
            factor_of_likelihood(&Metropolis::new(ModelItself, NEGATIVES)?, 0.5, rng)
        }),
        ("cnce-factor", FROZEN, |rng| factor_of_likelihood(&Frozen, 0.5, rng)),
        ("adaptive-unbiased", LEFT_OUT, |rng| {
            adaptive_unbiased(|q| Ok(Box::new(ImportanceSampling::new(q, NEGATIVES)?)), rng)
        }),
        ("adaptive-unbiased", "no log q in the weights", |rng| {
            let twin = |q| -> Result<Box<AnyContrast>> {
                Ok(Box::new(ConditionalImportance::new(NoDensity(q), NEGATIVES)?))
            };
            adaptive_unbiased(twin, rng)
        }),
        ("persistent-gradient-unbiased", FROM_DATA, |rng| {
            persistent_gradient_unbiased(|| Ok(Box::new(FromData(cis()?))), rng)
        }),
        ("persistent-gradient-unbiased", NO_Q, |rng| {
            persistent_gradient_unbiased(|| Ok(Box::new(Persistent::new(no_q()?, 1)?)), rng)
        }),
        ("z-is-unbiased", NO_Q, |rng| {
            unbiased(|rng| z_is(&NoDensity(proposal()), rng), log_z(&THETA), 1.0, rng)
        }),
        ("z-smc-unbiased", OTHER_DENSITY, |rng| {
            let (model, _) = chain(1, rng)?;
            let config = SmcConfig::new(NEGATIVES + 1)?;
            let run = |rng: &mut Stream| smc(&config, &model, &OtherDensity, RUN, &place(), rng);
            unbiased(run, model.log_z(), 1.0, rng)
        }),
        ("z-ais-unbiased", "a kernel that drifts", |rng| {
            let kernel = Metropolis::new(Drifting, 1)?;
            unbiased(|rng| z_ais(&kernel, rng), log_z(&THETA), 1.0, rng)
        }),
        ("one-over-z-cis-unbiased", ELSEWHERE, |rng| {
            unbiased(|rng| z_cis(proposal(), data(RUN, rng), rng), log_z(&THETA), -1.0, rng)
        }),
        ("one-over-z-cis-unbiased", NO_Q, |rng| {
            let exact = |rng: &mut Stream| model().sample(RUN, &place(), rng);
            let q = || NoDensity(proposal());
            unbiased(|rng| z_cis(q(), exact(rng), rng), log_z(&THETA), -1.0, rng)
        }),
        ("one-over-z-csmc-unbiased", ELSEWHERE, |rng| {
            one_over_z_csmc(|rng| Ok(place().tensor(rng.normals(4 * RUN), [RUN, 4])), rng)
        }),
        ("bridge-sampling", "the two kinds of draws exchanged", |rng| {
            bridge_finds_log_z(|of_q, of_p| bridge_sampling(of_p, of_q), rng)
        }),
        ("bridge-sampling", "the mean of the weights over both kinds", |rng| {
            bridge_finds_log_z(|q, p| zhat::weights::log_mean_exp(&[q, p].concat()), rng)
        }),
        ("mh-accepts-more", "a Barker kernel that never moves", |rng| {
            mh_accepts_more(&Metropolis::new(walk()?, 1)?, &Frozen, rng)
        }),
        ("mh-accepts-more", "the two exchanged", |rng| {
            mh_accepts_more(&Barker::new(walk()?, 1)?, &Metropolis::new(walk()?, 1)?, rng)
        }),
        ("cis-invariant", FROZEN, |rng| invariant(|| Ok(Box::new(Frozen)), rng)),
        ("cis-invariant", NO_Q, |rng| invariant(|| Ok(Box::new(no_q()?)), rng)),
        ("cnce-invariant", FROZEN, |rng| invariant(|| Ok(Box::new(Frozen)), rng)),
        ("cnce-invariant", DRIFTS, |rng| {
            invariant(|| Ok(Box::new(Barker::new(Drifting, 2)?)), rng)
        }),
        ("mh-invariant", FROZEN, |rng| invariant(|| Ok(Box::new(Frozen)), rng)),
        ("mh-invariant", DRIFTS, |rng| {
            invariant(|| Ok(Box::new(Metropolis::new(Drifting, 2)?)), rng)
        }),
        ("mala-invariant", FROZEN, |rng| invariant(|| Ok(Box::new(Frozen)), rng)),
        ("mala-invariant", NO_RATIO, |rng| invariant(|| without_ratio(Langevin::new(0.6)?), rng)),
        ("hmc-invariant", FROZEN, |rng| invariant(|| Ok(Box::new(Frozen)), rng)),
        ("hmc-invariant", "no kinetic energy", |rng| {
            invariant(|| without_ratio(Hamiltonian::new(0.3, 5)?), rng)
        }),
        ("time-reversal-invariant", FROZEN, |rng| invariant(|| Ok(Box::new(Frozen)), rng)),
        ("time-reversal-invariant", DRIFTS, |rng| {
            invariant(|| Ok(Box::new(Barker::new(Path::new(Drifting, 3)?, 2)?)), rng)
        }),
        ("csmc-invariant", FROZEN, |rng| csmc_invariant(|| Ok(Box::new(Frozen)), rng)),
        ("csmc-invariant", OTHER_DENSITY, |rng| {
            csmc_invariant(|| Ok(Box::new(ConditionalSmc::new(OtherDensity, 4)?)), rng)
        }),
        ("persistent-invariant", FROZEN, |rng| {
            persistent_invariant(&mut Persistent::new(Frozen, 1)?, rng)
        }),
        ("persistent-invariant", FROM_DATA, |rng| {
            persistent_invariant(&mut FromData(Metropolis::new(walk()?, 2)?), rng)
        }),
        ("persistent-invariant", DRIFTS, |rng| {
            persistent_invariant(&mut Persistent::new(Metropolis::new(Drifting, 2)?, 1)?, rng)
        }),
    ]
}

const LEFT_OUT: &str = "the data point left out of the sum";
const COUNTED: &str = "the data point counted in the sum";
const NO_Q: &str = "no log q";
const NO_RATIO: &str = "no q(x|x') / q(x'|x)";
const OTHER_DENSITY: &str = "the density of another proposal";
const METROPOLIS: &str = "the acceptance probability of Metropolis";
const FROZEN: &str = "a chain that never moves";
const DRIFTS: &str = "a walk that drifts";
const FROM_DATA: &str = "chains that start from the data at every step";
const ELSEWHERE: &str = "x0 from elsewhere";

#[test]
fn every_check_notices_its_broken_twins() {
    let twins = twins();
    for claim in all() {
        let names: Vec<&str> =
            twins.iter().filter(|(id, ..)| *id == claim.id).map(|t| t.1).collect();
        assert_eq!(names.join("; "), claim.twin, "the twins of {}", claim.id);
    }
    let findings: Vec<(&Twin, Finding)> = twins
        .par_iter()
        .map(|twin| (twin, twin.2(&mut Streams::new(0).stream(twin.0, 0, 0)).unwrap()))
        .collect();
    for ((id, name, _), finding) in &findings {
        let caught = if finding.holds() { "MISSED" } else { "caught" };
        println!("{id} -> {name} -> {caught} ({:.3e}, {:?})", finding.z_or_diff, finding.measure);
    }
    assert!(findings.iter().all(|(_, finding)| !finding.holds()), "a broken twin went unnoticed");
}

#[test]
fn a_right_program_fails_at_most_once_in_ten_thousand_runs() {
    let checks = run(2, |_| ()).unwrap();
    let chance = chance_of_false_alarm(&checks);
    assert!((1e-6..=1e-4).contains(&chance), "{chance:e}");
    assert!(checks.iter().all(|check| check.pass));
}

fn walk() -> Result<RandomWalk> {
    RandomWalk::new(0.9)
}

fn cis() -> Result<ConditionalImportance<DiagonalGaussian>> {
    ConditionalImportance::new(proposal(), NEGATIVES)
}

fn left_out() -> Result<ImportanceSampling<DiagonalGaussian>> {
    ImportanceSampling::new(proposal(), NEGATIVES)
}

fn no_q() -> Result<ConditionalImportance<NoDensity>> {
    ConditionalImportance::new(NoDensity(proposal()), NEGATIVES)
}

fn without_ratio<Q>(proposal: Q) -> Result<Transition>
where
    Q: ConditionalProposal<dyn UnnormalisedModel> + 'static,
{
    Ok(Box::new(Metropolis::new(NoRatio(proposal), 1)?))
}

/// A kernel that stays where it is, and says so in its weights.
struct Frozen;

impl<M: UnnormalisedModel + ?Sized> Contrast<M> for Frozen {
    fn propose(&self, model: &M, state: State, _rng: &mut Stream) -> Result<Candidates> {
        let rows = state.x.dims()[0];
        let here = state.x.clone().unsqueeze_dim(1);
        let (x, log_p_tilde) = evaluate(model, state, here);
        let weights = Weights::new([1.0, 0.0].repeat(rows), 2)?;
        Candidates::new(x, log_p_tilde, vec![0.0; 2 * rows], |_| weights)
    }
}

impl<M: UnnormalisedModel + ?Sized> Kernel<M> for Frozen {}

/// A proposal that forgets its density.
struct NoDensity<Q = DiagonalGaussian>(Q);

impl<Q: Proposal> Proposal for NoDensity<Q> {
    fn sample(&self, number: usize, place: &Place, rng: &mut Stream) -> Tensor<2> {
        self.0.sample(number, place, rng)
    }

    fn log_prob(&self, x: Tensor<2>) -> Tensor<1> {
        self.0.log_prob(x) * 0.0
    }
}

/// A proposal that draws from elsewhere than its density says.
struct Shifted(DiagonalGaussian);

impl Proposal for Shifted {
    fn sample(&self, number: usize, place: &Place, rng: &mut Stream) -> Tensor<2> {
        self.0.sample(number, place, rng) + 0.3
    }

    fn log_prob(&self, x: Tensor<2>) -> Tensor<1> {
        self.0.log_prob(x)
    }
}

/// A sequential proposal that draws from one density and evaluates another.
struct OtherDensity;

impl SequentialProposal for OtherDensity {
    fn sample(&self, stage: usize, prefix: Tensor<2>, rng: &mut Stream) -> Tensor<1> {
        chain_proposal().sample(stage, prefix, rng)
    }

    fn log_prob(&self, stage: usize, x: Tensor<2>) -> Tensor<1> {
        GaussianChainProposal { std_dev: 1.8, ..chain_proposal() }.log_prob(stage, x)
    }
}

/// A conditional proposal that forgets how much likelier it is than the way back.
struct NoRatio<Q>(Q);

impl<M: ?Sized, Q: ConditionalProposal<M>> ConditionalProposal<M> for NoRatio<Q> {
    fn propose(&self, model: &M, x0: &Tensor<2>, j: usize, rng: &mut Stream) -> Result<Proposed> {
        Ok(Proposed { log_ratio: None, ..self.0.propose(model, x0, j, rng)? })
    }
}

/// A random walk that drifts to the right and takes itself for symmetric.
#[derive(Clone)]
struct Drifting;

impl<M: ?Sized> ConditionalProposal<M> for Drifting {
    fn propose(&self, model: &M, x0: &Tensor<2>, j: usize, rng: &mut Stream) -> Result<Proposed> {
        let proposed = RandomWalk::new(0.8)?.propose(model, x0, j, rng)?;
        Ok(Proposed { x: proposed.x + 0.2, ..proposed })
    }
}
