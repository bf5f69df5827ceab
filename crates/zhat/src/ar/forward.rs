//! The forward pass of one stage: contexts and mixtures of the prefixes, draws, and factors of the model.

use super::defence::Defence;
use super::dropout::Masks;
use super::elementwise;
use super::engine::Engine;
use super::mixture::{Mixture, total};
use super::panels::{Panels, STRIP, strip};
use super::simd::{dispatch, softplus};
use super::trunk::Tape;
use crate::rng::Stream;

/// What the forward pass of one stage computed; enough to go back.
#[derive(Debug, Default)]
pub struct Pass {
    /// The known features of every distinct prefix, `[prefixes, features]`.
    pub prefix: Panels,
    /// Prefix of every row; empty where every row has its own.
    pub sharing: Vec<usize>,
    pub proposal_tape: Tape,
    /// Raw outputs of the mixture of every prefix, `[prefixes, 3 m]`.
    pub mixture_raw: Panels,
    /// Prefixes whose mixture has a gradient.
    pub mixture_rows: Vec<usize>,
    /// Input of the energy network, `[rows, context + 1]`.
    pub energy_input: Panels,
    pub energy_tape: Tape,
    /// Output `o` of the energy network for every row.
    pub energy_output: Vec<f32>,
    /// The new feature of every row.
    pub x: Vec<f32>,
    /// `log q(x_d | x_<d)` of every row.
    pub log_q: Vec<f32>,
    /// The same with the defensive part: the log-density that the new feature was drawn from.
    pub log_draw: Vec<f32>,
    /// `log p~(x_d | x_<d)` of every row.
    pub log_p: Vec<f32>,
}

impl Pass {
    /// Adds `log p~ - log q` of the new feature to the log-weight of every row.
    pub fn add_log_weights(&self, log_weights: &mut [f64]) {
        for (log_w, (log_p, log_q)) in
            log_weights.iter_mut().zip(self.log_p.iter().zip(&self.log_draw))
        {
            *log_w += f64::from(*log_p) - f64::from(*log_q);
        }
    }
}

/// Rows that grow by one feature at each stage.
#[derive(Debug, Default)]
pub struct Forward {
    features: usize,
    candidates: usize,
    /// Whether candidate 0 of every observation is given and only the others are drawn.
    retained: bool,
    /// Whether activations are kept for a backward pass.
    pub recording: bool,
    /// Whether rows with the same prefix share their dropout mask.
    pub share_masks: bool,
    /// The defensive part of the proposal.
    defence: Defence,
    /// The rows so far, row-major `[rows, features]`; candidate 0 of every observation is complete from the start.
    pub rows: Vec<f32>,
    /// First row of the same observation with the same prefix, as far as resampling tells.
    pub representative: Vec<usize>,
    h: Panels,
    context: Panels,
    dots: Vec<f32>,
}

impl Forward {
    /// Starts with observations, each of which has a number of candidates.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major
    pub fn begin(&mut self, x: &[f32], features: usize, candidates: usize) {
        (self.features, self.candidates, self.retained) = (features, candidates, true);
        self.defence = Defence::default();
        self.rows.clear();
        for x in x.chunks_exact(features) {
            self.rows.extend_from_slice(x);
            self.rows.resize(self.rows.len() + (candidates - 1) * features, 0.0);
        }
        self.representative.clear();
        self.representative.extend((0..self.num_rows()).map(|row| row - row % candidates));
    }

    /// Starts with rows of which nothing is known.
    pub fn begin_free(&mut self, rows: usize, features: usize) {
        (self.features, self.candidates, self.retained) = (features, rows, false);
        self.defence = Defence::default();
        self.rows.clear();
        self.rows.resize(rows * features, 0.0);
        self.forget_sharing();
    }

    /// From now on draws have a defensive part.
    pub fn defend(&mut self, defence: Defence) {
        self.defence = defence;
    }

    /// Every row has this value as its feature, so that none is drawn at that stage.
    pub fn give(&mut self, stage: usize, value: f32) {
        (self.candidates, self.retained) = (1, true);
        self.rows.iter_mut().skip(stage).step_by(self.features).for_each(|x| *x = value);
    }

