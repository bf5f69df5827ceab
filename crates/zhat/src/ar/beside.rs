//! A Gaussian mixture put beside networks that were trained without it.
//!
//! Both are fitted by themselves, as members are, and the base is their mean in a share that is the same for all rows. A head that has
//! a mixture beside it takes its shares from outputs of the network; here these are constants.

use super::config::{ArEbmConfig, Conditioner};
use super::engine::values;
use super::model::ArEbm;
use super::network::{bias_of, constant_linear};
use crate::gaussian_mixture::GaussianMixture;

/// An output of the widened last layer: one that was there, or a constant.
#[derive(Clone, Copy)]
enum Output {
    From(usize),
    Constant(f32),
}

impl Output {
    fn weight(self, before: &[f32]) -> f32 {
        match self {
            Self::From(at) => before[at],
            Self::Constant(_) => 0.0,
        }
    }

    fn bias(self, before: &[f32]) -> f32 {
        match self {
            Self::From(at) => before[at],
            Self::Constant(value) => value,
        }
    }
}

impl ArEbmConfig {
    /// Whether a Gaussian mixture can be put beside a head that was trained without one.
    pub fn has_room_for_gaussian_mixture(&self) -> bool {
        let is_alone = self.num_parts() == 1 && !self.gaussian_mixture;
        self.conditioner == Conditioner::Masked && is_alone && self.num_numbers() > 0
    }

    /// The outputs of a last layer with shares, from those of one without.
    fn with_shares(&self, shares: [f64; 2]) -> Vec<Output> {
        let mut outputs = Vec::new();
        for stage in self.given..self.features {
            let [first, end] = [stage, stage + 1].map(|stage| self.outputs_before(stage));
            // Atoms come after the shares; classes have none.
            let after = match self.number_of(stage) {
                Some(_) => first + self.context + self.number_outputs(),
                None => end,
            };
            outputs.extend((first..after).map(Output::From));
            if self.number_of(stage).is_some() {
                outputs.extend(shares.map(|share| Output::Constant(share.ln() as f32)));
            }
            outputs.extend((after..end).map(Output::From));
        }
        outputs
    }
}

impl ArEbm {
    /// With a Gaussian mixture beside the head of every number: `q = (1 - share) q_networks + share q_mixture`, column by column.
    ///
    /// # Panics
    /// Unless there is [room](ArEbmConfig::has_room_for_gaussian_mixture) for it, or if the mixture is not of those features that are
    /// numbers.
    pub fn beside_gaussian_mixture(mut self, mixture: GaussianMixture, share: f64) -> Self {
        assert!(
            self.shape.has_room_for_gaussian_mixture(),
            "a masked conditioner, a head of one part"
        );
        let outputs = self.shape.with_shares([1.0 - share, share]);
        self.shape.gaussian_mixture = true;
        for member in self.members_mut() {
            let last = &member.last;
            let (weight, bias) = (values(&last.weight), values(bias_of(last)));
            let weights_of = |row: &[f32]| -> Vec<f32> {
                outputs.iter().map(|output| output.weight(row)).collect()
            };
            let weight = weight.chunks_exact(bias.len()).flat_map(weights_of).collect();
            let bias = outputs.iter().map(|output| output.bias(&bias)).collect();
            member.last = constant_linear(weight, bias, &last.weight.val().device());
        }
        self.with_gaussian_mixture(mixture)
    }
}
