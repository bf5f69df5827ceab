//! Claims that two methods are the same: the library's gradients against formulas written out by hand, on the same draws.

use std::cell::RefCell;
use std::rc::Rc;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use zhat::Result;
use zhat::ar::{
    Activation, ArEbm, ArEbmConfig, ArStep, ArStepConfig, Conditioner, EnergyForm, HeadForm,
    NetworkSize, Normalisation,
};
use zhat::criterion::{
    BinaryNce, Criterion, DenoisingScoreMatching, FromData, ImportanceSampling, Method,
    SelfNormalised, SlicedScoreMatching, surrogate,
};
use zhat::host::{Place, to_host};
use zhat::kernel::{Barker, ConditionalImportance, ConditionalSmc, Contrast, State};
use zhat::model::{
    DiagonalGaussian, GaussianChain, GaussianChainProposal, SequentialModel, WithLogZ,
};
use zhat::proposal::{ConditionalProposal, Proposed, RandomWalk, SequentialProposal};
use zhat::rng::{Stream, Streams};
use zhat::smc::{ResampleWhen, SmcConfig};
use zhat::testing::{compare, finite_differences, flatten, gradient};
use zhat::train::{Batch, TrainingStep};

use super::Finding;
use super::setting::{
    AnyContrast, AnyCriterion, CHAIN, CHAIN_PROPOSAL, Point, STAGES, THETA, attached_chain,
    attached_model, chain, chain_proposal, data, gradient_at, less, log_p_tilde, log_q, log_w,
    model, place, points, proposal, rows, weighted, weights_by_hand,
};

/// Negatives of every check here, and particles beside the retained one.
const NEGATIVES: usize = 5;
/// Step of finite differences of formulas in 64-bit floats: truncation and rounding are below 1e-8.
const STEP: f64 = 1e-5;

claims! {
    "rnce-is-ml-cis": "RNCE is ML-CIS: the gradient of -log p~(x0) + log Z_CIS for every draw (Prop. 3.1)",
        "the data point left out of the sum; no log q",
        |rng| rnce_is_ml_cis(&mut FromData(cis()?), rng);
    "rnce-is-cd1": "RNCE is CD-1 with the CIS kernel: the same gradient for every draw (Prop. 4.1)",
        "the data point left out of the sum; no log q",
        |rng| is_cd1(&mut FromData(cis()?), weights_by_hand, rng);
    "rnce-is-cd1-sampled": "RNCE sums out the draw of Algorithm 1: a drawn candidate has the same mean gradient",
        "candidates drawn without log q; a chain that never moves",
        |rng| drawn_is_summed(&cis()?, weights_by_hand, rng);
    "cnce-is-cd1": "CNCE is CD-1 with the CNCE kernel: the same gradient for every draw (Prop. 4.2)",
        "no q(x|x') / q(x'|x); the acceptance probability of Metropolis",
        |rng| cnce_is_cd1(&mut FromData(barker()?), &mut FromData(Barker::new(proposal(), NEGATIVES)?), rng);
    "cnce-is-cd1-sampled": "CNCE sums out the draw of Algorithm 2: a drawn candidate has the same mean gradient",
        "the acceptance probability of Metropolis; a chain that never moves",
        |rng| drawn_is_summed(&barker()?, symmetric_pairs, rng);
    "ml-is-value": "ML-IS: weighted candidates have the gradient of -log p~(x0) + log Z_IS (App. A.1)",
        "the data point counted in the sum; no log q",
        |rng| ml_is_value(&mut FromData(ImportanceSampling::new(proposal(), NEGATIVES)?), rng);
    "nce-value": "Binary NCE: weighted candidates have the gradient of the logistic loss",
        "weights that sum to one; no log q",
        |rng| nce_value(&mut FromData(BinaryNce::new(proposal(), NEGATIVES)?), rng);
    "snl-value": "The self-normalised likelihood: weighted candidates have the gradient of -log p(x0) + mean p / q - 1",
        "weights that sum to one; no log q",
        |rng| snl_value(&mut FromData(SelfNormalised::new(proposal(), NEGATIVES)?), rng);
    "ssm-is-hyvarinens": "Sliced score matching by differences is Hyvarinen's on average, exactly so for a Gaussian",
        "the objective of denoising; a conditional criterion with the same points",
        |rng| score_matching(&SlicedScoreMatching::new(0.3, NEGATIVES)?, hyvarinen, rng);
    "dsm-is-vincents": "Denoising score matching by differences is Vincent's on average, exactly so for a Gaussian",
        "the objective of Hyvarinen; another noise",
        |rng| score_matching(&DenoisingScoreMatching::new(NOISE, NEGATIVES)?, vincent, rng);
    "smc-rnce-value": "SMC-RNCE: weighted factors have the gradient of -log p~(x0) + log Z_CSMC (App. B.2)",
        "whole trajectories weighed by the last weights; the density of another proposal",
        |rng| smc_rnce_value(|recorder| Ok(Box::new(every_stage(recorder)?)), rng);
    "ar-step": "The step of the autoregressive EBM has the mean gradient of RNCE and SMC-RNCE on it, and of -log q(x0)",
        "the data point left out of the sum; no energy; whole trajectories weighed by the last weights",
        |rng| ar_step(ar_settings, rng);
    "local-rnce-is-cd1": "RNCE on every conditional is CD-1 on it with the CIS kernel, the features before it being the data's",
        "the data point left out of the sum; no log q; one normaliser for all features",
        |rng| local_rnce_is_cd1(&ar_settings(Method::Rnce), Normalisation::Local, weight_of_kernel, rng);
    "reversible-q-halves-cd1": "A q that is reversible in p_theta makes CNCE half of CD-1 (Yair and Michaeli; App. C)",
        "no q(x|x') / q(x'|x)",
        |rng| is_cd1(&mut FromData(Barker::new(Reversible, 1)?), |_| vec![0.5, 0.5], rng);
}