    /// Rows next to each other with the same ancestor share their prefix.
    pub fn share(&mut self, ancestors: &[usize]) {
        for row in 1..ancestors.len() {
            if ancestors[row] == ancestors[row - 1] {
                self.representative[row] = self.representative[row - 1];
            }
        }
    }

    pub fn num_rows(&self) -> usize {
        self.rows.len() / self.features
    }

    /// Runs the proposal network on the prefixes of length `stage`, once for those that are shared.
    ///
    /// With dropout every row has its own mask and so its own context, unless masks are shared too.
    pub fn propose(
        &mut self,
        engine: &Engine,
        stage: usize,
        mut masks: Option<&mut Masks>,
        pass: &mut Pass,
    ) {
        let (rows, features) = (self.num_rows(), self.features);
        let proposal = &engine.proposal;
        let mut distinct: Vec<usize> = Vec::new();
        pass.sharing.clear();
        match &mut masks {
            // The empty prefix is the same for all observations.
            None if stage == 0 => {
                distinct.push(0);
                pass.sharing.resize(rows, 0);
            }
            None => find_sharing(&self.representative, &mut distinct, &mut pass.sharing),
            Some(masks) if self.share_masks => {
                find_sharing(&self.representative, &mut distinct, &mut pass.sharing);
                masks.set_rows(rows_of(&distinct, self.candidates, rows));
            }
            Some(_) => (),
        }
        let prefixes = if pass.sharing.is_empty() { rows } else { distinct.len() };
        pass.prefix.reshape(if stage == 0 { 1 } else { prefixes }, stage.max(1));
        for prefix in 0..if stage == 0 { 0 } else { prefixes } {
            let row = distinct.get(prefix).copied().unwrap_or(prefix);
            for (column, &value) in self.rows[row * features..][..stage].iter().enumerate() {
                pass.prefix.set(prefix, column, value);
            }
        }
        // At stage 0 all rows have the empty prefix; the trunk repeats the one row where dropout makes them differ.
        self.h.reshape(pass.prefix.rows(), engine.config.proposal.width);
        let bias = Some(&proposal.stage_bias[stage][..]);
        self.h.set_product(&pass.prefix, &proposal.first, stage, bias);
        match self.recording {
            true => proposal.trunk.forward(&mut self.h, prefixes, masks, &mut pass.proposal_tape),
            false => proposal.trunk.evaluate(&mut self.h, &mut pass.proposal_tape),
        }
        let output = pass.proposal_tape.output();
        proposal.mixture.forward(output, &mut pass.mixture_raw);
    }

    /// Draws the new feature of every candidate but the data point, and evaluates `log q` of all.
    pub fn draw(&mut self, engine: &Engine, stage: usize, streams: &mut [Stream], pass: &mut Pass) {
        let config = &engine.config;
        let mut mixture = Mixture::new(config.mixture_components, config.minimum_scale as f32);
        let mut raw = vec![0.0; pass.mixture_raw.num_panels() * STRIP];
        let mut current = None;
        pass.x.clear();
        pass.log_q.clear();
        pass.log_draw.clear();
        for row in 0..self.num_rows() {
            let prefix = pass.sharing.get(row).copied().unwrap_or(row);
            if current != Some(prefix) {
                pass.mixture_raw.read_row(prefix, &mut raw);
                mixture.set(&raw);
                current = Some(prefix);
            }
            let x = &mut self.rows[row * self.features + stage];
            if !(self.retained && row.is_multiple_of(self.candidates)) {
                let rng = &mut streams[row / self.candidates];
                *x = self.defence.draw(rng).unwrap_or_else(|| mixture.sample(rng));
            }
            let log_q = mixture.log_density(*x);
            pass.x.push(*x);
            pass.log_q.push(log_q);
            pass.log_draw.push(self.defence.log_density(log_q, *x));
        }
    }

