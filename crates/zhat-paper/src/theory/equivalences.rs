//! Claims that two methods are the same: the library's gradients against formulas written out by hand, on the same draws.

use std::cell::RefCell;
use std::rc::Rc;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use zhat::Result;
use zhat::ar::{Activation, ArEbmConfig, ArStep, ArStepConfig, NetworkSize};
use zhat::criterion::{BinaryNce, Criterion, FromData, ImportanceSampling, Method};
use zhat::host::{Place, to_host};
use zhat::kernel::{Barker, ConditionalImportance, ConditionalSmc, Contrast, State};
use zhat::model::{DiagonalGaussian, GaussianChain, GaussianChainProposal, WithLogZ};
use zhat::proposal::{ConditionalProposal, Proposed, RandomWalk, SequentialProposal};
use zhat::rng::{Stream, Streams};
use zhat::smc::{ResampleWhen, SmcConfig};
use zhat::testing::{compare, finite_differences, flatten, gradient};
use zhat::train::{Batch, TrainingStep};

use super::setting::{
    CHAIN, CHAIN_PROPOSAL, Point, STAGES, THETA, attached_chain, attached_model, chain,
    chain_proposal, data, gradient_at, log_p_tilde, log_q, model, place, points, proposal,
    weighted, weights_by_hand,
};
use super::{Claim, Finding};

/// Negatives of every check here, and particles beside the retained one.
const NEGATIVES: usize = 5;
/// Step of finite differences of formulas in 64-bit floats: truncation and rounding are below 1e-8.
const STEP: f64 = 1e-5;

pub fn claims() -> Vec<Claim> {
    vec![
        Claim {
            id: "rnce-is-ml-cis",
            claim: "RNCE is ML-CIS: the gradient of -log p~(x0) + log Z_CIS for every draw (Prop. 3.1)",
            twin: "the data point left out of the sum; no log q",
            check: |rng| rnce_is_ml_cis(&mut FromData(cis()?), rng),
        },
        Claim {
            id: "rnce-is-cd1",
            claim: "RNCE is CD-1 with the CIS kernel: the same gradient for every draw (Prop. 4.1)",
            twin: "the data point left out of the sum; no log q",
            check: |rng| rnce_is_cd1(&mut FromData(cis()?), rng),
        },
        Claim {
            id: "rnce-is-cd1-sampled",
            claim: "RNCE sums out the draw of Algorithm 1: a drawn candidate has the same mean gradient",
            twin: "candidates drawn without log q; a chain that never moves",
            check: |rng| drawn_is_summed(&cis()?, weights_by_hand, rng),
        },
        Claim {
            id: "cnce-is-cd1",
            claim: "CNCE is CD-1 with the CNCE kernel: the same gradient for every draw (Prop. 4.2)",
            twin: "no q(x|x') / q(x'|x); the acceptance probability of Metropolis",
            check: |rng| cnce_is_cd1(&mut FromData(barker()?), &mut FromData(independent()?), rng),
        },
        Claim {
            id: "cnce-is-cd1-sampled",
            claim: "CNCE sums out the draw of Algorithm 2: a drawn candidate has the same mean gradient",
            twin: "the acceptance probability of Metropolis; a chain that never moves",
            check: |rng| drawn_is_summed(&barker()?, symmetric_pairs, rng),
        },
        Claim {
            id: "ml-is-value",
            claim: "ML-IS: weighted candidates have the gradient of -log p~(x0) + log Z_IS (App. A.1)",
            twin: "the data point counted in the sum; no log q",
            check: |rng| {
                ml_is_value(&mut FromData(ImportanceSampling::new(proposal(), NEGATIVES)?), rng)
            },
        },
        Claim {
            id: "nce-value",
            claim: "Binary NCE: weighted candidates have the gradient of the logistic loss",
            twin: "weights that sum to one; no log q",
            check: |rng| nce_value(&mut FromData(BinaryNce::new(proposal(), NEGATIVES)?), rng),
        },
        Claim {
            id: "smc-rnce-value",
            claim: "SMC-RNCE: weighted factors have the gradient of -log p~(x0) + log Z_CSMC (App. B.2)",
            twin: "whole trajectories weighed by the last weights; the density of another proposal",
            check: |rng| smc_rnce_value(smc_rnce, rng),
        },
        Claim {
            id: "ar-step",
            claim: "The step of the autoregressive EBM has the mean gradient of RNCE and SMC-RNCE on it, and of -log q(x0)",
            twin: "the data point left out of the sum; no energy; whole trajectories weighed by the last weights",
            check: |rng| ar_step(ar_settings, rng),
        },
        Claim {
            id: "reversible-q-halves-cd1",
            claim: "A q that is reversible in p_theta makes CNCE half of CD-1 (Yair and Michaeli; App. C)",
            twin: "no q(x|x') / q(x'|x)",
            check: |rng| reversible_q_halves_cd1(Reversible { correlation: 0.6 }, rng),
        },
    ]
}

