//! What a feature is: a number on the line, a number in one of many cells, or one of a few classes.

use serde::{Deserialize, Serialize};

use super::config::{ArEbmConfig, Conditioner, EnergyForm, Normalisation};
use crate::error::{Error, Result};

/// What values a feature has; a row has one number for each, whatever its kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeatureKind {
    /// Any number; the model has a density of it.
    #[default]
    Continuous,
    /// A number of which only the cell counts, as of an integer: the model has masses of cells.
    ///
    /// What comes later sees the centre of the cell alone, so that a row's mass is a product of masses of cells. In training a value may
    /// be anywhere in its cell, where the caller spreads it, so that the density has no spikes to learn.
    Cells {
        /// Increasing ends of the cells, one more than there are cells, in the units of the features; what is outside belongs to the
        /// outermost cells.
        edges: Vec<f32>,
    },
    /// Any number, but at some values, the atoms, again and again: the model has a mass at each of these, and a density elsewhere.
    Atoms {
        /// The values, increasing, in the units of the features. Only a value that is exactly equal is at an atom.
        values: Vec<f32>,
    },
    /// One of so many classes, numbered from 0.
    ///
    /// The base is a softmax of the network's outputs, which is any distribution there is, so the energy has nothing to add to it: the
    /// factor of a class is its probability.
    Categorical {
        /// Number of classes.
        levels: usize,
    },
}

/// What all features are where nothing is said.
static CONTINUOUS: FeatureKind = FeatureKind::Continuous;

/// Radians of a wave for one unit of a feature: an octave from each to the next.
///
/// Its height is one by the frequency, so that all are equally steep: what changes quickly is then learnt, but no sooner than what
/// changes slowly.
pub(super) fn frequency(wave: usize) -> f32 {
    (wave as f32).exp2()
}

impl FeatureKind {
    /// Number of cells or classes; nothing for a number on the line.
    pub fn num_values(&self) -> Option<usize> {
        match self {
            Self::Continuous | Self::Atoms { .. } => None,
            Self::Cells { edges } => Some(edges.len() - 1),
            Self::Categorical { levels } => Some(*levels),
        }
    }

    /// The number of the cell or class of a value; nothing for a number on the line.
    ///
    /// # Panics
    /// If the value is none of the classes.
    pub fn index_of(&self, value: f32) -> Option<usize> {
        match self {
            Self::Continuous | Self::Atoms { .. } => None,
            Self::Cells { edges } => {
                let inner = &edges[1..edges.len() - 1];
                Some(inner.partition_point(|&edge| edge <= value))
            }
            Self::Categorical { levels } => Some(class_of(value, *levels)),
        }
    }

    /// The value that stands for a cell or class: the centre of the cell, the number of the class.
    ///
    /// # Panics
    /// If there are none, or not so many.
    pub fn value_of(&self, index: usize) -> f32 {
        match self {
            Self::Continuous | Self::Atoms { .. } => panic!("a number on the line has no cells"),
            Self::Cells { .. } => {
                let [low, high] = self.cell(index);
                0.5 * (low + high)
            }
            Self::Categorical { levels } => {
                assert!(index < *levels, "class {index} of {levels}");
                index as f32
            }
        }
    }

    /// The ends of a cell; those of the outermost are where it would end if nothing were outside.
    ///
    /// # Panics
    /// If there are no cells, or not so many.
    pub fn cell(&self, index: usize) -> [f32; 2] {
        match self {
            Self::Cells { edges } => [edges[index], edges[index + 1]],
            _ => panic!("only a number in cells has any"),
        }
    }

    /// What stands for a value: itself, or the centre of its cell.
    pub fn settle(&self, value: f32) -> f32 {
        match self {
            Self::Cells { .. } => self.value_of(self.index_of(value).expect("a cell")),
            _ => value,
        }
    }

    /// Whether it is one of a few classes.
    pub fn is_categorical(&self) -> bool {
        matches!(self, Self::Categorical { .. })
    }

    /// Whether it is a number of which only the cell counts.
    pub fn is_cells(&self) -> bool {
        matches!(self, Self::Cells { .. })
    }

