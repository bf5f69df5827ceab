//! Weights of rows: a row of weight 2 is the row twice, in means, in what is learnt and in how a table is cut.

mod common;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use zhat::rng::Streams;
use zhat::train::{Difference, effective_rows};
use zhat_table::density::Estimation;
use zhat_table::fit::{FitConfig, Session};
use zhat_table::fitted::{Fitted, assess};
use zhat_table::prepare;

/// Two heaps of equally many rows, the upper of which counts three times as much.
fn heaps(rows: usize, weight: impl Fn(usize, bool) -> String) -> String {
    let mut rng = Streams::new(2).stream("heaps", 0, 0);
    let mut text = String::from("a,w,b\n");
    for row in 0..rows {
        let upper = row % 2 == 1;
        let a = if upper { 4.0 } else { -4.0 } + rng.normal();
        writeln!(text, "{a:.5},{},{:.5}", weight(row, upper), rng.normal()).unwrap();
    }
    text
}

fn config(source: &Path, rows: usize, steps: u64) -> FitConfig {
    let mut config = FitConfig::for_table(source.to_str().unwrap(), rows, 2, Some(steps));
    config.model.proposal.width = 32;
    config.training.batch_size = 128;
    config.training.validation_every = steps / 2;
    config.training.checkpoint_every = steps / 2;
    config.training.patience = 0;
    config.data.weight = Some("w".into());
    config
}

fn fit(config: &FitConfig, out: &Path) -> Fitted {
    let watch = Arc::default();
    let data = prepare(config).unwrap();
    let mut session = Session::start(config.clone(), data, out, 2, &watch).unwrap();
    session.run(None, &watch, &mut |_| {}).unwrap().unwrap();
    Fitted::open(out, 2, Arc::default()).unwrap()
}

#[test]
fn the_density_is_that_of_rows_as_often_as_they_count() {
    let directory = common::directory("weights-density");
    let text = heaps(3_000, |_, upper| if upper { "3" } else { "1" }.into());
    let path = common::file(&directory, "t.csv", text);
    let mut config = config(&path, 3_000, 300);
    config.validation.cross_validate_below = 0;
    let fitted = fit(&config, &directory.join("run"));
    assert_eq!(fitted.card().columns, ["a", "b"], "weights are no part of the model");
    // The mass above 0, which is a half of the rows and three quarters of the weight.
    let density = fitted.density();
    let line: Vec<f32> = (0..1000).flat_map(|i| [0.01 * i as f32, f32::NAN]).collect();
    let above: f64 =
        density.score(&line).unwrap().log_p_tilde.iter().map(|log_p| 0.01 * log_p.exp()).sum();
    assert!((above - 0.75).abs() < 0.04, "{above}");

    // The test part is three quarters of its weight too, and its mean is the weighted one.
    let rows = fitted.own_rows().unwrap();
    let weights = rows.weights.as_deref().unwrap();
    let settings = Estimation::new(100, 2);
    let found = assess(density, &rows.test, Some(weights), &settings, false, 0).unwrap().likelihood;
    let scores = density.score(&rows.test).unwrap().log_p_tilde;
    let twice: Vec<f64> = scores
        .iter()
        .zip(weights)
        .flat_map(|(score, weight)| vec![*score; *weight as usize])
        .collect();
    let mean = twice.iter().sum::<f64>() / twice.len() as f64;
    assert!((found.log_likelihood - mean).abs() < 1e-9, "{} {mean}", found.log_likelihood);
    assert_eq!(found.effective_rows, Some(effective_rows(weights)));
    let data = prepare(&config).unwrap();
    let share = |weights: &[f64]| weights.iter().sum::<f64>() / 6_000.0;
    let [train, validation, test] = data.weights.unwrap();
    assert!((share(&test) - 0.1).abs() < 1e-3 && (share(&validation) - 0.1).abs() < 1e-3);
    assert!((share(&train) - 0.8).abs() < 2e-3);
}

