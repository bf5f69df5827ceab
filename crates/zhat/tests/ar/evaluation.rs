//! Estimates and draws against quadrature, on a random model of two features.

use zhat::ar::*;
use zhat::burn::tensor::{Device, Tensor, TensorData};
use zhat::criterion::Method;
use zhat::model::UnnormalisedModel;
use zhat::proposal::{Proposal, WholeRows};
use zhat::smc::{ResampleWhen, Resampling, SmcConfig};

use crate::grid::{kolmogorov_smirnov, quadrature, slice};
use crate::small_model::{model, model_with_spread};

#[test]
fn rows_score_as_in_plain_burn_operations() {
    let (model, streams) = model();
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let x = evaluator.sample_proposal(600, &streams);
    let scores = evaluator.score(&x);
    let rows =
        Tensor::<2>::from_data(TensorData::new(x.clone(), [x.len() / 2, 2]), &Device::flex());
    let log_q = WholeRows::new(model.clone(), 2).log_prob(rows.clone());
    let log_p = model.log_p_tilde(rows);
    for (tensor, values) in [(log_q, &scores.log_q), (log_p, &scores.log_p_tilde)] {
        let expected: Vec<f32> = tensor.into_data().try_into_vec().unwrap();
        for (a, &b) in values.iter().zip(&expected) {
            assert!((a - f64::from(b)).abs() < 1e-4 * (1.0 + f64::from(b).abs()));
        }
    }
    assert_eq!(scores, Evaluator::new(&model, 1).unwrap().score(&x));
}

#[test]
fn estimates_of_z_agree_with_quadrature_and_are_unbiased() {
    let (model, streams) = model();
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let exact = quadrature(&evaluator);
    assert!(exact.outside < 1e-4, "mass at the edge: {}", exact.outside);
    let adaptive = SmcConfig::new(100).unwrap();
    for smc in [
        adaptive.clone(),
        adaptive.clone().with_resample_when(ResampleWhen::EveryStage),
        adaptive.with_resample_when(ResampleWhen::EffectiveSampleSizeBelow(0.0)),
    ] {
        let large = SmcConfig { num_particles: 200_000, ..smc.clone() };
        let estimate = evaluator.smc(&large, &streams, 0).unwrap();
        assert!(
            (estimate.log_z_hat - exact.log_z).abs() < 0.02,
            "{} {}",
            estimate.log_z_hat,
            exact.log_z
        );
        // Unbiased: the mean of Z-hat / Z over runs with few particles is 1; 4 standard errors.
        let ratios: Vec<f64> = (0..1000)
            .map(|repeat| {
                (evaluator.smc(&smc, &streams, 1 + repeat).unwrap().log_z_hat - exact.log_z).exp()
            })
            .collect();
        let mean = ratios.iter().sum::<f64>() / 1000.0;
        let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / 999.0;
        let z_score = (mean - 1.0) / (variance / 1000.0).sqrt();
        assert!(z_score.abs() < 4.0, "{z_score} (mean {mean})");
    }
}

#[test]
fn draws_from_the_model_match_the_marginals_of_quadrature() {
    let (model, streams) = model();
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let exact = quadrature(&evaluator);
    let smc = SmcConfig::new(200_000).unwrap();
    let rows = evaluator
        .smc(&smc, &streams, 0)
        .unwrap()
        .sample(20_000, &mut streams.stream("draws", 0, 0));
    for feature in 0..2 {
        let distance = kolmogorov_smirnov(&rows, feature, &exact.marginals[feature]);
        // 1.95 / sqrt(n): level 0.001; SMC's own error is a third of it.
        assert!(distance < 1.95 / 20_000f64.sqrt() + 0.004, "{feature}: {distance}");
        // The test can tell: draws from the proposal are far off.
        let proposal = kolmogorov_smirnov(
            &evaluator.sample_proposal(20_000, &streams),
            feature,
            &exact.marginals[feature],
        );
        assert!(proposal > 0.03, "{feature}: {proposal}");
    }
}

#[test]
fn conditional_transitions_leave_the_model_invariant() {
    let (model, streams) = model();
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let exact = quadrature(&evaluator);
    let smc = SmcConfig::new(400_000).unwrap();
    let start = evaluator
        .smc(&smc, &streams, 0)
        .unwrap()
        .sample(20_000, &mut streams.stream("draws", 0, 0));
    for (criterion, wide_share, resampling) in [
        (Method::Rnce, 0.0, Resampling::Multinomial),
        (Method::Rnce, 0.3, Resampling::Multinomial),
        (Method::SmcRnce, 0.0, Resampling::Multinomial),
        (Method::SmcRnce, 0.3, Resampling::Stratified),
        (Method::SmcRnce, 0.3, Resampling::Systematic),
    ] {
        let mut settings = ArStepConfig { resampling, ..ArStepConfig::new(criterion) };
        (settings.num_negatives, settings.wide_share) = (4, wide_share);
        let mut rows = start.clone();
        for step in 0..3 {
            rows = evaluator.transition(&settings, &rows, &streams, step).unwrap();
        }
        let stayed = rows.chunks(2).zip(start.chunks(2)).filter(|(a, b)| a == b).count();
        assert!(stayed < rows.len() / 2, "rows move");
        for feature in 0..2 {
            let distance = kolmogorov_smirnov(&rows, feature, &exact.marginals[feature]);
            assert!(
                distance < 1.95 / 20_000f64.sqrt() + 0.004,
                "{criterion:?} {wide_share} {resampling:?} {feature}: {distance}"
            );
        }
    }
}

