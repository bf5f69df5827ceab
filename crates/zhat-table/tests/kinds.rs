//! Kinds of columns as mathematics: masses sum to one, what is missing is summed over, and every kind goes from a fit to draws and back.

mod common;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use zhat::rng::Streams;
use zhat_table::data::{Kind, ReadOptions, TableWriter};
use zhat_table::density::Density;
use zhat_table::fit::{FitConfig, Session};
use zhat_table::fitted::{
    Fill, Fitted, ImputeOptions, SampleOptions, ScoreOptions, explained_by_the_others,
    explained_by_those_before, impute, sample, score,
};
use zhat_table::prepare;

/// A quick fit with kinds: what it learns is not looked at.
fn config(source: &str, steps: u64) -> FitConfig {
    let mut config = FitConfig::for_table(source, 2_000, 5, Some(steps));
    config.model.proposal.width = 32;
    config.training.batch_size = 64;
    config.training.validation_every = steps / 2;
    config.training.checkpoint_every = steps / 4;
    config.validation.rows = 100;
    config.validation.cross_validate_below = 0;
    config.training.patience = 0;
    config
}

fn fit(config: &FitConfig, out: &Path) -> Fitted {
    let watch = Arc::default();
    let data = prepare(config).unwrap();
    let mut session = Session::start(config.clone(), data, out, 2, &watch).unwrap();
    session.run(None, &watch, &mut |_| {}).unwrap().unwrap();
    Fitted::open(out, 2, Arc::default()).unwrap()
}

