//! `zhat reproduce`: the experiments of the paper, with figures and a report.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, Subcommand};
use zhat::watch::Watch;
use zhat_paper::experiment::{Protocol, Report, proposals, ring};
use zhat_report::{Experiment as Record, export, final_values::final_values};

use super::show_options::ShowOptions;
use crate::exit::Outcome;
use crate::interrupt;
use crate::progress::{Bar, bar, follow};

#[derive(Subcommand)]
pub enum Experiment {
    /// Figure 1, left: which proposal should RNCE use?
    Proposals(Proposals),
    /// Figure 1, middle and right, and the appendix: acceptance rule and persistence in CNCE
    Ring(Ring),
    /// Table 1: the autoregressive EBM by ML-IS, RNCE and SMC-RNCE
    Table1(super::table1::Table1),
}

/// What the two toy experiments have in common.
#[derive(Args)]
struct Common {
    /// Number of repetitions
    #[arg(long)]
    runs: Option<usize>,
    /// Number of training steps
    #[arg(long)]
    steps: Option<usize>,
    /// Number of negatives J
    #[arg(long)]
    negatives: Option<usize>,
    /// The arms to compare, with commas between them
    #[arg(long, value_delimiter = ',')]
    arms: Vec<String>,
    /// Follow the authors' published program where it differs from the paper's text
    #[arg(long)]
    as_published: bool,
    /// Fewer repetitions, for a first look within seconds
    #[arg(long)]
    quick: bool,
    /// Seed of all draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads; 0 for as many as there are cores. Results do not depend on it
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Directory for results.json, tables, figures and report.html [default: out/EXPERIMENT]
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    show: ShowOptions,
}

#[derive(Args)]
pub struct Proposals {
    #[command(flatten)]
    common: Common,
    /// Train on so many fixed points, instead of fresh data at every step
    #[arg(long)]
    samples: Option<usize>,
    /// Also run each arm with so many MCMC steps
    #[arg(long, default_value_t = 1)]
    mcmc_steps: usize,
}

#[derive(Args)]
pub struct Ring {
    #[command(flatten)]
    common: Common,
    /// Number of training points N
    #[arg(long)]
    samples: Option<usize>,
    /// Run N = 200 and 1000 with J = 5 and 10, each into a directory of its own, with one page for all
    #[arg(long, conflicts_with_all = ["samples", "negatives"])]
    all: bool,
}

pub fn run(experiment: &Experiment) -> anyhow::Result<Outcome> {
    match experiment {
        Experiment::Proposals(arguments) => run_proposals(arguments),
        Experiment::Ring(arguments) => run_ring(arguments),
        Experiment::Table1(arguments) => super::table1::run(arguments),
    }
}

fn run_proposals(arguments: &Proposals) -> anyhow::Result<Outcome> {
    let common = &arguments.common;
    let mut settings = match common.quick {
        true => proposals::Settings::quick(),
        false => proposals::Settings::default(),
    };
    common.runs.inspect(|&runs| settings.runs = runs);
    common.steps.inspect(|&steps| settings.steps = steps);
    common.negatives.inspect(|&negatives| settings.negatives = negatives);
    settings.samples = arguments.samples;
    settings.seed = common.seed;
    settings.protocol = common.protocol();
    if !common.arms.is_empty() {
        settings = settings.with_arms(&common.arms)?;
    }
    let settings = settings.with_mcmc_steps(arguments.mcmc_steps)?;
    settings.validate()?;

    let session = Session::new(common, "proposals", settings.runs)?;
    let (results, seconds) = session.timed(|watch| proposals::run(&settings, watch))?;
    let report = results.report(seconds, session.threads())?;
    report.write(&session.directory)?;
    session.show(&report.experiment.to_json()?, [("", &report)])
}

