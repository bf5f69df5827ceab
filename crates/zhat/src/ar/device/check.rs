//! Loss and gradient of a device beside the CPU's, before the first step: some devices compute nonsense, and do not say so.
//!
//! The same few rows and the same candidates go through both, with the parameters of the model shaken, because at its start many of
//! them are zero and would hide what is wrong. Masks are left out; draws, masks and resampling are compared on the CPU's own tensors.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};

use super::step::DeviceStep;
use crate::ar::config::ArEbmConfig;
use crate::ar::criterion::ArStepConfig;
use crate::ar::model::ArEbm;
use crate::ar::step::ArStep;
use crate::criterion::Method;
use crate::error::{Error, Result};
use crate::rng::{Stream, Streams};
use crate::train::{Batch, StepReport, TrainingStep};

/// Rows that are compared.
const ROWS: usize = 16;
/// Standard deviation of what is added to every parameter.
const SHAKE: f64 = 0.05;
/// Nats by which the losses may differ, and as a share of them.
const LOSS: f64 = 1e-3;
/// Distance of the gradients, as a share of their norm. Single precision is a hundred times as good, and mistakes are as large as the gradient.
const GRADIENT: f64 = 1e-2;

/// What was found for a few rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    pub loss: f64,
    pub gradient: Vec<f32>,
}

/// An error unless the device of the model finds what the CPU finds.
pub fn compare(
    settings: &ArStepConfig,
    model: &ArEbm,
    batch: &Batch,
    streams: &Streams,
) -> Result<()> {
    compare_with(settings, model, batch, streams, |_| ())
}

/// The same with something done to what the device gets, for a twin that is wrong.
fn compare_with(
    settings: &ArStepConfig,
    model: &ArEbm,
    batch: &Batch,
    streams: &Streams,
    twin: impl FnOnce(&mut ArEbm),
) -> Result<()> {
    let device = model.proposal.first.weight.val().device();
    // Resampling cuts in where a weight is a little larger or smaller, so what is compared has none.
    let criterion = match settings.criterion {
        Method::SmcRnce | Method::SmcRnceTrajectory => Method::Rnce,
        other => other,
    };
    // A device goes back through all candidates, each by its weight.
    let settings = ArStepConfig { criterion, warm_up: 0, num_drawn: 0, ..settings.clone() };
    let shape = ArEbmConfig { dropout: 0.0, energy_dropout: None, ..model.shape.clone() };
    let rows = ROWS.min(batch.x.dims()[0]);
    let x = batch.x.clone().narrow(0, 0, rows);
    let weights = batch.weights.as_ref().map(|weights| weights[..rows].to_vec());
    let batch = Batch { x, weights };
    let streams = streams.derive("device-comparison", 0);
    let given = candidates(&shape, &batch, settings.candidates(), &streams);
    let here = Device::flex().autodiff();
    let shaken = ArEbm { shape, ..model.clone() }
        .fork(&here)
        .map(&mut Shake(streams.stream("shake", 0, 0)))
        .masked();
    let (gradients, report) = ArStep::new(&settings, 1)?
        .with_candidates(&given)
        .gradient(&shaken, &batch, &streams, 0)?;
    let expected = Figures::new(&shaken, &gradients, &report);
    let mut there = shaken.clone().fork(&device);
    twin(&mut there);
    let (gradients, report) = DeviceStep::unchecked(&settings)?.gradient_with(
        &there,
        &batch,
        &streams,
        0,
        Some(&given),
    )?;
    expected.check(&Figures::new(&there, &gradients, &report))
}

impl Figures {
    fn new(model: &ArEbm, gradients: &GradientsParams, report: &StepReport) -> Self {
        struct Collect<'a>(&'a GradientsParams, Vec<f32>);
        impl ModuleVisitor for Collect<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                match self.0.get::<D>(param.id) {
                    Some(gradient) => self.1.extend(gradient.into_data().iter::<f32>()),
                    None => self.1.extend(std::iter::repeat_n(0.0, param.shape().num_elements())),
                }
            }
        }
        let mut collect = Collect(gradients, Vec::new());
        model.visit(&mut collect);
        Self { loss: report.loss, gradient: collect.1 }
    }

    /// An error unless those of the device are near enough.
    fn check(&self, found: &Self) -> Result<()> {
        let norm = |numbers: &mut dyn Iterator<Item = f64>| -> f64 {
            numbers.map(|number| number * number).sum::<f64>().sqrt()
        };
        let expected = norm(&mut self.gradient.iter().map(|&g| f64::from(g)));
        let pairs = self.gradient.iter().zip(&found.gradient);
        let away = norm(&mut pairs.map(|(a, b)| f64::from(*a) - f64::from(*b))) / expected;
        let is_near = (found.loss - self.loss).abs() <= LOSS * (1.0 + self.loss.abs());
        // A comparison with what is no number does not hold.
        if is_near && away <= GRADIENT && found.gradient.len() == self.gradient.len() {
            return Ok(());
        }
        Err(Error::WrongDevice { loss: found.loss, expected: self.loss, away, most: GRADIENT })
    }
}

