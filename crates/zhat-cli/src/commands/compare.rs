//! `zhat compare`: several criteria on equal terms.

use std::path::PathBuf;

use zhat::criterion::Method;
use zhat_table::TableError;
use zhat_table::compare::{Budget, CompareOptions, compare};
use zhat_table::fit::Event;

use super::config_options::ConfigOptions;
use super::device_options::DeviceOptions;
use super::show_options::ShowOptions;
use super::time_options::TimeOptions;
use crate::exit::Outcome;
use crate::interrupt;
use crate::progress::FitBar;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigOptions,
    /// The criteria, with commas between them
    #[arg(long, value_delimiter = ',', default_value = "ml-is,rnce,smc-rnce")]
    criteria: Vec<Method>,
    #[command(flatten)]
    time: TimeOptions,
    /// Fits of each criterion, with a seed each; the n-th of each has the same one
    #[arg(long, default_value_t = 1)]
    repeats: u64,
    #[command(flatten)]
    device: DeviceOptions,
    /// Directory for the fits, comparison.json, the figure and report.html
    #[arg(long, default_value = "out/compare")]
    out: PathBuf,
    /// Go on with the comparison in --out
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    show: ShowOptions,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    arguments.config.configuration()?.validate()?;
    let watch = interrupt::watch()?;
    if !arguments.resume && arguments.out.join("comparison.json").exists() {
        return Err(TableError::RunExists { path: arguments.out.clone() }.into());
    }
    arguments.config.keep_data(&arguments.out)?;
    let config = arguments.config.configuration()?;
    let options = CompareOptions {
        criteria: arguments.criteria.clone(),
        budget: match arguments.time.time() {
            Some(time) => Budget::Time(time),
            None => Budget::Steps(config.training.num_steps),
        },
        repeats: arguments.repeats,
        workers: arguments.device.alone()?,
        resume: arguments.resume,
    };
    let advice =
        format!("; go on with the same command and --resume (--out {})", arguments.out.display());
    interrupt::advise(advice.clone());
    let mut bar = FitBar::new(arguments.show.quiet, None)?;
    let mut observer = |name: &str, event: &Event| bar.on(name, event);
    let comparison = compare(&config, &options, &arguments.out, &watch, &mut observer);
    bar.bar.finish_and_clear();
    let Some(comparison) = comparison? else {
        eprintln!("stopped{advice}");
        return Ok(Outcome::Failed);
    };
    arguments.show.print(&comparison, || {
        print!("{}", comparison.table());
        if let Some(truth) = comparison.truth {
            println!("\nThe truth has {truth:.4}.");
        }
        println!("\n{}", arguments.out.join("report.html").display());
    })?;
    Ok(Outcome::Done)
}
