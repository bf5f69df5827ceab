//! What a look-ahead to late columns is worth: early columns given late ones, blind and with it, at runs on built-in sets.
//!
//!     zhat fit builtin:pinwheel --out out/pinwheel
//!     cargo run --release -p zhat-table --example look_ahead -- 100 out/pinwheel out/mixture-16

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use burn::tensor::Device;
use rand_chacha::rand_core::SeedableRng;
use zhat::rng::Streams;
use zhat_table::data::builtin;
use zhat_table::density::{ArDensity, Cloud, Density};
use zhat_table::fit::FitConfig;
use zhat_table::fitted::ENOUGH;
use zhat_table::run::{Integrity, RunDirectory, load_model};

/// Particles for each of them, as `zhat impute` has; where that is not enough, eight times as many, as it does too.
const PARTICLES: usize = 500;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "| set | missing | particles are | flagged at first | flagged at last | effective draws, median | \
         within 2 errors | error of the mean | processor seconds |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    // Rows of the truth, of which some columns are then missing.
    let number = std::env::args().nth(1).unwrap_or_default().parse()?;
    for path in std::env::args().skip(2) {
        let run = RunDirectory::open(Path::new(&path))?;
        let config = FitConfig::read(&run.config())?;
        let (model, card, _) = load_model(&run, &Device::flex(), Integrity::Checked)?;
        let name = config.data.source.trim_start_matches("builtin:").to_owned();
        let set = builtin::find(&name)?;
        let columns = card.columns.len();
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
        let rows: Vec<f32> = set.sample(number, &mut rng).iter().map(|&x| x as f32).collect();
        let half = (columns > 2).then_some(columns / 2);
        for missing in [Some(1), half].into_iter().flatten() {
            for is_blind in [true, false] {
                let density = ArDensity::new(
                    &model,
                    card.density_by()?,
                    &card.columns,
                    &card.standardiser,
                    1,
                    Arc::default(),
                )?;
                let density = if is_blind { density.blind() } else { density };
                let line = measure(&density, &rows, missing)?;
                let name = if is_blind { "blind" } else { "looking ahead" };
                println!("| {} | first {missing} of {columns} | {name} | {line} |", set.name());
            }
        }
    }
    Ok(())
}

/// The figures of one line.
fn measure(density: &ArDensity, rows: &[f32], missing: usize) -> zhat_table::Result<String> {
    let columns = density.columns().len();
    let number = rows.len() / columns;
    let given_of = |row: &[f32]| [&vec![f32::NAN; missing], &row[missing..]].concat();
    let mut at_first = 0;
    let start = processor_seconds();
    let mut clouds = Vec::with_capacity(number);
    for (at, row) in rows.chunks_exact(columns).enumerate() {
        let streams = Streams::new(at as u64);
        let mut cloud = density.draw(&given_of(row), PARTICLES, &streams)?;
        if cloud.effective_sample_size() < ENOUGH {
            at_first += 1;
            cloud = density.draw(&given_of(row), 8 * PARTICLES, &streams.derive("again", 0))?;
        }
        clouds.push(cloud);
    }
    let seconds = processor_seconds() - start;
    let mut sizes: Vec<f64> = clouds.iter().map(Cloud::effective_sample_size).collect();
    let at_last = sizes.iter().filter(|size| **size < ENOUGH).count();
    let (mut within, mut squares) = (0, 0.0);
    if missing == 1 {
        let units = |feature: f64| density.standardiser().in_units(0, feature);
        let scale = units(1.0) - units(0.0);
        for ((row, cloud), size) in rows.chunks_exact(columns).zip(&clouds).zip(&sizes) {
            let (exact, deviation) = exact_mean(density, &given_of(row))?;
            let off = cloud.mean(0) - exact;
            squares += (off / scale).powi(2) / number as f64;
            within += usize::from(off.abs() < 2.0 * deviation / size.sqrt());
        }
    }
    sizes.sort_by(f64::total_cmp);
    let of_first = match missing {
        1 => format!("{within}/{number} | {:.4}", squares.sqrt()),
        _ => " | ".to_owned(),
    };
    let median = sizes[number / 2];
    Ok(format!(
        "{at_first}/{number} | {at_last}/{number} | {median:.0} | {of_first} | {seconds:.1}"
    ))
}

/// Mean and standard deviation of the first column given the others, under the model, by a fine grid.
fn exact_mean(density: &ArDensity, given: &[f32]) -> zhat_table::Result<(f64, f64)> {
    let points = 4_000;
    // Even in features, which may be normal scores: a point stands for what is between its neighbours.
    let value =
        |point: f64| density.standardiser().in_units(0, 14.0 * point / f64::from(points) - 7.0);
    let values: Vec<f64> = (0..points).map(|point| value(f64::from(point))).collect();
    let rows: Vec<f32> = values
        .iter()
        .flat_map(|value| [*value as f32].into_iter().chain(given[1..].iter().copied()))
        .collect();
    let log_p = density.score(&rows)?.log_p_tilde;
    let most = log_p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let width = |point: i32| value(f64::from(point) + 0.5) - value(f64::from(point) - 0.5);
    let weights: Vec<f64> = log_p
        .iter()
        .zip(0..points)
        .map(|(log_p, point)| (log_p - most).exp() * width(point))
        .collect();
    let total: f64 = weights.iter().sum();
    let moment = |power: i32, about: f64| {
        let terms = weights.iter().zip(&values);
        terms.map(|(weight, value)| weight * (value - about).powi(power)).sum::<f64>() / total
    };
    let mean = moment(1, 0.0);
    Ok((mean, moment(2, mean).sqrt()))
}

/// Of this process and all its threads, in hundredths; by the clock where the system does not tell.
fn processor_seconds() -> f64 {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // User and system time are the 12th and 13th numbers after the name, which may hold anything but ends with a parenthesis.
    let numbers: Vec<&str> =
        told.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    match numbers
        .get(11..13)
        .map(|ticks| ticks.iter().flat_map(|tick| tick.parse::<f64>()).sum::<f64>())
    {
        Some(ticks) => ticks / 100.0,
        None => BEGIN.elapsed().as_secs_f64(),
    }
}