fn cis() -> Result<ConditionalImportance<DiagonalGaussian>> {
    ConditionalImportance::new(proposal(), NEGATIVES)
}

fn barker() -> Result<Barker<RandomWalk>> {
    Barker::new(RandomWalk::new(0.9)?, NEGATIVES)
}

/// What a criterion says of a batch: its gradient in both forms, and its value.
struct Differentiated {
    rows: Vec<Vec<Point>>,
    surrogate: Vec<f64>,
    value: Option<(f64, Vec<f64>)>,
}

impl Differentiated {
    fn new<M: Module>(
        criterion: &mut dyn Criterion<M>,
        model: &M,
        rng: &mut Stream,
    ) -> Result<Self> {
        let x0 = data(64, rng);
        // The same draws twice: once differentiated through the surrogate, once through the value.
        let loss = criterion.loss(model, &x0.clone().into(), &mut rng.clone())?;
        let surrogate = gradient(&loss.surrogate, model);
        let loss = criterion.loss(model, &x0.into(), rng)?;
        let value = criterion.value(&loss);
        let value = value.map(|value| (to_host(&value)[0], gradient(&value, model)));
        Ok(Self { rows: rows(&loss.candidates), surrogate, value })
    }

    /// The mean over rows of what is computed by hand for each.
    fn mean(&self, by_hand: impl Fn(&[Point]) -> Vec<f64>) -> Vec<f64> {
        let rows: Vec<Vec<f64>> = self.rows.iter().map(|row| by_hand(row)).collect();
        (0..rows[0].len()).map(|at| mean(rows.iter().map(|row| row[at]))).collect()
    }

    /// Both forms of the gradient are as expected.
    fn gradient_is(&self, expected: &[f64]) -> Finding {
        let finding = Finding::equality(&self.surrogate, expected);
        match &self.value {
            Some((_, gradient)) => finding.and(Finding::equality(gradient, expected)),
            None => finding,
        }
    }

    /// The gradient is that of a criterion written out by hand, and so is the value: two findings.
    fn is(&self, by_hand: impl Fn(&[Point], &[f64]) -> f64, theta: &[f64]) -> [Finding; 2] {
        let at = |theta: &[f64]| self.mean(|row| vec![by_hand(row, theta)])[0];
        let value = self.value.as_ref().map_or(f64::NAN, |(value, _)| *value);
        let gradient = self.gradient_is(&finite_differences(at, theta, STEP));
        [gradient, Finding::equality(&[value], &[at(theta)])]
    }
}

