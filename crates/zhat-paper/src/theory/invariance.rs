//! Claims that a kernel leaves `p_theta` invariant, for one step and for three, and that persistent chains stay there.

use burn::tensor::{Device, Tensor};
use zhat::Result;
use zhat::criterion::{Criterion, Persistent};
use zhat::host::to_host;
use zhat::kernel::{Barker, ConditionalImportance, ConditionalSmc, Kernel, Metropolis, Repeat};
use zhat::model::{DiagonalGaussian, FullGaussian, GaussianChain, UnnormalisedModel};
use zhat::proposal::{
    Component, GaussianMixture, Hamiltonian, Langevin, Path, Proposal, RandomWalk,
};
use zhat::rng::Stream;
use zhat::testing::{compare, invariance};

use super::Finding;
use super::setting::{chain, chain_proposal, data, model, place};

/// Chains that are moved.
const NUMBER: usize = 100_000;

/// Any kernel on points of the plane.
pub type Transition = Box<dyn Kernel<dyn UnnormalisedModel>>;

claims! {
    "cis-invariant": "The CIS kernel leaves p_theta invariant, k = 1 and 3: means of x^a y^b do not change",
        "a chain that never moves; no log q",
        |rng| invariant(cis, rng);
    "cnce-invariant": "The CNCE (Barker) kernel leaves p_theta invariant, k = 1 and 3",
        "a chain that never moves; a walk that drifts",
        |rng| invariant(|| Ok(Box::new(Barker::new(walk()?, 2)?)), rng);
    "mh-invariant": "The Metropolis-Hastings kernel leaves p_theta invariant, k = 1 and 3",
        "a chain that never moves; a walk that drifts",
        |rng| invariant(|| Ok(Box::new(Metropolis::new(walk()?, 2)?)), rng);
    "mala-invariant": "MALA leaves p_theta invariant, k = 1 and 3",
        "a chain that never moves; no q(x|x') / q(x'|x)",
        |rng| invariant(|| Ok(Box::new(Metropolis::new(Langevin::new(0.6)?, 1)?)), rng);
    "hmc-invariant": "HMC leaves p_theta invariant, k = 1 and 3",
        "a chain that never moves; no kinetic energy",
        |rng| invariant(|| Ok(Box::new(Metropolis::new(Hamiltonian::new(0.3, 5)?, 1)?)), rng);
    "time-reversal-invariant": "The time-reversal kernel leaves p_theta invariant, k = 1 and 3",
        "a chain that never moves; a walk that drifts",
        |rng| invariant(|| Ok(Box::new(Barker::new(Path::new(walk()?, 3)?, 2)?)), rng);
    "csmc-invariant": "The conditional SMC kernel leaves p_theta invariant, k = 1 and 3",
        "a chain that never moves; the density of another proposal",
        |rng| csmc_invariant(|| Ok(Box::new(ConditionalSmc::new(chain_proposal(), 4)?)), rng);
    "persistent-invariant": "Persistent chains that have reached p_theta stay there, whatever the data",
        "a chain that never moves; chains that start from the data at every step; a walk that drifts",
        |rng| persistent_invariant(&mut Persistent::new(Metropolis::new(walk()?, 2)?, 1)?, rng);
}

fn cis() -> Result<Transition> {
    let wide = DiagonalGaussian::new(&[0.5, 0.0], &[2.0, 1.8], &Device::flex())?;
    Ok(Box::new(ConditionalImportance::new(wide, 4)?))
}

fn walk() -> Result<RandomWalk> {
    RandomWalk::new(0.8)
}

/// Moves exact draws of a correlated Gaussian by one step, and of a bimodal mixture by one and by three.
pub fn invariant(kernel: fn() -> Result<Transition>, rng: &mut Stream) -> Result<Finding> {
    let device = Device::flex();
    let gaussian = FullGaussian::new(&[1.0, -0.5], &[1.5, 0.7, 0.7, 0.6], &device)?;
    let mixture = GaussianMixture::new(
        &[
            Component::new(0.3, &[-1.5, 0.5], &[0.5, 0.8]),
            Component::new(0.7, &[1.5, -0.5], &[0.9, 0.4]),
        ],
        &device,
    )?;
    let x0 = gaussian.sample(NUMBER, &place(), rng);
    let one = steps(kernel, &gaussian as &dyn UnnormalisedModel, 1, &x0, rng)?;
    let x0 = mixture.sample(NUMBER, &place(), rng);
    let mixture = &mixture as &dyn UnnormalisedModel;
    Ok(one.and(steps(kernel, mixture, 1, &x0, rng)?).and(steps(kernel, mixture, 3, &x0, rng)?))
}

/// Moves exact draws of a sequential model by one step and by three.
pub fn csmc_invariant(
    kernel: fn() -> Result<Box<dyn Kernel<GaussianChain>>>,
    rng: &mut Stream,
) -> Result<Finding> {
    let (model, x0) = chain(NUMBER / 2, rng)?;
    Ok(steps(kernel, &model, 1, &x0, rng)?.and(steps(kernel, &model, 3, &x0, rng)?))
}

fn steps<M: ?Sized>(
    kernel: fn() -> Result<Box<dyn Kernel<M>>>,
    model: &M,
    num_steps: usize,
    x0: &Tensor<2>,
    rng: &mut Stream,
) -> Result<Finding> {
    let kernel = Repeat::new(kernel()?, num_steps)?;
    Ok(Finding::invariance(&invariance(&kernel, model, x0.clone(), rng)?))
}

/// Chains that start at draws of the model, three steps of training on other data later.
pub fn persistent_invariant(
    criterion: &mut dyn Criterion<dyn UnnormalisedModel>,
    rng: &mut Stream,
) -> Result<Finding> {
    let model = model();
    let x0 = model.sample(NUMBER, &place(), rng);
    let mut loss = criterion.loss(&model, &x0.clone().into(), rng)?;
    for _ in 0..3 {
        loss = criterion.loss(&model, &data(NUMBER, rng).into(), rng)?;
    }
    // Where the chains of a step start is where those of the step before have gone.
    let after = to_host(&loss.candidates.x.narrow(1, 0, 1));
    Ok(Finding::invariance(&compare(&to_host(&x0), &after, 2)))
}
