//! Claims that two methods are the same: their gradients are compared on the same draws.

use burn::tensor::Tensor;
use zhat::Result;
use zhat::criterion::{BinaryNce, Criterion, FromData, ImportanceSampling};
use zhat::host::{Place, to_host};
use zhat::kernel::{Barker, ConditionalImportance, ConditionalSmc, Contrast, Kernel, State};
use zhat::model::{DiagonalGaussian, UnnormalisedModel, WithLogZ};
use zhat::proposal::{ConditionalProposal, Proposal, Proposed, RandomWalk};
use zhat::rng::Stream;

use super::setting::{
    MEAN, STD_DEV, chain, gradient, gradient_at, model, place, proposal, weighted,
};
use super::{Check, Named};

pub fn checks() -> Vec<Named> {
    vec![
        ("rnce-is-ml-cis", rnce_is_ml_cis),
        ("rnce-is-cd1", rnce_is_cd1),
        ("rnce-is-cd1-sampled", rnce_is_cd1_sampled),
        ("cnce-is-cd1", cnce_is_cd1),
        ("cnce-is-cd1-sampled", cnce_is_cd1_sampled),
        ("ml-is-value", ml_is_value),
        ("nce-value", nce_value),
        ("smc-rnce-value", smc_rnce_value),
        ("reversible-q-halves-cd1", reversible_q_halves_cd1),
    ]
}

/// Data that are not from the model, as in training.
fn data(rows: usize, rng: &mut Stream) -> Tensor<2> {
    proposal().sample(rows, &place(), rng)
}

fn walk() -> RandomWalk {
    RandomWalk::new(0.9).expect("valid")
}

/// Gradient of the criterion's value by autodiff, for one set of candidates.
fn gradient_of_value<K: Contrast<DiagonalGaussian>>(
    kernel: &K,
    x0: &Tensor<2>,
    rng: &Stream,
) -> Result<Vec<f64>> {
    let model = model();
    let candidates = kernel.propose(&model, State::new(x0.clone()), &mut rng.clone())?;
    Ok(gradient(&kernel.value(&candidates).expect("the criterion has a value"), &model))
}

fn rnce_is_ml_cis(id: &str, rng: &mut Stream) -> Result<Check> {
    let kernel = ConditionalImportance::new(proposal(), 5)?;
    let x0 = data(64, rng);
    let rnce = gradient_of_value(&kernel, &x0, rng)?;
    // -log p~(x_0) + log Z_CIS, with Z_CIS = 1/(J+1) sum_j w~_j written out.
    let model = model();
    let candidates = kernel.propose(&model, State::new(x0), rng)?;
    let log_z_cis = candidates.attached_log_w_tilde().exp().mean_dim(1).log().mean();
    let ml_cis = gradient(&(log_z_cis - candidates.start().mean()), &model);
    let claim = "RNCE is ML-CIS: the same gradient for every draw (Prop. 3.1)";
    Ok(Check::equality(id, claim, &rnce, &ml_cis))
}

/// `-grad log p~(x_0) + sum_j w_j grad log p~(x_j)`, the CD-1 gradient with the draw of `z` summed out.
fn contrastive_divergence<K: Kernel<DiagonalGaussian>>(
    kernel: &K,
    x0: &Tensor<2>,
    rng: &Stream,
) -> Result<Vec<f64>> {
    let candidates = kernel.propose(&model(), State::new(x0.clone()), &mut rng.clone())?;
    let negative = weighted(&candidates, |x| gradient_at(x, &MEAN, &STD_DEV));
    let rows = negative.len() as f64;
    let mut sum = vec![0.0; 4];
    for (x0, negative) in to_host(x0).chunks_exact(2).zip(&negative) {
        for (i, positive) in gradient_at(x0, &MEAN, &STD_DEV).into_iter().enumerate() {
            sum[i] += (negative[i] - positive) / rows;
        }
    }
    Ok(sum)
}

fn rnce_is_cd1(id: &str, rng: &mut Stream) -> Result<Check> {
    let kernel = ConditionalImportance::new(proposal(), 5)?;
    let x0 = data(64, rng);
    let rnce = gradient_of_value(&kernel, &x0, rng)?;
    let cd = contrastive_divergence(&kernel, &x0, rng)?;
    let claim = "RNCE is CD-1 with the CIS kernel: the same gradient for every draw (Prop. 4.1)";
    Ok(Check::equality(id, claim, &rnce, &cd))
}

fn cnce_is_cd1(id: &str, rng: &mut Stream) -> Result<Check> {
    let kernel = Barker::new(walk(), 5)?;
    let x0 = data(64, rng);
    let cnce = gradient_of_value(&kernel, &x0, rng)?;
    let cd = contrastive_divergence(&kernel, &x0, rng)?;
    let claim = "CNCE is CD-1 with the CNCE kernel: the same gradient for every draw (Prop. 4.2)";
    Ok(Check::equality(id, claim, &cnce, &cd))
}

