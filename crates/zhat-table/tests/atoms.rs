//! Columns that are often at one value: a probability there and a density elsewhere, from a file to draws and back.

mod common;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use zhat::rng::Streams;
use zhat_table::data::Kind;
use zhat_table::fit::{FitConfig, Session};
use zhat_table::fitted::{Fitted, SampleOptions, sample};
use zhat_table::prepare;

/// How often nothing is spent, by the age.
fn nothing(age: f64) -> f64 {
    1.0 / (1.0 + (0.1 * (age - 45.0)).exp())
}

/// An age, and what is spent: nothing, or a lognormal that depends on the age. The log of its probability or density too.
fn spending(rows: usize, seed: u64) -> (String, Vec<f64>) {
    let mut rng = Streams::new(seed).stream("spending", 0, 0);
    let (mut text, mut log_p) = (String::from("age,spent\n"), Vec::new());
    for _ in 0..rows {
        let age = 45.0 + 12.0 * rng.normal();
        let z = rng.normal();
        let log_normal = |z: f64| -0.5 * (z * z + std::f64::consts::TAU.ln());
        let of_age = log_normal((age - 45.0) / 12.0) - 12f64.ln();
        let (spent, of_spent) = match rng.uniform() < nothing(age) {
            true => (0.0, nothing(age).ln()),
            false => {
                let log = 2.0 + 0.03 * age + 0.5 * z;
                (log.exp(), (1.0 - nothing(age)).ln() + log_normal(z) - 0.5f64.ln() - log)
            }
        };
        writeln!(text, "{age:.4},{spent:.4}").unwrap();
        log_p.push(of_age + of_spent);
    }
    (text, log_p)
}

fn fit(source: &Path, out: &Path) -> Fitted {
    let mut config = FitConfig::for_table(source.to_str().unwrap(), 4_000, 2, Some(500));
    config.model.proposal.width = 64;
    config.model.dropout = 0.0;
    config.training.batch_size = 128;
    config.training.validation_every = 125;
    config.training.checkpoint_every = 250;
    let watch = Arc::default();
    let data = prepare(&config).unwrap();
    assert!(data.notes.iter().all(|note| !note.contains("spike")), "{:?}", data.notes);
    let mut session = Session::start(config, data, out, 2, &watch).unwrap();
    session.run(None, &watch, &mut |_| {}).unwrap().unwrap();
    Fitted::open(out, 2, Arc::default()).unwrap()
}

#[test]
fn a_column_that_is_often_nothing_has_a_probability_of_it_and_a_density_elsewhere() {
    let directory = common::directory("atoms-spending");
    let path = common::file(&directory, "t.csv", spending(4_000, 1).0);
    let fitted = fit(&path, &directory.join("run"));
    let spent = &fitted.card().kinds[1];
    assert_eq!((&spent.kind, spent.atoms.len()), (&Kind::Positive, 1));
    let density = fitted.density();

    // Near the truth on other rows, whose scores are both.
    let (other, log_p) = spending(2_000, 2);
    let rows: Vec<f32> = other
        .lines()
        .skip(1)
        .flat_map(|line| line.split(',').map(|x| x.parse().unwrap()).collect::<Vec<f32>>())
        .collect();
    let scores = density.score(&rows).unwrap().log_p_tilde;
    let gap = log_p.iter().zip(&scores).map(|(t, s)| t - s).sum::<f64>() / 2_000.0;
    assert!((-0.05..0.1).contains(&gap), "{gap}");

    // Given an age, the probability of nothing and the integral elsewhere make one.
    for age in [30.0f32, 60.0] {
        let of_age = density.score(&[age, f32::NAN]).unwrap().log_p_tilde[0];
        let zero = (density.score(&[age, 0.0]).unwrap().log_p_tilde[0] - of_age).exp();
        assert!((zero - nothing(f64::from(age))).abs() < 0.08, "{age}: {zero}");
        // In steps of the logarithm.
        let at = |i: i32| (0.01 * f64::from(i)).exp();
        let line: Vec<f32> = (-200..1200).flat_map(|i| [age, at(i) as f32]).collect();
        let scores = density.score(&line).unwrap().log_p_tilde;
        let elsewhere: f64 =
            scores.iter().zip(-200..).map(|(s, i)| 0.01 * at(i) * (s - of_age).exp()).sum();
        assert!((zero + elsewhere - 1.0).abs() < 0.01, "{age}: {zero} + {elsewhere}");
    }

    // Draws are exactly nothing, or something above it, and as often as in the table.
    let options = SampleOptions { number: 4_000, given: Vec::new(), particles: None, seed: 4 };
    let draws = sample(density, &options).unwrap();
    assert!(draws.table.column(1).all(|spent| spent >= 0.0));
    let share = |values: &mut dyn Iterator<Item = f32>| {
        let values: Vec<f32> = values.collect();
        values.iter().filter(|value| **value == 0.0).count() as f64 / values.len() as f64
    };
    let (drawn, there) =
        (share(&mut draws.table.column(1)), share(&mut rows.iter().skip(1).step_by(2).copied()));
    assert!((drawn - there).abs() < 0.05, "{drawn} {there}");
    assert!(draws.warning().is_none(), "{:?}: what is often nothing is no copy", draws.warning());
    let kinds = fitted.kinds().unwrap();
    assert!(
        draws.texts(&kinds).contains(&"0.0000".to_owned())
            || draws.texts(&kinds).contains(&"0".to_owned())
    );

    // The shares below are uniform, atoms included.
    let below = density.cells(&rows).unwrap().unwrap().below;
    let mut of_spent: Vec<f64> = below.iter().skip(1).step_by(2).copied().collect();
    of_spent.sort_unstable_by(f64::total_cmp);
    let apart = of_spent.iter().enumerate().map(|(i, u)| (u - (i as f64 + 0.5) / 2_000.0).abs());
    let apart = apart.fold(0.0, f64::max);
    assert!(apart < 0.06, "{apart}");
}

/// A column that is nothing in two rows of three and something else in the others.
fn notes_of(name: &str, something: impl Fn(u32) -> f64) -> Vec<String> {
    let mut text = String::from("age,spent\n");
    for row in 0..1_500u32 {
        let age = 20.0 + f64::from(row * 7_919 % 1_500) / 31.0;
        let spent = if row % 3 < 2 { 0.0 } else { something(row / 3) };
        writeln!(text, "{age:.4},{spent:.2}").unwrap();
    }
    let path = common::file(&common::directory(name), "t.csv", text);
    let config = FitConfig::for_table(path.to_str().unwrap(), 1_500, 2, None);
    prepare(&config).unwrap().notes
}

#[test]
fn an_atom_does_not_make_a_column_look_discrete_but_what_is_beside_it_may() {
    let is_warned = |notes: &[String]| notes.iter().any(|note| note.contains("looks discrete"));
    let cents = notes_of("atoms-cents", |row| 0.37 + 1.13 * f64::from(row * 271 % 500));
    assert!(!is_warned(&cents), "{cents:?}");
    let quarters = notes_of("atoms-quarters", |row| 0.25 * f64::from(1 + row % 40));
    assert!(is_warned(&quarters), "{quarters:?}");
}
