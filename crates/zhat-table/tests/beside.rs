//! Gaussian mixtures beside networks, where validation rows are likelier so.

mod common;

use std::sync::Arc;

use common::directory;
use zhat::watch::Watch;
use zhat_table::data::Marginals;
use zhat_table::fit::{FitConfig, FitReport, Session};
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
