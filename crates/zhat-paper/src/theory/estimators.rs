//! Claims about expectations: what is unbiased, what is not, and by which factor.

use burn::tensor::{Device, Tensor};
use zhat::Result;
use zhat::criterion::ImportanceSampling;
use zhat::host::{Place, to_host};
use zhat::kernel::{Barker, ConditionalImportance, Contrast, State};
use zhat::model::{DiagonalGaussian, UnnormalisedModel};
use zhat::proposal::{ModelItself, Proposal};
use zhat::rng::Stream;
use zhat::smc::{Smc, SmcConfig};
use zhat::weights::{barker, log_mean_exp, metropolis};

use super::setting::{
    MEAN, PROPOSAL_MEAN, PROPOSAL_STD_DEV, STD_DEV, chain, gradient_at, gradient_of_log_z, log_z,
    place, proposal, weighted,
};
use super::{Check, Named};

/// Draws behind each expectation.
const NUMBER: usize = 400_000;
/// Candidates beside the data point.
const NEGATIVES: usize = 4;

pub fn checks() -> Vec<Named> {
    vec![
        ("cis-gradient-unbiased", cis_gradient_unbiased),
        ("is-gradient-biased", is_gradient_biased),
        ("cis-lemma", cis_lemma),
        ("rnce-factor", rnce_factor),
        ("cnce-factor", cnce_factor),
        ("adaptive-unbiased", adaptive_unbiased),
        ("z-is-unbiased", z_is_unbiased),
        ("z-smc-unbiased", z_smc_unbiased),
        ("one-over-z-cis-unbiased", one_over_z_cis_unbiased),
        ("one-over-z-csmc-unbiased", one_over_z_csmc_unbiased),
        ("mh-accepts-more", mh_accepts_more),
    ]
}

/// The model without a graph: expectations need no autodiff here.
fn model() -> Result<DiagonalGaussian> {
    DiagonalGaussian::new(&MEAN, &STD_DEV, &Device::flex())
}

fn model_gradient(x: &[f64]) -> [f64; 4] {
    gradient_at(x, &MEAN, &STD_DEV)
}

fn cis_gradient_unbiased(id: &str, rng: &mut Stream) -> Result<Check> {
    let model = model()?;
    let x0 = model.sample(NUMBER, &place(), rng);
    let kernel = ConditionalImportance::new(proposal(), NEGATIVES)?;
    let candidates = kernel.propose(&model, State::new(x0), rng)?;
    let claim = "E[grad log Z_CIS] = grad log Z when x0 ~ p_theta (Prop. 3.2)";
    let gradients = weighted(&candidates, model_gradient);
    Ok(Check::expectation(id, claim, &gradients, &gradient_of_log_z()))
}

fn is_gradient_biased(id: &str, rng: &mut Stream) -> Result<Check> {
    let model = model()?;
    let x0 = model.sample(NUMBER, &place(), rng);
    let contrast = ImportanceSampling::new(proposal(), NEGATIVES)?;
    let candidates = contrast.propose(&model, State::new(x0), rng)?;
    let claim = "E[grad log Z_IS] is not grad log Z (section 2.1)";
    Ok(Check::bias(id, claim, &weighted(&candidates, model_gradient), &gradient_of_log_z()))
}

