//! Claims that a kernel leaves `p_theta` invariant, for one step and for three.

use burn::tensor::{Device, Tensor};
use zhat::Result;
use zhat::host::to_host;
use zhat::kernel::{
    Barker, ConditionalImportance, ConditionalSmc, Contrast, Kernel, Metropolis, Repeat, State,
};
use zhat::model::{DiagonalGaussian, FullGaussian, UnnormalisedModel};
use zhat::proposal::{
    Component, GaussianMixture, Hamiltonian, Langevin, Path, Proposal, RandomWalk,
};
use zhat::rng::Stream;

use super::setting::{chain, place};
use super::{Check, Named};

/// Chains that are moved.
const NUMBER: usize = 100_000;

pub fn checks() -> Vec<Named> {
    vec![
        ("cis-invariant", |id, rng| both(id, "CIS", &cis()?, 1, rng)),
        ("cis-invariant-3", |id, rng| both(id, "CIS", &cis()?, 3, rng)),
        ("cnce-invariant", |id, rng| both(id, "CNCE (Barker)", &barker()?, 1, rng)),
        ("cnce-invariant-3", |id, rng| both(id, "CNCE (Barker)", &barker()?, 3, rng)),
        ("mh-invariant", |id, rng| both(id, "Metropolis-Hastings", &metropolis()?, 1, rng)),
        ("mh-invariant-3", |id, rng| both(id, "Metropolis-Hastings", &metropolis()?, 3, rng)),
        ("mala-invariant", |id, rng| both(id, "MALA", &mala()?, 1, rng)),
        ("mala-invariant-3", |id, rng| both(id, "MALA", &mala()?, 3, rng)),
        ("hmc-invariant", |id, rng| both(id, "HMC", &hmc()?, 1, rng)),
        ("hmc-invariant-3", |id, rng| both(id, "HMC", &hmc()?, 3, rng)),
        ("time-reversal-invariant", |id, rng| both(id, "time-reversal", &reversal()?, 1, rng)),
        ("csmc-invariant", |id, rng| conditional_smc(id, 1, rng)),
        ("csmc-invariant-3", |id, rng| conditional_smc(id, 3, rng)),
    ]
}

fn cis() -> Result<ConditionalImportance<DiagonalGaussian>> {
    let wide = DiagonalGaussian::new(&[0.5, 0.0], &[2.0, 1.8], &Device::flex())?;
    ConditionalImportance::new(wide, 4)
}

fn barker() -> Result<Barker<RandomWalk>> {
    Barker::new(RandomWalk::new(0.8)?, 2)
}

fn metropolis() -> Result<Metropolis<RandomWalk>> {
    Metropolis::new(RandomWalk::new(0.8)?, 2)
}

fn mala() -> Result<Metropolis<Langevin>> {
    Metropolis::new(Langevin::new(0.6)?, 1)
}

fn hmc() -> Result<Metropolis<Hamiltonian>> {
    Metropolis::new(Hamiltonian::new(0.3, 5)?, 1)
}

fn reversal() -> Result<Barker<Path<RandomWalk>>> {
    Barker::new(Path::new(RandomWalk::new(0.8)?, 3)?, 2)
}

/// Moves exact draws of a correlated Gaussian and of a bimodal mixture; the means of six functions must not change.
fn both<K>(id: &str, name: &str, kernel: &K, num_steps: usize, rng: &mut Stream) -> Result<Check>
where
    K: Kernel<FullGaussian> + Kernel<GaussianMixture> + Clone,
{
    let device = Device::flex();
    let gaussian = FullGaussian::new(&[1.0, -0.5], &[1.5, 0.7, 0.7, 0.6], &device)?;
    let mixture = GaussianMixture::new(
        &[
            Component::new(0.3, &[-1.5, 0.5], &[0.5, 0.8]),
            Component::new(0.7, &[1.5, -0.5], &[0.9, 0.4]),
        ],
        &device,
    )?;
    let kernel = Repeat::new(kernel.clone(), num_steps)?;
    let mut changes = changes_of(&kernel, &gaussian, gaussian.sample(NUMBER, &place(), rng), rng)?;
    let other = changes_of(&kernel, &mixture, mixture.sample(NUMBER, &place(), rng), rng)?;
    for (row, other) in changes.iter_mut().zip(other) {
        row.extend(other);
    }
    Ok(Check::expectation(id, &claim(name, num_steps), &changes, &[0.0; 12]))
}

fn conditional_smc(id: &str, num_steps: usize, rng: &mut Stream) -> Result<Check> {
    let (model, proposal) = chain();
    let model = burn::module::Module::valid(&model);
    let x0 = model.exact(&Device::flex())?.sample(NUMBER / 2, &place(), rng);
    let kernel = Repeat::new(ConditionalSmc::new(proposal, 4)?, num_steps)?;
    let changes = changes_of(&kernel, &model, x0, rng)?;
    Ok(Check::expectation(id, &claim("conditional SMC", num_steps), &changes, &[0.0; 6]))
}

fn claim(name: &str, num_steps: usize) -> String {
    format!(
        "The {name} kernel leaves p_theta invariant, k = {num_steps}: means of x^a y^b do not change"
    )
}

/// What one transition changes in the first two coordinates, their squares, their product and a half-space.
fn changes_of<M, K>(kernel: &K, model: &M, x0: Tensor<2>, rng: &mut Stream) -> Result<Vec<Vec<f64>>>
where
    M: UnnormalisedModel,
    K: Contrast<M>,
{
    let dimension = x0.dims()[1];
    let before = to_host(&x0);
    let after = to_host(&kernel.propose(model, State::new(x0), rng)?.select(rng).x);
    let statistics = |x: &[f64]| {
        let half_space = if x[0] > 0.4 { 1.0 } else { 0.0 };
        [x[0], x[1], x[0] * x[0], x[1] * x[1], x[0] * x[1], half_space]
    };
    Ok(before
        .chunks_exact(dimension)
        .zip(after.chunks_exact(dimension))
        .map(|(b, a)| statistics(a).iter().zip(statistics(b)).map(|(a, b)| a - b).collect())
        .collect())
}
