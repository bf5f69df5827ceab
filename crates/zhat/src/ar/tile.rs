//! Loss and gradient of a few observations: the networks forward and backward, stage by stage, in memory used again.

use super::coefficients::Coefficient;
use super::criterion::{ArStepConfig, ContextFlow};
use super::dropout::{Dropout, Masks};
use super::engine::{Engine, EngineGradient};
use super::forward::{Forward, Pass};
use super::mixture::Mixture;
use super::panels::{Panels, STRIP};
use super::trunk::{Scratch, add_column_sums};
use super::{elementwise, simd};
use crate::criterion::Method;
use crate::error::Result;
use crate::rng::{Stream, Streams};
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
}

/// Memory of a worker, kept from tile to tile and step to step.
#[derive(Debug, Default)]
pub struct Workspace {
    /// One for each stage.
    passes: Vec<Pass>,
    forward: Forward,
    scratch: Scratch,
    energy_gradient: Panels,
    row_context_gradient: Panels,
    context_gradient: Panels,
    proposal_gradient: Panels,
    mixture_gradient: Panels,
    mixture_input: Panels,
    mixture_back: Panels,
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
        workspace.passes.resize_with(features, Pass::default);
        workspace.forward.recording = true;
        workspace.forward.share_masks = self.config.share_masks;
        workspace.forward.begin(x, features, self.config.candidates());
        workspace.forward.defend(self.config.defence(features));
        let shares = &self.shares[numbers.clone()];
        let mut tile = Tile {
            plan: self,
            shares,
            workspace: &mut *workspace,
            particle_streams: streams("ar-particles"),
            dropout_streams: streams("ar-dropout"),
            report: TileReport::default(),
        };
        let genealogy = self.config.filter(observations, first).run(features, &mut tile)?;
        let mut report = tile.report;
        report.ebm_loss += weighted(shares, genealogy.log_z_hat.iter().copied());
        let last = genealogy.effective_sample_size[features - 1].iter().copied();
        report.effective_sample_size = weighted(shares, last);
        let coefficients = self.config.coefficients(&genealogy, shares);
        for (stage, coefficients) in coefficients.iter().enumerate() {
            self.stage_backward(stage, coefficients, workspace, gradient);
        }
        Ok(report)
    }

    fn stage_backward(
        &self,
        stage: usize,
        coefficients: &[Coefficient],
        workspace: &mut Workspace,
        gradient: &mut EngineGradient,
    ) {
        let warm_up = self.config.criterion == Method::QOnly;
        if !warm_up {
            self.energy_backward(coefficients, stage, workspace, gradient);
        }
        self.mixture_backward(coefficients, stage, workspace);
        let Workspace {
            passes,
            scratch,
            context_gradient,
            proposal_gradient,
            mixture_input,
            mixture_back,
            mixture_gradient,
            ..
        } = workspace;
        let (pass, proposal) = (&passes[stage], &self.engine.proposal);
        let (tape, output) = (&pass.proposal_tape, pass.proposal_tape.output());
        if warm_up {
            proposal_gradient.reshape(output.rows(), output.columns());
            proposal_gradient.data_mut().fill(0.0);
        } else {
            proposal.context.backward(context_gradient, proposal_gradient);
            gradient.context.add(output, context_gradient);
        }
        mixture_input.gather(output, &pass.mixture_rows);
        gradient.mixture.add(mixture_input, mixture_gradient);
        if warm_up || self.config.context_flow == ContextFlow::Shared {
            proposal.mixture.backward(mixture_gradient, mixture_back);
            proposal_gradient.scatter_add(mixture_back, &pass.mixture_rows);
        }
        proposal.trunk.backward(proposal_gradient, tape, &mut gradient.proposal, scratch);
        if stage > 0 {
            gradient.first.add_transposed_product(&pass.prefix, stage, proposal_gradient);
        }
        add_column_sums(proposal_gradient, &mut gradient.stage_bias[stage]);
    }

    /// Gradient of the energy network; leaves the gradient of the contexts.
    fn energy_backward(
        &self,
        coefficients: &[Coefficient],
        stage: usize,
        workspace: &mut Workspace,
        gradient: &mut EngineGradient,
    ) {
        let energy = &self.engine.energy;
        let Workspace {
            passes,
            scratch,
            energy_gradient,
            row_context_gradient,
            context_gradient,
            ..
        } = workspace;
        let (pass, activation) = (&passes[stage], energy.trunk.activation);
        // log p~ = -softplus(o), so d log p~ / d o = -sigmoid(o).
        let outer: Vec<f32> = coefficients
            .iter()
            .zip(&pass.energy_output)
            .map(|(c, &o)| -c.log_p * simd::sigmoid::<false>(o))
            .collect();
        let (tape, output) = (&pass.energy_tape, pass.energy_tape.output());
        energy_gradient.reshape(output.rows(), output.columns());
        let (last_bias, last) = gradient.energy_last.split_last_mut().expect("a bias");
        *last_bias += outer.iter().sum::<f32>();
        for panel in 0..output.num_panels() {
            let range = panel * STRIP..(panel + 1) * STRIP;
            let (weights, sums) = (&energy.last[range.clone()], &mut last[range]);
            let (values, out) = (output.panel(panel), energy_gradient.panel_mut(panel));
            elementwise::outer_derivative(activation, &outer, weights, values, out, sums);
        }
        energy.trunk.backward_activated(energy_gradient, tape, &mut gradient.energy, scratch);
        gradient.energy_first.add(&pass.energy_input, energy_gradient);
        if pass.sharing.is_empty() {
            energy.first.backward(energy_gradient, context_gradient);
        } else {
            energy.first.backward(energy_gradient, row_context_gradient);
            context_gradient
                .reshape(pass.proposal_tape.output().rows(), self.engine.config.context);
            context_gradient.data_mut().fill(0.0);
            context_gradient.scatter_add(row_context_gradient, &pass.sharing);
        }
    }

    /// Gradient of the proposal's objective with respect to the mixtures of the rows that take part in it.
    fn mixture_backward(
        &self,
        coefficients: &[Coefficient],
        stage: usize,
        workspace: &mut Workspace,
    ) {
        let config = &self.engine.config;
        let pass = &mut workspace.passes[stage];
        let outputs = 3 * config.mixture_components;
        let mut mixture = Mixture::new(config.mixture_components, config.minimum_scale as f32);
        let mut raw = vec![0.0; outputs.next_multiple_of(STRIP)];
        let mut values: Vec<f32> = Vec::new();
        pass.mixture_rows.clear();
        for (row, coefficient) in coefficients.iter().enumerate().filter(|(_, c)| c.log_q != 0.0) {
            let target = pass.sharing.get(row).copied().unwrap_or(row);
            if pass.mixture_rows.last() != Some(&target) {
                pass.mixture_rows.push(target);
                values.resize(values.len() + outputs, 0.0);
                pass.mixture_raw.read_row(target, &mut raw);
                mixture.set(&raw);
            }
            let from = values.len() - outputs;
            mixture.add_gradient(pass.x[row], coefficient.log_q, &mut values[from..]);
        }
        let rows = pass.mixture_rows.len();
        workspace.mixture_gradient = Panels::from_rows(&values, outputs, rows, outputs);
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
    workspace: &'a mut Workspace,
    /// Both one for each observation.
    particle_streams: Vec<Stream>,
    dropout_streams: Vec<Stream>,
    report: TileReport,
}

