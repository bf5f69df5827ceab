//! Columns that are given: densities of the others integrate to one for each of their values, and predict what they are.

mod common;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use zhat::rng::Streams;
use zhat_table::data::{Missing, ReadOptions, builtin};
use zhat_table::fit::{FitConfig, FitReport, Session};
use zhat_table::fitted::{Fitted, SampleOptions, Target, predictive, sample, sample_for};
use zhat_table::prepare;

fn config(source: &str, steps: u64) -> FitConfig {
    let mut config = FitConfig::for_table(source, 4_000, 3, Some(steps));
    config.validation.stack_mixtures = false;
    config.model.proposal.width = 64;
    config.training.batch_size = 128;
    config.training.validation_every = steps / 4;
    config.training.checkpoint_every = steps / 4;
    config.model.dropout = 0.0;
    config.validation.cross_validate_below = 0;
    config.training.patience = 0;
    config
}

fn fit(config: &FitConfig, out: &Path) -> (Fitted, FitReport) {
    let watch = Arc::default();
    let data = prepare(config).unwrap();
    let mut session = Session::start(config.clone(), data, out, 2, &watch).unwrap();
    let report = session.run(None, &watch, &mut |_| {}).unwrap().unwrap();
    (Fitted::open(out, 2, Arc::default()).unwrap(), report)
}

#[test]
fn a_regression_comes_near_to_the_truth_and_its_intervals_cover() {
    let directory = common::directory("given-regression");
    let mut config = config("builtin:regression", 700);
    config.data.read.max_rows = Some(8_000);
    config.data.given = vec!["x1".into(), "x2".into()];
    let (fitted, report) = fit(&config, &directory.join("run"));
    assert_eq!((fitted.card().model.given, fitted.density().given()), (2, 2));
    let gap = report.truth.unwrap() - report.test.log_likelihood;
    // A normal for each x, the best that has one mode, is 0.5 behind.
    assert!((-0.05..0.12).contains(&gap), "{gap}");
    // Many fresh rows say so too.
    let told = report.gap.unwrap();
    assert!((-0.01..0.12).contains(&told.mean) && told.fresh, "{told}");
    assert!(told.standard_error < 0.01 && told.rows == 66_666, "{told}");
    assert!(report.notes[0].contains("y given x1, x2"), "{:?}", report.notes);

    // The density of y, in its own units, is one for every x.
    let density = fitted.density();
    for [x1, x2] in [[0.3, -1.5], [-1.9, 0.0], [1.7, 1.9]] {
        let line: Vec<f32> = (0..4000).flat_map(|i| [x1, x2, -10.0 + 0.005 * i as f32]).collect();
        let scores = density.score(&line).unwrap().log_p_tilde;
        let mass: f64 = scores.iter().map(|log_p| 0.005 * log_p.exp()).sum();
        assert!((mass - 1.0).abs() < 5e-3, "{x1} {x2}: {mass}");
    }
    assert!(density.score(&[f32::NAN, 0.0, 1.0]).unwrap().log_p_tilde[0].is_nan());
    let cells = density.cells(&[0.3, 0.1, 1.0]).unwrap().unwrap();
    assert_eq!(cells.log_p[..2], [0.0, 0.0]);

    let rows = fitted.own_rows().unwrap();
    let found = predictive(density, &rows.test, None, 1).unwrap();
    let Target::Number(y) = &found.targets[0] else { panic!("{found:?}") };
    let ninety = y.coverage.iter().find(|coverage| coverage.level == 0.9).unwrap();
    assert!((ninety.found - 0.9).abs() < 4.0 * ninety.standard_error, "{ninety:?}");
    // The truth's own score, by draws of it.
    let set = builtin::find("regression").unwrap();
    assert!(set.log_marginal(&[0.0, 0.0, 9.0], &[true, true, false]).is_some());
    assert!((0.3..0.7).contains(&y.crps), "{y:?}");

    let options = |given: &[(&str, f64)]| SampleOptions {
        number: 500,
        given: given.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        particles: None,
        seed: 3,
    };
    let told = sample(density, &options(&[("x1", 1.0)])).unwrap_err().to_string();
    assert!(told.contains("without x2"), "{told}");
    let drawn = sample(density, &options(&[("x1", 1.0), ("x2", 0.0)])).unwrap();
    assert_eq!((drawn.rows, drawn.particles), (500, 500));
    // Two modes: at 1 - 1.2 and 1 + 1.2, each a half.
    let above = drawn.table.column(2).filter(|y| *y > 1.0).count() as f64 / 500.0;
    assert!((above - 0.5).abs() < 0.12, "{above}");

    let path = common::file(&directory, "x.csv", "x2,note,x1\n0,a,1\n-2,b,0.5\n");
    let source = path.to_str().unwrap();
    let given = fitted.given_rows(source, &ReadOptions::default()).unwrap();
    assert_eq!((given[0], given[1], given[3], given[4]), (1.0, 0.0, 0.5, -2.0));
    let drawn = sample_for(density, &given, &SampleOptions { number: 3, ..options(&[]) }).unwrap();
    assert_eq!(drawn.table.column(0).collect::<Vec<_>>(), [1.0, 1.0, 1.0, 0.5, 0.5, 0.5]);
    let path = common::file(&directory, "x1.csv", "x1\n0\n");
    let told = fitted.given_rows(path.to_str().unwrap(), &ReadOptions::default()).unwrap_err();
    assert!(told.to_string().contains("row 1") && told.to_string().contains("x2"), "{told}");
}

