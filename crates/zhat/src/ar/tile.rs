//! Loss and gradient of a few observations: the networks forward and backward, stage by stage, in memory used again.

use super::criterion::{ArStepConfig, ContextFlow};
use super::dropout::{Dropout, Masks};
use super::engine::{Engine, EngineGradient};
use super::forward::{Forward, Stage};
use super::mixture::Mixture;
use super::panels::{LANES, Panels};
use super::particles::ParticleSystem;
use super::trunk::{Scratch, add_column_sums};
use super::{elementwise, simd};
use crate::criterion::Method;
use crate::error::Result;
use crate::kernel::SmcGradient;
use crate::rng::{Stream, Streams};

/// One step's settings and parameters, shared by all threads.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// The networks.
    pub engine: &'a Engine,
    /// The settings.
    pub config: &'a ArStepConfig,
    /// Where randomness comes from.
    pub streams: &'a Streams,
    /// Step of the run.
    pub step: u64,
    /// One over the number of observations in the batch.
    pub scale: f64,
}

/// Sums over observations, each divided by the size of the batch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TileReport {
    /// `-log q(x_0)`
    pub proposal_nll: f64,
    /// `-log p~(x_0) + log Z-hat`
    pub ebm_loss: f64,
    /// Effective sample size at the last stage.
    pub effective_sample_size: f64,
    /// Number of resamplings.
    pub resamplings: f64,
}

impl TileReport {
    /// Adds another.
    pub fn add(&mut self, other: &TileReport) {
        self.proposal_nll += other.proposal_nll;
        self.ebm_loss += other.ebm_loss;
        self.effective_sample_size += other.effective_sample_size;
        self.resamplings += other.resamplings;
    }
}

/// Memory of a worker, kept from tile to tile and step to step.
#[derive(Debug)]
pub struct Workspace {
    stages: Vec<Stage>,
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

impl Default for Workspace {
    fn default() -> Self {
        Self {
            stages: Vec::new(),
            forward: Forward::recording(),
            scratch: Scratch::default(),
            energy_gradient: Panels::default(),
            row_context_gradient: Panels::default(),
            context_gradient: Panels::default(),
            proposal_gradient: Panels::default(),
            mixture_gradient: Panels::default(),
            mixture_input: Panels::default(),
            mixture_back: Panels::default(),
        }
    }
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
        let streams = |purpose: &str| -> Vec<Stream> {
            (0..observations)
                .map(|n| self.streams.stream(purpose, self.step, (first + n) as u64))
                .collect()
        };
        let (mut particle_streams, mut dropout_streams) =
            (streams("ar-particles"), streams("ar-dropout"));
        let mut systems: Vec<ParticleSystem> =
            (0..observations).map(|n| ParticleSystem::new(self.config, first + n)).collect();
        let mut report = TileReport::default();
        workspace.stages.resize_with(features, Stage::default);
        workspace.forward.share_masks = self.config.share_masks;
        workspace.forward.begin(x, features, self.config.candidates());
        workspace.forward.defend(self.config.defence(features));
        for stage in 0..features {
            let masks = Dropout::new(self.engine.config.dropout)
                .map(|dropout| Masks::new(dropout, &mut dropout_streams, self.config.candidates()));
            self.stage_forward(
                stage,
                masks,
                &mut particle_streams,
                &mut systems,
                workspace,
                &mut report,
            )?;
        }
        let coefficients = self.coefficients(&systems, features, &mut report);
        for stage in 0..features {
            self.stage_backward(stage, &coefficients, workspace, gradient);
        }
        Ok(report)
    }

