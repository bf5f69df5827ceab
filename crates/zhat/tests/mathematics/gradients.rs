//! Gradients against autodiff of the criterion's value, closed forms and finite differences.

use zhat::burn::module::Module;
use zhat::burn::tensor::{Device, Tensor};
use zhat::criterion::{
    Adapted, BinaryNce, Criterion, DenoisingScoreMatching, FromData, ImportanceSampling, Method,
    MethodConfig, SelfNormalised, SlicedScoreMatching,
};
use zhat::host::to_host;
use zhat::kernel::{
    Barker, ConditionalImportance, ConditionalSmc, Contrast, Metropolis, SmcGradient, State,
};
use zhat::model::{
    DiagonalGaussian, FullGaussian, GaussianChain, GaussianChainProposal, MlpEnergyConfig,
    RingModel, UnnormalisedModel, WithLogZ, score,
};
use zhat::proposal::{Adaptive, Component, GaussianMixture, Path, Proposal, RandomWalk};
use zhat::smc::{ResampleWhen, Resampling, SmcConfig};
use zhat::train::OptimiserConfig;
use zhat::weights::LogWeights;

use crate::support::{assert_close, gradient, place, rng};

fn autodiff() -> Device {
    Device::flex().autodiff()
}

fn data(rows: usize) -> Tensor<2> {
    DiagonalGaussian::new(&[0.4, -0.2], &[1.3, 0.7], &Device::flex()).unwrap().sample(
        rows,
        &place(),
        &mut rng(1),
    )
}

fn wide() -> DiagonalGaussian {
    DiagonalGaussian::new(&[0.0, 0.3], &[1.8, 1.5], &Device::flex()).unwrap()
}

/// The same draws twice: once differentiated through the surrogate, once through the value.
fn surrogate_and_value<M: Module, C: Criterion<M>>(
    model: &M,
    mut criterion: C,
    x0: Tensor<2>,
) -> (Vec<f64>, Vec<f64>) {
    let loss = criterion.loss(model, &x0.clone().into(), &mut rng(5)).unwrap();
    let surrogate = gradient(&loss.surrogate, model);
    let loss = criterion.loss(model, &x0.into(), &mut rng(5)).unwrap();
    let value = criterion.value(&loss).expect("a value");
    assert!((to_host(&value)[0] - loss.value).abs() < 1e-5 * (1.0 + loss.value.abs()));
    (surrogate, gradient(&value, model))
}

#[test]
fn the_surrogate_has_the_gradient_of_the_criterions_value() {
    let device = autodiff();
    let x0 = data(16);
    let gaussian = DiagonalGaussian::new(&[0.5, -1.0], &[1.2, 0.8], &device).unwrap();
    let mlp = MlpEnergyConfig::new(2).init(&device, &mut rng(2)).unwrap();
    let check = |(surrogate, value): (Vec<f64>, Vec<f64>), name: &str| {
        assert!(surrogate.iter().any(|g| g.abs() > 1e-3), "{name}: no gradient");
        assert_close(&surrogate, &value, 2e-4, name);
    };
    let rnce = || FromData(ConditionalImportance::new(wide(), 7).unwrap());
    check(surrogate_and_value(&gaussian, rnce(), x0.clone()), "rnce, gaussian");
    check(surrogate_and_value(&mlp, rnce(), x0.clone()), "rnce, mlp");
    let ml_is = || FromData(ImportanceSampling::new(wide(), 7).unwrap());
    check(surrogate_and_value(&gaussian, ml_is(), x0.clone()), "ml-is, gaussian");
    check(surrogate_and_value(&mlp, ml_is(), x0.clone()), "ml-is, mlp");
    let cnce = || FromData(Barker::new(RandomWalk::new(0.9).unwrap(), 5).unwrap());
    check(surrogate_and_value(&gaussian, cnce(), x0.clone()), "cnce, gaussian");
    check(surrogate_and_value(&mlp, cnce(), x0.clone()), "cnce, mlp");
    let independent = FromData(Barker::new(wide(), 5).unwrap());
    check(surrogate_and_value(&mlp, independent, x0.clone()), "cnce with an asymmetric proposal");
    let reversal = FromData(Barker::new(Path::new(wide(), 3).unwrap(), 2).unwrap());
    check(surrogate_and_value(&mlp, reversal, x0.clone()), "time reversal");
    let sliced = || FromData(SlicedScoreMatching::new(0.3, 4).unwrap());
    check(surrogate_and_value(&gaussian, sliced(), x0.clone()), "sliced score matching, gaussian");
    check(surrogate_and_value(&mlp, sliced(), x0.clone()), "sliced score matching, mlp");
    let denoising = || FromData(DenoisingScoreMatching::new(0.8, 4).unwrap());
    check(surrogate_and_value(&gaussian, denoising(), x0.clone()), "denoising, gaussian");
    check(surrogate_and_value(&mlp, denoising(), x0.clone()), "denoising, mlp");
    let self_normalised = FromData(SelfNormalised::new(wide(), 7).unwrap());
    let with_constant = WithLogZ::new(mlp.clone(), 0.3, &device);
    check(surrogate_and_value(&with_constant, self_normalised, x0.clone()), "self-normalised");
    let nce = FromData(BinaryNce::new(wide(), 7).unwrap());
    let with_log_z = WithLogZ::new(mlp, 0.3, &device);
    check(surrogate_and_value(&with_log_z, nce, x0), "binary nce");
}

