//! `zhat reproduce table1`: the paper's table of the autoregressive EBM, in full or reduced.

use std::path::PathBuf;
use std::time::Duration;

use zhat_paper::experiment::table1::{self, Approach, Event, Length, Settings};
use zhat_table::TableError;
use zhat_table::data::benchmark::{Benchmark, PreparedSet};
use zhat_table::run::of_first;

use super::device_options::DeviceOptions;
use super::show_options::ShowOptions;
use super::time_options::duration;
use crate::exit::Outcome;
use crate::interrupt;
use crate::progress::FitBar;

#[derive(clap::Args)]
pub struct Table1 {
    /// power, gas, hepmass, miniboone, bsds300, with commas between them [default: those in --data]
    #[arg(long, value_delimiter = ',')]
    datasets: Vec<String>,
    /// The criteria, with commas between them, and `beyond` for the default of `zhat fit` beside them [default:
    /// ml-is,rnce,smc-rnce,beyond]
    #[arg(long, value_delimiter = ',')]
    criteria: Vec<Approach>,
    /// Training steps of each cell
    #[arg(long, conflicts_with_all = ["budget", "full"])]
    steps: Option<u64>,
    /// Training time of each cell, such as 30m or 2h, from which its steps follow [default: 20m]
    #[arg(long, value_parser = duration, conflicts_with = "full")]
    budget: Option<Duration>,
    /// The paper's number of steps and particles
    #[arg(long)]
    full: bool,
    /// Rows in a step of the criteria: fewer make more steps of the same time [default: 32; the paper's 512 or 128 with --full]
    #[arg(long)]
    batch: Option<usize>,
    /// Share of the negatives with a feature drawn uniformly from ±6 standard deviations [default: 0, as in the paper]
    #[arg(long)]
    wide_share: Option<f64>,
    /// Directory of the sets that `zhat data prepare` made [default: data]
    #[arg(long)]
    data: Option<PathBuf>,
    /// Particles behind an estimate of log Z [default: 200000; 5000000 with --full]
    #[arg(long)]
    particles: Option<usize>,
    /// Estimates of each figure [default: 10]
    #[arg(long)]
    estimates: Option<usize>,
    /// Points of a Wasserstein distance, 0 for none [default: 10000; 2000 for miniboone]
    #[arg(long)]
    points: Option<usize>,
    /// Seed of everything random [default: 0]
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    device: DeviceOptions,
    /// Directory for the cells, results.json, the figure and report.html
    #[arg(long, default_value = "out/table1")]
    out: PathBuf,
    /// Go on with the table in --out, with its settings where no others are given
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    show: ShowOptions,
}

pub fn run(arguments: &Table1) -> anyhow::Result<Outcome> {
    let workers = arguments.device.workers()?;
    let settings = of_first(&workers, || settings(arguments))?;
    let watch = interrupt::watch()?;
    let (mut bar, mut title) = (FitBar::new(arguments.show.quiet, None)?, String::new());
    let mut observer = |event: &Event| show(&mut bar, &mut title, event);
    let table = table1::run(&settings, &arguments.out, workers.clone(), &watch, &mut observer)?;
    bar.bar.finish_and_clear();
    if table.cells.is_empty() {
        // Stopped before the first cell: there is nothing to show.
    } else if arguments.show.json && workers.is_first() {
        print!("{}", std::fs::read_to_string(arguments.out.join("results.json"))?);
    } else {
        print!("{table}");
        println!("\nReport: {}", arguments.out.join("report.html").display());
    }
    if table.interrupted {
        eprintln!(
            "stopped; go on with `zhat reproduce table1 --resume --out {}`",
            arguments.out.display()
        );
        return Ok(Outcome::Failed);
    }
    Ok(Outcome::Done)
}

/// What is given, on top of what the directory's table was made with or of the defaults.
fn settings(arguments: &Table1) -> zhat_table::Result<Settings> {
    let mut settings = match arguments.resume {
        true => Settings::read(&arguments.out)?,
        false if arguments.out.join("settings.json").exists() => {
            return Err(TableError::RunExists { path: arguments.out.clone() });
        }
        false => {
            let data = arguments.data.clone().unwrap_or_else(|| "data".into());
            Settings::new(prepared(&data), &data)
        }
    };
    if let Some(data) = &arguments.data {
        settings.data = data.clone();
    }
    if !arguments.datasets.is_empty() {
        let sets = arguments.datasets.iter().map(|name| name.parse());
        settings.datasets =
            sets.collect::<Result<_, zhat_table::data::Error>>().map_err(TableError::from)?;
    }
    if !arguments.criteria.is_empty() {
        settings.criteria = arguments.criteria.clone();
    }
    if arguments.full {
        settings.length = Length::Full;
        settings.particles = 5_000_000;
    }
    arguments.steps.inspect(|&steps| settings.length = Length::Steps(steps));
    arguments.budget.inspect(|budget| settings.length = Length::Budget(budget.as_secs_f64()));
    arguments.particles.inspect(|&particles| settings.particles = particles);
    arguments.estimates.inspect(|&estimates| settings.estimates = estimates);
    settings.batch = arguments.batch.or(settings.batch);
    arguments.wide_share.inspect(|&share| settings.wide_share = share);
    settings.points = arguments.points.or(settings.points);
    arguments.seed.inspect(|&seed| settings.seed = seed);
    // So that the table can be resumed from another directory.
    settings.data = std::path::absolute(&settings.data)
        .map_err(|source| TableError::Io { path: settings.data.clone(), source })?;
    if settings.datasets.is_empty() {
        let reason = format!(
            "{} holds no prepared set. Make one, for example with `zhat data prepare power household_power_consumption.txt`, \
             or name its place with --data",
            settings.data.display()
        );
        return Err(TableError::Config { reason });
    }
    Ok(settings)
}

/// The sets that are in a directory.
fn prepared(data: &std::path::Path) -> Vec<Benchmark> {
    let at = |directory: &std::path::Path, set: Benchmark| {
        PreparedSet::read_meta(directory).is_ok_and(|meta| meta.set == set)
    };
    Benchmark::ALL
        .into_iter()
        .filter(|&set| at(&data.join(set.name()), set) || at(data, set))
        .collect()
}

/// A bar for the cell that is under way, whose title is kept, and a line for each that is done.
fn show(fit: &mut FitBar, title: &mut String, event: &Event) {
    let bar = &fit.bar;
    match event {
        Event::Timing(set) => bar.set_message(format!("{set}: timing a few steps")),
        Event::Training { set, criterion, .. } => *title = format!("{set} {}", criterion.name()),
        Event::Fit(event) => fit.on(title, event),
        Event::Distance(done, of) => {
            bar.set_message(format!("Wasserstein distance {} of {of}", done + 1));
        }
        Event::Done(cell) => {
            let found = match &cell.likelihood {
                Some(found) => format!("log-likelihood {:.4}", found.log_likelihood),
                None => "diverged".into(),
            };
            if !bar.is_hidden() {
                bar.suspend(|| eprintln!("{} {}: {found}", cell.dataset, cell.criterion.name()));
            }
        }
    }
}
