//! The training step in tensors alone, on the CPU's own tensors: the same distribution as the CPU's engine, and one read a step.

use zhat::ar::*;
use zhat::burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use zhat::burn::optim::GradientsParams;
use zhat::burn::tensor::{Device, Tensor, TensorData};
use zhat::criterion::Method;
use zhat::rng::{Stream, Streams};
use zhat::train::{Batch, TrainingStep};

/// Steps over which means are taken.
const STEPS: u64 = 150;

struct Randomise(Stream);
impl ModuleMapper for Randomise {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.val().dims();
        let fan_in = if D == 2 { shape[0] } else { 4 };
        let number = shape.iter().product();
        let value = |_| (self.0.normal() / (fan_in as f64).sqrt()) as f32;
        let values: Vec<f32> = (0..number).map(value).collect();
        param.map(|tensor| {
            let device = tensor.device();
            Tensor::<D>::from_data(TensorData::new(values, shape), &device).require_grad()
        })
    }
}

/// The gradient in a direction of its own for each parameter.
struct Along<'a>(&'a GradientsParams, Stream, f64);
impl ModuleVisitor for Along<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let number = param.val().shape().num_elements();
        let direction: Vec<f64> = (0..number).map(|_| self.1.normal()).collect();
        if let Some(gradient) = self.0.get::<D>(param.id) {
            let gradient = gradient.into_data();
            self.2 += gradient.iter::<f64>().zip(direction).map(|(g, d)| g * d).sum::<f64>();
        }
    }
}

fn small(features: usize) -> ArEbmConfig {
    let mut shape = ArEbmConfig::new(features);
    shape.proposal = NetworkSize { blocks: 1, width: 12, activation: Activation::Relu };
    shape.energy = NetworkSize { blocks: 1, width: 8, activation: Activation::Tanh };
    (shape.context, shape.mixture_components, shape.dropout) = (4, 3, 0.0);
    shape
}

fn tilted(features: usize) -> ArEbmConfig {
    ArEbmConfig {
        conditioner: Conditioner::Masked,
        energy_form: EnergyForm::Tilted,
        normalisation: Normalisation::Local,
        ..small(features)
    }
}

fn setup(shape: &ArEbmConfig) -> (ArEbm, Batch) {
    let streams = Streams::new(5);
    let device = Device::flex().autodiff();
    let model = shape.init(&device, &mut streams.stream("init", 0, 0)).unwrap();
    let model = model.map(&mut Randomise(streams.stream("randomise", 0, 0))).masked();
    let mut rng = streams.stream("data", 0, 0);
    let value = |at: usize| match shape.kind(at % shape.features) {
        FeatureKind::Categorical { levels } => rng.index(*levels) as f32,
        FeatureKind::Atoms { values } if at.is_multiple_of(2) => values[0],
        _ => rng.normal() as f32,
    };
    let x = (0..16 * shape.features).map(value).collect::<Vec<f32>>();
    let x = TensorData::new(x, [16, shape.features]);
    (model, Tensor::<2>::from_data(x, &Device::flex()).into())
}

/// Means and their standard errors: of the loss, of the effective sample size, and of the gradient in a random direction.
fn means(step: &mut impl TrainingStep<ArEbm>, model: &ArEbm, batch: &Batch) -> [[f64; 2]; 3] {
    let streams = Streams::new(6);
    let mut all: [Vec<f64>; 3] = Default::default();
    for number in 0..STEPS {
        let (gradients, report) = step.gradient(model, batch, &streams, number).unwrap();
        let mut along = Along(&gradients, Streams::new(7).stream("along", 0, 0), 0.0);
        model.visit(&mut along);
        let found = [report.loss, report.effective_sample_size.unwrap_or(0.0), along.2];
        all.iter_mut().zip(found).for_each(|(all, found)| all.push(found));
    }
    all.map(|all| {
        let number = all.len() as f64;
        let mean = all.iter().sum::<f64>() / number;
        let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (number - 1.0);
        [mean, (variance / number).sqrt()]
    })
}

#[test]
fn draws_masks_weights_and_resampling_have_the_distribution_of_the_cpus() {
    let resampled = |criterion| ArStepConfig { num_negatives: 5, ..ArStepConfig::new(criterion) };
    let (dropped, mut kinds) = (ArEbmConfig { dropout: 0.3, ..small(3) }, tilted(3));
    kinds.kinds = vec![
        FeatureKind::Atoms { values: vec![-1.0, 0.5] },
        FeatureKind::Categorical { levels: 3 },
        FeatureKind::Continuous,
    ];
    kinds.dropout = 0.2;
    let both = ArEbmConfig { head: HeadForm::Both, outlier_share: 0.1, ..tilted(2) };
    let members = ArEbmConfig { members: 3, ..tilted(2) };
    let members_of_one =
        ArEbmConfig { members: 2, dropout: 0.2, conditioner: Conditioner::Masked, ..small(2) };
    let wide = ArStepConfig { wide_share: 0.4, ..resampled(Method::SmcRnce) };
    let model_target = ArStepConfig {
        proposal_target: ProposalTarget::Mix(0.3),
        ..resampled(Method::SmcRnceTrajectory)
    };
    for (shape, settings) in [
        (&dropped, resampled(Method::QOnly)),
        (&dropped, resampled(Method::SmcRnce)),
        (&small(3), model_target),
        (&small(2), wide),
        (&small(2), resampled(Method::MlIs)),
        (&kinds, resampled(Method::Rnce)),
        (&both, resampled(Method::Rnce)),
        (&members, resampled(Method::Rnce)),
        (&members_of_one, resampled(Method::SmcRnce)),
    ] {
        let (model, batch) = setup(shape);
        let mut device = DeviceStep::new(&settings).unwrap();
        let found = means(&mut device, &model, &batch);
        // Losses, effective sample size and norm in one tensor.
        assert_eq!(device.reads(), STEPS);
        let expected = means(&mut ArStep::new(&settings, 1).unwrap(), &model, &batch);
        let mut some_chance = false;
        for ([found, own], [expected, other]) in found.into_iter().zip(expected) {
            let error = own.hypot(other);
            some_chance |= error > 0.0;
            // 4 standard errors: one false alarm in 700 for all of these, and the seed is fixed.
            let close = (found - expected).abs() <= 4.0 * error + 1e-4 * (1.0 + expected.abs());
            assert!(close, "{found} {expected} ± {error} for {settings:?} {shape:?}");
        }
        assert!(some_chance || settings.criterion == Method::QOnly);
    }
}

#[test]
fn what_a_device_cannot_do_is_refused_by_name() {
    let refused = |shape: &ArEbmConfig, settings: &ArStepConfig, says: &str| {
        let (model, batch) = setup(shape);
        let mut step = DeviceStep::new(settings).unwrap();
        let error = step.gradient(&model, &batch, &Streams::new(0), 0).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("on a device"), "{error}");
    };
    let smc = ArStepConfig::new(Method::SmcRnce);
    let systematic = ArStepConfig { resampling: zhat::smc::Resampling::Systematic, ..smc.clone() };
    refused(&small(2), &systematic, "step.resampling is systematic, but must be multinomial");
    let shared = ArStepConfig { share_masks: true, ..smc.clone() };
    refused(&ArEbmConfig { dropout: 0.1, ..small(2) }, &shared, "step.share-masks");
    refused(&ArEbmConfig { gaussian_mixture: true, ..small(2) }, &smc, "model.gaussian-mixture");
    let trajectory = ArStepConfig::new(Method::SmcRnceTrajectory);
    refused(&tilted(2), &trajectory, "step.criterion is smc-rnce-trajectory");
}
