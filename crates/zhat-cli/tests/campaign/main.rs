//! Fits that are killed at random moments, and files of runs with a flipped bit: no difference, and nothing silent.
//!
//! A few of each with every `cargo test`; a campaign is
//! `cargo test --release -p zhat-cli --test campaign -- --kills 200 --flips 1000 --seed 7`.

mod flips;
mod kills;
mod program;

use std::path::Path;
use std::process::ExitCode;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

fn main() -> ExitCode {
    let (mut kills, mut flips, mut seed) = (6, 60, 0);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut number = || {
            let text = arguments.next().unwrap_or_else(|| panic!("{name} needs a number"));
            text.replace('_', "").parse::<u64>().expect("a number")
        };
        match name.as_str() {
            "--kills" => kills = number(),
            "--flips" => flips = number(),
            "--seed" => seed = number(),
            // What cargo and people pass to the usual tests: there is nothing to list or filter here.
            _ => return ExitCode::SUCCESS,
        }
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("campaign");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let killed = kills::run(&directory.join("kills"), kills, &mut rng);
    let flipped = flips::run(&directory.join("flips"), flips, &mut rng);
    let failures: Vec<String> = killed.into_iter().chain(flipped).collect();
    for failure in &failures {
        println!("  {failure}");
    }
    println!("{} failures", failures.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