fn cis_lemma(id: &str, rng: &mut Stream) -> Result<Check> {
    let model = model()?;
    let columns = NEGATIVES + 1;
    let (exact, noise) = (
        to_host(&model.sample(NUMBER, &place(), rng)),
        to_host(&proposal().sample(NUMBER * columns, &place(), rng)),
    );
    // A draw of the model at a uniform place among draws of q; then look at a fixed place i.
    let mut x = noise;
    for row in 0..NUMBER {
        let at = (row * columns + rng.index(columns)) * 2;
        x[at..at + 2].copy_from_slice(&exact[row * 2..row * 2 + 2]);
    }
    let all: Tensor<2> = place().tensor(x.clone(), [NUMBER * columns, 2]);
    let log_p_tilde = to_host(&model.log_p_tilde(all.clone()));
    let log_q = to_host(&proposal().log_prob(all));
    let log_w: Vec<f64> = log_p_tilde.iter().zip(log_q).map(|(p, q)| p - q).collect();
    let fixed = 1;
    let samples: Vec<Vec<f64>> = (0..NUMBER)
        .map(|row| {
            let one_over_z = (log_z() - log_mean_exp(&log_w[row * columns..][..columns])).exp();
            let x = &x[(row * columns + fixed) * 2..][..2];
            [x[0], x[1], x[0] * x[0], x[1] * x[1]].map(|f| f * one_over_z).to_vec()
        })
        .collect();
    let [a, b] = PROPOSAL_MEAN;
    let [s, t] = PROPOSAL_STD_DEV;
    let expected = [a, b, a * a + s * s, b * b + t * t];
    let claim = "E[f(x_i) / Z_CIS] = E_q[f] / Z for any f and i, here times Z (lemma of App. A.4)";
    Ok(Check::expectation(id, claim, &samples, &expected))
}

/// Gradients of a criterion at one data point, many times over, against a multiple of `-grad log p(x_0)`.
fn factor_check<K: Contrast<DiagonalGaussian>>(
    id: &str,
    claim: &str,
    kernel: &K,
    factor: f64,
    rng: &mut Stream,
) -> Result<Check> {
    let model = model()?;
    let point = [1.7, -1.9];
    let x0 = place().tensor(point.repeat(NUMBER), [NUMBER, 2]);
    let candidates = kernel.propose(&model, State::new(x0), rng)?;
    let (positive, log_z) = (model_gradient(&point), gradient_of_log_z());
    let gradients: Vec<Vec<f64>> = weighted(&candidates, model_gradient)
        .into_iter()
        .map(|row| row.iter().zip(positive).map(|(n, p)| n - p).collect())
        .collect();
    let expected: Vec<f64> = (0..4).map(|i| factor * (log_z[i] - positive[i])).collect();
    Ok(Check::expectation(id, claim, &gradients, &expected))
}

fn rnce_factor(id: &str, rng: &mut Stream) -> Result<Check> {
    let kernel = ConditionalImportance::new(ModelItself, NEGATIVES)?;
    let claim = "q = p_theta makes the RNCE gradient J/(J+1) of the likelihood's (Prop. 5.1)";
    let factor = NEGATIVES as f64 / (NEGATIVES + 1) as f64;
    factor_check(id, claim, &kernel, factor, rng)
}

fn cnce_factor(id: &str, rng: &mut Stream) -> Result<Check> {
    let kernel = Barker::new(ModelItself, NEGATIVES)?;
    let claim = "q = p_theta makes the CNCE gradient 1/2 of the likelihood's (Prop. 5.2)";
    factor_check(id, claim, &kernel, 0.5, rng)
}

fn adaptive_unbiased(id: &str, rng: &mut Stream) -> Result<Check> {
    let model = model()?;
    let x0 = model.sample(NUMBER, &place(), rng);
    let kernel = ConditionalImportance::new(proposal(), NEGATIVES)?;
    let candidates = kernel.propose(&model, State::new(x0), rng)?;
    // -grad_phi log q_phi in means and scales; the scales have the normaliser's 1/s besides.
    let proposal_gradient = |x: &[f64]| {
        let [a, b, c, d] = gradient_at(x, &PROPOSAL_MEAN, &PROPOSAL_STD_DEV);
        [-a, -b, 1.0 / PROPOSAL_STD_DEV[0] - c, 1.0 / PROPOSAL_STD_DEV[1] - d]
    };
    let expected: Vec<f64> = (0..4)
        .map(|at| {
            let i = at % 2;
            let (shift, scale) = (MEAN[i] - PROPOSAL_MEAN[i], PROPOSAL_STD_DEV[i]);
            match at {
                0 | 1 => -shift / scale.powi(2),
                _ => 1.0 / scale - (STD_DEV[i].powi(2) + shift * shift) / scale.powi(3),
            }
        })
        .collect();
    let claim = "The adaptive proposal's gradient is unbiased when x0 ~ p_theta (Prop. 5.3)";
    Ok(Check::expectation(id, claim, &weighted(&candidates, proposal_gradient), &expected))
}

