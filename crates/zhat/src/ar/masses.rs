//! Masses of cells: integrals over one cell of the base, and of what a tilt makes of it.
//!
//! A part of the base is a standard normal of some `z`, of which the mass between two ends is known. Nodes within them share that
//! mass, so the base's own mass is exact, and only the tilt is integrated by a rule.

use super::base::Base;
use super::engine::Engine;
use super::forward::{Conditioning, Forward, Pass, tilts};
use super::head::Head;
use super::kind::FeatureKind;
use super::mixture::Mixture;
use super::normalise::NODES;
use super::quadrature::{Rule, legendre_nodes, normal_nodes};
use super::spline::Spline;
use crate::normal::log_normal_mass;

/// Beyond this many standard deviations a whole normal is taken to be in a cell: 6e-5 of it is not.
const WHOLE: f64 = 4.0;
/// `2 log` of the share of a piece's mass that nodes may leave out: they end where the density is `e^-8` of its largest.
const LEFT_OUT: f64 = 16.0;
/// Widest piece that one rule integrates over: in `z`, in the fall of `log N(z)`, and in units of `x`.
const WIDEST: [f64; 3] = [2.0, 5.0, 1.3];
/// Parts that have less than `e^` this of the mass of the largest part are left out; a tilt of 4 makes it a share of 5e-5 at most.
const NEGLIGIBLE: f32 = -18.0;
/// How far off a straight line the middle of a piece of a spline may be, in units of `x`, and how often it is halved until it is not.
const STRAIGHT: f32 = 0.02;
const BENDS: u32 = 4;
/// A cell narrower than this in `z` has the mass of its centre's density: rounding would be a larger error than the bend.
const NARROW: f32 = 2e-3;

impl Head {
    /// Points and log-weights such that `sum e^w f(x)` is about the integral of `q f` between two ends, for an `f` as smooth as a tilt,
    /// and exact for `f = 1`.
    pub fn add_nodes_within(&self, ends: [f32; 2], rule: Rule, out: &mut Vec<[f32; 2]>) {
        let first = out.len();
        let (mixture, spline, known, shares) = self.parts();
        let mut log_shares = shares.iter().map(|share| share.ln());
        let mut log_share = || log_shares.next().expect("a share for each part");
        let mut within = Within { rule, out };
        if let Some(mixture) = mixture {
            within.mixture(mixture, log_share(), ends);
        }
        if let Some(spline) = spline {
            within.spline(spline, log_share(), ends);
        }
        if let Some(known) = known {
            within.mixture(known, log_share(), ends);
        }
        let added = out[first..].iter();
        let largest = added.fold(f32::NEG_INFINITY, |largest, node| largest.max(node[1]));
        let mut at = 0;
        out.retain(|node| {
            at += 1;
            at <= first || node[1] > largest + NEGLIGIBLE
        });
    }
}

/// Where the nodes of all parts go.
struct Within<'a> {
    rule: Rule,
    out: &'a mut Vec<[f32; 2]>,
}

