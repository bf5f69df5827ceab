//! Loss and gradient of a few observations: the networks forward and backward, stage by stage, in memory used again.

use super::base::Base;
use super::coefficients::Coefficient;
use super::config::{EnergyForm, Normalisation};
use super::criterion::{ArStepConfig, ContextFlow};
use super::dropout::Masks;
use super::elementwise;
use super::engine::{Engine, EngineGradient, at_stage};
use super::forward::{Conditioning, Forward, Pass};
use super::panels::{Panels, STRIP};
use super::trunk::{Scratch, Tape, add_column_sums};
use crate::criterion::Method;
use crate::error::Result;
use crate::rng::{Stream, Streams};
use crate::simd;
use crate::smc::Particles;

/// One step's settings and parameters, shared by all threads.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    pub engine: &'a Engine,
    pub config: &'a ArStepConfig,
    pub streams: &'a Streams,
    pub step: u64,
    /// What each observation of the batch counts, of a whole of 1.
    pub shares: &'a [f64],
    /// Candidates that are given instead of drawn, `[observations, candidates, features]`.
    pub candidates: Option<&'a [f32]>,
}

/// Sums over observations, each times its share.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TileReport {
    /// `-log q(x_0)`
    pub proposal_nll: f64,
    /// `-log p~(x_0) + log Z-hat`
    pub ebm_loss: f64,
    /// Effective sample size at the last stage.
    pub effective_sample_size: f64,
}

impl TileReport {
    pub fn add(&mut self, other: &TileReport) {
        self.proposal_nll += other.proposal_nll;
        self.ebm_loss += other.ebm_loss;
        self.effective_sample_size += other.effective_sample_size;
    }

    /// For another rank.
    pub fn to_bytes(self) -> Vec<u8> {
        let numbers = [self.proposal_nll, self.ebm_loss, self.effective_sample_size];
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// From another rank.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let (numbers, _) = bytes.as_chunks::<8>();
        let number = |at: usize| f64::from_le_bytes(numbers[at]);
        Self { proposal_nll: number(0), ebm_loss: number(1), effective_sample_size: number(2) }
    }
}

/// Memory of a worker, kept from tile to tile and step to step.
#[derive(Debug, Default)]
pub struct Workspace {
    /// One for each stage, or, where stages have nothing to do with each other, for one after the other.
    passes: Vec<Pass>,
    /// One for each stage, or for all of them.
    conditionings: Vec<Conditioning>,
    forward: Forward,
    scratch: Scratch,
    /// What the energy network made of the rows that its gradient goes back through, where that is not all of them.
    energy_tape: Tape,
    energy_gradient: Panels,
    prefix_gradient: Panels,
    context_gradient: Panels,
    /// One for each member, as the next.
    proposal_gradients: Vec<Panels>,
    head_gradients: Vec<Panels>,
    head_input: Panels,
    head_back: Panels,
}