/// A class in the middle of a table that depends on the columns around it.
fn table(rows: usize, hole: Option<usize>) -> String {
    let mut rng = Streams::new(8).stream("table", 0, 0);
    let mut text = String::from("id,size,colour,shop,weight\n");
    for row in 0..rows {
        let (size, shop) = (rng.normal(), rng.index(3));
        let weight = rng.normal();
        let chance = 1.0 / (1.0 + (-2.5 * size + shop as f64 - 1.0).exp());
        let colour = if rng.uniform() < chance { "red" } else { "blue" };
        let size = if hole == Some(row) { String::new() } else { format!("{size:.5}") };
        writeln!(text, "r{row},{size},{colour},{},{weight:.5}", ["a", "b", "c"][shop]).unwrap();
    }
    text
}

#[test]
fn a_class_given_all_else_has_calibrated_probabilities_in_the_order_of_the_file() {
    let directory = common::directory("given-class");
    let path = common::file(&directory, "t.csv", table(3_000, None));
    let source = path.to_str().unwrap();
    let mut config = config(source, 300);
    config.data.target = vec!["colour".into()];
    let (fitted, report) = fit(&config, &directory.join("run"));
    assert_eq!(fitted.card().columns, ["size", "shop", "weight", "colour"]);
    // Kinds stay as the columns stand in the file.
    let names: Vec<&str> = fitted.card().kinds.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["id", "size", "colour", "shop", "weight"]);
    let found = predictive(fitted.density(), &fitted.own_rows().unwrap().test, None, 1).unwrap();
    let [Target::Classes(colour)] = &found.targets[..] else { panic!("{found:?}") };
    // Nothing but the class has a factor: its log loss is what the test part has.
    assert!((colour.log_loss + report.test.log_likelihood).abs() < 1e-6, "{colour:?}");
    assert!(colour.accuracy > colour.most_frequent + 0.1, "{colour:?}");
    assert!(colour.log_loss < 0.5 && colour.calibration_error < 0.12, "{colour:?}");
    // Rows of the file are scored by the columns of the file, and without a header by their places.
    let (with, without) = (table(50, None), table(50, None).split_once('\n').unwrap().1.to_owned());
    let read = |name: &str, text: &str| {
        let path = common::file(&directory, name, text);
        fitted.rows_of(path.to_str().unwrap(), &ReadOptions::default(), 0).unwrap().test
    };
    let rows = read("with.csv", &with);
    assert_eq!(rows, read("without.csv", &without));
    let scores = fitted.density().score(&rows).unwrap().log_p_tilde;
    assert!(scores.iter().all(|log_p| *log_p < 0.0), "{scores:?}");
}

#[test]
fn a_file_without_names_is_known_by_the_places_of_the_fits_columns_with_kinds_and_without() {
    let directory = common::directory("given-unnamed");
    let mut rng = Streams::new(3).stream("unnamed", 0, 0);
    let row = |rng: &mut zhat::rng::Stream| {
        let x = rng.normal();
        [10.0 + rng.normal(), 5.0 * x + 0.1 * rng.normal(), x].map(|x| x as f32)
    };
    let rows: Vec<[f32; 3]> = (0..400).map(|_| row(&mut rng)).collect();
    let bytes: Vec<u8> = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    let bytes = common::npy("<f4", false, "(400, 3)", &bytes);
    let path = common::file(&directory, "t.npy", bytes);
    let source = path.to_str().unwrap();
    for (name, find_kinds) in [("with", true), ("without", false)] {
        let mut config = config(source, 40);
        config.data.given = vec!["column_3".into()];
        config.data.find_kinds = find_kinds;
        let (fitted, _) = fit(&config, &directory.join(name));
        assert_eq!(fitted.card().columns, ["column_3", "column_1", "column_2"]);
        let read = fitted.rows_of(source, &ReadOptions::default(), 0).unwrap().test;
        let expected: Vec<f32> = rows.iter().flat_map(|[a, b, c]| [*c, *a, *b]).collect();
        assert_eq!(read, expected, "{name} kinds");
    }
}

#[test]
fn what_cannot_be_given_is_told() {
    let directory = common::directory("given-told");
    let path = common::file(&directory, "t.csv", table(200, Some(7)));
    let told = |given: &[&str], target: &[&str]| {
        let mut config = config(path.to_str().unwrap(), 10);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        (config.data.given, config.data.target) = (names(given), names(target));
        match config.validate() {
            Ok(()) => prepare(&config).map(|_| ()).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    };
    assert!(told(&["sise"], &[]).unwrap_err().contains("Did you mean size?"));
    assert!(told(&["size"], &[]).unwrap_err().contains("row 8 has no value"));
    assert!(told(&["size", "colour", "shop", "weight"], &[]).unwrap_err().contains("all columns"));
    assert!(told(&["shop", "shop"], &[]).unwrap_err().contains("twice"));
    assert!(told(&["shop"], &["colour"]).unwrap_err().contains("two ways"));
    assert!(told(&["shop", "weight"], &[]).is_ok(), "a hole in what is modelled is summed over");
    let mut global = FitConfig::new(path.to_str().unwrap());
    global.data.given = vec!["shop".into()];
    assert!(global.validate().unwrap_err().to_string().contains("model.normalisation = local"));
    let mut dropped = config(path.to_str().unwrap(), 10);
    dropped.data.given = vec!["size".into()];
    dropped.data.read.missing = Missing::Drop;
    assert_eq!(prepare(&dropped).unwrap().columns[0], "size");
}
