//! Rows with holes: their likelihoods against sums and integrals over what is missing, and the invariance of what fills them.

use zhat::ar::*;
use zhat::rng::Streams;
use zhat::smc::SmcConfig;

use crate::kinds::{cells, classes, log_sum, mixed, rows};
use crate::small_model::{config, random};

fn smc(particles: usize) -> SmcConfig {
    SmcConfig::new(particles).unwrap()
}

/// What is known of a row whose missing values are not numbers.
fn known(row: &[f32]) -> Vec<Option<f32>> {
    row.iter().map(|&x| (!x.is_nan()).then_some(x)).collect()
}

const HOLE: f32 = f32::NAN;

#[test]
fn the_score_of_a_row_with_holes_is_the_sum_over_what_is_missing() {
    let kinds = [classes(3), FeatureKind::Continuous, cells(), classes(2)];
    let (model, streams) = mixed(&kinds, HeadForm::Mixture);
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let cell = kinds[2].value_of(3);
    let x = [
        [HOLE, 0.3, cell, 1.0],
        [1.0, HOLE, cell, 1.0],
        [2.0, -0.4, HOLE, 0.0],
        [HOLE, HOLE, cell, HOLE],
        [HOLE, HOLE, HOLE, 1.0],
        [0.0, HOLE, HOLE, 1.0],
    ];
    for model_is in ["model", "proposal"] {
        let evaluator = match model_is {
            "model" => Evaluator::new(&model, 2).unwrap(),
            _ => Evaluator::of_proposal(&model, 2).unwrap(),
        };
        let scores = evaluator.score_observed(&x.concat(), &smc(4000), &streams).unwrap();
        for (row, (log_p, error)) in x.iter().zip(scores.log_p.iter().zip(&scores.error)) {
            let exact = log_sum(&evaluator, &kinds, &known(row));
            assert!(*error > 0.0 && *error < 0.03, "{row:?} {error}");
            // 4.5 errors of eight systems at a level of about 0.003 for each of twelve, a fixed seed, and the error of the sums.
            assert!((log_p - exact).abs() < 4.5 * error + 4e-3, "{row:?} {log_p} {exact} {error}");
        }
    }
    let one_thread = Evaluator::new(&model, 1).unwrap();
    let [two, one] = [&evaluator, &one_thread]
        .map(|evaluator| evaluator.score_observed(&x.concat(), &smc(64), &streams).unwrap());
    assert_eq!(two, one, "whatever the number of threads");
    // Nothing missing comes before something observed: nothing is drawn.
    let x = [[1.0, 0.2, cell, 1.0], [1.0, 0.2, HOLE, HOLE], [HOLE; 4]].concat();
    let scores = evaluator.score_observed(&x, &smc(8), &streams).unwrap();
    assert_eq!(scores.error, [0.0; 3]);
    assert!((scores.log_p[0] - evaluator.score(&x[..4]).log_p_tilde[0]).abs() < 1e-9);
    let exact = log_sum(&evaluator, &kinds, &known(&x[4..8]));
    assert!((scores.log_p[1] - exact).abs() < 4e-3, "{} {exact}", scores.log_p[1]);
    assert_eq!(scores.log_p[2], 0.0);
}

#[test]
fn the_error_of_a_row_with_holes_is_that_of_repetitions() {
    let kinds = [classes(3), FeatureKind::Continuous, cells(), classes(2)];
    let (model, _) = mixed(&kinds, HeadForm::Mixture);
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let row = [HOLE, HOLE, kinds[2].value_of(1), 1.0];
    let exact = log_sum(&evaluator, &kinds, &known(&row));
    let number = 60;
    let z: Vec<f64> = (0..number)
        .map(|seed| {
            let scores = evaluator.score_observed(&row, &smc(400), &Streams::new(seed)).unwrap();
            (scores.log_p[0] - exact) / scores.error[0]
        })
        .collect();
    let rms = (z.iter().map(|z| z * z).sum::<f64>() / number as f64).sqrt();
    // Student's t of seven degrees of freedom has a root mean square of 1.18; its spread over 60 is 0.16.
    assert!((0.7..1.7).contains(&rms), "{rms}");
}

/// Counts of all rows of cells and classes.
fn count(kinds: &[FeatureKind], draws: &[f32], number: usize) -> Vec<f64> {
    let mut counts = vec![0.0; number];
    for row in draws.chunks_exact(kinds.len()) {
        let at = kinds
            .iter()
            .zip(row)
            .fold(0, |at, (kind, &x)| at * kind.num_values().unwrap() + kind.index_of(x).unwrap());
        counts[at] += 1.0;
    }
    counts
}

