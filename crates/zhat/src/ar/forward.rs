//! The forward pass of one stage: contexts and mixtures of the prefixes, draws, and factors of the model.

use super::base::Base;
use super::config::{ArEbmConfig, Conditioner, EnergyForm};
use super::defence::Defence;
use super::dropout::Masks;
use super::elementwise;
use super::engine::{Engine, at_stage};
use super::head::Known;
use super::panels::{Panels, strip};
use super::trunk::Tape;
use crate::gaussian_mixture::Conditionals;
use crate::rng::Stream;
use crate::simd::{dispatch, softplus, tanh};

/// What the conditioner made of the prefixes; a masked one makes it of whole rows, for all stages at once.
#[derive(Debug, Default)]
pub struct Conditioning {
    /// What is seen of the known features of every distinct prefix, `[prefixes, inputs]`.
    pub prefix: Panels,
    /// Prefix of every row; empty where every row has its own.
    pub sharing: Vec<usize>,
    /// One for each member.
    pub tapes: Vec<Tape>,
    /// What the Gaussian mixture beside the head makes of every prefix, where there is one.
    known: Vec<Conditionals>,
}

impl Conditioning {
    /// What the Gaussian mixture beside the head says about the next feature of a prefix.
    pub fn known(&self, engine: &Engine, prefix: usize, stage: usize) -> Option<Known<'_>> {
        let known = self.known.get(prefix)?;
        let number = engine.config.number_of(stage)?;
        Some([known.log_weights(number), known.means(number), known.scales(number)])
    }

    /// The prefix of a row.
    pub fn prefix_of(&self, row: usize) -> usize {
        self.sharing.get(row).copied().unwrap_or(row)
    }
}

/// What the forward pass of one stage computed; enough to go back.
#[derive(Debug, Default)]
pub struct Pass {
    /// Raw outputs of the base of every prefix, for each member.
    pub head_raw: Vec<Panels>,
    /// Prefixes whose base has a gradient.
    pub head_rows: Vec<usize>,
    /// Context of every prefix.
    pub context: Panels,
    pub energy_tape: Tape,
    /// Output `o` of the energy network for every row.
    pub energy_output: Vec<f32>,
    /// The new feature of every row.
    pub x: Vec<f32>,
    /// `log q(x_d | x_<d)` of every row. Where only `log p~ - log q` counts, that of a draw is left out of both.
    pub log_q: Vec<f32>,
    /// The same with the defensive part: the log-density that the new feature was drawn from.
    pub log_draw: Vec<f32>,
    /// `log p~(x_d | x_<d)` of every row.
    pub log_p: Vec<f32>,
}

impl Pass {
    /// Adds `log p~ - log q` of the new feature to the log-weight of every row.
    pub fn add_log_weights(&self, log_weights: &mut [f64]) {
        let terms = self.log_p.iter().zip(&self.log_draw);
        for (log_w, (log_p, log_q)) in log_weights.iter_mut().zip(terms) {
            *log_w += f64::from(*log_p) - f64::from(*log_q);
        }
    }
}

/// Rows that grow by one feature at each stage.
#[derive(Debug, Default)]
pub struct Forward {
    pub(super) features: usize,
    candidates: usize,
    /// Whether candidate 0 of every observation is given and only the others are drawn.
    retained: bool,
    /// Whether all prefixes are those of candidate 0, which is complete from the start.
    complete: bool,
    /// Whether all candidates are given, and none is drawn.
    given: bool,
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
    of_context: Panels,
}

impl Forward {
    /// Starts with observations, each of which has a number of candidates.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major
    /// - `local`: whether the candidates of every stage are those of the observation's own prefix
    pub fn begin(
        &mut self,
        x: &[f32],
        features: usize,
        candidates: usize,
        local: bool,
        defence: Defence,
    ) {
        (self.features, self.candidates, self.retained) = (features, candidates, true);
        (self.complete, self.given) = (candidates == 1 || local, false);
        self.defence = defence;
        self.rows.clear();
        for x in x.chunks_exact(features) {
            self.rows.extend_from_slice(x);
            self.rows.resize(self.rows.len() + (candidates - 1) * features, 0.0);
        }
        self.representative.clear();
        self.representative.extend((0..self.num_rows()).map(|row| row - row % candidates));
    }

