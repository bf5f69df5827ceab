//! Claims about expectations: what is unbiased, what is not, and by which factor.

use burn::tensor::{Device, Tensor};
use zhat::Result;
use zhat::criterion::{Adapted, Criterion, FromData, ImportanceSampling, Persistent};
use zhat::evaluate::{
    AnnealedConfig, AnnealingPath, LogZ, bridge_sampling, conditional_importance_sampling,
    conditional_smc, importance_sampling, smc,
};
use zhat::kernel::{Barker, ConditionalImportance, Kernel, Metropolis, State};
use zhat::model::DiagonalGaussian;
use zhat::proposal::{Adaptive, ModelItself, Proposal, RandomWalk};
use zhat::rng::Stream;
use zhat::smc::SmcConfig;
use zhat::testing::gradient;
use zhat::train::OptimiserConfig;

use super::Finding;
use super::setting::{
    AnyContrast, AnyCriterion, PHI, Point, THETA, attached_model, chain, chain_proposal, data,
    gradient_at, gradient_of_log_z, less, log_p_tilde, log_w, log_z, model, place, points,
    proposal, rows, weighted, weights_by_hand,
};

/// Draws behind each expectation.
const NUMBER: usize = 400_000;
/// Candidates beside the data point.
pub const NEGATIVES: usize = 4;
/// Batches behind the expectation of a gradient that is differentiated by the library.
const BATCHES: usize = 400;
/// Runs of an estimator of `Z`, each of [`RUN`] estimates.
const RUNS: usize = 2000;
/// Estimates in a run.
pub const RUN: usize = 50;

claims! {
    "cis-gradient-unbiased": "E[grad log Z_CIS] = grad log Z when x0 ~ p_theta (Prop. 3.2)",
        "the data point left out of the sum; no log q",
        |rng| cis_gradient_unbiased(&cis()?, rng);
    "is-gradient-biased": "E[grad log Z_IS] is that of a simulation by hand, and not grad log Z (section 2.1)",
        "the data point counted in the sum; no log q",
        |rng| is_gradient_biased(&ImportanceSampling::new(proposal(), NEGATIVES)?, rng);
    "cis-lemma": "E[f(x_i) / Z_CIS] = E_q[f] / Z for any f and a uniform i, here times Z (lemma of App. A.4)",
        "no log q; negatives from another q",
        |rng| cis_lemma(&cis()?, rng);
    "rnce-factor": "q = p_theta makes the RNCE gradient J/(J+1) of the likelihood's (Prop. 5.1)",
        "the data point left out of the sum; another q",
        |rng| {
            let factor = NEGATIVES as f64 / (NEGATIVES + 1) as f64;
            factor_of_likelihood(&ConditionalImportance::new(ModelItself, NEGATIVES)?, factor, rng)
        };
    "cnce-factor": "q = p_theta makes the CNCE gradient 1/2 of the likelihood's (Prop. 5.2)",
        "the acceptance probability of Metropolis; a chain that never moves",
        |rng| factor_of_likelihood(&Barker::new(ModelItself, NEGATIVES)?, 0.5, rng);
    "adaptive-unbiased": "The adaptive proposal's gradient is that of KL[p_theta || q_phi] when x0 ~ p_theta (Prop. 5.3)",
        "the data point left out of the sum; no log q in the weights",
        |rng| adaptive_unbiased(|q| Ok(Box::new(ConditionalImportance::new(q, NEGATIVES)?)), rng);
    "persistent-gradient-unbiased": "Persistent chains that have reached p_theta give grad log Z without bias, whatever the data",
        "chains that start from the data at every step; no log q",
        |rng| persistent_gradient_unbiased(|| Ok(Box::new(Persistent::new(cis()?, 1)?)), rng);
    "z-is-unbiased": "E[Z_IS] / Z = 1 (section 2.1)",
        "no log q",
        |rng| unbiased(|rng| z_is(&proposal(), rng), log_z(&THETA), 1.0, rng);
    "z-smc-unbiased": "E[Z_SMC] / Z = 1 (App. B.2)",
        "the density of another proposal",
        |rng| {
            let (model, _) = chain(1, rng)?;
            let config = SmcConfig::new(NEGATIVES + 1)?;
            let run = |rng: &mut Stream| smc(&config, &model, &chain_proposal(), RUN, &place(), rng);
            unbiased(run, model.log_z(), 1.0, rng)
        };
    "z-ais-unbiased": "E[Z_AIS] / Z = 1 for any kernel that leaves its temperature invariant (Neal, 2001)",
        "a kernel that drifts",
        |rng| {
            let kernel = Metropolis::new(RandomWalk::new(0.8)?, 1)?;
            unbiased(|rng| z_ais(&kernel, rng), log_z(&THETA), 1.0, rng)
        };
    "one-over-z-cis-unbiased": "E[1 / Z_CIS] = 1 / Z when x0 ~ p_theta, here times Z (lemma with f = 1)",
        "x0 from elsewhere; no log q",
        |rng| {
            let exact = |rng: &mut Stream| model().sample(RUN, &place(), rng);
            unbiased(|rng| z_cis(proposal(), exact(rng), rng), log_z(&THETA), -1.0, rng)
        };
    "one-over-z-csmc-unbiased": "E[1 / Z_CSMC] = 1 / Z when x0 ~ p_theta, here times Z (App. B.2)",
        "x0 from elsewhere",
        |rng| one_over_z_csmc(|rng| Ok(chain(RUN, rng)?.1), rng);
    "bridge-sampling": "Bridge sampling finds log Z from draws of p_theta and of q (Meng and Wong, 1996)",
        "the two kinds of draws exchanged; the mean of the weights over both kinds",
        |rng| bridge_finds_log_z(bridge_sampling, rng);
    "mh-accepts-more": "The MH acceptance probability is min(1, r), Barker's r/(1+r), and never above it (section 5.3)",
        "a Barker kernel that never moves; the two exchanged",
        |rng| {
            let walk = RandomWalk::new(2.0)?;
            mh_accepts_more(&Metropolis::new(walk.clone(), 1)?, &Barker::new(walk, 1)?, rng)
        };
}

