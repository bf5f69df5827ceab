//! The models and proposals that the checks share, with densities and gradients written out by hand.
//!
//! What a check expects comes from here and from nowhere else, so that a mistake of the library cannot be on both sides.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use zhat::Result;
use zhat::criterion::Criterion;
use zhat::host::{Place, to_host};
use zhat::kernel::{Candidates, Contrast};
use zhat::model::{DiagonalGaussian, GaussianChain, GaussianChainProposal};
use zhat::proposal::Proposal;
use zhat::rng::Stream;

/// A point of the plane, where the model lives.
pub type Point = [f64; 2];

/// Any contrast on the model.
pub type AnyContrast = dyn Contrast<DiagonalGaussian>;
/// Any criterion of the model.
pub type AnyCriterion = dyn Criterion<DiagonalGaussian>;

/// The parameters of the model `p_theta`, an unnormalised Gaussian: two means, two standard deviations.
pub const THETA: [f64; 4] = [0.5, -1.0, 1.2, 0.8];
/// The same of the proposal `q`, which is wider.
pub const PHI: [f64; 4] = [0.0, -0.4, 1.8, 1.5];
/// The sequential model: coupling, location and pull.
pub const CHAIN: [f64; 3] = [0.9, 0.8, 0.8];
/// Its proposal: coupling and standard deviation.
pub const CHAIN_PROPOSAL: [f64; 2] = [0.5, 1.2];
/// Its number of stages.
pub const STAGES: usize = 4;

/// Where draws are made.
pub fn place() -> Place {
    Place::new(&Device::flex())
}

/// The model, with a graph.
pub fn attached_model() -> DiagonalGaussian {
    DiagonalGaussian::new(&THETA[..2], &THETA[2..], &Device::flex().autodiff()).expect("valid")
}

/// The model, without.
pub fn model() -> DiagonalGaussian {
    attached_model().valid()
}

/// The proposal.
pub fn proposal() -> DiagonalGaussian {
    DiagonalGaussian::new(&PHI[..2], &PHI[2..], &Device::flex()).expect("valid")
}

/// Data that are not from the model, as in training.
pub fn data(rows: usize, rng: &mut Stream) -> Tensor<2> {
    proposal().sample(rows, &place(), rng)
}

/// `log p~(x) = -1/2 sum_i ((x_i - mu_i) / s_i)^2` by hand.
pub fn log_p_tilde(x: &Point, theta: &[f64]) -> f64 {
    (0..2).map(|i| -0.5 * ((x[i] - theta[i]) / theta[2 + i]).powi(2)).sum()
}

/// `log q(x)` by hand, normalised.
pub fn log_q(x: &Point) -> f64 {
    log_p_tilde(x, &PHI) - log_z(&PHI)
}

/// `log p~(x) - log q(x)` by hand.
pub fn log_w(x: &Point, theta: &[f64]) -> f64 {
    log_p_tilde(x, theta) - log_q(x)
}

/// `log Z` of a Gaussian in the plane, `log(2 pi) + sum_i log s_i`.
pub fn log_z(theta: &[f64]) -> f64 {
    (2.0 * std::f64::consts::PI * theta[2] * theta[3]).ln()
}

/// `grad log Z` of the model in means and scales: `0` and `1 / s`.
pub fn gradient_of_log_z() -> [f64; 4] {
    [0.0, 0.0, 1.0 / THETA[2], 1.0 / THETA[3]]
}

/// `grad log p~(x)` in means and scales: `(x - mu) / s^2` and `(x - mu)^2 / s^3`.
pub fn gradient_at(x: &Point, theta: &[f64; 4]) -> [f64; 4] {
    std::array::from_fn(|at| {
        let (z, s) = (x[at % 2] - theta[at % 2], theta[2 + at % 2]);
        if at < 2 { z / (s * s) } else { z * z / (s * s * s) }
    })
}

/// The points of a tensor, in its order.
pub fn points<const D: usize>(x: &Tensor<D>) -> Vec<Point> {
    to_host(x).chunks_exact(2).map(|x| [x[0], x[1]]).collect()
}

/// The candidates of every row.
pub fn rows(candidates: &Candidates) -> Vec<Vec<Point>> {
    let columns = candidates.x.dims()[1];
    points(&candidates.x).chunks_exact(columns).map(<[Point]>::to_vec).collect()
}

/// One gradient less another.
pub fn less(first: &[f64], second: &[f64]) -> Vec<f64> {
    first.iter().zip(second).map(|(first, second)| first - second).collect()
}

/// `sum_j w_j grad log p~(x_j)` of a row.
pub fn weighted(points: &[Point], weights: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; 4];
    for (x, weight) in points.iter().zip(weights) {
        sum.iter_mut().zip(gradient_at(x, &THETA)).for_each(|(sum, g)| *sum += weight * g);
    }
    sum
}

/// The weights of CIS by hand, `w_j = (p~(x_j) / q(x_j)) / sum_l p~(x_l) / q(x_l)`.
pub fn weights_by_hand(points: &[Point]) -> Vec<f64> {
    let w: Vec<f64> = points.iter().map(|x| log_w(x, &THETA).exp()).collect();
    let sum: f64 = w.iter().sum();
    w.iter().map(|w| w / sum).collect()
}

/// A sequential model with a known normaliser, with a graph.
pub fn attached_chain() -> GaussianChain {
    GaussianChain::new(CHAIN[0], CHAIN[1], CHAIN[2], STAGES, &Device::flex().autodiff())
}

/// The same without, and exact draws of it.
pub fn chain(number: usize, rng: &mut Stream) -> Result<(GaussianChain, Tensor<2>)> {
    let model = attached_chain().valid();
    let x = model.exact(&Device::flex())?.sample(number, &place(), rng);
    Ok((model, x))
}

/// A proposal that fits it badly.
pub fn chain_proposal() -> GaussianChainProposal {
    GaussianChainProposal { coupling: CHAIN_PROPOSAL[0], std_dev: CHAIN_PROPOSAL[1] }
}