    /// All candidates are given instead of drawn.
    ///
    /// # Shapes
    /// - `all`: `[n, candidates, features]` or more
    pub fn give_all(&mut self, all: &[f32]) {
        let number = self.rows.len();
        self.rows.copy_from_slice(&all[..number]);
        self.given = true;
    }

    /// Starts with rows of which nothing is known.
    pub fn begin_free(&mut self, rows: usize, features: usize, defence: Defence) {
        (self.features, self.candidates, self.retained) = (features, rows, false);
        (self.complete, self.given) = (false, false);
        self.defence = defence;
        self.rows.clear();
        self.rows.resize(rows * features, 0.0);
        self.forget_sharing();
    }

    /// Every row has this value as its feature, so that none is drawn at that stage.
    pub fn give(&mut self, stage: usize, value: f32) {
        (self.candidates, self.retained) = (1, true);
        self.rows.iter_mut().skip(stage).step_by(self.features).for_each(|x| *x = value);
    }

    /// Every row has its feature, each its own, so that none is drawn at that stage.
    pub fn keep(&mut self) {
        (self.candidates, self.retained) = (1, true);
    }

    /// Rows next to each other with the same ancestor share their prefix.
    pub fn share(&mut self, ancestors: &[usize]) {
        for row in 1..ancestors.len() {
            if ancestors[row] == ancestors[row - 1] {
                self.representative[row] = self.representative[row - 1];
            }
        }
    }

    /// Every row takes its new feature from these.
    pub fn put(&mut self, stage: usize, values: &[f32]) {
        let rows = self.rows.iter_mut().skip(stage).step_by(self.features);
        rows.zip(values).for_each(|(x, &value)| *x = value);
    }

    /// The defensive part of the proposal.
    pub fn defence(&self) -> Defence {
        self.defence
    }

    pub fn num_rows(&self) -> usize {
        self.rows.len() / self.features
    }

    /// Runs the proposal network on the prefixes of length `stage`, once for those that are shared, and for all stages at once
    /// where the network is masked and the prefixes are known from the start.
    ///
    /// With dropout every row has its own mask and so its own context, unless masks are shared too.
    pub fn propose(
        &mut self,
        engine: &Engine,
        stage: usize,
        masks: Option<&mut Masks>,
        conditioning: &mut Conditioning,
        pass: &mut Pass,
    ) {
        if !self.is_one_pass(&engine.config) {
            self.condition(engine, stage, stage, masks, conditioning);
        } else if stage == 0 {
            self.condition(engine, 0, self.features - 1, masks, conditioning);
        }
        pass.head_raw.resize_with(engine.members.len(), Panels::default);
        let outputs = conditioning.tapes.iter().map(Tape::output).zip(&mut pass.head_raw);
        for (member, (output, raw)) in engine.members.iter().zip(outputs) {
            member.last(stage).head.forward(output, raw);
        }
    }

    /// Whether one pass of the conditioner serves all stages.
    pub fn is_one_pass(&self, config: &ArEbmConfig) -> bool {
        self.complete && config.conditioner == Conditioner::Masked
    }

