//! Who may see whom in a masked conditioner: every unit has a degree, the number of features it may depend on.
//!
//! Units are in the order of their degrees, so those that the base of a feature may see are the first so many. Weights
//! between units that may not see each other are zero from the start and have no gradient.

use super::config::{ArEbmConfig, Conditioner};

/// Degrees of the units of one width, the same in every layer.
#[derive(Debug, Clone)]
pub struct Degrees {
    features: usize,
    /// The lowest degree: whoever sees less than all that is given sees too little.
    lowest: usize,
    width: usize,
    /// Inputs that tell of the features before each, and of all of them.
    inputs: Vec<usize>,
    /// Outputs that belong to the features before each, and to all of them.
    outputs: Vec<usize>,
}

impl Degrees {
    /// Of a masked conditioner; a stagewise one has none.
    pub fn new(config: &ArEbmConfig) -> Option<Self> {
        (config.conditioner == Conditioner::Masked).then(|| Self {
            features: config.features,
            lowest: config.given.max(1),
            width: config.proposal.width,
            inputs: (0..=config.features).map(|before| config.inputs_before(before)).collect(),
            outputs: (0..=config.features).map(|before| config.outputs_before(before)).collect(),
        })
    }

    /// From 1, or from all that is given, to one less than the features.
    fn of_unit(&self, unit: usize) -> usize {
        self.lowest + unit * (self.features - self.lowest) / self.width
    }

    /// Units that the base of a feature may see, which are the first.
    pub fn units_before(&self, stage: usize) -> usize {
        (0..self.width).take_while(|&unit| self.of_unit(unit) <= stage).count()
    }

    /// `[inputs, width]`: a unit sees as many features as its degree says.
    pub fn first(&self) -> Vec<f32> {
        self.mask(self.inputs[self.features], self.width, |input, unit| {
            input < self.inputs[self.of_unit(unit)]
        })
    }

    /// `[width, width]`: a unit sees units that may depend on no more than itself.
    pub fn inner(&self) -> Vec<f32> {
        self.mask(self.width, self.width, |from, to| self.of_unit(from) <= self.of_unit(to))
    }

    /// `[width, outputs]`
    pub fn last(&self) -> Vec<f32> {
        self.mask(self.width, self.outputs[self.features], |unit, output| {
            output >= self.outputs[self.of_unit(unit)]
        })
    }

    fn mask(&self, rows: usize, columns: usize, sees: impl Fn(usize, usize) -> bool) -> Vec<f32> {
        let cell = |row: usize, column: usize| if sees(row, column) { 1.0 } else { 0.0 };
        (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .map(|(row, column)| cell(row, column))
            .collect()
    }
}
