//! Every cell of a row given those before it: its log-density, and the share of the conditional's mass below it.

use rayon::prelude::*;

use super::base::Base;
use super::config::EnergyForm;
use super::defence::Defence;
use super::evaluate::{Evaluator, Memory, TILE};
use super::forward::{confining, factors};
use super::normalise::NODES;
use super::quadrature::legendre_nodes;

/// How far out a normal is integrated, in standard deviations: 6e-7 of its mass are further.
const REACH: f32 = 5.0;

/// What a normalised model says of the cells of rows.
///
/// # Shapes
/// - both: `[n, features]`, row-major
#[derive(Debug, Clone, PartialEq)]
pub struct CellScores {
    /// `log p(x_d | x_<d)`: over a row they sum to its log-density. 0 of what is given.
    pub log_p: Vec<f64>,
    /// `P(X_d <= x_d | x_<d)`, the probability integral transform: for rows of the model itself, independent and uniform
    /// (Rosenblatt, 1952). What is counted has the share up to its class, in the order of their numbers, or its cell, and with it. What is given has NaN.
    pub below: Vec<f64>,
}

impl Evaluator {
    /// What the model says of every cell of rows given those before it; nothing where its factors are not normalised, as then it
    /// says nothing of a cell without those after it. Zeros for those that a watch that is stopped has left no time for.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major
    pub fn cells(&self, x: &[f32]) -> Option<CellScores> {
        let features = self.features();
        assert!(x.len().is_multiple_of(features), "whole rows of {features} features");
        if !self.is_normalised() {
            return None;
        }
        let tiles: Vec<CellScores> = self.pool.install(|| {
            x.par_chunks(TILE * features)
                .map(|x| self.with_memory(|memory| self.cells_of_tile(memory, x)))
                .collect()
        });
        Some(CellScores {
            log_p: tiles.iter().flat_map(|tile| &tile.log_p).copied().collect(),
            below: tiles.iter().flat_map(|tile| &tile.below).copied().collect(),
        })
    }

    /// `log p(x_d | x_<d)` alone, which takes less time.
    pub(super) fn log_factors(&self, x: &[f32]) -> Vec<f64> {
        let tiles: Vec<Vec<f64>> = self.pool.install(|| {
            x.par_chunks(TILE * self.features())
                .map(|x| self.with_memory(|memory| self.log_p_of_tile(memory, x, |_, _| {})))
                .collect()
        });
        tiles.concat()
    }

    fn cells_of_tile(&self, memory: &mut Memory, x: &[f32]) -> CellScores {
        let mut below = vec![f64::NAN; x.len()];
        let log_p = self.log_p_of_tile(memory, x, |memory, stage| {
            for (row, share) in self.shares_below(memory, stage).into_iter().enumerate() {
                below[row * self.features() + stage] = share;
            }
        });
        CellScores { log_p, below }
    }

    /// Stage by stage, each of which may be looked at.
    fn log_p_of_tile(
        &self,
        memory: &mut Memory,
        x: &[f32],
        mut look: impl FnMut(&mut Memory, usize),
    ) -> Vec<f64> {
        let features = self.features();
        let mut found = vec![0.0; x.len()];
        if self.watch.is_stopped() {
            return found;
        }
        memory.forward.begin(x, features, 1, true, Defence::default());
        self.see_given(memory);
        for stage in self.given()..features {
            self.advance(memory, stage, &mut []);
            for (row, log_p) in memory.pass.log_p.iter().enumerate() {
                found[row * features + stage] = f64::from(*log_p);
            }
            look(memory, stage);
        }
        self.watch.advance(x.len());
        found
    }