#[test]
fn the_filtering_gradient_is_the_derivative_of_log_z_csmc() {
    let device = autodiff();
    let model = GaussianChain::new(0.9, 0.8, 0.8, 5, &device);
    let x0 = model.exact(&Device::flex()).unwrap().sample(12, &place(), &mut rng(6));
    let proposal = GaussianChainProposal { coupling: 0.4, std_dev: 1.4 };
    for resample_when in [
        ResampleWhen::EveryStage,
        ResampleWhen::EffectiveSampleSizeBelow(0.6),
        ResampleWhen::EffectiveSampleSizeBelow(0.0),
    ] {
        let config =
            SmcConfig { num_particles: 6, resampling: Resampling::Systematic, resample_when };
        let kernel = |gradient| {
            ConditionalSmc::new(proposal.clone(), 5)
                .unwrap()
                .with_config(config.clone())
                .unwrap()
                .with_gradient(gradient)
        };
        let (surrogate, value) =
            surrogate_and_value(&model, FromData(kernel(SmcGradient::Filtering)), x0.clone());
        assert!(surrogate.iter().all(|g| g.abs() > 1e-3));
        assert_close(&surrogate, &value, 2e-4, &format!("{resample_when:?}"));
        // Without resampling both forms are importance sampling; with it they differ.
        let mut trajectory = FromData(kernel(SmcGradient::Trajectory));
        let loss = trajectory.loss(&model, &x0.clone().into(), &mut rng(5)).unwrap();
        assert!(Criterion::<GaussianChain>::value(&trajectory, &loss).is_none());
        let trajectory = gradient(&loss.surrogate, &model);
        if resample_when == ResampleWhen::EffectiveSampleSizeBelow(0.0) {
            assert_close(&trajectory, &surrogate, 2e-4, "never resampled");
        } else {
            assert!(trajectory.iter().zip(&surrogate).any(|(a, b)| (a - b).abs() > 1e-4));
        }
    }
}

/// `-grad log p~(x_0) + sum_j w_j grad log p~(x_j)` by hand, for a Gaussian whose gradients are known.
#[test]
fn the_surrogates_gradient_is_the_closed_form_for_a_gaussian() {
    let (mean, std_dev) = ([0.5, -1.0], [1.2, 0.8]);
    let model = DiagonalGaussian::new(&mean, &std_dev, &autodiff()).unwrap();
    let x0 = data(9);
    let kernels: Vec<Box<dyn Contrast<DiagonalGaussian>>> = vec![
        Box::new(ConditionalImportance::new(wide(), 4).unwrap()),
        Box::new(Barker::new(RandomWalk::new(0.7).unwrap(), 4).unwrap()),
        Box::new(Metropolis::new(RandomWalk::new(0.7).unwrap(), 4).unwrap()),
        Box::new(ImportanceSampling::new(wide(), 4).unwrap()),
    ];
    for (at, kernel) in kernels.into_iter().enumerate() {
        let loss = FromData(kernel).loss(&model, &x0.clone().into(), &mut rng(7)).unwrap();
        let x = to_host(&loss.candidates.x);
        let mut expected = [0.0; 4];
        for (row, weights) in loss.candidates.weights.rows().enumerate() {
            for (j, weight) in weights.iter().enumerate() {
                let coefficient = (weight - if j == 0 { 1.0 } else { 0.0 }) / 9.0;
                for i in 0..2 {
                    let distance = x[(row * 5 + j) * 2 + i] - mean[i];
                    // d/dmu = (x - mu) / s^2, d/ds = (x - mu)^2 / s^3.
                    expected[i] += coefficient * distance / std_dev[i].powi(2);
                    expected[2 + i] += coefficient * distance.powi(2) / std_dev[i].powi(3);
                }
            }
        }
        let computed = gradient(&loss.surrogate, &model);
        assert_close(&computed, &expected, 1e-4, &format!("kernel {at}"));
    }
}