/// The library's value is `-log w_0`, which is another by `log q(x_0)` and `log(J + 1)`: only the gradients are the same.
pub fn rnce_is_ml_cis(criterion: &mut AnyCriterion, rng: &mut Stream) -> Result<Finding> {
    let by_hand =
        |row: &[Point], theta: &[f64]| log_z_hat(row, theta) - log_p_tilde(&row[0], theta);
    let [gradient, _] = Differentiated::new(criterion, &attached_model(), rng)?.is(by_hand, &THETA);
    Ok(gradient)
}

/// The log of the mean of `p~(x) / q(x)`, an estimate of `Z`.
fn log_z_hat(points: &[Point], theta: &[f64]) -> f64 {
    mean(points.iter().map(|x| log_w(x, theta).exp())).ln()
}

/// The gradient is that of CD-1 with the draw of `z` summed out, `-grad log p~(x_0) + sum_j w_j grad log p~(x_j)`, with
/// weights by hand. Weights of a half make it half of CD-1 with the proposal itself as the kernel.
pub fn is_cd1(
    criterion: &mut AnyCriterion,
    weigh: fn(&[Point]) -> Vec<f64>,
    rng: &mut Stream,
) -> Result<Finding> {
    let found = Differentiated::new(criterion, &attached_model(), rng)?;
    let by_hand = |row: &[Point]| less(&weighted(row, &weigh(row)), &gradient_at(&row[0], &THETA));
    Ok(found.gradient_is(&found.mean(by_hand)))
}

/// Weights of pairs by hand: `1/J` of the acceptance probability `1 / (1 + 1/r)`, with the log of `r` given.
fn pairs(row: &[Point], log_ratio: impl Fn(&Point) -> f64) -> Vec<f64> {
    let negatives = row[1..].iter().map(|x| 1.0 / (1.0 + (-log_ratio(x)).exp()));
    let mut weights: Vec<f64> =
        negatives.map(|accepted| accepted / (row.len() - 1) as f64).collect();
    weights.insert(0, 1.0 - weights.iter().sum::<f64>());
    weights
}

/// `r = p~(x') / p~(x)`, for a symmetric proposal.
pub fn symmetric_pairs(row: &[Point]) -> Vec<f64> {
    pairs(row, |x| log_p_tilde(x, &THETA) - log_p_tilde(&row[0], &THETA))
}

/// `r = p~(x') q(x) / (p~(x) q(x'))`, for a proposal that does not look at `x`.
fn independent_pairs(row: &[Point]) -> Vec<f64> {
    pairs(row, |x| log_w(x, &THETA) - log_w(&row[0], &THETA))
}

pub fn cnce_is_cd1(
    walk: &mut AnyCriterion,
    independent: &mut AnyCriterion,
    rng: &mut Stream,
) -> Result<Finding> {
    Ok(is_cd1(walk, symmetric_pairs, rng)?.and(is_cd1(independent, independent_pairs, rng)?))
}

/// The gradient at a candidate drawn by the library against the sum over all of them by hand, row by row.
pub fn drawn_is_summed(
    kernel: &AnyContrast,
    weigh: fn(&[Point]) -> Vec<f64>,
    rng: &mut Stream,
) -> Result<Finding> {
    let x0 = data(100_000, rng);
    let candidates = kernel.propose(&model(), State::new(x0.clone()), rng)?;
    let drawn = candidates.select(rng).x;
    // Where nothing moves, the drawn candidate is the sum.
    let moved = compare(&to_host(&x0), &to_host(&drawn), 2).share_moved;
    let moves = Finding::at_least(&[moved], &[0.05]);
    let differences: Vec<Vec<f64>> = points(&drawn)
        .iter()
        .zip(rows(&candidates))
        .map(|(drawn, row)| less(&gradient_at(drawn, &THETA), &weighted(&row, &weigh(&row))))
        .collect();
    Ok(Finding::expectation(&differences, &[0.0; 4]).and(moves))
}