fn cis() -> Result<ConditionalImportance<DiagonalGaussian>> {
    ConditionalImportance::new(proposal(), NEGATIVES)
}

fn barker() -> Result<Barker<RandomWalk>> {
    Barker::new(RandomWalk::new(0.9)?, NEGATIVES)
}

fn independent() -> Result<Barker<DiagonalGaussian>> {
    Barker::new(proposal(), NEGATIVES)
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
        Ok(Self { rows: points(&loss.candidates), surrogate, value })
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

    /// Value and gradient are those of a criterion written out by hand.
    fn is(&self, by_hand: impl Fn(&[Point], &[f64]) -> f64, theta: &[f64]) -> Finding {
        let at = |theta: &[f64]| self.mean(|row| vec![by_hand(row, theta)])[0];
        let value = self.value.as_ref().map_or(f64::NAN, |(value, _)| *value);
        let gradient = finite_differences(at, theta, STEP);
        self.gradient_is(&gradient).and(Finding::equality(&[value], &[at(theta)]))
    }
}

pub fn rnce_is_ml_cis(
    criterion: &mut dyn Criterion<DiagonalGaussian>,
    rng: &mut Stream,
) -> Result<Finding> {
    let found = Differentiated::new(criterion, &attached_model(), rng)?;
    let by_hand = |row: &[Point], theta: &[f64]| {
        let z_cis = mean(row.iter().map(|x| (log_p_tilde(x, theta) - log_q(x)).exp()));
        z_cis.ln() - log_p_tilde(&row[0], theta)
    };
    let at = |theta: &[f64]| found.mean(|row| vec![by_hand(row, theta)])[0];
    Ok(found.gradient_is(&finite_differences(at, &THETA, STEP)))
}

/// `-grad log p~(x_0) + sum_j w_j grad log p~(x_j)` by hand, the CD-1 gradient with the draw of `z` summed out.
fn contrastive_divergence(row: &[Point], weights: Vec<f64>) -> Vec<f64> {
    let positive = gradient_at(&row[0], &THETA);
    weighted(row, &weights)
        .iter()
        .zip(positive)
        .map(|(negative, positive)| negative - positive)
        .collect()
}

pub fn rnce_is_cd1(
    criterion: &mut dyn Criterion<DiagonalGaussian>,
    rng: &mut Stream,
) -> Result<Finding> {
    let found = Differentiated::new(criterion, &attached_model(), rng)?;
    Ok(found.gradient_is(&found.mean(|row| contrastive_divergence(row, weights_by_hand(row)))))
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
    let log_w = |x: &Point| log_p_tilde(x, &THETA) - log_q(x);
    pairs(row, |x| log_w(x) - log_w(&row[0]))
}

pub fn cnce_is_cd1(
    walk: &mut dyn Criterion<DiagonalGaussian>,
    independent: &mut dyn Criterion<DiagonalGaussian>,
    rng: &mut Stream,
) -> Result<Finding> {
    let walk = Differentiated::new(walk, &attached_model(), rng)?;
    let independent = Differentiated::new(independent, &attached_model(), rng)?;
    let by_walk = walk.mean(|row| contrastive_divergence(row, symmetric_pairs(row)));
    let by_draw = independent.mean(|row| contrastive_divergence(row, independent_pairs(row)));
    Ok(walk.gradient_is(&by_walk).and(independent.gradient_is(&by_draw)))
}

