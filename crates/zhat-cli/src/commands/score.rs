//! `zhat score`: the log-density of every row.

use std::time::Instant;

use zhat_table::data::{Missing, Precision};
use zhat_table::fitted::{score, score_columns};

use super::table_options::{OutputOptions, RunOptions, TableOptions};
use crate::exit::Outcome;
use crate::progress::watched;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    run: RunOptions,
    /// A file (CSV, NPY, Parquet; compressed too; of any length) or builtin:NAME
    data: String,
    #[command(flatten)]
    table: TableOptions,
    /// Also write log p~ and log q of every row
    #[arg(long)]
    parts: bool,
    #[command(flatten)]
    output: OutputOptions,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let (fitted, watch) = arguments.run.open()?;
    let read = arguments.table.read(Missing::Keep);
    let mut out = arguments.output.create(&score_columns(arguments.parts), Precision::Double)?;
    let start = Instant::now();
    let scored = watched(arguments.run.quiet, "scoring", None, &watch, || {
        score(&fitted, &arguments.data, &read, arguments.parts, &mut out)
    })??;
    out.finish()?;
    if scored.missing > 0 {
        eprintln!(
            "warning: {} rows have missing cells and so no log-density; `zhat impute` fills them",
            scored.missing
        );
    }
    arguments.output.tell(&format!(
        "{} rows, mean log-density {:.4} ± {:.4} over rows, ± {:.4} of log Z; {:.0} rows/s",
        scored.rows,
        scored.mean_log_density,
        scored.se_test,
        scored.se_log_z,
        scored.rows as f64 / start.elapsed().as_secs_f64()
    ));
    Ok(Outcome::Done)
}