impl Plan<'_> {
    /// Adds the gradient of the observations `x`, the first of which is number `first` of the batch.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major
    pub fn run(
        &self,
        x: &[f32],
        first: usize,
        workspace: &mut Workspace,
        gradient: &mut EngineGradient,
    ) -> Result<TileReport> {
        let features = self.engine.config.features;
        let observations = x.len() / features;
        let numbers = first..first + observations;
        let streams = |purpose: &str| self.streams.lanes(purpose, self.step, numbers.clone());
        let local = self.engine.config.normalisation == Normalisation::Local;
        let (candidates, defence) = (self.config.candidates(), self.config.defence(features));
        let forward = &mut workspace.forward;
        forward.recording = true;
        forward.share_masks = self.config.share_masks || local;
        forward.begin(x, features, candidates, local, defence);
        if let Some(all) = self.candidates {
            forward.give_all(&all[first * candidates * features..]);
        }
        let one_pass = forward.is_one_pass(&self.engine.config);
        // What is known of a stage may be forgotten where nothing of it is needed any more.
        workspace.passes.resize_with(if local { 1 } else { features }, Pass::default);
        let conditionings = if one_pass { 1 } else { features };
        workspace.conditionings.resize_with(conditionings, Conditioning::default);
        let shares = &self.shares[numbers.clone()];
        let mut tile = Tile {
            plan: self,
            shares,
            local,
            one_pass,
            workspace: &mut *workspace,
            gradient: &mut *gradient,
            particle_streams: streams("ar-particles"),
            dropout_streams: streams("ar-dropout"),
            report: TileReport::default(),
        };
        let genealogy = self.config.filter(observations, first, local).run(features, &mut tile)?;
        if !local {
            let coefficients = self.config.coefficients(&genealogy, shares, &self.engine.config);
            for (stage, coefficients) in coefficients.iter().enumerate() {
                tile.backward(stage, coefficients);
            }
        }
        let mut report = tile.report;
        report.ebm_loss += weighted(shares, genealogy.log_z_hat.iter().copied());
        let last = genealogy.effective_sample_size[features - 1].iter().copied();
        report.effective_sample_size = weighted(shares, last);
        Ok(report)
    }

    /// Adds the gradient of a stage, down to what its last layers see.
    fn stage_backward(
        &self,
        stage: usize,
        coefficients: &[Coefficient],
        memory: &mut Workspace,
        gradient: &mut EngineGradient,
    ) {
        let warm_up = self.config.criterion == Method::QOnly;
        // A class has no tilt: its base is what is trained, context and all.
        let alone = warm_up || self.engine.config.kind(stage).is_categorical();
        if !alone {
            self.energy_backward(coefficients, stage, memory, gradient);
        }
        self.head_backward(coefficients, stage, memory);
        let conditioning = &memory.conditionings[at_stage(&memory.conditionings, stage)];
        let pass = &memory.passes[at_stage(&memory.passes, stage)];
        let members = self.engine.members.iter().zip(&mut gradient.members);
        let backs = memory.proposal_gradients.iter_mut().zip(&memory.head_gradients);
        for (((member, gradient), tape), (back, of_outputs)) in
            members.zip(&conditioning.tapes).zip(backs)
        {
            let (last, output) = (member.last(stage), tape.output());
            let at = at_stage(&gradient.last, stage);
            let [of_context, of_head] = &mut gradient.last[at];
            if !alone {
                last.context.add_backward(&memory.context_gradient, back);
                of_context.add(output, &memory.context_gradient);
            }
            memory.head_input.gather(output, &pass.head_rows);
            of_head.add(&memory.head_input, of_outputs);
            if alone || self.config.context_flow == ContextFlow::Shared {
                last.head.backward(of_outputs, &mut memory.head_back);
                back.scatter_add(&memory.head_back, &pass.head_rows);
            }
        }
    }

    /// Takes the gradient with respect to what the last layers see through the rest of the proposal network.
    fn conditioner_backward(
        &self,
        stage: usize,
        memory: &mut Workspace,
        gradient: &mut EngineGradient,
    ) {
        let conditioning = &memory.conditionings[at_stage(&memory.conditionings, stage)];
        let members = self.engine.members.iter().zip(&mut gradient.members);
        let backs = memory.proposal_gradients.iter_mut().zip(&conditioning.tapes);
        for ((member, gradient), (back, tape)) in members.zip(backs) {
            member.trunk.backward(back, tape, &mut gradient.blocks, &mut memory.scratch);
            if stage > 0 {
                let inputs = self.engine.config.inputs_before(stage);
                gradient.first.add_transposed_product(&conditioning.prefix, inputs, back);
            }
            let at = at_stage(&gradient.stage_bias, stage);
            add_column_sums(back, &mut gradient.stage_bias[at]);
        }
    }

    /// Gradient of the energy network; leaves the gradient of the contexts.
    fn energy_backward(
        &self,
        coefficients: &[Coefficient],
        stage: usize,
        memory: &mut Workspace,
        gradient: &mut EngineGradient,
    ) {
        let Engine { config, energy, .. } = self.engine;
        let pass = &memory.passes[at_stage(&memory.passes, stage)];
        let activation = energy.trunk.activation;
        let bound = config.tilt_bound as f32;
        let slope = |o: f32| match config.energy_form {
            // log p~ = -softplus(o)
            EnergyForm::Free => -simd::sigmoid::<false>(o),
            // log p~ = log q + c tanh(o / c)
            EnergyForm::Tilted => 1.0 - simd::tanh::<false>(o / bound).powi(2),
        };
        let conditioning = &memory.conditionings[at_stage(&memory.conditionings, stage)];
        // What has no coefficient has no gradient.
        let counts = |row: &usize| coefficients[*row].log_p != 0.0;
        let rows: Vec<usize> = (0..coefficients.len()).filter(counts).collect();
        let outer = |&row: &usize| coefficients[row].log_p * slope(pass.energy_output[row]);
        let outer: Vec<f32> = rows.iter().map(outer).collect();
        let all = rows.len() == coefficients.len();
        let (tape, x) = match all {
            true => (&pass.energy_tape, &pass.x),
            false => {
                memory.energy_tape.gather(&pass.energy_tape, &rows);
                (&memory.energy_tape, &rows.iter().map(|&row| pass.x[row]).collect())
            }
        };
        let output = tape.output();
        memory.energy_gradient.reshape(output.rows(), output.columns());
        let (last_bias, last) = gradient.energy_last.split_last_mut().expect("a bias");
        *last_bias += outer.iter().sum::<f32>();
        for panel in 0..output.num_panels() {
            let range = panel * STRIP..(panel + 1) * STRIP;
            let (weights, sums) = (&energy.last[range.clone()], &mut last[range]);
            let (values, out) = (output.panel(panel), memory.energy_gradient.panel_mut(panel));
            elementwise::outer_derivative(activation, &outer, weights, values, out, sums);
        }
        let (back, scratch) = (&mut memory.energy_gradient, &mut memory.scratch);
        energy.trunk.backward_activated(back, tape, &mut gradient.energy, scratch);
        for panel in 0..back.num_panels() {
            let sums = &mut gradient.energy_of_x[panel * STRIP..][..STRIP];
            elementwise::add_weighted_sums(x, back.panel(panel), sums);
        }
        // Rows with one prefix share what its context gave them.
        let of_prefixes = if all && conditioning.sharing.is_empty() {
            &*back
        } else {
            let prefixes: Vec<usize> =
                rows.iter().map(|&row| conditioning.prefix_of(row)).collect();
            memory.prefix_gradient.reshape(pass.context.rows(), back.columns());
            memory.prefix_gradient.data_mut().fill(0.0);
            memory.prefix_gradient.scatter_add(back, &prefixes);
            &memory.prefix_gradient
        };
        gradient.energy_first.add(&pass.context, of_prefixes);
        energy.first.backward(of_prefixes, &mut memory.context_gradient);
    }

    /// Gradient of the proposal's objective with respect to the bases of the rows that take part in it.
    fn head_backward(&self, coefficients: &[Coefficient], stage: usize, workspace: &mut Workspace) {
        let config = &self.engine.config;
        let conditioning = &workspace.conditionings[at_stage(&workspace.conditionings, stage)];
        let at = at_stage(&workspace.passes, stage);
        let pass = &mut workspace.passes[at];
        let outputs = config.head_outputs(stage);
        let mut base = Base::at(config, stage);
        let mut values: Vec<Vec<f32>> = vec![Vec::new(); config.members];
        pass.head_rows.clear();
        for (row, coefficient) in coefficients.iter().enumerate().filter(|(_, c)| c.log_q != 0.0) {
            let target = conditioning.prefix_of(row);
            if pass.head_rows.last() != Some(&target) {
                pass.head_rows.push(target);
                values.iter_mut().for_each(|values| values.resize(values.len() + outputs, 0.0));
                base.read(&pass.head_raw, target, conditioning.known(self.engine, target, stage));
            }
            let from = (pass.head_rows.len() - 1) * outputs;
            let gradients = values.iter_mut().map(|values| &mut values[from..]);
            base.add_gradients(pass.x[row], coefficient.log_q, gradients);
        }
        let rows = pass.head_rows.len();
        workspace.head_gradients.clear();
        let gradients = values.iter().map(|v| Panels::from_rows(v, outputs, rows, outputs));
        workspace.head_gradients.extend(gradients);
    }
}

