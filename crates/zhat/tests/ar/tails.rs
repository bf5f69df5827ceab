//! Whether `p~` falls far out, and the term that makes a free energy fall.

use zhat::ar::*;
use zhat::burn::tensor::{Device, Tensor, TensorData};
use zhat::model::UnnormalisedModel;
use zhat::rng::Streams;

use crate::small_model::{config, random};

/// A configuration with bounded units, of which no free energy grows.
fn bounded() -> ArEbmConfig {
    let mut bounded = config();
    bounded.energy.activation = Activation::Tanh;
    bounded
}

fn ladder(config: &ArEbmConfig) -> Ladder {
    let (model, streams) = random(config);
    let evaluator = Evaluator::new(&model, 2).unwrap();
    evaluator.ladder(&evaluator.sample_proposal(200, &streams))
}

#[test]
fn a_bounded_energy_has_a_floor_and_no_integral() {
    for normalisation in [Normalisation::Global, Normalisation::Local] {
        let found = ladder(&ArEbmConfig { normalisation, ..bounded() });
        assert!(!found.falls() && found.tails.iter().all(|tail| !tail.falls));
        let tail = found.worst();
        assert_eq!(tail.log_p_tilde.len(), 8);
        let [[near, first], .., [far, last]] = tail.log_p_tilde[..] else { unreachable!() };
        assert_eq!((near.abs(), far.abs()), (6.0, 10_000.0));
        assert!((first - last).abs() < 1.0 && last > -20.0, "{tail:?}");
    }
}

#[test]
fn a_tilted_base_falls_whatever_the_energy() {
    for conditioner in [Conditioner::Stagewise, Conditioner::Masked] {
        for normalisation in [Normalisation::Global, Normalisation::Local] {
            for head in [HeadForm::Mixture, HeadForm::Spline, HeadForm::Both] {
                let tilted = ArEbmConfig {
                    conditioner,
                    normalisation,
                    head,
                    energy_form: EnergyForm::Tilted,
                    gaussian_mixture: head == HeadForm::Both,
                    ..bounded()
                };
                let found = ladder(&tilted);
                assert!(found.falls(), "{found:?}");
                let tail = &found.worst().log_p_tilde;
                assert!(tail.windows(2).all(|pair| pair[1][1] < pair[0][1]), "{tail:?}");
            }
        }
    }
}

#[test]
fn a_proposal_that_is_the_model_falls() {
    let (model, streams) = random(&bounded());
    let evaluator = Evaluator::of_proposal(&model, 2).unwrap();
    assert!(evaluator.ladder(&evaluator.sample_proposal(10, &streams)).falls());
}

/// Every figure of the ladder is the model's own: rows that differ in the last feature alone differ by its factor.
#[test]
fn the_figures_are_those_of_the_model() {
    let (model, _) = random(&config());
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let context = [0.7, -0.2];
    let tail = evaluator.ladder(&context).tails[1].clone();
    let of = |x: f64| evaluator.score(&[context[0], x as f32]).log_p_tilde[0];
    for [at, log_p] in &tail.log_p_tilde {
        let ([first, expected], found) = (tail.log_p_tilde[0], of(*at));
        let expected = of(first) + log_p - expected;
        assert!((found - expected).abs() < 1e-3 * (1.0 + expected.abs()), "{found} {expected}");
    }
}

#[test]
fn a_confined_energy_falls_and_is_the_same_within() {
    let confined = ArEbmConfig { confine: 8.0, ..bounded() };
    assert!(ladder(&confined).falls());
    let scores = |config: &ArEbmConfig, x: &[f32]| {
        let (model, _) = random(config);
        Evaluator::new(&model, 1).unwrap().score(x).log_p_tilde
    };
    let within = [0.3, -7.9, 8.0, 2.0];
    assert_eq!(scores(&confined, &within), scores(&bounded(), &within));
    let (confined, free) = (scores(&confined, &[9.0, -12.0]), scores(&bounded(), &[9.0, -12.0]));
    assert!((confined[0] - free[0] + 0.5 + 8.0).abs() < 1e-5, "{confined:?} {free:?}");
}

#[test]
fn a_confined_energy_scores_as_in_plain_burn_operations() {
    for normalisation in [Normalisation::Global, Normalisation::Local] {
        let confined = ArEbmConfig { confine: 1.0, normalisation, ..config() };
        let (model, _) = random(&confined);
        let mut rng = Streams::new(5).stream("rows", 0, 0);
        let x: Vec<f32> = (0..400).map(|_| 3.0 * rng.normal() as f32).collect();
        let rows = Tensor::<2>::from_data(TensorData::new(x.clone(), [200, 2]), &Device::flex());
        let plain: Vec<f32> = model.log_p_tilde(rows).into_data().try_into_vec().unwrap();
        let found = Evaluator::new(&model, 2).unwrap().score(&x).log_p_tilde;
        for (found, plain) in found.iter().zip(plain) {
            let plain = f64::from(plain);
            assert!((found - plain).abs() < 1e-4 * (1.0 + plain.abs()), "{found} {plain}");
        }
    }
}
