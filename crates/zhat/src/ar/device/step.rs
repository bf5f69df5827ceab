//! The training step on a device: one read, of losses, effective sample size and the norm of the gradient.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};

use super::base::{defended, upload};
use super::bases::Bases;
use super::check;
use super::global::Global;
use super::local::{Layout, Local};
use super::reads::Reads;
use crate::ar::config::{ArEbmConfig, Normalisation};
use crate::ar::criterion::{ArStepConfig, ProposalTarget};
use crate::ar::defence::Defence;
use crate::ar::model::ArEbm;
use crate::criterion::Method;
use crate::error::{Error, Result};
use crate::rng::{Stream, Streams};
use crate::smc::Resampling;
use crate::train::{Batch, StepReport, TrainingStep};

/// The training step on the device of the model; its settings are those of an [`ArStep`](super::super::ArStep).
///
/// It follows the same distribution as that one, with other draws: uniforms and normals come from a [`Stream`] and are sent over, and
/// masks are made there. Its first step begins with a comparison of loss and gradient with the CPU's ([`Error::WrongDevice`]).
#[derive(Debug)]
pub struct DeviceStep {
    settings: ArStepConfig,
    layout: Option<Layout>,
    reads: Reads,
    /// Whether loss and gradient have been found to be the CPU's.
    checked: bool,
}

/// What a step computes with.
pub struct Plan<'a> {
    /// As they are at this step.
    pub settings: ArStepConfig,
    pub shares: &'a [f64],
    pub draws: Stream,
    pub masks: Stream,
    /// Candidates that are given instead of drawn, `[observations, candidates, features]`.
    pub given: Option<&'a [f32]>,
}

/// What is differentiated, and what it is worth.
pub struct Terms {
    pub surrogate: Tensor<1>,
    /// `-log q(x_0)`, `-log p~(x_0) + log Z-hat` and the effective sample size, of one number each.
    pub figures: [Tensor<1>; 3],
}

impl DeviceStep {
    /// A step with these settings.
    pub fn new(settings: &ArStepConfig) -> Result<Self> {
        settings.validate()?;
        let settings = settings.clone();
        Ok(Self { settings, layout: None, reads: Reads::default(), checked: false })
    }

    /// The same without a comparison at its start, for the comparison itself.
    pub(super) fn unchecked(settings: &ArStepConfig) -> Result<Self> {
        Ok(Self { checked: true, ..Self::new(settings)? })
    }

    /// How often the CPU has waited for the device, the comparison at the start aside.
    pub fn reads(&self) -> u64 {
        self.reads.number()
    }

    /// An error for what a device cannot do.
    pub fn check(settings: &ArStepConfig, shape: &ArEbmConfig) -> Result<()> {
        let wrong = |name, value: &str, expected: &str| {
            Err(Error::setting(name, value, format!("{expected} on a device; the CPU has both")))
        };
        let local = shape.normalisation == Normalisation::Local;
        let dropout = shape.dropouts().iter().any(Option::is_some);
        let atoms = shape.kinds.iter().any(|kind| kind.is_atoms());
        match settings {
            ArStepConfig { criterion: Method::QOnly, .. } => Ok(()),
            _ if local && settings.proposal_target != ProposalTarget::Data => {
                wrong("step.proposal-target", "another", "data where factors are normalised")
            }
            _ if local && settings.criterion == Method::SmcRnceTrajectory => {
                wrong("step.criterion", "smc-rnce-trajectory", "rnce where factors are normalised")
            }
            _ if local && atoms && settings.wide_share > 0.0 => {
                wrong("step.wide-share", "above 0", "0 where columns have atoms")
            }
            _ if local => Ok(()),
            _ if shape.gaussian_mixture => {
                wrong("model.gaussian-mixture", "true", "false where one Z is estimated")
            }
            _ if settings.share_masks && dropout => wrong("step.share-masks", "true", "false"),
            _ if settings.resampling != Resampling::Multinomial => {
                wrong("step.resampling", settings.resampling.name(), "multinomial")
            }
            _ => Ok(()),
        }
    }

