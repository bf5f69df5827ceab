//! Columns that come round again: times with their day and directions with their circle, from a file to scores and draws.

mod common;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use zhat::rng::Streams;
use zhat_table::data::{Form, Kind, SaidKind};
use zhat_table::fit::{FitConfig, Session};
use zhat_table::fitted::{Fitted, SampleOptions, sample};
use zhat_table::prepare;

const DAYS: usize = 300;
const SPREAD: f64 = 25.0;

fn log_normal(x: f64, std_dev: f64) -> f64 {
    -0.5 * (x / std_dev).powi(2) - std_dev.ln() - 0.5 * std::f64::consts::TAU.ln()
}

/// Somewhere between 8 and 18 hours of a day; a wind that turns with the hour, through north at noon; and a number that follows the
/// hour. The seconds of each row, and the log of its density, with a second as the unit of time.
fn weather(rows: usize, seed: u64) -> (String, Vec<[f64; 3]>, Vec<f64>) {
    let mut rng = Streams::new(seed).stream("weather", 0, 0);
    let (mut text, mut values, mut log_p) =
        (String::from("when,wind,height\n"), Vec::new(), Vec::new());
    for _ in 0..rows {
        let (day, second) = (rng.index(DAYS), (28_800.0 + 36_000.0 * rng.uniform()).floor());
        let hour = second / 3_600.0;
        let turn = SPREAD * rng.normal();
        let wind = (15.0 * hour + 180.0 + turn).rem_euclid(360.0);
        let z = 0.3 * rng.normal();
        let height = 3.0 * (std::f64::consts::TAU * hour / 24.0).sin() + z;
        // Ten months of 28 days, two of which are twice as frequent.
        let (month, of_month) = (day / 30, day % 30 % 28);
        let of_year = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273][month] + of_month;
        let date = format!("2023-{:02}-{:02}", 1 + month, 1 + of_month);
        let clock = format!(
            "{:02}:{:02}:{:02}",
            hour as u64,
            (second as u64 / 60) % 60,
            second as u64 % 60
        );
        writeln!(text, "{date}T{clock},{wind:.3},{height:.4}").unwrap();
        values.push([of_year as f64 * 86_400.0 + second, wind, height]);
        let of_day = if of_month < 2 { 2.0 / DAYS as f64 } else { 1.0 / DAYS as f64 };
        log_p.push(f64::ln(of_day / 36_000.0) + log_normal(turn, SPREAD) + log_normal(z, 0.3));
    }
    (text, values, log_p)
}

fn fit(source: &Path, kinds: &str, out: &Path) -> Fitted {
    let mut config = FitConfig::for_table(source.to_str().unwrap(), 4_000, 3, Some(600));
    config.validation.stack_mixtures = false;
    config.model.proposal.width = 64;
    config.model.dropout = 0.0;
    config.training.batch_size = 128;
    config.training.validation_every = 150;
    config.training.checkpoint_every = 300;
    if !kinds.is_empty() {
        config.data.kinds = SaidKind::list(kinds).unwrap().into_iter().collect();
    }
    let watch = Arc::default();
    let data = prepare(&config).unwrap();
    let mut session = Session::start(config, data, out, 2, &watch).unwrap();
    session.run(None, &watch, &mut |_| {}).unwrap().unwrap();
    Fitted::open(out, 2, Arc::default()).unwrap()
}

/// Mean of the log-densities of rows of which the truth is known.
fn gap(fitted: &Fitted, values: &[[f64; 3]], log_p: &[f64]) -> f64 {
    let Form::Time { origin } = fitted.card().kinds[0].form else { panic!("a time") };
    // Seconds of the first of January 2023.
    let begin = (1_672_531_200 - origin) as f64;
    let rows: Vec<f32> = values
        .iter()
        .flat_map(|row| [(row[0] + begin) as f32, row[1] as f32, row[2] as f32])
        .collect();
    let scores = fitted.density().score(&rows).unwrap().log_p_tilde;
    log_p.iter().zip(&scores).map(|(truth, score)| truth - score).sum::<f64>() / log_p.len() as f64
}

#[test]
fn hours_of_times_and_directions_are_learnt_where_a_cycle_is_said_and_densities_stay_normalised() {
    let directory = common::directory("cycles");
    let path = common::file(&directory, "t.csv", weather(4_000, 1).0);
    let fitted = fit(&path, "when=cyclic:1d,wind=cyclic:360", &directory.join("run"));
    let plain = fit(&path, "", &directory.join("plain"));
    let kinds = &fitted.card().kinds;
    assert_eq!((kinds[0].label(), kinds[0].cycle), ("time", Some(86_400.0)));
    assert!(matches!(kinds[1].kind, Kind::Circle { low, .. } if low == 0.0), "{:?}", kinds[1]);

    let (_, values, log_p) = weather(2_000, 2);
    let [with, without] = [&fitted, &plain].map(|fitted| gap(fitted, &values, &log_p));
    assert!(with < 0.4 && without > with + 1.0, "{with} {without}");

    // All directions at some time make one; a turn further is the same place.
    let density = fitted.density();
    let log_p = |rows: &[f32]| density.score(rows).unwrap().log_p_tilde;
    let (when, nan) = (8.64e6f32 + 3_600.0, f32::NAN);
    let of_when = log_p(&[when, nan, nan])[0];
    let around: Vec<f32> = (0..720).flat_map(|at| [when, 0.5 * at as f32 + 0.25, nan]).collect();
    let mass: f64 = log_p(&around).iter().map(|log_p| 0.5 * (log_p - of_when).exp()).sum();
    assert!((mass - 1.0).abs() < 0.01, "{mass}");
    let places = log_p(&[when, 350.0, nan, when, -10.0, nan]);
    assert!((places[0] - places[1]).abs() < 1e-3, "{places:?}");
    // All times make one, and those of the night next to nothing.
    let half_hours = 48 * (DAYS as i32 + 200);
    let seconds: Vec<f32> =
        (0..half_hours).map(|at| (1_800 * (at - 48 * 100) + 900) as f32).collect();
    let rows: Vec<f32> = seconds.iter().flat_map(|&second| [second, nan, nan]).collect();
    let mass: f64 = log_p(&rows).iter().map(|log_p| 1_800.0 * log_p.exp()).sum();
    assert!((mass - 1.0).abs() < 0.03, "{mass}");

    // Draws come by day, and around the circle.
    let options = SampleOptions { number: 2_000, given: Vec::new(), particles: None, seed: 3 };
    let kinds: Vec<_> = fitted.card().kinds.iter().collect();
    let texts = sample(density, &options).unwrap().texts(&kinds);
    let mut nights = 0;
    for row in texts.chunks_exact(3) {
        let hour: u32 = row[0][11..13].parse().unwrap();
        nights += u32::from(!(8..18).contains(&hour));
        let wind: f64 = row[1].parse().unwrap();
        assert!((0.0..=360.0).contains(&wind), "{row:?}");
    }
    // Parts of the cycle are about 50 minutes, two of which are day and night.
    assert!(nights < 140, "{nights} of 2000 at night");
}