fn cis() -> Result<ConditionalImportance<DiagonalGaussian>> {
    ConditionalImportance::new(proposal(), NEGATIVES)
}

/// `sum_j w_j grad log p~(x_j)` of every row, with the library's candidates and weights.
fn gradients(contrast: &AnyContrast, x0: Tensor<2>, rng: &mut Stream) -> Result<Vec<Vec<f64>>> {
    let candidates = contrast.propose(&model(), State::new(x0), rng)?;
    let rows = rows(&candidates);
    Ok(rows.iter().zip(candidates.weights.rows()).map(|(row, w)| weighted(row, w)).collect())
}

pub fn cis_gradient_unbiased(contrast: &AnyContrast, rng: &mut Stream) -> Result<Finding> {
    let x0 = model().sample(NUMBER, &place(), rng);
    Ok(Finding::expectation(&gradients(contrast, x0, rng)?, &gradient_of_log_z()))
}

pub fn is_gradient_biased(contrast: &AnyContrast, rng: &mut Stream) -> Result<Finding> {
    let x0 = model().sample(NUMBER, &place(), rng);
    let gradients = gradients(contrast, x0, rng)?;
    let differences: Vec<Vec<f64>> = gradients
        .iter()
        .map(|computed| {
            let draw = |rng: &mut Stream| [0, 1].map(|i| PHI[i] + PHI[2 + i] * rng.normal());
            let row: Vec<Point> = (0..NEGATIVES).map(|_| draw(rng)).collect();
            less(computed, &weighted(&row, &weights_by_hand(&row)))
        })
        .collect();
    let bias = Finding::bias(&gradients, &gradient_of_log_z());
    Ok(bias.and(Finding::expectation(&differences, &[0.0; 4])))
}

