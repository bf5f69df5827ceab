//! Optimisers by name, from Burn.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{GradientsParams, ModuleOptimizer, SgdConfig};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::adam::OnePassAdam;
use crate::host::to_host;

/// Which optimiser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimiserConfig {
    /// Stochastic gradient descent.
    Sgd,
    /// Stochastic gradient descent with momentum.
    Momentum(f64),
    /// Adam with `beta_1 = 0.9`, `beta_2 = 0.999`, `epsilon = 1e-8`.
    Adam,
}

impl OptimiserConfig {
    /// The optimiser, without any state yet.
    pub fn init(&self) -> ModuleOptimizer {
        match self {
            OptimiserConfig::Sgd => SgdConfig::new().init(),
            OptimiserConfig::Momentum(momentum) => {
                let momentum = MomentumConfig::new().with_momentum(*momentum).with_dampening(0.0);
                SgdConfig::new().with_momentum(Some(momentum)).init()
            }
            OptimiserConfig::Adam => OnePassAdam::new().into(),
        }
    }
}

/// Euclidean norm of the gradient of all parameters together.
pub(crate) fn gradient_norm<M: Module>(module: &M, gradients: &GradientsParams) -> f64 {
    let mut visitor = SquaredNorm { gradients, sum: 0.0 };
    module.visit(&mut visitor);
    visitor.sum.sqrt()
}

/// Multiplies the gradient of all parameters by a factor.
pub(super) fn scale_gradients<M: Module>(
    module: &M,
    gradients: GradientsParams,
    factor: f64,
) -> GradientsParams {
    let mut visitor = Scale { from: gradients, to: GradientsParams::new(), factor };
    module.visit(&mut visitor);
    visitor.to
}

struct SquaredNorm<'a> {
    gradients: &'a GradientsParams,
    sum: f64,
}

impl ModuleVisitor for SquaredNorm<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.get::<D>(param.id) {
            self.sum += to_host(&gradient).iter().map(|g| g * g).sum::<f64>();
        }
    }
}

struct Scale {
    from: GradientsParams,
    to: GradientsParams,
    factor: f64,
}

impl ModuleVisitor for Scale {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.from.remove::<D>(param.id) {
            self.to.register(param.id, gradient * self.factor);
        }
    }
}