impl Within<'_> {
    fn mixture(&mut self, mixture: &Mixture, log_share: f32, ends: [f32; 2]) {
        for [weight, mean, scale] in mixture.components() {
            let [mean, wide] = [mean, scale].map(f64::from);
            let [low, high] = ends.map(|end| (f64::from(end) - mean) / wide);
            let log_weight = f64::from(log_share) + f64::from(weight).ln();
            if low < -WHOLE && high > WHOLE {
                // The nodes of the normaliser, so that what is wrong with both cancels.
                for &[z, node] in normal_nodes(self.rule.nodes(weight, scale)) {
                    let log_node = log_weight + f64::from(node).ln();
                    self.out.push([(mean + wide * f64::from(z)) as f32, log_node as f32]);
                }
                continue;
            }
            self.piece([low, high], log_weight, wide, |z| (mean + wide * z) as f32);
        }
    }

    fn spline(&mut self, spline: &Spline, log_share: f32, ends: [f32; 2]) {
        let [low, high] = ends.map(|end| spline.z(end));
        if high - low < NARROW {
            let centre = 0.5 * (ends[0] + ends[1]);
            let log_mass = spline.log_density(centre) + (ends[1] - ends[0]).ln();
            self.out.push([centre, log_share + log_mass]);
            return;
        }
        for piece in spline.bins_within([low, high]) {
            self.bend(spline, log_share, piece, BENDS);
        }
    }

    /// A piece of a bin, in halves where `x` does not go straight with `z`.
    fn bend(&mut self, spline: &Spline, log_share: f32, piece: [f32; 2], halvings: u32) {
        let [from, to] = piece.map(|z| spline.quantile(z));
        let middle = 0.5 * (piece[0] + piece[1]);
        // Outside all bins x is z.
        let is_inside = (to - from).is_finite();
        let off = if is_inside { spline.quantile(middle) - 0.5 * (from + to) } else { 0.0 };
        if off.abs() > STRAIGHT && halvings > 0 {
            self.bend(spline, log_share, [piece[0], middle], halvings - 1);
            self.bend(spline, log_share, [middle, piece[1]], halvings - 1);
            return;
        }
        let wide = if is_inside { (to - from) / (piece[1] - piece[0]) } else { 1.0 };
        let (piece, wide) = (piece.map(f64::from), f64::from(wide));
        self.piece(piece, f64::from(log_share), wide, |z| spline.quantile(z as f32));
    }

    /// A standard normal between two ends, times a weight; `wide` is how far `x` goes with `z`.
    fn piece(&mut self, ends: [f64; 2], log_weight: f64, wide: f64, x: impl Fn(f64) -> f32) {
        let log_mass = log_weight + log_normal_mass(ends);
        if log_mass == f64::NEG_INFINITY || log_mass.is_nan() {
            return;
        }
        let [low, high] = bulk(ends);
        let fall = |z: f64| 0.5 * z * z;
        let across = high - low;
        let widths = [across, (fall(high) - fall(low)).abs(), wide * across];
        let pieces = widths.iter().zip(WIDEST).map(|(width, widest)| width / widest);
        let pieces = pieces.fold(1.0, f64::max).ceil();
        let nodes = legendre_nodes(self.rule.cell_nodes((wide * across / pieces) as f32));
        let half = 0.5 * across / pieces;
        let first = self.out.len();
        let least =
            fall(low).min(fall(high)).min(if low < 0.0 && high > 0.0 { 0.0 } else { f64::MAX });
        let mut sum = 0.0;
        for piece in 0..pieces as usize {
            let middle = low + half * (2 * piece + 1) as f64;
            for &[at, weight] in nodes {
                let z = middle + half * f64::from(at);
                let log_node = f64::from(weight).ln() - (fall(z) - least);
                sum += log_node.exp();
                self.out.push([x(z), log_node as f32]);
            }
        }
        // The nodes share the mass.
        let shift = (log_mass - sum.ln()) as f32;
        self.out[first..].iter_mut().for_each(|node| node[1] += shift);
    }
}

/// The part of an interval that has nearly all of its normal mass.
fn bulk([low, high]: [f64; 2]) -> [f64; 2] {
    let end = |nearest: f64| (nearest.max(0.0).powi(2) + LEFT_OUT).sqrt();
    [low.max(-end(-high)), high.min(end(low))]
}