/// The sum over observations of what belongs to each, times its share.
pub(super) fn weighted(shares: &[f64], values: impl Iterator<Item = f64>) -> f64 {
    shares.iter().zip(values).map(|(share, value)| share * value).sum()
}

/// The candidates of the observations of a tile.
struct Tile<'a> {
    plan: &'a Plan<'a>,
    shares: &'a [f64],
    /// Whether every factor has a normaliser of its own, so that its gradient waits for no other.
    local: bool,
    /// Whether one pass of the conditioner serves all stages.
    one_pass: bool,
    workspace: &'a mut Workspace,
    gradient: &'a mut EngineGradient,
    /// Both one for each observation.
    particle_streams: Vec<Stream>,
    dropout_streams: Vec<Stream>,
    report: TileReport,
}

impl Tile<'_> {
    /// Adds the gradient of a stage; the conditioner's when all that it said has been gone back through.
    fn backward(&mut self, stage: usize, coefficients: &[Coefficient]) {
        let Self { plan, one_pass, workspace, gradient, .. } = self;
        let Plan { engine, .. } = plan;
        if engine.config.is_given(stage) {
            return;
        }
        if !*one_pass || stage == engine.config.given {
            let at = at_stage(&workspace.conditionings, stage);
            let tapes = &workspace.conditionings[at].tapes;
            workspace.proposal_gradients.resize_with(tapes.len(), Panels::default);
            for (back, tape) in workspace.proposal_gradients.iter_mut().zip(tapes) {
                back.reshape(tape.output().rows(), tape.output().columns());
                back.data_mut().fill(0.0);
            }
        }
        plan.stage_backward(stage, coefficients, workspace, gradient);
        if !*one_pass || stage + 1 == engine.config.features {
            plan.conditioner_backward(stage, workspace, gradient);
        }
    }
}