    /// Loss and gradient, with candidates that are given where there are any.
    pub(super) fn gradient_with(
        &mut self,
        model: &ArEbm,
        batch: &Batch,
        streams: &Streams,
        step: u64,
        given: Option<&[f32]>,
    ) -> Result<(GradientsParams, StepReport)> {
        let shares = batch.shares();
        let mut plan = Plan {
            settings: self.settings.at(step),
            shares: &shares,
            draws: streams.stream("device-draws", step, 0),
            masks: streams.stream("device-masks", step, 0),
            given,
        };
        Self::check(&plan.settings, &model.shape)?;
        let x: Vec<f32> = batch.x.to_data().iter::<f32>().collect();
        if !self.layout.as_ref().is_some_and(|layout| layout.is_of(model)) {
            let device = model.proposal.first.weight.val().device();
            self.layout = Some(Layout::new(&model.shape, &device));
        }
        let layout = self.layout.as_ref().expect("it was made");
        let with_energy = plan.settings.criterion != Method::QOnly;
        // The proposal alone is trained on the data's own prefixes, whatever is normalised.
        let terms = match model.shape.normalisation {
            Normalisation::Global if with_energy => {
                Global::new(model, &x, layout.device()).terms(&mut plan)
            }
            _ => Local::new(layout, model, &x).terms(&mut plan),
        };
        let gradients = GradientsParams::from_grads(terms.surrogate.backward(), model);
        let [nll, ebm, size] = terms.figures;
        let norm = squared_norm(model, &gradients);
        let found = self.reads.read(Tensor::cat(vec![nll, ebm, size, norm], 0));
        let gradient_norm = found[3].sqrt();
        let report = StepReport {
            loss: found[0] + if with_energy { found[1] } else { 0.0 },
            gradient_norm,
            effective_sample_size: with_energy.then_some(found[2]),
            proposal_nll: Some(found[0]),
            warming_up: self.settings.warms_up(step),
        };
        // A loss that is no number is for the guard to see, which knows what to do about it.
        if report.loss.is_finite() && !gradient_norm.is_finite() {
            return Err(Error::GradientNotFinite { step });
        }
        Ok((gradients, report))
    }
}

impl TrainingStep<ArEbm> for DeviceStep {
    fn gradient(
        &mut self,
        model: &ArEbm,
        batch: &Batch,
        streams: &Streams,
        step: u64,
    ) -> Result<(GradientsParams, StepReport)> {
        if !self.checked {
            check::compare(&self.settings, model, batch, streams)?;
            self.checked = true;
        }
        self.gradient_with(model, batch, streams, step, None)
    }
}

impl Plan<'_> {
    /// What each observation counts, `[observations, 1]`.
    pub fn shares_tensor(&self, device: &Device) -> Tensor<2> {
        let shares = self.shares.iter().map(|&share| share as f32).collect();
        upload(shares, [self.shares.len(), 1], device)
    }

    /// 1 for the first candidate of every row, and 0 for the others.
    pub fn first_of(&self, rows: usize, candidates: usize, device: &Device) -> Tensor<2> {
        let first = (0..candidates).map(|at| f32::from(u8::from(at == 0))).collect();
        upload(first, [1, candidates], device).expand([rows, candidates])
    }

    /// Uniforms on `[0, 1)`.
    pub fn uniforms<const D: usize>(&mut self, shape: [usize; D], device: &Device) -> Tensor<D> {
        let number = shape.iter().product();
        upload((0..number).map(|_| self.draws.uniform() as f32).collect(), shape, device)
    }

    /// Standard normals.
    pub fn normals<const D: usize>(&mut self, shape: [usize; D], device: &Device) -> Tensor<D> {
        let number = shape.iter().product();
        upload((0..number).map(|_| self.draws.normal() as f32).collect(), shape, device)
    }

    /// Draws of every row's bases, with their defensive part; or those that are given.
    ///
    /// # Shapes
    /// - output: `[rows, number]`
    pub fn candidates_of(
        &mut self,
        local: &Local,
        bases: &Bases,
        defence: Defence,
        rows: usize,
        number: usize,
    ) -> Tensor<2> {
        match self.given {
            Some(all) => local.given_candidates(all, number + 1),
            None => self.draw(bases, defence, [rows, number], local.device()),
        }
    }

    /// Draws of every row's bases, with their defensive part.
    pub fn draw(
        &mut self,
        bases: &Bases,
        defence: Defence,
        shape: [usize; 2],
        device: &Device,
    ) -> Tensor<2> {
        let (uniforms, normals) = (self.uniforms(shape, device), self.normals(shape, device));
        let drawn = bases.draw(&uniforms, &normals);
        match defence.is_none() {
            true => drawn,
            false => {
                let uniforms = [self.uniforms(shape, device), self.uniforms(shape, device)];
                defended(defence, drawn, uniforms)
            }
        }
    }
}

/// The square of the Euclidean norm of a gradient, where it is.
fn squared_norm(model: &ArEbm, gradients: &GradientsParams) -> Tensor<1> {
    struct Squares<'a> {
        gradients: &'a GradientsParams,
        sums: Vec<Tensor<1>>,
    }
    impl ModuleVisitor for Squares<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.gradients.get::<D>(param.id) {
                self.sums.push(gradient.square().sum());
            }
        }
    }
    let mut squares = Squares { gradients, sums: Vec::new() };
    model.visit(&mut squares);
    Tensor::cat(squares.sums, 0).sum()
}
