//! Verdicts on models that are known to be good or bad, and why.

mod known;
mod models;

use known::{Known, Mixture, Part};
use models::{Defect, zoo};
use zhat::rng::Streams;
use zhat_table::density::{Density, Estimation};
use zhat_table::fitted::{Calibration, assess, two_sample};

#[test]
fn bad_models_are_caught_and_good_ones_are_not() {
    let settings = Estimation::new(4_000, 8);
    let (mut missed, mut distrusted) = (Vec::new(), Vec::new());
    let animals = zoo(1);
    let good = animals.iter().filter(|animal| animal.defect == Defect::None).count();
    assert!(good >= 10 && animals.len() - good >= 20, "{good} of {}", animals.len());
    for animal in animals {
        let found = assess(&*animal.density, &animal.rows, None, &settings, true, 1).unwrap();
        let verdict = found.verdict;
        match animal.defect {
            Defect::None if !verdict.is_good() => {
                distrusted.push(format!("{}: {verdict}", animal.name));
            }
            Defect::None => {}
            // What has no Z is known by that, and not by accident.
            Defect::NoZ => assert!(verdict.reasons[0].contains("no Z"), "{verdict}"),
            _ if verdict.is_good() => missed.push(format!("{}: {verdict}", animal.name)),
            _ => {}
        }
    }
    assert!(distrusted.len() <= 1, "{distrusted:?}");
    assert!(missed.is_empty(), "{missed:?}");
}

/// Three dependent columns in two clusters, whose conditionals are known in closed form.
fn truth() -> Mixture {
    let (mut one, mut other) =
        (Part::chained(&[0.0, 1.0, -1.0], 0.6), Part::chained(&[2.0, -1.0, 0.0], -0.4));
    (one.weight, other.weight) = (0.7, 0.3);
    Mixture(vec![one, other])
}

/// Whether numbers are uniform, at a level of 0.01 and for fixed seeds.
fn are_uniform(numbers: &[f64]) -> bool {
    Calibration::new(numbers, 1).columns[0].p_value > 0.01
}

#[test]
fn p_values_of_columns_are_uniform_under_the_truth_and_small_elsewhere() {
    let p_values = |model: &Mixture| -> Vec<Vec<f64>> {
        let density = Known::normalised(model.clone());
        let of_seed = |seed: u64| {
            let rows = truth().rows(250, &mut Streams::new(seed).stream("rows", 0, 0));
            let cells = density.cells(&rows).unwrap().unwrap();
            let found = Calibration::new(&cells.below, 3);
            found.columns.iter().map(|column| column.p_value).collect()
        };
        (0..200).map(of_seed).collect()
    };
    let of_truth = p_values(&truth());
    for column in 0..3 {
        let of_column: Vec<f64> = of_truth.iter().map(|p_values| p_values[column]).collect();
        assert!(are_uniform(&of_column), "{column}: {of_column:?}");
    }
    // The broken twin: a density that is wider by a fifth.
    let of_wide: Vec<f64> = p_values(&truth().scaled(1.2)).iter().map(|p| p[1]).collect();
    assert!(!are_uniform(&of_wide));
}

#[test]
fn p_values_of_the_classifier_are_uniform_under_the_truth_and_small_elsewhere() {
    let p_values = |model: Mixture| -> Vec<f64> {
        let density = Known::normalised(model);
        let of_seed = |seed: u64| {
            let streams = Streams::new(seed);
            let rows = truth().rows(100, &mut streams.stream("rows", 0, 0));
            two_sample(&density, &rows, &streams).unwrap().unwrap().p_value
        };
        (0..60).map(of_seed).collect()
    };
    assert!(are_uniform(&p_values(truth())));
    assert!(!are_uniform(&p_values(truth().scaled(1.3))));
}