    /// Runs the trunk of the proposal network on the first `known` features.
    fn condition(
        &mut self,
        engine: &Engine,
        stage: usize,
        known: usize,
        mut masks: Option<&mut Masks>,
        conditioning: &mut Conditioning,
    ) {
        let (rows, features) = (self.num_rows(), self.features);
        let Conditioning { prefix: prefixes_known, sharing, tapes, known: of_mixture } =
            conditioning;
        let mut distinct: Vec<usize> = Vec::new();
        sharing.clear();
        match &mut masks {
            masks if self.is_one_pass(&engine.config) => {
                distinct.extend((0..rows).step_by(self.candidates));
                if self.candidates > 1 {
                    sharing.extend((0..rows).map(|row| row / self.candidates));
                }
                if let Some(masks) = masks {
                    masks.set_rows(distinct.iter().map(|_| 1));
                }
            }
            // The empty prefix is the same for all observations.
            None if known == 0 => {
                distinct.push(0);
                sharing.resize(rows, 0);
            }
            None => find_sharing(&self.representative, &mut distinct, sharing),
            Some(masks) if self.share_masks => {
                find_sharing(&self.representative, &mut distinct, sharing);
                masks.set_rows(rows_of(&distinct, self.candidates, rows));
            }
            Some(_) => (),
        }
        let prefixes = if sharing.is_empty() { rows } else { distinct.len() };
        let inputs = engine.config.inputs_before(known);
        prefixes_known.reshape(if known == 0 { 1 } else { prefixes }, inputs.max(1));
        for prefix in 0..if known == 0 { 0 } else { prefixes } {
            let row = distinct.get(prefix).copied().unwrap_or(prefix);
            let seen = &self.rows[row * features..][..known];
            engine.config.see(seen, |column, value| prefixes_known.set(prefix, column, value));
        }
        if let Some(room) = &engine.known {
            of_mixture.resize(prefixes, room.clone());
            for (prefix, of_mixture) in of_mixture.iter_mut().enumerate() {
                let row = distinct.get(prefix).copied().unwrap_or(prefix);
                of_mixture.begin();
                let seen = engine.config.numbers(&self.rows[row * features..][..known]);
                seen.enumerate().for_each(|(number, x)| of_mixture.see(number, x));
            }
        }
        tapes.resize_with(engine.members.len(), Tape::default);
        for (member, tape) in engine.members.iter().zip(tapes) {
            // Without known features all rows are the same; the trunk repeats the one row where dropout makes them differ.
            self.h.reshape(prefixes_known.rows(), engine.config.proposal.width);
            let bias = &member.stage_bias[at_stage(&member.stage_bias, stage)][..];
            self.h.set_product(prefixes_known, &member.first, inputs, Some(bias));
            match self.recording {
                true => member.trunk.forward(&mut self.h, prefixes, masks.as_deref_mut(), tape),
                // Of a masked network later units are for later stages.
                false => {
                    let units = member.last(known).head.weight.rows();
                    member.trunk.evaluate(&mut self.h, prefixes, units, tape);
                }
            }
        }
    }

    /// Draws the new feature of every candidate but the data point, and evaluates `log q`.
    ///
    /// A class has no tilt, so where candidates are of one factor alone none is drawn for it: they would teach nothing. Nor is it
    /// drawn from the defensive part.
    pub fn draw(
        &mut self,
        engine: &Engine,
        stage: usize,
        streams: &mut [Stream],
        conditioning: &Conditioning,
        pass: &mut Pass,
    ) {
        let mut base = Base::at(&engine.config, stage);
        let mut current = None;
        let kind = engine.config.kind(stage);
        let is_class = kind.is_categorical();
        // Nor is a number with atoms: the defensive part has none.
        let counts = is_class || kind.is_atoms();
        let defence = if counts { Defence::default() } else { self.defence };
        // Of a tilt's draws only the tilt counts: log p~ - log q is the tilt.
        let all = engine.config.energy_form == EnergyForm::Free || !self.defence.is_none();
        pass.x.clear();
        pass.log_q.clear();
        pass.log_draw.clear();
        for row in 0..self.num_rows() {
            let prefix = conditioning.prefix_of(row);
            if current != Some(prefix) {
                base.read(&pass.head_raw, prefix, conditioning.known(engine, prefix, stage));
                current = Some(prefix);
            }
            let x = &mut self.rows[row * self.features + stage];
            let is_drawn = !(self.retained && row.is_multiple_of(self.candidates));
            if is_drawn && !self.given && !(is_class && self.complete) {
                let rng = &mut streams[row / self.candidates];
                *x = defence.draw(rng).unwrap_or_else(|| base.sample(rng));
            }
            let log_q = if is_drawn && !all { 0.0 } else { base.log_density(*x) };
            pass.x.push(*x);
            pass.log_q.push(log_q);
            pass.log_draw.push(defence.log_density(log_q, *x));
        }
    }