pub fn cis_lemma(contrast: &AnyContrast, rng: &mut Stream) -> Result<Finding> {
    let x0 = model().sample(NUMBER, &place(), rng);
    let candidates = contrast.propose(&model(), State::new(x0), rng)?;
    let samples: Vec<Vec<f64>> = rows(&candidates)
        .iter()
        .zip(candidates.log_w_tilde.rows())
        .map(|(row, log_w)| {
            // The place of x0 is uniform in the lemma; here it is the first, and i is uniform over all places. Both means
            // are over J + 1 places, which cancels.
            let z: f64 = log_w.iter().map(|log_w| (log_w - log_z(&THETA)).exp()).sum();
            let sum = |f: fn(&Point) -> f64| row.iter().map(f).sum::<f64>() / z;
            vec![sum(|x| x[0]), sum(|x| x[1]), sum(|x| x[0] * x[0]), sum(|x| x[1] * x[1])]
        })
        .collect();
    let [a, b, s, t] = PHI;
    Ok(Finding::expectation(&samples, &[a, b, a * a + s * s, b * b + t * t]))
}

/// Gradients of a criterion at one data point, many times over, against a multiple of `-grad log p(x_0)`.
pub fn factor_of_likelihood(
    contrast: &AnyContrast,
    factor: f64,
    rng: &mut Stream,
) -> Result<Finding> {
    let point = [1.7, -1.9];
    let x0 = place().tensor(point.repeat(NUMBER), [NUMBER, 2]);
    let positive = gradient_at(&point, &THETA);
    let gradients = gradients(contrast, x0, rng)?;
    let gradients: Vec<_> = gradients.iter().map(|negative| less(negative, &positive)).collect();
    let of_likelihood = less(&gradient_of_log_z(), &positive);
    let expected: Vec<f64> = of_likelihood.iter().map(|gradient| factor * gradient).collect();
    Ok(Finding::expectation(&gradients, &expected))
}

/// The gradient of a proposal that learns, in means and scales, batch by batch.
pub fn adaptive_unbiased(
    contrast: fn(Adaptive<DiagonalGaussian>) -> Result<Box<AnyContrast>>,
    rng: &mut Stream,
) -> Result<Finding> {
    let device = Device::flex().autodiff();
    let q = DiagonalGaussian::new(&PHI[..2], &PHI[2..], &device)?;
    let (learnt, model) = (Adaptive::new(q.clone()), attached_model());
    let from_data = FromData(contrast(learnt.clone())?);
    let mut criterion = Adapted::new(from_data, learnt, OptimiserConfig::Sgd);
    // -E_p[grad_phi log q_phi(x)]: with d = mu - mu_q, -d / s_q^2 in the means and 1/s_q - (s^2 + d^2) / s_q^3 in the scales.
    let expected: [f64; 4] = std::array::from_fn(|at| {
        let (shift, s, s_q) = (THETA[at % 2] - PHI[at % 2], THETA[2 + at % 2], PHI[2 + at % 2]);
        match at {
            0 | 1 => -shift / s_q.powi(2),
            _ => 1.0 / s_q - (s * s + shift * shift) / s_q.powi(3),
        }
    });
    Finding::of_draws(BATCHES, &expected, || {
        let loss = criterion.loss(&model, &model.sample(128, &place(), rng).into(), rng)?;
        Ok(gradient(&loss.adaptation.expect("the proposal learns"), &q))
    })
}

/// The first batch is of the model, where new chains start; the gradient is that of the fourth batch, of other data.
pub fn persistent_gradient_unbiased(
    criterion: fn() -> Result<Box<AnyCriterion>>,
    rng: &mut Stream,
) -> Result<Finding> {
    let (batch, model) = (128, attached_model());
    Finding::of_draws(BATCHES, &gradient_of_log_z(), || {
        let mut criterion = criterion()?;
        let mut x0 = model.sample(batch, &place(), rng);
        for _ in 0..3 {
            criterion.loss(&model, &x0.into(), rng)?;
            x0 = data(batch, rng);
        }
        let loss = criterion.loss(&model, &x0.clone().into(), rng)?;
        // What is left without the part of the data, `-grad log p~(x_0)`.
        let of_data = weighted(&points(&x0), &vec![-1.0 / batch as f64; batch]);
        Ok(less(&gradient(&loss.surrogate, &model), &of_data))
    })
}

