//! `zhat data`: the built-in sets, and the paper's five benchmark sets from their raw files.

use std::path::{Path, PathBuf};

use zhat_report::{Align, Table};
use zhat_table::TableError;
use zhat_table::data::benchmark::{self, Benchmark, PreparedSet, Sizes};
use zhat_table::data::stored::{StoreOptions, store};
use zhat_table::data::{Missing, ReadOptions, builtin};

use super::config_options::Kinds;
use super::show_options::ShowOptions;
use super::table_options::FileOptions;
use crate::exit::{Outcome, with_flags};
use crate::interrupt;
use crate::progress::{bar, follow, watched};

#[derive(clap::Subcommand)]
pub enum Action {
    /// List the built-in sets, whose true density is known
    List,
    /// Prepare a table that is larger than memory for a fit, or make one of the paper's five benchmark sets
    Prepare(Prepare),
}

#[derive(clap::Args)]
pub struct Prepare {
    /// A file (CSV, NPY, Parquet; compressed too); or power, gas, hepmass, miniboone or bsds300
    #[arg(value_name = "FILE|SET")]
    set: String,
    /// Of a set, what it is made from. power: household_power_consumption.txt or data.npy; gas: ethylene_CO.txt; hepmass: the directory of 1000_train.csv and
    /// 1000_test.csv; miniboone: MiniBooNE_PID.txt or data.npy; bsds300: BSDS300.hdf5. Text may be compressed
    source: Option<PathBuf>,
    /// New directory for the rows and what they are [default: data/SET, or data/ and the name of the file]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Take a set that is not as large as the paper's, and write down how it differs
    #[arg(long)]
    any_size: bool,
    /// Seed of the noise and of the order
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Of a file, the columns to use, by name or position
    #[arg(long, value_delimiter = ',', conflicts_with = "source")]
    columns: Vec<String>,
    #[command(flatten)]
    file: FileOptions,
    /// Of a file, leave out rows with missing cells
    #[arg(long, conflicts_with = "source")]
    drop_missing: bool,
    /// Of a file, what columns are, where that is not to be found out; as of `zhat fit`
    #[arg(long = "kind", value_name = "COLUMN=KIND", value_parser = |text: &str| Kinds::parse(text), conflicts_with = "source")]
    kinds: Vec<Kinds>,
    #[command(flatten)]
    show: ShowOptions,
}

pub fn run(action: &Action) -> anyhow::Result<Outcome> {
    match action {
        Action::List => list(),
        Action::Prepare(arguments) => prepare(arguments),
    }
}

fn list() -> anyhow::Result<Outcome> {
    let mut table = Table::new([
        ("name", Align::Left),
        ("columns", Align::Right),
        ("entropy", Align::Right),
        ("", Align::Left),
    ]);
    for set in builtin::list() {
        table.row([
            format!("builtin:{}", set.name()),
            set.dimension().to_string(),
            format!("{:.4}", set.entropy().value),
            set.description().to_string(),
        ]);
    }
    print!("{table}");
    Ok(Outcome::Done)
}

fn prepare(arguments: &Prepare) -> anyhow::Result<Outcome> {
    match &arguments.source {
        None if !is_set(&arguments.set) => prepare_table(arguments),
        None => {
            let reason = format!("{}: name the file that it is made from too", arguments.set);
            Err(TableError::Config { reason }.into())
        }
        Some(source) => prepare_set(arguments, source),
    }
}

fn is_set(name: &str) -> bool {
    name.parse::<Benchmark>().is_ok() && !Path::new(name).is_file()
}

/// A table of any length.
fn prepare_table(arguments: &Prepare) -> anyhow::Result<Outcome> {
    let source = Path::new(&arguments.set);
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split('.').next().unwrap_or_default().to_owned();
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("data").join(name));
    let missing = if arguments.drop_missing { Missing::Drop } else { Missing::Keep };
    let mut read =
        ReadOptions { columns: arguments.columns.clone(), missing, ..ReadOptions::default() };
    arguments.file.put_into(&mut read);
    let kinds = arguments.kinds.iter().flat_map(|Kinds(kinds)| kinds.clone()).collect();
    let options = StoreOptions { read, kinds, seed: arguments.seed, ..StoreOptions::default() };
    let watch = interrupt::watch()?;
    let stored = watched(arguments.show.quiet, "rows", None, &watch, || {
        store(source, &out, &options, &watch).map_err(TableError::Data)
    })??;
    arguments.show.print(&stored, || {
        let [train, validation, test] = stored.rows;
        let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
        table.row([
            "rows for training, validation, test".into(),
            format!("{train}, {validation}, {test}"),
        ]);
        table.row(["columns".into(), stored.columns.join(", ")]);
        print!("{table}\n{}\n", out.display());
    })?;
    for note in &stored.notes {
        eprintln!("warning: {}", with_flags(note));
    }
    Ok(Outcome::Done)
}

fn prepare_set(arguments: &Prepare, source: &Path) -> anyhow::Result<Outcome> {
    let set: Benchmark = arguments.set.parse().map_err(TableError::Data)?;
    let default = || PathBuf::from("data").join(set.name());
    let out = arguments.out.clone().unwrap_or_else(default);
    let sizes = if arguments.any_size { Sizes::Any } else { Sizes::AsInThePaper };
    let watch = interrupt::watch()?;
    let template = "{msg} {bar:24} {bytes}/{total_bytes}, {eta} left";
    let bar = bar(arguments.show.quiet, 1, template)?;
    bar.set_message(set.name());
    let prepared = follow(&bar, &watch, || {
        benchmark::prepare(set, source, &out, sizes, arguments.seed, &watch)
    });
    bar.finish_and_clear();
    let prepared = prepared.map_err(TableError::Data)?;
    let shown = || print!("{}\n{}\n", table(&prepared), out.display());
    arguments.show.print(&prepared.meta, shown)?;
    for difference in &prepared.meta.differences {
        eprintln!("warning: not the paper's {set}: {difference}");
    }
    Ok(Outcome::Done)
}

fn table(prepared: &PreparedSet) -> Table {
    let meta = &prepared.meta;
    let [train, validation, test] = meta.rows;
    let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
    table.row([meta.set.name().to_uppercase(), format!("from {}", meta.source)]);
    table.row(["N".into(), meta.rows.iter().sum::<usize>().to_string()]);
    table.row(["D".into(), meta.columns.len().to_string()]);
    table.row(["train, validation, test".into(), format!("{train}, {validation}, {test}")]);
    table.row(["columns".into(), meta.columns.join(", ")]);
    for (index, step) in meta.steps.iter().enumerate() {
        table.row([format!("step {}", index + 1), step.clone()]);
    }
    table
}