pub fn ml_is_value(criterion: &mut AnyCriterion, rng: &mut Stream) -> Result<Finding> {
    let by_hand =
        |row: &[Point], theta: &[f64]| log_z_hat(&row[1..], theta) - log_p_tilde(&row[0], theta);
    let [gradient, value] =
        Differentiated::new(criterion, &attached_model(), rng)?.is(by_hand, &THETA);
    Ok(gradient.and(value))
}

pub fn nce_value(
    criterion: &mut dyn Criterion<WithLogZ<DiagonalGaussian>>,
    rng: &mut Stream,
) -> Result<Finding> {
    let log_z = 1.0;
    let model = WithLogZ::new(attached_model(), log_z, &Device::flex().autodiff());
    // -log h(x_0) - sum_j log(1 - h(x_j)) with h = p / (p + J q) and p = p~ e^-c.
    let by_hand = |row: &[Point], theta: &[f64]| {
        let h = |x: &Point| {
            let p = (log_p_tilde(x, theta) - theta[4]).exp();
            p / (p + NEGATIVES as f64 * log_q(x).exp())
        };
        -h(&row[0]).ln() - row[1..].iter().map(|x| (1.0 - h(x)).ln()).sum::<f64>()
    };
    let theta = [&THETA[..], &[log_z]].concat();
    let [gradient, value] = Differentiated::new(criterion, &model, rng)?.is(by_hand, &theta);
    Ok(gradient.and(value))
}

pub fn snl_value(
    criterion: &mut dyn Criterion<WithLogZ<DiagonalGaussian>>,
    rng: &mut Stream,
) -> Result<Finding> {
    let log_z = 1.0;
    let model = WithLogZ::new(attached_model(), log_z, &Device::flex().autodiff());
    let by_hand = |row: &[Point], theta: &[f64]| {
        let ratio = |x: &Point| (log_w(x, theta) - theta[4]).exp();
        theta[4] - log_p_tilde(&row[0], theta) + mean(row[1..].iter().map(ratio)) - 1.0
    };
    let theta = [&THETA[..], &[log_z]].concat();
    let [gradient, value] = Differentiated::new(criterion, &model, rng)?.is(by_hand, &theta);
    Ok(gradient.and(value))
}

/// Standard deviation of the noise of denoising score matching.
pub const NOISE: f64 = 0.5;

/// The mean of a criterion over directions and noise at one row, in the parameters of the model.
pub type OfRow = fn(&Point, &[f64]) -> f64;

/// `tr grad^2 log p~ + |grad log p~|^2 / 2` of a Gaussian: `sum_i -1 / s_i^2 + (x_i - mu_i)^2 / (2 s_i^4)`.
pub fn hyvarinen(x: &Point, theta: &[f64]) -> f64 {
    let of =
        |i: usize| -theta[2 + i].powi(-2) + 0.5 * (x[i] - theta[i]).powi(2) * theta[2 + i].powi(-4);
    of(0) + of(1)
}

/// `E_z s^2 / 2 |grad log p~(x + s z) + z / s|^2` of a Gaussian: with `grad log p~ = -(x + s z - mu) / s_i^2` the part in `z` is
/// `(1 / s - s / s_i^2) z`, independent of the rest.
pub fn vincent(x: &Point, theta: &[f64]) -> f64 {
    let of = |i: usize| {
        let precision = theta[2 + i].powi(-2);
        let fixed = ((x[i] - theta[i]) * precision).powi(2);
        let random = (1.0 / NOISE - NOISE * precision).powi(2);
        0.5 * NOISE * NOISE * (fixed + random)
    };
    of(0) + of(1)
}

/// The gradient of every row's criterion, over directions and noise, against that of its mean by hand; and so the value.
pub fn score_matching(contrast: &AnyContrast, by_hand: OfRow, rng: &mut Stream) -> Result<Finding> {
    let model = attached_model();
    // All rows are the same point, so that one expectation is behind all of them.
    let point = [1.1, -0.3];
    let at = |theta: &[f64]| by_hand(&point, theta);
    let expected = [&finite_differences(at, &THETA, STEP)[..], &[at(&THETA)]].concat();
    let x0: Tensor<2> = place().tensor(point.repeat(64), [64, 2]);
    Finding::of_draws(400, &expected, || {
        let candidates = contrast.propose(&model, State::new(x0.clone()), rng)?;
        let mut found = gradient(&surrogate(&candidates, None), &model);
        let value = contrast.value(&candidates).map_or(f64::NAN, |value| to_host(&value)[0]);
        found.push(value);
        Ok(found)
    })
}

