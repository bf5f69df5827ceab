//! `zhat theory`: every proposition of the paper, checked numerically.

use std::time::Instant;

use serde::Serialize;
use zhat_paper::theory::{self, Check, Measure, Z_LIMIT, chance_of_false_alarm};
use zhat_report::{Align, Table};

use super::show_options::ShowOptions;
use crate::exit::Outcome;
use crate::progress::bar;

#[derive(clap::Args)]
pub struct Arguments {
    /// Seed of all draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    show: ShowOptions,
}

#[derive(Serialize)]
struct Document<'a> {
    version: &'static str,
    seed: u64,
    seconds: f64,
    pass: bool,
    /// The probability that a right program does not pass.
    chance_of_false_alarm: f64,
    checks: &'a [Check],
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let template = "{bar:30} {pos}/{len} checks, {elapsed}, {msg}";
    let bar = bar(arguments.show.quiet, theory::num_checks() as u64, template)?;
    let checks = theory::run(arguments.seed, |check| {
        bar.set_message(check.id);
        bar.inc(1);
    })?;
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();
    let chance = chance_of_false_alarm(&checks);
    let failed = checks.iter().filter(|check| !check.pass).count();
    let document = Document {
        version: env!("CARGO_PKG_VERSION"),
        seed: arguments.seed,
        seconds,
        pass: failed == 0,
        chance_of_false_alarm: chance,
        checks: &checks,
    };
    arguments.show.print(&document, || {
        print!("{}", table(&checks));
        println!("\nWhat each check notices; the tests make these mistakes on purpose:\n");
        print!("{}", twins(&checks));
        println!(
            "\n{} of {} claims hold ({seconds:.1} s). A z-score may be up to {Z_LIMIT}: a right program fails once in {:.0} runs.",
            checks.len() - failed,
            checks.len(),
            1.0 / chance
        );
    })?;
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
        let finding = check.finding;
        let (measure, value) = match finding.measure {
            Measure::ZScore => ("z", format!("{:.2}", finding.z_or_diff)),
            Measure::ZScoreApart => ("z, apart", format!("{:.1}", finding.z_or_diff)),
            Measure::Difference => ("difference", format!("{:.1e}", finding.z_or_diff)),
            Measure::Margin => ("margin", format!("{:.1e}", finding.z_or_diff)),
        };
        table.row([
            check.id.to_owned(),
            format!("{:.5}", finding.computed),
            format!("{:.5}", finding.expected),
            measure.to_owned(),
            value,
            if check.pass { "pass" } else { "FAIL" }.to_owned(),
            check.claim.to_owned(),
        ]);
    }
    table
}

fn twins(checks: &[Check]) -> Table {
    let mut table = Table::new([("check", Align::Left), ("fails with", Align::Left)]);
    for check in checks {
        table.row([check.id.to_owned(), check.twin.to_owned()]);
    }
    table
}