/// The gradient at a candidate drawn by the library against the sum over all of them by hand, row by row.
pub fn drawn_is_summed(
    kernel: &dyn Contrast<DiagonalGaussian>,
    weigh: fn(&[Point]) -> Vec<f64>,
    rng: &mut Stream,
) -> Result<Finding> {
    let x0 = data(100_000, rng);
    let before = to_host(&x0);
    let candidates = kernel.propose(&model(), State::new(x0), rng)?;
    let drawn = to_host(&candidates.select(rng).x);
    // Where nothing moves, the drawn candidate is the sum.
    let moves = Finding::at_least(&[compare(&before, &drawn, 2).share_moved], &[0.05]);
    let differences: Vec<Vec<f64>> = drawn
        .chunks_exact(2)
        .zip(points(&candidates))
        .map(|(drawn, row)| {
            let drawn = gradient_at(&[drawn[0], drawn[1]], &THETA);
            drawn
                .iter()
                .zip(weighted(&row, &weigh(&row)))
                .map(|(drawn, summed)| drawn - summed)
                .collect()
        })
        .collect();
    Ok(Finding::expectation(&differences, &[0.0; 4]).and(moves))
}

pub fn ml_is_value(
    criterion: &mut dyn Criterion<DiagonalGaussian>,
    rng: &mut Stream,
) -> Result<Finding> {
    let by_hand = |row: &[Point], theta: &[f64]| {
        let z_is = mean(row[1..].iter().map(|x| (log_p_tilde(x, theta) - log_q(x)).exp()));
        z_is.ln() - log_p_tilde(&row[0], theta)
    };
    Ok(Differentiated::new(criterion, &attached_model(), rng)?.is(by_hand, &THETA))
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
    Ok(Differentiated::new(criterion, &model, rng)?.is(by_hand, &theta))
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

fn smc_rnce(recorder: Recorder) -> Result<Box<dyn Contrast<GaussianChain>>> {
    Ok(Box::new(every_stage(recorder)?))
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
    let mut samples = Vec::new();
    for step in 0..600 {
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
        samples.push(row);
    }
    Ok(Finding::expectation(&samples, &[0.0; 12]))
}

/// An autoregressive step that is reversible with respect to the model: `x' = mu + rho (x - mu) + sqrt(1 - rho^2) s z`.
pub struct Reversible {
    pub correlation: f64,
}

impl<M: ?Sized> ConditionalProposal<M> for Reversible {
    fn propose(
        &self,
        _model: &M,
        x0: &Tensor<2>,
        num_negatives: usize,
        rng: &mut Stream,
    ) -> Result<Proposed> {
        let [rows, dimension] = x0.dims();
        let rho = self.correlation;
        let spread = (1.0 - rho * rho).sqrt();
        let (mut x, mut log_ratio) = (Vec::new(), Vec::new());
        for start in to_host(x0).chunks_exact(dimension) {
            for _ in 0..num_negatives {
                let mut ratio = 0.0;
                for i in 0..dimension {
                    let (mean, std_dev) = (THETA[i], THETA[2 + i]);
                    let (a, z) = ((start[i] - mean) / std_dev, rng.normal());
                    let b = rho * a + spread * z;
                    x.push(mean + std_dev * b);
                    // log N(b; rho a, 1 - rho^2) - log N(a; rho b, 1 - rho^2).
                    ratio +=
                        ((a - rho * b).powi(2) - (b - rho * a).powi(2)) / (2.0 * spread * spread);
                }
                log_ratio.push(ratio);
            }
        }
        let x = Place::of(x0).tensor(x, [rows, num_negatives, dimension]);
        Ok(Proposed { x, log_ratio: Some(log_ratio) })
    }
}

pub fn reversible_q_halves_cd1<Q>(proposal: Q, rng: &mut Stream) -> Result<Finding>
where
    Q: ConditionalProposal<DiagonalGaussian>,
{
    let mut criterion = FromData(Barker::new(proposal, 1)?);
    let found = Differentiated::new(&mut criterion, &attached_model(), rng)?;
    // CD-1 with q itself as the kernel: -grad log p~(x_0) + grad log p~(x_1).
    Ok(found.gradient_is(&found.mean(|row| contrastive_divergence(row, vec![0.5, 0.5]))))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, number) = values.fold((0.0, 0.0), |(sum, number), value| (sum + value, number + 1.0));
    sum / number
}