impl Particles for Tile<'_> {
    /// Where the proposal alone is trained, the data point is the only particle and gains no weight.
    fn advance(&mut self, stage: usize, log_weights: &mut [f64]) -> Result<()> {
        let (Plan { engine, config, .. }, shares) = (self.plan, self.shares);
        let candidates = config.candidates();
        let mut masks = Dropout::new(engine.config.dropout)
            .map(|dropout| Masks::new(dropout, &mut self.dropout_streams, candidates));
        let Workspace { passes, forward, .. } = &mut *self.workspace;
        let pass = &mut passes[stage];
        forward.propose(engine, stage, masks.as_mut(), pass);
        forward.draw(engine, stage, &mut self.particle_streams, pass);
        let of_data = |values: &[f32]| -> f64 {
            weighted(shares, values.iter().step_by(candidates).map(|&value| f64::from(value)))
        };
        self.report.proposal_nll -= of_data(&pass.log_q);
        if config.criterion != Method::QOnly {
            forward.weigh(engine, masks.as_mut(), pass);
            forward.forget_sharing();
            self.report.ebm_loss -= of_data(&pass.log_p);
            pass.add_log_weights(log_weights);
        }
        Ok(())
    }

    fn descend(&mut self, stage: usize, row: usize, ancestors: &[usize]) {
        self.workspace.forward.resample(row, ancestors, stage + 1);
    }

    fn rng(&mut self, _stage: usize, row: usize) -> &mut Stream {
        &mut self.particle_streams[row]
    }
}
