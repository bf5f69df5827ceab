//! `zhat fit`: from a table to a density.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use zhat::criterion::Method;
use zhat::train::Answer;
use zhat::watch::Watch;
use zhat_report::{Align, Table};
use zhat_table::fit::{Columns, FitConfig, FitReport, Length, Limit, Session, nats};
use zhat_table::fitted::Fitted;
use zhat_table::run::{RunDirectory, RunLock, of_first};
use zhat_table::{Prepared, TableError, prepare_watched, report};

use super::config_options::ConfigOptions;
use super::device_options::DeviceOptions;
use super::show_options::ShowOptions;
use super::time_options::{TimeOptions, duration};
use crate::exit::{Outcome, is_stop, with_flags};
use crate::interrupt;
use crate::progress::FitBar;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigOptions,
    /// What is minimised: ml-is, rnce, smc-rnce, smc-rnce-trajectory or q-only
    #[arg(long)]
    criterion: Option<Method>,
    /// Stop after so many validations without a better one; 0 for never [default: half of them, 10 where they are folds]
    #[arg(long)]
    patience: Option<u32>,
    #[command(flatten)]
    time: TimeOptions,
    /// End training after this time wherever it is; --time fits the schedule to it
    #[arg(long, value_parser = duration, conflicts_with_all = ["time", "processor_time"])]
    max_time: Option<Duration>,
    #[command(flatten)]
    device: DeviceOptions,
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

impl Arguments {
    /// The configuration of a new run.
    fn for_table(&self, data: &Prepared, length: Length) -> anyhow::Result<FitConfig> {
        let columns = Columns { all: data.columns.len(), given: data.given };
        self.for_size(data.rows[0] + data.rows[1], columns, length)
    }

    /// The same by the number of rows and columns.
    fn for_size(&self, rows: usize, columns: Columns, length: Length) -> anyhow::Result<FitConfig> {
        self.own(self.config.configuration_for(rows, columns, length, self.criterion)?)
    }

    /// The configuration of a run that is taken up.
    fn resumed(&self, stored: &FitConfig) -> anyhow::Result<FitConfig> {
        self.own(self.config.resumed(stored.clone())?)
    }