/// Few rows go through folds: all of one weight are as without, to the last bit but for the mixture beside the head.
#[test]
fn equal_weights_are_none_and_few_rows_are_weighed_too() {
    let directory = common::directory("weights-folds");
    let path = common::file(&directory, "t.csv", heaps(300, |_, _| "2.5".into()));
    let mut weighed = config(&path, 300, 20);
    weighed.model.gaussian_mixture = false;
    let mut plain = weighed.clone();
    plain.data.weight = None;
    plain.data.read.without = vec!["w".into()];
    let [weighed, plain] = [(&weighed, "weighed"), (&plain, "plain")]
        .map(|(config, name)| fit(config, &directory.join(name)));
    let rows = [-4.0f32, 0.3, 3.5, -1.0];
    let [a, b] = [&weighed, &plain].map(|run| run.density().score(&rows).unwrap().log_p_tilde);
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-4), "{a:?} {b:?}");
}

#[test]
fn means_are_those_of_copies_and_errors_those_of_effective_rows() {
    let values = [1.0, -2.0, 0.5, 4.0, 0.0];
    let weights = [1.0, 2.0, 3.0, 1.0, 0.0];
    let copies = [1.0, -2.0, -2.0, 0.5, 0.5, 0.5, 4.0];
    let (found, of_copies) =
        (Difference::weighted(&values, Some(&weights)), Difference::from_zero(&copies));
    assert!((found.mean - of_copies.mean).abs() < 1e-12);
    // A copy is no new row: the error is larger than that of copies taken for rows.
    assert!(found.standard_error > of_copies.standard_error);
    let same = Difference::weighted(&values, Some(&[7.0; 5]));
    let plain = Difference::from_zero(&values);
    assert!((same.mean - plain.mean).abs() < 1e-12);
    assert!((same.standard_error - plain.standard_error).abs() < 1e-12);
    assert!((effective_rows(&[2.0; 9]) - 9.0).abs() < 1e-12);
    // The error is that of repetitions, where weights go with nothing.
    let mut rng = Streams::new(3).stream("rows", 0, 0);
    let (mut spread, mut claimed) = (0.0, 0.0);
    for _ in 0..2000 {
        let rows: Vec<f64> = (0..40).map(|_| rng.normal()).collect();
        let weights: Vec<f64> = (0..40).map(|_| rng.uniform().powi(2)).collect();
        let found = Difference::weighted(&rows, Some(&weights));
        spread += found.mean.powi(2);
        claimed += found.standard_error.powi(2);
    }
    assert!((claimed / spread - 1.0).abs() < 0.12, "{}", claimed / spread);
}

#[test]
fn weights_that_cannot_be_are_told_by_their_row() {
    let directory = common::directory("weights-told");
    let told = |odd: &str| {
        let text = heaps(60, |row, _| if row == 7 { odd.into() } else { "1".into() });
        let path = common::file(&directory, "t.csv", text);
        prepare(&config(&path, 60, 10)).map(|_| ()).map_err(|error| error.to_string())
    };
    assert!(told("0").is_ok());
    assert!(told("-1").unwrap_err().contains("-1 in row 8 of column w"));
    assert!(told("").unwrap_err().contains("missing in row 8"));
    assert!(told("inf").is_err());
    let path = common::file(&directory, "t.csv", heaps(60, |_, _| "0".into()));
    assert!(prepare(&config(&path, 60, 10)).unwrap_err().to_string().contains("0 in every row"));
    let path = common::file(&directory, "t.csv", heaps(60, |_, _| "much".into()));
    assert!(prepare(&config(&path, 60, 10)).unwrap_err().to_string().contains("has words"));
    let mut other = config(&path, 60, 10);
    other.data.weight = Some("v".into());
    assert!(prepare(&other).unwrap_err().to_string().contains("no column v"));
}
