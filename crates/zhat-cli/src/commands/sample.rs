//! `zhat sample`: draws from the model, all of a row or some of it given the rest.

use zhat_table::TableError;
use zhat_table::data::{Missing, Precision};
use zhat_table::fitted::{SampleOptions, sample, sample_for};

use super::table_options::{OutputOptions, RunOptions, TableOptions};
use crate::exit::Outcome;
use crate::progress::watched;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    run: RunOptions,
    /// Number of rows; with --given-file, for each of its rows [default: 1000, or 1 for each]
    #[arg(short = 'n', long = "number")]
    number: Option<usize>,
    /// Columns that are given, in the units and the words of the data: age=40,region=north
    #[arg(long, value_delimiter = ',', value_name = "COLUMN=VALUE", value_parser = given)]
    given: Vec<(String, String)>,
    /// A file of rows whose cells are given: the columns that it has not, and cells that are missing, are drawn for each of its rows
    #[arg(long, value_name = "FILE", conflicts_with = "given")]
    given_file: Option<String>,
    #[command(flatten)]
    table: TableOptions,
    /// Particles behind the draws [default: ten a row, at least 20,000]
    #[arg(long)]
    particles: Option<usize>,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    output: OutputOptions,
    /// Print what the draws are worth as one JSON document
    #[arg(long, requires = "out")]
    json: bool,
}

/// Rows that are drawn where nothing is said.
const ROWS: usize = 1000;

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if arguments.json && arguments.output.is_stdout() {
        let reason = "json: the rows go to standard output; give a file for them (out)".into();
        return Err(TableError::Config { reason }.into());
    }
    let (fitted, watch) = arguments.run.open()?;
    let given = arguments.given.iter().map(|(name, text)| fitted.given(name, text));
    let given = given.collect::<Result<Vec<_>, _>>()?;
    let options = SampleOptions {
        number: arguments.number.unwrap_or(if arguments.given_file.is_some() { 1 } else { ROWS }),
        given,
        particles: arguments.particles,
        seed: arguments.seed,
    };
    let rows = match &arguments.given_file {
        Some(file) => Some(fitted.given_rows(file, &arguments.table.read(Missing::Keep))?),
        None => None,
    };
    for warning in fitted.warnings() {
        eprintln!("warning: {warning}");
    }
    let mut out = arguments.output.create(&fitted.card().columns, Precision::Single)?;
    let quiet = arguments.run.quiet;
    let draws = watched(quiet, "drawing", None, &watch, || match &rows {
        Some(rows) => sample_for(fitted.density(), rows, &options),
        None => sample(fitted.density(), &options),
    })??;
    for warning in draws.warnings.iter().cloned().chain(draws.warning()) {
        eprintln!("warning: {warning}");
    }
    match fitted.kinds().filter(|_| arguments.output.is_text()) {
        Some(kinds) => out.labelled(&draws.texts(&kinds), &[], draws.rows)?,
        None => {
            let values = draws.table.values().iter();
            out.rows(&values.map(|&value| f64::from(value)).collect::<Vec<_>>())?;
        }
    }
    out.finish()?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&draws)?);
        return Ok(Outcome::Done);
    }
    arguments.output.tell(&format!(
        "{} rows, worth {:.0} independent ones; {:.0} of {} particles were effective",
        draws.rows, draws.effective_sample_size, draws.effective_particles, draws.particles
    ));
    Ok(Outcome::Done)
}

fn given(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("{text:?}: write it as COLUMN=VALUE");
    let (name, value) = text.rsplit_once('=').ok_or_else(wrong)?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