    /// What belongs to a cell: its ends, which go out to infinity for the outermost.
    ///
    /// # Panics
    /// If there are no cells, or not so many.
    pub fn reach(&self, index: usize) -> [f32; 2] {
        let [low, high] = self.cell(index);
        let is_last = self.num_values() == Some(index + 1);
        [
            if index == 0 { f32::NEG_INFINITY } else { low },
            if is_last { f32::INFINITY } else { high },
        ]
    }

    /// Whether it is a number with atoms.
    pub fn is_atoms(&self) -> bool {
        matches!(self, Self::Atoms { .. })
    }

    /// Inputs of the conditioner that tell of it: the number and its waves, or one for each class; beside a number one for each of its atoms.
    fn inputs(&self, waves: usize) -> usize {
        match self {
            Self::Atoms { values } => 1 + 2 * waves + values.len(),
            Self::Categorical { levels } => *levels,
            _ => 1 + 2 * waves,
        }
    }

    fn validate(&self, feature: usize) -> Result<()> {
        match self {
            Self::Continuous => Ok(()),
            Self::Atoms { values } => {
                let increase = values.windows(2).all(|pair| pair[0] < pair[1]);
                if values.is_empty() || !increase || !values.iter().all(|value| value.is_finite()) {
                    let value = format!("{} atoms of feature {feature}", values.len());
                    let expected = "at least one number, each above the one before";
                    return Err(Error::setting("kinds", value, expected));
                }
                Ok(())
            }
            Self::Cells { edges } => {
                let increase = edges.windows(2).all(|pair| pair[0] < pair[1]);
                if edges.len() < 2 || !increase || !edges.iter().all(|edge| edge.is_finite()) {
                    let value = format!("{} edges of cells for feature {feature}", edges.len());
                    let expected = "at least two numbers, each above the one before";
                    return Err(Error::setting("kinds", value, expected));
                }
                Ok(())
            }
            Self::Categorical { levels: 0 } => {
                let value = format!("a feature {feature} of no classes");
                Err(Error::setting("kinds", value, "of at least one class"))
            }
            Self::Categorical { .. } => Ok(()),
        }
    }
}

/// The class that a number stands for.
pub(super) fn class_of(value: f32, levels: usize) -> usize {
    assert!(
        value >= 0.0 && value < levels as f32,
        "{value} is none of {levels} classes, which are numbered from 0"
    );
    value as usize
}

impl ArEbmConfig {
    /// What a feature is.
    pub fn kind(&self, feature: usize) -> &FeatureKind {
        self.kinds.get(feature).unwrap_or(&CONTINUOUS)
    }

    /// Whether a feature is given, and has no factor.
    pub fn is_given(&self, feature: usize) -> bool {
        feature < self.given
    }

    /// Checks that something is left to model, and that the family can do so given the rest in this corner.
    pub(super) fn validate_given(&self) -> Result<()> {
        let given = self.given;
        if given == 0 {
            return Ok(());
        }
        if given >= self.features {
            let expected = format!("below {}, the number of features", self.features);
            return Err(Error::setting("given", given, expected));
        }
        let wanted = [
            ("conditioner", self.conditioner == Conditioner::Masked, ["stagewise", "masked"]),
            ("normalisation", self.normalisation == Normalisation::Local, ["global", "local"]),
        ];
        match wanted.into_iter().find(|(_, holds, _)| !holds) {
            None => Ok(()),
            Some((name, _, [value, expected])) => {
                let expected = format!("{expected} where features are given");
                Err(Error::setting(name, value, expected))
            }
        }
    }

    /// Number of features that are numbers: those of the Gaussian mixture beside the head, in their order.
    pub fn num_numbers(&self) -> usize {
        self.features - self.kinds.iter().filter(|kind| kind.is_categorical()).count()
    }

    /// How many numbers there are before a feature; nothing for one that is no number.
    pub(super) fn number_of(&self, feature: usize) -> Option<usize> {
        if self.kinds.is_empty() {
            return Some(feature);
        }
        let is_number = |feature: usize| !self.kind(feature).is_categorical();
        is_number(feature).then(|| (0..feature).filter(|&before| is_number(before)).count())
    }

