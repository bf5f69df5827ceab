//! Gaussian mixtures beside networks, where validation rows are likelier so.

mod common;

use std::sync::Arc;

use common::directory;
use zhat::watch::Watch;
use zhat_table::data::{Marginals, ReadOptions};
use zhat_table::fit::{FitConfig, FitReport, Session, mean_and_error};
use zhat_table::fitted::Fitted;
use zhat_table::{Prepared, prepare};

fn fit(name: &str, stack: bool) -> (Prepared, FitReport, Fitted) {
    let mut config = FitConfig::for_table("builtin:eight-gaussians", 1_600, 2, Some(60));
    config.data.read.max_rows = Some(2_000);
    config.model.proposal.width = 32;
    assert!(config.validation.stack_mixtures, "it is the default of a few columns");
    config.validation.stack_mixtures = stack;
    let data = prepare(&config).unwrap();
    let out = directory("beside").join(name);
    let _ = std::fs::remove_dir_all(&out);
    let watch = Arc::new(Watch::default());
    let mut session = Session::start(config, data.clone(), &out, 2, &watch).unwrap();
    let report = session.run(None, &watch, &mut |_| ()).unwrap().unwrap();
    (data, report, Fitted::open(&out, 1, Arc::default()).unwrap())
}

#[test]
fn a_mixture_of_normals_is_found_where_networks_have_had_no_time() {
    let (data, with, fitted) = fit("with", true);
    let config = fitted.config().unwrap();
    let (_, without, _) = fit("without", false);
    let gap = |report: &FitReport| report.truth.unwrap() - report.test.log_likelihood;
    assert!(gap(&with) < 0.05 && gap(&without) > 0.3, "{} {}", gap(&with), gap(&without));
    // The gap that is told is of many rows, and other fresh rows say the same.
    let options = ReadOptions { max_rows: Some(50_000), ..ReadOptions::default() };
    let rows = fitted.rows_of("builtin:eight-gaussians", &options, 7).unwrap();
    let (told, scores) = (with.gap.unwrap(), fitted.density().score(&rows.test).unwrap());
    let apart: Vec<f64> =
        rows.truth.unwrap().iter().zip(&scores.log_p_tilde).map(|(t, found)| t - found).collect();
    let (mean, error) = mean_and_error(&apart);
    assert!(told.fresh && told.rows == 100_000);
    assert!((told.mean - mean).abs() < 4.0 * told.standard_error.hypot(error), "{told} {mean}");
    // Errors of the same rows, which are twice as many there.
    assert!((told.standard_error * 2f64.sqrt() / error - 1.0).abs() < 0.2, "{told} {error}");
    assert!(told.standard_error < 0.2 * with.test.se_test, "{told}");
    assert!(with.notes.iter().any(|note| note.starts_with("Gaussian mixtures stand beside")));
    assert!(with.validation_log_likelihood > without.validation_log_likelihood);
    // What was written is what was evaluated.
    let scores = fitted.density().score(&data.test_as_read()).unwrap().log_p_tilde;
    let mean = scores.iter().sum::<f64>() / scores.len() as f64;
    assert!((mean - with.test.log_likelihood).abs() < 1e-6);
    // What the fit found out about its columns is a setting of the model that is opened, with which the data are as they were.
    assert_ne!(config.data.marginals, Marginals::Auto);
    assert_eq!(prepare(&config).unwrap().standardiser, data.standardiser);
}