impl Forward {
    /// Turns every row's new feature into its cell: `log q` and `log p~` are those of the cell's mass, and its value the centre.
    ///
    /// Rows next to each other with the same prefix and cell share the work.
    pub fn weigh_cells(
        &mut self,
        engine: &Engine,
        stage: usize,
        rule: Rule,
        tilted: bool,
        conditioning: &Conditioning,
        pass: &mut Pass,
    ) {
        let kind = engine.config.kind(stage);
        let mut base = Base::at(&engine.config, stage);
        if tilted {
            self.contexts(engine, stage, conditioning, pass);
        }
        let mut cells = Cells::default();
        let (mut current, mut nodes) = (None, Vec::new());
        for row in 0..self.num_rows() {
            let (prefix, cell) = (conditioning.prefix_of(row), kind.index_of(pass.x[row]));
            if current != Some((prefix, cell)) {
                current = Some((prefix, cell));
                base.read(&pass.head_raw, prefix, conditioning.known(engine, prefix, stage));
                base.nodes_within(kind.reach(cell.expect("a cell")), rule, &mut nodes);
                cells.add(prefix, &nodes);
                if cells.x.len() >= NODES {
                    self.integrate(engine, tilted, &mut cells, pass);
                }
            }
            cells.of_row.push(cells.number - 1);
        }
        self.integrate(engine, tilted, &mut cells, pass);
        pass.log_p.resize(self.num_rows(), 0.0);
        for (row, &cell) in cells.of_row.iter().enumerate() {
            let reach = kind.reach(kind.index_of(pass.x[row]).expect("a cell"));
            [pass.log_q[row], pass.log_p[row]] = cells.log_masses[cell];
            pass.log_draw[row] = self.defence().log_mass(pass.log_q[row], reach);
        }
        self.settle(kind, stage, pass);
    }

    /// Moves the new feature of every row to the centre of its cell, if it has any.
    pub fn settle(&mut self, kind: &FeatureKind, stage: usize, pass: &mut Pass) {
        if kind.is_cells() {
            pass.x.iter_mut().for_each(|x| *x = kind.settle(*x));
            self.put(stage, &pass.x);
        }
    }

    /// Masses of the cells whose nodes wait.
    fn integrate(&mut self, engine: &Engine, tilted: bool, cells: &mut Cells, pass: &mut Pass) {
        let mut values = vec![0.0; cells.x.len()];
        if tilted && !cells.x.is_empty() {
            let Pass { energy_tape, energy_output, .. } = &mut *pass;
            let Cells { x, prefixes, .. } = &*cells;
            self.energies(engine, x, prefixes, None, energy_tape, energy_output);
            tilts(engine.config.tilt_bound as f32, energy_output, &mut values);
        }
        let mut from = 0;
        for size in cells.sizes.drain(..) {
            let log_w = &mut cells.log_w[from..from + size];
            let log_q = log_sum_exp(log_w);
            log_w.iter_mut().zip(&values[from..]).for_each(|(log_w, value)| *log_w += value);
            cells.log_masses.push([log_q, log_sum_exp(log_w)]);
            from += size;
        }
        cells.x.clear();
        cells.prefixes.clear();
        cells.log_w.clear();
    }
}

/// Cells of rows on their way through the energy network.
#[derive(Default)]
struct Cells {
    /// Nodes that wait.
    x: Vec<f32>,
    prefixes: Vec<usize>,
    log_w: Vec<f32>,
    /// Numbers of nodes of the cells that wait.
    sizes: Vec<usize>,
    /// Cells so far, those that are done included.
    number: usize,
    /// The cell of every row.
    of_row: Vec<usize>,
    /// Of the base and of what the tilt makes of it, for every cell that is done.
    log_masses: Vec<[f32; 2]>,
}

impl Cells {
    fn add(&mut self, prefix: usize, nodes: &[[f32; 2]]) {
        self.x.extend(nodes.iter().map(|node| node[0]));
        self.log_w.extend(nodes.iter().map(|node| node[1]));
        self.prefixes.extend(nodes.iter().map(|_| prefix));
        self.sizes.push(nodes.len());
        self.number += 1;
    }
}

