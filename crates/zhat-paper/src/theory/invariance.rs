//! Claims that a kernel leaves `p_theta` invariant, for one step and for three, and that persistent chains stay there.

use burn::tensor::Device;
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

use super::setting::{chain, chain_proposal, data, model, place};
use super::{Claim, Finding};

/// Chains that are moved.
const NUMBER: usize = 100_000;

/// Any kernel on points of the plane.
pub type Transition = Box<dyn Kernel<dyn UnnormalisedModel>>;

pub fn claims() -> Vec<Claim> {
    vec![
        Claim {
            id: "cis-invariant",
            claim: "The CIS kernel leaves p_theta invariant: means of x^a y^b do not change",
            twin: "a chain that never moves; no log q",
            check: |rng| invariant(cis()?, 1, rng),
        },
        Claim {
            id: "cis-invariant-3",
            claim: "Three steps of the CIS kernel leave p_theta invariant",
            twin: "a chain that never moves; no log q",
            check: |rng| invariant(cis()?, 3, rng),
        },
        Claim {
            id: "cnce-invariant",
            claim: "The CNCE (Barker) kernel leaves p_theta invariant",
            twin: "a chain that never moves; a walk that drifts",
            check: |rng| invariant(barker()?, 1, rng),
        },
        Claim {
            id: "cnce-invariant-3",
            claim: "Three steps of the CNCE (Barker) kernel leave p_theta invariant",
            twin: "a chain that never moves; a walk that drifts",
            check: |rng| invariant(barker()?, 3, rng),
        },
        Claim {
            id: "mh-invariant",
            claim: "The Metropolis-Hastings kernel leaves p_theta invariant",
            twin: "a chain that never moves; a walk that drifts",
            check: |rng| invariant(metropolis()?, 1, rng),
        },
        Claim {
            id: "mh-invariant-3",
            claim: "Three steps of the Metropolis-Hastings kernel leave p_theta invariant",
            twin: "a chain that never moves; a walk that drifts",
            check: |rng| invariant(metropolis()?, 3, rng),
        },
        Claim {
            id: "mala-invariant",
            claim: "MALA leaves p_theta invariant",
            twin: "a chain that never moves; no q(x|x') / q(x'|x)",
            check: |rng| invariant(mala()?, 1, rng),
        },
        Claim {
            id: "mala-invariant-3",
            claim: "Three steps of MALA leave p_theta invariant",
            twin: "a chain that never moves; no q(x|x') / q(x'|x)",
            check: |rng| invariant(mala()?, 3, rng),
        },
        Claim {
            id: "hmc-invariant",
            claim: "HMC leaves p_theta invariant",
            twin: "a chain that never moves; no kinetic energy",
            check: |rng| invariant(hmc()?, 1, rng),
        },
        Claim {
            id: "hmc-invariant-3",
            claim: "Three steps of HMC leave p_theta invariant",
            twin: "a chain that never moves; no kinetic energy",
            check: |rng| invariant(hmc()?, 3, rng),
        },
        Claim {
            id: "time-reversal-invariant",
            claim: "The time-reversal kernel leaves p_theta invariant",
            twin: "a chain that never moves; a walk that drifts",
            check: |rng| invariant(reversal()?, 1, rng),
        },
        Claim {
            id: "csmc-invariant",
            claim: "The conditional SMC kernel leaves p_theta invariant",
            twin: "a chain that never moves; the density of another proposal",
            check: |rng| {
                chain_invariant(Box::new(ConditionalSmc::new(chain_proposal(), 4)?), 1, rng)
            },
        },
        Claim {
            id: "csmc-invariant-3",
            claim: "Three steps of the conditional SMC kernel leave p_theta invariant",
            twin: "a chain that never moves; the density of another proposal",
            check: |rng| {
                chain_invariant(Box::new(ConditionalSmc::new(chain_proposal(), 4)?), 3, rng)
            },
        },
        Claim {
            id: "persistent-invariant",
            claim: "Persistent chains that have reached p_theta stay there, whatever the data",
            twin: "a chain that never moves; chains that start from the data at every step; a walk that drifts",
            check: |rng| persistent_invariant(&mut Persistent::new(metropolis()?, 1)?, rng),
        },
    ]
}

fn cis() -> Result<Transition> {
    let wide = DiagonalGaussian::new(&[0.5, 0.0], &[2.0, 1.8], &Device::flex())?;
    Ok(Box::new(ConditionalImportance::new(wide, 4)?))
}

fn barker() -> Result<Transition> {
    Ok(Box::new(Barker::new(RandomWalk::new(0.8)?, 2)?))
}

fn metropolis() -> Result<Transition> {
    Ok(Box::new(Metropolis::new(RandomWalk::new(0.8)?, 2)?))
}

fn mala() -> Result<Transition> {
    Ok(Box::new(Metropolis::new(Langevin::new(0.6)?, 1)?))
}

fn hmc() -> Result<Transition> {
    Ok(Box::new(Metropolis::new(Hamiltonian::new(0.3, 5)?, 1)?))
}

fn reversal() -> Result<Transition> {
    Ok(Box::new(Barker::new(Path::new(RandomWalk::new(0.8)?, 3)?, 2)?))
}

/// Moves exact draws of a correlated Gaussian and of a bimodal mixture.
pub fn invariant(kernel: Transition, num_steps: usize, rng: &mut Stream) -> Result<Finding> {
    let device = Device::flex();
    let gaussian = FullGaussian::new(&[1.0, -0.5], &[1.5, 0.7, 0.7, 0.6], &device)?;
    let mixture = GaussianMixture::new(
        &[
            Component::new(0.3, &[-1.5, 0.5], &[0.5, 0.8]),
            Component::new(0.7, &[1.5, -0.5], &[0.9, 0.4]),
        ],
        &device,
    )?;
    let kernel = Repeat::new(kernel, num_steps)?;
    let targets: [(&dyn UnnormalisedModel, _); 2] = [
        (&gaussian, gaussian.sample(NUMBER, &place(), rng)),
        (&mixture, mixture.sample(NUMBER, &place(), rng)),
    ];
    let [a, b] = targets.map(|(model, x0)| invariance(&kernel, model, x0, rng));
    Ok(Finding::invariance(&a?).and(Finding::invariance(&b?)))
}

/// Moves exact draws of a sequential model.
pub fn chain_invariant(
    kernel: Box<dyn Kernel<GaussianChain>>,
    num_steps: usize,
    rng: &mut Stream,
) -> Result<Finding> {
    let (model, x0) = chain(NUMBER / 2, rng)?;
    Ok(Finding::invariance(&invariance(&Repeat::new(kernel, num_steps)?, &model, x0, rng)?))
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