/// Largest distance from what is expected, in standard errors, where at least twenty rows are expected.
fn distance(counts: &[f64], log_p: &[f64]) -> f64 {
    let number: f64 = counts.iter().sum();
    let pairs = counts.iter().zip(log_p).map(|(count, log_p)| (count / number, log_p.exp()));
    let pairs = pairs.filter(|(_, p)| p * number > 20.0);
    pairs.map(|(share, p)| (share - p).abs() / (p * (1.0 - p) / number).sqrt()).fold(0.0, f64::max)
}

#[test]
fn redrawing_what_is_missing_leaves_the_model_invariant() {
    let kinds = [classes(3), cells(), classes(2), cells()];
    let (mut model, streams) = mixed(&kinds, HeadForm::Mixture);
    // What is observed says much about what is missing.
    model.proposal.last.weight = model.proposal.last.weight.map(|weight| weight * 2.0);
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let number = 20_000;
    let (all, _) = rows(&kinds, &[None; 4]);
    let log_p = evaluator.score(&all).log_p_tilde;
    let run = evaluator.smc(&smc(number), &streams, 0).unwrap();
    let start: Vec<f32> =
        (0..number).flat_map(|row| [0, 1, 2, 3].map(|d| run.columns[d][row])).collect();
    for missing in
        [[true, false, true, false], [false, true, false, true], [true, true, false, false]]
    {
        let masks = missing.repeat(number);
        for particles in [2, 5] {
            let config = smc(particles);
            let moved = evaluator.redraw_missing(&start, &masks, &config, &streams, 3).unwrap();
            let changed = moved.chunks_exact(4).zip(start.chunks_exact(4));
            assert!(changed.filter(|(a, b)| a != b).count() > number / 10, "{missing:?}");
            let observed = moved.iter().zip(&start).zip(&masks);
            assert!(observed.filter(|(_, missing)| !**missing).all(|((a, b), _)| a == b));
            // 150 masses, 5 standard errors: level 1e-4, and a little for the error of the masses.
            let apart = distance(&count(&kinds, &moved, all.len() / 4), &log_p);
            assert!(apart < 5.3, "{missing:?} {particles}: {apart}");
        }
    }
    // The test can tell: draws that do not look at what is observed later are another distribution.
    let nothing = [true, true, true, true].repeat(number);
    let mut blind = evaluator.redraw_missing(&start, &nothing, &smc(2), &streams, 0).unwrap();
    for (blind, start) in blind.chunks_exact_mut(4).zip(start.chunks_exact(4)) {
        (blind[1], blind[3]) = (start[1], start[3]);
    }
    assert!(distance(&count(&kinds, &blind, all.len() / 4), &log_p) > 10.0);
}

#[test]
fn what_has_no_value_yet_is_drawn_given_what_is_observed() {
    let kinds = [classes(3), FeatureKind::Continuous, cells(), classes(2)];
    let (model, streams) = mixed(&kinds, HeadForm::Mixture);
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let (number, cell) = (2000, kinds[2].value_of(3));
    let row = [HOLE, HOLE, cell, HOLE];
    let missing = row.map(f32::is_nan).repeat(number);
    let drawn =
        evaluator.redraw_missing(&row.repeat(number), &missing, &smc(64), &streams, 0).unwrap();
    assert!(drawn.chunks_exact(4).all(|row| row[2] == cell && row.iter().all(|x| x.is_finite())));
    let total = log_sum(&evaluator, &kinds, &known(&row));
    for (feature, class) in [(0, 0.0), (0, 1.0), (0, 2.0), (3, 1.0)] {
        let mut with = row;
        with[feature] = class;
        let p = (log_sum(&evaluator, &kinds, &known(&with)) - total).exp();
        let found = drawn.chunks_exact(4).filter(|row| row[feature] == class).count();
        let share = found as f64 / number as f64;
        // 4.5 standard errors, and SMC's own error with 64 particles.
        let error = 4.5 * (p * (1.0 - p) / number as f64).sqrt() + 0.01;
        assert!((share - p).abs() < error, "{feature} {class}: {share} {p}");
    }
}

#[test]
fn rows_without_holes_are_left_and_other_corners_are_refused() {
    let (model, streams) = mixed(&[classes(3), FeatureKind::Continuous], HeadForm::Mixture);
    let evaluator = Evaluator::new(&model, 1).unwrap();
    let x = [2.0, 0.7];
    assert_eq!(evaluator.redraw_missing(&x, &[false; 2], &smc(2), &streams, 0).unwrap(), x);
    let evaluator = Evaluator::new(&random(&config()).0, 1).unwrap();
    let error = evaluator.score_observed(&[HOLE, 0.0], &smc(8), &streams).unwrap_err();
    assert!(error.to_string().contains("must be local for rows with holes"), "{error}");
}
