//! `zhat theory`: every proposition of the paper, checked numerically.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use zhat_paper::theory::{self, Check, Measure};
use zhat_report::{Align, Table};

use crate::exit::Outcome;

#[derive(clap::Args)]
pub struct Arguments {
    /// Seed of all draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    version: &'static str,
    seed: u64,
    seconds: f64,
    pass: bool,
    checks: &'a [Check],
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let bar = match arguments.quiet {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(theory::num_checks() as u64).with_style(
            ProgressStyle::with_template("{bar:30} {pos}/{len} checks, {elapsed}, {msg}")?,
        ),
    };
    let checks = theory::run(arguments.seed, |check| {
        bar.set_message(check.id.clone());
        bar.inc(1);
    })?;
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();
    let failed = checks.iter().filter(|check| !check.pass).count();
    if arguments.json {
        let document = Document {
            version: env!("CARGO_PKG_VERSION"),
            seed: arguments.seed,
            seconds,
            pass: failed == 0,
            checks: &checks,
        };
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        print!("{}", table(&checks));
        println!("\n{} of {} claims hold ({seconds:.1} s).", checks.len() - failed, checks.len());
    }
    Ok(if failed == 0 { Outcome::Done } else { Outcome::Failed })
}

fn table(checks: &[Check]) -> Table {
    let mut table = Table::new([
        ("check", Align::Left),
        ("computed", Align::Right),
        ("expected", Align::Right),
        ("measure", Align::Left),
        ("value", Align::Right),
        ("", Align::Left),
        ("claim", Align::Left),
    ]);
    for check in checks {
        let (measure, value) = match check.measure {
            Measure::ZScore => ("z", format!("{:.2}", check.z_or_diff)),
            Measure::ZScoreApart => ("z, apart", format!("{:.1}", check.z_or_diff)),
            Measure::Difference => ("difference", format!("{:.1e}", check.z_or_diff)),
            Measure::Margin => ("margin", format!("{:.1e}", check.z_or_diff)),
        };
        table.row([
            check.id.clone(),
            format!("{:.5}", check.computed),
            format!("{:.5}", check.expected),
            measure.to_owned(),
            value,
            if check.pass { "pass" } else { "FAIL" }.to_owned(),
            check.claim.clone(),
        ]);
    }
    table
}