    fn stage_forward(
        &self,
        index: usize,
        mut masks: Option<Masks>,
        streams: &mut [Stream],
        systems: &mut [ParticleSystem],
        workspace: &mut Workspace,
        report: &mut TileReport,
    ) -> Result<()> {
        let candidates = self.config.candidates();
        let stage = &mut workspace.stages[index];
        let forward = &mut workspace.forward;
        forward.propose(self.engine, index, masks.as_mut(), stage);
        forward.draw(self.engine, index, streams, stage);
        report.proposal_nll -=
            self.scale * stage.log_q.iter().step_by(candidates).map(|&l| f64::from(l)).sum::<f64>();
        if self.config.criterion == Method::QOnly {
            return Ok(());
        }
        forward.weigh(self.engine, masks.as_mut(), stage);
        forward.forget_sharing();
        let last = index + 1 == self.engine.config.features;
        for (n, (system, rng)) in systems.iter_mut().zip(streams).enumerate() {
            let rows = n * candidates..(n + 1) * candidates;
            let log_p = &stage.log_p[rows.clone()];
            let log_w: Vec<f64> = log_p
                .iter()
                .zip(&stage.log_draw[rows])
                .map(|(p, q)| f64::from(*p) - f64::from(*q))
                .collect();
            report.ebm_loss -= self.scale * f64::from(log_p[0]);
            system.weigh(&log_w)?;
            if !last && let Some(ancestors) = system.resample(rng) {
                forward.resample(n, ancestors, index + 1);
                report.resamplings += self.scale;
            }
        }
        Ok(())
    }

    /// For each stage and row, what multiplies the gradients of `log p~` and of `log q`.
    fn coefficients(
        &self,
        systems: &[ParticleSystem],
        features: usize,
        report: &mut TileReport,
    ) -> Vec<Vec<RowCoefficient>> {
        let candidates = self.config.candidates();
        let (data_share, model_share) = self.config.proposal_shares();
        let form = self.config.criterion.smc_gradient();
        let mut rows = vec![Vec::with_capacity(systems.len() * candidates); features];
        for system in systems {
            if self.config.criterion == Method::QOnly {
                let log_q = (-self.scale) as f32;
                rows.iter_mut().for_each(|rows| rows.push(RowCoefficient { log_p: 0.0, log_q }));
                continue;
            }
            report.ebm_loss += self.scale * system.log_z_hat();
            report.effective_sample_size +=
                self.scale * crate::weights::effective_sample_size(system.weights(features - 1));
            let energy = system.coefficients(form);
            let model = (model_share > 0.0).then(|| system.coefficients(SmcGradient::Trajectory));
            for (stage, rows) in rows.iter_mut().enumerate() {
                for candidate in 0..candidates {
                    let data = if candidate == 0 { 1.0 } else { 0.0 };
                    let model = model.as_ref().map_or(0.0, |model| model[stage][candidate]);
                    rows.push(RowCoefficient {
                        log_p: (self.scale * (energy[stage][candidate] - data)) as f32,
                        log_q: (-self.scale * (data_share * data + model_share * model)) as f32,
                    });
                }
            }
        }
        rows
    }

    fn stage_backward(
        &self,
        index: usize,
        coefficients: &[Vec<RowCoefficient>],
        workspace: &mut Workspace,
        gradient: &mut EngineGradient,
    ) {
        let warm_up = self.config.criterion == Method::QOnly;
        if !warm_up {
            self.energy_backward(&coefficients[index], index, workspace, gradient);
        }
        self.mixture_backward(&coefficients[index], index, workspace);
        let Workspace {
            stages,
            scratch,
            context_gradient,
            proposal_gradient,
            mixture_input,
            mixture_back,
            mixture_gradient,
            ..
        } = workspace;
        let (stage, proposal) = (&stages[index], &self.engine.proposal);
        let output = stage.proposal_tape.output();
        if warm_up {
            proposal_gradient.reshape(output.rows(), output.columns());
            proposal_gradient.data_mut().fill(0.0);
        } else {
            proposal.context.backward(context_gradient, proposal_gradient);
            gradient.context.add(output, context_gradient);
        }
        mixture_input.gather(output, &stage.mixture_rows);
        gradient.mixture.add(mixture_input, mixture_gradient);
        if warm_up || self.config.context_flow == ContextFlow::Shared {
            proposal.mixture.backward(mixture_gradient, mixture_back);
            proposal_gradient.scatter_add(mixture_back, &stage.mixture_rows);
        }
        proposal.trunk.backward(
            proposal_gradient,
            &stage.proposal_tape,
            &mut gradient.proposal,
            scratch,
        );
        if index > 0 {
            gradient.first.add_transposed_product(&stage.prefix, index, proposal_gradient);
        }
        add_column_sums(proposal_gradient, &mut gradient.stage_bias[index]);
    }

