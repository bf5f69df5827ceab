//! The models and proposals that the checks share, with their gradients in closed form.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};
use zhat::host::{Place, to_host};
use zhat::kernel::Candidates;
use zhat::model::{DiagonalGaussian, GaussianChain, GaussianChainProposal};

/// Mean of the model `p_theta`, an unnormalised Gaussian.
pub const MEAN: [f64; 2] = [0.5, -1.0];
/// Standard deviations of the model.
pub const STD_DEV: [f64; 2] = [1.2, 0.8];
/// Mean of the proposal `q`.
pub const PROPOSAL_MEAN: [f64; 2] = [0.0, -0.4];
/// Standard deviations of the proposal.
pub const PROPOSAL_STD_DEV: [f64; 2] = [1.8, 1.5];

/// Where draws are made.
pub fn place() -> Place {
    Place::new(&Device::flex())
}

/// The model, with a graph.
pub fn model() -> DiagonalGaussian {
    DiagonalGaussian::new(&MEAN, &STD_DEV, &Device::flex().autodiff()).expect("valid")
}

/// The proposal, wider than the model.
pub fn proposal() -> DiagonalGaussian {
    DiagonalGaussian::new(&PROPOSAL_MEAN, &PROPOSAL_STD_DEV, &Device::flex()).expect("valid")
}

/// Exact `log Z` of the model, `log(2 pi) + sum_i log s_i`.
pub fn log_z() -> f64 {
    (2.0 * std::f64::consts::PI).ln() + STD_DEV.iter().map(|s| s.ln()).sum::<f64>()
}

/// Exact `grad log Z` of the model in means and scales: `0` and `1 / s`.
pub fn gradient_of_log_z() -> [f64; 4] {
    [0.0, 0.0, 1.0 / STD_DEV[0], 1.0 / STD_DEV[1]]
}

/// `grad log p~(x)` in means and scales: `(x - mu) / s^2` and `(x - mu)^2 / s^3`.
pub fn gradient_at(x: &[f64], mean: &[f64; 2], std_dev: &[f64; 2]) -> [f64; 4] {
    let z = [x[0] - mean[0], x[1] - mean[1]];
    [
        z[0] / std_dev[0].powi(2),
        z[1] / std_dev[1].powi(2),
        z[0].powi(2) / std_dev[0].powi(3),
        z[1].powi(2) / std_dev[1].powi(3),
    ]
}

/// `sum_j w_j g(x_j)` of every row.
pub fn weighted(candidates: &Candidates, g: impl Fn(&[f64]) -> [f64; 4]) -> Vec<Vec<f64>> {
    let [_, columns, dimension] = candidates.x.dims();
    let x = to_host(&candidates.x);
    let rows = x.chunks_exact(columns * dimension).zip(candidates.weights.rows());
    rows.map(|(row, weights)| {
        let mut sum = vec![0.0; 4];
        for (x, weight) in row.chunks_exact(dimension).zip(weights) {
            sum.iter_mut().zip(g(x)).for_each(|(sum, g)| *sum += weight * g);
        }
        sum
    })
    .collect()
}

/// A sequential model with a known normaliser, and a proposal that fits it badly.
pub fn chain() -> (GaussianChain, GaussianChainProposal) {
    let model = GaussianChain::new(0.9, 0.8, 0.8, 4, &Device::flex().autodiff());
    (model, GaussianChainProposal { coupling: 0.5, std_dev: 1.2 })
}

/// The gradient of a scalar in all parameters of a module.
pub fn gradient<M: Module>(loss: &Tensor<1>, module: &M) -> Vec<f64> {
    struct Collect<'a>(&'a Gradients, Vec<f64>);
    impl ModuleVisitor for Collect<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let gradient = param.val().grad(self.0).expect("every parameter has a gradient");
            self.1.extend(to_host(&gradient));
        }
    }
    let gradients = loss.backward();
    let mut collect = Collect(&gradients, Vec::new());
    module.visit(&mut collect);
    collect.1
}
