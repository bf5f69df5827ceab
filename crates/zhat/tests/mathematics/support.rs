//! Targets, kernels and statistics that the tests share.

use zhat::burn::tensor::{Device, Tensor};
use zhat::host::Place;
use zhat::kernel::{Barker, ConditionalImportance, Kernel, Metropolis, Repeat};
use zhat::model::{DiagonalGaussian, FullGaussian, RingModel, UnnormalisedModel};
use zhat::proposal::{
    Component, GaussianMixture, Hamiltonian, Langevin, ModelItself, Path, Proposal, RandomWalk,
};
use zhat::rng::{Stream, Streams};

pub use zhat::testing::{gradient, z_score};

pub fn place() -> Place {
    Place::new(&Device::flex())
}

pub fn rng(seed: u64) -> Stream {
    Streams::new(seed).stream("test", 0, 0)
}

/// A target with exact draws and a few functions whose expectation a kernel must not change.
pub enum Target {
    /// Correlated and off centre.
    Gaussian(FullGaussian),
    /// A thin shell in the plane.
    Ring(RingModel),
    /// Two unequal modes.
    Bimodal(GaussianMixture),
}

pub const RING_RADIUS: f64 = 3.0;
pub const RING_LOG_PRECISION: f64 = 1.2;

impl Target {
    pub fn all() -> Vec<(&'static str, Target)> {
        let device = Device::flex();
        let gaussian = FullGaussian::new(&[1.0, -0.5], &[1.5, 0.7, 0.7, 0.6], &device).unwrap();
        let bimodal = GaussianMixture::new(
            &[
                Component::new(0.3, &[-1.5, 0.5], &[0.5, 0.8]),
                Component::new(0.7, &[1.5, -0.5], &[0.9, 0.4]),
            ],
            &device,
        )
        .unwrap();
        vec![
            ("gaussian", Target::Gaussian(gaussian)),
            ("ring", Target::Ring(RingModel::new(RING_RADIUS, RING_LOG_PRECISION, &device))),
            ("bimodal", Target::Bimodal(bimodal)),
        ]
    }

    /// Exact draws; the ring's radius by rejection from its Gaussian envelope.
    pub fn sample(&self, number: usize, rng: &mut Stream) -> Tensor<2> {
        match self {
            Target::Gaussian(gaussian) => gaussian.sample(number, &place(), rng),
            Target::Bimodal(mixture) => mixture.sample(number, &place(), rng),
            Target::Ring(_) => {
                let std_dev = (-0.5 * RING_LOG_PRECISION).exp();
                // In the plane the radius has density r exp(-(r - mu)^2 / (2 s^2)): accept N(mu, s^2) with r / bound.
                let bound = RING_RADIUS + 6.0 * std_dev;
                let values = (0..number)
                    .flat_map(|_| {
                        let radius = loop {
                            let radius = RING_RADIUS + std_dev * rng.normal();
                            if radius > 0.0 && rng.uniform() * bound < radius {
                                break radius;
                            }
                        };
                        let angle = std::f64::consts::TAU * rng.uniform();
                        [radius * angle.cos(), radius * angle.sin()]
                    })
                    .collect();
                place().tensor(values, [number, 2])
            }
        }
    }
}

impl UnnormalisedModel for Target {
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        match self {
            Target::Gaussian(gaussian) => gaussian.log_p_tilde(x),
            Target::Ring(ring) => ring.log_p_tilde(x),
            Target::Bimodal(mixture) => mixture.log_p_tilde(x),
        }
    }
}

/// Every kernel on vectors, for the table of invariance. A new kernel needs one row here.
pub fn kernels() -> Vec<(&'static str, Box<dyn Kernel<Target>>)> {
    let wide = || DiagonalGaussian::new(&[0.5, 0.0], &[2.0, 1.8], &Device::flex()).unwrap();
    let walk = || RandomWalk::new(0.8).unwrap();
    vec![
        ("cis, J = 1", Box::new(ConditionalImportance::new(wide(), 1).unwrap())),
        ("cis, J = 8", Box::new(ConditionalImportance::new(wide(), 8).unwrap())),
        ("barker, random walk", Box::new(Barker::new(walk(), 1).unwrap())),
        ("barker, 4 pairs", Box::new(Barker::new(walk(), 4).unwrap())),
        ("barker, independent", Box::new(Barker::new(wide(), 2).unwrap())),
        ("barker, Langevin", Box::new(Barker::new(Langevin::new(0.5).unwrap(), 2).unwrap())),
        ("barker, path", Box::new(Barker::new(Path::new(walk(), 3).unwrap(), 2).unwrap())),
        (
            "barker, independent path",
            Box::new(Barker::new(Path::new(wide(), 2).unwrap(), 1).unwrap()),
        ),
        ("metropolis, random walk", Box::new(Metropolis::new(walk(), 1).unwrap())),
        ("metropolis, 4 pairs", Box::new(Metropolis::new(walk(), 4).unwrap())),
        ("metropolis, independent", Box::new(Metropolis::new(wide(), 1).unwrap())),
        ("mala", Box::new(Metropolis::new(Langevin::new(0.6).unwrap(), 1).unwrap())),
        ("hmc", Box::new(Metropolis::new(Hamiltonian::new(0.3, 5).unwrap(), 1).unwrap())),
        (
            "cis, 3 steps",
            Box::new(Repeat::new(ConditionalImportance::new(wide(), 3).unwrap(), 3).unwrap()),
        ),
        ("barker, 3 steps", Box::new(Repeat::new(Barker::new(walk(), 2).unwrap(), 3).unwrap())),
        (
            "metropolis, 3 steps",
            Box::new(Repeat::new(Metropolis::new(walk(), 2).unwrap(), 3).unwrap()),
        ),
    ]
}

/// Keeps the proposal of the ideal case in the table of those that are tested.
pub fn model_itself_kernel() -> impl Kernel<FullGaussian> {
    ConditionalImportance::new(ModelItself, 3).unwrap()
}

pub fn assert_close(computed: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(computed.len(), expected.len(), "{what}");
    for (i, (c, e)) in computed.iter().zip(expected).enumerate() {
        assert!((c - e).abs() <= tolerance * (1.0 + e.abs()), "{what} [{i}]: {c} against {e}");
    }
}
