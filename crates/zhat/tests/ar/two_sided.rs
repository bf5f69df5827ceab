//! `log Z` from above, the error of a single run by its genealogy, and integrals checked by sampling.

use zhat::ar::*;
use zhat::criterion::Method;
use zhat::smc::{ResampleWhen, Resampling, SmcConfig};
use zhat::testing::z_score;

use crate::grid::quadrature;
use crate::local::{HEADS, local};
use crate::small_model::{model, random};

#[test]
fn the_genealogy_of_one_run_knows_the_variance_over_many() {
    let (model, streams) = model();
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let log_z = quadrature(&evaluator).log_z;
    let smc = SmcConfig::new(60)
        .unwrap()
        .with_resampling(Resampling::Multinomial)
        .with_resample_when(ResampleWhen::EveryStage);
    let runs: Vec<(f64, f64)> = (0..3000)
        .map(|repeat| {
            let run = evaluator.smc(&smc, &streams, repeat).unwrap();
            ((run.log_z_hat - log_z).exp(), run.relative_variance)
        })
        .collect();
    // E[Z-hat^2 V] = var(Z-hat), both in units of Z^2; 4 standard errors of the difference, run by run.
    let differences: Vec<f64> = runs.iter().map(|(z, v)| z * z * v - (z - 1.0).powi(2)).collect();
    assert!(z_score(&differences, 0.0) < 4.0, "{}", z_score(&differences, 0.0));
    let mean = runs.iter().map(|(_, v)| v).sum::<f64>() / 3000.0;
    // The weights of the last stage alone, as if nobody had been resampled, say less by far.
    assert!(mean > 1e-4, "{mean}");
}

#[test]
fn from_rows_of_the_model_itself_the_reciprocal_is_unbiased_and_the_log_is_above() {
    let (model, streams) = model();
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let log_z = quadrature(&evaluator).log_z;
    let cloud = evaluator.smc(&SmcConfig::new(100_000).unwrap(), &streams, 7).unwrap();
    let rows = cloud.sample(2000, &mut streams.stream("rows", 0, 0));
    let rows =
        evaluator.transition(&ArStepConfig::new(Method::SmcRnce), &rows, &streams, 0).unwrap();
    let smc = SmcConfig::new(12).unwrap();
    let log_z_hats = evaluator.log_z_from_rows(&smc, &rows, &streams).unwrap();
    let ratios: Vec<f64> = log_z_hats.iter().map(|log_z_hat| (log_z - log_z_hat).exp()).collect();
    assert!(z_score(&ratios, 1.0) < 4.0, "{}", z_score(&ratios, 1.0));
    let above = log_z_hats.iter().sum::<f64>() / 2000.0;
    let below = (0..400).map(|repeat| evaluator.smc(&smc, &streams, repeat).unwrap().log_z_hat);
    let below = below.sum::<f64>() / 400.0;
    assert!(below < log_z && log_z < above, "{below} {log_z} {above}");
    assert_eq!(
        log_z_hats,
        Evaluator::new(&model, 1).unwrap().log_z_from_rows(&smc, &rows, &streams).unwrap()
    );
    // Rows that are no draws of the model, the broken twin: those of the proposal.
    let others = evaluator.sample_proposal(2000, &streams);
    let others = evaluator.log_z_from_rows(&smc, &others, &streams).unwrap();
    let ratios: Vec<f64> = others.iter().map(|log_z_hat| (log_z - log_z_hat).exp()).collect();
    assert!(z_score(&ratios, 1.0) > 4.0, "{}", z_score(&ratios, 1.0));
}

#[test]
fn normalisers_by_quadrature_are_those_of_sampling() {
    for head in HEADS {
        let (model, streams) = random(&local(head));
        let evaluator = Evaluator::new(&model, 2).unwrap();
        let rows = evaluator.sample_proposal(400, &streams);
        let sums = evaluator.sampled_normalisers(50, &rows, &streams).unwrap();
        let ratios: Vec<f64> = sums.iter().map(|sum| sum.exp()).collect();
        assert!(z_score(&ratios, 1.0) < 4.0, "{head:?}: {}", z_score(&ratios, 1.0));
        let spread = sums.iter().map(|sum| sum * sum).sum::<f64>() / 400.0;
        assert!(spread > 1e-6, "draws are draws: {spread}");
        // A normaliser that is off by a twentieth would be seen.
        assert!(z_score(&ratios, 1.05) > 4.0, "{head:?}: {}", z_score(&ratios, 1.05));
    }
}