#[test]
fn criterion_values_change_as_their_gradient_says() {
    // Central differences in every parameter, with the same draws: (f(theta + h) - f(theta - h)) / 2h.
    let device = autodiff();
    let x0 = data(8);
    let value_at = |parameters: &[f64], which: usize| -> (f64, Vec<f64>) {
        let model = DiagonalGaussian::new(&parameters[..2], &parameters[2..], &device).unwrap();
        let evaluate = |criterion: &mut dyn Criterion<DiagonalGaussian>| {
            let loss = criterion.loss(&model, &x0.clone().into(), &mut rng(8)).unwrap();
            let value = to_host(&criterion.value(&loss).unwrap())[0];
            (value, gradient(&loss.surrogate, &model))
        };
        match which {
            0 => evaluate(&mut FromData(ConditionalImportance::new(wide(), 5).unwrap())),
            1 => evaluate(&mut FromData(ImportanceSampling::new(wide(), 5).unwrap())),
            _ => {
                let walk = RandomWalk::new(0.9).unwrap();
                evaluate(&mut FromData(Barker::new(walk, 5).unwrap()))
            }
        }
    };
    let parameters = [0.5, -1.0, 1.2, 0.8];
    for which in 0..3 {
        let (_, gradient) = value_at(&parameters, which);
        for i in 0..4 {
            let h = 1e-2;
            let shifted = |sign: f64| {
                let mut shifted = parameters;
                shifted[i] += sign * h;
                value_at(&shifted, which).0
            };
            let difference = (shifted(1.0) - shifted(-1.0)) / (2.0 * h);
            // Truncation h^2 f'''/6 and the noise of 32-bit floats are both about 1e-4 here.
            assert!((difference - gradient[i]).abs() < 2e-3 * (1.0 + gradient[i].abs()));
        }
    }
}

#[test]
fn scores_match_finite_differences() {
    let device = Device::flex();
    let x = place().tensor(vec![0.7, -0.4, 1.6, 0.9], [2, 2]);
    let full = FullGaussian::new(&[1.0, -0.5], &[1.5, 0.7, 0.7, 0.6], &device).unwrap();
    let mixture = GaussianMixture::new(
        &[
            Component::new(0.3, &[-1.0, 0.5], &[0.5, 0.8]),
            Component::new(0.7, &[1.0, -0.5], &[0.9, 0.4]),
        ],
        &device,
    )
    .unwrap();
    let mlp = MlpEnergyConfig::new(2).init(&device, &mut rng(2)).unwrap();
    let models: [(&str, &dyn UnnormalisedModel); 4] = [
        ("full gaussian", &full),
        ("mixture", &mixture),
        ("ring", &RingModel::new(2.0, 0.5, &device)),
        ("mlp", &mlp),
    ];
    for (name, model) in models {
        let (_, computed) = score(model, x.clone());
        let computed = to_host(&computed);
        let h = 1e-2;
        for at in 0..4 {
            let shifted = |sign: f64| {
                let mut values = to_host(&x);
                values[at] += sign * h;
                to_host(&model.log_p_tilde(place().tensor(values, [2, 2])))[at / 2]
            };
            let difference = (shifted(1.0) - shifted(-1.0)) / (2.0 * h);
            assert!((difference - computed[at]).abs() < 5e-3 * (1.0 + difference.abs()), "{name}");
        }
    }
}

