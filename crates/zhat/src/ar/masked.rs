//! Who may see whom in a masked conditioner: every unit has a degree, the number of features it may depend on.
//!
//! Units are in the order of their degrees, so those that the base of a feature may see are the first so many. Weights
//! between units that may not see each other are zero from the start and have no gradient.

use std::ops::Range;

use super::config::{ArEbmConfig, Conditioner};
use super::panels::STRIP;

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

/// The units that any unit of a panel may see, and those that may see any of it: the rest of a product is zeros.
#[derive(Debug, Clone)]
pub struct Reach {
    width: usize,
    /// For each panel so many units, the first.
    sees: Vec<usize>,
    /// For each panel the units from this one on, which begins a panel.
    is_seen_from: Vec<usize>,
}

impl Reach {
    /// Every unit sees every other.
    pub fn all(width: usize) -> Self {
        let panels = width.div_ceil(STRIP);
        Self { width, sees: vec![width; panels], is_seen_from: vec![0; panels] }
    }

    /// What a panel of units sees.
    pub fn seen_by(&self, panel: usize) -> Range<usize> {
        0..self.sees[panel]
    }

    /// What sees a panel of units.
    pub fn seeing(&self, panel: usize) -> Range<usize> {
        self.is_seen_from[panel]..self.width
    }
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

    /// Which units take part in a product of two layers of units.
    pub fn reach(&self) -> Reach {
        let panels = |unit: fn(usize) -> usize| (0..self.width.div_ceil(STRIP)).map(unit);
        let last = |panel_end: usize| panel_end.min(self.width) - 1;
        let sees = panels(|panel| (panel + 1) * STRIP)
            .map(|end| self.units_before(self.of_unit(last(end))))
            .collect();
        let is_seen_from = panels(|panel| panel * STRIP)
            .map(|first| self.units_before(self.of_unit(first) - 1) / STRIP * STRIP)
            .collect();
        Reach { width: self.width, sees, is_seen_from }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ar::NetworkSize;

    #[test]
    fn all_that_a_mask_lets_through_is_within_reach() {
        for (features, width) in [(2, 16), (3, 40), (7, 64), (17, 32), (30, 100)] {
            let size = NetworkSize { width, ..ArEbmConfig::new(features).proposal };
            let config = ArEbmConfig {
                conditioner: Conditioner::Masked,
                proposal: size,
                ..ArEbmConfig::new(features)
            };
            let degrees = Degrees::new(&config).expect("a masked conditioner");
            let (reach, inner) = (degrees.reach(), degrees.inner());
            let sees = |from: usize, to: usize| inner[from * width + to] != 0.0;
            for panel in 0..width.div_ceil(STRIP) {
                let units = panel * STRIP..width.min((panel + 1) * STRIP);
                for other in 0..width {
                    let seen = units.clone().any(|unit| sees(other, unit));
                    assert_eq!(seen, reach.seen_by(panel).contains(&other), "{panel} {other}");
                    let seeing = units.clone().any(|unit| sees(unit, other));
                    assert!(!seeing || reach.seeing(panel).contains(&other), "{panel} {other}");
                }
            }
        }
    }
}