fn z_is_unbiased(id: &str, rng: &mut Stream) -> Result<Check> {
    let model = model()?;
    let x = proposal().sample(NUMBER, &place(), rng);
    let log_p_tilde = to_host(&model.log_p_tilde(x.clone()));
    let log_q = to_host(&proposal().log_prob(x));
    let samples: Vec<Vec<f64>> =
        log_p_tilde.iter().zip(log_q).map(|(p, q)| vec![(p - q - log_z()).exp()]).collect();
    Ok(Check::expectation(id, "E[Z_IS] / Z = 1 (section 2.1)", &samples, &[1.0]))
}

fn one_over_z_cis_unbiased(id: &str, rng: &mut Stream) -> Result<Check> {
    let model = model()?;
    let x0 = model.sample(NUMBER, &place(), rng);
    let kernel = ConditionalImportance::new(proposal(), NEGATIVES)?;
    let candidates = kernel.propose(&model, State::new(x0), rng)?;
    let samples: Vec<Vec<f64>> = candidates
        .log_w_tilde
        .rows()
        .map(|row| vec![(log_z() - log_mean_exp(row)).exp()])
        .collect();
    let claim = "E[1 / Z_CIS] = 1 / Z when x0 ~ p_theta, here times Z (lemma with f = 1)";
    Ok(Check::expectation(id, claim, &samples, &[1.0]))
}

/// `(Z-hat / Z)^sign` of every row.
fn relative(run: &Smc, log_z: f64, sign: f64) -> Vec<Vec<f64>> {
    let log_z_hats = to_host(&run.log_z_hat);
    log_z_hats.iter().map(|log| vec![(sign * (log - log_z)).exp()]).collect()
}

fn z_smc_unbiased(id: &str, rng: &mut Stream) -> Result<Check> {
    let (model, proposal) = chain();
    let model = burn::module::Module::valid(&model);
    let config = SmcConfig::new(NEGATIVES + 1)?;
    let run =
        Smc::plain(&config, &model, &proposal, NUMBER / 4, &Place::new(&Device::flex()), rng)?;
    let samples = relative(&run, model.log_z(), 1.0);
    Ok(Check::expectation(id, "E[Z_SMC] / Z = 1 (App. B.2)", &samples, &[1.0]))
}

fn one_over_z_csmc_unbiased(id: &str, rng: &mut Stream) -> Result<Check> {
    let (model, proposal) = chain();
    let model = burn::module::Module::valid(&model);
    let x0 = model.exact(&Device::flex())?.sample(NUMBER / 4, &place(), rng);
    let run = Smc::conditional(&SmcConfig::new(NEGATIVES + 1)?, &model, &proposal, x0, rng)?;
    let samples = relative(&run, model.log_z(), -1.0);
    let claim = "E[1 / Z_CSMC] = 1 / Z when x0 ~ p_theta, here times Z (App. B.2)";
    Ok(Check::expectation(id, claim, &samples, &[1.0]))
}

fn mh_accepts_more(id: &str, rng: &mut Stream) -> Result<Check> {
    let ratios: Vec<f64> =
        (0..NUMBER).map(|_| 20.0 * rng.normal()).chain([-1e3, 0.0, 1e3]).collect();
    let larger: Vec<f64> = ratios.iter().map(|&ratio| metropolis(ratio)).collect();
    let smaller: Vec<f64> = ratios.iter().map(|&ratio| barker(ratio)).collect();
    let claim = "The MH acceptance probability is never below Barker's (section 5.3)";
    Ok(Check::at_least(id, claim, &larger, &smaller))
}
