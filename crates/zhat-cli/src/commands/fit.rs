//! `zhat fit`: from a table to a density.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use zhat_report::{Align, Table};
use zhat_table::data::parse_delimiter;
use zhat_table::fit::{Event, FitConfig, FitReport, Session};
use zhat_table::{Prepared, prepare, report};

use super::preset::PresetName;
use crate::exit::Outcome;
use crate::interrupt;

#[derive(clap::Args)]
pub struct Arguments {
    /// A file (CSV, NPY, Parquet; compressed too), builtin:NAME, or a directory of `zhat data prepare`
    #[arg(default_value = "builtin:pinwheel")]
    data: String,
    /// What is minimised: ml-is, rnce, smc-rnce, smc-rnce-trajectory or q-only
    #[arg(long)]
    criterion: Option<String>,
    /// Networks and training settings to start from
    #[arg(long, value_enum, default_value = "small")]
    preset: PresetName,
    /// A TOML file with settings on top of the preset
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One more setting, such as training.steps=5000; may be given several times
    #[arg(long = "set", value_name = "SECTION.NAME=VALUE")]
    settings: Vec<String>,
    /// Columns to use, by name or position
    #[arg(long, value_delimiter = ',')]
    columns: Vec<String>,
    /// What separates the cells of a text file: one character, or tab, space, comma, semicolon, pipe
    #[arg(long, value_parser = |text: &str| parse_delimiter(text).map_err(|e| e.to_string()))]
    delimiter: Option<char>,
    /// Whether the first line of a text file holds the names of the columns
    #[arg(long, value_parser = ["yes", "no"])]
    header: Option<String>,
    /// Format of the file, where its name does not say it
    #[arg(long, value_parser = ["csv", "npy", "parquet"])]
    format: Option<String>,
    /// Read no more than this many rows
    #[arg(long)]
    max_rows: Option<usize>,
    /// Leave out rows with missing cells
    #[arg(long)]
    drop_missing: bool,
    /// Add uniform noise of this step to a discrete column
    #[arg(long, value_name = "COLUMN=STEP")]
    dequantise: Vec<String>,
    /// Number of training steps
    #[arg(long)]
    steps: Option<u64>,
    /// Stop after so many validations without a better one
    #[arg(long)]
    patience: Option<u32>,
    /// End training after this time, such as 90s, 10m or 2h
    #[arg(long, value_parser = duration)]
    max_time: Option<Duration>,
    /// Seed of everything random
    #[arg(long)]
    seed: Option<u64>,
    /// Threads; 0 for as many as there are cores
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Run directory
    #[arg(long, default_value = "out/fit")]
    out: PathBuf,
    /// Go on with the run in --out
    #[arg(long)]
    resume: bool,
    /// Write TensorBoard event files too
    #[arg(long)]
    tensorboard: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let stop = interrupt::flag()?;
    let (mut session, notes) = if arguments.resume {
        resume(arguments)?
    } else {
        let config = configuration(arguments)?;
        let data = prepare(&config)?;
        let notes = data.notes.clone();
        (Session::start(config, data, &arguments.out, arguments.threads)?, notes)
    };
    if arguments.tensorboard {
        session = session.with_tensorboard()?;
    }
    for note in notes {
        eprintln!("warning: {note}");
    }
    let Some(result) = train(&mut session, arguments, stop)? else {
        eprintln!(
            "stopped after {} steps; go on with `zhat fit --resume --out {}`",
            session.steps_taken(),
            arguments.out.display()
        );
        return Ok(Outcome::Failed);
    };
    let page = report::write(session.run_directory())?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&result)?);
    } else {
        print!("{}", table(&result));
        println!("\n{}", page.display());
    }
    Ok(Outcome::Done)
}

fn resume(arguments: &Arguments) -> anyhow::Result<(Session, Vec<String>)> {
    let config = FitConfig::read_run(&arguments.out)?;
    let data: Prepared = prepare(&config)?;
    let (session, warnings) = Session::resume(data, &arguments.out, arguments.threads)?;
    eprintln!("going on after step {}", session.steps_taken());
    Ok((session, warnings))
}