    /// Runs the energy network: `log p~(x_d | x_<d)` of every row.
    pub fn weigh(&mut self, engine: &Engine, mut masks: Option<&mut Masks>, pass: &mut Pass) {
        let (rows, energy, context) = (self.num_rows(), &engine.energy, engine.config.context);
        if let Some(masks) = &mut masks {
            masks.set_rows((0..rows / self.candidates).map(|_| self.candidates));
        }
        self.contexts(engine, pass);
        for row in 0..rows {
            pass.energy_input.set(row, context, pass.x[row]);
        }
        energy.first.forward(&pass.energy_input, &mut self.h);
        match self.recording {
            true => energy.trunk.forward(&mut self.h, rows, masks, &mut pass.energy_tape),
            false => energy.trunk.evaluate(&mut self.h, &mut pass.energy_tape),
        }
        let output = pass.energy_tape.output();
        self.dots.clear();
        self.dots.resize(rows * STRIP, 0.0);
        for panel in 0..output.num_panels() {
            elementwise::add_dot(output.panel(panel), strip(&energy.last, panel), &mut self.dots);
        }
        pass.energy_output.resize(rows, 0.0);
        pass.log_p.resize(rows, 0.0);
        log_factors(&self.dots, energy.last_bias, &mut pass.energy_output, &mut pass.log_p);
    }

    /// The context of every row, as the first columns of the energy network's input.
    fn contexts(&mut self, engine: &Engine, pass: &mut Pass) {
        let (layer, output) = (&engine.proposal.context, pass.proposal_tape.output());
        let context =
            if pass.sharing.is_empty() { &mut pass.energy_input } else { &mut self.context };
        context.reshape(output.rows(), engine.config.context + 1);
        context.set_product(output, &layer.weight, layer.weight.rows(), Some(&layer.bias));
        if !pass.sharing.is_empty() {
            pass.energy_input.gather(&self.context, &pass.sharing);
        }
    }

    /// Rows of observation `n` take over the first `known` features of their ancestors.
    pub fn resample(&mut self, n: usize, ancestors: &[usize], known: usize) {
        let (features, first) = (self.features, n * self.candidates);
        let old = self.rows[first * features..][..self.candidates * features].to_vec();
        for (candidate, &ancestor) in ancestors.iter().enumerate() {
            let to = (first + candidate) * features;
            self.rows[to..to + known].copy_from_slice(&old[ancestor * features..][..known]);
            self.representative[first + candidate] = first + sibling(ancestors, candidate);
        }
    }

    /// Every row has a prefix of its own again.
    pub fn forget_sharing(&mut self) {
        self.representative.clear();
        self.representative.extend(0..self.num_rows());
    }
}

/// The first candidate with the same ancestor.
fn sibling(ancestors: &[usize], candidate: usize) -> usize {
    let earlier = ancestors[..candidate].iter().position(|&other| other == ancestors[candidate]);
    earlier.unwrap_or(candidate)
}

/// The distinct prefixes' rows, and the prefix of every row; nothing of the latter if all are distinct.
pub(super) fn find_sharing(
    representative: &[usize],
    distinct: &mut Vec<usize>,
    sharing: &mut Vec<usize>,
) {
    for (row, &representative) in representative.iter().enumerate() {
        if representative == row {
            distinct.push(row);
            sharing.push(distinct.len() - 1);
        } else {
            sharing.push(sharing[representative]);
        }
    }
    if distinct.len() == representative.len() {
        sharing.clear();
    }
}

/// How many of the distinct prefixes belong to each observation.
pub(super) fn rows_of(distinct: &[usize], candidates: usize, rows: usize) -> Vec<usize> {
    let mut number = vec![0; rows / candidates];
    distinct.iter().for_each(|row| number[row / candidates] += 1);
    number
}

dispatch! {
    /// `o = sum of the partial sums + bias` and `log p~ = -softplus(o)`.
    pub fn log_factors<const FMA: bool>(
        dots: &[f32], bias: f32, outputs: &mut [f32], log_p: &mut [f32],
    ) {
        for ((output, log_p), dots) in outputs.iter_mut().zip(log_p).zip(dots.as_chunks::<STRIP>().0) {
            *output = total(dots) + bias;
            *log_p = -softplus::<FMA>(*output);
        }
    }
}