    /// Inputs of the conditioner that tell of the first so many features.
    pub(super) fn inputs_before(&self, feature: usize) -> usize {
        (0..feature).map(|feature| self.inputs_of(feature)).sum()
    }

    /// Inputs of the conditioner that tell of a feature.
    fn inputs_of(&self, feature: usize) -> usize {
        let of_cycle = if self.turn(feature).is_some() { 2 } else { 0 };
        self.kind(feature).inputs(self.waves) + of_cycle
    }

    /// The expected sum of squares of all inputs of the conditioner: one of the inputs of a category is 1 at a time, and a sine and a
    /// cosine have one sum of squares together.
    pub(super) fn power_of_inputs(&self) -> f32 {
        let of_waves: f32 = (0..self.waves).map(|wave| frequency(wave).powi(-2)).sum();
        let power =
            |feature| if self.kind(feature).is_categorical() { 1.0 } else { 1.0 + of_waves };
        (0..self.features).map(power).sum::<f32>() + self.cycles.len() as f32
    }

    /// Hands over what the conditioner sees of the first features of a row, input by input.
    pub(super) fn see(&self, row: &[f32], mut input: impl FnMut(usize, f32)) {
        let mut at = 0;
        for (feature, &value) in row.iter().enumerate() {
            let kind = self.kind(feature);
            match kind {
                FeatureKind::Categorical { levels } => {
                    let class = kind.index_of(value).expect("a class");
                    (0..*levels).for_each(|of| input(at + of, f32::from(u8::from(of == class))));
                }
                _ => {
                    let value = kind.settle(value);
                    input(at, value);
                    for wave in 0..self.waves {
                        let frequency = frequency(wave);
                        let (sin, cos) = (frequency * value).sin_cos();
                        input(at + 2 * wave + 1, sin / frequency);
                        input(at + 2 * wave + 2, cos / frequency);
                    }
                    if let FeatureKind::Atoms { values } = kind {
                        let first = at + 1 + 2 * self.waves;
                        for (k, atom) in values.iter().enumerate() {
                            input(first + k, f32::from(u8::from(*atom == value)));
                        }
                    }
                    if let Some(turn) = self.turn(feature) {
                        let (sin, cos) = turn.angle(value).sin_cos();
                        let last = at + self.inputs_of(feature);
                        input(last - 2, sin as f32);
                        input(last - 1, cos as f32);
                    }
                }
            }
            at += self.inputs_of(feature);
        }
    }

