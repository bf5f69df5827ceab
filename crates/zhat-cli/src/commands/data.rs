//! `zhat data`: the built-in sets, and the paper's five benchmark sets from their raw files.

use std::path::PathBuf;

use zhat_report::{Align, Table};
use zhat_table::TableError;
use zhat_table::data::benchmark::{self, Benchmark, PreparedSet, Sizes};
use zhat_table::data::builtin;

use super::show_options::ShowOptions;
use crate::exit::Outcome;
use crate::interrupt;
use crate::progress::{bar, follow};

#[derive(clap::Subcommand)]
pub enum Action {
    /// List the built-in sets, whose true density is known
    List,
    /// Make one of the paper's five benchmark sets from the files it is published as
    Prepare(Prepare),
}

#[derive(clap::Args)]
pub struct Prepare {
    /// power, gas, hepmass, miniboone or bsds300
    #[arg(value_name = "SET")]
    set: String,
    /// power: household_power_consumption.txt or data.npy; gas: ethylene_CO.txt; hepmass: the directory of 1000_train.csv and
    /// 1000_test.csv; miniboone: MiniBooNE_PID.txt or data.npy; bsds300: BSDS300.hdf5. Text may be compressed
    source: PathBuf,
    /// New directory for train.npy, validation.npy, test.npy and meta.json [default: data/SET]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Take a set that is not as large as the paper's, and write down how it differs
    #[arg(long)]
    any_size: bool,
    /// Seed of the noise and of the order
    #[arg(long, default_value_t = 0)]
    seed: u64,
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
    let set: Benchmark = arguments.set.parse().map_err(TableError::Data)?;
    let default = || PathBuf::from("data").join(set.name());
    let out = arguments.out.clone().unwrap_or_else(default);
    let sizes = if arguments.any_size { Sizes::Any } else { Sizes::AsInThePaper };
    let watch = interrupt::watch()?;
    let template = "{msg} {bar:24} {bytes}/{total_bytes}, {eta} left";
    let bar = bar(arguments.show.quiet, 1, template)?;
    bar.set_message(set.name());
    let prepared = follow(&bar, &watch, || {
        benchmark::prepare(set, &arguments.source, &out, sizes, arguments.seed, &watch)
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