#[test]
fn the_adaptive_proposal_has_the_gradient_of_the_paper() {
    // -sum_j w_j grad_phi log q_phi(x_j), in closed form for a Gaussian q_phi.
    let device = autodiff();
    let (mean, std_dev) = ([0.0, 0.3], [1.8, 1.5]);
    let q = DiagonalGaussian::new(&mean, &std_dev, &device).unwrap();
    let model = DiagonalGaussian::new(&[0.5, -1.0], &[1.2, 0.8], &device).unwrap();
    let adaptive = Adaptive::new(q.clone());
    let kernel = ConditionalImportance::new(adaptive.clone(), 4).unwrap();
    let mut criterion = Adapted::new(FromData(kernel), adaptive.clone(), OptimiserConfig::Sgd);
    let loss = criterion.loss(&model, &data(9).into(), &mut rng(9)).unwrap();
    let x = to_host(&loss.candidates.x);
    let mut expected = [0.0; 4];
    for (row, weights) in loss.candidates.weights.rows().enumerate() {
        for (j, weight) in weights.iter().enumerate() {
            for i in 0..2 {
                let distance = x[(row * 5 + j) * 2 + i] - mean[i];
                expected[i] -= weight / 9.0 * distance / std_dev[i].powi(2);
                expected[2 + i] -=
                    weight / 9.0 * (distance.powi(2) / std_dev[i].powi(3) - 1.0 / std_dev[i]);
            }
        }
    }
    let adaptation = loss.adaptation.clone().expect("it learns");
    assert_close(&gradient(&adaptation, &q), &expected, 1e-4, "adaptive proposal");
    // And a step goes down that gradient, with the learning rate given.
    let loss = criterion.loss(&model, &data(9).into(), &mut rng(9)).unwrap();
    let mut gradients = (loss.surrogate + loss.adaptation.unwrap()).backward();
    Criterion::<DiagonalGaussian>::update(&mut criterion, &mut gradients, 0.1);
    let moved = adaptive.now();
    let expected_mean: Vec<f64> = (0..2).map(|i| mean[i] - 0.1 * expected[i]).collect();
    assert_close(&moved.mean(), &expected_mean, 1e-4, "step of the proposal");
}

#[test]
fn every_method_has_a_gradient_for_a_network() {
    let device = autodiff();
    let x0 = data(12);
    let model = MlpEnergyConfig::new(2).init(&device, &mut rng(2)).unwrap();
    for (method, name) in Method::for_any_model().map(|method| (method, method.name())) {
        for num_steps in [1, 3] {
            let config = MethodConfig::new(method).with_num_negatives(4).with_num_steps(num_steps);
            let mut criterion = config.init(&x0).unwrap();
            let loss = criterion.loss(&model, &x0.clone().into(), &mut rng(3)).unwrap();
            let gradient = gradient(&loss.surrogate, &model);
            assert!(gradient.iter().all(|g| g.is_finite()), "{name}");
            assert!(gradient.iter().any(|g| g.abs() > 1e-6), "{name}: no gradient");
        }
    }
}

#[test]
fn a_state_that_is_known_is_not_evaluated_again() {
    use std::cell::Cell;
    struct Counting(Cell<usize>);
    impl UnnormalisedModel for Counting {
        fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
            self.0.set(self.0.get() + x.dims()[0]);
            x.square().sum_dim(1).squeeze_dim::<1>(1) * -0.5
        }
    }
    let model = Counting(Cell::new(0));
    let kernel =
        zhat::kernel::Repeat::new(Barker::new(RandomWalk::new(0.5).unwrap(), 4).unwrap(), 3)
            .unwrap();
    kernel.propose(&model, State::new(data(10)), &mut rng(1)).unwrap();
    // 10 starts once, and 4 new candidates for each of 10 rows in each of 3 steps.
    assert_eq!(model.0.get(), 10 + 3 * 40);
}

/// What `Method::weigh` says of the log-weights of a step is what the method's own criterion did.
#[test]
fn the_weights_of_a_method_are_those_of_its_criterion() {
    let (device, x0) = (autodiff(), data(12));
    let gaussian = DiagonalGaussian::new(&[0.5, -1.0], &[1.2, 0.8], &device).unwrap();
    let model = WithLogZ::new(gaussian, 0.3, &device);
    for method in Method::for_any_model() {
        let mut criterion = MethodConfig::new(method).with_num_negatives(4).init(&x0).unwrap();
        let loss = criterion.loss(&model, &x0.clone().into(), &mut rng(6)).unwrap();
        let Some(weights) = method.weigh(&loss.candidates.log_w_tilde) else {
            assert!(matches!(method, Method::Ssm | Method::Dsm), "{method} has weights");
            continue;
        };
        assert_eq!(weights, loss.candidates.weights, "{method}");
        let other = if method == Method::Rnce { Method::Cnce } else { Method::Rnce };
        let differs = other.weigh(&loss.candidates.log_w_tilde).expect("weights") != weights;
        assert!(differs || method == Method::PRnce, "{method}: the test would see no difference");
    }
    assert!(Method::QOnly.weigh(&LogWeights::from_values(vec![0.0, 0.0], 2)).is_none());
}