/// Many runs of an estimator: the mean of `(Z-hat / Z)^sign` is 1.
pub fn unbiased(
    estimator: impl Fn(&mut Stream) -> Result<LogZ>,
    log_z: f64,
    sign: f64,
    rng: &mut Stream,
) -> Result<Finding> {
    let draw = || Ok(vec![(sign * (estimator(rng)?.log_z - log_z)).exp()]);
    Finding::of_draws(RUNS, &[1.0], draw)
}

pub fn z_is<Q: Proposal>(proposal: &Q, rng: &mut Stream) -> Result<LogZ> {
    importance_sampling(&model(), proposal, RUN, &place(), rng)
}

pub fn z_ais<K>(kernel: &K, rng: &mut Stream) -> Result<LogZ>
where
    K: for<'a> Kernel<AnnealingPath<'a, DiagonalGaussian, DiagonalGaussian>>,
{
    AnnealedConfig::new(RUN, 10)?.run(kernel, &model(), &proposal(), &place(), rng)
}

pub fn z_cis<Q: Proposal>(proposal: Q, x0: Tensor<2>, rng: &mut Stream) -> Result<LogZ> {
    conditional_importance_sampling(&model(), proposal, NEGATIVES, x0, rng)
}

pub fn one_over_z_csmc(
    exact: fn(&mut Stream) -> Result<Tensor<2>>,
    rng: &mut Stream,
) -> Result<Finding> {
    let (model, _) = chain(1, rng)?;
    let config = SmcConfig::new(NEGATIVES + 1)?;
    let run =
        |rng: &mut Stream| conditional_smc(&config, &model, &chain_proposal(), exact(rng)?, rng);
    unbiased(run, model.log_z(), -1.0, rng)
}

/// The bridge is consistent, not unbiased: with 3,000 draws its bias is some 1e-4, a tenth of the standard error here.
pub fn bridge_finds_log_z(bridge: fn(&[f64], &[f64]) -> f64, rng: &mut Stream) -> Result<Finding> {
    let log_w =
        |x: Tensor<2>| -> Vec<f64> { points(&x).iter().map(|x| log_w(x, &THETA)).collect() };
    Finding::of_draws(BATCHES, &[log_z(&THETA)], || {
        let of_q = log_w(proposal().sample(2000, &place(), rng));
        let of_p = log_w(model().sample(1000, &place(), rng));
        Ok(vec![bridge(&of_q, &of_p)])
    })
}

pub fn mh_accepts_more(
    metropolis: &AnyContrast,
    barker: &AnyContrast,
    rng: &mut Stream,
) -> Result<Finding> {
    let x0 = data(20_000, rng);
    // The same proposals for both; the ratio by hand, and the probability to move by the library.
    let accepted = |kernel: &AnyContrast, rule: fn(f64) -> f64| {
        let candidates = kernel.propose(&model(), State::new(x0.clone()), &mut rng.clone())?;
        let ratio =
            |row: &Vec<Point>| (log_p_tilde(&row[1], &THETA) - log_p_tilde(&row[0], &THETA)).exp();
        let by_hand: Vec<f64> = rows(&candidates).iter().map(|row| rule(ratio(row))).collect();
        let computed: Vec<f64> = candidates.weights.rows().map(|row| 1.0 - row[0]).collect();
        Ok((Finding::equality(&computed, &by_hand), computed))
    };
    let (is_metropolis, larger) = accepted(metropolis, |ratio| ratio.min(1.0))?;
    let (is_barker, smaller) = accepted(barker, |ratio| ratio / (1.0 + ratio))?;
    Ok(Finding::at_least(&larger, &smaller).and(is_metropolis).and(is_barker))
}