    /// Runs the energy network: `log p~(x_d | x_<d)` of every row. A class has its probability and no tilt.
    pub fn weigh(
        &mut self,
        engine: &Engine,
        stage: usize,
        masks: Option<&mut Masks>,
        conditioning: &Conditioning,
        pass: &mut Pass,
    ) {
        let rows = self.num_rows();
        if engine.config.kind(stage).is_categorical() {
            pass.log_p.clone_from(&pass.log_q);
            return;
        }
        self.contexts(engine, stage, conditioning, pass);
        let Pass { x, energy_tape, energy_output, .. } = pass;
        self.energies(engine, x, &conditioning.sharing, masks, energy_tape, energy_output);
        pass.log_p.resize(rows, 0.0);
        factors(engine, &pass.energy_output, &mut pass.log_p);
        if engine.config.energy_form == EnergyForm::Tilted {
            pass.log_p.iter_mut().zip(&pass.log_q).for_each(|(log_p, log_q)| *log_p += log_q);
        }
        if let Some(from) = engine.config.confinement() {
            let rows = pass.log_p.iter_mut().zip(&pass.x);
            rows.for_each(|(log_p, &x)| *log_p += confining(from as f32, x));
        }
    }

    /// What the energy's first layer makes of the context of every prefix, to which all members add.
    pub fn contexts(
        &mut self,
        engine: &Engine,
        stage: usize,
        conditioning: &Conditioning,
        pass: &mut Pass,
    ) {
        let outputs = conditioning.tapes.iter().map(Tape::output);
        for (index, (member, output)) in engine.members.iter().zip(outputs).enumerate() {
            let layer = &member.last(stage).context;
            match index {
                0 => layer.forward(output, &mut pass.context),
                _ => layer.add_forward(output, &mut pass.context),
            }
        }
        engine.energy.first.forward(&pass.context, &mut self.of_context);
    }

    /// The outputs of the energy network at values of the next feature, each with the context of its prefix.
    pub fn energies(
        &mut self,
        engine: &Engine,
        x: &[f32],
        sharing: &[usize],
        masks: Option<&mut Masks>,
        tape: &mut Tape,
        outputs: &mut Vec<f32>,
    ) {
        let (rows, energy) = (x.len(), &engine.energy);
        self.h.reshape(rows, engine.config.energy.width);
        for panel in 0..self.h.num_panels() {
            let (context, of_x) = (self.of_context.panel(panel), strip(&energy.of_x, panel));
            elementwise::add_scaled(context, sharing, x, of_x, self.h.panel_mut(panel));
        }
        match self.recording {
            true => energy.trunk.forward(&mut self.h, rows, masks, tape),
            false => energy.trunk.evaluate(&mut self.h, rows, engine.config.energy.width, tape),
        }
        outputs.resize(rows, 0.0);
        elementwise::dots(tape.output().data(), &energy.last, energy.last_bias, outputs);
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

/// What a free factor gains outside a range, so that it can be integrated; it has no parameters.
pub(super) fn confining(from: f32, x: f32) -> f32 {
    let beyond = (x.abs() - from).max(0.0);
    -0.5 * beyond * beyond
}

/// What the outputs of the energy network mean: `log p~` itself, or the tilt.
pub(super) fn factors(engine: &Engine, outputs: &[f32], values: &mut [f32]) {
    match engine.config.energy_form {
        EnergyForm::Free => free_factors(outputs, values),
        EnergyForm::Tilted => tilts(engine.config.tilt_bound as f32, outputs, values),
    }
}

dispatch! {
    /// `log p~ = -softplus(o)`.
    pub fn free_factors<const FMA: bool>(outputs: &[f32], log_p: &mut [f32]) {
        for (log_p, output) in log_p.iter_mut().zip(outputs) {
            *log_p = -softplus::<FMA>(*output);
        }
    }

    /// `c tanh(o / c)`.
    pub fn tilts<const FMA: bool>(bound: f32, outputs: &[f32], tilts: &mut [f32]) {
        for (tilt, output) in tilts.iter_mut().zip(outputs) {
            *tilt = bound * tanh::<FMA>(*output / bound);
        }
    }
}