fn log_sum_exp(values: &[f32]) -> f32 {
    let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if largest == f32::NEG_INFINITY {
        return largest;
    }
    largest + values.iter().map(|value| (value - largest).exp()).sum::<f32>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ar::{ArEbmConfig, HeadForm};
    use crate::rng::Streams;

    fn head(form: HeadForm, seed: u64) -> Head {
        let config = ArEbmConfig { head: form, ..ArEbmConfig::new(1) };
        let mut rng = Streams::new(seed).stream("test", 0, 0);
        let raw: Vec<f32> = (0..config.head_outputs(0)).map(|_| rng.normal() as f32).collect();
        let mut head = Head::at(&config, 0);
        head.set(&raw, None);
        head
    }

    fn integral(head: &Head, ends: [f32; 2], rule: Rule, f: impl Fn(f64) -> f64) -> f64 {
        let mut nodes = Vec::new();
        head.add_nodes_within(ends, rule, &mut nodes);
        nodes.iter().map(|&[x, log_w]| f64::from(log_w).exp() * f(f64::from(x))).sum()
    }

    #[test]
    fn integrals_over_cells_are_those_of_sums_over_a_grid() {
        let step = 1e-4;
        let tilt = |x: f64| (2.0 * (1.5 * x + 0.3).tanh()).exp();
        let cells = [[-1.0, -0.9], [-0.5, 0.7], [0.7, 3.1], [2.0, 2.01], [-8.0, 0.1], [-0.2, 12.0]];
        for form in [HeadForm::Mixture, HeadForm::Spline, HeadForm::Both] {
            for (seed, ends) in (0..4).flat_map(|seed| cells.map(|cell| (seed, cell))) {
                let head = head(form, seed);
                let number = (f64::from(ends[1] - ends[0]) / step).round() as usize;
                let (mut mass, mut tilted) = (0.0, 0.0);
                for i in 0..number {
                    let x = f64::from(ends[0]) + step * (i as f64 + 0.5);
                    let density = step * f64::from(head.log_density(x as f32)).exp();
                    mass += density;
                    tilted += density * tilt(x);
                }
                let found = integral(&head, ends, Rule::Fine, |_| 1.0);
                // The rounding of 32-bit floats in the density, and steps across narrow normals.
                assert!(
                    (found / mass - 1.0).abs() < 3e-3,
                    "{form:?} {seed} {ends:?} {found} {mass}"
                );
                for (rule, error) in [(Rule::Fine, 5e-3), (Rule::Coarse, 3e-2)] {
                    let found = integral(&head, ends, rule, tilt) / found;
                    let wrong = found / (tilted / mass) - 1.0;
                    assert!(wrong.abs() < error, "{form:?} {rule:?} {seed} {ends:?} {wrong}");
                }
            }
        }
    }

    #[test]
    fn cells_that_fill_the_line_have_all_of_the_mass() {
        for form in [HeadForm::Mixture, HeadForm::Spline, HeadForm::Both] {
            let head = head(form, 7);
            for number in [1, 4, 100, 4096] {
                let edge = |i: usize| match i {
                    0 => f32::NEG_INFINITY,
                    i if i == number => f32::INFINITY,
                    i => -4.0 + 8.0 * i as f32 / number as f32,
                };
                let total: f64 = (0..number)
                    .map(|i| integral(&head, [edge(i), edge(i + 1)], Rule::Fine, |_| 1.0))
                    .sum();
                assert!((total - 1.0).abs() < 1e-3, "{form:?} {number}: {total}");
            }
        }
    }

    #[test]
    fn far_out_a_cell_has_a_mass_all_the_same() {
        let head = head(HeadForm::Mixture, 1);
        let mut nodes = Vec::new();
        for ends in [[40.0, 41.0], [-300.0, -299.0], [1e4, f32::INFINITY]] {
            nodes.clear();
            head.add_nodes_within(ends, Rule::Fine, &mut nodes);
            assert!(!nodes.is_empty() && nodes.iter().all(|node| node[1].is_finite()), "{ends:?}");
            let inside = |x: f32| x >= ends[0] && x <= ends[1];
            assert!(nodes.iter().all(|node| inside(node[0])), "{ends:?} {nodes:?}");
        }
    }
}