/// The gradient with a drawn `z` against the one with `z` summed out, row by row.
fn sampled_minus_summed<K: Kernel<DiagonalGaussian>>(
    kernel: &K,
    rng: &mut Stream,
) -> Result<Vec<Vec<f64>>> {
    let x0 = data(100_000, rng);
    let model = DiagonalGaussian::new(&MEAN, &STD_DEV, &x0.device())?;
    let candidates = kernel.propose(&model, State::new(x0), rng)?;
    let summed = weighted(&candidates, |x| gradient_at(x, &MEAN, &STD_DEV));
    let drawn = to_host(&candidates.select(rng).x);
    Ok(drawn
        .chunks_exact(2)
        .zip(summed)
        .map(|(x, summed)| {
            let drawn = gradient_at(x, &MEAN, &STD_DEV);
            drawn.iter().zip(summed).map(|(d, s)| d - s).collect()
        })
        .collect())
}

fn rnce_is_cd1_sampled(id: &str, rng: &mut Stream) -> Result<Check> {
    let differences = sampled_minus_summed(&ConditionalImportance::new(proposal(), 5)?, rng)?;
    let claim =
        "RNCE sums out the draw of Algorithm 1: a drawn candidate has the same mean gradient";
    Ok(Check::expectation(id, claim, &differences, &[0.0; 4]))
}

fn cnce_is_cd1_sampled(id: &str, rng: &mut Stream) -> Result<Check> {
    let differences = sampled_minus_summed(&Barker::new(walk(), 5)?, rng)?;
    let claim =
        "CNCE sums out the draw of Algorithm 2: a drawn candidate has the same mean gradient";
    Ok(Check::expectation(id, claim, &differences, &[0.0; 4]))
}

/// The surrogate's and the value's gradient for the same draws.
fn surrogate_and_value<M, C>(
    model: &M,
    mut criterion: C,
    x0: &Tensor<2>,
    rng: &Stream,
) -> Result<(Vec<f64>, Vec<f64>)>
where
    M: UnnormalisedModel + burn::module::Module,
    C: Criterion<M>,
{
    let loss = criterion.loss(model, x0.clone(), &mut rng.clone())?;
    let surrogate = gradient(&loss.surrogate, model);
    let loss = criterion.loss(model, x0.clone(), &mut rng.clone())?;
    let value = criterion.value(&loss).expect("the criterion has a value");
    Ok((surrogate, gradient(&value, model)))
}

fn ml_is_value(id: &str, rng: &mut Stream) -> Result<Check> {
    let x0 = data(64, rng);
    let criterion = FromData(ImportanceSampling::new(proposal(), 5)?);
    let (surrogate, value) = surrogate_and_value(&model(), criterion, &x0, rng)?;
    let claim = "ML-IS: weighted candidates have the gradient of -log p~(x0) + log Z_IS (App. A.1)";
    Ok(Check::equality(id, claim, &surrogate, &value))
}

fn nce_value(id: &str, rng: &mut Stream) -> Result<Check> {
    let x0 = data(64, rng);
    let criterion = FromData(BinaryNce::new(proposal(), 5)?);
    let model = WithLogZ::new(model(), 1.0, &burn::tensor::Device::flex().autodiff());
    let (surrogate, value) = surrogate_and_value(&model, criterion, &x0, rng)?;
    let claim = "Binary NCE: weighted candidates have the gradient of the logistic loss";
    Ok(Check::equality(id, claim, &surrogate, &value))
}

fn smc_rnce_value(id: &str, rng: &mut Stream) -> Result<Check> {
    let (model, proposal) = chain();
    let x0 = model.exact(&place_device())?.sample(32, &place(), rng);
    let criterion = FromData(ConditionalSmc::new(proposal, 7)?);
    let (surrogate, value) = surrogate_and_value(&model, criterion, &x0, rng)?;
    let claim =
        "SMC-RNCE: weighted factors have the gradient of -log p~(x0) + log Z_CSMC (App. B.2)";
    Ok(Check::equality(id, claim, &surrogate, &value))
}

fn place_device() -> burn::tensor::Device {
    burn::tensor::Device::flex()
}

/// An autoregressive step that is reversible with respect to the model: `x' = mu + rho (x - mu) + sqrt(1 - rho^2) s z`.
struct Reversible {
    correlation: f64,
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
                    let (a, z) = ((start[i] - MEAN[i]) / STD_DEV[i], rng.normal());
                    let b = rho * a + spread * z;
                    x.push(MEAN[i] + STD_DEV[i] * b);
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

fn reversible_q_halves_cd1(id: &str, rng: &mut Stream) -> Result<Check> {
    let kernel = Barker::new(Reversible { correlation: 0.6 }, 1)?;
    let x0 = data(64, rng);
    let cnce = gradient_of_value(&kernel, &x0, rng)?;
    // CD-1 with q itself as the kernel: -grad log p~(x_0) + grad log p~(x_1).
    let candidates = kernel.propose(&model(), State::new(x0), rng)?;
    let x = to_host(&candidates.x);
    let mut half = vec![0.0; 4];
    for pair in x.chunks_exact(4) {
        let (start, end) =
            (gradient_at(&pair[..2], &MEAN, &STD_DEV), gradient_at(&pair[2..], &MEAN, &STD_DEV));
        for i in 0..4 {
            half[i] += 0.5 * (end[i] - start[i]) / 64.0;
        }
    }
    let claim =
        "A q that is reversible in p_theta makes CNCE half of CD-1 (Yair and Michaeli; App. C)";
    Ok(Check::equality(id, claim, &cnce, &half))
}
