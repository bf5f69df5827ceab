//! `zhat score`: the log-density of every row.

use std::time::Instant;

use zhat_table::TableError;
use zhat_table::data::{Format, Missing, Precision, TableWriter};
use zhat_table::fitted::{ScoreOptions, Scored, score};

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
    /// Also write columns of a text file as they are, by name or position; all for those that the model has not, and none
    /// [default: those that were found to be identifiers in the fit]
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    carry: Vec<String>,
    /// Also write the place of every row, from 1 for the lowest log-density; all scores are held in memory
    #[arg(long)]
    rank: bool,
    /// Also write the standard error of every log-density: that of the draws which stand for missing cells
    #[arg(long)]
    errors: bool,
    /// Also write the log-density of each column given those before it, which say what makes a row strange
    #[arg(long)]
    explain: bool,
    /// Also write the log-density of each column given all the others: the cell that goes against them is low, wherever its column stands.
    /// Slower, by draws
    #[arg(long)]
    explain_others: bool,
    #[command(flatten)]
    output: OutputOptions,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let (fitted, watch) = arguments.run.open()?;
    let mut read = arguments.table.read(Missing::Keep);
    read.carry = arguments.carry.clone();
    read.carry_identifiers = match arguments.output.file() {
        Some(path) => TableWriter::format_of(path)? == Format::Csv,
        None => true,
    };
    if !read.carry_identifiers && !read.carry.is_empty() {
        let reason = "carry: columns are carried along into .csv and .tsv only".into();
        return Err(TableError::Config { reason }.into());
    }
    let options = ScoreOptions {
        parts: arguments.parts,
        rank: arguments.rank,
        errors: arguments.errors,
        explain: arguments.explain,
        explain_others: arguments.explain_others,
    };
    let create = |columns: &[String]| Ok(arguments.output.begin(columns, Precision::Double)?);
    let start = Instant::now();
    let scored = watched(arguments.run.quiet, "scoring", None, &watch, || {
        score(&fitted, &arguments.data, &read, options, create)
    })??;
    for warning in fitted.warnings() {
        eprintln!("warning: {warning}");
    }
    let atoms = fitted.card().kinds.iter().filter(|kind| !kind.atoms.is_empty());
    let atoms: Vec<&str> = atoms.map(|kind| kind.name.as_str()).collect();
    if !atoms.is_empty() {
        eprintln!(
            "{}: a row at one of the values that come again and again has its probability in the place of a density",
            atoms.join(", ")
        );
    }
    if scored.holed > 0 {
        eprintln!(
            "{} of {} rows have missing cells: their log-density is that of the others (standard error at most {:.2})",
            scored.holed, scored.rows, scored.largest_error
        );
    }
    if scored.missing > 0 {
        eprintln!(
            "warning: {} of {} rows have missing cells: they have no log-density (an empty cell) and are left out of the mean; \
             `zhat impute` fills them",
            scored.missing, scored.rows
        );
    }
    let rows_a_second = scored.rows as f64 / start.elapsed().as_secs_f64();
    arguments.output.tell(&format!("{}; {rows_a_second:.0} rows/s", summary(&scored)));
    // Where nothing could be scored, whoever reads the file should not take it for done.
    Ok(if scored.missing == scored.rows { Outcome::Failed } else { Outcome::Done })
}

/// How many rows, and their mean where there is one.
fn summary(scored: &Scored) -> String {
    let whole = scored.rows - scored.missing;
    let rows = match scored.missing {
        0 => format!("{} rows", scored.rows),
        _ => format!("{} rows, {whole} of them with a log-density", scored.rows),
    };
    let over_rows = match whole {
        0 => return format!("{rows}: no mean log-density"),
        1 => String::new(),
        _ => format!(" ± {:.4} over rows,", scored.se_test),
    };
    format!(
        "{rows}, mean log-density {:.4}{over_rows} ± {:.4} of log Z",
        scored.mean_log_density, scored.se_log_z
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_that_of_whole_rows_and_there_is_none_of_none() {
        let scored = Scored {
            rows: 10,
            missing: 0,
            holed: 0,
            largest_error: 0.0,
            mean_log_density: -1.5,
            se_test: 0.25,
            log_z: 0.0,
            se_log_z: 0.0,
        };
        let text = summary(&scored);
        assert_eq!(text, "10 rows, mean log-density -1.5000 ± 0.2500 over rows, ± 0.0000 of log Z");
        let text = summary(&Scored { missing: 7, ..scored });
        assert!(
            text.starts_with("10 rows, 3 of them with a log-density, mean log-density -1.5"),
            "{text}"
        );
        let one = summary(&Scored { missing: 9, se_test: f64::NAN, ..scored });
        assert!(one.contains("1 of them with a log-density") && !one.contains("NaN"), "{one}");
        let nan = f64::NAN;
        let none = summary(&Scored { missing: 10, mean_log_density: nan, se_test: nan, ..scored });
        assert_eq!(none, "10 rows, 0 of them with a log-density: no mean log-density");
    }
}
