//! The mean of a model's parameters over its last steps, which is steadier than the model of any one of them.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

/// Parameters hardly move in so few steps that each of them need be in the mean.
const EVERY: u64 = 8;

/// The mean after a step, of about this share of the steps so far.
///
/// It weighs a step the less the longer ago it was. What it forgets grows with the run, so that no length need be known, and
/// the start is soon forgotten.
pub(super) fn average<M: Module>(mean: M, model: &M, step: u64, share: f64) -> M {
    if !step.is_multiple_of(EVERY) {
        return mean;
    }
    let weight = (EVERY as f64 / (share * step as f64)).min(1.0);
    if weight == 1.0 {
        return model.clone();
    }
    let mut parameters = Parameters(GradientsParams::new());
    model.visit(&mut parameters);
    mean.map(&mut Towards { parameters: parameters.0, weight })
}

/// The parameters by their names.
struct Parameters(GradientsParams);

impl ModuleVisitor for Parameters {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.register(param.id, param.val().inner());
    }
}

/// Moves each parameter of a mean towards that of a model.
struct Towards {
    parameters: GradientsParams,
    weight: f64,
}

impl ModuleMapper for Towards {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let value = self.parameters.remove::<D>(param.id).expect("the same model");
        let weight = self.weight;
        param.map(|mean| {
            // Burn's graph remembers all that is computed within it until it is walked back.
            let (mean, is_autodiff) = (mean.clone().inner(), mean.is_autodiff());
            let mean = mean.clone() + (value - mean) * weight;
            if is_autodiff { mean.autodiff() } else { mean }
        })
    }
}

#[cfg(test)]
mod tests {
    use burn::nn::{Linear, LinearConfig};
    use burn::tensor::{Device, Tensor};

    use super::*;
    use crate::host::to_host;

    /// A model with one number that is the step.
    fn at(linear: &Linear, step: u64) -> Linear {
        struct Set(f32);
        impl ModuleMapper for Set {
            fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
                param.map(|value| value.zeros_like() + self.0)
            }
        }
        linear.clone().map(&mut Set(step as f32))
    }

    #[test]
    fn the_mean_is_of_about_the_last_share_of_the_steps() {
        let model = LinearConfig::new(1, 1).with_bias(false).init(&Device::flex());
        for (share, last) in [(0.1, 800), (0.3, 4000)] {
            let mean = (1..=last)
                .fold(at(&model, 1), |mean, step| average(mean, &at(&model, step), step, share));
            let found = to_host(&mean.weight.val())[0];
            // Of a straight line it lags behind by the share, f: the solution of m' = (t - m) / (f t) is t / (1 + f).
            let expected = last as f64 / (1.0 + share);
            assert!((found / expected - 1.0).abs() < 0.01, "{share}: {found} {expected}");
        }
    }

    #[test]
    fn what_does_not_change_is_its_own_mean() {
        let model = LinearConfig::new(3, 2).init(&Device::flex());
        let mean = (1..100).fold(model.clone(), |mean, step| average(mean, &model, step, 0.2));
        assert_eq!(to_host(&mean.weight.val()), to_host(&model.weight.val()));
    }
}
