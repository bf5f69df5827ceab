//! A feature that comes round again, as the hour of a day does: what comes later sees where in its cycle it is.

use burn::tensor::{Tensor, activation::sigmoid};
use serde::{Deserialize, Serialize};

use super::config::{ArEbmConfig, Conditioner};
use crate::error::{Error, Result};

/// Where in its cycle a feature is: an angle, of which a masked conditioner sees sine and cosine beside the feature itself.
///
/// The factor of the feature is what it was: a density on the line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cycle {
    /// The feature.
    pub feature: usize,
    /// How the angle follows from its value.
    #[serde(flatten)]
    pub turn: Turn,
}

/// The angle of a value, up to where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "turn", rename_all = "kebab-case")]
pub enum Turn {
    /// As many radians for every unit of the feature: a line that is wound up.
    Line {
        /// Radians for a unit.
        radians: f64,
    },
    /// `2 pi sigma(scale x + shift)`: the whole line is one turn.
    Circle {
        /// What the feature is multiplied with.
        scale: f64,
        /// What is added to it.
        shift: f64,
    },
}

impl Turn {
    /// The angle of a value.
    pub fn angle(&self, x: f32) -> f64 {
        let x = f64::from(x);
        match self {
            Self::Line { radians } => radians * x,
            Self::Circle { scale, shift } => {
                std::f64::consts::TAU / (1.0 + (-(scale * x + shift)).exp())
            }
        }
    }

    /// The same of many values, with a graph.
    pub(super) fn angles(&self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Line { radians } => x * *radians,
            Self::Circle { scale, shift } => sigmoid(x * *scale + *shift) * std::f64::consts::TAU,
        }
    }
}

impl ArEbmConfig {
    /// How a feature comes round again, if it does.
    pub(super) fn turn(&self, feature: usize) -> Option<Turn> {
        self.cycles.iter().find(|cycle| cycle.feature == feature).map(|cycle| cycle.turn)
    }

    /// Checks that cycles are those of numbers, one for each at most, and that there is a conditioner that sees them.
    pub(super) fn validate_cycles(&self) -> Result<()> {
        for (at, cycle) in self.cycles.iter().enumerate() {
            let feature = cycle.feature;
            let twice = self.cycles[..at].iter().any(|other| other.feature == feature);
            let numbers = match cycle.turn {
                Turn::Line { radians } => [radians, 0.0],
                Turn::Circle { scale, shift } => [scale, shift],
            };
            let is_turn = numbers[0] > 0.0 && numbers.iter().all(|number| number.is_finite());
            let is_number = feature < self.features && !self.kind(feature).is_categorical();
            if twice || !is_turn || !is_number || self.conditioner == Conditioner::Stagewise {
                let expected =
                    "one for each number at most, with a rate above 0, and a masked conditioner";
                let value = format!("one of feature {feature}");
                return Err(Error::setting("cycles", value, expected));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ar::{EnergyForm, FeatureKind, Normalisation};

    fn config(cycles: Vec<Cycle>) -> ArEbmConfig {
        ArEbmConfig {
            cycles,
            conditioner: Conditioner::Masked,
            energy_form: EnergyForm::Tilted,
            normalisation: Normalisation::Local,
            ..ArEbmConfig::new(3)
        }
    }

    #[test]
    fn a_conditioner_sees_sine_and_cosine_of_a_cycle_after_the_waves() {
        let turn = Turn::Line { radians: 5.0 };
        let mut config = config(vec![Cycle { feature: 1, turn }]);
        config.waves = 1;
        assert_eq!([0, 1, 2, 3].map(|feature| config.inputs_before(feature)), [0, 3, 8, 11]);
        let seen = |row: &[f32]| {
            let mut seen = vec![f32::NAN; config.inputs_before(row.len())];
            config.see(row, |at, value| seen[at] = value);
            seen
        };
        let (here, there) =
            (seen(&[0.3, 0.2, 1.0]), seen(&[0.3, 0.2 + 0.4 * std::f32::consts::PI, 1.0]));
        assert_eq!(here.len(), 11);
        assert!((here[6] - 1.0f32.sin()).abs() < 1e-6 && (here[7] - 1.0f32.cos()).abs() < 1e-6);
        // A turn later all is as it was, but the number itself and its wave.
        assert!((here[6] - there[6]).abs() < 1e-5 && (here[7] - there[7]).abs() < 1e-5);
        assert!((here[3] - there[3]).abs() > 1.0);
    }

    #[test]
    fn the_whole_line_is_one_turn_of_a_circle() {
        let turn = Turn::Circle { scale: 2.0, shift: 0.5 };
        assert!(turn.angle(-40.0).abs() < 1e-9);
        assert!((turn.angle(40.0) - std::f64::consts::TAU).abs() < 1e-9);
        assert!((turn.angle(-0.25) - std::f64::consts::PI).abs() < 1e-9);
    }

    #[test]
    fn a_cycle_of_words_or_of_nothing_is_refused() {
        let turn = Turn::Line { radians: 5.0 };
        assert!(config(vec![Cycle { feature: 1, turn }]).validate().is_ok());
        let twice = vec![Cycle { feature: 1, turn }; 2];
        let beyond = vec![Cycle { feature: 3, turn }];
        let still = vec![Cycle { feature: 0, turn: Turn::Line { radians: 0.0 } }];
        for wrong in [twice, beyond, still] {
            assert!(config(wrong).validate().is_err());
        }
        let mut of_words = config(vec![Cycle { feature: 0, turn }]);
        of_words.kinds = vec![
            FeatureKind::Categorical { levels: 2 },
            FeatureKind::Continuous,
            FeatureKind::Continuous,
        ];
        assert!(of_words.validate().is_err());
        let mut stagewise = config(vec![Cycle { feature: 0, turn }]);
        stagewise.conditioner = Conditioner::Stagewise;
        assert!(stagewise.validate().is_err());
    }
}