fn run_ring(arguments: &Ring) -> anyhow::Result<Outcome> {
    let common = &arguments.common;
    let mut settings = match common.quick {
        true => ring::Settings::quick(),
        false => ring::Settings::default(),
    };
    common.runs.inspect(|&runs| settings.runs = runs);
    settings.steps = common.steps;
    common.negatives.inspect(|&negatives| settings.negatives = negatives);
    arguments.samples.inspect(|&samples| settings.samples = samples);
    settings.seed = common.seed;
    settings.protocol = common.protocol();
    if !common.arms.is_empty() {
        settings = settings.with_arms(&common.arms)?;
    }
    settings.validate()?;

    if !arguments.all {
        let session = Session::new(common, "ring", settings.runs)?;
        let (results, seconds) = session.timed(|watch| ring::run(&settings, watch))?;
        let report = results.report(seconds, session.threads())?;
        report.write(&session.directory)?;
        return session.show(&report.experiment.to_json()?, [("", &report)]);
    }
    let session = Session::new(common, "ring", settings.runs * ring::COMBINATIONS.len())?;
    let mut results = Vec::new();
    for (samples, negatives) in ring::COMBINATIONS {
        let settings = ring::Settings { samples, negatives, ..settings.clone() };
        let (result, seconds) = session.timed(|watch| ring::run(&settings, watch))?;
        // A combination of which nothing was finished when the user stopped is left out, unless there is no other.
        if result.finished_runs() > 0 || results.is_empty() {
            results.push((result, seconds));
        }
    }
    let combined = ring::Combined::new(&results, session.threads())?;
    combined.write(&session.directory)?;
    let reports = combined.reports.iter().map(|(name, report)| (name.as_str(), report));
    session.show(&combined.to_json()?, reports)
}

impl Common {
    fn protocol(&self) -> Protocol {
        if self.as_published { Protocol::AsPublished } else { Protocol::Text }
    }
}

/// A checked output directory, a thread pool, a progress bar, and an ear for Ctrl-C.
struct Session {
    directory: PathBuf,
    json: bool,
    pool: rayon::ThreadPool,
    bar: Bar,
    watch: Arc<Watch>,
}

impl Session {
    fn new(common: &Common, name: &str, runs: usize) -> anyhow::Result<Self> {
        let directory = common.out.clone().unwrap_or_else(|| Path::new("out").join(name));
        export::output_directory(&directory)?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(common.threads).build()?;
        let template = "{bar:30} {pos}/{len} runs, {elapsed}, {eta} left";
        let bar = bar(common.show.quiet, runs as u64, template)?;
        bar.tick();
        let watch = interrupt::watch()?;
        Ok(Self { directory, json: common.show.json, pool, bar, watch })
    }

    fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// The result of some work on the pool, and its seconds.
    fn timed<T: Send>(
        &self,
        work: impl FnOnce(&Watch) -> zhat::Result<T> + Send,
    ) -> zhat::Result<(T, f64)> {
        let start = Instant::now();
        let result = follow(&self.bar, &self.watch, || self.pool.install(|| work(&self.watch)));
        if self.watch.is_stopped() {
            interrupt::has_stopped();
        }
        Ok((result?, start.elapsed().as_secs_f64()))
    }

    /// Prints the JSON, or the reports below their names. It is not done if the user stopped it: a script must not take a part
    /// for the whole.
    fn show<'a>(
        &self,
        json: &str,
        reports: impl IntoIterator<Item = (&'a str, &'a Report)>,
    ) -> anyhow::Result<Outcome> {
        self.bar.finish_and_clear();
        if self.json {
            print!("{json}");
        } else {
            for (name, report) in reports {
                if !name.is_empty() {
                    println!("{name}\n");
                }
                print_record(&report.experiment);
                println!();
            }
            println!("Report: {}", self.directory.join("report.html").display());
        }
        Ok(if self.watch.is_stopped() { Outcome::Failed } else { Outcome::Done })
    }
}

/// Where each arm ended, and the claims.
fn print_record(record: &Record) {
    println!("{}", final_values(record));
    for claim in &record.claims {
        println!("{claim}");
    }
    let interrupted = if record.interrupted { ", interrupted" } else { "" };
    println!(
        "\n{} runs{interrupted}, {:.1} s on {} threads.",
        record.finished_runs, record.seconds, record.threads
    );
}
