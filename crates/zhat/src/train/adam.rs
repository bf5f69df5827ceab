//! Adam in one pass over the numbers, where they are in this machine's memory.
//!
//! Written with tensors, a step of Adam goes a dozen times through all parameters, each time into new memory; for networks of
//! the size that tables ask for that takes as long as their gradient. The moments are kept as Burn's own optimiser keeps them, and
//! every number goes through the same operations in the same order: the bits are the same, but for numbers too small to matter.

use burn::optim::{
    Adam, AdamConfig, AdamState, LearningRate, Optimizer, RecordState, StateSink, StateSource,
};
use burn::tensor::{DType, Device, Tensor, TensorData};

use crate::simd::dispatch;

const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.999;
const EPSILON: f32 = 1e-8;
/// Gradients and first moments below this move a parameter by less than `TINY / EPSILON`, 1e-7 of the learning rate, and are taken as zero.
/// Those of a unit that is never active would otherwise decay to numbers so small that the processor takes a hundred times as long
/// for each, and stay there: steps of a long run became twice as slow.
const TINY: f32 = 1e-15;

/// Adam with `beta_1 = 0.9`, `beta_2 = 0.999`, `epsilon = 1e-8`.
#[derive(Clone)]
pub(super) struct OnePassAdam {
    /// For other devices, for other types, and for the first step.
    of_tensors: Adam,
}

impl OnePassAdam {
    pub fn new() -> Self {
        let config = AdamConfig::new().with_beta_1(BETA_1).with_beta_2(BETA_2);
        Self { of_tensors: config.with_epsilon(EPSILON).build() }
    }
}

/// The moments of Burn's own Adam, but for where they are read to: this machine's memory, from where a step takes them along to its
/// device. Burn would take the first device that is built in, which this machine may not have.
#[derive(Clone)]
pub(super) struct Moments<const D: usize>(AdamState<D>);

impl<const D: usize> RecordState for Moments<D> {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        self.0.state_flatten(prefix, out);
    }

    fn state_unflatten(prefix: &str, from: &mut StateSource, _: &Device) -> Option<Self> {
        AdamState::state_unflatten(prefix, from, &Device::flex()).map(Self)
    }
}

impl Optimizer for OnePassAdam {
    type State<const D: usize> = Moments<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<Moments<D>>,
    ) -> (Tensor<D>, Option<Moments<D>>) {
        let device = tensor.device();
        let is_here = device == Device::flex() && tensor.dtype() == DType::F32;
        let mut state = match state {
            Some(Moments(state)) if is_here => state,
            state => {
                let state = state.map(|Moments(state)| state);
                let (tensor, state) = self.of_tensors.step(lr, tensor, grad, state);
                return (tensor, state.map(Moments));
            }
        };
        let momentum = &mut state.momentum;
        momentum.time += 1;
        let time = momentum.time as i32;
        let correction = (1.0 - BETA_2.powi(time)).sqrt();
        let factor = correction / (1.0 - BETA_1.powi(time));
        let epsilon = EPSILON * correction;
        let rate = lr as f32;
        let (mut values, gradient) = (tensor.into_data(), grad.into_data());
        let mut first = taken(&mut momentum.moment_1, &device);
        let mut second = taken(&mut momentum.moment_2, &device);
        let gradient = gradient.as_slice::<f32>().expect("32-bit floats");
        let (first_moments, second_moments) = (numbers(&mut first), numbers(&mut second));
        let values_now = numbers(&mut values);
        one_pass(values_now, gradient, first_moments, second_moments, factor, epsilon, rate);
        momentum.moment_1 = Tensor::from_data(first, &device);
        momentum.moment_2 = Tensor::from_data(second, &device);
        (Tensor::from_data(values, &device), Some(Moments(state)))
    }

    fn to_device<const D: usize>(Moments(state): Moments<D>, device: &Device) -> Moments<D> {
        Moments(Adam::to_device(state, device))
    }
}

dispatch! {
    /// Moves the values by `rate * factor * first / (sqrt(second) + epsilon)`, with the moments after the gradient.
    ///
    /// No multiplication is fused with an addition, so that the bits are those of tensors.
    pub fn one_pass<const FMA: bool>(
        values: &mut [f32],
        gradient: &[f32],
        first: &mut [f32],
        second: &mut [f32],
        factor: f32,
        epsilon: f32,
        rate: f32,
    ) {
        let moments = first.iter_mut().zip(second);
        for ((value, &gradient), (first, second)) in values.iter_mut().zip(gradient).zip(moments) {
            let gradient = without_tiny(gradient, TINY);
            *first = without_tiny(*first * BETA_1 + gradient * (1.0 - BETA_1), TINY);
            let square = *second * BETA_2 + gradient * gradient * (1.0 - BETA_2);
            *second = without_tiny(square, TINY * TINY);
            *value -= *first * factor / (second.sqrt() + epsilon) * rate;
        }
    }
}

/// A number, or zero if it is smaller than this.
#[inline(always)]
fn without_tiny(number: f32, tiny: f32) -> f32 {
    if number.abs() < tiny { 0.0 } else { number }
}

/// The numbers of a tensor, which is left without any.
fn taken<const D: usize>(tensor: &mut Tensor<D>, device: &Device) -> TensorData {
    std::mem::replace(tensor, Tensor::empty([0; D], device)).into_data()
}

fn numbers(data: &mut TensorData) -> &mut [f32] {
    data.as_mut_slice().expect("32-bit floats")
}

#[cfg(test)]
mod tests {
    use burn::tensor::Tensor;

    use super::*;
    use crate::host::to_host;
    use crate::rng::Streams;

    /// Parameters after some steps with gradients that differ from step to step and number to number.
    fn after_steps(optimiser: impl Optimizer) -> Vec<f64> {
        let device = Device::flex();
        let mut rng = Streams::new(1).stream("test", 0, 0);
        let mut draw = || {
            Tensor::<2>::from_data(
                TensorData::new((0..35).map(|_| rng.normal() as f32).collect::<Vec<_>>(), [5, 7]),
                &device,
            )
        };
        let (mut values, mut state) = (draw(), None);
        for step in 0..50 {
            let rate = 0.1 / f64::from(1 + step);
            (values, state) = optimiser.step(rate, values, draw(), state);
        }
        to_host(&values)
    }

    #[test]
    fn the_bits_are_those_of_burns_own_adam() {
        let burns = AdamConfig::new().with_epsilon(EPSILON).build();
        assert_eq!(after_steps(OnePassAdam::new()), after_steps(burns));
        let other = AdamConfig::new().with_epsilon(1e-3).build();
        assert_ne!(after_steps(OnePassAdam::new()), after_steps(other));
    }

    #[test]
    fn moments_without_a_gradient_decay_to_zero_and_not_to_numbers_that_are_slow() {
        let device = Device::flex();
        let one = || Tensor::<1>::from_data([1.0f32], &device);
        let (mut value, mut state) = (one(), None);
        for step in 0..2000 {
            let gradient = if step < 2 { one() } else { one() * 0.0 };
            (value, state) = OnePassAdam::new().step(0.1, value, gradient, state);
        }
        let momentum = state.expect("a state").0.momentum;
        assert_eq!(to_host(&momentum.moment_1), [0.0]);
        assert!(to_host(&momentum.moment_2)[0] > 1e-5, "it decays slowly");
        assert!(to_host(&value)[0].is_finite());
    }
}