    /// Gradient of the energy network; leaves the gradient of the contexts.
    fn energy_backward(
        &self,
        coefficients: &[RowCoefficient],
        index: usize,
        workspace: &mut Workspace,
        gradient: &mut EngineGradient,
    ) {
        let energy = &self.engine.energy;
        let Workspace {
            stages,
            scratch,
            energy_gradient,
            row_context_gradient,
            context_gradient,
            ..
        } = workspace;
        let stage = &stages[index];
        // log p~ = -softplus(o), so d log p~ / d o = -sigmoid(o).
        let outer: Vec<f32> = coefficients
            .iter()
            .zip(&stage.energy_output)
            .map(|(c, &o)| -c.log_p * simd::sigmoid::<false>(o))
            .collect();
        let output = stage.energy_tape.output();
        energy_gradient.reshape(output.rows(), output.columns());
        let (last_bias, last) = gradient.energy_last.split_last_mut().expect("a bias");
        *last_bias += outer.iter().sum::<f32>();
        for panel in 0..output.num_panels() {
            let range = panel * LANES..(panel + 1) * LANES;
            let (weights, sums) = (&energy.last[range.clone()], &mut last[range]);
            let out = energy_gradient.panel_mut(panel);
            elementwise::outer_derivative(
                energy.trunk.shape,
                &outer,
                weights,
                output.panel(panel),
                out,
                sums,
            );
        }
        energy.trunk.backward_activated(
            energy_gradient,
            &stage.energy_tape,
            &mut gradient.energy,
            scratch,
        );
        gradient.energy_first.add(&stage.energy_input, energy_gradient);
        if stage.sharing.is_empty() {
            energy.first.backward(energy_gradient, context_gradient);
        } else {
            energy.first.backward(energy_gradient, row_context_gradient);
            context_gradient
                .reshape(stage.proposal_tape.output().rows(), self.engine.config.context);
            context_gradient.data_mut().fill(0.0);
            context_gradient.scatter_add(row_context_gradient, &stage.sharing);
        }
    }

    /// Gradient of the proposal's objective with respect to the mixtures of the rows that take part in it.
    fn mixture_backward(
        &self,
        coefficients: &[RowCoefficient],
        index: usize,
        workspace: &mut Workspace,
    ) {
        let config = &self.engine.config;
        let stage = &mut workspace.stages[index];
        let outputs = 3 * config.mixture_components;
        let mut mixture = Mixture::new(config.mixture_components, config.minimum_scale as f32);
        let mut raw = vec![0.0; outputs.next_multiple_of(LANES)];
        let mut values: Vec<f32> = Vec::new();
        stage.mixture_rows.clear();
        for (row, coefficient) in coefficients.iter().enumerate().filter(|(_, c)| c.log_q != 0.0) {
            let target = stage.sharing.get(row).copied().unwrap_or(row);
            if stage.mixture_rows.last() != Some(&target) {
                stage.mixture_rows.push(target);
                values.resize(values.len() + outputs, 0.0);
                stage.mixture_raw.read_row(target, &mut raw);
                mixture.set(&raw);
            }
            let from = values.len() - outputs;
            mixture.add_gradient(stage.x[row], coefficient.log_q, &mut values[from..]);
        }
        let rows = stage.mixture_rows.len();
        workspace.mixture_gradient = Panels::from_rows(&values, outputs, rows, outputs);
    }
}

/// Weights of a row's gradients in the loss.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RowCoefficient {
    log_p: f32,
    log_q: f32,
}