    /// The share of the mass of every row's factor that is below its feature, after the stage was advanced.
    fn shares_below(&self, memory: &mut Memory, stage: usize) -> Vec<f64> {
        let Memory { forward, conditioning, pass } = memory;
        let engine = &self.engine;
        let (mut features, confinement) = (pass.x.clone(), engine.config.confinement());
        let kind = engine.config.kind(stage);
        let mut base = Base::at(&engine.config, stage);
        if kind.is_categorical() {
            let up_to = |(row, &class): (usize, &f32)| {
                let prefix = conditioning.prefix_of(row);
                base.read(&pass.head_raw, prefix, conditioning.known(engine, prefix, stage));
                let classes = (0..=class as usize).map(|class| class as f32);
                classes.map(|class| f64::from(base.log_density(class)).exp()).sum::<f64>().min(1.0)
            };
            return features.iter().enumerate().map(up_to).collect();
        }
        let index = |x: f32| kind.index_of(x).expect("a cell");
        // The last cell goes out to infinity, and nothing is above it.
        let is_last: Vec<bool> = match kind.is_cells() {
            true => features.iter().map(|&x| kind.num_values() == Some(index(x) + 1)).collect(),
            false => vec![false; features.len()],
        };
        if kind.is_cells() {
            features.iter_mut().for_each(|x| *x = kind.cell(index(*x))[1]);
        }
        let mut shares = Vec::with_capacity(features.len());
        let (mut nodes, mut sizes) = (Vec::new(), Vec::new());
        let (mut at, mut prefixes) = (Vec::new(), Vec::new());
        let mut terms: Vec<(f64, bool)> = Vec::new();
        for (row, &x) in features.iter().enumerate() {
            let prefix = conditioning.prefix_of(row);
            base.read(&pass.head_raw, prefix, conditioning.known(engine, prefix, stage));
            nodes.clear();
            base.nodes_around(x, &mut nodes);
            for node in &nodes {
                let mut log_w = f64::from(node.weight.max(f32::MIN_POSITIVE)).ln();
                if !self.is_proposal && engine.config.energy_form == EnergyForm::Free {
                    log_w -= f64::from(base.log_density(node.at));
                }
                if let Some(from) = confinement.filter(|_| !self.is_proposal) {
                    log_w += f64::from(confining(from as f32, node.at));
                }
                at.push(node.at);
                prefixes.push(prefix);
                terms.push((log_w, node.below));
            }
            sizes.push(nodes.len());
            if at.len() < NODES && row + 1 < features.len() {
                continue;
            }
            if !self.is_proposal {
                let mut values = vec![0.0; at.len()];
                let (tape, outputs) = (&mut pass.energy_tape, &mut pass.energy_output);
                forward.energies(engine, &at, &prefixes, None, tape, outputs);
                factors(engine, outputs, &mut values);
                for ((log_w, _), value) in terms.iter_mut().zip(&values) {
                    *log_w += f64::from(*value);
                }
            }
            let mut rest = &terms[..];
            for size in sizes.drain(..) {
                let (of_row, others) = rest.split_at(size);
                shares.push(share_below(of_row));
                rest = others;
            }
            at.clear();
            prefixes.clear();
            terms.clear();
        }
        shares
            .iter_mut()
            .zip(is_last)
            .filter(|(_, last)| *last)
            .for_each(|(share, _)| *share = 1.0);
        shares
    }
}

/// The share of those terms, given as logs, that are below.
fn share_below(terms: &[(f64, bool)]) -> f64 {
    let largest = terms.iter().fold(f64::NEG_INFINITY, |largest, (log_w, _)| largest.max(*log_w));
    let mut sums = [0.0, 0.0];
    for (log_w, below) in terms {
        sums[usize::from(*below)] += (log_w - largest).exp();
    }
    sums[1] / (sums[0] + sums[1])
}

/// A node of an integral in two parts, below a value and above it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub at: f32,
    pub weight: f32,
    pub below: bool,
}

/// Nodes of `E[f(z)]` for a standard normal `z` between two ends, and between them and a cut, so that both parts are integrated by
/// themselves: Gauss and Legendre's rule on pieces that are not wider than `widest`.
pub(super) fn around(
    [low, high]: [f32; 2],
    cut: f32,
    (widest, number): (f32, usize),
    mut node: impl FnMut(f32, f32, bool),
) {
    let cut = cut.clamp(low, high);
    for ([from, to], below) in [([low, cut], true), ([cut, high], false)] {
        let pieces = ((to - from) / widest).ceil();
        let half = 0.5 * (to - from) / pieces;
        for piece in 0..pieces as usize {
            let middle = from + half * (2 * piece + 1) as f32;
            for &[at, weight] in legendre_nodes(number) {
                let z = middle + half * at;
                node(z, half * weight * density(z), below);
            }
        }
    }
}

/// How finely a part of the base is integrated that has a share of the mass and a scale, as the widest piece in standard deviations and
/// the nodes in it: where little depends on it the pieces are wide, and on a narrow one only the normal varies.
pub(super) fn fineness(share: f32, scale: f32) -> (f32, usize) {
    match (share, scale) {
        (s, _) if s < 1e-6 => (2.5, 1),
        (s, _) if s < 1e-3 => (2.5, 3),
        (_, s) if s < 0.1 => (2.5, 5),
        _ => (1.0, 5),
    }
}

/// The ends between which a normal is integrated.
pub(super) const ENDS: [f32; 2] = [-REACH, REACH];

/// Of the standard normal.
fn density(z: f32) -> f32 {
    0.398_942_3 * (-0.5 * z * z).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_of_a_normal_have_their_mass() {
        // Of tables of the normal distribution.
        let masses = [(-9.0, 0.0), (-2.0, 0.022_750), (0.0, 0.5), (0.7, 0.758_036), (9.0, 1.0)];
        for (fineness, error) in [((1.0, 5), 2e-6), ((2.5, 5), 2e-4), ((2.5, 3), 1e-2)] {
            for (cut, expected) in masses {
                let mut found = [0.0, 0.0];
                around(ENDS, cut, fineness, |z, weight, below| {
                    assert_eq!(z < cut, below);
                    found[usize::from(below)] += f64::from(weight);
                });
                let wrong = [found[1] - expected, found[0] - (1.0 - expected)];
                assert!(wrong.iter().all(|w| w.abs() < error), "{fineness:?} {cut} {wrong:?}");
            }
        }
    }
}