#[test]
fn smc_gives_the_same_bits_for_any_number_of_threads() {
    let (model, streams) = model();
    let smc = SmcConfig::new(3_000).unwrap();
    let run = |threads| Evaluator::new(&model, threads).unwrap().smc(&smc, &streams, 0).unwrap();
    assert_eq!(run(1), run(2));
    assert_eq!(run(1), run(3));
}

/// Mass near the data where the proposal hardly ever goes is found all the same, and the error bar knows of it.
#[test]
fn a_proposal_that_is_far_too_narrow_misses_nothing_near_the_data() {
    let (model, streams) = model_with_spread(-1.5);
    let evaluator = Evaluator::new(&model, 2).unwrap();
    // The integral over [-6, 6]^2; a little of the model is further out.
    let at = |i: usize| -6.0 + (i as f32 + 0.5) * 0.02;
    let x: Vec<f32> = (0..600 * 600).flat_map(|i| [at(i / 600), at(i % 600)]).collect();
    let inner: f64 = evaluator.score(&x).log_p_tilde.iter().map(|l| l.exp() * 0.0004).sum();
    let smc = SmcConfig::new(20_000).unwrap().with_resample_when(ResampleWhen::EveryStage);
    let ratios: Vec<f64> = (0..20)
        .map(|repeat| evaluator.smc(&smc, &streams, repeat).unwrap().log_z_hat.exp() / inner)
        .collect();
    let mean = ratios.iter().sum::<f64>() / 20.0;
    let error = (ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / 19.0 / 20.0).sqrt();
    assert!(mean > 1.0 - 3.9 * error, "{mean} ± {error}");
    // Without the defensive part a million draws of q miss a good deal of it.
    let draws = evaluator.score(&evaluator.sample_proposal(1_000_000, &streams));
    let weights = draws.log_p_tilde.iter().zip(&draws.log_q).map(|(p, q)| (p - q).exp());
    let plain = weights.sum::<f64>() / 1e6 / inner;
    assert!(plain < 0.9 && error < 0.03, "the case is not hard enough: {plain}, {mean} ± {error}");
}

#[test]
fn the_bridge_agrees_with_quadrature() {
    let (model, streams) = model();
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let exact = quadrature(&evaluator).log_z;
    let errors: Vec<f64> =
        (0..20).map(|repeat| evaluator.bridge(20_000, &streams, repeat).unwrap() - exact).collect();
    let mean = errors.iter().sum::<f64>() / 20.0;
    let variance = errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / 19.0;
    // Student's t with 19 degrees of freedom, level 0.001; and it is no vacuous interval.
    assert!(mean.abs() < 3.9 * (variance / 20.0).sqrt(), "{mean} {variance}");
    assert!(variance.sqrt() < 0.05, "{variance}");
}

#[test]
fn given_a_feature_the_other_follows_its_conditional_and_the_integral_is_right() {
    let (model, streams) = model();
    let evaluator = Evaluator::new(&model, 2).unwrap();
    for (given, value) in [(0, 1.5), (0, -2.0), (1, 1.0), (1, -2.5)] {
        let (cumulative, log_integral) = slice(&evaluator, given, value);
        let mut features = [None, None];
        features[given] = Some(value);
        let smc = SmcConfig::new(100_000).unwrap();
        let run = evaluator.smc_given(&smc, &features, &streams, 0).unwrap();
        assert!(run.columns[given].iter().all(|&x| x == value));
        assert!((run.log_z_hat - log_integral).abs() < 0.02, "{given} {value}: {}", run.log_z_hat);
        let rows = run.sample(20_000, &mut streams.stream("draws", 0, 0));
        let distance = kolmogorov_smirnov(&rows, 1 - given, &cumulative);
        assert!(distance < 1.95 / 20_000f64.sqrt() + 0.006, "{given} {value}: {distance}");
    }
    // Everything given: the integral is the density itself, whatever the number of particles.
    let run = evaluator
        .smc_given(&SmcConfig::new(3).unwrap(), &[Some(0.5), Some(-1.0)], &streams, 0)
        .unwrap();
    let exact = evaluator.score(&[0.5, -1.0]).log_p_tilde[0];
    assert!((run.log_z_hat - exact).abs() < 1e-5, "{} {exact}", run.log_z_hat);
}

#[test]
fn work_that_is_asked_to_stop_stops() {
    let (model, streams) = model();
    let watch = std::sync::Arc::new(zhat::watch::Watch::default());
    let evaluator = Evaluator::new(&model, 2).unwrap().with_watch(watch.clone());
    let smc = SmcConfig::new(1000).unwrap();
    evaluator.smc(&smc, &streams, 0).unwrap();
    assert_eq!(watch.done(), 2000);
    watch.stop();
    assert_eq!(evaluator.smc(&smc, &streams, 0), Err(zhat::Error::Stopped));
}