/// A proposal that remembers all particles at every stage, as they were when their density was asked for.
#[derive(Clone)]
pub struct Recorder {
    pub proposal: GaussianChainProposal,
    stages: Rc<RefCell<Vec<Vec<f64>>>>,
}

impl SequentialProposal for Recorder {
    fn sample(&self, stage: usize, prefix: Tensor<2>, rng: &mut Stream) -> Tensor<1> {
        self.proposal.sample(stage, prefix, rng)
    }

    fn log_prob(&self, stage: usize, x: Tensor<2>) -> Tensor<1> {
        self.stages.borrow_mut()[stage] = to_host(&x);
        self.proposal.log_prob(stage, x)
    }
}

/// Resampled after every stage, so that `Z_CSMC` is a product of means over the particles of each.
pub fn every_stage(recorder: Recorder) -> Result<ConditionalSmc<Recorder>> {
    let config = SmcConfig::new(NEGATIVES + 1)?.with_resample_when(ResampleWhen::EveryStage);
    ConditionalSmc::new(recorder, NEGATIVES)?.with_config(config)
}

pub fn smc_rnce_value(
    contrast: fn(Recorder) -> Result<Box<dyn Contrast<GaussianChain>>>,
    rng: &mut Stream,
) -> Result<Finding> {
    let rows = 32;
    let (_, x0) = chain(rows, rng)?;
    let model = attached_chain();
    let stages = Rc::new(RefCell::new(vec![Vec::new(); STAGES]));
    let recorder = Recorder { proposal: chain_proposal(), stages: stages.clone() };
    let mut criterion = FromData(contrast(recorder)?);
    let loss = criterion.loss(&model, &x0.clone().into(), rng)?;
    let computed = gradient(&loss.surrogate, &model);
    let stages = stages.borrow();
    // log of a factor over the proposal's density, and the factor alone, at a stage of a particle.
    let at = |x: &[f64], stage: usize, theta: &[f64]| {
        let (here, past) = (x[stage], if stage == 0 { 0.0 } else { x[stage - 1] });
        let pull = CHAIN[2] * (here - theta[1]);
        let log_factor = -0.5 * ((here - theta[0] * past).powi(2) + pull * pull);
        let [coupling, std_dev] = CHAIN_PROPOSAL;
        let normaliser = (2.0 * std::f64::consts::PI).sqrt() * std_dev;
        let log_q = -0.5 * ((here - coupling * past) / std_dev).powi(2) - normaliser.ln();
        (log_factor - log_q, log_factor)
    };
    let x0 = to_host(&x0);
    let by_hand = |theta: &[f64]| {
        let log_z_csmc: f64 = (0..STAGES)
            .flat_map(|stage| {
                let systems = stages[stage].chunks_exact((NEGATIVES + 1) * STAGES);
                systems.map(move |system| {
                    let particles = system.chunks_exact(STAGES);
                    mean(particles.map(|x| at(x, stage, theta).0.exp())).ln()
                })
            })
            .sum();
        let of_data: f64 = x0
            .chunks_exact(STAGES)
            .map(|x| (0..STAGES).map(|stage| at(x, stage, theta).1).sum::<f64>())
            .sum();
        (log_z_csmc - of_data) / rows as f64
    };
    let finding = Finding::equality(&computed, &finite_differences(by_hand, &CHAIN[..2], STEP));
    Ok(match criterion.0.value(&loss.candidates) {
        Some(value) => finding.and(Finding::equality(&to_host(&value), &[by_hand(&CHAIN[..2])])),
        None => finding,
    })
}

pub fn ar_settings(method: Method) -> ArStepConfig {
    ArStepConfig { num_negatives: NEGATIVES, ..ArStepConfig::new(method) }
}