    /// The numbers among the first features of a row, as the Gaussian mixture beside the head sees them.
    pub(super) fn numbers<'a>(&'a self, row: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        let numbers = row.iter().enumerate();
        let numbers = numbers.map(|(feature, &value)| (self.kind(feature), value));
        numbers.filter(|(kind, _)| !kind.is_categorical()).map(|(kind, value)| kind.settle(value))
    }

    /// Checks that there is one kind for each feature, and that the family has it in this corner.
    pub(super) fn validate_kinds(&self) -> Result<()> {
        if self.kinds.is_empty() {
            return Ok(());
        }
        if self.kinds.len() != self.features {
            let expected = format!("one for each of {} features, or none", self.features);
            return Err(Error::setting(
                "kinds",
                format!("a list of {}", self.kinds.len()),
                expected,
            ));
        }
        for (feature, kind) in self.kinds.iter().enumerate() {
            kind.validate(feature)?;
        }
        let all_continuous = self.kinds.iter().all(|kind| *kind == FeatureKind::Continuous);
        let wanted = [
            ("conditioner", self.conditioner == Conditioner::Masked, ["stagewise", "masked"]),
            ("energy_form", self.energy_form == EnergyForm::Tilted, ["free", "tilted"]),
            ("normalisation", self.normalisation == Normalisation::Local, ["global", "local"]),
        ];
        match wanted.into_iter().find(|(_, holds, _)| !holds && !all_continuous) {
            None => Ok(()),
            Some((name, _, [value, expected])) => {
                let expected = format!("{expected} where features are integers or categories");
                Err(Error::setting(name, value, expected))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> FeatureKind {
        FeatureKind::Cells { edges: vec![-1.5, -0.5, 0.25, 2.0] }
    }

    fn config(kinds: Vec<FeatureKind>) -> ArEbmConfig {
        ArEbmConfig {
            kinds,
            conditioner: Conditioner::Masked,
            energy_form: EnergyForm::Tilted,
            normalisation: Normalisation::Local,
            ..ArEbmConfig::new(3)
        }
    }

    #[test]
    fn every_value_has_a_cell_and_every_cell_a_value() {
        let kind = cells();
        for (value, index) in [(-9.0, 0), (-1.0, 0), (-0.5, 1), (0.2, 1), (0.25, 2), (7.0, 2)] {
            assert_eq!(kind.index_of(value), Some(index), "{value}");
        }
        for index in 0..3 {
            assert_eq!(kind.index_of(kind.value_of(index)), Some(index));
        }
        assert_eq!(kind.reach(0), [f32::NEG_INFINITY, -0.5]);
        assert_eq!(kind.reach(2), [0.25, f32::INFINITY]);
        let classes = FeatureKind::Categorical { levels: 3 };
        assert_eq!((classes.index_of(2.0), classes.value_of(1)), (Some(2), 1.0));
        assert_eq!(FeatureKind::Continuous.index_of(0.3), None);
    }

    #[test]
    #[should_panic(expected = "3 is none of 3 classes")]
    fn a_class_that_is_not_there_is_no_value() {
        FeatureKind::Categorical { levels: 3 }.index_of(3.0);
    }

    #[test]
    fn a_conditioner_sees_numbers_centres_and_one_input_for_each_class() {
        let config =
            config(vec![FeatureKind::Categorical { levels: 3 }, cells(), FeatureKind::Continuous]);
        assert_eq!([0, 1, 2, 3].map(|feature| config.inputs_before(feature)), [0, 3, 4, 5]);
        let mut seen = Vec::new();
        config.see(&[1.0, 0.1, 0.7], |at, value| seen.push((at, value)));
        assert_eq!(seen, [(0, 0.0), (1, 1.0), (2, 0.0), (3, -0.125), (4, 0.7)]);
        assert_eq!(config.numbers(&[1.0, 0.1]).collect::<Vec<_>>(), [-0.125]);
        assert_eq!([0, 1, 2].map(|feature| config.number_of(feature)), [None, Some(0), Some(1)]);
    }

    #[test]
    fn kinds_that_cannot_be_are_named() {
        let classes = |levels| FeatureKind::Categorical { levels };
        let edges = |edges: &[f32]| FeatureKind::Cells { edges: edges.to_vec() };
        let rest = [FeatureKind::Continuous, FeatureKind::Continuous];
        let fails = |config: ArEbmConfig, says: &str| {
            let error = config.validate().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        };
        let with = |kind| config([vec![kind], rest.to_vec()].concat());
        fails(config(vec![classes(2)]), "one for each of 3 features");
        fails(with(classes(0)), "feature 0 of no classes");
        fails(with(edges(&[1.0])), "1 edges of cells");
        fails(with(edges(&[1.0, 1.0])), "each above the one before");
        fails(with(edges(&[1.0, f32::NAN])), "each above the one before");
        let mut other = with(classes(2));
        other.conditioner = Conditioner::Stagewise;
        fails(other, "conditioner is stagewise, but must be masked");
        let mut other = with(cells());
        other.normalisation = Normalisation::Global;
        fails(other, "must be local where features are integers or categories");
        assert!(with(cells()).validate().is_ok());
        // Numbers on the line are what every corner has.
        let kinds = vec![FeatureKind::Continuous; 3];
        assert!(ArEbmConfig { kinds, ..ArEbmConfig::new(3) }.validate().is_ok());
    }

    #[test]
    fn kinds_are_written_and_read_and_nothing_is_written_without_them() {
        let with =
            config(vec![cells(), FeatureKind::Categorical { levels: 4 }, CONTINUOUS.clone()]);
        let text = serde_json::to_string(&with).unwrap();
        assert!(
            text.contains(r#"{"kind":"categorical","levels":4},{"kind":"continuous"}"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<ArEbmConfig>(&text).unwrap(), with);
        assert!(!serde_json::to_string(&ArEbmConfig::new(3)).unwrap().contains("kinds"));
    }
}
