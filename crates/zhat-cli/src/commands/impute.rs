//! `zhat impute`: missing cells filled, in any pattern.

use zhat_table::data::{Missing, Precision};
use zhat_table::fitted::{Fill, ImputeOptions, impute};

use super::table_options::{OutputOptions, RunOptions, TableOptions};
use crate::exit::Outcome;
use crate::progress::watched;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    run: RunOptions,
    /// A file (CSV, NPY, Parquet) with missing cells: empty, NA, NaN or ?
    data: String,
    #[command(flatten)]
    table: TableOptions,
    /// What a missing cell is filled with: mean, median (of words both are the most likely) or draw (the missing cells of a row are
    /// drawn together)
    #[arg(long, default_value_t = Fill::Mean)]
    fill: Fill,
    /// Copies of every row with draws of their own (multiple imputation, with --fill draw)
    #[arg(long, default_value_t = 1)]
    copies: usize,
    /// Quantiles in columns of their own, such as 0.05,0.95
    #[arg(long, value_delimiter = ',')]
    quantiles: Vec<f64>,
    /// Particles for each row; a row that needs more gets eight times as many
    #[arg(long, default_value_t = 500)]
    particles: usize,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    output: OutputOptions,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let options = ImputeOptions {
        fill: arguments.fill,
        copies: arguments.copies,
        quantiles: arguments.quantiles.clone(),
        particles: arguments.particles,
        seed: arguments.seed,
        text: arguments.output.is_text(),
    };
    options.validate()?;
    let (fitted, watch) = arguments.run.open()?;
    let read = arguments.table.read(Missing::Keep);
    let create = |columns: &[String]| Ok(arguments.output.begin(columns, Precision::Single)?);
    let imputed = watched(arguments.run.quiet, "imputing", None, &watch, || {
        impute(&fitted, &arguments.data, &read, &options, create)
    })??;
    for warning in fitted.warnings() {
        eprintln!("warning: {warning}");
    }
    if imputed.doubtful > 0 {
        eprintln!(
            "warning: {} rows are not to be trusted (trusted = 0); more --particles may help",
            imputed.doubtful
        );
    }
    arguments.output.tell(&format!(
        "{} cells filled in {} of {} rows",
        imputed.cells, imputed.incomplete, imputed.rows
    ));
    Ok(Outcome::Done)
}