/// The engine's gradient less that of the kernels on the same model, differentiated by Burn, in six random directions.
///
/// The draws are independent of each other, so that only the means must agree. RNCE is conditional SMC that never resamples.
pub fn ar_step(settings: fn(Method) -> ArStepConfig, rng: &mut Stream) -> Result<Finding> {
    let size = NetworkSize { blocks: 1, width: 8, activation: Activation::Tanh };
    let shape = ArEbmConfig {
        proposal: size.clone(),
        energy: size,
        context: 4,
        dropout: 0.0,
        ..ArEbmConfig::new(3)
    };
    let mut model = shape.init(&Device::flex().autodiff(), rng)?;
    // An energy far from the proposal, so that the weights vary and particles are resampled; and no layer of zeros.
    let scaled = |weight: Tensor<2>| (weight * 12.0).detach().require_grad();
    model.energy.last.weight = model.energy.last.weight.map(scaled);
    for network in [&mut model.proposal, &mut model.energy] {
        let second = &mut network.blocks[0].second;
        second.weight = second.weight.clone().map(|weight| (weight + 0.2).detach().require_grad());
    }
    let streams = Streams::new(rng.index(1 << 30) as u64);
    let mut methods = Vec::new();
    for (method, share) in [(Method::Rnce, 0.0), (Method::SmcRnce, 0.5)] {
        let config = SmcConfig::new(NEGATIVES + 1)?
            .with_resample_when(ResampleWhen::EffectiveSampleSizeBelow(share));
        let kernel = ConditionalSmc::new(model.clone(), NEGATIVES)?.with_config(config)?;
        methods.push((FromData(kernel), ArStep::new(&settings(method), 1)?));
    }
    let mut step = 0;
    Finding::of_draws(600, &[0.0; 12], || {
        let batch = Batch::from(place().tensor(rng.normals(64 * 3), [64, 3]));
        let mut row = Vec::new();
        for (criterion, engine) in &mut methods {
            let surrogate = criterion.loss(&model, &batch, rng)?.surrogate;
            let log_q = (0..3).map(|stage| model.log_prob(stage, batch.x.clone()).mean());
            let expected = gradient(&log_q.fold(surrogate, |loss, log_q| loss - log_q), &model);
            let computed = flatten(&engine.gradient(&model, &batch, &streams, step)?.0, &model);
            let mut directions = Streams::new(1).stream("directions", 0, 0);
            row.extend((0..6).map(|_| {
                let pairs = computed.iter().zip(&expected);
                pairs.map(|(c, e)| (c - e) * directions.normal()).sum::<f64>()
            }));
        }
        step += 1;
        Ok(row)
    })
}

/// `log p~ - log q`: what the CIS kernel draws its next state by.
fn weight_of_kernel(log_p_tilde: f64, log_q: f64) -> f64 {
    log_p_tilde - log_q
}

/// The engine's gradient where every factor has its own normaliser, less that of CD-1 with a transition of the CIS kernel for each
/// conditional `p(x_d | x_<d)`, started and conditioned at the data: in six random directions. Only the means must agree.
pub fn local_rnce_is_cd1(
    settings: &ArStepConfig,
    normalisation: Normalisation,
    log_weight: fn(f64, f64) -> f64,
    rng: &mut Stream,
) -> Result<Finding> {
    let size = NetworkSize { blocks: 1, width: 8, activation: Activation::Tanh };
    let shape = ArEbmConfig {
        conditioner: Conditioner::Masked,
        energy_form: EnergyForm::Tilted,
        head: HeadForm::Both,
        normalisation,
        proposal: size.clone(),
        energy: size,
        context: 4,
        dropout: 0.0,
        ..ArEbmConfig::new(3)
    };
    let mut model = shape.init(&Device::flex().autodiff(), rng)?;
    // A tilt that is not zero, so that the weights vary.
    let shifted = |weight: Tensor<2>| (weight + 0.8).detach().require_grad();
    model.energy.last.weight = model.energy.last.weight.map(shifted);
    let mut conditionals = model.clone();
    conditionals.shape.normalisation = Normalisation::Global;
    let (mut engine, streams) =
        (ArStep::new(settings, 1)?, Streams::new(rng.index(1 << 30) as u64));
    let mut step = 0;
    Finding::of_draws(600, &[0.0; 6], || {
        let batch = Batch::from(place().tensor(rng.normals(64 * 3), [64, 3]));
        let mut loss = Tensor::zeros([1], &Device::flex().autodiff());
        for stage in 0..3 {
            let moved = cis_transition(&conditionals.valid(), stage, &batch.x, log_weight, rng);
            let factor = |x: Tensor<2>| conditionals.log_factor(stage, x).mean();
            loss = loss + factor(moved) - factor(batch.x.clone());
            loss = loss - model.log_prob(stage, batch.x.clone()).mean();
        }
        let expected = gradient(&loss, &model);
        let computed = flatten(&engine.gradient(&model, &batch, &streams, step)?.0, &model);
        step += 1;
        let mut directions = Streams::new(1).stream("directions", 0, 0);
        let along = |directions: &mut Stream| {
            let pairs = computed.iter().zip(&expected);
            pairs.map(|(c, e)| (c - e) * directions.normal()).sum::<f64>()
        };
        Ok((0..6).map(|_| along(&mut directions)).collect())
    })
}