/// A table with every kind, some of its cells missing.
fn messy(rows: usize, holes: f64) -> String {
    let mut rng = Streams::new(11).stream("messy", 0, 0);
    let mut text = String::from("user_id,day,colour,happy,children,share,income,height\n");
    for row in 0..rows {
        let colour = ["red", "green", "blue"][rng.index(3)];
        let happy = rng.uniform() < if colour == "red" { 0.8 } else { 0.3 };
        let children = (0..5).filter(|_| rng.uniform() < if happy { 0.5 } else { 0.2 }).count();
        let share = 1.0 / (1.0 + (1.5 * rng.normal() - children as f64 + 1.5).exp());
        let income = (7.5 + 0.3 * children as f64 + 0.8 * rng.normal()).exp();
        let cells = [
            format!("2024-0{}-{:02}", 1 + rng.index(9), 1 + rng.index(28)),
            colour.to_owned(),
            if happy { "yes" } else { "no" }.to_owned(),
            children.to_string(),
            format!("{share:.5}"),
            format!("\"${income:.2}\""),
            format!("{:.5}", 170.0 + 8.0 * rng.normal()),
        ];
        write!(text, "u{row}").unwrap();
        for cell in cells {
            let cell = if rng.uniform() < holes { String::new() } else { cell };
            write!(text, ",{cell}").unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn probabilities_of_what_is_counted_sum_to_one_and_what_is_missing_is_summed_over() {
    let directory = common::directory("kinds-sums");
    let mut config = config("builtin:mixed", 200);
    config.data.read.max_rows = Some(1_000);
    let fitted = fit(&config, &directory.join("run"));
    let density = fitted.density();
    let nan = f32::NAN;
    let rows = |row: &dyn Fn(usize, usize, usize) -> [f32; 5]| -> Vec<f32> {
        let of_region = |region: usize| (0..3).map(move |member| (region, member));
        let pairs = (0..5).flat_map(of_region);
        pairs.flat_map(|(r, m)| (0..13).flat_map(move |v| row(r, m, v))).collect()
    };
    let sum = |rows: &[f32]| -> f64 {
        density.score(rows).unwrap().log_p_tilde.iter().map(|log_p| log_p.exp()).sum()
    };
    let all = rows(&|r, m, v| [r as f32, m as f32, v as f32, nan, nan]);
    let total = sum(&all);
    assert!((total - 1.0).abs() < 1e-3, "{total}");
    // What comes last is left out without any draws, and what comes before is summed over by particles.
    for given in [0.2f32, 0.7] {
        let joint = rows(&|r, m, v| [r as f32, m as f32, v as f32, given, nan]);
        let (scores, errors) = density.score_with_errors(&[nan, nan, nan, given, nan]).unwrap();
        let expected = sum(&joint).ln();
        assert!(errors[0] > 0.0 && errors[0] < 0.2, "{errors:?}");
        // Five standard errors, with a fixed seed.
        let apart = (scores.log_p_tilde[0] - expected).abs();
        assert!(apart < 5.0 * errors[0] + 1e-3, "{apart} {errors:?}");
    }
    // A share of 0.2 has a density in its own units: over all shares, and all amounts, it integrates to the mass of what is before.
    let mass = sum(&[1.0, 0.0, 4.0, nan, nan]);
    let shares: Vec<f32> =
        (0..2000).flat_map(|i| [1.0, 0.0, 4.0, (i as f32 + 0.5) / 2000.0, nan]).collect();
    let integral = sum(&shares) / 2000.0;
    assert!((integral / mass - 1.0).abs() < 0.01, "{integral} {mass}");
    // Outside of its bounds there is nothing.
    assert_eq!(
        density.score(&[1.0, 0.0, 4.0, 1.5, 60.0]).unwrap().log_p_tilde[0],
        f64::NEG_INFINITY
    );
    // The parts of a row sum to it.
    let row = [2.0, 1.0, 5.0, 0.4, 71.0];
    let cells = density.cells(&row).unwrap().unwrap();
    let whole = density.score(&row).unwrap().log_p_tilde[0];
    assert!((cells.log_p.iter().sum::<f64>() - whole).abs() < 1e-4);
    // So do those of a row with holes, to what is observed of it.
    let holed = [2.0, nan, 5.0, nan, 71.0];
    let parts = explained_by_those_before(density, &[row, holed].concat()).unwrap();
    assert!((parts[..5].iter().sum::<f64>() - whole).abs() < 1e-4);
    let observed = density.score(&holed).unwrap().log_p_tilde[0];
    // Both by particles, each of which has an error below 0.1 here.
    assert!((parts[5] + parts[7] + parts[9] - observed).abs() < 0.5);
    assert!(parts[6].is_nan() && parts[8].is_nan());
    // Given all others a class has its share among all classes, which is exact for what comes last and by particles for the rest.
    let others = explained_by_the_others(density, &row).unwrap();
    let regions: Vec<f32> = (0..5).flat_map(|r| [r as f32, 1.0, 5.0, 0.4, 71.0]).collect();
    let expected = whole - sum(&regions).ln();
    // Five errors of the particles, which are below 0.1 here.
    assert!((others[0] - expected).abs() < 0.5, "{others:?} {expected}");
    assert!((others[4] - cells.log_p[4]).abs() < 1e-4, "{others:?}");
}

#[test]
fn every_kind_goes_from_a_fit_to_draws_scores_and_filled_cells_in_the_users_own_values() {
    let directory = common::directory("kinds-every");
    let path = directory.join("messy.csv");
    std::fs::write(&path, messy(600, 0.08)).unwrap();
    let fitted = fit(&config(path.to_str().unwrap(), 60), &directory.join("run"));
    let names: Vec<_> = fitted.card().kinds.iter().map(|column| column.kind.name()).collect();
    let expected = [
        "identifier",
        "integer",
        "categorical",
        "yes/no",
        "integer",
        "bounded",
        "positive",
        "continuous",
    ];
    assert_eq!(names, expected);
    let kinds = fitted.kinds().unwrap();

    let given = vec![fitted.given("colour", "blue").unwrap()];
    let options = SampleOptions { number: 200, given, particles: None, seed: 1 };
    let texts = sample(fitted.density(), &options).unwrap().texts(&kinds);
    for row in texts.chunks_exact(7) {
        let [day, colour, happy, children, share, income, height] = row else { panic!("{row:?}") };
        assert!(day.starts_with("2024-0") && day.len() == 10, "{day}");
        assert_eq!(colour, "blue");
        assert!(["yes", "no", "other"].contains(&&**happy), "{happy}");
        assert!((0..=5).contains(&children.parse::<i32>().unwrap()));
        let share: f64 = share.parse().unwrap();
        assert!(share > 0.0 && share < 1.0, "{share}");
        let income = income.strip_prefix('$').unwrap();
        assert!(
            income.parse::<f64>().unwrap() >= 0.0 && income.split_once('.').unwrap().1.len() == 2
        );
        assert!(height.parse::<f64>().unwrap().is_finite());
    }
    assert!(
        fitted
            .given("colour", "mauve")
            .unwrap_err()
            .to_string()
            .contains("one of blue, green, red")
    );

    // Cells are filled, what was there stays as it was written, and the columns stay in their order.
    let out = directory.join("filled.csv");
    let options = ImputeOptions {
        fill: Fill::Mean,
        copies: 1,
        quantiles: Vec::new(),
        particles: 100,
        seed: 0,
        text: true,
    };
    let create = |columns: &[String]| {
        Ok(TableWriter::create(&out, columns, zhat_table::data::Precision::Single)?)
    };
    let source = path.to_str().unwrap();
    let read = ReadOptions { max_rows: Some(80), ..ReadOptions::default() };
    let imputed = impute(&fitted, source, &read, &options, create).unwrap();
    assert!(imputed.cells > 20 && imputed.rows == 80, "{imputed:?}");
    let (before, after) =
        (std::fs::read_to_string(&path).unwrap(), std::fs::read_to_string(&out).unwrap());
    assert!(after.starts_with(
        "user_id,day,colour,happy,children,share,income,height,effective_sample_size,trusted"
    ));
    for (before, after) in before.lines().zip(after.lines()).skip(1) {
        let [before, after] = [before, after].map(|line| line.replace('"', ""));
        for (column, (before, after)) in before.split(',').zip(after.split(',')).enumerate() {
            assert!(!after.is_empty(), "column {column}");
            assert!(before.is_empty() || before == after, "{before} {after}");
        }
    }

    // A word that is new counts as a rare one, is told of, and is less likely than any other.
    let strange = directory.join("strange.csv");
    let row = |colour: &str| format!("u1,2024-05-05,{colour},yes,2,0.5,$2000.00,170.0\n");
    let header = before.lines().next().unwrap();
    std::fs::write(&strange, format!("{header}\n{}{}{}", row("red"), row("mauve"), row("")))
        .unwrap();
    let out = directory.join("scores.csv");
    let create = |columns: &[String]| {
        Ok(TableWriter::create(&out, columns, zhat_table::data::Precision::Double)?)
    };
    let options = ScoreOptions { explain: true, errors: true, ..ScoreOptions::default() };
    let source = strange.to_str().unwrap();
    let read = ReadOptions { carry_identifiers: true, ..ReadOptions::default() };
    let scored = score(&fitted, source, &read, options, create).unwrap();
    assert_eq!((scored.rows, scored.missing, scored.holed), (3, 0, 1));
    assert!(fitted.warnings()[0].contains("mauve"), "{:?}", fitted.warnings());
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.starts_with("user_id,") && text.contains("\nu1,-"), "{text}");
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split(',').skip(1).collect()).collect();
    assert_eq!(
        lines[0][..4],
        ["log_density", "standard_error", "log_density_of_day", "log_density_of_colour"]
    );
    let number = |line: usize, column: usize| lines[line][column].parse::<f64>().unwrap();
    assert!(number(2, 3) < number(1, 3) - 1.0, "{text}");
    let parts: f64 = (2..9).map(|column| number(1, column)).sum();
    assert!((parts - number(1, 0)).abs() < 1e-3, "{text}");
    assert!(
        number(3, 1) > 0.0 && number(3, 0) > number(1, 0),
        "a missing cell makes a row no less likely: {text}"
    );
}

#[test]
fn a_run_with_missing_cells_goes_on_to_the_same_bits() {
    let directory = common::directory("kinds-resume");
    let path = directory.join("messy.csv");
    std::fs::write(&path, messy(300, 0.2)).unwrap();
    let config = config(path.to_str().unwrap(), 40);
    let whole = directory.join("whole");
    fit(&config, &whole);
    let parts = directory.join("parts");
    let watch: Arc<zhat::watch::Watch> = Arc::default();
    let data = || prepare(&config).unwrap();
    let mut session = Session::start(config.clone(), data(), &parts, 2, &watch).unwrap();
    let stopped = session.run(None, &watch, &mut |event| {
        if let zhat_table::fit::Event::Step { step: 17, .. } = event {
            watch.stop();
        }
    });
    assert!(stopped.unwrap().is_none());
    drop(session);
    let watch = Arc::default();
    let (mut session, _) = Session::resume(config.clone(), data(), &parts, 1, &watch).unwrap();
    session.run(None, &watch, &mut |_| {}).unwrap().unwrap();
    let model = |run: &Path| std::fs::read(run.join("model.safetensors")).unwrap();
    assert_eq!(model(&whole), model(&parts));
}

#[test]
fn a_table_of_numbers_on_the_line_is_prepared_as_if_nobody_had_asked_for_kinds() {
    let directory = common::directory("kinds-plain");
    let path = directory.join("plain.csv");
    let mut rng = Streams::new(5).stream("plain", 0, 0);
    let row = |_| format!("{},{}\n", rng.normal(), 3.0 * rng.normal() - 1.0);
    let rows: String = (0..1_500).map(row).collect();
    std::fs::write(&path, format!("a,b\n{rows}")).unwrap();
    let mut asks = FitConfig::for_table(path.to_str().unwrap(), 1_500, 2, None);
    let with = prepare(&asks).unwrap();
    asks.data.find_kinds = false;
    let without = prepare(&asks).unwrap();
    assert!(with.kinds.iter().all(|column| column.kind == Kind::Continuous));
    assert_eq!(zhat_table::Prepared { kinds: Vec::new(), ..with }, without);
}

#[test]
fn few_rows_have_kinds_too_by_folds_and_a_mixture_of_the_numbers() {
    let directory = common::directory("kinds-few");
    let path = directory.join("few.csv");
    std::fs::write(&path, messy(120, 0.1)).unwrap();
    let mut config = FitConfig::for_table(path.to_str().unwrap(), 100, 7, Some(20));
    config.validation.folds = 2;
    assert!(config.model.gaussian_mixture);
    let fitted = fit(&config, &directory.join("run"));
    let density: &dyn Density = fitted.density();
    let draws =
        sample(density, &SampleOptions { number: 10, given: Vec::new(), particles: None, seed: 0 });
    assert_eq!(draws.unwrap().texts(&fitted.kinds().unwrap()).len(), 70);
}
