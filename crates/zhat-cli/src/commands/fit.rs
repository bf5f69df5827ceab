//! `zhat fit`: from a table to a density.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use zhat::criterion::Method;
use zhat_report::{Align, Table};
use zhat_table::fit::{FitConfig, FitReport, Session};
use zhat_table::fitted::Fitted;
use zhat_table::{prepare, report};

use super::config_options::ConfigOptions;
use super::show_options::ShowOptions;
use crate::exit::{Outcome, with_flags};
use crate::interrupt;
use crate::progress::FitBar;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigOptions,
    /// What is minimised: ml-is, rnce, smc-rnce, smc-rnce-trajectory or q-only
    #[arg(long)]
    criterion: Option<Method>,
    /// Stop after so many validations without a better one
    #[arg(long)]
    patience: Option<u32>,
    /// End training after this time, such as 90s, 10m or 2h
    #[arg(long, value_parser = duration)]
    max_time: Option<Duration>,
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
    #[command(flatten)]
    show: ShowOptions,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let watch = interrupt::watch()?;
    let stored = arguments.resume.then(|| FitConfig::read_run(&arguments.out)).transpose()?;
    let mut config = match &stored {
        Some(stored) => arguments.config.resumed(stored.clone())?,
        None => arguments.config.configuration()?,
    };
    config.step.criterion = arguments.criterion.unwrap_or(config.step.criterion);
    config.training.patience = arguments.patience.unwrap_or(config.training.patience);
    config.validate()?;
    if let Some(stored) = &stored {
        config.check_resumed(stored)?;
    }
    let data = prepare(&config)?;
    let (out, threads) = (&arguments.out, arguments.threads);
    let (mut session, notes) = if arguments.resume {
        let (session, warnings) = Session::resume(config, data, out, threads)?;
        eprintln!("going on after step {}", session.steps_taken());
        (session, warnings)
    } else {
        let notes = data.notes.clone();
        (Session::start(config, data, out, threads)?, notes)
    };
    if arguments.tensorboard {
        session = session.with_tensorboard()?;
    }
    for note in notes {
        eprintln!("warning: {}", with_flags(&note));
    }
    let mut bar = FitBar::new(arguments.show.quiet, Some(session.config().training.batch_size))?;
    let result = session.run(arguments.max_time, &watch, &mut |event| bar.on("", event));
    bar.bar.finish_and_clear();
    let Some(result) = result? else {
        eprintln!(
            "stopped after {} steps; go on with `zhat fit --resume --out {}`",
            session.steps_taken(),
            out.display()
        );
        return Ok(Outcome::Failed);
    };
    let page = report::write(&Fitted::open(&arguments.out, arguments.threads, Arc::default())?)?;
    arguments.show.print(&result, || print!("{}\n{}\n", table(&result), page.display()))?;
    Ok(Outcome::Done)
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
    let collapsed = if test.collapsed { " (collapsed: not to be trusted)" } else { "" };
    row("  standard error of log Z", format!("{:.4}{collapsed}", test.se_log_z));
    row("the proposal's own", format!("{:.4}", test.proposal_log_likelihood));
    if let Some(truth) = result.truth {
        row("the truth's", format!("{truth:.4}"));
        row("gap to the truth", format!("{:.4}", truth - test.log_likelihood));
    }
    row("log Z", format!("{:.4}", test.log_z));
    let smallest = 100.0 * test.smallest_effective_sample_size;
    row("smallest effective sample size of a stage", format!("{smallest:.1} %"));
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