/// One transition of the CIS kernel on a feature of every row, the others staying as they are.
fn cis_transition(
    model: &ArEbm,
    stage: usize,
    x0: &Tensor<2>,
    log_weight: fn(f64, f64) -> f64,
    rng: &mut Stream,
) -> Tensor<2> {
    let [rows, features] = x0.dims();
    let start = to_host(x0);
    let mut candidates = vec![start.clone()];
    for _ in 0..NEGATIVES {
        let drawn = to_host(&model.sample(stage, x0.clone(), rng));
        let mut moved = start.clone();
        moved.iter_mut().skip(stage).step_by(features).zip(drawn).for_each(|(x, new)| *x = new);
        candidates.push(moved);
    }
    let weights: Vec<Vec<f64>> = candidates
        .iter()
        .map(|candidate| {
            let x = place().tensor(candidate.clone(), [rows, features]);
            let log_p = to_host(&model.log_factor(stage, x.clone()));
            let log_q = to_host(&model.log_prob(stage, x));
            log_p.iter().zip(log_q).map(|(&p, q)| log_weight(p, q).exp()).collect()
        })
        .collect();
    let mut moved = Vec::new();
    for row in 0..rows {
        let mut left = rng.uniform() * weights.iter().map(|of| of[row]).sum::<f64>();
        let chosen = weights.iter().position(|of| {
            left -= of[row];
            left < 0.0
        });
        let chosen = &candidates[chosen.unwrap_or(NEGATIVES)];
        moved.extend_from_slice(&chosen[row * features..][..features]);
    }
    place().tensor(moved, [rows, features])
}

/// An autoregressive step that is reversible with respect to the model: `x' = mu + rho (x - mu) + sqrt(1 - rho^2) s z`.
pub struct Reversible;

impl<M: ?Sized> ConditionalProposal<M> for Reversible {
    fn propose(&self, _model: &M, x0: &Tensor<2>, j: usize, rng: &mut Stream) -> Result<Proposed> {
        let rho: f64 = 0.6;
        let variance = 1.0 - rho * rho;
        let (mut x, mut log_ratio) = (Vec::new(), Vec::new());
        for start in points(x0).iter().flat_map(|start| vec![start; j]) {
            let mut ratio = 0.0;
            for i in 0..2 {
                let (mean, std_dev) = (THETA[i], THETA[2 + i]);
                let a = (start[i] - mean) / std_dev;
                let b = rho * a + variance.sqrt() * rng.normal();
                x.push(mean + std_dev * b);
                // log N(b; rho a, 1 - rho^2) - log N(a; rho b, 1 - rho^2).
                ratio += ((a - rho * b).powi(2) - (b - rho * a).powi(2)) / (2.0 * variance);
            }
            log_ratio.push(ratio);
        }
        let x = Place::of(x0).tensor(x, [x0.dims()[0], j, 2]);
        Ok(Proposed { x, log_ratio: Some(log_ratio) })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, number) = values.fold((0.0, 0.0), |(sum, number), value| (sum + value, number + 1.0));
    sum / number
}