/// The data's own row first, then others around it; classes stay as they are.
fn candidates(
    shape: &ArEbmConfig,
    batch: &Batch,
    candidates: usize,
    streams: &Streams,
) -> Vec<f32> {
    let mut rng = streams.stream("candidates", 0, 0);
    let x: Vec<f32> = batch.x.to_data().iter::<f32>().collect();
    let mut all = Vec::with_capacity(x.len() * candidates);
    for row in x.chunks_exact(shape.features) {
        for candidate in 0..candidates {
            for (stage, &x) in row.iter().enumerate() {
                let stays = candidate == 0 || shape.kind(stage).is_categorical();
                all.push(if stays { x } else { x + 0.5 * rng.normal() as f32 });
            }
        }
    }
    all
}

struct Shake(Stream);
impl ModuleMapper for Shake {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| {
            let (shape, device) = (value.dims(), value.device());
            let values = value.into_data().iter::<f32>().collect::<Vec<f32>>().into_iter();
            let shaken: Vec<f32> = values.map(|x| x + (SHAKE * self.0.normal()) as f32).collect();
            Tensor::from_data(TensorData::new(shaken, shape), &device).require_grad()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ar::config::{
        Activation, Conditioner, EnergyForm, HeadForm, Normalisation, ScaleForm,
    };
    use crate::ar::criterion::ContextFlow;
    use crate::ar::kind::FeatureKind;

    /// A small model of three features in a corner of the family, and rows for it.
    fn setup(change: impl FnOnce(&mut ArEbmConfig)) -> (ArEbm, Batch, Streams) {
        let mut shape = ArEbmConfig::new(3);
        (shape.proposal.width, shape.proposal.blocks, shape.energy.width) = (16, 1, 8);
        (shape.energy.blocks, shape.context, shape.mixture_components) = (2, 4, 3);
        change(&mut shape);
        let streams = Streams::new(8);
        let device = Device::flex().autodiff();
        let model = shape.init(&device, &mut streams.stream("init", 0, 0)).unwrap();
        let mut rng = streams.stream("data", 0, 0);
        let value = |at: usize| match shape.kind(at % 3) {
            FeatureKind::Categorical { levels } => rng.index(*levels) as f32,
            FeatureKind::Atoms { values } if at.is_multiple_of(2) => values[0],
            _ => rng.normal() as f32,
        };
        let x = TensorData::new((0..5 * 3).map(value).collect::<Vec<f32>>(), [5, 3]);
        let weights = Some(vec![0.5, 1.0, 2.0, 0.0, 1.5]);
        (model, Batch { x: Tensor::from_data(x, &Device::flex()), weights }, streams)
    }

    /// The default of a fit.
    fn tilted(shape: &mut ArEbmConfig) {
        shape.conditioner = Conditioner::Masked;
        shape.energy_form = EnergyForm::Tilted;
        shape.normalisation = Normalisation::Local;
        shape.scales = ScaleForm::Exponential;
        shape.energy.activation = Activation::Elu;
    }

    fn mixed(shape: &mut ArEbmConfig) {
        tilted(shape);
        shape.kinds = vec![
            FeatureKind::Atoms { values: vec![-1.0, 0.25] },
            FeatureKind::Categorical { levels: 3 },
            FeatureKind::Cells { edges: vec![-2.0, -0.5, 0.5, 2.0] },
        ];
    }

    fn settings(criterion: Method) -> ArStepConfig {
        ArStepConfig { num_negatives: 4, ..ArStepConfig::new(criterion) }
    }