/// The preset, then the file, then single settings, then the options of their own.
fn configuration(arguments: &Arguments) -> anyhow::Result<FitConfig> {
    let mut config = FitConfig::preset(arguments.preset.preset(), &arguments.data);
    if let Some(path) = &arguments.config {
        config = config.with_file(path)?;
        config.data.source = arguments.data.clone();
    }
    if let Some(steps) = arguments.steps {
        // The warm-up keeps its share of the run, unless it is set itself.
        config.training.scale_to(steps);
    }
    for setting in &arguments.settings {
        config = config.with_setting(setting)?;
    }
    if let Some(criterion) = &arguments.criterion {
        config = config.with_setting(&format!("training.criterion={criterion}"))?;
    }
    config.training.steps = arguments.steps.unwrap_or(config.training.steps);
    if let Some(patience) = arguments.patience {
        config.training.patience = patience;
    }
    if let Some(seed) = arguments.seed {
        config.seed = seed;
    }
    if !arguments.columns.is_empty() {
        config.data.columns = arguments.columns.clone();
    }
    config.data.delimiter = arguments.delimiter.or(config.data.delimiter);
    if let Some(header) = &arguments.header {
        config.data.header = Some(header == "yes");
    }
    if let Some(format) = &arguments.format {
        config = config.with_setting(&format!("data.format={format}"))?;
    }
    config.data.max_rows = arguments.max_rows.or(config.data.max_rows);
    config.data.drop_missing |= arguments.drop_missing;
    for assignment in &arguments.dequantise {
        config = config.with_dequantise(assignment)?;
    }
    config.validate()?;
    Ok(config)
}

fn train(
    session: &mut Session,
    arguments: &Arguments,
    stop: &AtomicBool,
) -> anyhow::Result<Option<FitReport>> {
    let steps = session.config().training.steps;
    let bar = match arguments.quiet {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(steps)
            .with_style(ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}, {eta} left")?),
    };
    bar.set_position(session.steps_taken());
    let mut validation = String::new();
    let (start, before) = (Instant::now(), session.steps_taken());
    let batch = session.config().training.batch as f64;
    let mut observer = |event: &Event| match event {
        Event::Step { step, report, .. } => {
            bar.set_position(*step);
            let ess = match report.effective_sample_size {
                0.0 => String::new(),
                size => format!(", ESS {size:.1}"),
            };
            let rate = batch * (step - before) as f64 / start.elapsed().as_secs_f64();
            bar.set_message(format!("loss {:.3}{validation}{ess}, {rate:.0} rows/s", report.loss));
        }
        Event::Validation { log_likelihood, best, .. } => {
            let mark = if *best { "*" } else { "" };
            validation = format!(", validation {log_likelihood:.3}{mark}");
        }
        Event::Warning(text) => bar.suspend(|| eprintln!("warning: {text}")),
        Event::Evaluating => bar.set_message("evaluating"),
    };
    let result = session.run(arguments.max_time, stop, &mut observer);
    bar.finish_and_clear();
    Ok(result?)
}

fn table(result: &FitReport) -> Table {
    let test = &result.test;
    let mut table = Table::new([("", Align::Left), ("", Align::Right)]);
    let mut row = |name: &str, value: String| {
        table.row([name.to_owned(), value]);
    };
    row("data", format!("{}, {} columns", result.source, result.columns.len()));
    let [train, validation, rows] = result.rows;
    row("rows (train, validation, test)", format!("{train}, {validation}, {rows}"));
    row("criterion", result.criterion.clone());
    row("steps (best, all)", format!("{}, {}", result.best_step, result.steps));
    row("test log-likelihood, nats a row", format!("{:.4}", test.log_likelihood));
    row("  standard error over rows", format!("{:.4}", test.se_test));
    row("  standard error of log Z", format!("{:.4}", test.se_log_z));
    row("the proposal's own", format!("{:.4}", test.proposal_log_likelihood));
    if let Some(truth) = result.truth {
        row("the truth's", format!("{truth:.4}"));
        row("gap to the truth", format!("{:.4}", truth - test.log_likelihood));
    }
    row("log Z", format!("{:.4}", test.log_z));
    row("smallest ESS of a stage", format!("{:.1} %", 100.0 * test.smallest_ess));
    row("seconds", format!("{:.1}", result.seconds));
    table
}

/// A number with s, m or h.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time; write 90s, 10m or 2h");
    let (number, factor) = match text.char_indices().last().ok_or_else(wrong)? {
        (at, 's') => (&text[..at], 1.0),
        (at, 'm') => (&text[..at], 60.0),
        (at, 'h') => (&text[..at], 3600.0),
        _ => (text, 1.0),
    };
    let seconds: f64 = number.trim().parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(seconds * factor).map_err(|_| wrong())
}
