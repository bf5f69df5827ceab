//! The edges: one negative, one row, all the weight on one candidate, energies that are not numbers, bad settings.

use zhat::burn::tensor::{Device, Tensor};
use zhat::criterion::{Criterion, FromData, Method, MethodConfig};
use zhat::error::Error;
use zhat::host::to_host;
use zhat::kernel::{Barker, ConditionalImportance, Contrast, Kernel, Metropolis, State};
use zhat::model::{DiagonalGaussian, MlpEnergyConfig, UnnormalisedModel};
use zhat::proposal::{Hamiltonian, Langevin, Path, RandomWalk};
use zhat::rng::Streams;
use zhat::sampler::SamplerConfig;
use zhat::smc::SmcConfig;
use zhat::train::{CriterionStep, Trainer, TrainingConfig};

use crate::support::{gradient, place, rng};

/// `log p~(x) = slope * x_0`, which makes weights as extreme as one likes.
struct Steep(f64);

impl UnnormalisedModel for Steep {
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        x.narrow(1, 0, 1).squeeze_dim::<1>(1) * self.0
    }
}

#[test]
fn one_row_and_one_negative_are_enough_for_every_method() {
    let device = Device::flex().autodiff();
    let model = MlpEnergyConfig::new(1).init(&device, &mut rng(1)).unwrap();
    let x0 = place().tensor(vec![0.3], [1, 1]);
    for (method, name) in Method::for_any_model().map(|method| (method, method.name())) {
        let config = MethodConfig { step_size: Some(0.5), ..MethodConfig::new(method) };
        let mut criterion = config.with_num_negatives(1).init(&x0).unwrap();
        let loss = criterion.loss(&model, &x0.clone().into(), &mut rng(2)).unwrap();
        assert_eq!(loss.candidates.x.dims(), [1, 2, 1], "{name}");
        assert!(gradient(&loss.surrogate, &model).iter().all(|g| g.is_finite()), "{name}");
    }
}

#[test]
fn weights_of_1e300_against_1e_minus_300_do_no_harm() {
    let x0 = place().tensor(vec![-1.0, 1.0, 0.0], [3, 1]);
    let q = || DiagonalGaussian::standard(1, &Device::flex());
    let walk = || RandomWalk::new(1.0).unwrap();
    let kernels: Vec<(&str, Box<dyn Kernel<Steep>>)> = vec![
        ("cis", Box::new(ConditionalImportance::new(q(), 5).unwrap())),
        ("barker", Box::new(Barker::new(walk(), 5).unwrap())),
        ("metropolis", Box::new(Metropolis::new(walk(), 5).unwrap())),
        ("mala", Box::new(Metropolis::new(Langevin::new(1e-3).unwrap(), 5).unwrap())),
    ];
    for (name, kernel) in kernels {
        // exp(700 |x|) is about 1e300 at 1.
        let candidates =
            kernel.propose(&Steep(700.0), State::new(x0.clone()), &mut rng(3)).unwrap();
        for row in candidates.weights.rows() {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{name}");
            assert!(row.iter().all(|weight| (0.0..=1.0).contains(weight)), "{name}");
        }
        if let Some(value) = kernel.value(&candidates) {
            assert!(to_host(&value)[0].is_finite(), "{name}");
        }
        assert_eq!(candidates.select(&mut rng(4)).x.dims(), [3, 1], "{name}");
    }
}

#[test]
fn all_weight_on_the_data_point_leaves_no_gradient_and_no_move() {
    let x0 = place().tensor(vec![50.0, 50.0], [2, 1]);
    let q = DiagonalGaussian::standard(1, &Device::flex());
    let kernel = ConditionalImportance::new(q, 3).unwrap();
    // At x = 50 the candidates of N(0, 1) are lighter by exp(700 * 50) and more.
    let candidates = kernel.propose(&Steep(700.0), State::new(x0.clone()), &mut rng(5)).unwrap();
    assert!(candidates.weights.rows().all(|row| row == [1.0, 0.0, 0.0, 0.0]));
    assert_eq!(to_host(&candidates.select(&mut rng(6)).x), to_host(&x0));
    assert_eq!(candidates.move_probability(), 0.0);
}

#[test]
fn an_energy_that_is_not_finite_is_an_error_that_names_the_row() {
    let q = || DiagonalGaussian::standard(1, &Device::flex());
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let x0 = place().tensor(vec![0.0, bad, 0.0], [3, 1]);
        let mut criterion = FromData(ConditionalImportance::new(q(), 2).unwrap());
        let error = criterion.loss(&Steep(1.0), &x0.into(), &mut rng(1)).unwrap_err();
        assert!(matches!(error, Error::NotFinite { row: 1, candidate: 0, .. }), "{error}");
        assert!(error.is_recoverable());
        assert!(error.to_string().starts_with("log_p_tilde of the model is"), "{error}");
    }
}

#[test]
fn a_step_that_fails_leaves_the_model_as_it_was() {
    let device = Device::flex().autodiff();
    let model = DiagonalGaussian::standard(1, &device);
    let q = DiagonalGaussian::standard(1, &Device::flex());
    let criterion = FromData(ConditionalImportance::new(q, 2).unwrap());
    let (step, config) = (CriterionStep::new(criterion), TrainingConfig::new(10, 0.1));
    let mut trainer = Trainer::new(model, step, config, Streams::new(0)).unwrap();
    let bad = place().tensor(vec![f64::NAN], [1, 1]);
    assert!(trainer.train_step(&bad.into()).is_err());
    assert_eq!(trainer.model().mean(), [0.0]);
    assert_eq!(trainer.model().std_dev(), [1.0]);
}

#[test]
fn settings_out_of_range_are_refused_with_the_range() {
    let message = |error: Error| error.to_string();
    let q = || DiagonalGaussian::standard(1, &Device::flex());
    assert_eq!(
        message(ConditionalImportance::new(q(), 0).unwrap_err()),
        "num_negatives is 0, but must be at least 1."
    );
    assert!(message(RandomWalk::new(f64::NAN).unwrap_err()).contains("step_size is NaN"));
    assert!(Langevin::new(-1.0).is_err());
    assert!(Hamiltonian::new(0.1, 0).is_err());
    assert!(Path::new(RandomWalk::new(1.0).unwrap(), 0).is_err());
    assert!(SmcConfig::new(0).is_err());
    let unknown = "nce2".parse::<Method>().unwrap_err().to_string();
    assert!(unknown.contains("nce2") && unknown.contains("p-mh-cnce"), "{unknown}");
    for (method, name) in Method::ALL.iter().map(|&method| (method, method.name())) {
        assert_eq!(name.parse::<Method>().unwrap(), method);
        assert_eq!(method.to_string(), name);
    }
    let kernel = Barker::new(RandomWalk::new(1.0).unwrap(), 1).unwrap();
    let x0 = place().tensor(vec![0.0], [1, 1]);
    let none = SamplerConfig::new(0).run(&kernel, &Steep(0.0), x0, &mut rng(1));
    assert!(none.is_err());
}