impl Particles for Tile<'_> {
    /// Where the proposal alone is trained, the data point is the only particle and gains no weight.
    fn advance(&mut self, stage: usize, log_weights: &mut [f64]) -> Result<()> {
        let (Plan { engine, config, .. }, shares) = (self.plan, self.shares);
        let candidates = config.candidates();
        let [of_proposal, of_energy] = engine.config.dropouts();
        let streams = &mut self.dropout_streams;
        let mut masks = of_proposal.map(|dropout| Masks::new(dropout, streams, candidates));
        let Workspace { passes, conditionings, forward, .. } = &mut *self.workspace;
        let of_stage = at_stage(passes, stage);
        let pass = &mut passes[of_stage];
        let at = at_stage(conditionings, stage);
        let conditioning = &mut conditionings[at];
        forward.propose(engine, stage, masks.as_mut(), conditioning, pass);
        // One pass of the conditioner is made at the first stage, whether it is given or not.
        if engine.config.is_given(stage) {
            return Ok(());
        }
        forward.draw(engine, stage, &mut self.particle_streams, conditioning, pass);
        let of_data = |values: &[f32]| -> f64 {
            weighted(shares, values.iter().step_by(candidates).map(|&value| f64::from(value)))
        };
        self.report.proposal_nll -= of_data(&pass.log_q);
        if config.criterion != Method::QOnly {
            let mut masks = of_energy.map(|dropout| Masks::new(dropout, streams, candidates));
            forward.weigh(engine, stage, masks.as_mut(), conditioning, pass);
            forward.forget_sharing();
            self.report.ebm_loss -= of_data(&pass.log_p);
            pass.add_log_weights(log_weights);
        }
        Ok(())
    }

    /// What a stage computed is still in the cache.
    fn weighed(&mut self, stage: usize, weights: &[f64]) {
        if self.local {
            let Plan { engine, config, .. } = self.plan;
            let coefficients =
                config.of_stage(stage, weights, weights, self.shares, &engine.config);
            self.backward(stage, &coefficients);
        }
    }

    fn descend(&mut self, stage: usize, row: usize, ancestors: &[usize]) {
        self.workspace.forward.resample(row, ancestors, stage + 1);
    }

    fn rng(&mut self, _stage: usize, row: usize) -> &mut Stream {
        &mut self.particle_streams[row]
    }
}