    #[test]
    fn loss_and_gradient_are_those_of_the_cpus_engine_in_every_corner() {
        type Change = fn(&mut ArEbmConfig);
        let corners: [(&str, Change); 12] = [
            ("the paper's", |_| ()),
            ("tanh, dropout", |shape| {
                (shape.energy.activation, shape.dropout) = (Activation::Tanh, 0.3);
            }),
            ("confined", |shape| shape.confine = 0.5),
            ("tilted, global", |shape| shape.energy_form = EnergyForm::Tilted),
            ("masked, global, waves", |shape| {
                (shape.conditioner, shape.waves) = (Conditioner::Masked, 2);
            }),
            ("the default of a fit", tilted),
            ("with outliers and waves", |shape| {
                tilted(shape);
                (shape.outlier_share, shape.waves) = (0.05, 2);
            }),
            ("with a known mixture", |shape| {
                tilted(shape);
                shape.gaussian_mixture = true;
            }),
            ("splines beside it", |shape| {
                tilted(shape);
                (shape.head, shape.gaussian_mixture, shape.spline_bins) = (HeadForm::Both, true, 5);
            }),
            ("splines alone, stagewise, free", |shape| {
                (shape.normalisation, shape.head) = (Normalisation::Local, HeadForm::Spline);
            }),
            ("of all kinds", mixed),
            ("given a class", |shape| {
                mixed(shape);
                shape.kinds.rotate_left(1);
                shape.given = 1;
            }),
        ];
        for (name, change) in corners {
            let (model, batch, streams) = setup(change);
            for criterion in [Method::QOnly, Method::Rnce, Method::MlIs, Method::SmcRnce] {
                for flow in [ContextFlow::Shared, ContextFlow::Detached] {
                    let settings = ArStepConfig { context_flow: flow, ..settings(criterion) };
                    let same = compare(&settings, &model, &batch, &streams);
                    assert_eq!(same, Ok(()), "{name} {criterion} {flow:?}");
                }
            }
        }
    }

    #[test]
    fn members_are_trained_alone_and_reported_and_tilted_as_their_mean() {
        type Change = fn(&mut ArEbmConfig);
        let free: Change = |shape| shape.conditioner = Conditioner::Masked;
        let both: Change = |shape| {
            tilted(shape);
            (shape.head, shape.gaussian_mixture, shape.spline_bins) = (HeadForm::Both, true, 5);
        };
        for change in [free, both, tilted, mixed] {
            let (model, batch, streams) = setup(|shape| {
                change(shape);
                (shape.members, shape.dropout) = (3, 0.2);
            });
            for criterion in [Method::QOnly, Method::Rnce, Method::MlIs, Method::SmcRnce] {
                for flow in [ContextFlow::Shared, ContextFlow::Detached] {
                    let settings = ArStepConfig { context_flow: flow, ..settings(criterion) };
                    let same = compare(&settings, &model, &batch, &streams);
                    assert_eq!(same, Ok(()), "{criterion} {flow:?} {:?}", model.shape);
                }
            }
        }
    }

    #[test]
    fn wide_negatives_weigh_what_they_weigh_on_the_cpu() {
        let (model, batch, streams) = setup(|_| ());
        let wide = ArStepConfig { wide_share: 0.4, ..settings(Method::Rnce) };
        assert_eq!(compare(&wide, &model, &batch, &streams), Ok(()));
        let (model, batch, streams) = setup(tilted);
        assert_eq!(compare(&wide, &model, &batch, &streams), Ok(()));
    }

    /// A device on which one number of the computation is another.
    #[test]
    fn a_broken_twin_of_the_step_is_found_out() {
        let (model, batch, streams) = setup(tilted);
        let broken = |change: fn(&mut ArEbmConfig)| {
            compare_with(&settings(Method::Rnce), &model, &batch, &streams, |model| {
                change(&mut model.shape);
            })
        };
        assert_eq!(broken(|_| ()), Ok(()));
        for change in [
            |shape: &mut ArEbmConfig| shape.tilt_bound = 1.0,
            |shape: &mut ArEbmConfig| shape.minimum_scale = 0.5,
            |shape: &mut ArEbmConfig| shape.energy.activation = Activation::Tanh,
            |shape: &mut ArEbmConfig| shape.outlier_share = 0.3,
        ] {
            assert!(matches!(broken(change), Err(Error::WrongDevice { .. })));
        }
    }

    #[test]
    fn a_device_that_is_wrong_is_refused_with_the_figures() {
        let gradient: Vec<f32> = (0..100).map(|at| (at as f32 * 0.7).sin()).collect();
        let right = Figures { loss: 3.0, gradient };
        assert_eq!(right.check(&right), Ok(()));
        let twin = |change: fn(&mut Figures)| {
            let mut twin = right.clone();
            change(&mut twin);
            right.check(&twin)
        };
        // As much as single precision may differ.
        assert!(twin(|twin| twin.gradient.iter_mut().for_each(|g| *g *= 1.0001)).is_ok());
        for wrong in [
            |twin: &mut Figures| twin.gradient[3] = f32::NAN,
            |twin: &mut Figures| twin.gradient.iter_mut().for_each(|g| *g *= 1.05),
            |twin: &mut Figures| twin.gradient.truncate(50),
            |twin: &mut Figures| twin.gradient[50..].fill(0.0),
            |twin: &mut Figures| twin.loss = f64::NAN,
            |twin: &mut Figures| twin.loss = 3.1,
        ] {
            let error = twin(wrong).unwrap_err();
            assert!(matches!(error, Error::WrongDevice { expected: 3.0, .. }), "{error}");
            assert!(error.to_string().contains("where the CPU has 3"), "{error}");
            assert!(!error.is_recoverable());
        }
    }
}