    fn own(&self, mut config: FitConfig) -> anyhow::Result<FitConfig> {
        config.step.criterion = self.criterion.unwrap_or(config.step.criterion);
        config.training.patience = self.patience.unwrap_or(config.training.patience);
        config.validate()?;
        Ok(config)
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    match fit(arguments, &interrupt::watch()?) {
        Err(error) if is_stop(&error) => {
            // Before it there is nothing to go on with.
            let is_run = RunDirectory::open(&arguments.out).is_ok();
            eprintln!("stopped{}", if is_run { resume_with(arguments) } else { "".into() });
            Ok(Outcome::Failed)
        }
        done => done,
    }
}

/// What to do with a run that was stopped.
fn resume_with(arguments: &Arguments) -> String {
    format!("; go on with `zhat fit --resume --out {}`", arguments.out.display())
}

fn fit(arguments: &Arguments, watch: &Arc<Watch>) -> anyhow::Result<Outcome> {
    let planned = arguments.time.time().map(Limit::planned);
    if arguments.resume && planned.is_some() {
        let reason = "time: a run that is resumed has its number of steps; leave it out".into();
        return Err(TableError::Config { reason }.into());
    }
    let workers = arguments.device.workers()?;
    let out = &arguments.out;
    let stored = arguments.resume.then(|| of_first(&workers, || FitConfig::read_run(out)));
    let stored = stored.transpose()?;
    // Said now, and not after the data have been read.
    match arguments.resume {
        _ if !workers.is_first() => (),
        true => RunLock::check(out)?,
        false => {
            RunDirectory::check_new(out)?;
            arguments.config.keep_data(out)?;
        }
    }
    arguments.config.share_data(&workers);
    let data = match &stored {
        Some(stored) => prepare_watched(&arguments.config.resumed(stored.clone())?, watch)?,
        // How the data are read does not depend on how many they are.
        None => prepare_watched(&arguments.for_size(1, 1.into(), Length::Usual)?, watch)?,
    };
    if !arguments.show.quiet && !data.kinds.is_empty() {
        eprintln!("{}", report::kinds_table(&data.kinds));
    }
    let mut config = match &stored {
        Some(stored) => {
            let config = arguments.resumed(stored)?;
            config.check_resumed(stored)?;
            config
        }
        None => arguments.for_table(&data, Length::Usual)?,
    };
    let (mut session, notes) = if arguments.resume {
        interrupt::advise(resume_with(arguments));
        let (session, warnings) = Session::resume(config, data, out, workers.clone(), watch)?;
        eprintln!("going on after step {}", session.steps_taken());
        (session, warnings)
    } else {
        let notes = data.notes.clone();
        if let Some(limit) = &planned {
            limit.schedule(&mut config, &data, workers.clone(), watch, |work| {
                arguments.for_table(&data, Length::Work(work)).map(|config| config.model)
            })?;
        }
        interrupt::advise(resume_with(arguments));
        (Session::start(config, data, out, workers.clone(), watch)?, notes)
    };
    if arguments.tensorboard {
        session = session.with_tensorboard()?;
    }
    for note in notes {
        eprintln!("warning: {}", with_flags(&note));
    }
    let mut bar = FitBar::new(arguments.show.quiet, Some(session.config().training.batch_size))?;
    let limit = planned.or(arguments.max_time.map(Limit::hard));
    let result = session.run(limit.as_ref(), watch, &mut |event| bar.on("", event));
    bar.bar.finish_and_clear();
    let Some(result) = result? else {
        let steps = session.steps_taken();
        eprintln!("stopped after {steps} steps{}", resume_with(arguments));
        return Ok(Outcome::Failed);
    };
    arguments.show.print(&result, || {
        println!("{}", table(&result));
        for note in &result.notes {
            println!("{}\n", with_flags(note));
        }
        println!("{}\n", result.verdict);
    })?;
    if !workers.is_first() {
        return Ok(Outcome::Done);
    }
    // After the numbers, which do not depend on it.
    let redraw =
        format!("; the results are there, draw the page with `zhat report {}`", out.display());
    interrupt::advise(redraw.clone());
    let page = Fitted::open(out, arguments.device.alone()?, Arc::clone(watch))
        .and_then(|fitted| report::write(&fitted));
    if page.as_ref().is_err_and(TableError::is_stop) {
        eprintln!("stopped{redraw}");
        return Ok(Outcome::Failed);
    }
    let page = page.with_context(|| {
        let again = format!("`zhat report {}` writes it anew", out.display());
        format!("the fit is done, but its page could not be written ({again})")
    })?;
    if !arguments.show.json {
        println!("{}", page.display());
    }
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
    let FitReport { best_step, steps, planned_steps, .. } = result;
    row("steps (best, taken, planned)", format!("{best_step}, {steps}, {planned_steps}"));
    if result.density == Answer::Proposal {
        row("density", "the proposal".into());
    }
    let validation = result.validation_log_likelihood.zip(result.validation_standard_error);
    if let Some((found, error)) = validation {
        row("validation log-likelihood, nats a row", format!("{found:.4}"));
        row("  standard error over rows", format!("{error:.4}"));
    }
    let found = if test.rows == 0 { "no test rows".into() } else { nats(test.log_likelihood) };
    row("test log-likelihood, nats a row", found);
    if test.rows > 0 {
        row("  standard error over rows", format!("{:.4}", test.se_test));
    }
    let collapsed = if test.collapsed { " (collapsed: not to be trusted)" } else { "" };
    row("  standard error of log Z", format!("{:.4}{collapsed}", test.se_log_z));
    if test.quadrature_error > 0.0 {
        row("  error of the quadrature", format!("{:.1e}", test.quadrature_error));
    }
    if test.rows > 0 && !test.is_of_proposal() {
        row("the proposal's own", format!("{:.4}", test.proposal_log_likelihood));
    }
    if let Some(truth) = result.truth {
        row("the truth's", format!("{truth:.4}"));
        let gap = result.gap.map(|gap| gap.to_string());
        row("gap to the truth", gap.unwrap_or_else(|| nats(truth - test.log_likelihood)));
    }
    row("log Z", nats(test.log_z));
    if !test.tail.log_p_tilde.is_empty() {
        let [name, value] = test.tail.line();
        row(&name, value);
    }
    let smallest = 100.0 * test.smallest_effective_sample_size;
    row("smallest effective sample size of a stage", format!("{smallest:.1} %"));
    row("seconds", format!("{:.1}", result.seconds));
    table
}
