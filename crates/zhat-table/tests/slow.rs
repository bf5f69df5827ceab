//! Are the numbers as good as they say? Minutes of work, so only on request:
//! `cargo test --release --workspace --test slow -- --ignored --nocapture`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zhat::rng::Streams;
use zhat::watch::Watch;
use zhat_table::data::{Precision, ReadOptions, Table, TableWriter, builtin, read, write};
use zhat_table::density::{Estimation, Opinion};
use zhat_table::fit::{BaseAnswers, Event, FitConfig, Session};
use zhat_table::fitted::{Fill, Fitted, ImputeOptions, assess, impute};
use zhat_table::prepare;

fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("slow").join(name);
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn fitted(source: &str, settings: &[&str]) -> Fitted {
    let mut config = FitConfig::new(source);
    // It is about the energy's log Z.
    config.validation.base = BaseAnswers::Never;
    for setting in settings {
        config = config.with_setting(setting).unwrap();
    }
    let out = directory(&source.replace(':', "-"));
    let data = prepare(&config).unwrap();
    let mut session = Session::start(config, data, &out, 0, &Watch::default()).unwrap();
    session.run(None, &Arc::default(), &mut |_: &Event| {}).unwrap().unwrap();
    Fitted::open(&out, 0, Arc::default()).unwrap()
}

fn opinions(fitted: &Fitted, particles: usize, seed: u64) -> Vec<Opinion> {
    let settings = Estimation::new(particles, 20);
    let rows = vec![0.0; 2 * fitted.card().columns.len()];
    assess(fitted.density(), &rows, None, &settings, true, seed).unwrap().opinions
}

/// `log Z` of a model of two columns by quadrature over a square of features.
fn quadrature(fitted: &Fitted) -> f64 {
    let standardiser = fitted.density().standardiser();
    let (limit, points) = (12.0, 2400);
    let step = 2.0 * limit / points as f64;
    let at = |i: usize| (-limit + (i as f64 + 0.5) * step) as f32;
    let sums = (0..points).map(|i| {
        let mut x: Vec<f32> = (0..points).flat_map(|j| [at(i), at(j)]).collect();
        standardiser.invert(&mut x);
        let scores = fitted.density().score(&x).unwrap();
        let log_p_tilde = scores.log_p_tilde.iter().zip(standardiser.log_derivatives(&x));
        log_p_tilde.map(|(log, log_derivative)| (log - log_derivative).exp()).sum::<f64>()
    });
    (sums.sum::<f64>() * step * step).ln()
}

/// Over 50 seeds, at least 45 intervals of two standard errors hold the value.
#[test]
#[ignore = "minutes"]
fn intervals_of_log_z_cover_a_much_larger_run_and_the_truth() {
    const SEEDS: u64 = 50;
    const PARTICLES: usize = 1000;
    for source in ["builtin:pinwheel", "builtin:eight-gaussians", "builtin:mixture-6"] {
        let fitted = fitted(source, &["training.num-steps=2500", "step.warm-up=500"]);
        let large = opinions(&fitted, 1000 * PARTICLES, 1_000_000)[0].clone();
        println!(
            "{source}: {} particles say {:.5} ± {:.5}",
            1000 * PARTICLES,
            large.log_z,
            large.standard_error
        );
        let mut references = vec![("a 1000 times larger run", large.log_z)];
        if fitted.card().columns.len() == 2 {
            let exact = quadrature(&fitted);
            println!("{source}: quadrature says {exact:.5}");
            assert!((large.log_z - exact).abs() < 4.0 * large.standard_error + 1e-4);
            references.push(("quadrature", exact));
        }
        let runs: Vec<Vec<Opinion>> =
            (0..SEEDS).map(|seed| opinions(&fitted, PARTICLES, seed)).collect();
        for (name, reference) in references {
            for method in 0..3 {
                let covers = |run: &&Vec<Opinion>| {
                    let own = &run[method];
                    (own.log_z - reference).abs() <= 2.0 * own.standard_error
                };
                let covered = runs.iter().filter(covers).count();
                let own = &runs[0][method];
                println!(
                    "{source}: {} with {PARTICLES} particles covers {name} in {covered} of {SEEDS} (error {:.5})",
                    own.method, own.standard_error
                );
                // SMC's is the number that is reported; the others are its check.
                let least = if method == 0 { 45 } else { 40 };
                assert!(covered >= least, "{source}, {}: {covered}", own.method);
            }
        }
    }
}

/// 30 % of the cells of a mixture are hidden and filled in again.
#[test]
#[ignore = "minutes"]
fn imputed_means_come_close_to_the_exact_conditional_means() {
    let fitted = fitted("builtin:mixture-16", &["training.num-steps=3000", "step.warm-up=1000"]);
    let set = builtin::find("mixture-16").unwrap();
    let mut rng = Streams::new(77).stream("holes", 0, 0);
    let whole = builtin::draw(&*set, 1000, &mut rng);
    let mut holes = whole.clone();
    for value in holes.values_mut() {
        if rng.uniform() < 0.3 {
            *value = f32::NAN;
        }
    }
    let root = directory("impute");
    std::fs::create_dir_all(&root).unwrap();
    let (input, output) = (root.join("holes.csv"), root.join("filled.csv"));
    write(&input, &holes).unwrap();
    let (fill, quantiles) = (Fill::Mean, Vec::new());
    let options = ImputeOptions { fill, copies: 1, quantiles, particles: 500, seed: 0, text: true };
    let create = |columns: &[String]| Ok(TableWriter::create(&output, columns, Precision::Single)?);
    let source = input.to_str().unwrap();
    let done = impute(&fitted, source, &ReadOptions::default(), &options, create).unwrap();
    let filled = read(
        &output,
        &ReadOptions { missing: zhat_table::data::Missing::Keep, ..Default::default() },
    )
    .unwrap()
    .table;
    let means: Vec<f64> = whole.statistics().iter().map(|column| column.mean).collect();
    let exact = |row: &[f32]| {
        let observed: Vec<Option<f64>> =
            row.iter().map(|v| (!v.is_nan()).then_some(f64::from(*v))).collect();
        set.conditional_mean(&observed).unwrap()
    };
    let error = |guess: &dyn Fn(usize, usize, &[f64]) -> f64| {
        root_mean_square(&whole, &holes, &exact, guess)
    };
    let of_columns = error(&|_, column, _| means[column]);
    let of_model = error(&|row, column, _| f64::from(filled.row(row)[column]));
    let of_truth = error(&|_, column, exact| exact[column]);
    println!(
        "root mean square error: column means {of_columns:.4}, imputed {of_model:.4}, exact conditional means {of_truth:.4}; \
         {} of {} rows doubtful",
        done.doubtful, done.incomplete
    );
    assert!(of_model < 0.85 * of_columns, "clearly better than column means");
    assert!(of_model < 1.1 * of_truth, "close to the best there is");
}

fn root_mean_square(
    whole: &Table,
    holes: &Table,
    exact: &dyn Fn(&[f32]) -> Vec<f64>,
    guess: &dyn Fn(usize, usize, &[f64]) -> f64,
) -> f64 {
    let (mut sum, mut number) = (0.0, 0.0);
    for row in 0..whole.rows() {
        let conditional = exact(holes.row(row));
        for column in (0..whole.dimension()).filter(|&c| holes.row(row)[c].is_nan()) {
            sum += (guess(row, column, &conditional) - f64::from(whole.row(row)[column])).powi(2);
            number += 1.0;
        }
    }
    (sum / number).sqrt()
}
